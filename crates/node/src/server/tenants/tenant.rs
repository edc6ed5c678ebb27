use super::config::{TenantConfig, TenantTerms};
use balance::RateLimit;
use base::Nanos;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// The tenants of a server, for all of its reactors.
#[derive(Debug)]
pub(in crate::server) struct Tenants {
    all: Vec<Tenant>,
    by_host: BTreeMap<String, usize>,
    by_user: BTreeMap<String, usize>,
    /// The tenant of all other connections.
    others: usize,
    epoch: Instant,
}

impl Tenants {
    /// Creates the tenants of `configs`, and the tenant `default` if none has this name.
    pub(in crate::server) fn new(configs: &[TenantConfig]) -> Self {
        let mut configs = configs.to_vec();
        let is_default = |config: &TenantConfig| config.name == TenantConfig::DEFAULT;
        let others = configs.iter().position(is_default).unwrap_or_else(|| {
            configs.push(TenantConfig::new(TenantConfig::DEFAULT));
            configs.len() - 1
        });
        let names = |of: fn(&TenantConfig) -> &Vec<String>| {
            let each = configs.iter().enumerate();
            each.flat_map(|(place, config)| of(config).iter().map(move |it| (it.clone(), place)))
                .collect()
        };
        Self {
            by_host: names(|config| &config.host_nqns),
            by_user: names(|config| &config.resp_users),
            all: configs.iter().map(Tenant::new).collect(),
            others,
            epoch: Instant::now(),
        }
    }

    /// Returns the number of tenants.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the tenant at `place`.
    pub(super) fn at(&self, place: usize) -> &Tenant {
        &self.all[place]
    }

    /// Returns the place of the tenant of the host with this NQN.
    pub(super) fn of_host(&self, nqn: &str) -> usize {
        self.by_host.get(nqn).copied().unwrap_or(self.others)
    }

    /// Returns the place of the tenant of the Redis user with this name.
    pub(in crate::server) fn of_user(&self, name: &str) -> usize {
        self.by_user.get(name).copied().unwrap_or(self.others)
    }

    /// Returns the time since the tenants were created, which is the same for all reactors.
    pub(super) fn now(&self) -> Nanos {
        let nanos = self.epoch.elapsed().as_nanos();
        Nanos(u64::try_from(nanos).expect("a run is shorter than 500 years"))
    }

    /// Replaces the terms of the tenants in `configs`. `default` without a configuration gets its
    /// default terms.
    pub(in crate::server) fn set(&self, configs: &[TenantConfig]) {
        for tenant in &self.all {
            let config = configs.iter().find(|config| config.name == tenant.name);
            tenant.set(config.map(|config| config.terms).unwrap_or_default());
        }
    }

    /// Returns what each tenant has used since the server started.
    pub(in crate::server) fn usage(&self) -> Vec<TenantUsage> {
        self.all.iter().map(Tenant::usage).collect()
    }
}

/// A tenant. Its counters are written by all reactors, once a poll.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Tenant {
    name: String,
    weight: AtomicU32,
    requests: Bucket,
    bytes: Bucket,
    busy: AtomicU64,
    waited_share: AtomicU64,
    waited_limit: AtomicU64,
}

/// What a tenant has used, and its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct TenantUsage {
    pub(in crate::server) name: String,
    pub(in crate::server) terms: TenantTerms,
    pub(in crate::server) requests: u64,
    /// Bytes received and sent.
    pub(in crate::server) bytes: u64,
    /// Time that reactors worked for its connections.
    pub(in crate::server) busy: Nanos,
    /// Time that connections waited for other connections.
    pub(in crate::server) waited_share: Nanos,
    /// Time that connections waited for the limits.
    pub(in crate::server) waited_limit: Nanos,
}

impl Tenant {
    fn new(config: &TenantConfig) -> Self {
        let tenant = Self {
            name: config.name.clone(),
            weight: AtomicU32::new(1),
            requests: Bucket::default(),
            bytes: Bucket::default(),
            busy: AtomicU64::new(0),
            waited_share: AtomicU64::new(0),
            waited_limit: AtomicU64::new(0),
        };
        tenant.set(config.terms);
        tenant
    }

    fn set(&self, terms: TenantTerms) {
        self.weight.store(terms.weight.get(), Relaxed);
        self.requests.set(terms.requests_per_second);
        self.bytes.set(terms.bytes_per_second);
    }

    /// Returns its weight.
    pub(super) fn weight(&self) -> NonZero<u32> {
        NonZero::new(self.weight.load(Relaxed)).expect("a weight is stored as it was given")
    }

    /// Returns when it is within both limits, by [`Tenants::now`].
    pub(super) fn ready_at(&self) -> Nanos {
        self.requests.ready_at().max(self.bytes.ready_at())
    }

    /// Returns how many requests and bytes the limits allow at `now`.
    pub(super) fn allowance(&self, now: Nanos) -> (u64, u64) {
        (self.requests.available(now), self.bytes.available(now))
    }

    /// Counts work that ended at `now`, and charges it to the limits.
    pub(super) fn count(&self, now: Nanos, (requests, bytes): (u64, u64), busy: Nanos) {
        self.requests.take(now, requests);
        self.bytes.take(now, bytes);
        self.busy.fetch_add(busy.0, Relaxed);
    }

    /// Counts a connection's wait for a turn.
    pub(super) fn count_wait(&self, share: Nanos, limit: Nanos) {
        self.waited_share.fetch_add(share.0, Relaxed);
        self.waited_limit.fetch_add(limit.0, Relaxed);
    }

    fn usage(&self) -> TenantUsage {
        let nanos = |counter: &AtomicU64| Nanos(counter.load(Relaxed));
        TenantUsage {
            name: self.name.clone(),
            terms: TenantTerms {
                weight: self.weight(),
                requests_per_second: self.requests.per_second(),
                bytes_per_second: self.bytes.per_second(),
            },
            requests: self.requests.taken.load(Relaxed),
            bytes: self.bytes.taken.load(Relaxed),
            busy: nanos(&self.busy),
            waited_share: nanos(&self.waited_share),
            waited_limit: nanos(&self.waited_limit),
        }
    }
}

/// A counter with a limit that all reactors share.
#[derive(Debug, Default)]
struct Bucket {
    /// The limit; 0 for none.
    per_second: AtomicU64,
    /// When the bucket is full, in nanoseconds by [`Tenants::now`].
    full_at: AtomicU64,
    /// What was taken since the start.
    taken: AtomicU64,
}

impl Bucket {
    fn per_second(&self) -> Option<NonZero<u64>> {
        NonZero::new(self.per_second.load(Relaxed))
    }

    /// Sets the limit. A changed limit starts with a full bucket.
    fn set(&self, per_second: Option<NonZero<u64>>) {
        let per_second = per_second.map_or(0, NonZero::get);
        if self.per_second.swap(per_second, Relaxed) != per_second {
            self.full_at.store(0, Relaxed);
        }
    }

    fn limit(&self) -> Option<RateLimit> {
        self.per_second().map(RateLimit::new)
    }

    fn full_at(&self) -> Nanos {
        Nanos(self.full_at.load(Relaxed))
    }

    /// Returns when it is not empty. 0 without a limit.
    fn ready_at(&self) -> Nanos {
        self.limit().map_or(Nanos::ZERO, |limit| limit.ready_at(self.full_at()))
    }

    fn available(&self, now: Nanos) -> u64 {
        self.limit().map_or(u64::MAX, |limit| limit.available(self.full_at(), now))
    }

    fn take(&self, now: Nanos, count: u64) {
        if count == 0 {
            return;
        }
        self.taken.fetch_add(count, Relaxed);
        if let Some(limit) = self.limit() {
            let take = |full_at| Some(limit.take(Nanos(full_at), now, count).0);
            // The function always returns a value.
            let _ = self.full_at.fetch_update(Relaxed, Relaxed, take);
        }
    }
}
