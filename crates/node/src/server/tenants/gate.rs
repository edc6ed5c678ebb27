use super::member::{Member, TURN_BYTES_MIN};
use super::tenant::Tenants;
use balance::FairQueue;
use base::Nanos;
use clock::{BusyStage, Notify};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Bytes that a turn may read while its tenant is alone: as many as a connection reads at once.
const ALONE_BYTES: u64 = 128 << 10;

/// A tenant is alone if no other one waits or had a turn in this time. A connection that executes
/// what it has read in its turn does not wait, and wants the next turn soon.
const ALONE_AFTER: Nanos = Nanos::from_millis(10);

/// Bytes of the shortest NVMe/TCP command. A turn of a tenant with N requests left reads N times
/// as many.
const REQUEST_BYTES: u64 = 72;

/// What a turn is charged in addition to its busy time: about what the gate itself takes for it.
const TURN_COST: Nanos = Nanos(500);

/// How long the gate waits at most before it reads the limits again, which may have changed.
const LIMITS_READ_EVERY: Nanos = Nanos::from_secs(1);

/// Grants the turns of a reactor's connections.
pub(in crate::server) struct Gate {
    tenants: Arc<Tenants>,
    queue: RefCell<FairQueue<Rc<Member>>>,
    /// For each tenant: when it had its last turn.
    granted: RefCell<Vec<Option<Nanos>>>,
    /// For each tenant: how long it has waited for its limits.
    limited: RefCell<Vec<LimitedTime>>,
    /// Notified when a member waits, a turn has ended, or the limits may allow a turn.
    work: Notify,
    /// Whether a turn has not ended.
    is_busy: Cell<bool>,
    /// When the earliest timer fires, by the tenants' clock.
    timer: Cell<Option<Nanos>>,
    /// Returns the CPU time of the reactor's thread.
    cpu_time: fn() -> Nanos,
    /// One instant by the tenants' clock and by the reactor's.
    opened: (Nanos, Nanos),
}

/// How long a tenant has waited for its limits on this reactor.
#[derive(Clone, Copy, Default)]
struct LimitedTime {
    total: Nanos,
    since: Option<Nanos>,
}

impl LimitedTime {
    fn at(self, now: Nanos) -> Nanos {
        self.total + self.since.map_or(Nanos::ZERO, |since| now - since)
    }

    fn set(&mut self, is_limited: bool, now: Nanos) {
        self.total = self.at(now);
        self.since = is_limited.then_some(now);
    }
}

impl Gate {
    /// Opens the gate of the calling reactor, and grants turns as long as the reactor runs.
    pub(in crate::server) fn open(tenants: &Arc<Tenants>) -> Rc<Self> {
        Self::open_by(tenants, reactor::thread_cpu)
    }

    /// The same with another clock for the time that turns take.
    pub(super) fn open_by(tenants: &Arc<Tenants>, cpu_time: fn() -> Nanos) -> Rc<Self> {
        let gate = Rc::new(Self {
            tenants: tenants.clone(),
            queue: RefCell::new(FairQueue::new(tenants.count())),
            granted: RefCell::new(vec![None; tenants.count()]),
            limited: RefCell::new(vec![LimitedTime::default(); tenants.count()]),
            work: Notify::new(),
            is_busy: Cell::new(false),
            timer: Cell::new(None),
            cpu_time,
            opened: (tenants.now(), clock::host_now()),
        });
        clock::spawn(gate.clone().grant_all());
        gate
    }

    pub(in crate::server) fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// Returns the present by the tenants' clock.
    fn now(&self) -> Nanos {
        let (shared, here) = self.opened;
        shared + (clock::host_now() - here)
    }

    /// Returns the CPU time of the reactor's thread. A turn is charged no time in which the system
    /// ran another thread.
    pub(super) fn cpu_time(&self) -> Nanos {
        (self.cpu_time)()
    }

    async fn grant_all(self: Rc<Self>) {
        clock::name_task("tenants");
        clock::set_busy_stage(BusyStage::Receive);
        loop {
            if self.is_busy.get() || self.queue.borrow().is_empty() {
                self.work.wait().await;
                continue;
            }
            // Connections whose requests have arrived wait too before the next turn is granted:
            // otherwise a tenant with one connection would miss its turn.
            reactor::look_outside();
            clock::give_way().await;
            if !self.grant() {
                self.set_timer();
                self.work.wait().await;
            }
        }
    }

    /// Grants the next turn. Returns false if no tenant that waits may have one now.
    fn grant(&self) -> bool {
        let now = self.now();
        let mut limited = self.limited.borrow_mut();
        let mut queue = self.queue.borrow_mut();
        for tenant in queue.waiting() {
            limited[tenant].set(self.tenants.at(tenant).ready_at() > now, now);
        }
        let Some((tenant, member)) = queue.pop(|tenant| limited[tenant].since.is_none()) else {
            return queue.is_empty();
        };
        let mut granted = self.granted.borrow_mut();
        granted[tenant] = Some(now);
        let is_recent = |at: &Option<Nanos>| at.is_some_and(|at| now - at < ALONE_AFTER);
        let is_alone = queue.waiting().all(|other| other == tenant)
            && granted.iter().enumerate().all(|(it, at)| it == tenant || !is_recent(at));
        let it = self.tenants.at(tenant);
        queue.charge(tenant, TURN_COST, it.weight());
        let (requests, bytes) = it.allowance(now);
        let most = if is_alone { ALONE_BYTES } else { member.turn_bytes() };
        let most = most.min(bytes).min(requests.saturating_mul(REQUEST_BYTES));
        let (waited, by_limit) = member.grant(now, limited[tenant].at(now), {
            usize::try_from(most.max(TURN_BYTES_MIN)).expect("a turn reads little")
        });
        it.count_wait(waited - by_limit, by_limit);
        self.is_busy.set(true);
        true
    }

    /// Has [`Self::work`] notified when the first limit allows a turn.
    fn set_timer(self: &Rc<Self>) {
        let now = self.now();
        let ready = self.queue.borrow().waiting().map(|it| self.tenants.at(it).ready_at()).min();
        let Some(ready) = ready else { return };
        let at = ready.max(now).min(now + LIMITS_READ_EVERY);
        if self.timer.get().is_some_and(|timer| timer <= at) {
            return;
        }
        self.timer.set(Some(at));
        let gate = self.clone();
        clock::spawn_at(clock::now() + (at - now), async move || {
            if gate.timer.get() == Some(at) {
                gate.timer.set(None);
            }
            gate.work.notify();
        });
    }

    /// Adds a member of `tenant` to those that wait. Returns the present, and how long the tenant
    /// has waited for its limits.
    pub(super) fn join(&self, tenant: usize, member: Rc<Member>) -> (Nanos, Nanos) {
        self.queue.borrow_mut().push(tenant, member);
        self.work.notify();
        let now = self.now();
        (now, self.limited.borrow()[tenant].at(now))
    }

    /// Removes a member that waits no more.
    pub(super) fn leave(&self, tenant: usize, member: &Rc<Member>) {
        self.queue.borrow_mut().remove(tenant, member);
    }

    /// Ends the turn that was granted last.
    pub(super) fn end_turn(&self) {
        assert!(self.is_busy.replace(false), "a turn ends once");
        self.work.notify();
    }

    /// Charges work for a connection of `tenant`: requests and bytes, and busy time.
    pub(super) fn charge(&self, tenant: usize, work: (u64, u64), busy: Nanos) {
        let it = self.tenants.at(tenant);
        it.count(self.now(), work, busy);
        self.queue.borrow_mut().charge(tenant, busy, it.weight());
    }
}
