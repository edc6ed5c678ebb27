#[cfg(test)]
mod tests;

use crate::door::Door;
use crate::failure::Failure;
use crate::hidden::has_collections;
use crate::outbox::Outbox;
use crate::plain_get;
use crate::plain_set::{PlainSet, Tried};
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::staged_values::StagedValues;
use crate::watcher::since;
use base::{Key, Nanos};
use clock::LocalFuture;
use engine::{HashedKey, KeySpaceId, Landing};
use std::rc::Rc;

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

/// Plain GETs and SETs of one connection that follow each other. No key has both, so their order
/// does not matter: each executes at once if the store need not wait for it, and the others execute
/// side by side.
#[derive(Debug, Default)]
pub(crate) struct Run {
    steps: Vec<Step>,
    /// Which marks the keys of the steps have: see [`Key::mark`].
    marks: u64,
    /// The step of each request.
    order: [u8; RUN_MAX],
    len: usize,
}

impl Run {
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether it has a SET.
    pub(crate) fn stores(&self) -> bool {
        self.steps.iter().any(|step| step.set.is_some())
    }

    /// Adds `request` if it is a plain GET or SET that does not depend on those before it.
    pub(crate) fn take(&mut self, door: &Door, session: &Session, request: Request<'_>) -> bool {
        // No command that changes the session comes between requests of a run.
        let may_begin = || session.queue.is_none() && session.may_do_all();
        if self.len == RUN_MAX || self.is_empty() && !may_begin() {
            return false;
        }
        let Some(is_set) = is_plain_set(request) else { return false };
        let Ok(key) = Key::new(request.arg(1)) else { return false };
        if is_set && door.key_queues().has(session.space(), &key) {
            // It would overtake the commands that are queued.
            return false;
        }
        let store = door.store();
        let mark = 1 << key.mark();
        let known = if self.marks & mark == 0 { None } else { self.place(&key) };
        let at = known.unwrap_or(self.steps.len());
        match self.steps.get_mut(at) {
            Some(Step { set: None, times, .. }) if !is_set => *times += 1,
            Some(Step { set: Some(set), times, .. }) if is_set => {
                set.replace(request);
                *times += 1;
            }
            Some(_) => return false,
            None => {
                let hash = key.hash();
                let (space, hashed) = (session.space(), HashedKey { hash, key: &key });
                if is_set {
                    store.expect_write(space, hashed)
                } else {
                    store.expect(space, hashed)
                }
                if at == 0 {
                    self.steps.reserve_exact(if request.is_last { 1 } else { RUN_MAX });
                }
                self.marks |= mark;
                let set = is_set.then(|| PlainSet::new(store, request));
                self.steps.push(Step { key, hash, set, times: 1, reply: None });
            }
        }
        self.order[self.len] = u8::try_from(at).expect("a run is short");
        self.len += 1;
        true
    }

    /// Which step `key` has.
    fn place(&self, key: &Key) -> Option<usize> {
        self.steps.iter().position(|step| step.key == *key)
    }

    /// Executes what the store need not wait for. Returns what has to wait, if anything: its
    /// replies go to [`Self::add`]. The values of SETs are in `staging`.
    pub(crate) fn begin(
        &mut self,
        door: &Rc<Door>,
        session: &Session,
        staging: &[u8],
    ) -> Option<Waiting> {
        let (store, space) = (door.store(), session.space());
        let numbers = door.watcher().plain;
        door.counters().count_commands(self.len);
        session.wire.count_commands(self.len);
        let last = usize::from(self.order[self.len - 1]);
        session.wire.show(numbers[usize::from(self.steps[last].set.is_some())]);
        let caller = Caller { door: door.clone(), space, client: session.id };
        let began = clock::host_now();
        let mut waiting = Waiting { caller, began, landing: Vec::new(), left: Vec::new() };
        let staged =
            if self.stores() { self.stage(door, staging) } else { StagedValues::new(staging) };
        for (index, step) in self.steps.iter_mut().enumerate() {
            let hashed = HashedKey { hash: step.hash, key: &step.key };
            let Some(set) = &mut step.set else {
                step.reply = plain_get::try_get(store, space, hashed);
                if step.reply.is_none() {
                    waiting.left.push((index, step.take()));
                }
                continue;
            };
            match set.try_put(door, space, hashed, &staged) {
                Tried::Done => step.reply = Some(Reply::Ok),
                Tried::Landing(landing) => {
                    waiting.landing.push((index, step.take(), landing));
                }
                Tried::MustWait => waiting.left.push((index, step.take())),
            }
        }
        self.tell_done(&waiting.caller, since(began), &staged);
        (!waiting.landing.is_empty() || !waiting.left.is_empty()).then_some(waiting)
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

    /// Counts the requests that are done. They took `took` together: each one's time is its share.
    fn tell_done(&self, caller: &Caller, took: Nanos, staged: &StagedValues<'_>) {
        let (mut times, mut missed) = ([0; 2], 0);
        for step in self.steps.iter().filter(|step| step.reply.is_some()) {
            times[usize::from(step.set.is_some())] += u64::from(step.times);
            missed += if let Some(Reply::Null) = step.reply { u64::from(step.times) } else { 0 };
        }
        let [gets, sets] = times;
        if gets + sets == 0 {
            return;
        }
        let took = Nanos(took.0 / (gets + sets));
        let watcher = caller.door.watcher();
        caller.door.counters().count_lookups(true, gets - missed);
        caller.door.counters().count_lookups(false, missed);
        watcher.tallies.count_all(watcher.plain[0], took, gets);
        watcher.tallies.count_all(watcher.plain[1], took, sets);
        if watcher.is_slow(took) {
            self.steps.iter().filter(|step| step.reply.is_some()).for_each(|step| {
                caller.keep_slow(step, took, staged);
            });
        }
    }

    /// Adds the replies to what had to wait.
    pub(crate) fn add(&mut self, replies: Replies) {
        for (index, reply) in replies {
            self.steps[index].reply = Some(reply);
        }
    }

    /// Queues the replies in the order of the requests. The run is empty then.
    pub(crate) fn reply(&mut self, session: &mut Session, outbox: &mut Outbox) {
        self.marks = 0;
        let steps = std::mem::take(&mut self.steps);
        let order = &self.order[..std::mem::take(&mut self.len)];
        let reply = |step: Step| step.reply.expect("each step has been executed");
        if order.len() == steps.len() {
            if order.len() > 1 {
                outbox.reserve(order.len() * REPLY_BYTES);
            }
            for step in steps {
                session.answer(reply(step), outbox);
            }
            return;
        }
        let replies: Vec<Reply> = steps.into_iter().map(reply).collect();
        for at in order {
            session.answer(replies[usize::from(*at)].clone(), outbox);
        }
    }
}

/// Whether `request` is a SET without options (true) or a GET (false) whose arguments are not too
/// long.
#[inline]
fn is_plain_set(request: Request<'_>) -> Option<bool> {
    let &[a, b, c] = request.arg(0) else { return None };
    let name = [a, b, c].map(|byte| byte.to_ascii_lowercase());
    match (request.len(), &name) {
        _ if request.is_too_long() => None,
        (2, b"get") => Some(false),
        (3, b"set") => Some(true),
        _ => None,
    }
}

impl Step {
    /// Moves the step out, and leaves what its reply needs.
    fn take(&mut self) -> Self {
        let (key, set) = (self.key.clone(), self.set.take());
        Self { key, hash: self.hash, set, times: self.times, reply: None }
    }
}

/// Whose run it is.
#[derive(Clone)]
struct Caller {
    door: Rc<Door>,
    space: KeySpaceId,
    client: u64,
}

/// Steps of a run that have to wait, with their places in it.
pub(crate) struct Waiting {
    caller: Caller,
    /// When the run began.
    began: Nanos,
    /// In the log, but not durable.
    landing: Vec<(usize, Step, Landing)>,
    /// Not begun.
    left: Vec<(usize, Step)>,
}

/// Replies to steps, by their places in the run.
pub(crate) type Replies = Vec<(usize, Reply)>;

impl Waiting {
    /// Waits until all steps are done. Those in the log and those that have not begun wait side by
    /// side: the former hold space that the latter may wait for.
    pub(crate) async fn finish(self) -> Replies {
        let Self { caller, began, landing, mut left } = self;
        match (landing.is_empty(), left.len()) {
            (false, 0) => caller.landed(began, landing).await,
            (true, 1) => {
                let (index, step) = left.pop().expect("its length is 1");
                vec![(index, caller.execute(step).await)]
            }
            _ => {
                let mut tasks: Vec<LocalFuture<'static, Replies>> = Vec::new();
                if !landing.is_empty() {
                    let caller = caller.clone();
                    tasks.push(Box::pin(async move { caller.landed(began, landing).await }));
                }
                tasks.extend(left.into_iter().map(|(index, step)| {
                    let caller = caller.clone();
                    let one = async move { vec![(index, caller.execute(step).await)] };
                    Box::pin(one) as LocalFuture<'static, Replies>
                }));
                clock::join_at_once(tasks.into_iter()).await.into_iter().flatten().collect()
            }
        }
    }
}

impl Caller {
    /// Returns the replies to SETs in the log once they are durable. The last one is waited for
    /// first: a failed one is undone after those that were stored later.
    async fn landed(&self, began: Nanos, landing: Vec<(usize, Step, Landing)>) -> Replies {
        let mut landed = Vec::with_capacity(landing.len());
        for (index, step, landing) in landing.into_iter().rev() {
            let store = self.door.store();
            let stored = match store.try_landed(landing, clock::now()) {
                Ok(durable) => Ok(durable.stored),
                Err(landing) => store.landed(landing).await,
            };
            landed.push((index, step, stored));
        }
        let (took, mut done) = (since(began), 0);
        let mut replies = Vec::with_capacity(landed.len());
        for (index, step, landed) in landed.into_iter().rev() {
            let set = step.set.as_ref().expect("only a SET is landing");
            if landed.is_ok() && !has_collections(self.door.store(), self.space) {
                done += u64::from(step.times);
                self.keep_if_slow(&step, took);
                replies.push((index, Reply::Ok));
                continue;
            }
            let stored = set.stored(&self.door, self.space, &step.key, landed).await;
            let reply = stored.unwrap_or_else(Failure::reply);
            self.tell(&step, since(began), &reply);
            replies.push((index, reply));
        }
        let watcher = self.door.watcher();
        watcher.tallies.count_all(watcher.plain[1], took, done);
        replies
    }

    /// Executes a step that may have to wait.
    async fn execute(&self, mut step: Step) -> Reply {
        let began = clock::host_now();
        let done = match &mut step.set {
            None => plain_get::get(&self.door, self.space, &step.key).await,
            Some(set) => set.put(&self.door, self.space, &step.key).await,
        };
        let reply = done.unwrap_or_else(Failure::reply);
        self.tell(&step, since(began), &reply);
        reply
    }

    /// Counts a step that is done, and keeps it if it is slow.
    fn tell(&self, step: &Step, took: Nanos, reply: &Reply) {
        let (door, watcher) = (&self.door, self.door.watcher());
        let times = u64::from(step.times);
        if step.set.is_none() {
            door.counters().count_lookups(!matches!(reply, Reply::Null), times);
        }
        let number = watcher.plain[usize::from(step.set.is_some())];
        watcher.tallies.count_all(number, took, times);
        let failed = (0..times).filter(|_| watcher.count_error(reply)).count();
        watcher.tallies.count_failed(number, failed);
        self.keep_if_slow(step, took);
    }

    /// Keeps a step that has waited, if it is slow.
    fn keep_if_slow(&self, step: &Step, took: Nanos) {
        if self.door.watcher().is_slow(took) {
            self.keep_slow(step, took, &StagedValues::new(&[]));
        }
    }

    #[cold]
    fn keep_slow(&self, step: &Step, took: Nanos, staged: &StagedValues<'_>) {
        let number = self.door.watcher().plain[usize::from(step.set.is_some())];
        let value = step.set.as_ref().map(|set| set.bytes(staged));
        let args = [number.name().as_bytes(), step.key.as_bytes()].into_iter().chain(value);
        let args: Vec<&[u8]> = args.collect();
        self.door.keep_slow(self.client, number, took, args.into_iter());
    }
}
