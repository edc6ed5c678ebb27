//! Times that follow from a profile by a formula.

use crate::device::host::{Host, ROOM, delete, exist, key, list, retrieve, store};
use crate::device::machine::{changed, moke, on};
use base::{Buf, Key, Nanos};
use clock::Stage;
use controller::{Completion, Submission};
use node::Profile;
use node::profile::Handlers;
use spec::Status;

const PAGE: u32 = 16_384;

/// The times of a profile, under the names that the formulas use.
#[derive(Clone, Copy)]
struct Times {
    read: u64,
    program: u64,
    t_read: u64,
    t_write: u64,
    t_delete: u64,
    t_exist: u64,
    transfer: u64,
    link: u64,
    channel: u64,
    channels: u32,
    dies: u32,
}

impl Times {
    fn of(profile: &Profile) -> Self {
        let Profile { nand, link, firmware, .. } = profile;
        Self {
            read: nand.levels.read[0].0,
            program: nand.levels.program[0].0,
            t_read: firmware.t_read.0,
            t_write: firmware.t_write.0,
            t_delete: firmware.t_delete.0,
            t_exist: firmware.t_exist.0,
            transfer: link.transfer.0,
            link: link.bytes_per_second,
            channel: nand.channel_bytes_per_second,
            channels: nand.channels,
            dies: nand.dies(),
        }
    }

    /// Nanoseconds of a transfer of `bytes` over the link.
    fn link(&self, bytes: u32) -> u64 {
        self.transfer + at_rate(bytes, self.link)
    }

    /// Nanoseconds of a transfer of `bytes` over a channel.
    fn channel(&self, bytes: u32) -> u64 {
        at_rate(bytes, self.channel)
    }
}

/// Nanoseconds that `bytes` take, rounded up; no limit takes none.
fn at_rate(bytes: u32, bytes_per_second: u64) -> u64 {
    match bytes_per_second {
        0 => 0,
        rate => (u64::from(bytes) * 1_000_000_000).div_ceil(rate),
    }
}

fn value(len: u32) -> Buf {
    Buf::phantom(len, u64::from(len))
}

/// Checks a command's status, its latency and each of its stages; those not named took nothing.
fn assert_spent(what: &str, completion: &Completion, status: Status, spent: &[(Stage, u64)]) {
    assert_eq!(completion.status, status, "{what}");
    for stage in Stage::ALL {
        let expected =
            spent.iter().filter(|(named, _)| *named == stage).map(|(_, time)| time).sum();
        assert_eq!(completion.stages[stage], Nanos(expected), "{} of {what}", stage.name());
    }
    assert_eq!(completion.latency().0, spent.iter().map(|(_, time)| time).sum::<u64>(), "{what}");
}

/// Checks to 0.1 % that while `depth` of `submissions`, which never end, are outstanding,
/// `completions` of them come in each `time` nanoseconds. Looks at `count` of them.
async fn assert_pace(
    what: &str,
    host: &Host,
    submissions: impl Iterator<Item = Submission>,
    (depth, count): (usize, usize),
    (completions, time): (u32, u64),
) {
    // Warm-up rounds until the rate is steady, and a last round without successors.
    let steady = 10 * depth;
    let all = host.all(submissions.take(steady + count + depth), depth).await;
    assert!(all.iter().all(|completion| completion.status.is_success()));
    let span = all[steady + count - 1].completed - all[steady - 1].completed;
    let (span, expected) = (span.0 * u64::from(completions), time * count as u64);
    assert!(span.abs_diff(expected) * 1_000 < expected, "{what}: {span} ns and not {expected} ns");
}

#[test]
fn a_retrieve_senses_its_page_and_moves_its_value() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        for (number, len) in (0..).zip([0, 1, 17, 100, 4_096, 10_000, PAGE]) {
            host.store(&key(number, 16), &value(len)).await;
            let moved = if len == 0 { 0 } else { t.link(len) };
            let spent = [
                (Stage::Index, t.t_read),
                (Stage::Array, t.read),
                (Stage::Channel, t.channel(len)),
                (Stage::Link, moved),
            ];
            let retrieved = host.retrieve(&key(number, 16)).await;
            assert_spent(&format!("{len} bytes"), &retrieved, Status::SUCCESS, &spent);
            assert_eq!((retrieved.result, retrieved.data.checksum()), (len.into(), u64::from(len)));
        }
    });
}

#[test]
fn a_retrieve_into_a_small_buffer_moves_that_much_over_the_link() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        host.store(&key(1, 16), &value(4_096)).await;
        let retrieved = host.one(retrieve(&key(1, 16), 100)).await;
        let spent = [
            (Stage::Index, t.t_read),
            (Stage::Array, t.read),
            (Stage::Channel, t.channel(4_096)),
            (Stage::Link, t.link(100)),
        ];
        assert_spent("100 bytes of 4096", &retrieved, Status::SUCCESS, &spent);
        assert_eq!((retrieved.result, retrieved.data.len()), (4_096, 100));
    });
}

/// A value of several pages: its first page tells that there are more, which are then read side by
/// side. Neighbouring pages lie on neighbouring channels. Up to one page on each die, all are
/// sensed at once; each channel then moves its pages one after the other, the last page, which may
/// be short, after the others of its channel.
#[test]
fn the_pages_of_a_long_value_are_read_side_by_side() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        let lens = [PAGE + 1, 40_000, 9 * PAGE, 10 * PAGE, 20 * PAGE + 5_000, 64 * PAGE];
        for (number, len) in (0..).zip(lens) {
            host.store(&key(number, 16), &value(len)).await;
            let rest = len - PAGE;
            let mut channels = vec![0; t.channels as usize];
            for page in 0..rest.div_ceil(PAGE) {
                channels[(page % t.channels) as usize] += t.channel(PAGE.min(rest - page * PAGE));
            }
            let busiest = channels.into_iter().max().expect("there are channels");
            let own = t.channel(PAGE.min(rest));
            let spent = [
                (Stage::Index, t.t_read),
                (Stage::Array, t.read + t.read),
                (Stage::Channel, t.channel(PAGE) + own),
                (Stage::Queue, busiest - own),
                (Stage::Link, t.link(len)),
            ];
            let retrieved = host.retrieve(&key(number, 16)).await;
            assert_spent(&format!("{len} bytes"), &retrieved, Status::SUCCESS, &spent);
            assert_eq!((retrieved.result, retrieved.data.checksum()), (len.into(), u64::from(len)));
        }
    });
}

/// 128 pages on 64 dies: of the 127 that follow the first page, most channels have 16, two on each
/// of 8 dies with one register. A die's second sense takes 45 us, while its channel is busy for 8 *
/// 20 us with the first round: once it has begun, a channel stands still no more.
#[test]
fn a_value_of_2_mib_keeps_its_channels_busy() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        let len = 128 * PAGE;
        let page = t.channel(PAGE);
        assert!(t.read < 7 * page, "what the formula assumes");
        let stored = host.store(&key(1, 16), &value(len)).await;
        // Programs take longer than a round of transfers: the last die of a channel gets its first
        // page after the 7 others, and its second when it has programmed that.
        assert!(t.program > 7 * page, "what the formula assumes");
        let latency = t.link(len) + t.t_write + 8 * page + t.program + page + t.program;
        assert_eq!(stored.latency().0, latency);
        let spent = [Stage::Channel, Stage::Array].map(|stage| stored.stages[stage].0);
        assert_eq!(spent, [page, t.program], "the last page's own");
        assert_eq!(stored.stages[Stage::Queue].0, 7 * page + page + t.program);

        let retrieved = host.retrieve(&key(1, 16)).await;
        let first = t.read + page;
        let latency = t.t_read + first + t.read + 16 * page + t.link(len);
        assert_eq!(retrieved.latency().0, latency);
        assert_eq!(retrieved.stages[Stage::Link].0, t.link(len));
        assert_eq!(retrieved.stages[Stage::Array].0, 2 * t.read);
    });
}

#[test]
fn a_store_fetches_its_value_and_programs_a_page() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        for (number, len) in (0..).zip([0, 1, 100, 4_096, PAGE]) {
            let moved = if len == 0 { 0 } else { t.link(len) };
            let spent = [
                (Stage::Link, moved),
                (Stage::Index, t.t_write),
                (Stage::Channel, t.channel(PAGE)),
                (Stage::Array, t.program),
            ];
            let stored = host.store(&key(number, 16), &value(len)).await;
            assert_spent(&format!("{len} bytes"), &stored, Status::SUCCESS, &spent);
        }
    });
}

/// The index holds no keys, so an overwrite senses the old record's page, whose spare bytes tell.
#[test]
fn an_overwrite_senses_the_old_record_first() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        host.store(&key(1, 16), &value(100)).await;
        let stored = host.store(&key(1, 16), &value(200)).await;
        let spent = [
            (Stage::Link, t.link(200)),
            (Stage::Index, t.t_write),
            (Stage::Array, t.read + t.program),
            (Stage::Channel, t.channel(PAGE)),
        ];
        assert_spent("overwrite", &stored, Status::SUCCESS, &spent);
    });
}

#[test]
fn the_pages_of_a_long_value_are_programmed_side_by_side() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        for (number, len) in (0..).zip([PAGE + 1, 8 * PAGE, 8 * PAGE + 1, 64 * PAGE - 1]) {
            // Whole pages are programmed, so the busiest channel decides.
            let on_a_channel = len.div_ceil(PAGE).div_ceil(t.channels);
            let spent = [
                (Stage::Link, t.link(len)),
                (Stage::Index, t.t_write),
                (Stage::Queue, u64::from(on_a_channel - 1) * t.channel(PAGE)),
                (Stage::Channel, t.channel(PAGE)),
                (Stage::Array, t.program),
            ];
            let stored = host.store(&key(number, 16), &value(len)).await;
            assert_spent(&format!("{len} bytes"), &stored, Status::SUCCESS, &spent);
        }
    });
}

/// A KiB and its parts cost their share, and what is overwritten is known only once it is found.
#[test]
fn bytes_and_overwriting_take_the_handler_for_longer() {
    let mut profile = moke(&[]);
    profile.firmware.t_update = Nanos(9_000);
    profile.firmware.t_write_kib = Nanos(2_000);
    profile.firmware.t_read_kib = Nanos(500);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        for (number, len, of_store, of_retrieve) in
            [(1, 0, 0, 0), (2, 64, 125, 31), (3, 4_096, 8_000, 2_000), (4, 1_536, 3_000, 750)]
        {
            let key = key(number, 16);
            let programmed = [(Stage::Channel, t.channel(PAGE)), (Stage::Array, t.program)];
            let link = (Stage::Link, if len == 0 { 0 } else { t.link(len) });
            let new = [link, (Stage::Index, t.t_write + of_store)];
            let stored = host.store(&key, &value(len)).await;
            let what = format!("{len} bytes");
            assert_spent(&what, &stored, Status::SUCCESS, &[&new[..], &programmed].concat());
            let over = [link, (Stage::Index, t.t_write + of_store + 9_000), (Stage::Array, t.read)];
            let stored = host.store(&key, &value(len)).await;
            assert_spent(&what, &stored, Status::SUCCESS, &[&over[..], &programmed].concat());
            let spent = [
                (Stage::Index, t.t_read + of_retrieve),
                (Stage::Array, t.read),
                (Stage::Channel, t.channel(len)),
                link,
            ];
            let retrieved = host.retrieve(&key).await;
            assert_spent(&what, &retrieved, Status::SUCCESS, &spent);
        }
        let short = host.one(retrieve(&key(3, 16), 1_024)).await;
        assert_eq!(short.stages[Stage::Index], Nanos(t.t_read + 500), "what the host has room for");
    });
}

#[test]
fn a_delete_looks_its_key_up_and_programs_a_tombstone() {
    let profile = moke(&[("t_delete_us", "5.1")]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        host.store(&key(1, 16), &value(100)).await;
        let spent = [
            (Stage::Index, t.t_delete),
            (Stage::Array, t.read + t.program),
            (Stage::Channel, t.channel(PAGE)),
        ];
        let deleted = host.delete(&key(1, 16)).await;
        assert_spent("delete", &deleted, Status::SUCCESS, &spent);
        let nothing = host.delete(&key(1, 16)).await;
        assert_spent("nothing to delete", &nothing, Status::SUCCESS, &[(Stage::Index, t.t_delete)]);
    });
}

#[test]
fn an_exist_senses_a_page_and_moves_none_of_it() {
    let profile = moke(&[("t_exist_us", "3.3")]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        host.store(&key(1, 16), &value(10_000)).await;
        let spent = [(Stage::Index, t.t_exist), (Stage::Array, t.read)];
        let there = host.exist(&key(1, 16)).await;
        assert_spent("exist", &there, Status::SUCCESS, &spent);
        let absent = host.exist(&key(2, 16)).await;
        let spent = [(Stage::Index, t.t_exist)];
        assert_spent("no such key", &absent, Status::KEY_DOES_NOT_EXIST, &spent);
        let absent = host.retrieve(&key(2, 16)).await;
        let spent = [(Stage::Index, t.t_read)];
        assert_spent("no such value", &absent, Status::KEY_DOES_NOT_EXIST, &spent);
    });
}

/// A list of `n` keys of 16 bytes: a count of 4 bytes, and for each key 2 bytes of length, the key,
/// and 2 bytes of padding. The records lie on pages of their own: their headers are sensed side by
/// side.
#[test]
fn a_list_senses_headers_side_by_side_and_moves_keys() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        let empty = host.one(list(None, ROOM)).await;
        let spent = [(Stage::Index, t.t_read), (Stage::Link, t.link(4))];
        assert_spent("empty", &empty, Status::SUCCESS, &spent);
        for number in 0..10 {
            host.store(&key(number, 16), &value(100)).await;
        }
        let all = host.one(list(None, ROOM)).await;
        assert_eq!(all.stages[Stage::Index].0, t.t_read);
        assert_eq!(all.stages[Stage::Link].0, t.link(4 + 10 * 20));
        assert_eq!(all.stages[Stage::Channel].0, 0, "headers are in the spare area");
        assert_eq!(all.stages[Stage::Array].0 % t.read, 0);
        assert!(all.latency().0 <= t.t_read + 2 * t.read + t.link(204), "{:?}", all.latency());
    });
}

#[test]
fn a_key_over_16_bytes_is_one_more_transfer() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        for (number, len) in (0_u64..).zip([16, 17, 64, 255]) {
            let extra = if len == 16 { 0 } else { t.transfer };
            let key = key(number, len);
            let stored = host.store(&key, &value(100)).await;
            let spent = [
                (Stage::Link, t.link(100) + extra),
                (Stage::Index, t.t_write),
                (Stage::Channel, t.channel(PAGE)),
                (Stage::Array, t.program),
            ];
            assert_spent("store", &stored, Status::SUCCESS, &spent);
            let retrieved = host.retrieve(&key).await;
            let spent = [
                (Stage::Link, t.link(100) + extra),
                (Stage::Index, t.t_read),
                (Stage::Channel, t.channel(100)),
                (Stage::Array, t.read),
            ];
            assert_spent("retrieve", &retrieved, Status::SUCCESS, &spent);
            let there = host.exist(&key).await;
            let spent = [(Stage::Link, extra), (Stage::Index, t.t_exist), (Stage::Array, t.read)];
            assert_spent("exist", &there, Status::SUCCESS, &spent);
            let deleted = host.delete(&key).await;
            let spent = [
                (Stage::Link, extra),
                (Stage::Index, t.t_delete),
                (Stage::Channel, t.channel(PAGE)),
                (Stage::Array, t.read + t.program),
            ];
            assert_spent("delete", &deleted, Status::SUCCESS, &spent);
        }
    });
}

/// `count` keys of `len` bytes, each on a page of its own, pages on all dies in turn.
async fn spread(host: &Host, count: u64, len: usize, value: &Buf) -> Vec<Key> {
    let keys: Vec<Key> = (0..count).map(|number| key(number, len)).collect();
    for key in &keys {
        assert!(host.store(key, value).await.status.is_success());
    }
    keys
}

/// Commands on `keys` in turn, without end.
fn in_turn<'a>(
    keys: &'a [Key],
    command: impl Fn(&Key) -> Submission + 'a,
) -> impl Iterator<Item = Submission> + 'a {
    keys.iter().cycle().map(command)
}

fn retrieve_all(key: &Key) -> Submission {
    retrieve(key, ROOM)
}

/// The handler waits for the transfer of a long key, so that is part of each request's turn.
#[test]
fn one_handler_serves_a_request_in_its_index_time_and_its_keys_transfer() {
    let profile = moke(&[("t_exist_us", "3")]);
    let t = Times::of(&profile);
    for len in [16, 17, 200] {
        let transfer = if len == 16 { 0 } else { t.transfer };
        on(&profile, async |device| {
            let host = Host::new(device);
            let keys = spread(&host, 128, len, &value(100)).await;
            let turn = t.t_read + transfer;
            let retrieves = in_turn(&keys, retrieve_all);
            assert_pace("retrieve", &host, retrieves, (64, 2_000), (1, turn)).await;
            let turn = t.t_exist + transfer;
            let exists = in_turn(&keys, exist);
            assert_pace("exist", &host, exists, (64, 2_000), (1, turn)).await;
            let exists = host.all(in_turn(&keys, exist).take(1_000), 64).await;
            // 64 turns pass from one submission in its place to the next.
            let last = &exists[900];
            let spent = [
                (Stage::Handler, 63 * turn - t.read),
                (Stage::Link, transfer),
                (Stage::Index, t.t_exist),
                (Stage::Array, t.read),
            ];
            assert_spent("exist in turn", last, Status::SUCCESS, &spent);
        });
    }
}

#[test]
fn several_handlers_serve_as_many_requests_at_a_time() {
    for handlers in [2, 3, 7] {
        let text = handlers.to_string();
        let profile = moke(&[("handlers", &text), ("t_exist_us", "10")]);
        assert_eq!(profile.firmware.handlers, Handlers::Count(handlers));
        let t = Times::of(&profile);
        on(&profile, async |device| {
            let host = Host::new(device);
            let keys = spread(&host, 128, 16, &value(100)).await;
            let whole_rounds = (64, 2 * 3 * 7 * 100);
            assert_pace(&text, &host, in_turn(&keys, exist), whole_rounds, (handlers, t.t_exist))
                .await;
        });
    }
}

#[test]
fn unlimited_handlers_never_make_a_request_wait() {
    let profile = moke(&[("handlers", "\"unlimited\""), ("transfer_us", "0"), ("mb_per_s", "0")]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        // Extents begin on die 0: 64 keys in turn lie on 64 dies.
        let keys = spread(&host, 64, 16, &value(0)).await;
        for retrieved in host.all(in_turn(&keys, retrieve_all).take(2_000), 64).await {
            let spent = [(Stage::Index, t.t_read), (Stage::Array, t.read)];
            assert_spent("one of 64", &retrieved, Status::SUCCESS, &spent);
        }
    });
}

/// 2 MiB in 656 us over the link; the flash would do it in 328 us.
#[test]
fn large_values_saturate_the_link() {
    let profile = moke(&[]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        let keys = spread(&host, 16, 16, &value(ROOM)).await;
        let retrieves = in_turn(&keys, retrieve_all);
        assert_pace("2 MiB", &host, retrieves, (8, 200), (1, t.link(ROOM))).await;
    });
}

/// Small values at unlimited handlers are bound by what each transfer costs.
#[test]
fn small_values_are_bound_by_the_cost_of_a_transfer() {
    let profile = moke(&[("handlers", "\"unlimited\""), ("transfer_us", "2")]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        let keys = spread(&host, 64, 16, &value(100)).await;
        let retrieves = in_turn(&keys, retrieve_all);
        assert_pace("100 bytes", &host, retrieves, (64, 2_000), (1, t.link(100))).await;
    });
}

#[test]
fn an_ideal_device_takes_no_time() {
    let profile = changed("ideal", &[]);
    on(&profile, async |device| {
        let host = Host::new(device);
        for len in [0, 100, PAGE, ROOM] {
            let key = key(u64::from(len), 40);
            let commands = [
                store(&key, &value(len)),
                retrieve(&key, ROOM),
                exist(&key),
                list(None, ROOM),
                store(&key, &value(1)),
                delete(&key),
            ];
            for command in commands {
                let completion = host.one(command).await;
                assert_spent(&format!("{len}"), &completion, Status::SUCCESS, &[]);
            }
        }
        assert_eq!(clock::now(), Nanos::ZERO);
    });
}

/// Latencies of a store, a retrieve, an exist and a delete, one at a time.
fn latencies(profile: &Profile) -> [u64; 4] {
    on(profile, async |device| {
        let host = Host::new(device);
        let key = key(1, 30);
        let commands =
            [store(&key, &value(3_000)), retrieve(&key, ROOM), exist(&key), delete(&key)];
        let mut latencies = [0; 4];
        for (latency, command) in latencies.iter_mut().zip(commands) {
            let completion = host.one(command).await;
            assert_eq!(completion.status, Status::SUCCESS);
            *latency = completion.latency().0;
        }
        latencies
    })
}

#[test]
fn each_firmware_cost_shifts_its_own_command_and_no_other() {
    let base = [("t_read_us", "1"), ("t_write_us", "1"), ("t_delete_us", "1"), ("t_exist_us", "1")];
    let before = latencies(&moke(&base));
    for (command, name) in
        ["t_write_us", "t_read_us", "t_exist_us", "t_delete_us"].iter().enumerate()
    {
        for (micros, more) in [("0", -1_000), ("1.7", 700), ("123.456", 122_456)] {
            let changes = base.map(|(key, old)| (key, if key == *name { micros } else { old }));
            let mut expected = before;
            expected[command] = expected[command].checked_add_signed(more).unwrap();
            assert_eq!(latencies(&moke(&changes)), expected, "{name} = {micros}");
        }
    }
}

/// Parsing, one lookup and posting, each on a core.
#[test]
fn code_on_a_core_adds_to_every_command() {
    let costs = [("parse_ns", 210), ("probe_ns", 1_030), ("complete_ns", 57)];
    let before = latencies(&moke(&[]));
    for (key, cost) in costs {
        let text = cost.to_string();
        let after = latencies(&moke(&[(key, &text)]));
        assert_eq!(after, before.map(|latency| latency + cost), "{key}");
    }
    let texts = costs.map(|(key, cost)| (key, cost.to_string()));
    let changes = [0, 1, 2].map(|at: usize| (texts[at].0, texts[at].1.as_str()));
    let profile = moke(&changes);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        host.store(&key(1, 16), &value(100)).await;
        let spent =
            [(Stage::Core, 210 + 1_030 + 57), (Stage::Index, t.t_exist), (Stage::Array, t.read)];
        let there = host.exist(&key(1, 16)).await;
        assert_spent("exist", &there, Status::SUCCESS, &spent);
        let keys = host.one(list(None, ROOM)).await;
        assert_eq!(keys.stages[Stage::Core].0, 210 + 1_030 + 57, "list");
    });
}

#[test]
fn cores_bound_the_rate_of_commands() {
    for cores in [1_u32, 2] {
        let count = cores.to_string();
        let profile = changed(
            "ideal",
            &[("count", &count), ("parse_ns", "300"), ("probe_ns", "500"), ("complete_ns", "200")],
        );
        on(&profile, async |device| {
            let host = Host::new(device);
            let keys = spread(&host, 64, 16, &value(10)).await;
            assert_pace(&count, &host, in_turn(&keys, exist), (64, 64 * 40), (cores, 1_000)).await;
        });
    }
}

#[test]
fn a_buffered_store_does_not_wait_for_its_program() {
    let profile = moke(&[("ack", "\"buffer\"\nbuffer_kib = 2112")]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        for (number, len) in (0..).zip([1, 4_096, PAGE, 3 * PAGE]) {
            let spent = [(Stage::Link, t.link(len)), (Stage::Index, t.t_write)];
            let stored = host.store(&key(number, 16), &value(len)).await;
            assert_spent(&format!("{len} bytes"), &stored, Status::SUCCESS, &spent);
            let spent = [(Stage::Link, t.link(len)), (Stage::Index, t.t_read)];
            let retrieved = host.retrieve(&key(number, 16)).await;
            assert_spent(&format!("{len} bytes"), &retrieved, Status::SUCCESS, &spent);
        }
        let deleted = host.delete(&key(0, 16)).await;
        assert_spent("delete", &deleted, Status::SUCCESS, &[(Stage::Index, t.t_delete)]);
    });
}

/// With the buffer full a store waits until a page has landed. Each die takes a page in the time of
/// its transfer and its program, as long as the channels keep up, and a buffer of 132 pages holds
/// more than one for each of 64 dies.
#[test]
fn with_its_buffer_full_a_device_stores_as_fast_as_it_programs() {
    let profile = moke(&[
        ("ack", "\"buffer\"\nbuffer_kib = 2112"),
        ("t_write_us", "1"),
        ("mb_per_s", "0"),
        ("transfer_us", "0"),
    ]);
    let t = Times::of(&profile);
    let page = t.channel(PAGE) + t.program;
    assert!(u64::from(t.channels) * page > u64::from(t.dies) * t.channel(PAGE), "channels keep up");
    for depth in [1, 16] {
        on(&profile, async |device| {
            let host = Host::new(device);
            let fill = (0..640).map(|number| store(&key(number, 16), &value(PAGE)));
            host.all(fill, depth).await;
            let stores = (640..).map(|number| store(&key(number, 16), &value(PAGE)));
            assert_pace("stores", &host, stores, (depth, 64 * 50), (t.dies, page)).await;
        });
    }
}

#[test]
fn the_first_stores_fill_the_buffer_at_the_speed_of_the_firmware() {
    let profile = moke(&[("ack", "\"buffer\"\nbuffer_kib = 4096"), ("t_write_us", "1")]);
    let t = Times::of(&profile);
    on(&profile, async |device| {
        let host = Host::new(device);
        // The first page lands after its transfer and its program.
        let quick = (t.channel(PAGE) + t.program) / (t.link(PAGE) + t.t_write);
        for number in 0..quick {
            let stored = host.store(&key(number, 16), &value(PAGE)).await;
            let latency = t.link(PAGE) + t.t_write;
            assert_eq!(stored.latency().0, latency, "store {number} of {quick}");
        }
        let there = host.one(delete(&key(0, 16))).await;
        assert_eq!(there.latency().0, t.t_delete, "what has not landed is looked up in memory");
    });
}
