//! Commands of any bytes on queues of all kinds: each is answered once, and others go on.

use crate::fabrics::host::{Line, NQN, World, len, run_shuffled};
use base::{Buf, Rng};
use controller::Capsule;
use spec::{AdminOpcode, Command, ConnectData, QualifiedName, Status, Transfer};
use std::collections::BTreeSet;
use zerocopy::{FromBytes, IntoBytes};

const OPCODES: [u8; 16] = [
    0x00, 0x01, 0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x10, 0x14, 0x18, 0x7f, 0x7f, 0x7f, 0xc1, 0xff,
];

fn below(rng: &mut Rng, end: u64) -> usize {
    usize::try_from(rng.below(end)).expect("it is small")
}

/// Random bytes, but mostly small numbers and a data pointer that fits the data.
fn command(rng: &mut Rng, id: u16, data: u32) -> Command {
    let mut bytes = [0; 64];
    rng.fill(&mut bytes);
    for dword in bytes[4..].chunks_mut(4) {
        let keep = [4, 2, 1, 1, 1, 0, 0, 0][below(rng, 8)];
        dword[keep..].fill(0);
        dword[0] &= [0xff, 0x1f, 0x07, 0x01][below(rng, 4)];
    }
    bytes[0] = OPCODES[below(rng, 16)];
    if rng.below(8) > 0 {
        bytes[1] = 0x40;
        bytes[24..40].fill(0);
        bytes[32..36].copy_from_slice(&data.to_le_bytes());
        bytes[39] = if rng.below(2) > 0 { 0x5a } else { 0x01 };
    }
    // A Disconnect, an Abort and CC are kept for the hosts that mean it.
    if bytes[0] == 0x7f && bytes[4] == 0x08 {
        bytes[4] = 0x04;
    }
    if bytes[0] == 0x7f && bytes[4] == 0x00 {
        bytes[44] = 0x1c;
    }
    if bytes[0] == 0x08 {
        bytes[40] = 0x77;
    }
    Command::read_from_bytes(&bytes).expect("any 64 bytes are one").with_command_id(id)
}

fn data(rng: &mut Rng, nqn: &str) -> Vec<u8> {
    let mut bytes = vec![0; below(rng, 5_000)];
    rng.fill(&mut bytes);
    if rng.below(2) > 0 {
        let mut connect = ConnectData::new([7; 16], "nqn.2026-01.org.example:a", nqn, 0xffff);
        if rng.below(2) > 0 {
            connect.controller_id = zerocopy::little_endian::U16::new(u16::from(rng.below(9) > 4));
        }
        bytes = connect.as_bytes().to_vec();
    }
    bytes
}

/// Sends commands and takes their answers. Requests for events may wait for ever.
async fn bombard(line: &Line, rng: &mut Rng, rounds: u16) -> BTreeSet<u16> {
    let mut statuses = BTreeSet::new();
    for round in 0..rounds {
        let nqn = if rng.below(2) > 0 { NQN } else { QualifiedName::DISCOVERY };
        let data = data(rng, nqn);
        let command = command(rng, round, len(&data));
        if command.admin_opcode() == AdminOpcode::ASYNC_EVENT_REQUEST {
            continue;
        }
        let brings = command.transfer() == Transfer::ToController;
        let data = if brings { Buf::copy_from(&data) } else { Buf::phantom(0, 0) };
        line.queue.submit(Capsule::new(command, data));
        line.queue.execute_held();
        let response = line.next().await.expect("the connection is there");
        assert_eq!(response.entry.command_id(), round, "{command:?}");
        statuses.insert(response.entry.status().0);
    }
    statuses
}

#[test]
fn no_bytes_panic_and_each_command_is_answered() {
    for seed in 0..8 {
        run_shuffled(Some(seed), async |world: World| {
            let mut rng = Rng::new(seed);
            let (calm, id) = world.admin().await;
            let calm_io = world.io(id, 1).await;
            let (admin, id) = world.admin().await;
            let io = world.io(id, 9).await;
            let (discovery, _) = world.admin_of(QualifiedName::DISCOVERY, 0).await;
            for line in [&admin, &io, &discovery, &world.line()] {
                let statuses = bombard(line, &mut rng, 2_000).await;
                assert!(statuses.len() > 4, "{statuses:x?}");
                assert!(statuses.contains(&Status::INVALID_FIELD.0));
                assert_eq!(line.waiting(), 0);
            }
            assert_eq!(calm_io.store(b"key", b"value").await, Status::SUCCESS);
            assert_eq!(calm.status(Command::keep_alive()).await, Status::SUCCESS);
        });
    }
}
