//! What the built-in drives of blocks and zones take for one command follows from the numbers of
//! their profiles.

use crate::device::machine::on;
use crate::device::namespaces::Host;
use base::Buf;
use base::limits::BLOCK_BYTES;
use node::Profile;
use node::profile::{Link, Nand};
use spec::Command;

/// Nanoseconds of `len` bytes over the link.
fn over(link: &Link, len: u32) -> u64 {
    link.transfer.0 + (u64::from(len) * 1_000_000_000).div_ceil(link.bytes_per_second)
}

/// Nanoseconds of `len` bytes over a bus.
fn on_bus(nand: &Nand, len: u32) -> u64 {
    (u64::from(len) * 1_000_000_000).div_ceil(nand.channel_bytes_per_second)
}

fn data(blocks: u32) -> Buf {
    Buf::phantom(blocks * BLOCK_BYTES, 1)
}

/// FEMU section 3.2.3 and its table: 48 us of a lower page, 64 us of an upper one, and 52.433 us
/// for any of it over the channel. Of a block the pages 7 and 10 are upper ones.
#[test]
fn a_read_of_cnex_oc_takes_what_its_page_takes() {
    on(&Profile::load("cnex-oc").unwrap(), async |device| {
        let host = Host::new(device, 1);
        for page in 0..13 {
            host.write(2_048 + 4 * page, data(4)).await;
        }
        device.flush().await.expect("nothing is damaged");
        for page in 0..13 {
            let level = if [7, 10].contains(&page) { 64_000 } else { 48_000 };
            let read = host.read(2_048 + 4 * page + 1, 1).await;
            assert_eq!(read.latency().0, level + 52_433, "page {page}");
        }
    });
}

#[test]
fn one_command_at_a_time_takes_970pro_what_its_parts_take() {
    let profile = Profile::load("970pro").unwrap();
    let Profile { nand, link, .. } = &profile;
    on(&profile, async |device| {
        let host = Host::new(device, 1);
        let written = host.write(7, data(1)).await.latency().0;
        assert_eq!(written, over(link, BLOCK_BYTES) + 4_460);
        device.flush().await.expect("nothing is damaged");
        // The first page of a block is a lower one.
        let read = host.read(7, 1).await.latency().0;
        let parts = 21_500 + 29_760 + on_bus(nand, BLOCK_BYTES) + over(link, BLOCK_BYTES);
        assert_eq!(read, parts);
    });
}

#[test]
fn one_command_at_a_time_takes_zn540_what_its_parts_take() {
    let profile = Profile::load("zn540").unwrap();
    let Profile { nand, link, .. } = &profile;
    on(&profile, async |device| {
        let shape = device.zones(1).expect("it is zoned").shape();
        // 2048 MiB of addresses and 1077 MiB in them.
        assert_eq!((shape.zone_blocks, shape.zone_capacity), (524_288, 275_712));
        assert_eq!(shape.zones, 904);
        let host = Host::new(device, 1);
        let append = Command::zone_append(1, 524_288, 8);
        let appended = host.done(append, data(8)).await;
        assert_eq!(appended.result, 524_288);
        assert_eq!(appended.latency().0, over(link, 8 * BLOCK_BYTES) + 6_200);
        device.flush().await.expect("nothing is damaged");
        let read = host.read(524_288 + 3, 1).await.latency().0;
        let parts = 20_000 + 50_000 + on_bus(nand, BLOCK_BYTES) + over(link, BLOCK_BYTES);
        assert_eq!(read, parts);
    });
}
