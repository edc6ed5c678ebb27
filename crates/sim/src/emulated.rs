use crate::batches::BatchHosts;
use crate::hosts::Hosts;
use crate::kv::{KvHosts, KvPlan};
use crate::ledger::Excuses;
use crate::load::{Life, Load};
use crate::power::Loss;
use crate::quiet::is_quiet;
use crate::small_drive::{PAGES_PER_BLOCK, RECORDS_ON_PAGE, is_buffered, small_drive};
use crate::tally::Tally;
use base::Rng;
use clock::LocalFuture;
use node::profile::{Log, Stripe};
use node::{Device, Profile};
use std::rc::Rc;
use workload::Payload;

/// Operations on keys and values between two power cuts.
const OPERATIONS: usize = 1_200;

/// Hosts of keys, and an emulated device for them.
pub(crate) struct Emulated {
    seed: u64,
    profile: Profile,
    hosts: Rc<dyn Hosts>,
}

impl Emulated {
    /// Keys and values by the KV command set.
    pub(crate) fn kv(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let profile = small_drive(seed, PAGES_PER_BLOCK, &mut rng);
        let payload = if rng.below(4) == 0 { Payload::Full } else { Payload::None };
        let fill_percent = 60 + rng.below(32);
        let value_bytes_max = match profile.log.as_ref().and_then(Log::stripe) {
            Some(Stripe::Die) => 6_000,
            _ => 10_000,
        };
        let hosts = Rc::new(KvHosts::new(KvPlan {
            seed,
            capacity_bytes: profile.kv_bytes(),
            payload,
            fill_percent,
            hot_percent: [50, 50, 80, 100][usize::try_from(rng.below(4)).expect("below 4")],
            value_bytes_max,
            hosts: 1,
            operations: OPERATIONS,
        }));
        Self { seed, profile, hosts }
    }

    /// Batches, and values that expire, by the engine.
    pub(crate) fn batches(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let profile = small_drive(seed, PAGES_PER_BLOCK, &mut rng);
        let hosts = Rc::new(BatchHosts::new(seed, profile.kv_bytes(), Payload::None));
        Self { seed, profile, hosts }
    }
}

impl Load for Emulated {
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
        self.hosts.operations_in_life()
    }

    fn live(self: Rc<Self>, device: Rc<Device>, life: Life) -> LocalFuture<'static, ()> {
        self.hosts.clone().live(device, life)
    }

    fn operations(&self) -> u64 {
        self.hosts.operations()
    }

    fn cut_off(&self, loss: Loss) {
        self.hosts.cut_off(loss);
    }

    fn check(&self, excuses: Excuses) -> Tally {
        self.hosts.check(excuses)
    }
}

impl Drop for Emulated {
    /// Says what a seed that fails stands for.
    fn drop(&mut self) {
        if std::thread::panicking() && !is_quiet() {
            let Self { seed, profile, .. } = self;
            let (log, nand, handlers) = (&profile.log, &profile.nand, profile.firmware.handlers);
            eprintln!(
                "seed {seed}: {} index, {log:?}, {:?} model, {} registers, {} spare bytes, \
                 handlers {handlers:?}",
                profile.index.map_or("no", |index| index.kind),
                nand.model,
                nand.registers,
                nand.spare_bytes
            );
        }
    }
}
