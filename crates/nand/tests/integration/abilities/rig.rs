use base::{Buf, Nanos};
use clock::{Class, Group, LocalFuture, Stage, Stages, join_all, now, sleep_until, stages};
use media::Page;
use nand::{BlockId, Cells, DieId, FaultPlan, Geometry, Model, Nand, Ppa, Registers, Timing};
use reactor::Reactor;
use std::sync::Arc;

pub(crate) const READ: Nanos = Nanos::from_micros(45);
pub(crate) const PROGRAM: Nanos = Nanos::from_micros(660);
pub(crate) const ERASE: Nanos = Nanos::from_micros(3_500);
/// A page on the channel, at [`RATE`].
pub(crate) const PAGE: Nanos = Nanos::from_micros(20);
pub(crate) const PAGE_BYTES: u32 = 16_384;
pub(crate) const RATE: u64 = PAGE_BYTES as u64 * 50_000;

/// Two dies of four planes on one channel.
pub(crate) const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 2,
    planes_per_die: 4,
    blocks_per_plane: 8,
    pages_per_block: 512,
    page_bytes: PAGE_BYTES,
    spare_bytes: 1_024,
};

/// Nothing but reading, programming and erasing.
pub(crate) const PLAIN: Timing =
    Timing::uniform(Model::Staged, Registers::Single, READ, PROGRAM, ERASE, RATE);

/// The end of an operation, counted from the start of the test's part, and its stages.
pub(crate) type Done = (Nanos, Stages);

/// Runs `body` on an erased array.
pub(crate) fn on<T>(timing: Timing, body: impl AsyncFnOnce(Arc<Nand>) -> T) -> T {
    on_cells(Arc::new(Cells::new(GEOMETRY, 0, 0, 0)), timing, body)
}

pub(crate) fn on_cells<T>(
    cells: Arc<Cells>,
    timing: Timing,
    body: impl AsyncFnOnce(Arc<Nand>) -> T,
) -> T {
    Reactor::new(None).run(async {
        body(Arc::new(Nand::new(cells, timing, FaultPlan::default(), Group::new()))).await
    })
}

/// Page `page` of a block of die 0. Block `b` lies in plane `b % 4`.
pub(crate) fn ppa(block: u32, page: u32) -> Ppa {
    ppa_of(0, block, page)
}

pub(crate) fn ppa_of(die: u32, block: u32, page: u32) -> Ppa {
    Ppa { block: BlockId { die: DieId(die), block }, page }
}

pub(crate) fn page() -> Page {
    Page::new(&[1, 2, 3], [Buf::phantom(100, 7)])
}

/// The tag that the first page of a block has, and no other.
pub(crate) fn tag(at: Ppa) -> Option<[u8; 24]> {
    (at.page == 0).then_some([0; 24])
}

/// Puts a page into the cells' blocks 0 to 3, one in each plane of die 0.
pub(crate) async fn fill_planes(nand: &Nand) {
    for block in 0..4 {
        nand.program(ppa(block, 0), page(), tag(ppa(block, 0)), Class::HostWrite)
            .await
            .expect("good flash");
    }
}

/// An operation that begins at an instant of the test's part.
pub(crate) struct Step {
    at: Nanos,
    operation: LocalFuture<'static, ()>,
}

pub(crate) fn program(nand: &Arc<Nand>, at: Nanos, ppa: Ppa, class: Class) -> Step {
    let nand = nand.clone();
    let operation =
        Box::pin(
            async move { nand.program(ppa, page(), tag(ppa), class).await.expect("good flash") },
        );
    Step { at, operation }
}

/// A read of the whole page.
pub(crate) fn read(nand: &Arc<Nand>, at: Nanos, ppa: Ppa, class: Class) -> Step {
    let nand = nand.clone();
    let operation = Box::pin(async move {
        nand.read(ppa, &|_| PAGE_BYTES, class).await.expect("good flash");
    });
    Step { at, operation }
}

/// A sense without a transfer.
pub(crate) fn probe(nand: &Arc<Nand>, at: Nanos, ppa: Ppa, class: Class) -> Step {
    let nand = nand.clone();
    let operation = Box::pin(async move {
        nand.probe(ppa, class).await.expect("good flash");
    });
    Step { at, operation }
}

pub(crate) fn erase(nand: &Arc<Nand>, at: Nanos, block: u32, class: Class) -> Step {
    let nand = nand.clone();
    let block = ppa(block, 0).block;
    Step {
        at,
        operation: Box::pin(async move { nand.erase(block, class).await.expect("good flash") }),
    }
}

/// Runs `steps`, each from its instant.
pub(crate) async fn run(steps: impl IntoIterator<Item = Step>) -> Vec<Done> {
    let start = now();
    let timed = steps.into_iter().map(|Step { at, operation }| async move {
        sleep_until(start + at, Stage::Batch).await;
        let began = (now(), stages().total());
        operation.await;
        assert_eq!(stages().total() - began.1, now() - began.0, "stages add up");
        (now() - start, stages())
    });
    join_all(timed.collect()).await
}

/// Runs `steps` and returns when each was done.
pub(crate) async fn ends(steps: impl IntoIterator<Item = Step>) -> Vec<Nanos> {
    run(steps).await.into_iter().map(|(end, _)| end).collect()
}

/// `count` times `time`.
pub(crate) fn times(count: u64, time: Nanos) -> Nanos {
    Nanos(count * time.0)
}
