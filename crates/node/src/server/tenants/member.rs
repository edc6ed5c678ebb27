use super::gate::Gate;
use base::Nanos;
use clock::Notify;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// Bytes that a turn may read however near a limit is, and however long the requests take. Fewer
/// would cost a turn for each small part of a large value.
pub(super) const TURN_BYTES_MIN: u64 = 512;

/// Bytes that a turn may read at most while other tenants wait.
const TURN_BYTES_MAX: u64 = 32 << 10;

/// What a turn shall take while other tenants wait: a connection reads fewer bytes after a turn
/// that took longer than the end, and more after one that took less than the start.
const TURN_TIME: Range<Nanos> = Nanos::from_micros(100)..Nanos::from_micros(200);

/// A connection of a reactor, as a member of a tenant.
///
/// It belongs to no tenant before [`Self::assign`], and then needs no turns.
pub(in crate::server) struct Member {
    gate: Rc<Gate>,
    tenant: Cell<Option<usize>>,
    turn: Cell<Turn>,
    /// Whether a turn was granted and its poll has not ended. It may wait for the next one already.
    has_turn: Cell<bool>,
    /// Bytes that its turns may read while other tenants wait.
    turn_bytes: Cell<u64>,
    /// Set when the connection ends: it needs no turns then.
    is_over: Cell<bool>,
    /// Notified when the turn changes, or the connection ends.
    changed: Notify,
    /// The thread's CPU time when the poll began that is metered now.
    poll_began: Cell<Option<Nanos>>,
    /// Requests and bytes that are not charged yet.
    work: Cell<(u64, u64)>,
}

#[derive(Clone, Copy, Default)]
enum Turn {
    #[default]
    None,
    Waiting {
        since: Nanos,
        /// How long its tenant had waited for limits by then.
        limited: Nanos,
    },
    /// It may read so many bytes until its poll ends.
    Granted(usize),
}

/// Members are equal if they are the same.
impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Member {
    /// Creates a member of this tenant, or of none.
    pub(in crate::server) fn new(gate: &Rc<Gate>, tenant: Option<usize>) -> Rc<Self> {
        Rc::new(Self {
            gate: gate.clone(),
            tenant: Cell::new(tenant),
            turn: Cell::default(),
            has_turn: Cell::new(false),
            turn_bytes: Cell::new(TURN_BYTES_MAX / 8),
            is_over: Cell::new(false),
            changed: Notify::new(),
            poll_began: Cell::new(None),
            work: Cell::default(),
        })
    }

    pub(in crate::server) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Makes it a member of this tenant from now on.
    pub(in crate::server) fn assign(&self, tenant: usize) {
        if self.tenant.get() != Some(tenant) {
            // What it did so far is that of the tenant before, if it had one.
            self.charge(Nanos::ZERO);
            self.tenant.set(Some(tenant));
        }
    }

    /// Returns its tenant, if it belongs to one.
    pub(in crate::server) fn tenant(&self) -> Option<usize> {
        self.tenant.get()
    }

    /// Waits for its turn. Returns at once if it needs none.
    pub(super) async fn turn(self: &Rc<Self>) {
        let Some(tenant) = self.tenant.get().filter(|_| !self.is_over.get()) else { return };
        let (since, limited) = self.gate.join(tenant, self.clone());
        self.turn.set(Turn::Waiting { since, limited });
        self.changed.wait().await;
        if let Turn::Waiting { .. } = self.turn.get() {
            assert!(self.is_over.get(), "a wait ends by a turn, or with the connection");
            self.gate.leave(tenant, self);
            self.turn.set(Turn::None);
        }
    }

    /// Ends the wait with a turn to read `bytes`, when its tenant has waited `limited` for limits.
    /// Returns how long it has waited, and how much of that for limits.
    pub(super) fn grant(&self, now: Nanos, limited: Nanos, bytes: usize) -> (Nanos, Nanos) {
        let Turn::Waiting { since, limited: before, .. } = self.turn.replace(Turn::Granted(bytes))
        else {
            panic!("only a member that waits gets a turn");
        };
        self.has_turn.set(true);
        self.changed.notify();
        let waited = now - since;
        (waited, (limited - before).min(waited))
    }

    /// Ends its wait for good: the connection ends.
    pub(in crate::server) fn end(&self) {
        self.is_over.set(true);
        self.changed.notify();
    }

    /// Returns how many bytes it may read now.
    pub(super) fn readable_bytes(&self) -> usize {
        match self.turn.get() {
            _ if self.tenant.get().is_none() || self.is_over.get() => usize::MAX,
            Turn::Granted(bytes) => bytes,
            Turn::None | Turn::Waiting { .. } => 0,
        }
    }

    /// Counts bytes that it has read.
    pub(super) fn count_read(&self, bytes: usize) {
        if let Turn::Granted(most) = self.turn.get() {
            self.turn.set(Turn::Granted(most.saturating_sub(bytes)));
        }
        self.count(0, bytes as u64);
    }

    /// Begins to send. Returns the thread's CPU time, unless a metered poll counts it anyway.
    pub(super) fn begin_send(&self) -> Option<Nanos> {
        self.poll_began.get().is_none().then(|| self.gate.cpu_time())
    }

    /// Counts bytes that it has sent since [`Self::begin_send`].
    pub(super) fn count_sent(&self, bytes: usize, began: Option<Nanos>) {
        self.count(0, bytes as u64);
        if let Some(began) = began {
            self.charge(self.gate.cpu_time() - began);
        }
    }

    /// Counts requests.
    pub(in crate::server) fn count_requests(&self, requests: u64) {
        self.count(requests, 0);
    }

    fn count(&self, requests: u64, bytes: u64) {
        let (requests_before, bytes_before) = self.work.get();
        self.work.set((requests_before + requests, bytes_before + bytes));
    }

    /// Begins a poll of the task that reads and executes its requests.
    pub(super) fn begin_poll(&self) {
        self.poll_began.set(Some(self.gate.cpu_time()));
    }

    /// Ends the poll, and with it the turn.
    pub(super) fn end_poll(&self) {
        let began = self.poll_began.take().expect("a poll ends after it began");
        let busy = self.gate.cpu_time() - began;
        self.charge(busy);
        if let Turn::Granted(_) = self.turn.get() {
            self.turn.set(Turn::None);
        }
        if self.has_turn.replace(false) {
            let bytes = self.turn_bytes.get();
            let next = match busy {
                _ if busy > TURN_TIME.end => bytes / 2,
                _ if busy < TURN_TIME.start => bytes * 2,
                _ => bytes,
            };
            self.turn_bytes.set(next.clamp(TURN_BYTES_MIN, TURN_BYTES_MAX));
            self.gate.end_turn();
        }
    }

    /// Returns how many bytes its turn may read while other tenants wait.
    pub(super) fn turn_bytes(&self) -> u64 {
        self.turn_bytes.get()
    }

    /// Charges its tenant what is not charged yet, and this busy time.
    fn charge(&self, busy: Nanos) {
        let work = self.work.take();
        if let Some(tenant) = self.tenant.get() {
            self.gate.charge(tenant, work, busy);
        }
    }
}
