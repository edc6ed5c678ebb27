use crate::abilities::rig::{
    PAGE, PAGE_BYTES, PLAIN, PROGRAM, READ, ends, fill_planes, on, ppa, program, read, times,
};
use base::Nanos;
use clock::{Class, now};
use nand::{Model, Registers, Timing};

const BUSY: Nanos = Nanos(2_503);
const START: Nanos = Nanos::ZERO;

/// A channel on which a page takes `PAGE * slower`.
fn cached(slower: u64) -> Timing {
    let channel_bytes_per_second = PLAIN.channel_bytes_per_second / slower;
    let registers = Registers::Double;
    Timing { registers, cache_busy: BUSY, channel_bytes_per_second, ..PLAIN }
}

fn reads(timing: Timing) -> Vec<Nanos> {
    on(timing, async |nand| {
        fill_planes(&nand).await;
        ends((0..20).map(|_| read(&nand, START, ppa(0, 0), Class::HostRead))).await
    })
}

fn programs(timing: Timing) -> Vec<Nanos> {
    on(timing, async |nand| {
        ends((0..20).map(|page| program(&nand, START, ppa(0, page), Class::HostWrite))).await
    })
}

/// The first takes all its steps, and each further one the slower of the two.
fn overlapped(array: Nanos, channel: Nanos) -> Vec<Nanos> {
    (0..20).map(|n| array + channel + times(n, array.max(channel))).collect()
}

#[test]
fn cache_reads_sense_the_next_page_while_one_moves() {
    for slower in [1, 4] {
        let formula = overlapped(READ + BUSY, times(slower, PAGE));
        assert_eq!(reads(cached(slower)), formula);
        let scalar = reads(Timing { model: Model::Scalar, ..cached(slower) });
        assert_ne!(scalar, formula);
        assert_eq!(scalar, overlapped(READ, times(slower, PAGE)), "it knows no copy");
    }
}

#[test]
fn cache_programs_take_the_next_page_while_one_is_programmed() {
    for slower in [1, 40] {
        let formula = overlapped(PROGRAM + BUSY, times(slower, PAGE));
        assert_eq!(programs(cached(slower)), formula);
    }
}

#[test]
fn with_one_register_there_is_nothing_to_copy() {
    let timing = Timing { registers: Registers::Single, ..cached(1) };
    let formula: Vec<Nanos> = (1..=20).map(|n| times(n, READ + PAGE)).collect();
    assert_eq!(reads(timing), formula);
}

#[test]
fn reads_move_whole_transfers() {
    on(Timing { transfer_bytes: 3_000, ..PLAIN }, async |nand| {
        fill_planes(&nand).await;
        let moved = [(0, 0), (1, 3_000), (3_000, 3_000), (3_001, 6_000), (15_001, PAGE_BYTES)];
        for (wanted, moved) in moved.into_iter().chain([(u32::MAX, PAGE_BYTES)]) {
            let (start, before) = (now(), nand.counters().bytes_read);
            nand.read(ppa(0, 0), &|_| wanted, Class::HostRead).await.unwrap();
            let channel = (u64::from(moved) * PAGE.0).div_ceil(u64::from(PAGE_BYTES));
            assert_eq!(now() - start, READ + Nanos(channel));
            assert_eq!(nand.counters().bytes_read - before, u64::from(moved));
        }
    });
}
