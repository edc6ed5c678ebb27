use crate::abilities::rig::{GEOMETRY, PAGE, PLAIN, PROGRAM, READ, on_cells, page, ppa_of, tag};
use base::Nanos;
use clock::{Class, now};
use nand::{BlockId, Cells, DieId, Ppa, Retries, Timing};
use std::sync::Arc;

/// Pages of each block that are used.
const PAGES: u32 = 64;

fn blocks() -> impl Iterator<Item = BlockId> {
    let dies = (0..GEOMETRY.dies()).map(DieId);
    dies.flat_map(|die| (0..GEOMETRY.blocks_per_die()).map(move |block| BlockId { die, block }))
}

fn pages() -> impl Iterator<Item = Ppa> {
    blocks().flat_map(|block| (0..PAGES).map(move |page| Ppa { block, page }))
}

/// The program time and the sense time of each of [`pages`], and the retries counted.
fn measured(cells: Arc<Cells>, timing: Timing) -> (Vec<[Nanos; 2]>, u64) {
    on_cells(cells, timing, async |nand| {
        let mut times = Vec::new();
        for at in pages() {
            let start = now();
            nand.program(at, page(), tag(at), Class::HostWrite).await.expect("good flash");
            let programmed = now();
            nand.read(at, &|_| 0, Class::HostRead).await.expect("good flash");
            times.push([programmed - start - PAGE, now() - programmed]);
        }
        (times, nand.counters().retries)
    })
}

fn worn(cycles: u32) -> Arc<Cells> {
    Arc::new(Cells::new(GEOMETRY, 0, cycles, 5))
}

#[test]
fn reads_of_worn_blocks_sense_again_as_often_as_the_line_says() {
    let retries = Retries { fresh_ppm: 250_000, worn_ppm: 2_750_000, endurance: 3_000 };
    for cycles in [0, 1_000, 3_000, 6_000] {
        let cells = worn(cycles);
        let mean = |block| {
            let erases = f64::from(cells.erase_count(block));
            0.25 + 2.5 * erases / 3_000.0
        };
        let expected: f64 = pages().map(|at| mean(at.block)).sum();
        let (times, counted) = measured(cells.clone(), Timing { retries, seed: 3, ..PLAIN });
        let mut further = 0;
        for (at, [_, sensed]) in pages().zip(&times) {
            assert_eq!(sensed.0 % READ.0, 0, "whole senses");
            let more = sensed.0 / READ.0 - 1;
            let more = u32::try_from(more).expect("few senses");
            let mean = mean(at.block);
            let whole = mean.floor()..=mean.ceil();
            assert!(whole.contains(&f64::from(more)), "{more} of {mean}");
            further += more;
        }
        assert_eq!(counted, u64::from(further));
        let ratio = f64::from(further) / expected;
        assert!((ratio - 1.0).abs() < 0.06, "{further} and not {expected} at {cycles}");
    }
}

#[test]
fn each_erase_brings_a_block_further_along_the_line() {
    let retries = Retries { fresh_ppm: 0, worn_ppm: 5_000_000, endurance: 5 };
    on_cells(worn(0), Timing { retries, ..PLAIN }, async |nand| {
        let at = ppa_of(1, 2, 0);
        for erases in 0..8 {
            nand.program(at, page(), tag(at), Class::HostWrite).await.expect("good flash");
            let start = now();
            nand.read(at, &|_| 0, Class::HostRead).await.expect("good flash");
            assert_eq!(now() - start, Nanos((1 + erases) * READ.0), "beyond its end too");
            let start = now();
            nand.copyback(at, ppa_of(1, 6, 0), Some([0; 24]), Class::Gc).await.expect("good flash");
            assert_eq!(now() - start, Nanos((1 + erases) * READ.0) + PROGRAM);
            nand.erase(at.block, Class::Gc).await.expect("good flash");
            nand.erase(ppa_of(1, 6, 0).block, Class::Gc).await.expect("good flash");
        }
        assert_eq!(nand.counters().retries, 2 * (0..8).sum::<u64>());
    });
}

#[test]
fn blocks_that_were_used_before_differ_in_wear() {
    let erases = |cells: &Cells| -> Vec<u32> { blocks().map(|b| cells.erase_count(b)).collect() };
    assert!(erases(&worn(0)).iter().all(|erases| *erases == 0));
    let big = nand::Geometry { blocks_per_plane: 2_000, ..GEOMETRY };
    let cells = Cells::new(big, 200_000, 1_001, 5);
    let blocks = (0..8_000).map(|block| BlockId { die: DieId(1), block });
    let counts: Vec<u32> = blocks.clone().map(|block| cells.erase_count(block)).collect();
    assert_eq!((counts.iter().min(), counts.iter().max()), (Some(&500), Some(&1_501)));
    let mean = f64::from(counts.iter().sum::<u32>()) / 8_000.0;
    assert!((mean - 1_000.5).abs() < 15.0, "{mean}");
    let unused = Cells::new(big, 200_000, 0, 5);
    assert!(blocks.clone().all(|block| cells.is_bad(block) == unused.is_bad(block)));
}

/// By how many millionths a time is off.
fn off(time: Nanos, from: Nanos) -> i64 {
    let signed = |time: Nanos| i64::try_from(time.0).expect("a short time");
    (signed(time) - signed(from)) * 1_000_000 / signed(from)
}

#[test]
fn pages_differ_by_die_and_by_page_within_the_bound() {
    let most = 80_000;
    let timing = Timing { variability_ppm: 80_000, seed: 4, ..PLAIN };
    let (times, _) = measured(worn(0), timing);
    let of_die = (GEOMETRY.blocks_per_die() * PAGES) as usize;
    let mut middles = Vec::new();
    for die in times.chunks(of_die) {
        let offs: Vec<i64> = die.iter().map(|[program, _]| off(*program, PROGRAM)).collect();
        let (least, greatest) =
            (offs.iter().min().expect("good flash"), offs.iter().max().unwrap());
        assert!(-most <= *least && *greatest <= most);
        assert!(greatest - least <= most && greatest - least > most * 9 / 10, "half is the page's");
        middles.push((least + greatest) / 2);
        for [program, sense] in die {
            assert!((off(*program, PROGRAM) - off(*sense, READ)).abs() <= 23, "to a nanosecond");
        }
    }
    assert!((middles[0] - middles[1]).abs() > most / 100, "half is the die's: {middles:?}");
    assert!(middles.iter().all(|middle| middle.abs() <= most / 2 + most / 20));
}

#[test]
fn the_speed_of_a_page_is_constant_and_comes_from_the_seed() {
    let timing = Timing { variability_ppm: 80_000, seed: 4, ..PLAIN };
    let (times, _) = measured(worn(0), timing);
    assert_eq!(measured(worn(900), timing).0, times, "wear does not change it");
    assert_ne!(measured(worn(0), Timing { seed: 5, ..timing }).0, times);
    let (same, _) = measured(worn(0), Timing { seed: 4, ..PLAIN });
    assert!(same.iter().all(|time| *time == [PROGRAM, READ]), "without variability all are alike");
}
