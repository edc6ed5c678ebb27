//! Breaks each invariant of the log's state once, and checks that its assertion stops the change.

use super::copies::Copying;
use super::frontier::Frontier;
use super::owners::Owners;
use super::pins::PinOf;
use super::{CountedValue, Log, Part};
use crate::extent::{Counted, Extent, Extents, Live};
use crate::format::address::Address;
use crate::format::page_builder::PageBuilder;
use crate::format::record::{Header, InBatch, Kind, Sequence};
use crate::format::summary::Summary;
use crate::key_space::TableId;
use crate::recover::checkpoint::ExtentImage;
use crate::write::pending::{Pending, UnlandedBatch};
use base::{Buf, Nanos};
use clock::{Stage, UnixMillis, unix_now};
use media::{ExtentId, ExtentInfo, Label, Memory, Page, PageId, Shape, Stream};
use reactor::Reactor;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

const PAGES: u32 = 8;

const SHAPE: Shape = Shape {
    page_bytes: 4096,
    spare_bytes: 64,
    pages_per_extent: PAGES,
    extents: 8,
    parallelism: 1,
    frames: None,
};

/// The open extent of hosts in [`log`].
const HOST: ExtentId = ExtentId(0);
const TABLE: TableId = TableId::STORE;
const SHORT: usize = 4;
const LONG: usize = 40;

/// Makes a log with an open extent of hosts, whose first page is empty.
fn log() -> Arc<Log> {
    let media = Arc::new(Memory::new(SHAPE));
    let log = Arc::new(Log::new(media, Extents::default(), Sequence::first()));
    log.open_extent(&mut log.writing().part(), Stream::Host, 0).unwrap();
    log
}

/// Calls `change` with the extent of hosts.
fn host(log: &Log, change: impl FnOnce(&mut Extent)) {
    change(log.whole().extents.get(HOST));
}

/// Ends the extent of hosts without a page.
fn end_host(log: &Log) {
    let mut state = log.whole();
    let mut part = state.first();
    part.writer.frontiers.close(Stream::Host);
    log.unexpect_page(&mut part, HOST, 0);
    state.extents.get(HOST).seal(0, None);
}

/// Ends the extent of hosts, and takes it out of use.
fn forget_host(log: &Log) {
    end_host(log);
    log.whole().forget(HOST);
}

/// Returns another frontier at the first page of the extent of hosts.
fn frontier(log: &Log) -> Frontier {
    let builder = PageBuilder::new(log.layout);
    Frontier::new((HOST, 0, PAGES), builder, Arc::default(), Summary::default())
}

/// Opens `frontier` in the extent of hosts, for `stream`.
fn open(log: &Log, stream: Stream, frontier: Frontier) {
    let mut state = log.whole();
    let Part { writer, shared } = state.first();
    writer.frontiers.open(stream, frontier, shared.get().extents.get(HOST));
}

/// Calls `change` with the frontier of hosts.
fn host_frontier(log: &Log, change: impl FnOnce(&mut Frontier)) {
    change(log.writing().writer().frontiers.of_mut(Stream::Host).unwrap());
}

/// Appends a tombstone.
fn append(log: &Arc<Log>) {
    let mut header = Header {
        sequence: Sequence::default(),
        kind: Kind::Tombstone,
        table: TABLE,
        value_len: 0,
        value_crc: 0,
        value_offset: 0,
        expires: None,
        batch: InBatch::default(),
        key: b"key",
    };
    let nothing = Buf::phantom(0, 0);
    log.append(&mut log.writing().part(), Stream::Host, &mut header, &nothing).unwrap();
}

/// Returns what a checkpoint knows of the extent of hosts: nothing.
fn image() -> ExtentImage {
    ExtentImage {
        id: HOST,
        label: Label { stream: Stream::Host, epoch: 0 },
        pages: 0,
        summary: None,
        holes: Vec::new(),
        values: Vec::new(),
        tombstones: Live::default(),
        needless: Vec::new(),
        needless_bytes: 0,
        expires_first: None,
        left: Vec::new(),
    }
}

/// Calls `change` with what the writer has counted of the extent of hosts.
fn tally(log: &Log, change: impl FnOnce(&mut Counted)) {
    change(log.writing().writer().tally.of(HOST));
}

fn begin_copying(log: &Log, since: Sequence) {
    let copying = Copying { open: None, tombstones: Live::default() };
    log.whole().copies.begin(since, copying);
}

/// Counts a value that expires in a second.
fn add_expiring(log: &Log) -> UnixMillis {
    let date = UnixMillis(unix_now().0 + 1_000);
    log.whole().live.expiring.add(TABLE, date);
    date
}

/// Returns a value in the extent of hosts.
fn counted(key_len: usize) -> CountedValue {
    let (at, expires) = (Address::MIN, None);
    CountedValue { extent: HOST, at, table: TABLE, key_len, bytes: 8, expires }
}

/// A change that is wrong, and the assertion that stops it.
type Case = (&'static str, fn(&Arc<Log>));

const PAGES_OF_EXTENTS: &[Case] = &[
    ("a sealed extent has no open page", |log| {
        host(log, |extent| extent.seal(1, None));
        drop(log.whole());
    }),
    ("pages of an extent are written in the order of their numbers", |log| {
        host(log, |extent| extent.note_open_page(2));
    }),
    ("a page that is not written was in flight", |log| {
        tally(log, |counted| counted.in_flight -= 1);
        host(log, |extent| extent.unexpect_page(0));
    }),
    ("a page that is not written is the last of its extent", |log| {
        host(log, |extent| extent.unexpect_page(5));
    }),
    ("each page of an extent lands once", |log| {
        tally(log, |counted| counted.in_flight -= 2);
        drop(log.whole());
    }),
    ("an extent is sealed once", |log| {
        end_host(log);
        host(log, |extent| extent.seal(0, None));
    }),
    ("a summary lies on pages of its extent", |log| host(log, |extent| extent.seal(1, Some(1)))),
    ("a summary is looked for in an extent that is not appended to", |log| {
        host(log, |extent| extent.find_summary(None));
    }),
    ("a summary that is found lies on pages of its extent", |log| {
        end_host(log);
        host(log, |extent| extent.find_summary(Some(7)));
    }),
    ("a hole is a page of its extent", |log| host(log, |extent| extent.add_hole(4))),
    ("a page becomes a hole once", |log| {
        host(log, |extent| extent.add_hole(0));
        host(log, |extent| extent.add_hole(0));
    }),
];

const USERS_OF_EXTENTS: &[Case] = &[
    ("an extent is opened when it is free", |log| {
        let label = Label { stream: Stream::Host, epoch: 0 };
        log.whole().extents.insert(HOST, Extent::new(label));
    }),
    ("each pin is taken off once", |log| {
        let pin = log.pin(&mut log.whole(), HOST);
        drop(pin);
        log.pins.remove(HOST, PinOf::Reader);
    }),
    ("a task watches decisions before it waits for one", |log| {
        let mut context = Context::from_waker(Waker::noop());
        let _ = pin!(log.decision_after(0)).poll(&mut context);
    }),
    ("an extent in use is pinned", |log| {
        drop(log.pin(&mut log.whole(), ExtentId(7)));
    }),
    ("a victim is sealed, has landed and is no victim yet", |log| {
        log.whole().begin_cleaning(HOST);
    }),
    ("the cleaner gives only a victim back", |log| host(log, Extent::give_back)),
    ("writers know each victim", |log| log.whole().give_back(HOST)),
    ("a victim is taken once", |log| {
        log.pins.set_victim(HOST, true);
        log.whole().begin_cleaning(HOST);
    }),
    ("an extent is reset when nothing has it pinned", |log| {
        let _pin = log.pin(&mut log.whole(), HOST);
        forget_host(log);
    }),
    ("an extent is reset when all of its pages have landed", |log| {
        log.whole().first().writer.frontiers.close(Stream::Host);
        host(log, |extent| extent.seal(1, None));
        log.whole().forget(HOST);
    }),
    ("an extent is reset when nothing more is appended to it", |log| {
        host(log, |extent| extent.unexpect_page(0));
        log.whole().forget(HOST);
    }),
    ("an extent is reset when it has no live value", |log| {
        log.whole().count_value(counted(SHORT));
        forget_host(log);
    }),
    ("each extent of table pages is counted", |log| {
        let label = Label { stream: Stream::Index, epoch: 0 };
        log.whole().space.forget(HOST, label);
    }),
    ("an extent is erased once it is out of use", |log| log.whole().space.erased(HOST)),
    ("an extent fails to be erased once it is out of use", |log| {
        log.whole().space.not_erased(HOST);
    }),
    ("victims are copied one after the other, or together", |log| {
        let since = log.whole().next_sequence();
        begin_copying(log, since);
        begin_copying(log, Sequence(since.0 + 1));
    }),
    ("victims are taken later than those before", |log| {
        let since = log.whole().copies.since();
        begin_copying(log, since);
    }),
    ("copying ends once each time", |log| log.whole().copies.end()),
    ("each extent that is being sealed is counted", |log| {
        log.whole().sealing.begin();
        log.whole().sealing.end();
        log.whole().sealing.end();
    }),
];

const LIVE_COUNTS: &[Case] = &[
    ("an extent is restored before its records are counted", |log| {
        host(log, |extent| extent.count_tombstone(8));
        host(log, |extent| extent.restore(&image()));
    }),
    ("a tombstone that is undone is not one of the needless", |log| {
        log.whole().count_tombstone(HOST, 8);
        log.whole().note_needless(Address::MIN, HOST, 8);
        log.whole().uncount_tombstone(HOST, 8);
    }),
    ("needless tombstones of an extent are some of its tombstones", |log| {
        log.whole().note_needless(Address::MIN, HOST, 8);
    }),
    ("needless tombstones are some of all tombstones", |log| {
        host(log, |extent| extent.count_tombstone(8));
        log.whole().note_needless(Address::MIN, HOST, 8);
    }),
    ("needless tombstones that are taken off were counted", |log| {
        log.whole().count_tombstone(HOST, 8);
        host(log, |extent| extent.note_needless(Address::MIN, 8));
        forget_host(log);
    }),
    ("saved needless tombstones are some of all tombstones", |log| {
        log.whole().live.restore(Live::default(), Live::default(), 8);
    }),
    ("a record that is taken off was counted", |log| {
        log.whole().uncount_value(counted(SHORT));
    }),
    ("no more records are taken off than there are", |log| {
        log.writing().writer().tally.count(&counted(SHORT), -1);
        drop(log.whole());
    }),
    ("no more long keys are counted than records", |log| {
        log.whole().count_value(counted(SHORT));
        log.writing().writer().tally.count(&counted(LONG), -1);
        drop(log.whole());
    }),
    ("a long key that is taken off was counted", |log| {
        log.whole().count_value(counted(SHORT));
        log.whole().uncount_value(counted(LONG));
    }),
    ("long keys are some of those that were counted", |log| {
        log.whole().count_value(counted(LONG));
        log.whole().uncount_value(counted(SHORT));
    }),
    ("counts that are taken off are a part of the whole", |log| {
        host(log, |extent| extent.count_value(TABLE, SHORT, 8));
        log.whole().uncount_table(TABLE);
    }),
    ("their long keys are a part of the whole", |log| {
        log.whole().count_value(counted(SHORT));
        host(log, |extent| extent.uncount_value(TABLE, SHORT, 8));
        host(log, |extent| extent.count_value(TABLE, LONG, 8));
        log.whole().uncount_table(TABLE);
    }),
    ("a value that is taken off was counted as waiting", |log| {
        let date = add_expiring(log);
        log.whole().live.expiring.break_count(TABLE);
        log.whole().live.expiring.remove(TABLE, date);
    }),
    // Time passes before this change: see the test.
    ("values that expire were counted as waiting", |log| {
        log.whole().live.expiring.counts(TABLE);
    }),
];

const FRONTIERS: &[Case] = &[
    ("a frontier begins in its extent", |log| {
        let builder = PageBuilder::new(log.layout);
        Frontier::new((HOST, PAGES, PAGES), builder, Arc::default(), Summary::default());
    }),
    ("a page with records stays where it is", |log| {
        append(log);
        host_frontier(log, |frontier| frontier.place(1));
    }),
    ("a page has at least one number", |log| {
        host_frontier(log, |frontier| frontier.next(0, Arc::default()));
    }),
    ("the page of a frontier only grows", |log| {
        host_frontier(log, |frontier| frontier.place(2));
        host_frontier(log, |frontier| frontier.place(1));
    }),
    ("the page of a frontier stays in its extent", |log| {
        host_frontier(log, |frontier| frontier.next(PAGES, Arc::default()));
    }),
    ("a frontier is opened in an extent that is not sealed", |log| {
        end_host(log);
        open(log, Stream::Host, frontier(log));
    }),
    ("the extent of a frontier is of its stream", |log| open(log, Stream::Gc, frontier(log))),
    ("a stream has one open extent", |log| open(log, Stream::Host, frontier(log))),
    ("pages of an extent are expected in the order of their numbers", |log| {
        let number = log.number(HOST, 0);
        let pending = Arc::new(Pending::default());
        log.writing().writer().unlanded.expect(Stream::Host, number, number, pending);
    }),
    ("a page is closed once", |log| {
        let page = || Page::new(&[], [Buf::phantom(1, 0)]);
        let number = log.number(HOST, 0);
        log.writing().writer().unlanded.close(number, page());
        log.writing().writer().unlanded.close(number, page());
    }),
    ("a page that lands was expected", |log| {
        let at = PageId { extent: HOST, page: 0 };
        log.writing().writer().buffer.begin_page();
        log.landed(at, Ok(()));
        log.landed(at, Ok(()));
    }),
    ("the records of a batch are in the log's order", |log| {
        let (first, last) = (Address::MAX, Address::MIN);
        log.writing().writer().unlanded.add_batch(UnlandedBatch { first, last, pages: [].into() });
    }),
    ("each host page in flight is counted", |log| {
        log.landed(PageId { extent: HOST, page: 0 }, Ok(()));
    }),
    ("there are few writers", |_| Owners::new(1).share_among(65)),
    ("a writer is chosen among all", |log| {
        log.writing().share_open_extent();
    }),
    ("what was announced is counted", |log| {
        log.writing().writer().buffer.announce();
        log.retract(&mut log.writing().part());
        log.retract(&mut log.writing().part());
    }),
];

fn cases() -> impl Iterator<Item = Case> {
    let tables = [PAGES_OF_EXTENTS, USERS_OF_EXTENTS, LIVE_COUNTS, FRONTIERS];
    tables.into_iter().flatten().copied()
}

/// Returns the message of the panic that `change` ends with.
fn fired(log: &Arc<Log>, change: fn(&Arc<Log>)) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| change(log))).err()?;
    let literal = panic.downcast_ref::<&str>().map(|message| (*message).to_owned());
    literal.or_else(|| panic.downcast_ref::<String>().cloned())
}

#[test]
fn each_broken_invariant_is_stopped_by_its_assertion() {
    for (message, change) in cases() {
        Reactor::new(None).run(async move {
            let log = log();
            if message == "values that expire were counted as waiting" {
                add_expiring(&log);
                log.whole().live.expiring.break_count(TABLE);
                clock::sleep(Nanos::from_millis(2_000), Stage::Queue).await;
            }
            assert_eq!(fired(&log, change).as_deref(), Some(message));
        });
    }
}

/// The files whose methods change extents, live counts and frontiers. Others call these methods.
const SOURCES: &[(&str, &str)] = &[
    ("log", include_str!("../log.rs")),
    ("cleaning_due", include_str!("cleaning_due.rs")),
    ("copies", include_str!("copies.rs")),
    ("frontier", include_str!("frontier.rs")),
    ("host_buffer", include_str!("host_buffer.rs")),
    ("landing", include_str!("landing.rs")),
    ("live_counts", include_str!("live_counts.rs")),
    ("locked", include_str!("locked.rs")),
    ("own", include_str!("own.rs")),
    ("owners", include_str!("owners.rs")),
    ("pins", include_str!("pins.rs")),
    ("recalls", include_str!("recalls.rs")),
    ("room", include_str!("room.rs")),
    ("sealing", include_str!("sealing.rs")),
    ("settled", include_str!("settled.rs")),
    ("space", include_str!("space.rs")),
    ("state", include_str!("state.rs")),
    ("tally", include_str!("tally.rs")),
    ("unlanded", include_str!("unlanded.rs")),
    ("visit", include_str!("visit.rs")),
    ("writer", include_str!("writer.rs")),
    ("extent", include_str!("../extent.rs")),
    ("change", include_str!("../extent/change.rs")),
    ("extents", include_str!("../extent/extents.rs")),
    ("live", include_str!("../extent/live.rs")),
    ("expiring", include_str!("../clean/expiring.rs")),
];

/// Returns a file without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

#[test]
fn a_summary_whose_write_failed_is_not_restored() {
    let label = Label { stream: Stream::Host, epoch: 0 };
    let found = ExtentInfo { id: HOST, label, pages: 5, holes: Vec::new(), summary: None };
    for (first, kept) in [(4, Some(4)), (5, None), (7, None)] {
        let mut extent = Extent::recovered(&found);
        extent.restore(&ExtentImage { pages: PAGES, summary: Some(first), ..image() });
        assert_eq!(extent.summary(), kept, "a summary from page {first} on");
        assert_eq!(extent.summary_numbers(), 5 - kept.unwrap_or(0));
    }
}

#[test]
fn each_assertion_of_the_state_has_one_case() {
    let mut messages = Vec::new();
    for (_, text) in SOURCES {
        for assertion in code(text).split("assert!(").skip(1) {
            messages.push(assertion.split('"').nth(1).expect("an assertion has a message"));
        }
        assert!(!code(text).contains("assert_eq!"), "a case knows the whole message");
    }
    messages.sort_unstable();
    let mut stopped: Vec<&str> = cases().map(|(message, _)| message).collect();
    stopped.sort_unstable();
    assert_eq!(messages, stopped);
}

#[test]
fn each_file_of_the_state_is_searched_for_assertions() {
    let names: BTreeSet<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
    for (_, text) in SOURCES {
        let modules = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        for module in modules.filter(|module| *module != "tests") {
            assert!(names.contains(module), "SOURCES lacks {module}.rs");
        }
    }
}
