//! What the built-in devices do follows from the numbers of their profiles, and is near what was
//! published of them. Figures over all sizes and depths are in `docs/guide/devices.md`.

use crate::device::host::{Host, ROOM, key, retrieve, store};
use crate::device::machine::on;
use base::{Buf, Nanos};
use controller::Submission;
use node::Profile;
use node::profile::{Handlers, Link, Nand};

const LIGHTSTORE_PAGE: u32 = 8_192;

fn value(len: u32) -> Buf {
    Buf::phantom(len, u64::from(len))
}

/// Nanoseconds of a value over the link.
fn over(link: &Link, len: u32) -> u64 {
    link.transfer.0 + (u64::from(len) * 1_000_000_000).div_ceil(link.bytes_per_second)
}

/// Nanoseconds of `len` bytes over a bus.
fn on_bus(nand: &Nand, len: u32) -> u64 {
    (u64::from(len) * 1_000_000_000).div_ceil(nand.channel_bytes_per_second)
}

/// Nanoseconds of `len` bytes where a KiB takes `kib`.
fn for_bytes(kib: Nanos, len: u32) -> u64 {
    kib.0 * u64::from(len) / 1_024
}

/// Checks that `ours` is at most `percent` of `published` away from it.
fn assert_near(what: &str, ours: u64, published: u64, percent: u64) {
    let off = ours.abs_diff(published) * 100;
    assert!(off <= published * percent, "{what}: {ours}, published {published}");
}

/// Checks to 1 % that `units`, working side by side, each take `time` nanoseconds for one of
/// `count` submissions, with `depth` of them outstanding. The first and the last tenth are not
/// looked at: units are idle there. Stores write summaries besides, less than 1 %.
async fn assert_rate(
    what: &str,
    host: &Host,
    submissions: impl Iterator<Item = Submission>,
    (depth, count): (usize, usize),
    (units, time): (u32, u64),
) {
    let all = host.all(submissions.take(count), depth).await;
    assert!(all.iter().all(|completion| completion.status.is_success()));
    let (first, last) = (count / 10, count - count / 10);
    let span = (all[last].completed - all[first].completed).0 * u64::from(units);
    let expected = time * (last - first) as u64;
    assert!(span.abs_diff(expected) * 100 < expected, "{what}: {span} ns and not {expected} ns");
}

#[test]
fn one_page_at_a_time_takes_lightstore_as_long_as_the_paper_measured() {
    let profile = Profile::load("lightstore").unwrap();
    let Profile { nand, link, firmware, .. } = &profile;
    let (link, bus) = (over(link, LIGHTSTORE_PAGE), on_bus(nand, LIGHTSTORE_PAGE));
    on(&profile, async |device| {
        let host = Host::new(device);
        let stored = host.store(&key(1, 16), &value(LIGHTSTORE_PAGE)).await.latency().0;
        assert_eq!(stored, link + firmware.t_write.0 + bus + nand.levels.program[0].0);
        assert_near("store", stored, 480_000, 1);
        let retrieved = host.retrieve(&key(1, 16)).await.latency().0;
        assert_eq!(retrieved, firmware.t_read.0 + nand.levels.read[0].0 + bus + link);
        assert_near("retrieve", retrieved, 120_000, 1);
    });
}

/// Each die takes a page in the time of its transfer and its program. The paper has 55 k writes a
/// second at random and 430 MB/s in sequence, which differ by 5 %.
#[test]
fn lightstore_stores_as_fast_as_its_dies_program() {
    let profile = Profile::load("lightstore").unwrap();
    let nand = &profile.nand;
    let page = on_bus(nand, LIGHTSTORE_PAGE) + nand.levels.program[0].0;
    on(&profile, async |device| {
        let host = Host::new(device);
        let stores = (0..).map(|number| store(&key(number, 16), &value(LIGHTSTORE_PAGE)));
        assert_rate("stores", &host, stores, (128, 24_000), (nand.dies(), page)).await;
    });
    let rate = u64::from(nand.dies()) * 1_000_000_000 / page;
    assert_near("writes a second", rate, 55_000, 10);
    assert_near("MB/s", rate * u64::from(LIGHTSTORE_PAGE) / 1_000_000, 430, 5);
}

/// Pages that follow each other lie on all buses in turn, and keep each of them busy.
#[test]
fn lightstore_retrieves_in_order_as_fast_as_its_buses() {
    let profile = Profile::load("lightstore").unwrap();
    let nand = &profile.nand;
    let page = on_bus(nand, LIGHTSTORE_PAGE);
    on(&profile, async |device| {
        let host = Host::new(device);
        let stores = (0..2_400).map(|number| store(&key(number, 16), &value(LIGHTSTORE_PAGE)));
        host.all(stores, 128).await;
        let retrieves = (0..2_400).cycle().map(|number| retrieve(&key(number, 16), ROOM));
        assert_rate("retrieves", &host, retrieves, (128, 24_000), (nand.channels, page)).await;
    });
    let rate = u64::from(nand.channels) * 1_000_000_000 / page;
    assert_near("reads a second", rate, 150_000, 5);
    assert_near("MB/s", rate * u64::from(LIGHTSTORE_PAGE) / 1_000_000, 1_200, 1);
}

/// The block drive's data sheet has 50 us for a random write and 85 us for a random read of 4 KB.
#[test]
fn one_value_at_a_time_takes_pm983_kv_as_long_as_its_data_sheet_says() {
    let profile = Profile::load("pm983-kv").unwrap();
    let Profile { nand, link, firmware, .. } = &profile;
    on(&profile, async |device| {
        let host = Host::new(device);
        // Formatting left a record in the first page, beside which there is no room for a header.
        host.store(&key(0, 16), &value(4_096)).await;
        device.store().flush().await.expect("nothing is damaged");
        let stored = host.store(&key(1, 16), &value(4_096)).await.latency().0;
        let handled = firmware.t_write.0 + for_bytes(firmware.t_write_kib, 4_096);
        assert_eq!(stored, over(link, 4_096) + handled);
        assert_near("store", stored, 50_000, 10);
        device.store().flush().await.expect("nothing is damaged");
        let retrieved = host.retrieve(&key(1, 16)).await.latency().0;
        let flash = nand.levels.read[0].0 + on_bus(nand, 4_096);
        let handled = firmware.t_read.0 + for_bytes(firmware.t_read_kib, 4_096);
        assert_eq!(retrieved, handled + flash + over(link, 4_096));
        assert_near("retrieve", retrieved, 85_000, 10);
    });
}

/// Handlers bind all but inserts of 8 KB, which the programs of a page for each bind.
#[test]
fn pm983_kv_is_as_fast_as_the_part_that_binds_it() {
    let profile = Profile::load("pm983-kv").unwrap();
    let Profile { nand, firmware, .. } = &profile;
    let Handlers::Count(handlers) = firmware.handlers else { panic!("they are few") };
    let page = on_bus(nand, nand.page_bytes) + nand.levels.program[0].0;
    for (len, inserts, reads, updates) in
        [(1_024, 131_400, 142_500, 85_700), (8_192, 76_300, 103_300, 60_100)]
    {
        let stored = firmware.t_write.0 + for_bytes(firmware.t_write_kib, len);
        let read = (handlers, firmware.t_read.0 + for_bytes(firmware.t_read_kib, len));
        let updated = (handlers, stored + firmware.t_update.0);
        let inserted = if len == 8_192 { (nand.dies(), page) } else { (handlers, stored) };
        on(&profile, async |device| {
            let host = Host::new(device);
            let what = |of: &str| format!("{of} of {len} bytes");
            let store = |number| store(&key(number, 16), &value(len));
            // A buffer of values is full after these.
            host.all((0..16_000).map(store), 64).await;
            assert_rate(&what("inserts"), &host, (16_000..).map(store), (64, 16_000), inserted)
                .await;
            device.store().flush().await.expect("nothing is damaged");
            let retrieves = (0..16_000).cycle().map(|number| retrieve(&key(number, 16), ROOM));
            assert_rate(&what("reads"), &host, retrieves, (64, 16_000), read).await;
            let updates = (0..16_000).cycle().map(store);
            assert_rate(&what("updates"), &host, updates, (64, 16_000), updated).await;
        });
        for (of, (units, time), published) in
            [("inserts", inserted, inserts), ("reads", read, reads), ("updates", updated, updates)]
        {
            assert_near(of, u64::from(units) * 1_000_000_000 / time, published, 10);
        }
    }
}

/// Beyond the sizes that its numbers were fitted to.
#[test]
fn pm983_kv_stores_28_kb_about_as_fast_as_was_published() {
    let profile = Profile::load("pm983-kv").unwrap();
    let firmware = &profile.firmware;
    let Handlers::Count(handlers) = firmware.handlers else { panic!("they are few") };
    let time = firmware.t_write.0 + for_bytes(firmware.t_write_kib, 28 * 1_024);
    on(&profile, async |device| {
        let host = Host::new(device);
        let stores = (0..).map(|number| store(&key(number, 16), &value(28 * 1_024)));
        assert_rate("28 KB", &host, stores, (64, 16_000), (handlers, time)).await;
    });
    assert_near("puts a second", u64::from(handlers) * 1_000_000_000 / time, 39_000, 10);
}
