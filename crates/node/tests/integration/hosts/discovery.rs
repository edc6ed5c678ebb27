//! `nvme discover` of Linux.

use crate::hosts::attach::{Host, settle};
use crate::hosts::entry::Entry;
use crate::hosts::linux::Linux;
use crate::hosts::world::{ADDRESS, NQN as SUBSYSTEM, PORT, World};

/// The well-known name (Base 2.1, NVMe Qualified Names).
pub(crate) const NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Connects without a keep alive time, reads the log page, and leaves.
pub(crate) async fn session(world: &World, linux: Linux) {
    let mut host = Host::attach(world, linux, NQN, 0).await;
    host.want_events(0x8000_0000).await;
    host.admin.ask("nvme-cli's Identify controller", Entry::identify(0x01, 0)).await.whole();
    let header = Entry::log_page(0x70, 0, 1_024).retains_event();
    let header = host.admin.ask("discovery log, header", header).await.whole();
    let header = header.needs("NUMREC", |answer| answer.u64(8) == 1, "There is nothing to show");
    let whole = Entry::log_page(0x70, 0, 2_048);
    let log = host.admin.ask("discovery log, whole", whole).await.whole();
    let log = log.needs(
        "GENCTR",
        |answer| answer.u64(0) == header.u64(0),
        "It reads the log again until the counter stands still",
    );
    let entry = &log.data[1_024..];
    assert_eq!(entry[..3], [3, 1, 2], "TRTYPE TCP, ADRFAM IPv4, SUBTYPE NVM");
    assert_eq!(&entry[32..38], b"4420  ", "TRSVCID, with spaces behind it");
    assert_eq!(PORT, 4420);
    assert_eq!(entry[256..256 + SUBSYSTEM.len()], *SUBSYSTEM.as_bytes(), "SUBNQN");
    assert_eq!(entry[512..512 + ADDRESS.len()], *ADDRESS.as_bytes(), "TRADDR");
    host.detach(world).await;
    settle(world).await;
}
