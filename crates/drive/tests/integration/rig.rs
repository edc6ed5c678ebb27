//! A small drive, and pages that tell what they are.

use crate::once::Once;
use base::{Buf, Rng};
use clock::{Class, join_all};
use drive::{Durability, Format, Medium};
use media::{
    Blocks, BlocksShape, Error, ExtentId, Label, Media, MemoryBlocks, OnDisk, Page, PageId, Shape,
    Span, Stream,
};
use reactor::Reactor;
use std::sync::Arc;

pub(crate) const EXTENT_BYTES: u64 = 64 << 10;
pub(crate) const EXTENTS: u32 = 5;
pub(crate) const SECRET: [u8; 16] = *b"nobody is told i";
pub(crate) const ID: [u8; 16] = *b"the drive's id. ";

/// Bytes of a unit.
pub(crate) const UNIT: u32 = 512;

/// Blocks for a drive of `extents`, and a few more than it needs.
pub(crate) fn memory(block_bytes: u32, extents: u32) -> Arc<MemoryBlocks> {
    let bytes = 8_192 + u64::from(extents) * EXTENT_BYTES + 4_096 + 3 * 4_096;
    let blocks = bytes / u64::from(block_bytes);
    let shape = BlocksShape { block_bytes, blocks, parallelism: 4 };
    Arc::new(MemoryBlocks::new(shape))
}

pub(crate) const FORMAT: Format =
    Format { id: ID, secret: SECRET, extent_bytes: Some(EXTENT_BYTES) };

/// Blocks with an empty drive.
pub(crate) fn formatted(block_bytes: u32, extents: u32) -> Arc<MemoryBlocks> {
    let memory = memory(block_bytes, extents);
    let blocks = memory.clone();
    Reactor::new(None).run(async { Medium::format(blocks, FORMAT).await.expect("nothing fails") });
    memory
}

/// Runs `body` on the drive that `blocks` hold, of extents of the usual size, and sees to it that
/// it writes no block of frames twice.
pub(crate) fn on<T>(
    blocks: Arc<dyn Blocks>,
    durability: Durability,
    body: impl AsyncFnOnce(Arc<Medium>) -> T,
) -> T {
    Reactor::new(None).run(async {
        let blocks = Arc::new(Once::new(blocks, EXTENT_BYTES));
        let drive = Medium::open(blocks, durability).await.expect("nothing fails");
        body(Arc::new(drive)).await
    })
}

pub(crate) fn label(epoch: u64) -> Label {
    let stream = if epoch.is_multiple_of(2) { Stream::Host } else { Stream::Gc };
    Label { stream, epoch }
}

/// A page of any size, made of `content`.
pub(crate) fn page(content: u64, shape: &Shape) -> Page {
    let mut rng = Rng::new(content);
    let longest = u64::from(shape.page_bytes);
    let bound = [1, 100, 3_000, longest][usize::try_from(rng.below(4)).expect("a small number")];
    let len = if rng.below(20) == 0 { longest } else { rng.below(bound) };
    let spare = if rng.below(10) == 0 { u64::from(shape.spare_bytes) } else { rng.below(300) };
    let mut bytes = vec![0; usize::try_from(len).expect("it is small")];
    let mut spare = vec![0; usize::try_from(spare).expect("it is small")];
    rng.fill(&mut bytes);
    rng.fill(&mut spare);
    let half = bytes.len() / 2;
    Page::new(&spare, [Buf::copy_from(&bytes[..half]), Buf::copy_from(&bytes[half..])])
}

/// All bytes of the data.
pub(crate) fn data(page: &Page) -> Vec<u8> {
    page.segments().iter().flat_map(|part| part.bytes().expect("it is real").to_vec()).collect()
}

/// Units of a page.
pub(crate) fn units(page: &Page, shape: &Shape) -> u32 {
    shape.numbers(u32::try_from(page.spare().len()).expect("it is small"), page.data_bytes())
}

/// Reads the page of `content`, with as many units as it has.
pub(crate) async fn read(drive: &Medium, at: PageId, content: u64) -> Result<Page, Error> {
    let shape = drive.shape();
    let units = units(&page(content, &shape), &shape);
    drive.read(Span { at, units }, &|_| 0, Class::HostRead).await
}

pub(crate) async fn assert_holds(drive: &Medium, at: PageId, content: u64) {
    let expected = page(content, &drive.shape());
    let found = read(drive, at, content).await;
    let found = found.unwrap_or_else(|error| panic!("{at}: {error}"));
    assert!(found.spare() == expected.spare(), "{at} has its spare bytes");
    assert!(data(&found) == data(&expected), "{at} has its data");
}

/// Appends pages at once from unit `first` on, and returns their numbers and where they end.
pub(crate) async fn append(
    drive: &Arc<Medium>,
    extent: ExtentId,
    first: u32,
    contents: &[u64],
) -> (Vec<u32>, u32) {
    let shape = drive.shape();
    let (mut numbers, mut next) = (Vec::new(), first);
    let appends = contents.iter().map(|content| {
        let page = page(*content, &shape);
        let at = PageId { extent, page: next };
        let at = PageId { page: drive.place(at, true), ..at };
        numbers.push(at.page);
        next = at.page + units(&page, &shape);
        let drive = drive.clone();
        async move { drive.append(at, page, Class::HostWrite).await.expect("nothing fails") }
    });
    join_all(appends.collect()).await;
    (numbers, next)
}
