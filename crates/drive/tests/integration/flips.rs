//! Each bit of a drive turned over: what it harms is told of, and nothing else is harmed. The data
//! of the last page of an extent is the exception: its write may have been interrupted.

use crate::rig::{FORMAT, append, data, label, on, page, read, units};
use clock::{Class, LocalFuture};
use drive::{Durability, Format, Medium};
use media::{
    Blocks, BlocksShape, Error, ExtentId, ExtentInfo, Media, MemoryBlocks, OnDisk, PageId, Segments,
};
use reactor::Reactor;
use std::future::ready;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const EXTENT_BYTES: u64 = 32 << 10;
const EXTENTS: u64 = 4;
const LEDGER: u64 = 8_192 + EXTENTS * EXTENT_BYTES;
const BYTES: u64 = LEDGER + 2 * 4_096 + 4_096;

/// Bytes in which each bit is turned over, where the drive itself has put something; of the others
/// one in each 31st.
const HEAD_BYTES: u64 = 80;

/// Blocks of which a bit is wrong when it is read, and which are never written.
struct Flipped {
    memory: Arc<MemoryBlocks>,
    bit: AtomicU64,
}

impl Blocks for Flipped {
    fn shape(&self) -> BlocksShape {
        self.memory.shape()
    }

    fn read(
        &self,
        first: u64,
        count: u32,
        class: Class,
    ) -> LocalFuture<'_, Result<Segments, Error>> {
        Box::pin(async move {
            let mut found = self.memory.read(first, count, class).await?;
            let (bit, bits) = (self.bit.load(Ordering::Relaxed), 8 * 512);
            if let Some(flipped) = (bit / bits)
                .checked_sub(first)
                .and_then(|block| found.get_mut(usize::try_from(block).ok()?))
            {
                *flipped = flipped.with_flipped_bit(bit % bits);
            }
            Ok(found)
        })
    }

    fn write(&self, _: u64, _: Segments, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        panic!("who looks writes nothing")
    }

    fn trim(&self, _: u64, _: u64, _: Class) -> LocalFuture<'_, Result<(), Error>> {
        panic!("who looks writes nothing")
    }

    fn flush(&self) -> LocalFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }
}

/// A page, its content, and where its head and its data lie.
struct Known {
    at: PageId,
    content: u64,
    head: Range<u64>,
    data: Range<u64>,
}

struct Expected {
    infos: Vec<ExtentInfo>,
    pages: Vec<Known>,
}

/// One extent that is sealed, one that ended with a start, one that is appended to, and one that
/// was reset.
fn drive() -> (Arc<MemoryBlocks>, Expected) {
    let shape = BlocksShape { block_bytes: 512, blocks: BYTES / 512, parallelism: 1 };
    let memory = Arc::new(MemoryBlocks::new(shape));
    let format = Format { extent_bytes: Some(EXTENT_BYTES), ..FORMAT };
    let blocks = memory.clone();
    Reactor::new(None).run(async { Medium::format(blocks, format).await.expect("nothing fails") });
    let mut pages = Vec::new();
    let ended = on(memory.clone(), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(1)).expect("one is free");
        fill(&drive, extent, &[2, 3, 5], &mut pages).await;
        extent
    });
    on(memory.clone(), Durability::Group, async |drive| {
        let extents =
            [2, 3, 4].map(|epoch| Media::open(&*drive, label(epoch)).expect("one is free"));
        assert_eq!((ended, extents[0]), (ExtentId(0), ExtentId(1)));
        let summary = fill(&drive, extents[0], &[6, 7, 8, 9], &mut pages).await;
        drive.seal(extents[0], summary).await.expect("nothing fails");
        fill(&drive, extents[1], &[10, 11, 12, 13], &mut Vec::new()).await;
        drive.reset(extents[1], Class::Gc).await.expect("nothing fails");
        fill(&drive, extents[2], &[14, 15, 16, 17], &mut pages).await;
        let infos = Media::extents(&*drive);
        assert_eq!(infos.len(), 3);
        (memory.clone(), Expected { infos, pages })
    })
}

/// Appends pages one after the other, and returns the number of the last.
async fn fill(
    drive: &Arc<Medium>,
    extent: ExtentId,
    contents: &[u64],
    pages: &mut Vec<Known>,
) -> u32 {
    let (mut next, mut last, shape) = (0, 0, drive.shape());
    for content in contents {
        let content = *content;
        let page = page(content, &shape);
        let frames = shape.frames.expect("pages are frames");
        let spare_len = u32::try_from(page.spare().len()).expect("it is small");
        let number = u64::from(next);
        let start = 8_192 + u64::from(extent.0) * EXTENT_BYTES + 4_096 + number * 512;
        let data = start + u64::from(frames.head_units(spare_len) * 512);
        pages.push(Known {
            at: PageId { extent, page: next },
            content,
            head: start..start + 64 + u64::from(spare_len),
            data: data..data + u64::from(page.data_bytes()),
        });
        last = next;
        (_, next) = append(drive, extent, next, &[content]).await;
        assert_eq!(next, last + units(&page, &shape));
    }
    last
}

/// What a flip at `byte` did.
#[derive(Debug, Default)]
struct Told {
    pages: u32,
    summaries: u32,
    /// It looks as an interrupted write may have left it.
    interrupted: u32,
    nothing: u32,
}

async fn look(flipped: &Arc<Flipped>, expected: &Expected, byte: u64, told: &mut Told) {
    let drive = Medium::look(flipped.clone()).await;
    let drive = drive.unwrap_or_else(|error| panic!("byte {byte}: {error}"));
    let mut infos = Media::extents(&drive);
    let before = told.pages + told.summaries;
    // Nothing tells that the page appended last had landed.
    let last = expected.pages.last().expect("there are some");
    if last.data.contains(&byte) {
        let mut ends_before = expected.infos.clone();
        ends_before[2].pages = last.at.page;
        assert_eq!(infos, ends_before, "byte {byte}");
        told.interrupted += 1;
        return;
    }
    if infos != expected.infos {
        // Without its footer an extent is read through.
        infos[1].summary = expected.infos[1].summary;
        assert_eq!(infos, expected.infos, "byte {byte}");
        told.summaries += 1;
    }
    let numbers = expected.pages.iter().map(|known| known.at.page);
    let mut found = Vec::new();
    for info in &infos {
        found.extend(drive.pages(info.id).await.expect("nothing fails"));
    }
    assert_eq!(found, numbers.collect::<Vec<_>>(), "byte {byte}");
    for known in &expected.pages {
        let page = page(known.content, &drive.shape());
        // One bit tells what head and spare bytes were.
        let found = read(&drive, known.at, known.content).await.expect("it can be read");
        assert!(found.spare() == page.spare(), "byte {byte} harms {}", known.at);
        // Of data the log's own checksum tells.
        let is_harmed = data(&found) != data(&page);
        assert_eq!(is_harmed, known.data.contains(&byte), "byte {byte} harms {}", known.at);
    }
    // Whoever looks at all of it is told of either.
    for info in &infos {
        let mut from = Some(0);
        while let Some(first) = from {
            let swept = drive.sweep(info.id, first, Class::HostRead).await.expect("it can be read");
            for page in swept.pages.iter().filter(|page| !page.is_whole) {
                let at = PageId { extent: info.id, page: page.number };
                let is_it =
                    |known: &Known| known.head.contains(&byte) || known.data.contains(&byte);
                let known = expected.pages.iter().find(|known| known.at == at);
                assert!(known.is_some_and(is_it), "byte {byte} harms {at}");
                told.pages += 1;
            }
            from = swept.next;
        }
    }
    let harmed = told.pages + told.summaries - before;
    assert!(harmed <= 1, "byte {byte}");
    told.nothing += u32::from(harmed == 0);
    let is_content =
        expected.pages.iter().any(|page| page.head.contains(&byte) || page.data.contains(&byte));
    assert_eq!(harmed == 1, is_content || (told.summaries > 0 && is_footer(byte)), "byte {byte}");
}

/// The footer of the sealed extent.
fn is_footer(byte: u64) -> bool {
    let start = 8_192 + 2 * EXTENT_BYTES - 4_096;
    (start..start + 64).contains(&byte)
}

#[test]
fn any_flipped_bit_is_told_of_or_harms_nothing() {
    let (memory, expected) = drive();
    let flipped = Arc::new(Flipped { memory: memory.clone(), bit: AtomicU64::new(0) });
    let mut told = Told::default();
    let mut reactor = Reactor::new(None);
    let blocks = 0..BYTES / 512;
    let heads: Vec<bool> = reactor.run(async {
        let mut heads = Vec::new();
        for block in blocks {
            let found = memory.read(block, 1, Class::HostRead).await.unwrap();
            let bytes = found[0].bytes().unwrap();
            let is_ledger = [LEDGER, LEDGER + 4_096].contains(&(512 * block));
            let is_head = bytes[4..6] == [0x56, 0x44] || bytes.starts_with(b"KVASIRD\0");
            heads.push(is_head || is_ledger);
        }
        heads
    });
    // Frames, four of them in the extent that was reset, two marks of each extent, footers,
    // superblocks and ledgers.
    let count = heads.iter().filter(|is_head| **is_head).count();
    assert_eq!(count, expected.pages.len() + 4 + 2 * 4 + 2 + 2 + 2);
    for byte in 0..BYTES {
        let is_head = heads[usize::try_from(byte / 512).unwrap()];
        let bits = match byte % 512 {
            0..HEAD_BYTES if is_head => 0..8,
            _ if byte % 31 == 0 => byte % 8..byte % 8 + 1,
            _ => 0..0,
        };
        for bit in bits {
            flipped.bit.store(8 * byte + bit, Ordering::Relaxed);
            reactor.run(look(&flipped, &expected, byte, &mut told));
        }
    }
    assert!(told.pages > 5_000 && told.summaries == 512 && told.nothing > 5_000, "{told:?}");
    assert!(told.interrupted > 0, "{told:?}");
}
