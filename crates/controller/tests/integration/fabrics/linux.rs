//! The commands of Linux 6.1, 6.12 and 7.2 in their order and byte by byte: a Key Value namespace
//! appears, is used by passthrough, and the host goes.

use crate::fabrics::host::{HOST_ID, HOST_NQN, KV, Line, NQN, entry, run};
use spec::{ConnectData, QualifiedName, Status};
use zerocopy::IntoBytes;

/// A command as the driver sends it: flags 40h, and an SGL for `data` bytes by the transport.
fn command(opcode: u8, nsid: u32, data: u32, dwords: &[(usize, u32)]) -> [u8; 64] {
    let mut bytes = entry(&[
        (0, &[opcode, 0x40, 0x11, 0]),
        (4, &nsid.to_le_bytes()),
        (32, &data.to_le_bytes()),
        (39, &[0x5a]),
    ]);
    for (dword, value) in dwords {
        bytes[4 * dword..4 * dword + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn fabrics(kind: u8, dwords: &[(usize, u32)]) -> [u8; 64] {
    command(0x7f, kind.into(), 0, dwords)
}

fn connect(queue: u16, size: u16, keep_alive: u32) -> [u8; 64] {
    let words = [(10, u32::from(queue) << 16), (11, size.into()), (12, keep_alive), (8, 1_024)];
    let mut bytes = fabrics(0x01, &words);
    bytes[39] = 0x01;
    bytes
}

fn property_get(offset: u32, is_8_bytes: bool) -> [u8; 64] {
    fabrics(0x04, &[(10, is_8_bytes.into()), (11, offset)])
}

fn property_set(offset: u32, value: u32) -> [u8; 64] {
    fabrics(0x00, &[(11, offset), (12, value)])
}

async fn result(line: &Line, bytes: [u8; 64], data: &[u8]) -> u64 {
    line.send_bytes(&bytes, data);
    let response = line.next().await.expect("the connection is there");
    assert_eq!(response.entry.status(), Status::SUCCESS, "{bytes:02x?}");
    assert_eq!(response.entry.command_id(), 0x11);
    response.entry.result()
}

async fn read(line: &Line, bytes: [u8; 64]) -> Vec<u8> {
    line.send_bytes(&bytes, &[]);
    let response = line.next().await.expect("the connection is there");
    assert_eq!(response.entry.status(), Status::SUCCESS, "{bytes:02x?}");
    response.data.bytes().expect("there are bytes").to_vec()
}

fn data(nqn: &str, id: u16) -> ConnectData {
    ConnectData::new(HOST_ID, HOST_NQN, nqn, id)
}

/// Steps 1 to 9: the admin queue, until the controller has said what it is.
async fn attach(line: &Line, nqn: &str, keep_alive: u32) -> (u16, Vec<u8>) {
    let id = result(line, connect(0, 31, keep_alive), data(nqn, 0xffff).as_bytes()).await;
    let capabilities = result(line, property_get(0x00, true), &[]).await;
    assert_ne!(capabilities & 1 << 43, 0, "or the host asks for the NVM command set alone");
    result(line, property_set(0x14, 0x0046_0060), &[]).await;
    assert_eq!(result(line, property_get(0x14, false), &[]).await, 0x0046_0060);
    assert_eq!(result(line, property_get(0x00, true), &[]).await, capabilities);
    result(line, property_get(0x68, false), &[]).await;
    result(line, property_set(0x14, 0x0046_0061), &[]).await;
    assert_eq!(result(line, property_get(0x1c, false), &[]).await & 1, 1);
    assert!(result(line, property_get(0x08, false), &[]).await >= 0x0001_0200);
    let controller = read(line, command(0x06, 0, 4_096, &[(10, 0x01)])).await;
    assert_eq!(u64::from(u16::from_le_bytes([controller[78], controller[79]])), id);
    (u16::try_from(id).expect("nothing has to be done first"), controller)
}

async fn detach(line: &Line) {
    result(line, property_set(0x14, 0x0046_4061), &[]).await;
    assert_eq!(result(line, property_get(0x1c, false), &[]).await & 0xc, 0x8);
    line.queue.close();
}

fn log_page(page: u32, nsid: u32, bytes: u32, csi: u32) -> [u8; 64] {
    command(0x02, nsid, bytes, &[(10, (bytes / 4 - 1) << 16 | page), (14, csi << 24)])
}

#[test]
fn linux_finds_the_namespace_and_uses_it() {
    run(async |world| {
        let admin = world.line();
        let (id, controller) = attach(&admin, NQN, 5_000).await;
        assert_eq!(controller[261] & 0b10, 0b10, "then the host asks for the effects");
        read(&admin, log_page(0x05, 0, 4_096, 0)).await;
        let queues = command(0x09, 0, 0, &[(10, 0x07), (11, 0x0001_0001)]);
        assert_eq!(result(&admin, queues, &[]).await, 0x0001_0001);
        let (io, second) = (world.line(), world.line());
        for (queue, line) in [(1, &io), (2, &second)] {
            let bound = result(line, connect(queue, 127, 0), data(NQN, id).as_bytes()).await;
            assert_eq!(bound, id.into());
        }
        assert_eq!(controller[76] & 0b1000, 0b1000, "then the host asks for the way to namespaces");
        read(&admin, log_page(0x0c, 0xffff_ffff, 4_144, 0)).await;
        assert_eq!(controller[92..96], [0, 9, 0, 0], "OAES: then it wants events");
        result(&admin, command(0x09, 0, 0, &[(10, 0x0b), (11, 0x900)]), &[]).await;
        admin.send_bytes(&command(0x0c, 0, 0, &[]), &[]);
        read(&admin, command(0x06, 0, 4_096, &[(10, 0x06)])).await;
        let list = read(&admin, command(0x06, 0, 4_096, &[(10, 0x02)])).await;
        assert_eq!(list[..16], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        let descriptors = read(&admin, command(0x06, KV, 4_096, &[(10, 0x03)])).await;
        assert!(descriptors.windows(5).any(|window| window == [4, 1, 0, 0, 1]));
        let ready = read(&admin, command(0x06, KV, 4_096, &[(10, 0x08)])).await;
        assert_eq!(ready[14] & 1, 1);
        read(&admin, log_page(0x05, 0, 4_096, 1)).await;
        read(&admin, log_page(0x02, 0xffff_ffff, 512, 0)).await;

        passthrough(&io).await;
        result(&admin, command(0x18, 0, 0, &[]), &[]).await;
        io.queue.close();
        second.queue.close();
        detach(&admin).await;
    });
}

/// `nvme io-passthru` of the five commands, on the key "abcd".
async fn passthrough(io: &Line) {
    let about = |opcode, data, dwords: &[(usize, u32)]| {
        let mut bytes = command(opcode, KV, data, &[(2, 0x6463_6261), (11, 4)]);
        for (dword, value) in dwords {
            bytes[4 * dword..4 * dword + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    };
    let mut store = about(0x01, 16, &[(10, 16)]);
    store[39] = 0x01;
    result(io, store, b"sixteen bytes it").await;
    io.send_bytes(&about(0x02, 4_096, &[(10, 4_096)]), &[]);
    let retrieved = io.next().await.expect("the connection is there");
    assert_eq!(retrieved.entry.result(), 16);
    assert_eq!(retrieved.data.bytes(), Some(&b"sixteen bytes it"[..]));
    result(io, about(0x14, 0, &[]), &[]).await;
    let keys = read(io, about(0x06, 4_096, &[(10, 4_096), (2, 0), (11, 0)])).await;
    assert_eq!(keys, b"\x01\0\0\0\x04\0abcd\0\0");
    result(io, about(0x10, 0, &[]), &[]).await;
    io.send_bytes(&about(0x14, 0, &[]), &[]);
    let missing = io.next().await.expect("the connection is there").entry;
    // What the passthrough returns: the status field without its phase bit.
    let bytes: [u8; 16] = zerocopy::transmute!(missing);
    assert_eq!(u16::from_le_bytes([bytes[14], bytes[15]]) >> 1, 0x4087);
}

#[test]
fn linux_discovers_the_subsystem() {
    run(async |world| {
        let line = world.line();
        attach(&line, QualifiedName::DISCOVERY, 0).await;
        result(&line, command(0x09, 0, 0, &[(10, 0x0b), (11, 0x8000_0000)]), &[]).await;
        line.send_bytes(&command(0x0c, 0, 0, &[]), &[]);
        let controller = read(&line, command(0x06, 0, 4_096, &[(10, 0x01)])).await;
        assert_eq!(controller[111], 2);
        let mut header = log_page(0x70, 0, 1_024, 0);
        header[41] |= 0x80;
        assert_eq!(read(&line, header).await[8], 1);
        let whole = read(&line, log_page(0x70, 0, 2_048, 0)).await;
        assert!(whole[1_024 + 256..].starts_with(NQN.as_bytes()));
        detach(&line).await;
    });
}

#[test]
fn nvme_cli_and_xnvme_ask_again_and_for_more() {
    run(async |world| {
        let line = world.line();
        attach(&line, NQN, 5_000).await;
        let blocks = read(&line, command(0x06, KV, 4_096, &[(10, 0x00)])).await;
        assert_ne!(blocks[..8], [0; 8]);
        // xNVMe goes through command sets that it may meet: each has to fail or succeed cleanly.
        for (cns, csi, succeeds) in [
            (0x06, 0x02, true),
            (0x06, 0x1f, false),
            (0x06, 0x00, true),
            (0x05, 0x02, false),
            (0x05, 0x00, false),
        ] {
            let identify = command(0x06, KV, 4_096, &[(10, cns), (11, csi << 24)]);
            line.send_bytes(&identify, &[]);
            let status = line.next().await.unwrap().entry.status();
            let expected = if succeeds { Status::SUCCESS } else { Status::INVALID_FIELD };
            assert_eq!(status, expected, "CNS {cns:x} CSI {csi:x}");
        }
    });
}
