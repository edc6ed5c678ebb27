use super::{MANY, MIXED, Model as Device, drive, operations};
use crate::chooser::Distribution;
use crate::kind::Kind;
use crate::outcome::Outcome;
use crate::plan::tests::PLAN as PAIRS;
use crate::plan::{Operation, Plan, Until};
use crate::session::Session;
use crate::space::Space;
use crate::tally::Tally;
use crate::value::Payload;
use crate::value_sizes::ValueSizes;
use crate::zoning::Zoning;
use base::limits::BLOCK_BYTES;
use base::{Buf, Nanos};
use controller::{Completion, Submission};
use spec::{Command, Opcode, Status, ZoneSendAction};
use std::collections::{BTreeMap, BTreeSet};

/// Logical blocks as an array, and write pointers where it has zones.
#[derive(Default)]
pub(super) struct Model {
    content: BTreeMap<u64, Buf>,
    zoning: Option<Zoning>,
    write_pointers: BTreeMap<u64, u64>,
    resets: u64,
}

impl Model {
    pub(super) fn carry_out(&mut self, submission: &Submission, completion: &mut Completion) {
        let command = &submission.command;
        assert_eq!(command.nsid(), PAIRS.nsid);
        let (lba, blocks) = (command.lba(), u64::from(command.blocks()));
        match command.opcode() {
            Opcode::READ => {
                let parts = (lba..lba + blocks).map(|lba| self.content.get(&lba).cloned());
                let parts: Option<Vec<Buf>> = parts.collect();
                completion.data = Buf::join(&parts.expect("only what was written is read"))
                    .expect("a block is of one version");
            }
            Opcode::ZONE_MANAGEMENT_SEND => {
                assert_eq!(command.zone_send_action(), Some(ZoneSendAction::Reset));
                let zone_blocks = self.zoning.unwrap().zone_blocks;
                assert_eq!(lba % zone_blocks, 0);
                assert!(self.write_pointers.insert(lba, lba).is_some(), "it was written");
                self.content.retain(|at, _| !(lba..lba + zone_blocks).contains(at));
                self.resets += 1;
            }
            Opcode::WRITE | Opcode::ZONE_APPEND => match self.place(command, lba, blocks) {
                Ok(lba) => self.write(lba, &submission.data),
                Err(status) => completion.status = status,
            },
            other => panic!("{other}"),
        }
    }

    /// Where a write goes.
    fn place(&mut self, command: &Command, lba: u64, blocks: u64) -> Result<u64, Status> {
        let Some(zoning) = self.zoning else { return Ok(lba) };
        let start = lba - lba % zoning.zone_blocks;
        let pointer = self.write_pointers.entry(start).or_insert(start);
        let wanted = if command.opcode() == Opcode::WRITE { *pointer } else { start };
        if lba != wanted || *pointer + blocks > start + zoning.capacity_blocks {
            return Err(Status::INVALID_FIELD);
        }
        *pointer += blocks;
        Ok(*pointer - blocks)
    }

    fn write(&mut self, first: u64, data: &Buf) {
        for (lba, start) in (first..).zip((0..data.len()).step_by(BLOCK_BYTES as usize)) {
            self.content.insert(lba, data.slice(start..start + BLOCK_BYTES));
        }
    }
}

const ZONING: Zoning = Zoning { zone_blocks: 16, capacity_blocks: 12 };

const PLAN: Plan = Plan {
    operation: Operation::RandRead,
    space: Space::Blocks,
    values: ValueSizes::Fixed(2 * BLOCK_BYTES),
    ..PAIRS
};

const PLANS: [Plan; 9] = [
    PLAN,
    Plan { operation: Operation::Read, ..PLAN },
    Plan { operation: Operation::Write, until: MANY, ..PLAN },
    Plan { operation: Operation::RandWrite, distribution: Distribution::Zipfian, ..PLAN },
    Plan {
        operation: MIXED,
        until: MANY,
        values: ValueSizes::Fixed(BLOCK_BYTES),
        keys: 40,
        ..PLAN
    },
    Plan { space: Space::Zones(ZONING), ..PLAN },
    Plan { space: Space::Zones(ZONING), operation: Operation::Read, ..PLAN },
    Plan { space: Space::Zones(ZONING), operation: Operation::Write, until: MANY, ..PLAN },
    Plan { space: Space::Zones(ZONING), operation: Operation::Write, keys: 6, ..PLAN },
];

fn device(plan: &Plan, seed: u64) -> Device {
    let zoning = match plan.space {
        Space::Zones(zoning) => Some(zoning),
        _ => None,
    };
    let blocks = Model { zoning, ..Model::default() };
    Device { blocks: Some(blocks), ..Device::new(seed) }
}

fn blocks(device: &mut Device) -> &mut Model {
    device.blocks.as_mut().unwrap()
}

/// Zones are filled one block after the other.
fn fill(device: &mut Device, plan: &Plan) {
    let depth = if matches!(plan.space, Space::Zones(_)) { 1 } else { 64 };
    let filled = drive(device, Session::filling(plan, Nanos(0)), depth, |_| ());
    assert_eq!((filled.operations(), filled.errors()), (plan.keys, 0));
    let stored = blocks(device).content.len() as u64;
    assert_eq!(stored, plan.keys * u64::from(plan.logical_blocks()));
}

fn run(device: &mut Device, plan: &Plan) -> Outcome {
    if plan.needs_fill() {
        fill(device, plan);
    }
    drive(device, Session::new(plan, Nanos(device.now)), 13, |_| ())
}

#[test]
fn a_right_device_makes_no_errors_in_whatever_order_it_works() {
    for plan in PLANS {
        for seed in 0..10 {
            for is_filled in [false, true] {
                let plan = Plan { is_filled, ..plan };
                let mut device = device(&plan, seed);
                if is_filled {
                    fill(&mut device, &plan);
                }
                let outcome = run(&mut device, &plan);
                assert_eq!(outcome.errors_by_status(), BTreeMap::new(), "{plan:?}, seed {seed}");
                assert_eq!(outcome.operations(), operations(&plan));
                let count = |kind| outcome.tally(kind).map_or(0, Tally::count);
                assert_eq!(count(Kind::Read) + count(Kind::Write), operations(&plan));
                let only_writes = Plan { is_filled: false, ..plan };
                assert_eq!(count(Kind::Read) > 0, only_writes.needs_fill());
            }
        }
    }
}

#[test]
fn digests_are_those_of_the_seed_in_every_payload_mode() {
    for plan in PLANS {
        let digest = |seed, payload| {
            let plan = Plan { seed, payload, ..plan };
            run(&mut device(&plan, 1), &plan).digest(&[])
        };
        let known = digest(1, Payload::None);
        assert_eq!(known, digest(1, Payload::Checksum), "{plan:?}");
        assert_eq!(known, digest(1, Payload::Full), "{plan:?}");
        assert_ne!(known, digest(2, Payload::None), "{plan:?}");
    }
}

/// The first logical blocks of what a run asks for.
fn asked(plan: &Plan) -> Vec<u64> {
    let (mut device, mut asked) = (device(plan, 1), Vec::new());
    if plan.needs_fill() {
        fill(&mut device, plan);
    }
    let session = Session::new(plan, Nanos(0));
    drive(&mut device, session, 5, |submission| asked.push(submission.command.lba()));
    asked
}

#[test]
fn reads_and_writes_are_in_turn_and_the_others_are_drawn() {
    let until = Until::Operations(250);
    let in_turn: Vec<u64> = (0..250).map(|index| index % 100 * 2).collect();
    for operation in [Operation::Read, Operation::Write] {
        assert_eq!(asked(&Plan { operation, until, ..PLAN }), in_turn);
    }
    let until = Until::Operations(2_000);
    for operation in [Operation::RandRead, Operation::RandWrite] {
        let lbas = asked(&Plan { operation, until, ..PLAN });
        assert!(!lbas[..100].is_sorted());
        let different: BTreeSet<u64> = lbas.into_iter().collect();
        assert!(different.iter().eq(&(0..100).map(|block| block * 2).collect::<BTreeSet<u64>>()));
    }
    let zones = Plan { operation: Operation::Read, space: Space::Zones(ZONING), keys: 8, ..PLAN };
    let lbas = asked(&Plan { until: Until::Operations(10), ..zones });
    assert_eq!(lbas, [0, 2, 4, 6, 8, 10, 16, 18, 0, 2]);
}

#[test]
fn a_wrong_block_is_an_error_in_every_payload_mode() {
    let faults: [fn(&mut Completion); 3] = [
        |completion| completion.data = completion.data.slice(0..BLOCK_BYTES),
        |completion| completion.data = completion.data.with_flipped_bit(0),
        |completion| completion.data = Buf::phantom(2 * BLOCK_BYTES, 7),
    ];
    for payload in [Payload::Full, Payload::None] {
        for fault in faults {
            let plan = Plan { payload, ..PLAN };
            let mut device = device(&plan, 1);
            fill(&mut device, &plan);
            device.fault = fault;
            let outcome = drive(&mut device, Session::new(&plan, Nanos(0)), 4, |_| ());
            let expected = [("Wrong Value".to_owned(), operations(&plan))];
            assert_eq!(outcome.errors_by_status(), BTreeMap::from(expected));
        }
    }
}

/// Six blocks a zone, 20 blocks: the zones begin with blocks 0, 6, 12 and 18.
#[test]
fn each_zone_is_reset_before_it_is_written_again() {
    let operation = Operation::Write;
    let plan = Plan { operation, space: Space::Zones(ZONING), keys: 20, ..PLAN };
    for (is_filled, operations, resets) in
        [(false, 20, 0), (false, 21, 1), (false, 200, 36), (true, 1, 1), (true, 200, 40)]
    {
        let plan = Plan { is_filled, until: Until::Operations(operations), ..plan };
        let mut device = device(&plan, 1);
        if is_filled {
            fill(&mut device, &plan);
        }
        assert_eq!(run(&mut device, &plan).errors(), 0);
        assert_eq!(blocks(&mut device).resets, resets, "{operations} operations");
    }
}

#[test]
fn a_zone_that_is_not_reset_takes_no_more_and_the_run_still_ends() {
    let operation = Operation::Write;
    let plan = Plan { operation, space: Space::Zones(ZONING), keys: 6, ..PLAN };
    let plan = Plan { until: Until::Operations(30), is_filled: true, ..plan };
    let mut device = device(&plan, 1);
    fill(&mut device, &plan);
    device.fault = |completion| {
        if completion.opcode == Opcode::ZONE_MANAGEMENT_SEND {
            completion.status = Status::INTERNAL_ERROR;
        }
    };
    let outcome = drive(&mut device, Session::new(&plan, Nanos(0)), 13, |_| ());
    assert_eq!((outcome.operations(), outcome.errors_by_status()["Internal Error"]), (30, 5));
}

#[test]
fn overwriting_stores_again_what_is_there() {
    for plan in [PLAN, Plan { payload: Payload::Full, ..PLAN }] {
        let mut device = device(&plan, 1);
        fill(&mut device, &plan);
        let before = blocks(&mut device).content.clone();
        let mut rounds = Vec::new();
        for round in 0..2 {
            let (mut lbas, session) =
                (Vec::new(), Session::overwriting(&plan, round, 900, Nanos(0)));
            let outcome = drive(&mut device, session, 13, |asked| lbas.push(asked.command.lba()));
            assert_eq!((outcome.operations(), outcome.errors()), (900, 0));
            assert_eq!(lbas.iter().collect::<BTreeSet<_>>().len(), 100, "of 100 blocks");
            rounds.push(lbas);
        }
        assert_ne!(rounds[0], rounds[1]);
        let checksums = |content: &BTreeMap<u64, Buf>| {
            content.iter().map(|(lba, data)| (*lba, data.checksum())).collect::<Vec<_>>()
        };
        assert_eq!(checksums(&blocks(&mut device).content), checksums(&before));
        let reading = Plan { is_filled: true, ..plan };
        assert_eq!(run(&mut device, &reading).errors(), 0);
    }
}

#[test]
fn a_fill_can_be_done_in_parts() {
    for space in [Space::Blocks, Space::Zones(ZONING)] {
        let plan = Plan { space, ..PLAN };
        let mut device = device(&plan, 1);
        let mut lbas = Vec::new();
        for (first, keys) in [(0, 30), (30, 31), (31, 100)] {
            let session = Session::filling_from(&Plan { keys, ..plan }, first, Nanos(0));
            drive(&mut device, session, 1, |submission| lbas.push(submission.command.lba()));
        }
        assert_eq!(lbas.len(), 100);
        assert!(lbas.is_sorted());
        assert_eq!(run(&mut device, &Plan { is_filled: true, ..plan }).errors(), 0);
    }
}
