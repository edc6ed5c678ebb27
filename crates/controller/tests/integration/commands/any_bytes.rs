//! Commands of any bytes, whatever the namespace.

use crate::commands::host::{BLOCK, BLOCK_BYTES, KV, ZONED, run};
use base::{Buf, Key, Rng};
use controller::Submission;
use spec::{Command, Opcode, Status};
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::FromBytes;

/// The opcodes of each command set.
const OPCODES: [(u32, &[Opcode]); 3] = [
    (KV, &[Opcode::STORE, Opcode::RETRIEVE, Opcode::LIST, Opcode::DELETE, Opcode::EXIST]),
    (
        BLOCK,
        &[
            Opcode::FLUSH,
            Opcode::WRITE,
            Opcode::READ,
            Opcode::WRITE_ZEROES,
            Opcode::DATASET_MANAGEMENT,
            Opcode::COPY,
            Opcode::COMPARE,
            Opcode::VERIFY,
        ],
    ),
    (
        ZONED,
        &[
            Opcode::FLUSH,
            Opcode::WRITE,
            Opcode::READ,
            Opcode::WRITE_ZEROES,
            Opcode::DATASET_MANAGEMENT,
            Opcode::COPY,
            Opcode::COMPARE,
            Opcode::VERIFY,
            Opcode::ZONE_APPEND,
            Opcode::ZONE_MANAGEMENT_SEND,
            Opcode::ZONE_MANAGEMENT_RECEIVE,
        ],
    ),
];

/// Random bytes, but such that fields are often small: else hardly a command would get past the
/// first check.
fn command(rng: &mut Rng) -> Command {
    let mut bytes = [0; 64];
    rng.fill(&mut bytes);
    for dword in bytes[4..].chunks_mut(4) {
        let keep = match rng.below(8) {
            0 => 4,
            1 => 2,
            2..5 => 1,
            _ => 0,
        };
        dword[keep..].fill(0);
        dword[0] &= pick(&[0xff, 0x3f, 0x07, 0x01], rng);
    }
    let (nsid, opcodes) = pick(&OPCODES, rng);
    if rng.below(16) > 0 {
        bytes[4..8].copy_from_slice(&nsid.to_le_bytes());
    }
    if rng.below(16) > 0 {
        bytes[0] = pick(opcodes, rng).0;
    }
    Command::read_from_bytes(&bytes).expect("a command is any 64 bytes")
}

fn pick<T: Copy>(from: &[T], rng: &mut Rng) -> T {
    from[usize::try_from(rng.below(from.len() as u64)).expect("there are few")]
}

/// Data that may or may not be what the command asks for.
fn data(command: &Command, rng: &mut Rng) -> Buf {
    let small = u32::try_from(rng.below(300)).expect("300 fit");
    let len = match rng.below(8) {
        0 => small,
        1 => small * BLOCK_BYTES,
        2 => command.size().min(1 << 20),
        3 => command.block_ranges() * 16,
        4 => command.copy_ranges() * 32,
        _ => (command.blocks() * BLOCK_BYTES).min(1 << 20),
    };
    if rng.below(4) == 0 {
        return Buf::phantom(len, rng.next_u64());
    }
    let mut bytes = vec![0; len as usize];
    // Ranges of small numbers here and there.
    for byte in bytes.iter_mut().take(8_192).step_by(8) {
        *byte = rng.next_u64().to_le_bytes()[0] & 0x1f;
    }
    if rng.below(4) == 0 {
        rng.fill(&mut bytes);
    }
    Buf::copy_from(&bytes)
}

#[test]
fn no_command_panics_and_each_is_answered() {
    run(async |host| {
        let mut rng = Rng::new(7);
        let mut seen: BTreeMap<u32, BTreeSet<u16>> = BTreeMap::new();
        for round in 0..5_000 {
            let mut commands = BTreeMap::new();
            for _ in 0..=rng.below(8) {
                let command = command(&mut rng);
                let long = Key::new(&vec![7; usize::from(command.key_length())]).ok();
                let long_key = long.filter(|_| rng.below(2) == 0);
                let data = data(&command, &mut rng);
                let id = host.queue.submit(Submission { command, long_key, data });
                commands.insert(id, command);
            }
            // A part of a fused operation waits for the next command.
            let flush = Command::flush(BLOCK);
            let data = Buf::phantom(0, 0);
            let last = host.queue.submit(Submission { command: flush, long_key: None, data });
            commands.insert(last, flush);
            for _ in 0..commands.len() {
                let answered = host.queue.next().await;
                assert!(commands.contains_key(&answered.id), "round {round}");
                let command = commands[&answered.id];
                let nsid = command.nsid();
                if (KV..=ZONED).contains(&nsid) {
                    seen.entry(nsid).or_default().insert(answered.status.0);
                } else if !command.is_fused() {
                    // Of a fused operation the namespace of its first command counts.
                    assert_eq!(answered.status, Status::INVALID_NAMESPACE);
                }
            }
        }
        let expected: [(u32, &[Status]); 3] = [
            (KV, &[Status::SUCCESS, Status::KEY_DOES_NOT_EXIST, Status::INVALID_KEY_SIZE]),
            (BLOCK, &[Status::SUCCESS, Status::LBA_OUT_OF_RANGE]),
            (
                ZONED,
                &[
                    Status::SUCCESS,
                    Status::ZONE_BOUNDARY_ERROR,
                    Status::ZONE_INVALID_WRITE,
                    Status::ZONE_IS_FULL,
                    Status::INVALID_ZONE_STATE_TRANSITION,
                ],
            ),
        ];
        for (nsid, statuses) in expected {
            for status in statuses {
                assert!(seen[&nsid].contains(&status.0), "{nsid} never answered {status}");
            }
            assert!(seen[&nsid].contains(&Status::INVALID_FIELD.0));
            assert!(seen[&nsid].contains(&Status::INVALID_OPCODE.0));
        }
    });
}
