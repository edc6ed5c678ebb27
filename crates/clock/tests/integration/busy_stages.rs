//! The time of a thread is attributed to the stages of its tasks, by a wall clock that the test
//! sets.

use base::Nanos;
use clock::{
    BusyMeter, BusyStage, BusyTimes, Schedule, busy_stage, enter_busy_stage, install,
    set_busy_stage, spawn, switch_busy_stage, turn, uninstall,
};
use std::cell::Cell;
use std::rc::Rc;

/// A wall clock that moves only by [`Self::pass`].
#[derive(Clone, Default)]
struct FakeWall {
    time: Rc<Cell<u64>>,
    readings: Rc<Cell<u64>>,
}

impl FakeWall {
    fn pass(&self, time: u64) {
        self.time.set(self.time.get() + time);
    }

    fn now(&self) -> Nanos {
        Nanos(self.time.get())
    }
}

/// Has `work` run in a task of its own, with a meter that began at 0. Returns the times of its
/// stages.
fn times(wall: &FakeWall, work: impl FnOnce()) -> BusyTimes {
    let meter = Rc::new(BusyMeter::new(wall.now()));
    let mut schedule = Schedule::new(None);
    let read = wall.clone();
    schedule.set_wall(Some(Box::new(move || {
        read.readings.set(read.readings.get() + 1);
        read.now()
    })));
    schedule.set_busy_meter(Some(meter.clone()));
    run(schedule, work);
    meter.take(wall.now())
}

/// Has `work` run in a task of `schedule`.
fn run(mut schedule: Schedule, work: impl FnOnce()) {
    let root = schedule.add_task();
    install(Box::new(schedule));
    assert_eq!(turn(None, &mut Vec::new()), Some(root));
    work();
    uninstall();
}

/// Times in the order of [`BusyStage::ALL`].
fn nanos(times: [u64; 5]) -> BusyTimes {
    BusyTimes::new(times.map(Nanos))
}

#[test]
fn each_stage_has_its_time_and_all_add_up() {
    let wall = FakeWall::default();
    let times = times(&wall, || {
        wall.pass(1);
        // From the beginning of the poll, and without a reading.
        set_busy_stage(BusyStage::Receive);
        wall.pass(10);
        let kv = enter_busy_stage(BusyStage::Kv);
        wall.pass(100);
        {
            let _again = enter_busy_stage(BusyStage::Kv);
            let _submit = enter_busy_stage(BusyStage::Submit);
            wall.pass(1_000);
        }
        wall.pass(200);
        drop(kv);
        wall.pass(20);
        switch_busy_stage(BusyStage::Complete);
        switch_busy_stage(BusyStage::Complete);
        wall.pass(10_000);
    });
    assert_eq!(times, nanos([31, 300, 1_000, 10_000, 0]));
    assert_eq!(times.total(), wall.now());
    // Two for each scope that changes the stage, and one for the switch.
    assert_eq!(wall.readings.get(), 5);
}

#[test]
fn a_task_begins_in_the_stage_of_the_poll_that_spawns_it() {
    let wall = FakeWall::default();
    times(&wall, || {
        set_busy_stage(BusyStage::Receive);
        spawn(async {});
        {
            let _kv = enter_busy_stage(BusyStage::Kv);
            spawn(async {});
        }
        assert_eq!(busy_stage(), BusyStage::Receive, "a scope is of one poll");
        switch_busy_stage(BusyStage::Complete);
        spawn(async {});
        assert_eq!(busy_stage(), BusyStage::Complete, "a switch is of the task");
        let next = || turn(None, &mut Vec::new()).map(|_| busy_stage());
        let stages = [next(), next(), next()];
        let expected = [BusyStage::Receive, BusyStage::Kv, BusyStage::Complete];
        assert_eq!(stages, expected.map(Some));
    });
}

#[test]
fn a_meter_counts_each_time_once() {
    let meter = BusyMeter::new(Nanos(5));
    meter.switch(BusyStage::Submit, Nanos(7));
    assert_eq!(meter.take(Nanos(10)), nanos([0, 0, 3, 0, 2]));
    assert_eq!(meter.take(Nanos(11)), nanos([0, 0, 1, 0, 0]));
    assert_eq!(meter.take(Nanos(11)), BusyTimes::default());
}

#[test]
fn without_a_meter_tasks_are_in_the_background_and_nothing_reads_the_wall() {
    let mut schedule = Schedule::new(None);
    schedule.set_wall(Some(Box::new(|| panic!("it is read"))));
    run(schedule, || {
        let _kv = enter_busy_stage(BusyStage::Kv);
        switch_busy_stage(BusyStage::Complete);
        spawn(async {});
        turn(None, &mut Vec::new()).expect("it was spawned");
        assert_eq!(busy_stage(), BusyStage::Background);
    });
    // Outside of a reactor.
    drop(enter_busy_stage(BusyStage::Kv));
}
