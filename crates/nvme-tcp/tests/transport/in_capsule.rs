//! Capsules whose data is not what their SGL says: the command fails, the connection stays.

use crate::host::{Came, Host, exist, retrieve, rough, run, store, value};
use nvme_tcp::pdu::{CapsuleCmd, Digests};
use spec::{Command, DataPointer, Status};

fn inside(offset: u32, len: u32) -> DataPointer {
    DataPointer::InCapsule { offset, len }
}

/// How `command` ends that comes with so many bytes of data. After it, another one has to succeed.
async fn status_of(host: &mut Host, command: Command, data_len: u32) -> Status {
    let capsule = CapsuleCmd::new(command.with_command_id(1));
    if data_len == 0 {
        host.outbox.push(&capsule);
    } else {
        host.outbox.push_with_data(&capsule, value(data_len, 1));
    }
    host.outbox.push(&CapsuleCmd::new(exist(2)));
    host.flush().await;
    let mut status = None;
    loop {
        match host.next().await {
            Came::Response(entry) if entry.command_id() == 1 => status = Some(entry.status()),
            Came::Response(entry) => {
                assert_eq!((entry.command_id(), entry.status()), (2, Status::SUCCESS));
            }
            Came::Ready { id: 1, tag, len, .. } => {
                host.give(1, tag, &value(len, 2), len);
                host.flush().await;
                continue;
            }
            other => panic!("{command:?} with {data_len} bytes: {other:?}"),
        }
        if let Some(status) = status {
            return status;
        }
    }
}

#[test]
fn capsule_data_that_the_sgl_does_not_name_ends_no_connection() {
    let (short, success) = (Status::DATA_SGL_LENGTH_INVALID, Status::SUCCESS);
    let wrong_type = Status::SGL_TYPE_INVALID;
    let delete = Command::delete(1, b"key");
    run(async move {
        for digests in [Digests::NONE, Digests { header: true, data: true }] {
            let mut host = Host::open(7, rough(500), digests, 4).await;
            for (command, pointer, data_len, expected) in [
                (store(1, 9), inside(0, 9), 8, short),
                (store(1, 7), inside(0, 7), 0, short),
                (store(1, 7), inside(2, 7), 8, short),
                (store(1, 7), inside(9, 7), 8, short),
                (store(1, 7), inside(u32::MAX, 7), 8, short),
                (store(1, 7), inside(0, 7), 8, success),
                (store(1, 7), inside(1, 7), 8, success),
                (store(1, 7), DataPointer::Transport { len: 7 }, 8, success),
                (store(1, 7), DataPointer::Other(0x40), 8, wrong_type),
                (retrieve(1, 8), inside(0, 8), 8, wrong_type),
                (retrieve(1, 8), inside(0, 8), 0, wrong_type),
                (retrieve(1, 8), DataPointer::Other(0x00), 8, wrong_type),
                (delete, inside(0, 8), 0, success),
                (delete, DataPointer::Transport { len: 0 }, 8, success),
            ] {
                let status = status_of(&mut host, command.with_data_pointer(pointer), data_len);
                assert_eq!(status.await, expected, "{command:?}, {pointer:?}, {data_len} bytes");
            }
            assert!(host.ended.get().is_none());
        }
    });
}
