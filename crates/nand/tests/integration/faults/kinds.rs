//! What each kind of fault does.

use crate::faults::rig::{
    ERASE, MODELS, PROGRAM, READ, TAG, TRANSFER, array, block, cells, nth, on, page, ppa, program,
    read,
};
use clock::{Class, now};
use nand::{CopyError, EraseError, FaultKind, FaultRule, ProgramError, ReadError, When};
use reactor::Reactor;
use std::cell::Cell;

#[test]
fn an_uncorrectable_page_stays_so_until_its_block_is_erased() {
    for model in MODELS {
        let cells = cells();
        Reactor::new(None).run(async {
            let nand = array(&cells, model, &[nth(FaultKind::UncorrectableRead, 2)]);
            program(&nand, ppa(0, 0, 0), 1).await.unwrap();
            program(&nand, ppa(0, 0, 1), 2).await.unwrap();
            assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(1));
            for _ in 0..3 {
                assert_eq!(read(&nand, ppa(0, 0, 1)).await, Err(ReadError::Uncorrectable));
                assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(1));
            }
            let tried = nand.probe(ppa(0, 0, 1), Class::HostRead).await;
            assert_eq!(tried, Err(ReadError::Uncorrectable));
            assert_eq!(cells.unreadable(block(0, 0)), [1]);
            nand.erase(block(0, 0), Class::Gc).await.unwrap();
            program(&nand, ppa(0, 0, 0), 3).await.unwrap();
            program(&nand, ppa(0, 0, 1), 4).await.unwrap();
            assert_eq!(read(&nand, ppa(0, 0, 1)).await, Ok(4));
            assert_eq!(nand.faults().counts.uncorrectable_reads, 1);
        });
    }
}

#[test]
fn a_tag_outlives_the_first_page_of_its_block() {
    on(&[nth(FaultKind::UncorrectableRead, 1)], async |nand| {
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
        program(&nand, ppa(0, 0, 1), 2).await.unwrap();
        let tag = async |page| nand.read_tag(ppa(0, 0, page), Class::HostRead).await;
        assert_eq!(tag(0).await, Err(ReadError::Uncorrectable));
        assert_eq!(tag(1).await, Ok(Some(TAG)));
        assert_eq!(tag(2).await, Ok(None));
    });
}

#[test]
fn a_flipped_bit_is_silent_and_stays() {
    on(&[nth(FaultKind::FlippedBit, 2)], async |nand| {
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
        let read = async || nand.read(ppa(0, 0, 0), &|_| 0, Class::HostRead).await.unwrap();
        let [before, after, later] = [read().await, read().await, read().await];
        let bits = |page: &media::Page| (page.spare().to_vec(), page.segments()[0].crc32c());
        assert_ne!(bits(&before), bits(&after));
        assert_eq!(bits(&after), bits(&later));
        assert_eq!(nand.faults().counts.flipped_bits, 1);
    });
}

#[test]
fn select_is_asked_last_of_the_page_that_is_returned() {
    for model in MODELS {
        let cells = cells();
        Reactor::new(None).run(async {
            let nand = array(&cells, model, &[nth(FaultKind::FlippedBit, 1)]);
            program(&nand, ppa(0, 0, 0), 1).await.unwrap();
            let bits = |page: &media::Page| (page.spare().to_vec(), page.segments()[0].crc32c());
            let seen = Cell::new(None);
            let select = |page: &media::Page| {
                seen.set(Some(bits(page)));
                0
            };
            let page = nand.read(ppa(0, 0, 0), &select, Class::HostRead).await.unwrap();
            assert_eq!(nand.faults().counts.flipped_bits, 1);
            assert_eq!(seen.take(), Some(bits(&page)), "{model:?}");
        });
    }
}

#[test]
fn each_flip_is_of_a_bit_of_its_own() {
    let always = FaultRule::new(FaultKind::FlippedBit, When::Ppm(1_000_000));
    on(&[always], async |nand| {
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let page = nand.read(ppa(0, 0, 0), &|_| 0, Class::HostRead).await.unwrap();
            seen.insert((page.spare().to_vec(), page.segments()[0].crc32c()));
        }
        assert_eq!(seen.len(), 10, "none is turned back");
    });
}

#[test]
fn the_slowest_of_several_rules_counts() {
    let slow = |percent| FaultRule::new(FaultKind::SlowDie { percent }, When::Ppm(1_000_000));
    on(&[slow(200), slow(300), slow(150)], async |nand| {
        nand.erase(block(0, 0), Class::Gc).await.unwrap();
        assert_eq!(now(), base::Nanos(3 * ERASE.0));
    });
}

#[test]
fn a_page_without_bits_does_not_flip() {
    let always = FaultRule::new(FaultKind::FlippedBit, When::Ppm(1_000_000));
    on(&[always], async |nand| {
        let empty = media::Page::new(&[], []);
        nand.program(ppa(0, 0, 0), empty, Some(TAG), Class::HostWrite).await.unwrap();
        nand.read(ppa(0, 0, 0), &|_| 0, Class::HostRead).await.unwrap();
        assert_eq!(nand.faults().counts.total(), 0);
    });
}

#[test]
fn a_failed_program_uses_its_page_up_and_fails_those_behind_it() {
    for model in MODELS {
        let cells = cells();
        Reactor::new(None).run(async {
            let nand = array(&cells, model, &[nth(FaultKind::FailedProgram, 2)]);
            program(&nand, ppa(0, 0, 0), 1).await.unwrap();
            let start = now();
            assert_eq!(program(&nand, ppa(0, 0, 1), 2).await, Err(ProgramError::Failed));
            assert_eq!(now() - start, TRANSFER + PROGRAM);
            assert_eq!(cells.programmed(block(0, 0)), 2);
            assert_eq!(read(&nand, ppa(0, 0, 1)).await, Err(ReadError::Uncorrectable));
            assert_eq!(program(&nand, ppa(0, 0, 2), 3).await, Err(ProgramError::Failed));
            assert_eq!(cells.programmed(block(0, 0)), 2, "the one that failed is the last");
            assert_eq!(nand.faults().counts.total(), 1);
            assert!(!cells.is_bad(block(0, 0)));
            nand.erase(block(0, 0), Class::Gc).await.unwrap();
            program(&nand, ppa(0, 0, 0), 3).await.unwrap();
            assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(3));
        });
    }
}

#[test]
fn a_failed_erase_leaves_nothing_readable_and_nothing_blank() {
    for model in MODELS {
        let cells = cells();
        Reactor::new(None).run(async {
            let nand = array(&cells, model, &[nth(FaultKind::FailedErase, 1)]);
            program(&nand, ppa(0, 0, 0), 1).await.unwrap();
            let start = now();
            assert_eq!(nand.erase(block(0, 0), Class::Gc).await, Err(EraseError::Failed));
            assert_eq!(now() - start, ERASE);
            for page in 0..4 {
                let probe = nand.probe(ppa(0, 0, page), Class::HostRead).await;
                assert_eq!(probe, Err(ReadError::Uncorrectable));
            }
            assert_eq!(cells.erase_count(block(0, 0)), 0);
            nand.erase(block(0, 0), Class::Gc).await.unwrap();
            program(&nand, ppa(0, 0, 0), 2).await.unwrap();
            assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(2));
        });
    }
}

#[test]
fn a_bad_block_fails_for_good_and_keeps_what_it_holds() {
    let cells = cells();
    Reactor::new(None).run(async {
        let nand = array(&cells, nand::Model::Staged, &[nth(FaultKind::BadBlock, 2)]);
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
        for page in 1..4 {
            assert_eq!(program(&nand, ppa(0, 0, page), 2).await, Err(ProgramError::Failed));
        }
        assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(1));
        program(&nand, ppa(0, 1, 0), 3).await.unwrap();
        assert_eq!(nand.faults().counts.bad_blocks, 1);
        assert_eq!(nand.faults().counts.total(), 1);
    });
    Reactor::new(None).run(async {
        let nand = array(&cells, nand::Model::Staged, &[]);
        assert!(nand.may_fail(), "the cells are as they were");
        assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(1));
        for _ in 0..2 {
            assert_eq!(nand.erase(block(0, 0), Class::Gc).await, Err(EraseError::Failed));
        }
        nand.erase(block(0, 1), Class::Gc).await.unwrap();
        nand.retire(block(0, 0), Class::Gc).await.unwrap();
    });
    Reactor::new(None).run(async {
        assert!(!array(&cells, nand::Model::Staged, &[]).may_fail());
    });
}

#[test]
fn a_bad_block_may_be_found_by_an_erase() {
    on(&[nth(FaultKind::BadBlock, 1)], async |nand| {
        assert_eq!(nand.erase(block(1, 3), Class::Gc).await, Err(EraseError::Failed));
        assert_eq!(nand.erase(block(1, 3), Class::Gc).await, Err(EraseError::Failed));
        nand.erase(block(1, 4), Class::Gc).await.unwrap();
    });
}

#[test]
fn a_slow_die_takes_its_share_longer_in_the_array_and_not_on_the_channel() {
    let slow = FaultRule {
        die: Some(1),
        ..FaultRule::new(FaultKind::SlowDie { percent: 250 }, When::Ppm(1_000_000))
    };
    for model in MODELS {
        let cells = cells();
        Reactor::new(None).run(async {
            let nand = array(&cells, model, &[slow]);
            for (die, percent) in [(0, 100), (1, 250)] {
                let times = |time: base::Nanos| base::Nanos(time.0 * percent / 100);
                let start = now();
                program(&nand, ppa(die, 0, 0), 1).await.unwrap();
                assert_eq!(now() - start, TRANSFER + times(PROGRAM));
                let start = now();
                nand.read(ppa(die, 0, 0), &|_| u32::MAX, Class::HostRead).await.unwrap();
                assert_eq!(now() - start, times(READ) + TRANSFER);
                let start = now();
                let copied = nand.copyback(ppa(die, 0, 0), ppa(die, 2, 0), Some(TAG), Class::Gc);
                copied.await.unwrap();
                assert_eq!(now() - start, times(READ + PROGRAM));
                let start = now();
                nand.erase(block(die, 0), Class::Gc).await.unwrap();
                assert_eq!(now() - start, times(ERASE));
            }
            assert_eq!(nand.faults().counts.slow_steps, 4);
        });
    }
}

#[test]
fn a_copy_fails_as_its_read_or_as_its_program() {
    let rules = [nth(FaultKind::UncorrectableRead, 1), nth(FaultKind::FailedProgram, 3)];
    on(&rules, async |nand| {
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
        program(&nand, ppa(0, 0, 1), 2).await.unwrap();
        let copy = async |from, to, tag| {
            nand.copyback(ppa(0, 0, from), ppa(0, 2, to), tag, Class::Gc).await
        };
        assert_eq!(copy(0, 0, Some(TAG)).await, Err(CopyError::Uncorrectable));
        assert_eq!(nand.cells().programmed(block(0, 2)), 0);
        assert_eq!(copy(1, 0, Some(TAG)).await, Err(CopyError::Failed));
        assert_eq!(nand.cells().programmed(block(0, 2)), 1);
        assert_eq!(read(&nand, ppa(0, 2, 0)).await, Err(ReadError::Uncorrectable));
        assert_eq!(copy(1, 1, None).await, Err(CopyError::Failed));
        assert_eq!(nand.cells().programmed(block(0, 2)), 1);
    });
}

#[test]
fn a_page_programmed_as_unreadable_keeps_its_place_and_the_tag() {
    on(&[], async |nand| {
        nand.program_unreadable(ppa(0, 0, 0), Some(TAG), Class::Gc).await.unwrap();
        nand.program(ppa(0, 0, 1), page(1), None, Class::Gc).await.unwrap();
        assert_eq!(read(&nand, ppa(0, 0, 0)).await, Err(ReadError::Uncorrectable));
        assert_eq!(nand.read_tag(ppa(0, 0, 1), Class::HostRead).await, Ok(Some(TAG)));
        assert_eq!(nand.faults().counts.total(), 0);
    });
}

#[test]
fn a_retired_block_is_bad_and_can_be_read() {
    on(&[], async |nand| {
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
        let start = now();
        nand.retire(block(0, 0), Class::Gc).await.unwrap();
        assert_eq!(now() - start, PROGRAM);
        assert_eq!(read(&nand, ppa(0, 0, 0)).await, Ok(1));
        let cells = nand.cells();
        assert!(cells.is_bad(block(0, 0)) && !cells.came_bad(block(0, 0)));
        assert_eq!(cells.retired_blocks(), 1);
    });
}

#[test]
#[should_panic(expected = "the block was retired")]
fn programming_a_retired_block_panics() {
    on(&[], async |nand| {
        nand.retire(block(0, 0), Class::Gc).await.unwrap();
        program(&nand, ppa(0, 0, 0), 1).await.unwrap();
    });
}

#[test]
#[should_panic(expected = "a slow die takes at least 100 per cent, not 99")]
fn a_slow_die_that_is_fast_panics() {
    on(&[nth(FaultKind::SlowDie { percent: 99 }, 1)], async |_| ());
}
