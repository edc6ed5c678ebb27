//! What of a run has to wait for the store.

use super::Step;
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::hidden::has_collections;
use crate::reply::Reply;
use crate::staged_values::StagedValues;
use crate::transaction::Transaction;
use crate::values;
use crate::watcher::since;
use base::{Key, Nanos};
use clock::{LocalFuture, Stages};
use engine::{Error, KeySpaceId, Landing};
use std::sync::Arc;

/// Whose run it is.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) door: Arc<Door>,
    pub(super) space: KeySpaceId,
    pub(super) client: u64,
}

/// Steps of a run that have to wait, with their places in it.
pub(super) struct Waiting {
    pub(super) caller: Caller,
    /// When the run began.
    pub(super) began: Nanos,
    /// In the log, but not durable.
    pub(super) landing: Vec<(usize, Step, Landing)>,
    /// Not begun.
    pub(super) left: Vec<(usize, Step)>,
}

/// Replies to steps, by their places in the run.
type Replies = Vec<(usize, Reply)>;

impl Waiting {
    /// Returns true if a step has to wait.
    pub(super) fn has_any(&self) -> bool {
        !self.landing.is_empty() || !self.left.is_empty()
    }

    /// Returns true if the step at this place of the run has to wait.
    pub(super) fn has(&self, index: usize) -> bool {
        let landing = self.landing.iter().map(|(at, ..)| *at);
        landing.chain(self.left.iter().map(|(at, _)| *at)).any(|at| at == index)
    }

    /// Waits until all steps are done. Those in the log and those that have not begun wait side by
    /// side: the former hold space that the latter may wait for.
    pub(super) async fn finish(self) -> Replies {
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
            let stored = match store.try_landed(&landing, clock::now(), &mut Stages::default()) {
                Some(stored) => Ok(stored),
                None => store.landed(landing).await,
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
            None => get(&self.door, self.space, &step.key).await,
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
    pub(super) fn keep_slow(&self, step: &Step, took: Nanos, staged: &StagedValues<'_>) {
        let number = self.door.watcher().plain[usize::from(step.set.is_some())];
        let value = step.set.as_ref().map(|set| set.bytes(staged));
        let args = [number.name().as_bytes(), step.key.as_bytes()].into_iter().chain(value);
        let args: Vec<&[u8]> = args.collect();
        self.door.keep_slow(self.client, number, took, args.into_iter());
    }
}

/// Returns the reply to a GET as soon as the store has read the value. It needs no version of that.
async fn get(door: &Door, space: KeySpaceId, key: &Key) -> Outcome {
    match door.store().get(space, key).await {
        Ok(value) => Ok(Reply::Bulk(value)),
        Err(Error::KeyNotFound | Error::NoKeySpace) if has_collections(door.store(), space) => {
            Box::pin(door.one_step(async |transaction: &mut Transaction| {
                let held = values::string(transaction, space, key).await?;
                Ok(Reply::optional(held.map(|held| held.value)))
            }))
            .await
        }
        Err(Error::KeyNotFound | Error::NoKeySpace) => Ok(Reply::Null),
        Err(error) => Err(error.into()),
    }
}
