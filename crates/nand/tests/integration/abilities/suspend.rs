use crate::abilities::rig::{
    ERASE, PAGE, PLAIN, PROGRAM, READ, Step, ends, erase, fill_planes, on, ppa, probe, program,
    read, run, times,
};
use base::Nanos;
use base::limits::{BYPASS_MAX, SUSPENDS_MAX};
use clock::{Class, Stage};
use nand::{Model, Order, Planes, Registers, Timing};

const ENTER: Nanos = Nanos(7_001);
const ENTER_ERASE: Nanos = Nanos(11_003);
const RESUME: Nanos = Nanos(3_007);

const SUSPENDS: Timing = Timing {
    program_suspend: Some(ENTER),
    erase_suspend: Some(ENTER_ERASE),
    resume: RESUME,
    registers: Registers::Double,
    ..PLAIN
};

/// Runs a program from the start and a host's read of another block of its plane at `at`. Returns
/// the ends of both.
fn read_in_a_program(timing: Timing, at: Nanos) -> [Nanos; 2] {
    on(timing, async |nand| {
        fill_planes(&nand).await;
        let steps = [
            program(&nand, Nanos::ZERO, ppa(4, 0), Class::HostWrite),
            read(&nand, at, ppa(0, 0), Class::HostRead),
        ];
        let ends = ends(steps).await;
        assert_eq!(nand.counters().suspends, u64::from(timing.model == Model::Staged));
        [ends[0], ends[1]]
    })
}

#[test]
fn a_read_suspends_a_program_which_resumes_after_it() {
    for registers in [Registers::Single, Registers::Double] {
        let timing = Timing { registers, ..SUSPENDS };
        for at in [PAGE, PAGE + Nanos(1), Nanos::from_micros(300), PAGE + PROGRAM - Nanos(1)] {
            let latency = ENTER + READ + PAGE;
            let longer = ENTER + READ + RESUME;
            assert_eq!(read_in_a_program(timing, at), [PAGE + PROGRAM + longer, at + latency]);
        }
    }
}

#[test]
fn the_scalar_model_knows_no_suspended_program() {
    let at = Nanos::from_micros(300);
    let [_, end] = read_in_a_program(Timing { model: Model::Scalar, ..SUSPENDS }, at);
    assert_ne!(end, at + ENTER + READ + PAGE);
    assert_eq!(end, PAGE + PROGRAM + READ + PAGE, "it waits for the end of the program");
}

/// Runs an erase from the start and a host's read at `at`.
fn read_in_an_erase(timing: Timing, at: Nanos) -> [Nanos; 2] {
    on(timing, async |nand| {
        fill_planes(&nand).await;
        let steps =
            [erase(&nand, Nanos::ZERO, 4, Class::Gc), read(&nand, at, ppa(0, 0), Class::HostRead)];
        let ends = ends(steps).await;
        [ends[0], ends[1]]
    })
}

#[test]
fn a_read_suspends_an_erase_which_resumes_after_it() {
    let at = Nanos::from_micros(1_234);
    let formula = [ERASE + ENTER_ERASE + READ + RESUME, at + ENTER_ERASE + READ + PAGE];
    assert_eq!(read_in_an_erase(SUSPENDS, at), formula);
    let scalar = read_in_an_erase(Timing { model: Model::Scalar, ..SUSPENDS }, at);
    assert_ne!(scalar, formula);
    assert_eq!(scalar, [ERASE, ERASE + READ + PAGE]);
}

#[test]
fn only_what_the_die_can_suspend_is_interrupted() {
    let at = Nanos::from_micros(300);
    let no_erases = Timing { erase_suspend: None, ..SUSPENDS };
    assert_eq!(read_in_an_erase(no_erases, at), [ERASE, ERASE + READ + PAGE]);
    let no_programs = Timing { program_suspend: None, ..SUSPENDS };
    let ends = on(no_programs, async |nand| {
        fill_planes(&nand).await;
        let write = program(&nand, Nanos::ZERO, ppa(4, 0), Class::HostWrite);
        ends([write, read(&nand, at, ppa(0, 0), Class::HostRead)]).await
    });
    assert_eq!(ends, [PAGE + PROGRAM, PAGE + PROGRAM + READ + PAGE]);
}

#[test]
fn collection_and_arrival_order_interrupt_nothing() {
    let at = Nanos::from_micros(300);
    let by_arrival = Timing { order: Order::Arrival, ..SUSPENDS };
    for (timing, class) in [(SUSPENDS, Class::Gc), (by_arrival, Class::HostRead)] {
        let ends = on(timing, async |nand| {
            fill_planes(&nand).await;
            let write = program(&nand, Nanos::ZERO, ppa(4, 0), Class::HostWrite);
            let ends = ends([write, read(&nand, at, ppa(0, 0), class)]).await;
            assert_eq!(nand.counters().suspends, 0);
            ends
        });
        assert_eq!(ends, [PAGE + PROGRAM, PAGE + PROGRAM + READ + PAGE]);
    }
}

#[test]
fn suspended_time_is_accounted_to_the_nanosecond() {
    on(SUSPENDS, async |nand| {
        fill_planes(&nand).await;
        let at = Nanos::from_micros(300);
        let steps = [
            program(&nand, Nanos::ZERO, ppa(4, 0), Class::Gc),
            read(&nand, at, ppa(0, 0), Class::HostRead),
            probe(&nand, at + Nanos(5), ppa(1, 0), Class::HostRead),
        ];
        let done = run(steps).await;
        let [write, first, second] = [done[0].1, done[1].1, done[2].1];
        assert_eq!(write[Stage::Array], PROGRAM + ENTER + RESUME);
        assert_eq!((write[Stage::Queue], write[Stage::Channel]), (times(2, READ), PAGE));
        assert_eq!((first[Stage::Gc], first[Stage::Queue]), (ENTER, Nanos::ZERO));
        assert_eq!((first[Stage::Array], first[Stage::Channel]), (READ, PAGE));
        assert_eq!((second[Stage::Gc], second[Stage::Queue]), (ENTER - Nanos(5), READ));
        assert_eq!(nand.counters().suspends, 1, "the second found the program suspended");
    });
}

#[test]
fn a_program_is_suspended_a_bounded_number_of_times() {
    on(SUSPENDS, async |nand| {
        fill_planes(&nand).await;
        let most = u64::from(SUSPENDS_MAX);
        // Each read arrives after the program has resumed from the previous one.
        let each = ENTER + READ + RESUME + Nanos::from_micros(10);
        let at = |number| PAGE + Nanos::from_micros(100) + times(number, each);
        let senses = (0..=most).map(|n| probe(&nand, at(n), ppa(0, 0), Class::HostRead));
        let write = program(&nand, Nanos::ZERO, ppa(4, 0), Class::HostWrite);
        let ends = ends(std::iter::once(write).chain(senses)).await;
        let programmed = PAGE + PROGRAM + times(most, ENTER + READ + RESUME);
        assert_eq!(ends[0], programmed);
        for number in 0..SUSPENDS_MAX as usize {
            assert_eq!(ends[number + 1], at(number as u64) + ENTER + READ);
        }
        assert_eq!(ends[SUSPENDS_MAX as usize + 1], programmed + READ);
        assert_eq!(nand.counters().suspends, most);
    });
}

#[test]
fn a_suspended_program_resumes_after_a_bounded_number_of_reads() {
    on(SUSPENDS, async |nand| {
        fill_planes(&nand).await;
        let (most, at) = (u64::from(BYPASS_MAX), Nanos::from_micros(300));
        let senses: Vec<Step> =
            (0..100).map(|_| probe(&nand, at, ppa(0, 0), Class::HostRead)).collect();
        let write = program(&nand, Nanos::ZERO, ppa(4, 0), Class::HostWrite);
        let ends = ends(std::iter::once(write).chain(senses)).await;
        let programmed = PAGE + PROGRAM + ENTER + times(most, READ) + RESUME;
        assert_eq!(ends[0], programmed);
        assert_eq!(ends[64], at + ENTER + times(64, READ));
        assert_eq!(ends[65], programmed + READ);
        assert_eq!(ends[100], programmed + times(36, READ));
    });
}

#[test]
fn planes_that_program_together_are_suspended_together() {
    on(Timing { planes: Planes::Together, ..SUSPENDS }, async |nand| {
        fill_planes(&nand).await;
        let write = |block| program(&nand, Nanos::ZERO, ppa(block, 0), Class::HostWrite);
        let at = Nanos::from_micros(300);
        let senses = [0, 3].map(|block| probe(&nand, at, ppa(block, 0), Class::HostRead));
        let ends = ends([write(4), write(5), write(6)].into_iter().chain(senses)).await;
        let programmed = times(3, PAGE) + PROGRAM + ENTER + READ + RESUME;
        assert_eq!(ends[..3], [programmed; 3]);
        assert_eq!(ends[3..], [at + ENTER + READ; 2], "the reads go together too");
        assert_eq!(nand.counters().suspends, 3);
    });
}

#[test]
fn data_of_a_plane_with_one_register_moves_after_a_suspended_program() {
    let timing = Timing { planes: Planes::Together, registers: Registers::Single, ..SUSPENDS };
    on(timing, async |nand| {
        fill_planes(&nand).await;
        let at = Nanos::from_micros(300);
        let steps = [
            program(&nand, Nanos::ZERO, ppa(4, 0), Class::HostWrite),
            probe(&nand, at, ppa(0, 0), Class::HostRead),
            program(&nand, at + ENTER + Nanos(1), ppa(5, 0), Class::HostWrite),
        ];
        let programmed = PAGE + PROGRAM + ENTER + READ + RESUME;
        let sensed = at + ENTER + READ;
        assert_eq!(ends(steps).await, [programmed, sensed, programmed + PAGE + PROGRAM]);
    });
}
