use crate::abilities::rig::{
    ERASE, PAGE, PLAIN, PROGRAM, READ, ends, erase, fill_planes, on, ppa, probe, program, read,
    times,
};
use base::Nanos;
use clock::Class;
use nand::{Model, Planes, Timing};

const TOGETHER: Timing = Timing { planes: Planes::Together, ..PLAIN };
const INDEPENDENT: Timing = Timing { planes: Planes::Independent, ..PLAIN };
const SCALAR: Timing = Timing { model: Model::Scalar, ..TOGETHER };
const START: Nanos = Nanos::ZERO;

/// Returns when simultaneous programs of one page in each of `planes` planes are done.
fn programs(timing: Timing, planes: u32) -> Vec<Nanos> {
    on(timing, async |nand| {
        let each = |block| program(&nand, START, ppa(block, 0), Class::HostWrite);
        ends((0..planes).map(each)).await
    })
}

/// Returns the same for reads.
fn reads(timing: Timing, planes: u32) -> Vec<Nanos> {
    on(timing, async |nand| {
        fill_planes(&nand).await;
        ends((0..planes).map(|block| read(&nand, START, ppa(block, 0), Class::HostRead))).await
    })
}

#[test]
fn planes_program_in_one_program_time() {
    for planes in 1..=4 {
        let n = u64::from(planes);
        let formula = vec![times(n, PAGE) + PROGRAM; planes as usize];
        assert_eq!(programs(TOGETHER, planes), formula);
        if planes > 1 {
            assert_ne!(programs(SCALAR, planes), formula);
        }
    }
}

#[test]
fn planes_sense_in_one_read_time() {
    for planes in 1..=4 {
        let formula: Vec<Nanos> = (1..=u64::from(planes)).map(|n| READ + times(n, PAGE)).collect();
        assert_eq!(reads(TOGETHER, planes), formula);
        if planes > 1 {
            assert_ne!(reads(SCALAR, planes), formula);
        }
    }
}

#[test]
fn planes_of_a_die_with_one_array_take_turns() {
    let formula: Vec<Nanos> = (1..=4).map(|n| times(n, PAGE + PROGRAM)).collect();
    assert_eq!(programs(PLAIN, 4), formula);
    let formula: Vec<Nanos> = (1..=4).map(|n| times(n, READ + PAGE)).collect();
    assert_eq!(reads(PLAIN, 4), formula);
}

#[test]
fn operations_that_wait_for_the_array_start_together_when_it_is_free() {
    on(TOGETHER, async |nand| {
        fill_planes(&nand).await;
        let senses = [1, 2, 3].map(|block| {
            probe(&nand, Nanos::from_micros(u64::from(block)), ppa(block, 0), Class::HostRead)
        });
        let first = erase(&nand, START, 4, Class::Gc);
        let ends = ends(std::iter::once(first).chain(senses)).await;
        assert_eq!(ends, [ERASE, ERASE + READ, ERASE + READ, ERASE + READ]);
    });
}

#[test]
fn one_plane_and_two_kinds_do_not_go_together() {
    on(TOGETHER, async |nand| {
        fill_planes(&nand).await;
        let two = [erase(&nand, START, 4, Class::Gc), erase(&nand, START, 5, Class::Gc)];
        assert_eq!(ends(two).await, [ERASE, ERASE], "planes 0 and 1");
        let two = [erase(&nand, START, 4, Class::Gc), erase(&nand, START, 8, Class::Gc)];
        assert_eq!(ends(two).await, [ERASE, times(2, ERASE)], "plane 0 twice");
        let two =
            [erase(&nand, START, 4, Class::Gc), probe(&nand, START, ppa(1, 0), Class::HostRead)];
        assert_eq!(ends(two).await, [ERASE, ERASE + READ], "an erase and a sense");
    });
}

#[test]
fn a_program_waits_for_no_less_urgent_one() {
    on(TOGETHER, async |nand| {
        let steps = [
            program(&nand, START, ppa(0, 0), Class::HostWrite),
            program(&nand, START, ppa(1, 0), Class::Gc),
        ];
        let alone = PAGE + PROGRAM;
        assert_eq!(ends(steps).await, [alone, alone + PROGRAM]);
        let steps = [
            program(&nand, START, ppa(0, 1), Class::Gc),
            program(&nand, START, ppa(1, 1), Class::HostWrite),
        ];
        assert_eq!(ends(steps).await, [PAGE + alone; 2], "but for a more urgent one");
    });
}

#[test]
fn independent_planes_do_different_things_at_once() {
    on(INDEPENDENT, async |nand| {
        fill_planes(&nand).await;
        let steps = [
            erase(&nand, START, 4, Class::Gc),
            program(&nand, START, ppa(5, 0), Class::HostWrite),
            read(&nand, START, ppa(2, 0), Class::HostRead),
            probe(&nand, START, ppa(0, 0), Class::HostRead),
        ];
        let formula = [ERASE, PAGE + PROGRAM, READ + PAGE, ERASE + READ];
        assert_eq!(ends(steps).await, formula, "the last is of the plane that erases");
    });
    let formula: Vec<Nanos> = (1..=4).map(|n| times(n, PAGE) + PROGRAM).collect();
    assert_eq!(programs(INDEPENDENT, 4), formula);
}
