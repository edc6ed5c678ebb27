use crate::bar0::Doorbell;
use crate::completion_queue::CompletionQueue;
use crate::pending::Pending;
use crate::polled_doorbells::PolledDoorbells;
use crate::queue_fault::QueueFault;
use crate::queue_set::{QueueIds, QueueSet};
use crate::submission_queue::SubmissionQueue;
use crate::tails::Tails;
use std::rc::Rc;

/// The queues of an enabled controller by their ids. Those of id 0 are the admin queues.
#[derive(Default)]
pub(crate) struct Queues {
    submission: Vec<Option<Rc<SubmissionQueue>>>,
    completion: Vec<Option<Rc<CompletionQueue>>>,
    /// Those that need something.
    pending: Rc<Pending>,
    polled: Option<Rc<PolledDoorbells>>,
    tails: Tails,
    /// The submission queue that is served next has this id, or the next higher one with commands.
    next: u16,
}

impl Queues {
    /// Returns no queues, of a controller with these doorbells.
    pub(crate) fn new(polled: Option<Rc<PolledDoorbells>>) -> Self {
        Self { polled, ..Self::default() }
    }

    /// Returns the set where queues note that they need something.
    pub(crate) fn pending(&self) -> &Rc<Pending> {
        &self.pending
    }

    /// Returns the submission queues with commands to fetch.
    #[inline]
    pub(crate) fn with_commands(&self) -> QueueIds {
        self.pending.commands.ids()
    }

    /// Takes the submission queue of `ids` that is served next.
    #[inline]
    pub(crate) fn in_turn(&self, ids: &mut QueueIds) -> Option<&Rc<SubmissionQueue>> {
        self.submission(ids.next_from(self.next)?)
    }

    /// Has the queues from this id on be served next.
    #[inline]
    pub(crate) fn set_next(&mut self, id: u16) {
        self.next = id;
    }

    #[inline]
    pub(crate) fn submission(&self, id: u16) -> Option<&Rc<SubmissionQueue>> {
        self.submission.get(usize::from(id))?.as_ref()
    }

    #[inline]
    pub(crate) fn completion(&self, id: u16) -> Option<&Rc<CompletionQueue>> {
        self.completion.get(usize::from(id))?.as_ref()
    }

    /// Returns whether a submission queue posts to this completion queue.
    pub(crate) fn uses(&self, completion: u16) -> bool {
        self.submission.iter().flatten().any(|queue| queue.completions().id() == completion)
    }

    pub(crate) fn add_submission(&mut self, queue: Rc<SubmissionQueue>) {
        self.set_polled(&queue, self.begin(queue.doorbell()));
        let id = queue.id();
        *place(&mut self.submission, id) = Some(queue);
    }

    pub(crate) fn add_completion(&mut self, queue: CompletionQueue) {
        queue.set_polled(self.begin(queue.doorbell()));
        let id = queue.id();
        *place(&mut self.completion, id) = Some(Rc::new(queue));
    }

    /// Has a queue read its tail there.
    fn set_polled(&self, queue: &SubmissionQueue, polled: Option<Rc<PolledDoorbells>>) {
        queue.set_polled(polled);
        self.tails.set(queue.id(), queue.tail());
        self.tails.unarmed.insert(queue.id());
    }

    /// Returns where a new queue reads its doorbell, if anywhere.
    fn begin(&self, doorbell: Doorbell) -> Option<Rc<PolledDoorbells>> {
        let polled = self.polled_of(doorbell)?;
        polled.clear(doorbell);
        Some(polled.clone())
    }

    fn polled_of(&self, doorbell: Doorbell) -> Option<&Rc<PolledDoorbells>> {
        self.polled.as_ref().filter(|polled| polled.has_those_of(doorbell.queue()))
    }

    pub(crate) fn remove_submission(&mut self, id: u16) -> Option<Rc<SubmissionQueue>> {
        let removed = self.submission.get_mut(usize::from(id))?.take()?;
        removed.completions().forget(id);
        self.pending.commands.remove(id);
        Some(removed)
    }

    /// Removes a completion queue to which no submission queue posts.
    pub(crate) fn remove_completion(&mut self, id: u16) {
        *place(&mut self.completion, id) = None;
        self.pending.room.remove(id);
        self.pending.writes.remove(id);
        self.pending.interrupts.remove(id);
    }

    /// Has the I/O queues read their doorbells in host memory.
    pub(crate) fn set_shadow(&mut self, shadow: PolledDoorbells) {
        let shadow = Rc::new(shadow);
        for queue in self.submission.iter().flatten() {
            self.set_polled(queue, Some(shadow.clone()).filter(|it| it.has_those_of(queue.id())));
        }
        for queue in self.completion.iter().flatten() {
            queue.set_polled(Some(shadow.clone()).filter(|it| it.has_those_of(queue.id())));
        }
        self.polled = Some(shadow);
    }

    /// Takes a value that the host has written to BAR 0.
    pub(crate) fn ring(&self, doorbell: Doorbell, value: u32) -> Result<(), QueueFault> {
        if let Some(polled) = self.polled_of(doorbell) {
            polled.ring(doorbell, value);
            return Ok(());
        }
        match doorbell {
            Doorbell::Tail(id) => self.submission(id).map_or(Ok(()), |queue| queue.set_tail(value)),
            Doorbell::Head(id) => self.completion(id).map_or(Ok(()), |queue| queue.consume(value)),
        }
    }

    /// Reads a doorbell that the host has written to BAR 0, if it is polled.
    pub(crate) fn look_at(&self, doorbell: Doorbell) -> Result<(), QueueFault> {
        match doorbell {
            Doorbell::Tail(id) => self.tails.look_at(id, |id| self.look_at_tail(id)).map(|_| ()),
            Doorbell::Head(id) => self.completion(id).map_or(Ok(()), |queue| queue.look()),
        }
    }

    /// Has a submission queue take its tail, if that is polled. Returns the tail.
    #[inline]
    fn look_at_tail(&self, id: u16) -> Result<Option<u16>, QueueFault> {
        self.submission(id).map_or(Ok(None), |queue| queue.look())
    }

    /// Reads the doorbells that are polled. After a `thorough` call, either a command can be
    /// fetched, or all of them were read. Another call may leave out queues that were not used
    /// recently.
    pub(crate) fn look(&self, thorough: bool) -> Result<(), QueueFault> {
        let Some(polled) = &self.polled else { return Ok(()) };
        for id in self.pending.room.ids() {
            self.completion(id).map_or(Ok(()), |queue| queue.look())?;
        }
        let take = |id| self.look_at_tail(id);
        let has_read_all = self.tails.look(polled, thorough, take)?;
        // A recent queue may have news and no room for its commands.
        if thorough && !has_read_all && !self.has_next() {
            self.tails.look_at_all(polled, &QueueSet::default(), take)?;
        }
        Ok(())
    }

    /// Asks the host to write real doorbells from now on. Returns whether doorbells are polled,
    /// which are to be read once more then.
    pub(crate) fn arm(&self) -> bool {
        for id in self.pending.room.ids() {
            self.completion(id).into_iter().for_each(|queue| queue.arm());
        }
        for id in self.tails.unarmed.take() {
            // If its memory has gone, the host finds no index there either, until it is back.
            if self.submission(id).is_some_and(|queue| queue.arm().is_err()) {
                self.tails.unarmed.insert(id);
            }
        }
        self.polled.is_some()
    }

    /// Returns whether completions are to be written, or an interrupt is to be raised.
    #[inline]
    pub(crate) fn has_posted(&self) -> bool {
        !self.pending.writes.is_empty() || !self.pending.interrupts.is_empty()
    }

    /// Writes the completions that were posted: those of admin commands last, for they may tell of
    /// commands that have ended.
    #[inline]
    pub(crate) fn write_posted(&self) -> Result<(), QueueFault> {
        let ids = self.pending.writes.take();
        let io = ids.clone().filter(|id| *id > 0);
        let admin = ids.take_while(|id| *id == 0);
        let mut queues = io.chain(admin).filter_map(|id| self.completion(id));
        queues.try_for_each(|queue| queue.write_posted())
    }

    /// Returns whether a command can be fetched.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        let has_next = |id| self.submission(id).is_some_and(|queue| queue.has_next());
        self.pending.commands.ids().any(has_next)
    }

    /// Calls `raise` with the vectors of queues that have posted completions.
    #[inline]
    pub(crate) fn take_interrupt(&self, raise: impl Fn(u16)) {
        let vectors = self.pending.interrupts.take();
        vectors.filter_map(|id| self.completion(id)?.vector()).for_each(raise);
    }

    /// Ends all queues.
    pub(crate) fn close(self) {
        self.submission.iter().flatten().for_each(|queue| queue.close());
    }
}

/// Returns the place of a queue by its id.
fn place<Q>(queues: &mut Vec<Option<Q>>, id: u16) -> &mut Option<Q> {
    let place = usize::from(id);
    queues.resize_with(queues.len().max(place + 1), || None);
    &mut queues[place]
}
