#[cfg(test)]
mod tests;
mod waiting;

use self::waiting::{Caller, Waiting};
use crate::door::Door;
use crate::hidden::has_collections;
use crate::inbox::Inbox;
use crate::outbox::Outbox;
use crate::pipelined_writes::PipelinedWrites;
use crate::plain_set::{PlainSet, Tried};
use crate::reply::Reply;
use crate::request::{Plain, Request};
use crate::session::Session;
use crate::staged_values::StagedValues;
use crate::watcher::since;
use base::{Key, Nanos, ValueRef};
use clock::{BusyStage, set_busy_stage, switch_busy_stage};
use engine::{Error, HashedKey, KeySpaceId, Store};
use std::cell::RefCell;
use std::sync::Arc;

/// Requests of a run at most.
const RUN_MAX: usize = 16;

/// Bytes of a reply to one of several GETs, about.
const REPLY_BYTES: usize = 80;

/// Requests of one kind for one key.
#[derive(Debug)]
struct Step {
    key: Key,
    hash: u64,
    /// The last SET of the key; nothing if the requests are GETs.
    set: Option<PlainSet>,
    /// How many requests they are.
    times: u32,
    reply: Option<Reply>,
}

/// Requests of one connection that follow each other and execute together: plain GETs and SETs, or
/// other writes of one key.
///
/// No key has both GETs and SETs, so their order does not matter: each executes at once if the
/// store need not wait for it, and the others execute side by side.
#[derive(Default)]
pub(crate) struct Run {
    steps: Vec<Step>,
    /// Which marks the keys of the steps have: see [`Key::mark`].
    marks: u64,
    has_sets: bool,
    /// The step of each GET and SET.
    order: [u8; RUN_MAX],
    len: usize,
    /// How many of them have been answered.
    answered: usize,
    /// The other writes. There are none if there are steps.
    writes: PipelinedWrites,
}

impl Run {
    /// Adds plain GETs and SETs that have arrived. Returns true if the run has to execute before
    /// the next one is added: it is full, or the next one depends on it.
    #[inline]
    pub(crate) fn fill(&mut self, door: &Door, session: &Session, inbox: &mut Inbox) -> bool {
        while self.writes.is_empty()
            && let Some(is_added) = inbox.plain(|plain| self.add(door, session, plain).is_some())
        {
            if !is_added {
                return self.len > 0;
            }
        }
        false
    }

    /// Adds `request` if it can execute together with those before it.
    pub(crate) fn take(&mut self, door: &Door, session: &Session, request: Request<'_>) -> bool {
        let plain = if self.writes.is_empty() { request.plain() } else { None };
        plain.is_some_and(|plain| self.add(door, session, plain).is_some())
            || self.len == 0 && self.writes.take(door, session, request)
    }

    /// Adds a request that does not depend on those before it.
    fn add(&mut self, door: &Door, session: &Session, plain: Plain<'_>) -> Option<()> {
        // No command that changes the session comes between requests of a run.
        let may_begin = || session.queue.is_none() && session.may_do_all();
        if self.len == RUN_MAX || self.len == 0 && !may_begin() {
            return None;
        }
        let Plain { value, is_last, .. } = plain;
        let is_set = value.is_some();
        let key = Key::new(plain.key).ok()?;
        // A SET would overtake the commands that are queued.
        if is_set && door.key_queues().has(session.space(), &key) {
            return None;
        }
        let mark = 1 << key.mark();
        let has_mark = self.marks & mark != 0;
        let step = |step: &Step| step.key == key;
        let known = if has_mark { self.steps.iter().position(step) } else { None };
        if known.is_some_and(|at| self.steps[at].set.is_some() != is_set) {
            return None;
        }
        let at = known.unwrap_or(self.steps.len());
        if let Some(Step { set, times, .. }) = self.steps.get_mut(at) {
            *times += 1;
            if let (Some(set), Some(value)) = (set, value) {
                set.replace(value);
            }
        } else {
            let (store, space, hash) = (door.store(), session.space(), key.hash());
            let (is_alone, hashed) = (at == 0 && is_last, HashedKey { hash, key: &key });
            if at == 0 {
                self.steps.reserve_exact(if is_alone { 1 } else { RUN_MAX });
            }
            if let Some(value) = value {
                store.expect_write(space, hashed);
                let set = Some(PlainSet::new(store, value));
                self.steps.push(Step { key, hash, set, times: 1, reply: None });
            } else {
                // A GET that is alone executes at once.
                if !is_alone {
                    store.expect(space, hashed);
                }
                self.steps.push(Step { key, hash, set: None, times: 1, reply: None });
            }
            self.marks |= mark;
            self.has_sets |= is_set;
        }
        self.order[self.len] = u8::try_from(at).expect("a run is short");
        self.len += 1;
        Some(())
    }

    /// Executes the requests and queues their replies. The run is empty then. `staging` has the
    /// values of SETs.
    pub(crate) async fn finish(
        &mut self,
        door: &Arc<Door>,
        session: &mut Session,
        staging: &[u8],
        outbox: &RefCell<Outbox>,
    ) {
        if !self.writes.is_empty() {
            switch_busy_stage(BusyStage::Kv);
            for reply in Box::pin(self.writes.finish(door, session)).await {
                session.answer(reply, &mut outbox.borrow_mut());
            }
        }
        if self.len == 0 {
            return;
        }
        if self.has_sets {
            // SETs that other clients have sent are announced first, and share pages.
            clock::give_way().await;
            // The poll has just begun.
            set_busy_stage(BusyStage::Kv);
        } else {
            switch_busy_stage(BusyStage::Kv);
            outbox.borrow_mut().reserve(self.len * REPLY_BYTES);
        }
        let waiting = self.begin(door, session, staging, &mut outbox.borrow_mut());
        if let Some(waiting) = waiting {
            Box::pin(waiting.finish(&mut self.steps)).await;
        }
        if self.answered < self.len {
            self.answer_rest(session, &mut outbox.borrow_mut());
        }
        *self = Self::default();
    }

    /// Executes what the store need not wait for. If each key occurs once, queues the replies up to
    /// the first step that has to wait. Returns what has to wait, if anything.
    fn begin(
        &mut self,
        door: &Arc<Door>,
        session: &mut Session,
        staging: &[u8],
        outbox: &mut Outbox,
    ) -> Option<Waiting> {
        let (store, space, watcher) = (door.store(), session.space(), door.watcher());
        door.counters().count_commands(self.len);
        session.wire.count_commands(self.len);
        let last = &self.steps[usize::from(self.order[self.len - 1])];
        session.wire.show(watcher.plain[usize::from(last.set.is_some())]);
        let began = clock::host_now();
        let staged =
            if self.has_sets { self.stage(door, staging) } else { StagedValues::new(staging) };
        let (mut landing, mut left) = (Vec::new(), Vec::new());
        let (mut times, mut missed) = ([0; 2], 0);
        let mut answers = self.steps.len() == self.len;
        for (index, step) in self.steps.iter_mut().enumerate() {
            let key = HashedKey { hash: step.hash, key: &step.key };
            let tried = if let Some(set) = &mut step.set {
                set.try_put(door, space, key, &staged)
            } else {
                // Locks of the store are held where the value is taken: no memory is made there.
                let got = store.begin_get(space, key, |value| match value {
                    ValueRef::Borrowed(value) if answers && outbox.has_room(value.bytes()) => {
                        session.answer_with(value.bytes(), outbox);
                    }
                    value => step.reply = Some(Reply::Bulk(value.into_buf())),
                });
                tried_get(store, space, got)
            };
            answers &= matches!(tried, Tried::Done(_) | Tried::Found);
            let done = u64::from(step.times);
            match tried {
                Tried::Found => {
                    times[0] += done;
                    if answers && let Some(reply) = step.reply.take() {
                        session.answer(reply, outbox);
                    }
                    self.answered += usize::from(answers);
                }
                Tried::Done(reply) => {
                    times[usize::from(step.set.is_some())] += done;
                    missed += if let Reply::Null = reply { done } else { 0 };
                    if answers {
                        session.answer(reply, outbox);
                        self.answered += 1;
                    } else {
                        step.reply = Some(reply);
                    }
                }
                Tried::Landing(put) => landing.push((index, put)),
                Tried::MustWait => left.push((index, step.take())),
            }
        }
        let took = count(door, began, times, missed);
        let is_slow = times != [0, 0] && watcher.is_slow(took);
        if !is_slow && landing.is_empty() && left.is_empty() {
            return None;
        }
        let caller = Caller { door: door.clone(), space, client: session.id };
        let waiting = Waiting { caller, began, landing, left };
        if is_slow {
            let done = self.steps.iter().enumerate().filter(|(index, _)| !waiting.has(*index));
            done.for_each(|(_, step)| waiting.caller.keep_slow(step, took, &staged));
        }
        waiting.has_any().then_some(waiting)
    }

    /// Queues the replies that [`Self::begin`] has not, in the order of the requests.
    fn answer_rest(&mut self, session: &mut Session, outbox: &mut Outbox) {
        for at in &self.order[self.answered..self.len] {
            let step = &mut self.steps[usize::from(*at)];
            step.times -= 1;
            let reply = if step.times == 0 { step.reply.take() } else { step.reply.clone() };
            session.answer(reply.expect("each step has been executed"), outbox);
        }
    }

    /// Prepares the values of SETs.
    fn stage<'a>(&self, door: &Door, staging: &'a [u8]) -> StagedValues<'a> {
        let mut staged = StagedValues::new(staging);
        let ranges = self.steps.iter().filter_map(|step| step.set.as_ref()?.staged());
        door.counters().count_copy(ranges.clone().map(|range| range.len()).sum());
        if door.store().answers_early() {
            // The values stay in memory only until their page is full. The value cache of a disk
            // would copy each of them once more, to not keep the others.
            staged.share(ranges);
        }
        staged
    }
}

/// Returns what a GET has done that got this. A key without a value may be that of a hash or of a
/// sorted set.
fn tried_get(store: &Store, space: KeySpaceId, got: Option<Result<(), Error>>) -> Tried {
    match got {
        Some(Ok(())) => Tried::Found,
        Some(Err(Error::KeyNotFound | Error::NoKeySpace)) if !has_collections(store, space) => {
            Tried::Done(Reply::Null)
        }
        _ => Tried::MustWait,
    }
}

/// Counts GETs and SETs that were executed since `began`, and the GETs of them that found nothing.
/// Returns the time of each: its share.
fn count(door: &Door, began: Nanos, [gets, sets]: [u64; 2], missed: u64) -> Nanos {
    let took = Nanos(since(began).0 / (gets + sets).max(1));
    if gets > 0 {
        door.counters().count_lookups(true, gets - missed);
        door.counters().count_lookups(false, missed);
    }
    let watcher = door.watcher();
    watcher.tallies.count_all(watcher.plain[0], took, gets);
    watcher.tallies.count_all(watcher.plain[1], took, sets);
    took
}

impl Step {
    /// Moves out a step that has to wait, and leaves what its reply needs.
    fn take(&mut self) -> Self {
        let (key, set) = (self.key.clone(), self.set.take());
        Self { key, hash: self.hash, set, times: self.times, reply: None }
    }
}
