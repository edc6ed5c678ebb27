//! At queue depth 1, and within one command, times have closed forms.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{CHANNEL_BYTES_PER_SECOND, GEOMETRY, PROGRAM, READ, cells, config};
use base::{Nanos, Rng};
use clock::{Class, Stage, join_all, now, stages};
use ftl::{PageFtl, WriteAck};
use media::Blocks;
use std::sync::Arc;

fn transfer(bytes: u64) -> Nanos {
    Nanos::for_bytes(bytes, CHANNEL_BYTES_PER_SECOND)
}

async fn write(ftl: &PageFtl, first: u64, count: u64) -> Nanos {
    let start = now();
    let contents: Vec<Content> = (1..=count).map(Content::numbered).collect();
    let data = Content::data(&contents, &mut Rng::new(1));
    ftl.write(first, data, Class::HostWrite).await.expect("nothing fails");
    now() - start
}

async fn read(ftl: &PageFtl, first: u64, count: u32) -> Nanos {
    let start = now();
    ftl.read(first, count, Class::HostRead).await.expect("nothing fails");
    now() - start
}

#[test]
fn a_write_takes_the_program_of_a_whole_page_and_a_read_moves_what_is_wanted() {
    let cells = cells(GEOMETRY);
    config(&cells).on_blank(&cells, async |ftl, nand| {
        let page = transfer(16_384) + PROGRAM;
        for block in 0..5 {
            let before = stages();
            assert_eq!(write(&ftl, block, 1).await, page, "padded");
            let spent = stages();
            assert_eq!(spent[Stage::Array] - before[Stage::Array], PROGRAM);
            assert_eq!(spent[Stage::Channel] - before[Stage::Channel], transfer(16_384));
        }
        assert_eq!(nand.counters().programs, 5);
        assert_eq!(read(&ftl, 3, 1).await, READ + transfer(4_096));
        assert_eq!(read(&ftl, 100, 9).await, Nanos::ZERO, "never written");
        // A page on each of two dies, then on the other planes of the same dies.
        assert_eq!(write(&ftl, 40, 8).await, page);
        assert_eq!(write(&ftl, 80, 16).await, transfer(16_384) + PROGRAM + PROGRAM);
        let reads = nand.counters().reads;
        assert_eq!(read(&ftl, 40, 4).await, READ + transfer(16_384), "one page");
        assert_eq!(nand.counters().reads, reads + 1);
        assert_eq!(read(&ftl, 42, 4).await, READ + transfer(8_192), "two dies side by side");
        assert_eq!(read(&ftl, 36, 5).await, READ + transfer(4_096), "with what is not there");
        // Trimmed blocks take no flash time.
        ftl.trim(40, 3, Class::HostWrite).await.expect("nothing fails");
        assert_eq!(read(&ftl, 40, 3).await, Nanos::ZERO);
        assert_eq!(ftl.flush().await, Ok(()));
    });
}

#[test]
fn writes_of_one_instant_share_a_page() {
    let cells = cells(GEOMETRY);
    config(&cells).on_blank(&cells, async |ftl, nand| {
        let writes = (0..4).map(|block| {
            let ftl: Arc<PageFtl> = ftl.clone();
            async move { write(&ftl, block * 7, 1).await }
        });
        let page = transfer(16_384) + PROGRAM;
        assert_eq!(join_all(writes.collect()).await, [page; 4]);
        assert_eq!(nand.counters().programs, 1);
    });
}

#[test]
fn a_buffer_answers_at_once_while_it_has_room() {
    let cells = cells(GEOMETRY);
    let mut setup = config(&cells);
    setup.config.ack = WriteAck::Buffer { bytes: 8 * 4_096 };
    setup.on_blank(&cells, async |ftl, nand| {
        assert_eq!(write(&ftl, 0, 3).await, Nanos::ZERO);
        assert_eq!(read(&ftl, 0, 3).await, Nanos::ZERO, "from memory");
        assert_eq!(nand.counters().programs, 0, "the page is not full");
        let start = now();
        ftl.flush().await.expect("nothing fails");
        assert_eq!(now() - start, transfer(16_384) + PROGRAM);
        assert_eq!(read(&ftl, 0, 3).await, READ + transfer(3 * 4_096));
        assert_eq!(write(&ftl, 10, 8).await, Nanos::ZERO, "two pages under way fill it");
        let before = stages();
        assert_eq!(write(&ftl, 30, 1).await, transfer(16_384) + PROGRAM, "for credit");
        assert_eq!(stages()[Stage::Queue] - before[Stage::Queue], transfer(16_384) + PROGRAM);
    });
}
