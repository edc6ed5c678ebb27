//! Batches and values that expire, by the engine: groups of keys in several key spaces that are
//! only ever written together, and keys whose values go by themselves.
//!
//! A group is a subject: it is read while no writer is active, which finds a batch that is there in
//! part. Its members are subjects too, and are read at any time.

use crate::batch_host::BatchHost;
use crate::expiring::Expiring;
use crate::flush::flush;
use crate::hosts::Hosts;
use crate::ledger::Excuses;
use crate::load::Life;
use crate::power::{Loss, Power};
use crate::tally::Tally;
use crate::target::Target;
use base::{Nanos, Rng};
use clock::{LocalFuture, Stage};
use engine::{Error, KeySpaceId};
use std::rc::Rc;
use workload::Payload;

/// Tasks that write batches, and batches of each between two power cuts.
const WRITERS: u64 = 5;
const BATCHES: u64 = 60;

/// Tasks that read members, and reads of each.
const READERS: u64 = 3;
const READS: u64 = 150;

/// Keys whose values expire, and steps with each.
const EXPIRING: u64 = 12;
const STEPS: u64 = 40;

/// Flushes between two power cuts.
const FLUSHES: u64 = 5;

/// Hosts of a store.
pub(crate) struct BatchHosts {
    batches: Rc<BatchHost>,
    expiring: Rc<Expiring>,
}

impl BatchHosts {
    /// Hosts of a device that takes so many bytes of pairs.
    pub(crate) fn new(seed: u64, capacity_bytes: u64, payload: Payload) -> Self {
        let batches = Rc::new(BatchHost::new(seed, capacity_bytes, payload));
        Self { batches, expiring: Rc::new(Expiring::new(seed, EXPIRING, payload)) }
    }

    async fn work(self: Rc<Self>, target: Rc<dyn Target>, life: Life) {
        let Life { number, is_last, power, mut rng, may_be_cut, .. } = life;
        if may_be_cut {
            self.batches.faults_may_revert();
            self.expiring.faults_may_revert();
        }
        let store = target.store().clone();
        for space in 1..=BatchHost::SPACES {
            match store.create_key_space(KeySpaceId(space)).await {
                Ok(()) | Err(Error::KeySpaceExists) => {}
                // On a disk that fails there may be none in this life.
                Err(Error::Unwritten | Error::CapacityExceeded) if target.may_fail_to_flush() => {
                    return;
                }
                Err(error) => panic!("key space {space}: {error}"),
            }
        }
        self.expiring.set_date();
        if number > 0 {
            self.batches.check_content(&store, &power).await;
        }
        if is_last {
            return;
        }
        let mut tasks: Vec<LocalFuture<'static, ()>> = Vec::new();
        let mut fork = || Rng::new(rng.next_u64());
        for _ in 0..WRITERS {
            let batches = self.batches.clone();
            tasks.push(Box::pin(batches.write(store.clone(), power.clone(), fork(), BATCHES)));
        }
        for _ in 0..READERS {
            let batches = self.batches.clone();
            tasks.push(Box::pin(batches.read(store.clone(), power.clone(), fork(), READS)));
        }
        for key in 0..EXPIRING {
            let expiring = self.expiring.clone();
            let work = expiring.work(store.clone(), power.clone(), key, fork(), STEPS);
            tasks.push(Box::pin(work));
        }
        tasks.push(Box::pin(self.flush(target.clone(), &power, fork())));
        target.serve_all(tasks).await;
        self.batches.check_content(&store, &power).await;
    }

    /// Makes all durable, now and then.
    fn flush(
        &self,
        target: Rc<dyn Target>,
        power: &Power,
        mut rng: Rng,
    ) -> impl Future<Output = ()> + use<> {
        let (batches, expiring, power) =
            (self.batches.clone(), self.expiring.clone(), power.clone());
        async move {
            for _ in 0..FLUSHES {
                clock::sleep(Nanos(rng.below(20_000_000)), Stage::Core).await;
                power.on().await;
                batches.start_flush();
                let since = expiring.start_flush();
                if flush(&*target, &power).await {
                    batches.end_flush();
                    expiring.end_flush(since);
                }
            }
        }
    }
}

impl Hosts for BatchHosts {
    fn live(self: Rc<Self>, target: Rc<dyn Target>, life: Life) -> LocalFuture<'static, ()> {
        Box::pin(self.work(target, life))
    }

    fn operations_in_life(&self) -> u64 {
        WRITERS * BATCHES * 6 + READERS * READS + EXPIRING * STEPS
    }

    fn operations(&self) -> u64 {
        self.batches.operations() + self.expiring.operations()
    }

    fn opened(&self) {
        self.batches.opened();
        self.expiring.opened();
    }

    fn cut_off(&self, loss: Loss) {
        self.batches.cut_off(loss);
        self.expiring.cut_off(loss);
    }

    fn check(&self, excuses: Excuses) -> Tally {
        let mut tally = self.batches.check(excuses);
        tally.operations += self.expiring.operations();
        tally
    }
}
