//! What the cells hold and when, and what they refuse.

use base::{Buf, Nanos};
use clock::{Class, Group};
use media::Page;
use nand::{BlockId, Cells, DieId, FaultPlan, Geometry, Model, Nand, Ppa, Registers, Timing};
use reactor::Reactor;
use std::sync::Arc;

const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 2,
    planes_per_die: 2,
    blocks_per_plane: 500,
    pages_per_block: 4,
    page_bytes: 4_096,
    spare_bytes: 64,
};

/// One nanosecond a byte: a page takes 4096 ns to transfer.
const TIMING: Timing = Timing::uniform(
    Model::Staged,
    Registers::Single,
    READ,
    Nanos(10_000),
    Nanos(50_000),
    1_000_000_000,
);
const READ: Nanos = Nanos(1_000);

const BLOCK: BlockId = BlockId { die: DieId(1), block: 7 };
const TAG: [u8; 24] = [5; 24];

fn page(tag: u64) -> Page {
    let data = [Buf::phantom(1_000, tag), Buf::copy_from(b"bytes")];
    Page::new(&[1, 2, 3], data)
}

fn ppa(page: u32) -> Ppa {
    Ppa { block: BLOCK, page }
}

fn array(cells: &Arc<Cells>, model: Model) -> Nand {
    Nand::new(cells.clone(), Timing { model, ..TIMING }, FaultPlan::default(), Group::new())
}

/// Runs `body` on an erased array without bad blocks.
fn on(body: impl AsyncFnOnce(Arc<Nand>)) {
    let cells = Arc::new(Cells::new(GEOMETRY, 0, 0, 0));
    Reactor::new(None).run(async { body(Arc::new(array(&cells, Model::Staged))).await });
}

async fn program(nand: &Nand, number: u32) {
    let tag = (number == 0).then_some(TAG);
    let page = page(u64::from(number));
    nand.program(ppa(number), page, tag, Class::HostWrite).await.expect("good flash");
}

#[test]
fn pages_read_back_as_programmed_until_their_block_is_erased() {
    on(async |nand| {
        assert_eq!(nand.read_tag(ppa(0), Class::HostRead).await.unwrap(), None);
        for number in 0..4 {
            assert!(!nand.probe(ppa(number), Class::HostRead).await.unwrap());
            program(&nand, number).await;
            assert!(nand.probe(ppa(number), Class::HostRead).await.unwrap());
        }
        for number in 0..4 {
            let page = nand.read(ppa(number), &Page::data_bytes, Class::HostRead).await.unwrap();
            assert_eq!(page.segments()[0].checksum(), u64::from(number));
            assert_eq!(*page.spare(), [1, 2, 3]);
        }
        assert_eq!(nand.read_tag(ppa(0), Class::HostRead).await.unwrap(), Some(TAG));
        nand.erase(BLOCK, Class::Gc).await.unwrap();
        assert_eq!((nand.cells().programmed(BLOCK), nand.cells().erase_count(BLOCK)), (0, 1));
        assert_eq!(nand.read_tag(ppa(0), Class::HostRead).await.unwrap(), None);
        program(&nand, 0).await;
    });
}

#[test]
fn a_read_moves_the_bytes_chosen_from_what_was_sensed_and_at_most_a_page() {
    on(async |nand| {
        program(&nand, 0).await;
        for (wanted, moved) in [(0, 0), (1_005, 1_005), (u32::MAX, 4_096)] {
            let (start, before) = (clock::now(), nand.counters().bytes_read);
            let select = |page: &Page| if *page.spare() == [1, 2, 3] { wanted } else { 7 };
            nand.read(ppa(0), &select, Class::HostRead).await.unwrap();
            assert_eq!(nand.counters().bytes_read - before, moved);
            assert_eq!(clock::now() - start, READ + Nanos(moved));
        }
    });
}

#[test]
fn a_flipped_bit_is_in_every_part_of_the_page_in_turn() {
    on(async |nand| {
        program(&nand, 0).await;
        let before = nand.read(ppa(0), &|_| 0, Class::HostRead).await.unwrap();
        let mut differs = [0; 3];
        for which in 0..30 {
            nand.cells().flip_bit(ppa(0), which);
            let page = nand.read(ppa(0), &|_| 0, Class::HostRead).await.unwrap();
            let flipped = [
                page.segments()[0].crc32c() != before.segments()[0].crc32c(),
                page.segments()[1].crc32c() != before.segments()[1].crc32c(),
                page.spare() != before.spare(),
            ];
            assert_eq!(flipped.iter().filter(|part| **part).count(), 1);
            (0..3).for_each(|part| differs[part] += u32::from(flipped[part]));
            nand.cells().flip_bit(ppa(0), which);
        }
        assert_eq!(differs, [10, 10, 10]);
    });
}

#[test]
fn factory_bad_blocks_come_from_the_rate_and_the_seed() {
    let bad = |ppm, seed| -> Vec<BlockId> {
        let cells = Cells::new(GEOMETRY, ppm, 0, seed);
        let blocks = (0..2_000).map(|n| BlockId { die: DieId(n % 2), block: n / 2 });
        blocks.filter(|block| cells.is_bad(*block)).collect()
    };
    assert_eq!(bad(0, 1).len(), 0);
    assert_eq!(bad(1_000_000, 1).len(), 2_000);
    assert!((150..250).contains(&bad(100_000, 1).len()));
    assert_eq!(bad(100_000, 1), bad(100_000, 1));
    assert_ne!(bad(100_000, 1), bad(100_000, 2));
}

#[test]
fn the_least_worn_block_is_the_first_of_those_with_fewest_erases() {
    on(async |nand| {
        for block in [0, 0, 1] {
            nand.erase(BlockId { die: DieId(0), block }, Class::Gc).await.unwrap();
        }
        let least = |blocks: &[u32]| nand.cells().least_worn(DieId(0), blocks.iter().copied());
        assert_eq!(least(&[0, 1]), Some(1));
        assert_eq!(least(&[0, 3, 1, 2]), Some(3));
        assert_eq!(least(&[]), None);
    });
}

#[test]
#[should_panic(expected = "page 1 of block 7 of die 1 cannot be programmed before page 0")]
fn programming_out_of_order_panics() {
    on(async |nand| program(&nand, 1).await);
}

#[test]
#[should_panic(expected = "cannot be programmed again before the block is erased")]
fn programming_a_page_twice_panics() {
    on(async |nand| {
        program(&nand, 0).await;
        program(&nand, 0).await;
    });
}

#[test]
#[should_panic(expected = "page 1 of block 7 of die 1 was never programmed, so it cannot be read")]
fn reading_an_unwritten_page_panics() {
    on(async |nand| {
        program(&nand, 0).await;
        nand.read(ppa(1), &|_| 0, Class::HostRead).await.unwrap();
    });
}

#[test]
#[should_panic(expected = "the block is bad")]
fn programming_a_bad_block_panics() {
    let cells = Arc::new(Cells::new(GEOMETRY, 1_000_000, 0, 0));
    Reactor::new(None).run(async { program(&array(&cells, Model::Staged), 0).await });
}

#[test]
#[should_panic(expected = "cannot be erased: it is bad")]
fn erasing_a_bad_block_panics() {
    let cells = Arc::new(Cells::new(GEOMETRY, 1_000_000, 0, 0));
    Reactor::new(None)
        .run(async { array(&cells, Model::Scalar).erase(BLOCK, Class::Gc).await.unwrap() });
}

#[test]
#[should_panic(expected = "block 1000 of die 1 lies outside")]
fn a_block_outside_the_geometry_panics() {
    on(async |nand| nand.erase(BlockId { die: DieId(1), block: 1_000 }, Class::Gc).await.unwrap());
}

#[test]
#[should_panic(expected = "page 4 of block 7 of die 1 lies outside")]
fn a_page_outside_the_geometry_panics() {
    on(async |nand| program(&nand, 4).await);
}

#[test]
#[should_panic(expected = "only a first page has one")]
fn a_first_page_without_a_tag_panics() {
    on(async |nand| nand.program(ppa(0), page(0), None, Class::HostWrite).await.unwrap());
}

#[test]
#[should_panic(expected = "has no room for its spare bytes")]
fn spare_bytes_that_leave_no_room_for_the_tag_panic() {
    on(async |nand| {
        let page = Page::new(&[0; 41], []);
        nand.program(ppa(0), page, Some(TAG), Class::HostWrite).await.unwrap();
    });
}

#[test]
#[should_panic(expected = "has no room for its data")]
fn more_data_than_a_page_panics() {
    on(async |nand| {
        let page = Page::new(&[], [Buf::phantom(4_097, 0)]);
        nand.program(ppa(0), page, Some(TAG), Class::HostWrite).await.unwrap();
    });
}
