//! The disk itself, against what the sectors may hold.

use base::{Buf, Nanos};
use clock::{Class, Stage, now, sleep};
use media::{Blocks, BlocksShape, Error, Segments};
use reactor::Reactor;
use sim::{DiskConditions, DiskFaults, Left, SimDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SHAPE: BlocksShape = BlocksShape { block_bytes: 512, blocks: 64, parallelism: 1 };

fn filled(byte: u8, blocks: u32) -> Segments {
    Segments::from_iter([Buf::copy_from(&vec![byte; blocks as usize * 512])])
}

async fn write(disk: &SimDisk, first: u64, byte: u8, blocks: u32) {
    disk.write(first, filled(byte, blocks), Class::HostWrite).await.expect("nothing fails");
}

/// The byte that fills each of `count` blocks.
async fn bytes(disk: &SimDisk, count: u32) -> Vec<u8> {
    let found = disk.read(0, count, Class::HostRead).await.expect("nothing fails");
    let bytes = found[0].bytes().expect("it is real");
    let blocks = bytes.chunks_exact(512);
    blocks
        .map(|block| {
            assert!(block.iter().all(|byte| *byte == block[0]), "a block is whole");
            block[0]
        })
        .collect()
}

/// How often each pattern of the first blocks was left, over many seeds.
fn left_by(disk: &SimDisk, left: Left, count: u32) -> BTreeMap<Vec<u8>, u32> {
    let mut all = BTreeMap::new();
    for seed in 0..400 {
        let after = disk.cut(left, DiskFaults::default(), seed);
        let found = Reactor::new(None).run(bytes(&after, count));
        *all.entry(found).or_default() += 1;
    }
    all
}

fn patterns(all: &BTreeMap<Vec<u8>, u32>) -> BTreeSet<&[u8]> {
    all.keys().map(Vec::as_slice).collect()
}

#[test]
fn what_was_flushed_stays_and_of_the_rest_each_sector_is_on_its_own() {
    let disk = SimDisk::new(SHAPE, DiskConditions::new(512), 1);
    Reactor::new(None).run(async {
        write(&disk, 0, 1, 2).await;
        disk.flush().await.unwrap();
        write(&disk, 0, 2, 2).await;
        write(&disk, 1, 3, 1).await;
        assert_eq!(bytes(&disk, 3).await, [2, 3, 0]);
    });
    let nothing = left_by(&disk, Left::Nothing, 2);
    assert_eq!(patterns(&nothing), BTreeSet::from([&[1, 1][..]]));
    let all = left_by(&disk, Left::All, 2);
    assert_eq!(patterns(&all), BTreeSet::from([&[2, 3][..]]));
    let newest = left_by(&disk, Left::Newest, 2);
    assert_eq!(patterns(&newest), BTreeSet::from([&[1, 1][..], &[1, 3], &[2, 1], &[2, 3]]));
    let any = left_by(&disk, Left::Any, 2);
    let each = [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3]];
    assert_eq!(patterns(&any), each.iter().map(|pattern| &pattern[..]).collect());
    assert!(any.values().all(|count| (30..110).contains(count)), "{any:?}");
}

#[test]
fn a_large_sector_is_left_as_a_whole() {
    let disk = SimDisk::new(SHAPE, DiskConditions::new(4_096), 1);
    Reactor::new(None).run(async {
        write(&disk, 6, 1, 4).await;
        disk.flush().await.unwrap();
        write(&disk, 6, 2, 1).await;
        write(&disk, 7, 3, 2).await;
    });
    let any = left_by(&disk, Left::Any, 10);
    // The first sector has had two writes since, the second one.
    let firsts = [[1, 1], [2, 1], [2, 3]];
    let seconds = [[1, 1], [3, 1]];
    let expected: BTreeSet<Vec<u8>> = firsts
        .iter()
        .flat_map(|first| seconds.iter().map(|second| [&[0; 6], &first[..], &second[..]].concat()))
        .collect();
    assert_eq!(any.into_keys().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn a_flush_covers_what_was_answered_before_it_began_and_nothing_else() {
    let disk = Arc::new(SimDisk::new(SHAPE, DiskConditions::new(512), 3));
    Reactor::new(None).run(async {
        write(&disk, 0, 1, 1).await;
        let (during, flush) = (disk.clone(), disk.clone());
        clock::spawn(async move {
            sleep(Nanos(1), Stage::Queue).await;
            write(&during, 1, 2, 1).await;
        });
        flush.flush().await.unwrap();
        sleep(Nanos(10_000_000), Stage::Queue).await;
        assert_eq!(bytes(&disk, 2).await, [1, 2]);
    });
    let left = left_by(&disk, Left::Newest, 2);
    assert_eq!(patterns(&left), BTreeSet::from([&[1, 0][..], &[1, 2]]));
}

#[test]
fn a_write_that_is_cut_leaves_any_of_its_sectors_and_a_trim_too() {
    let mut reactor = Reactor::new(None);
    let disk = Arc::new(SimDisk::new(SHAPE, DiskConditions::new(512), 4));
    reactor.run(async {
        write(&disk, 0, 1, 2).await;
        disk.flush().await.unwrap();
        disk.cut_at(disk.counts().changes());
        let cut = disk.clone();
        clock::spawn(async move {
            write(&cut, 0, 2, 2).await;
            unreachable!("it never ends");
        });
        disk.until_cut().await;
        sleep(Nanos(10_000_000), Stage::Queue).await;
    });
    drop(reactor);
    let left = left_by(&disk, Left::Newest, 2);
    assert_eq!(patterns(&left), BTreeSet::from([&[1, 1][..], &[1, 2], &[2, 1], &[2, 2]]));

    let mut reactor = Reactor::new(None);
    let disk = Arc::new(disk.cut(Left::Nothing, DiskFaults::default(), 0));
    reactor.run(async {
        disk.cut_at(0);
        let cut = disk.clone();
        clock::spawn(async move {
            let trimmed = cut.trim(0, 2, Class::Gc).await;
            unreachable!("it never ends: {trimmed:?}");
        });
        disk.until_cut().await;
    });
    drop(reactor);
    let left = left_by(&disk, Left::Any, 2);
    assert_eq!(patterns(&left), BTreeSet::from([&[0, 0][..], &[0, 1], &[1, 0], &[1, 1]]));
}

#[test]
fn a_kill_leaves_written_sectors_unflushed() {
    let mut reactor = Reactor::new(None);
    let disk = Arc::new(SimDisk::new(SHAPE, DiskConditions::new(512), 4));
    reactor.run(async {
        write(&disk, 0, 1, 1).await;
        let killed = disk.clone();
        clock::spawn(async move { write(&killed, 1, 2, 1).await });
        sleep(Nanos(1), Stage::Queue).await;
    });
    drop(reactor);
    let found: BTreeSet<_> = (0..20)
        .map(|seed| Reactor::new(None).run(bytes(&disk.killed(DiskFaults::default(), seed), 2)))
        .collect();
    assert_eq!(found, BTreeSet::from([vec![1, 0], vec![1, 2]]));
    let left = left_by(&disk.killed(DiskFaults::default(), 0), Left::Nothing, 2);
    assert_eq!(patterns(&left), BTreeSet::from([&[0, 0][..]]));
}

#[test]
fn what_the_plan_says_fails_and_takes_a_time_within_bounds() {
    let mut conditions = DiskConditions::new(512);
    conditions.faults = DiskFaults {
        unreadable: BTreeSet::from([5]),
        failed_writes: BTreeSet::from([1]),
        no_space: BTreeSet::from([2]),
        failed_reads: BTreeSet::from([3]),
        failed_flushes: BTreeSet::from([0]),
        lies: false,
    };
    let disk = SimDisk::new(SHAPE, conditions.clone(), 5);
    Reactor::new(None).run(async {
        write(&disk, 0, 1, 4).await;
        let failed = disk.write(0, filled(2, 4), Class::HostWrite).await;
        assert_eq!(failed, Err(Error::UnwrittenBlock(0)));
        let found = bytes(&disk, 4).await;
        assert!(found.contains(&1) && found.contains(&2), "a part was done: {found:?}");
        let full = disk.write(0, filled(3, 4), Class::HostWrite).await;
        assert_eq!((full, bytes(&disk, 4).await), (Err(Error::NoSpace), found));
        let unread = |first, count| disk.read(first, count, Class::HostRead);
        assert_eq!(unread(3, 9).await.map(|_| ()), Err(Error::UnrecoveredBlock(5)));
        assert_eq!(unread(6, 3).await.map(|_| ()), Err(Error::UnrecoveredBlock(6)), "the fourth");
        assert!(unread(6, 3).await.is_ok());
        assert_eq!(disk.flush().await, Err(Error::NotFlushed));
        disk.flush().await.unwrap();
        write(&disk, 4, 4, 2).await;
        assert!(disk.unreadable().is_empty() && unread(3, 9).await.is_ok(), "written again");
        let counts = disk.counts();
        assert_eq!((counts.failed_reads, counts.failed_changes), (2, 3));
        let began = now();
        for _ in 0..100 {
            write(&disk, 40, 1, 1).await;
        }
        let time = now() - began;
        assert!(time > Nanos(7_000_000) && time < Nanos(13_000_000), "100 of 100 us: {time}");
    });
    let left = left_by(&disk, Left::Nothing, 4);
    assert_eq!(patterns(&left), BTreeSet::from([&[0, 0, 0, 0][..]]), "the flush was worth nothing");
}
