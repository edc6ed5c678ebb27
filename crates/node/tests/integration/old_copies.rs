//! Old copies of extents in a drive of pairs: a retrieve returns the last stored value or an error.

use base::{Buf, Rng};
use clock::Class;
use controller::{QueuePair, Submission};
use drive::{DamagedPart, Durability, Format, Medium};
use engine::Wrong;
use media::{Blocks, BlocksShape, ExtentId, Media, MemoryBlocks, Segments};
use node::{DiskDrive, DiskLook, DiskOptions};
use reactor::Reactor;
use spec::{Command, Status, StoreOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const EXTENT_BYTES: u64 = EXTENT_BLOCKS as u64 * 4_096;
const EXTENTS: u32 = 24;
const FORMAT: Format = Format { id: [1; 16], secret: [2; 16], extent_bytes: Some(EXTENT_BYTES) };
const EXTENT_BLOCKS: u32 = 64;
const KEYS: u64 = 120;

/// How a life of a drive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Crash,
}

/// What an asked key has.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Value(Vec<u8>),
    Nothing,
    Error,
}

/// A drive, what it must hold, and copies of its extents from earlier.
struct Used {
    memory: Arc<MemoryBlocks>,
    values: BTreeMap<u64, u64>,
    copies: Vec<(u32, Segments)>,
}

fn blank() -> Arc<MemoryBlocks> {
    let blocks = (u64::from(EXTENTS) * EXTENT_BYTES + (20 << 10)) / 4_096;
    Arc::new(MemoryBlocks::new(BlocksShape { block_bytes: 4_096, blocks, parallelism: 4 }))
}

fn first_block(extent: u32) -> u64 {
    2 + u64::from(extent) * u64::from(EXTENT_BLOCKS)
}

fn value(key: u64, number: u64) -> Vec<u8> {
    let mut rng = Rng::new(key << 32 | number);
    let mut bytes = vec![0; usize::try_from(rng.below(20_000)).expect("it is small")];
    rng.fill(&mut bytes);
    bytes
}

async fn ask(queue: &QueuePair, command: Command, data: Buf) -> Status {
    queue.submit(Submission { command, long_key: None, data });
    queue.next().await.status
}

async fn retrieve(queue: &QueuePair, key: u64) -> Found {
    let command = Command::retrieve(1, &key.to_le_bytes(), 1 << 20);
    queue.submit(Submission { command, long_key: None, data: Buf::phantom(0, 0) });
    let completion = queue.next().await;
    match completion.status {
        Status::SUCCESS => Found::Value(completion.data.bytes().unwrap_or_default().to_vec()),
        Status::KEY_DOES_NOT_EXIST => Found::Nothing,
        _ => Found::Error,
    }
}

async fn open_drive(memory: &Arc<MemoryBlocks>) -> DiskDrive {
    let options = DiskOptions {
        durability: Durability::Group,
        checkpoint_bytes: 1 << 20,
        ..DiskOptions::default()
    };
    DiskDrive::open(memory.clone(), options).await.expect("it is a drive")
}

impl Used {
    fn new() -> Self {
        let memory = blank();
        let blocks = memory.clone();
        Reactor::new(None).run(async {
            DiskDrive::format(blocks, FORMAT).await.expect("it is large enough");
        });
        Self { memory, values: BTreeMap::new(), copies: Vec::new() }
    }

    /// Runs `operations` stores and deletes, and copies an extent now and then.
    fn live(&mut self, rng: &mut Rng, operations: u64, end: End) {
        Reactor::new(None).run(async {
            let drive = open_drive(&self.memory).await;
            let queue = drive.controller().queue_pair();
            for number in 0..operations {
                let key = rng.below(KEYS);
                if rng.below(8) == 0 {
                    ask(&queue, Command::delete(1, &key.to_le_bytes()), Buf::phantom(0, 0)).await;
                    self.values.remove(&key);
                } else {
                    let number = rng.next_u64() ^ number;
                    let value = Buf::copy_from(&value(key, number));
                    let options = StoreOptions::NONE;
                    let store = Command::store(1, &key.to_le_bytes(), value.len(), options);
                    assert_eq!(ask(&queue, store, value).await, Status::SUCCESS);
                    self.values.insert(key, number);
                }
                if rng.below(24) == 0 {
                    let extent = u32::try_from(rng.below(EXTENTS.into())).expect("it is small");
                    let (first, count) = (first_block(extent), EXTENT_BLOCKS);
                    let image = self.memory.read(first, count, Class::HostRead).await;
                    self.copies.push((extent, image.expect("nothing fails")));
                }
            }
            if end == End::Close {
                drive.close().await.expect("nothing fails");
            }
        });
    }

    fn with_old(&self, extent: u32, image: &Segments) -> Arc<MemoryBlocks> {
        let copy = blank();
        Reactor::new(None).run(async {
            for block in 0..copy.shape().blocks {
                let content =
                    self.memory.read(block, 1, Class::HostRead).await.expect("nothing fails");
                copy.write(block, content, Class::HostWrite).await.expect("nothing fails");
            }
            copy.write(first_block(extent), image.clone(), Class::HostWrite)
                .await
                .expect("nothing fails");
        });
        copy
    }

    /// How many keys cannot be read, and how many have something else than they should.
    async fn ask_all(&self, memory: &Arc<MemoryBlocks>) -> (u32, u32) {
        let drive = open_drive(memory).await;
        let queue = drive.controller().queue_pair();
        let (mut errors, mut wrong) = (0, 0);
        for key in 0..KEYS {
            let expected = self.values.get(&key).map(|number| value(key, *number));
            let expected = expected.map_or(Found::Nothing, Found::Value);
            match retrieve(&queue, key).await {
                found if found == expected => {}
                Found::Error => errors += 1,
                _ => wrong += 1,
            }
        }
        (errors, wrong)
    }
}

/// What a check says of an extent, and of others.
async fn named(memory: &Arc<MemoryBlocks>, extent: u32) -> (bool, usize) {
    let look = DiskLook::open(memory.clone()).await.expect("it is a drive");
    let verified = look.store().verify(|_, _| {}).await.expect("nothing fails");
    let damage = look.damage().await.expect("nothing fails");
    let is_old = |part| part == DamagedPart::OldCopy(ExtentId(extent));
    let mut is_named = damage.iter().any(|damage| is_old(damage.part));
    let mut others = damage.len() - usize::from(is_named);
    for finding in &verified.findings {
        let is_outdated = matches!(finding.wrong, Wrong::Outdated { .. } | Wrong::CutShort);
        if is_outdated && finding.extent == Some(ExtentId(extent)) {
            is_named = true;
        } else {
            others += 1;
        }
    }
    (is_named, others)
}

/// What a copy in its place did.
#[derive(Debug, Default)]
struct Told {
    is_named: bool,
    /// Keys that cannot be read, and keys that have something else than they should.
    errors: u32,
    wrong: u32,
}

fn with_old(used: &Used, extent: u32, image: &Segments) -> Told {
    let memory = used.with_old(extent, image);
    let (is_named, others) = Reactor::new(None).run(named(&memory, extent));
    assert_eq!(others, 0, "what else is wrong than extent {extent}");
    let (errors, wrong) = Reactor::new(None).run(used.ask_all(&memory));
    Told { is_named, errors, wrong }
}

#[test]
fn behind_an_old_copy_there_is_what_was_stored_last_or_an_error() {
    let (mut named, mut errors) = (0, 0);
    for seed in 0..3 {
        let (mut used, mut rng) = (Used::new(), Rng::new(seed));
        for end in [End::Crash, End::Close, End::Close] {
            used.live(&mut rng, 500, end);
        }
        for (extent, image) in &used.copies {
            let told = with_old(&used, *extent, image);
            assert_eq!(told.wrong, 0, "extent {extent}");
            assert!(told.is_named || told.errors == 0, "extent {extent}: {told:?}");
            named += u32::from(told.is_named);
            errors += told.errors;
        }
    }
    println!("{named} copies are named, and {errors} keys behind them cannot be read");
    assert!(named > 60 && errors > 300, "{named} {errors}");
}

/// Extents that were being appended to when the drive crashed.
fn open_ones(memory: &Arc<MemoryBlocks>) -> BTreeSet<u32> {
    Reactor::new(None).run(async {
        let medium = Medium::look(memory.clone()).await.expect("it is a drive");
        let found = Media::extents(&medium);
        found.iter().filter(|info| info.summary.is_none()).map(|info| info.id.0).collect()
    })
}

/// Of an extent that was being appended to nothing may tell how far, until the drive is opened.
#[test]
fn an_old_copy_is_named_after_a_crash_but_for_the_end_of_an_open_extent() {
    let (mut named, mut lost, mut untold) = (0, 0, 0);
    for seed in 10..14 {
        let (mut used, mut rng) = (Used::new(), Rng::new(seed));
        used.live(&mut rng, 700, End::Close);
        used.live(&mut rng, 700 + seed, End::Crash);
        let open = open_ones(&used.memory);
        for (extent, image) in &used.copies {
            let told = with_old(&used, *extent, image);
            named += u32::from(told.is_named);
            lost += told.wrong;
            if !told.is_named && told.errors + told.wrong > 0 {
                assert!(open.contains(extent), "extent {extent} of {open:?}: {told:?}");
                untold += 1;
            }
        }
        // After another open the drive detects every old copy.
        drop(Reactor::new(None).run(open_drive(&used.memory)));
        for (extent, image) in &used.copies {
            let told = with_old(&used, *extent, image);
            assert!(told.is_named || told.errors + told.wrong == 0, "extent {extent}: {told:?}");
        }
    }
    println!("{named} copies are named, {untold} of open extents not; {lost} keys are others");
    assert!(named > 60, "{named} {lost} {untold}");
}

/// Extents that were in use, and are free.
fn reset_ones(memory: &Arc<MemoryBlocks>) -> Vec<u32> {
    Reactor::new(None).run(async {
        let medium = Medium::look(memory.clone()).await.expect("it is a drive");
        let used: BTreeSet<_> = Media::extents(&medium).iter().map(|info| info.id.0).collect();
        let mut reset = Vec::new();
        for extent in (0..EXTENTS).filter(|extent| !used.contains(extent)) {
            let frame = memory.read(first_block(extent) + 1, 1, Class::HostRead).await;
            let frame = Buf::join(&frame.expect("nothing fails")).expect("it is real");
            // Of one that was never used it is blank.
            if frame.bytes().expect("it is real").iter().any(|byte| *byte != 0) {
                reset.push(extent);
            }
        }
        reset
    })
}

#[test]
fn an_unreadable_free_extent_is_no_loss() {
    let (mut used, mut rng) = (Used::new(), Rng::new(5));
    for _ in 0..2 {
        used.live(&mut rng, 700, End::Close);
    }
    let mut spoiled = vec![0; usize::try_from(EXTENT_BYTES).expect("it is small")];
    let zeros = Segments::from_iter([Buf::copy_from(&spoiled)]);
    rng.fill(&mut spoiled);
    let random = Segments::from_iter([Buf::copy_from(&spoiled)]);
    let reset = reset_ones(&used.memory);
    assert!(!reset.is_empty());
    for (extent, image, notes) in
        reset.into_iter().flat_map(|extent| [(extent, &zeros, 2), (extent, &random, 3)])
    {
        let memory = used.with_old(extent, image);
        Reactor::new(None).run(async {
            let look = DiskLook::open(memory.clone()).await.expect("it is a drive");
            let verified = look.store().verify(|_, _| {}).await.expect("nothing fails");
            assert_eq!((verified.findings, verified.harmless), (vec![], vec![]));
            let damage = look.damage().await.expect("nothing fails");
            let is_note = |part| {
                part == DamagedPart::Mark(ExtentId(extent))
                    || part == DamagedPart::Footer(ExtentId(extent))
            };
            assert!(damage.iter().all(|damage| is_note(damage.part)), "{damage:?}");
            assert_eq!(damage.len(), notes, "{damage:?}");
        });
        Reactor::new(None).run(async {
            assert_eq!(open_drive(&memory).await.losses(), Vec::<String>::new());
        });
        assert_eq!(Reactor::new(None).run(used.ask_all(&memory)), (0, 0));
        // The start has written new marks; what was in the footer's place stays there.
        let look = async { DiskLook::open(memory.clone()).await.expect("it is").damage().await };
        let damage = Reactor::new(None).run(look).expect("nothing fails");
        assert_eq!(damage.len(), notes - 2, "{damage:?}");
    }
}
