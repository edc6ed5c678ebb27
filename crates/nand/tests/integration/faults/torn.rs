//! What a loss of power leaves of a step that it cuts off, at each instant of the step.

use crate::faults::rig::{
    ERASE, GEOMETRY, MODELS, PROGRAM, READ, TAG, TRANSFER, array, block, cells, page, ppa, program,
    timing,
};
use base::Nanos;
use clock::{Class, Group, Stage, now, sleep_until};
use nand::{FaultPlan, Model, Nand, Planes, Timing};
use reactor::Reactor;
use std::sync::Arc;

/// The content after a cut: pages programmed, unreadable pages, and erases.
type Left = (u32, Vec<u32>, u32);

/// Starts `step` on an array whose block 0 has one page, and cuts the power after `time`. Returns
/// the content of block `seen`.
fn cut(
    timing: Timing,
    time: Nanos,
    seen: u32,
    step: impl AsyncFnOnce(Arc<Nand>) + 'static,
) -> Left {
    let cells = cells();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let nand = Nand::new(cells.clone(), timing, FaultPlan::default(), Group::new());
        let nand = Arc::new(nand);
        program(&nand, ppa(0, 0, 0), 1).await.expect("as planned");
        let start = now();
        clock::spawn(step(nand));
        sleep_until(start + time, Stage::Batch).await;
    });
    drop(reactor);
    let at = block(0, seen);
    (cells.programmed(at), cells.unreadable(at), cells.erase_count(at))
}

#[test]
fn a_program_is_nothing_until_its_array_stage_and_torn_until_its_end() {
    let program = async |nand: Arc<Nand>| program(&nand, ppa(0, 0, 1), 2).await.unwrap();
    for model in MODELS {
        let cut = |time| cut(timing(model), Nanos(time), 0, program);
        assert_eq!(cut(1), (1, vec![], 0));
        assert_eq!(cut(TRANSFER.0 - 1), (1, vec![], 0));
        assert_eq!(cut(TRANSFER.0 + 1), (2, vec![1], 0));
        assert_eq!(cut((TRANSFER + PROGRAM).0 - 1), (2, vec![1], 0));
        assert_eq!(cut((TRANSFER + PROGRAM).0 + 1), (2, vec![], 0));
    }
}

#[test]
fn a_copy_cut_off_leaves_its_target_torn() {
    let copy = async |nand: Arc<Nand>| {
        nand.copyback(ppa(0, 0, 0), ppa(0, 2, 0), Some(TAG), Class::Gc).await.unwrap();
    };
    for model in MODELS {
        let cut = |time, seen| cut(timing(model), Nanos(time), seen, copy);
        assert_eq!(cut((READ + PROGRAM).0 - 1, 2), (1, vec![0], 0));
        assert_eq!(cut((READ + PROGRAM).0 - 1, 0), (1, vec![], 0), "the source is whole");
        assert_eq!(cut((READ + PROGRAM).0 + 1, 2), (1, vec![], 0));
    }
}

#[test]
fn an_erase_cut_off_leaves_nothing_readable() {
    let erase = async |nand: Arc<Nand>| nand.erase(block(0, 0), Class::Gc).await.unwrap();
    for model in MODELS {
        let cut = |time| cut(timing(model), Nanos(time), 0, erase);
        assert_eq!(cut(1), (4, vec![0, 1, 2, 3], 0));
        assert_eq!(cut(ERASE.0 - 1), (4, vec![0, 1, 2, 3], 0));
        assert_eq!(cut(ERASE.0 + 1), (0, vec![], 1));
    }
}

#[test]
fn reads_and_marks_cut_off_leave_no_trace() {
    let read = async |nand: Arc<Nand>| {
        nand.read(ppa(0, 0, 0), &|_| 9, Class::Gc).await.unwrap();
    };
    let mark = async |nand: Arc<Nand>| nand.retire(block(0, 0), Class::Gc).await.unwrap();
    for model in MODELS {
        assert_eq!(cut(timing(model), Nanos(READ.0 - 1), 0, read), (1, vec![], 0));
        assert_eq!(cut(timing(model), Nanos(PROGRAM.0 - 1), 0, mark), (1, vec![], 0));
    }
    let cells = cells();
    for (time, is_bad) in [(PROGRAM.0 - 1, false), (PROGRAM.0 + 1, true)] {
        let mut reactor = Reactor::new(None);
        reactor.run(async {
            let nand = array(&cells, Model::Staged, &[]);
            clock::spawn(async move { nand.retire(block(0, 0), Class::Gc).await.unwrap() });
            sleep_until(Nanos(time), Stage::Batch).await;
        });
        drop(reactor);
        assert_eq!(cells.is_bad(block(0, 0)), is_bad);
    }
}

/// Runs several steps of one die, whose array does one or all of them at the instant of the cut.
fn cut_several(timing: Timing, time: u64) -> [(u32, Vec<u32>); 3] {
    let cells = cells();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let nand = Nand::new(cells.clone(), timing, FaultPlan::default(), Group::new());
        let nand = Arc::new(nand);
        for number in [0, 1, 2] {
            let nand = nand.clone();
            clock::spawn(
                async move { program(&nand, ppa(0, number, 0), 1).await.expect("as planned") },
            );
        }
        sleep_until(Nanos(time), Stage::Batch).await;
    });
    drop(reactor);
    [0, 1, 2].map(|number| (cells.programmed(block(0, number)), cells.unreadable(block(0, number))))
}

#[test]
fn an_operation_that_waits_for_the_array_is_not_torn() {
    let (none, torn, whole) = ((0, vec![]), (1, vec![0]), (1, vec![]));
    let alone = Timing { registers: nand::Registers::Double, ..timing(Model::Staged) };
    let second = 2 * TRANSFER.0;
    assert!(second < TRANSFER.0 + PROGRAM.0);
    assert_eq!(cut_several(alone, second + 1), [torn.clone(), none.clone(), none.clone()]);
    let later = TRANSFER.0 + PROGRAM.0 + 1;
    assert_eq!(cut_several(alone, later), [whole.clone(), torn.clone(), none.clone()]);
    // Planes that go together are torn together: blocks 0 and 1 lie in different ones.
    let together = Timing { planes: Planes::Together, ..alone };
    let both = [torn.clone(), torn.clone(), none.clone()];
    assert_eq!(cut_several(together, second + 1), both);
    assert_eq!(cut_several(together, 3 * TRANSFER.0 + 1), both, "the third waits for its plane");
    assert_eq!(cut_several(together, second + PROGRAM.0 + 1)[..2], [whole.clone(), whole]);
}

#[test]
fn a_suspended_program_is_torn() {
    let suspends = Timing { program_suspend: Some(Nanos(100)), ..timing(Model::Staged) };
    let step = async |nand: Arc<Nand>| {
        clock::spawn({
            let nand = nand.clone();
            async move { program(&nand, ppa(0, 0, 1), 2).await.unwrap() }
        });
        sleep_until(now() + TRANSFER + Nanos(500), Stage::Batch).await;
        nand.read(ppa(0, 0, 0), &|_| 0, Class::HostRead).await.unwrap();
    };
    let during_the_read = TRANSFER + Nanos(500 + 100 + 500);
    assert_eq!(cut(suspends, during_the_read, 0, step), (2, vec![1], 0));
}

#[test]
fn a_torn_array_can_be_erased_and_used_again() {
    let cells = cells();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let nand = array(&cells, Model::Staged, &[]);
        clock::spawn(async move {
            nand.program(ppa(0, 0, 0), page(1), Some(TAG), Class::HostWrite).await.unwrap();
        });
        sleep_until(TRANSFER + Nanos(1), Stage::Batch).await;
    });
    drop(reactor);
    assert_eq!(cells.unreadable(block(0, 0)), [0]);
    Reactor::new(None).run(async {
        let nand = array(&cells, Model::Staged, &[]);
        assert!(nand.read_tag(ppa(0, 0, 0), Class::HostRead).await.is_err());
        assert!(!nand.may_fail());
        nand.erase(block(0, 0), Class::Gc).await.unwrap();
        for number in 0..GEOMETRY.pages_per_block {
            program(&nand, ppa(0, 0, number), 5).await.unwrap();
        }
        assert_eq!(cells.unreadable(block(0, 0)), []);
    });
}
