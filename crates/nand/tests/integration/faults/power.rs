//! An array on capacitors.

use crate::faults::rig::{
    MODELS, PROGRAM, TAG, TRANSFER, array, block, cells, page, ppa, program, read,
};
use base::Nanos;
use clock::{Class, Stage, now, sleep_until};
use nand::{CopyError, Model, Nand, ProgramError};
use reactor::Reactor;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

type Ended = Rc<RefCell<Vec<&'static str>>>;

fn start(ended: &Ended, name: &'static str, step: impl Future<Output = ()> + 'static) {
    let ended = ended.clone();
    clock::spawn(async move {
        step.await;
        ended.borrow_mut().push(name);
    });
}

#[test]
fn programs_of_hosts_take_their_pages_and_then_fail() {
    for model in MODELS {
        let cells = cells();
        Reactor::new(None).run(async {
            let nand = array(&cells, model, &[]);
            program(&nand, ppa(0, 0, 0), 1).await.unwrap();
            assert!(!nand.is_on_capacitors());
            nand.run_on_capacitors(4);
            assert!(nand.is_on_capacitors());
            program(&nand, ppa(0, 0, 1), 2).await.unwrap();
            let copy = |to| {
                let tag = (to == 0).then_some(TAG);
                nand.copyback(ppa(0, 0, 0), ppa(0, 2, to), tag, Class::HostWrite)
            };
            copy(0).await.unwrap();
            nand.retire(block(0, 8), Class::HostWrite).await.unwrap();
            program(&nand, ppa(0, 0, 2), 3).await.unwrap();
            let start = now();
            assert_eq!(program(&nand, ppa(0, 0, 3), 4).await, Err(ProgramError::PowerLost));
            assert_eq!(copy(1).await, Err(CopyError::PowerLost));
            let retired = nand.retire(block(0, 10), Class::HostWrite).await;
            assert_eq!(retired, Err(ProgramError::PowerLost));
            assert_eq!(now(), start, "at once");
            let senses = nand.read(ppa(0, 0, 0), &|_| 0, Class::HostWrite).await;
            assert!(senses.is_ok());
        });
        assert_eq!((cells.programmed(block(0, 0)), cells.programmed(block(0, 2))), (3, 1));
        assert_eq!(cells.retired_blocks(), 1);
    }
}

/// Starts a step of each kind that is not for host data.
fn start_others(nand: &Arc<Nand>, ended: &Ended) {
    let next = || nand.clone();
    let nand = next();
    start(ended, "read", async move {
        let _ = read(&nand, ppa(0, 0, 0)).await;
    });
    let nand = next();
    start(ended, "probe", async move {
        let _ = nand.probe(ppa(1, 0, 0), Class::HostRead).await;
    });
    let nand = next();
    start(ended, "program", async move {
        let _ = nand.program(ppa(0, 1, 0), page(1), Some(TAG), Class::Gc).await;
    });
    let nand = next();
    start(ended, "erase", async move {
        let _ = nand.erase(block(0, 0), Class::HostWrite).await;
    });
    let nand = next();
    start(ended, "mark", async move {
        let _ = nand.retire(block(0, 4), Class::Gc).await;
    });
}

#[test]
fn other_steps_never_begin_and_block_no_others() {
    for model in MODELS {
        let cells = cells();
        let ended = Ended::default();
        let mut reactor = Reactor::new(None);
        reactor.run(async {
            let nand = array(&cells, model, &[]);
            program(&nand, ppa(0, 0, 0), 1).await.unwrap();
            nand.run_on_capacitors(2);
            start_others(&nand, &ended);
            sleep_until(now() + Nanos(1), Stage::Batch).await;
            let begun = now();
            program(&nand, ppa(0, 0, 1), 2).await.unwrap();
            assert_eq!(now() - begun, TRANSFER + PROGRAM, "the die is free");
            sleep_until(Nanos::from_millis(100), Stage::Batch).await;
        });
        drop(reactor);
        assert_eq!(*ended.borrow(), [""; 0]);
        assert_eq!((cells.programmed(block(0, 0)), cells.programmed(block(0, 1))), (2, 0));
        assert!(cells.unreadable(block(0, 0)).is_empty() && cells.retired_blocks() == 0);
    }
}

#[test]
fn steps_with_a_register_end_and_waiting_ones_never_begin() {
    let cells = cells();
    let ended = Ended::default();
    let mut reactor = Reactor::new(None);
    reactor.run(async {
        let nand = array(&cells, Model::Staged, &[]);
        for (number, name) in [(0, "first"), (1, "second")] {
            let nand = nand.clone();
            start(&ended, name, async move {
                let _ = nand.program(ppa(0, number, 0), page(1), Some(TAG), Class::Gc).await;
            });
        }
        sleep_until(Nanos(1), Stage::Batch).await;
        nand.run_on_capacitors(1);
        program(&nand, ppa(0, 2, 0), 1).await.unwrap();
        assert_eq!(now(), Nanos(2 * (TRANSFER + PROGRAM).0));
    });
    drop(reactor);
    assert_eq!(*ended.borrow(), ["first"]);
    assert_eq!(cells.programmed(block(0, 1)), 0);
}
