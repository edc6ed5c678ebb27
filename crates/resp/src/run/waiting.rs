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
use engine::{Error, KeySpaceId, Landing, Stored};
use std::sync::Arc;

/// Whose run it is.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) door: Arc<Door>,
    pub(super) space: KeySpaceId,
    pub(super) client: u64,
}

/// What a run has to wait for, by the places of its steps.
pub(super) struct Waiting {
    pub(super) caller: Caller,
    /// When the run began.
    pub(super) began: Nanos,
    /// SETs in the log that are not durable.
    pub(super) landing: Vec<(usize, Landing)>,
    /// Steps that have not begun.
    pub(super) left: Vec<(usize, Step)>,
}

/// How a step has ended.
enum End {
    /// A SET in the log is durable, or undone, so long after the run began.
    Landed(Result<Stored, Error>, Nanos),
    Executed(Reply),
}

/// The ends of steps, by their places in the run.
type Ends = Vec<(usize, End)>;

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

    /// Waits until all `steps` of the run are done, and notes the replies in them. Those in the log
    /// and those that have not begun wait side by side: the former hold space that the latter may
    /// wait for.
    pub(super) async fn finish(self, steps: &mut [Step]) {
        let Self { caller, began, landing, mut left } = self;
        let ends = match (landing.is_empty(), left.len()) {
            (false, 0) => caller.landed(began, landing).await,
            (true, 1) => {
                let (index, step) = left.pop().expect("its length is 1");
                vec![(index, End::Executed(caller.execute(step).await))]
            }
            _ => {
                let mut tasks: Vec<LocalFuture<'static, Ends>> = Vec::new();
                if !landing.is_empty() {
                    let caller = caller.clone();
                    tasks.push(Box::pin(async move { caller.landed(began, landing).await }));
                }
                tasks.extend(left.into_iter().map(|(index, step)| {
                    let caller = caller.clone();
                    let one =
                        async move { vec![(index, End::Executed(caller.execute(step).await))] };
                    Box::pin(one) as LocalFuture<'static, Ends>
                }));
                clock::join_at_once(tasks.into_iter()).await.into_iter().flatten().collect()
            }
        };
        caller.reply(steps, ends).await;
    }
}

impl Caller {
    /// Waits until SETs in the log are durable. The last one is waited for first: a failed one is
    /// undone after those that were stored later.
    async fn landed(&self, began: Nanos, mut landing: Vec<(usize, Landing)>) -> Ends {
        let store = self.door.store();
        let mut landed = Vec::with_capacity(landing.len());
        while let Some((index, last)) = landing.last() {
            let index = *index;
            let stored = match store.try_landed(last, clock::now(), &mut Stages::default()) {
                // What has landed drops where it is.
                Some(stored) => {
                    landing.truncate(landing.len() - 1);
                    Ok(stored)
                }
                None => {
                    let (_, last) = landing.pop().expect("it is not empty");
                    store.landed(last).await
                }
            };
            landed.push((index, stored));
        }
        let took = since(began);
        landed.into_iter().map(|(index, stored)| (index, End::Landed(stored, took))).collect()
    }

    /// Notes the replies to steps that have ended, and counts the SETs that have landed.
    async fn reply(&self, steps: &mut [Step], ends: Ends) {
        let has_collections = has_collections(self.door.store(), self.space);
        let (mut done, mut spent) = (0, Nanos::ZERO);
        for (index, end) in ends {
            let step = &mut steps[index];
            step.reply = Some(match end {
                End::Executed(reply) => reply,
                End::Landed(Ok(_), took) if !has_collections => {
                    (done, spent) = (done + u64::from(step.times), took);
                    self.keep_if_slow(step, took);
                    Reply::Ok
                }
                End::Landed(landed, took) => {
                    let set = step.set.as_ref().expect("only a SET is landing");
                    let stored = set.stored(&self.door, self.space, &step.key, landed).await;
                    let reply = stored.unwrap_or_else(Failure::reply);
                    self.tell(step, took, &reply);
                    reply
                }
            });
        }
        let watcher = self.door.watcher();
        watcher.tallies.count_all(watcher.plain[1], spent, done);
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
