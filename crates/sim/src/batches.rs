//! Batches and values that expire, by the engine: groups of keys in several key spaces that are
//! only ever written together, and keys whose values go by themselves.
//!
//! A group is a subject of its own: it is read when nobody writes, and a batch that is there in
//! parts is found out. Its members are subjects too, which others read at any time.

use crate::batch_host::BatchHost;
use crate::expiring::Expiring;
use crate::flush::flush;
use crate::ledger::Excuses;
use crate::load::{Life, Load};
use crate::power::{Loss, Power};
use crate::small_drive::{PAGES_PER_BLOCK, RECORDS_ON_PAGE, is_buffered, small_drive};
use crate::tally::Tally;
use base::{Nanos, Rng};
use clock::{LocalFuture, Stage, join_all};
use engine::{Error, KeySpaceId};
use node::{Device, Profile};
use std::rc::Rc;

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

/// Hosts of a store and a device for them.
pub(crate) struct BatchLoad {
    profile: Profile,
    batches: Rc<BatchHost>,
    expiring: Rc<Expiring>,
}

impl BatchLoad {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let profile = small_drive(seed, PAGES_PER_BLOCK, &mut rng);
        let batches = Rc::new(BatchHost::new(seed, profile.kv_bytes()));
        Self { profile, batches, expiring: Rc::new(Expiring::new(seed, EXPIRING)) }
    }

    async fn work(&self, device: Rc<Device>, life: Life) {
        let Life { number, is_last, power, mut rng, may_be_cut } = life;
        if may_be_cut {
            self.batches.faults_may_revert();
            self.expiring.faults_may_revert();
        }
        let store = device.store().clone();
        for space in 1..=BatchHost::SPACES {
            match store.create_key_space(KeySpaceId(space)).await {
                Ok(()) | Err(Error::KeySpaceExists) => {}
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
        tasks.push(Box::pin(self.flush(device, &power, fork())));
        join_all(tasks).await;
        self.batches.check_content(&store, &power).await;
    }

    /// Makes all durable, now and then.
    fn flush(
        &self,
        device: Rc<Device>,
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
                if flush(&device, &power).await {
                    batches.end_flush();
                    expiring.end_flush(since);
                }
            }
        }
    }
}

impl Load for BatchLoad {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn is_buffered(&self) -> bool {
        is_buffered(&self.profile)
    }

    fn subjects_on_page(&self) -> usize {
        RECORDS_ON_PAGE
    }

    fn operations_in_life(&self) -> u64 {
        WRITERS * BATCHES * 6 + READERS * READS + EXPIRING * STEPS
    }

    fn live(self: Rc<Self>, device: Rc<Device>, life: Life) -> LocalFuture<'static, ()> {
        Box::pin(async move { self.work(device, life).await })
    }

    fn operations(&self) -> u64 {
        self.batches.operations() + self.expiring.operations()
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
