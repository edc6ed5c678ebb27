//! The time of operations against formulas in the tests, to the nanosecond.

use base::{Buf, Nanos, Rng};
use clock::{Class, Group, Stage, join_all, now, sleep_until, stages};
use media::Page;
use nand::{BlockId, Cells, DieId, FaultPlan, Geometry, Model, Nand, Ppa, Registers, Timing};
use reactor::Reactor;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const READ: Nanos = Nanos::from_micros(45);
const PROGRAM: Nanos = Nanos::from_micros(660);
const ERASE: Nanos = Nanos::from_micros(3_500);
const PAGE_BYTES: u32 = 16_384;
const PAGES: u32 = 64;
const CHANNELS: u32 = 2;
const DIES_PER_CHANNEL: u32 = 4;
const MODELS: [Model; 2] = [Model::Staged, Model::Scalar];
const REGISTERS: [Registers; 2] = [Registers::Single, Registers::Double];

const GEOMETRY: Geometry = Geometry {
    channels: CHANNELS,
    dies_per_channel: DIES_PER_CHANNEL,
    planes_per_die: 1,
    blocks_per_plane: 64,
    pages_per_block: PAGES,
    page_bytes: PAGE_BYTES,
    spare_bytes: 1_024,
};

fn timing(model: Model, registers: Registers, channel_bytes_per_second: u64) -> Timing {
    Timing::uniform(model, registers, READ, PROGRAM, ERASE, channel_bytes_per_second)
}

/// `micros` as the transfer time of a whole page, and the channel's rate that makes it so.
fn transfer(micros: u64) -> (Nanos, u64) {
    (Nanos::from_micros(micros), u64::from(PAGE_BYTES) * 1_000_000 / micros)
}

/// Runs `body` on an erased array.
fn on<T>(timing: Timing, body: impl AsyncFnOnce(Arc<Nand>) -> T) -> T {
    Reactor::new(None).run(async {
        let cells = Arc::new(Cells::new(GEOMETRY, 0, 0, 0));
        body(Arc::new(Nand::new(cells, timing, FaultPlan::default(), Group::new()))).await
    })
}

fn block(die: u32, block: u32) -> BlockId {
    BlockId { die: DieId(die), block }
}

/// Page `number` of a die, counted over its blocks.
fn ppa(die: u32, number: u32) -> Ppa {
    Ppa { block: block(die, number / PAGES), page: number % PAGES }
}

async fn program(nand: Arc<Nand>, at: Ppa) {
    let page = Page::new(&[], [Buf::phantom(100, 7)]);
    let tag = (at.page == 0).then_some([0; 24]);
    nand.program(at, page, tag, Class::HostWrite).await.expect("good flash");
}

async fn read(nand: Arc<Nand>, at: Ppa, bytes: u32) {
    nand.read(at, &|_| bytes, Class::HostRead).await.expect("good flash");
}

async fn program_one_on_each_die(nand: &Arc<Nand>) {
    let programs = (0..GEOMETRY.dies()).map(|die| program(nand.clone(), ppa(die, 0)));
    join_all(programs.collect()).await;
}

/// Starts all at once and returns when each was done, counted from the start.
async fn ends<F: Future<Output = ()> + 'static>(
    operations: impl IntoIterator<Item = F>,
) -> Vec<Nanos> {
    let start = now();
    let timed = operations.into_iter().map(|operation| async move {
        operation.await;
        now() - start
    });
    join_all(timed.collect()).await
}

#[test]
fn one_operation_takes_its_steps_and_nothing_else() {
    let (page, rate) = transfer(20);
    for (model, registers) in MODELS.iter().flat_map(|m| REGISTERS.map(|r| (*m, r))) {
        on(timing(model, registers, rate), async |nand| {
            assert_eq!(ends([program(nand.clone(), ppa(3, 0))]).await, [page + PROGRAM]);
            assert_eq!(
                ends([read(nand.clone(), ppa(3, 0), 4_096)]).await,
                [READ + Nanos(page.0 / 4)]
            );
            assert_eq!(ends([read(nand.clone(), ppa(3, 0), 0)]).await, [READ]);
            let probe = nand.clone();
            let probe = async move {
                assert!(probe.probe(ppa(3, 0), Class::HostRead).await.expect("good flash"));
            };
            assert_eq!(ends([probe]).await, [READ]);
            let erase = nand.clone();
            let erase =
                async move { erase.erase(block(3, 0), Class::Gc).await.expect("good flash") };
            assert_eq!(ends([erase]).await, [ERASE]);
            let counters = nand.counters();
            assert_eq!(counters.words(), [2, 1, 1, 1, 4_096, u64::from(PAGE_BYTES), 0, 0, 0]);
        });
    }
}

#[test]
fn a_channel_without_limit_takes_no_time() {
    on(timing(Model::Staged, Registers::Single, 0), async |nand| {
        assert_eq!(ends([program(nand.clone(), ppa(0, 0))]).await, [PROGRAM]);
        assert_eq!(ends([read(nand.clone(), ppa(0, 0), PAGE_BYTES)]).await, [READ]);
    });
}

/// Returns the ends of `count` simultaneous reads of a page each on one die.
fn reads_on_one_die(model: Model, registers: Registers, rate: u64, count: u32) -> Vec<Nanos> {
    on(timing(model, registers, rate), async |nand| {
        program(nand.clone(), ppa(0, 0)).await;
        ends((0..count).map(|_| read(nand.clone(), ppa(0, 0), PAGE_BYTES))).await
    })
}

#[test]
fn a_single_register_makes_reads_of_a_die_wait_for_its_transfers() {
    for micros in [20, 80] {
        let (page, rate) = transfer(micros);
        for model in MODELS {
            let ends = reads_on_one_die(model, Registers::Single, rate, 20);
            let formula: Vec<Nanos> = (1..=20).map(|n| Nanos(n * (READ + page).0)).collect();
            assert_eq!(ends, formula);
        }
    }
}

#[test]
fn a_double_register_overlaps_the_transfer_with_the_next_sense() {
    for micros in [20, 80] {
        let (page, rate) = transfer(micros);
        for model in MODELS {
            let single = reads_on_one_die(model, Registers::Single, rate, 20);
            let double = reads_on_one_die(model, Registers::Double, rate, 20);
            let slower = READ.max(page);
            let formula: Vec<Nanos> = (0..20).map(|n| READ + page + Nanos(n * slower.0)).collect();
            assert_eq!(double, formula);
            assert_eq!(single[1] - double[1], READ.min(page), "the gain of the second read");
        }
    }
}

#[test]
fn a_double_register_overlaps_a_program_with_the_next_transfer() {
    for micros in [20, 800] {
        let (page, rate) = transfer(micros);
        for model in MODELS {
            for (registers, step) in
                [(Registers::Single, page + PROGRAM), (Registers::Double, page.max(PROGRAM))]
            {
                let ends = on(timing(model, registers, rate), async |nand| {
                    ends((0..20).map(|number| program(nand.clone(), ppa(0, number)))).await
                });
                let formula: Vec<Nanos> =
                    (0..20).map(|n| page + PROGRAM + Nanos(n * step.0)).collect();
                assert_eq!(ends, formula);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Load {
    Reads,
    Programs,
}

/// The time of `each` operations on each die, with as many outstanding there as it has registers.
fn closed_loop(load: Load, registers: Registers, rate: u64, each: u32) -> Nanos {
    let outstanding = match registers {
        Registers::Single => 1,
        Registers::Double => 2,
    };
    on(timing(Model::Staged, registers, rate), async |nand| {
        if let Load::Reads = load {
            program_one_on_each_die(&nand).await;
        }
        let dies = GEOMETRY.dies();
        let next: Vec<Rc<Cell<u32>>> = (0..dies).map(|_| Rc::default()).collect();
        let loops = (0..outstanding * dies).map(|index| {
            let (nand, die) = (nand.clone(), index % dies);
            let next = next[die as usize].clone();
            async move {
                while next.get() < each {
                    let number = next.replace(next.get() + 1);
                    match load {
                        Load::Reads => read(nand.clone(), ppa(die, 0), PAGE_BYTES).await,
                        Load::Programs => program(nand.clone(), ppa(die, number)).await,
                    }
                }
            }
        });
        ends(loops).await.into_iter().max().expect("there are dies")
    })
}

/// Asserts the exact time of a closed loop and, to 0.1 %, the rate in operations a second.
fn assert_loop(
    load: Load,
    registers: Registers,
    rate: u64,
    exact: impl Fn(u64) -> Nanos,
    step: Nanos,
) {
    let each = 2_000;
    let time = closed_loop(load, registers, rate, each);
    assert_eq!(time, exact(u64::from(each)));
    let measured = f64::from(each * GEOMETRY.dies()) / time.as_secs_f64();
    let formula = f64::from(GEOMETRY.dies()) / step.as_secs_f64();
    assert!((measured / formula - 1.0).abs() < 0.001, "{measured} a second and not {formula}");
}

/// Dies of a channel, for formulas in nanoseconds.
const DIES: u64 = DIES_PER_CHANNEL as u64;

#[test]
fn below_saturation_dies_read_as_if_alone() {
    let (page, rate) = transfer(8);
    let x = page.0;
    assert!(DIES * x < READ.0, "below saturation");
    let single = |n| Nanos((DIES - 1) * x + n * (READ.0 + x));
    assert_loop(Load::Reads, Registers::Single, rate, single, READ + page);
    let double = |n| Nanos(n * READ.0 + DIES * x);
    assert_loop(Load::Reads, Registers::Double, rate, double, READ);
}

#[test]
fn above_saturation_reads_keep_the_channel_busy() {
    let (page, rate) = transfer(20);
    let x = page.0;
    assert!(DIES * x > READ.0 + x, "above saturation");
    let exact = |n| Nanos(READ.0 + n * DIES * x);
    for registers in REGISTERS {
        assert_loop(Load::Reads, registers, rate, exact, Nanos(DIES * x));
    }
}

#[test]
fn below_saturation_dies_program_as_if_alone() {
    let (page, rate) = transfer(80);
    let x = page.0;
    assert!(DIES * x < PROGRAM.0, "below saturation");
    let single = |n| Nanos((DIES - 1) * x + n * (PROGRAM.0 + x));
    assert_loop(Load::Programs, Registers::Single, rate, single, PROGRAM + page);
    let double = |n| Nanos(DIES * x + n * PROGRAM.0);
    assert_loop(Load::Programs, Registers::Double, rate, double, PROGRAM);
}

#[test]
fn above_saturation_programs_keep_the_channel_busy() {
    let (page, rate) = transfer(320);
    let x = page.0;
    assert!(DIES * x > PROGRAM.0 + x, "above saturation");
    let exact = |n| Nanos(n * DIES * x + PROGRAM.0);
    for registers in REGISTERS {
        assert_loop(Load::Programs, registers, rate, exact, Nanos(DIES * x));
    }
}

/// Runs a read that waits for an erase of its die, then a read on another die of the channel.
/// Returns when the later one is done.
fn later_read_beside_one_that_waits(model: Model, rate: u64) -> Nanos {
    on(timing(model, Registers::Single, rate), async |nand| {
        program_one_on_each_die(&nand).await;
        let start = now();
        let erase = nand.clone();
        clock::spawn(async move { erase.erase(block(0, 1), Class::Gc).await.expect("good flash") });
        clock::spawn(read(nand.clone(), ppa(0, 0), PAGE_BYTES));
        let later = join_all(vec![read(nand.clone(), ppa(CHANNELS, 0), PAGE_BYTES)]);
        later.await;
        now() - start
    })
}

#[test]
fn a_later_read_takes_a_channel_that_idles_while_an_earlier_one_still_senses() {
    let (page, rate) = transfer(20);
    assert_eq!(later_read_beside_one_that_waits(Model::Staged, rate), READ + page);
}

#[test]
fn the_scalar_model_makes_a_later_read_wait_for_an_idle_channel() {
    let (page, rate) = transfer(20);
    let behind = ERASE + READ + page + page;
    assert_eq!(later_read_beside_one_that_waits(Model::Scalar, rate), behind);
}

#[test]
fn a_read_overtakes_queued_programs_but_not_the_one_under_way() {
    let (page, rate) = transfer(20);
    let end = on(timing(Model::Staged, Registers::Single, rate), async |nand| {
        program_one_on_each_die(&nand).await;
        let start = now();
        for number in 1..=3 {
            clock::spawn(program(nand.clone(), ppa(0, number)));
        }
        join_all(vec![read(nand.clone(), ppa(0, 0), PAGE_BYTES)]).await;
        now() - start
    });
    assert_eq!(end, page + PROGRAM + READ + page);
}

/// Starts a random operation at a random instant and checks its account.
fn start_random(nand: &Arc<Nand>, rng: &mut Rng, next: &[Rc<Cell<u32>>]) {
    let nand = nand.clone();
    let mut below =
        |bound: u32| u32::try_from(rng.below(u64::from(bound))).expect("below a number of 32 bits");
    let (die, kind, bytes) = (below(GEOMETRY.dies()), below(5), below(PAGE_BYTES + 1));
    let at = Nanos(rng.below(20_000_000));
    let next = next[die as usize].clone();
    clock::spawn(async move {
        sleep_until(now() + at, Stage::Batch).await;
        let (start, before) = (now(), stages().total());
        match kind {
            0 => nand.erase(block(die, 63), Class::Gc).await.expect("good flash"),
            1 => program(nand, ppa(die, next.replace(next.get() + 1))).await,
            _ => read(nand, ppa(die, 0), bytes).await,
        }
        assert_eq!(stages().total() - before, now() - start);
    });
}

#[test]
fn the_stages_of_every_operation_add_up_to_its_latency() {
    let (_, rate) = transfer(20);
    for (model, registers) in MODELS.iter().flat_map(|m| REGISTERS.map(|r| (*m, r))) {
        on(timing(model, registers, rate), async |nand| {
            program_one_on_each_die(&nand).await;
            let next: Vec<Rc<Cell<u32>>> =
                (0..GEOMETRY.dies()).map(|_| Rc::new(Cell::new(1))).collect();
            let mut rng = Rng::new(1);
            (0..3_000).for_each(|_| start_random(&nand, &mut rng, &next));
            sleep_until(Nanos::from_secs(60), Stage::Batch).await;
            let counters = nand.counters();
            let done = counters.reads + counters.programs + counters.erases;
            assert_eq!(done, 3_000 + u64::from(GEOMETRY.dies()));
        });
    }
}

#[test]
fn waiting_for_a_channel_is_accounted_apart_from_using_it() {
    let (page, rate) = transfer(20);
    for model in MODELS {
        on(timing(model, Registers::Double, rate), async |nand| {
            program_one_on_each_die(&nand).await;
            let reads = [0, CHANNELS].map(|die| {
                let nand = nand.clone();
                async move {
                    read(nand, ppa(die, 0), PAGE_BYTES).await;
                    stages()
                }
            });
            let second = join_all(reads.into()).await[1];
            assert_eq!(second[Stage::Array], READ);
            assert_eq!((second[Stage::Queue], second[Stage::Channel]), (page, page));
            let programs = [1, 2].map(|number| {
                let nand = nand.clone();
                async move {
                    program(nand, ppa(0, number)).await;
                    stages()
                }
            });
            let second = join_all(programs.into()).await[1];
            assert_eq!((second[Stage::Channel], second[Stage::Array]), (page, PROGRAM));
            assert_eq!(second[Stage::Queue], PROGRAM, "for the channel, then for the array");
        });
    }
}

#[test]
fn a_double_register_is_two_and_no_more() {
    let (page, rate) = transfer(800);
    on(timing(Model::Staged, Registers::Double, rate), async |nand| {
        program(nand.clone(), ppa(0, 0)).await;
        for _ in 0..2 {
            clock::spawn(read(nand.clone(), ppa(0, 0), PAGE_BYTES));
        }
        let third = ends([async move {
            nand.probe(ppa(0, 0), Class::HostRead).await.expect("good flash");
        }]);
        assert_eq!(third.await, [READ + page + READ], "when the first has left its register");
    });
}

#[test]
fn one_operation_at_a_time_takes_the_same_time_in_both_models() {
    let (_, rate) = transfer(20);
    let run = |model| {
        on(timing(model, Registers::Single, rate), async |nand| {
            for number in 0..200 {
                program(nand.clone(), ppa(number % 3, number / 3)).await;
                read(nand.clone(), ppa(number % 3, number / 7), number * 80).await;
            }
            (now(), stages())
        })
    };
    assert_eq!(run(Model::Staged), run(Model::Scalar));
}
