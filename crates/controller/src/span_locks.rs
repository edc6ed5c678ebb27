use crate::shared::Shared;
use crate::span::Span;
use clock::{Rank, Stage, TaskId};
use std::collections::VecDeque;

/// Locks spans of logical blocks: shared for commands that write, exclusive for a fused operation
/// that compares and writes.
///
/// Locks are granted in FIFO order, and a task holds one at a time. So no two tasks wait for each
/// other here. A holder may wait for other tasks, such as the program of a page or a collector:
/// those run below the namespace and never take such a lock. So a lock is no held
/// [rank](clock::Rank).
#[derive(Debug, Default)]
pub(crate) struct SpanLocks(Shared<State>);

#[derive(Debug, Default)]
struct State {
    claims: Vec<Option<Claim>>,
    free: Vec<usize>,
    /// The places of claims that are not granted, in FIFO order.
    waiting: VecDeque<usize>,
    /// Exclusive claims, granted or not. While there are none, every claim is granted at once.
    exclusive: usize,
}

/// A lock that a task holds or waits for.
#[derive(Clone, Copy, Debug)]
struct Claim {
    nsid: u32,
    span: Span,
    is_exclusive: bool,
    task: TaskId,
    is_held: bool,
}

/// A lock, held until this drops.
#[derive(Debug)]
pub(crate) struct HeldSpan<'a> {
    locks: &'a SpanLocks,
    place: usize,
}

impl Claim {
    fn excludes(&self, other: &Self) -> bool {
        (self.is_exclusive || other.is_exclusive)
            && self.nsid == other.nsid
            && self.span.overlaps(other.span)
    }
}

impl SpanLocks {
    /// Locks `span` shared: waits until no fused operation holds a block of it.
    #[inline]
    pub(crate) async fn share(&self, nsid: u32, span: Span) -> HeldSpan<'_> {
        self.hold(nsid, span, false).await
    }

    /// Locks `span` exclusively: waits until no other command holds a block of it.
    pub(crate) async fn exclude(&self, nsid: u32, span: Span) -> HeldSpan<'_> {
        self.hold(nsid, span, true).await
    }

    #[inline]
    async fn hold(&self, nsid: u32, span: Span, is_exclusive: bool) -> HeldSpan<'_> {
        let task = clock::current();
        let claim = Claim { nsid, span, is_exclusive, task, is_held: true };
        let (place, is_held) = self.0.lock().add(claim);
        if !is_held {
            clock::park(Rank::Blocks, Stage::Latch).await;
        }
        HeldSpan { locks: self, place }
    }
}

impl State {
    /// Adds a claim. Returns its place, and whether it is granted at once.
    #[inline]
    fn add(&mut self, mut claim: Claim) -> (usize, bool) {
        self.exclusive += usize::from(claim.is_exclusive);
        claim.is_held = self.exclusive == 0
            || !self.claims.iter().flatten().any(|other| other.excludes(&claim));
        let place = self.free.pop().unwrap_or_else(|| {
            self.claims.push(None);
            self.claims.len() - 1
        });
        self.claims[place] = Some(claim);
        if !claim.is_held {
            self.waiting.push_back(place);
        }
        (place, claim.is_held)
    }

    #[inline]
    fn remove(&mut self, place: usize) {
        let claim = self.claims[place].take().expect("a lock is released once");
        self.free.push(place);
        if self.exclusive > 0 {
            self.exclusive -= usize::from(claim.is_exclusive);
            self.grant();
        }
    }

    /// Grants waiting claims that no granted claim and no earlier waiting claim excludes.
    fn grant(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for place in waiting {
            let claim = self.claim(place);
            let waits_longer = self.waiting.iter().map(|&other| self.claim(other));
            let held = self.claims.iter().flatten().filter(|other| other.is_held);
            if held.copied().chain(waits_longer).any(|other| other.excludes(&claim)) {
                self.waiting.push_back(place);
                continue;
            }
            self.claims[place] = Some(Claim { is_held: true, ..claim });
            clock::wake(claim.task);
        }
    }

    fn claim(&self, place: usize) -> Claim {
        self.claims[place].expect("waiting claims stay in the table")
    }
}

impl Drop for HeldSpan<'_> {
    #[inline]
    fn drop(&mut self) {
        self.locks.0.lock().remove(self.place);
    }
}
