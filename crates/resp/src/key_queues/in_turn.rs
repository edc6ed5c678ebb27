use super::{BATCH_COMMANDS_MAX, Batch, QueueKey, Signal, Ticket, is_of_one_command};
use crate::door::Door;
use crate::failure::Failure;
use crate::transaction::Transaction;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

impl Door {
    /// Executes `work` as one step behind the commands that already wait for one of `keys`, and
    /// again until nothing overtakes it. Without keys it waits for no other command. With
    /// `is_alone` it commits alone.
    pub(crate) async fn in_turn<T>(
        &self,
        keys: Vec<QueueKey>,
        is_alone: bool,
        mut work: impl AsyncFnMut(&mut Transaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if keys.is_empty() {
            return self.one_step(work).await;
        }
        let ticket = self.join_queues(keys, is_alone);
        let mut outcome = None;
        loop {
            match ticket.receive().await {
                Signal::Execute(mut batch) => {
                    self.counters().count_execution();
                    batch.transaction.begin_step();
                    let done = work(&mut batch.transaction).await;
                    let lookups = batch.transaction.take_lookups();
                    self.step_done(batch, done.as_ref().err()).await;
                    outcome = Some((done, lookups));
                }
                Signal::End(Ok(())) => {
                    let outcome = outcome.expect("a command executes before its batch commits");
                    let (done, lookups) = outcome;
                    lookups.count(self.counters());
                    return done;
                }
                Signal::End(Err(failure)) => return Err(failure),
            }
        }
    }

    fn join_queues(&self, mut keys: Vec<QueueKey>, is_alone: bool) -> Arc<Ticket> {
        keys.sort_unstable();
        keys.dedup();
        let ticket =
            Arc::new(Ticket { keys, is_alone: AtomicBool::new(is_alone), inbox: Mutex::default() });
        if self.key_queues().push(&ticket) {
            let (first, batch) = (ticket.clone(), self.new_batch(&ticket, BATCH_COMMANDS_MAX));
            clock::spawn(async move { first.send(Signal::Execute(batch)) });
        }
        ticket
    }

    fn new_batch(&self, first: &Arc<Ticket>, members_max: usize) -> Box<Batch> {
        let (transaction, members) = (self.transaction(), vec![first.clone()]);
        Box::new(Batch { transaction, members, members_max })
    }

    /// The last member of `batch` has executed: passes the batch on, or commits it.
    async fn step_done(&self, mut batch: Box<Batch>, failure: Option<&Failure>) {
        let is_overtaken = matches!(failure, Some(Failure::Overtaken));
        if failure.is_some() {
            batch.transaction.undo_step();
        }
        if !batch.transaction.fits_batch() {
            if batch.members.len() > 1 {
                // The command begins the next batch.
                batch.transaction.undo_step();
                batch.members.pop();
            }
        } else if !is_overtaken && let Some(next) = self.key_queues().next(&batch) {
            batch.members.push(next.clone());
            return next.send(Signal::Execute(batch));
        }
        let Batch { transaction, members, .. } = *batch;
        let committed =
            if is_overtaken { Err(Failure::Overtaken) } else { transaction.commit().await };
        self.end_batch(&members, committed);
    }

    fn end_batch(&self, members: &[Arc<Ticket>], committed: Result<(), Failure>) {
        let first = &members[0];
        match committed {
            Err(Failure::Overtaken) => {
                let members_max = (members.len() / 2).max(1);
                first.send(Signal::Execute(self.new_batch(first, members_max)));
            }
            Err(Failure::Store(error)) if members.len() > 1 && is_of_one_command(error) => {
                for member in members {
                    member.is_alone.store(true, Ordering::Relaxed);
                }
                first.send(Signal::Execute(self.new_batch(first, 1)));
            }
            committed => {
                self.counters().count_batch();
                let heads = self.key_queues().pop(members);
                for member in members {
                    member.send(Signal::End(committed.clone()));
                }
                for head in heads {
                    let batch = self.new_batch(&head, BATCH_COMMANDS_MAX);
                    head.send(Signal::Execute(batch));
                }
            }
        }
    }
}
