use crate::bar0::Doorbell;
use crate::completion_queue::CompletionQueue;
use crate::polled_doorbells::PolledDoorbells;
use crate::queue_fault::QueueFault;
use crate::submission_queue::SubmissionQueue;
use std::rc::Rc;

/// The queues of an enabled controller, the admin queues first.
#[derive(Default)]
pub(crate) struct Queues {
    submission: Vec<Rc<SubmissionQueue>>,
    completion: Vec<Rc<CompletionQueue>>,
    polled: Option<Rc<PolledDoorbells>>,
    /// The place of the submission queue that is served next.
    next: usize,
}

impl Queues {
    /// Returns no queues, of a controller with these doorbells.
    pub(crate) fn new(polled: Option<Rc<PolledDoorbells>>) -> Self {
        Self { polled, ..Self::default() }
    }

    pub(crate) fn submission_count(&self) -> usize {
        self.submission.len()
    }

    /// Returns the submission queue that is served next.
    #[inline]
    pub(crate) fn in_turn(&self) -> Option<&Rc<SubmissionQueue>> {
        self.submission.get(self.next).or(self.submission.first())
    }

    /// Has the queue after that be served next.
    #[inline]
    pub(crate) fn pass_turn(&mut self) {
        let next = self.next + 1;
        self.next = if next < self.submission.len() { next } else { 0 };
    }

    pub(crate) fn submission(&self, id: u16) -> Option<&Rc<SubmissionQueue>> {
        self.submission.iter().find(|queue| queue.id() == id)
    }

    pub(crate) fn completion(&self, id: u16) -> Option<&Rc<CompletionQueue>> {
        self.completion.iter().find(|queue| queue.id() == id)
    }

    /// Returns whether a submission queue posts to this completion queue.
    pub(crate) fn uses(&self, completion: u16) -> bool {
        self.submission.iter().any(|queue| queue.completions().id() == completion)
    }

    pub(crate) fn add_submission(&mut self, queue: Rc<SubmissionQueue>) {
        queue.set_polled(self.begin(queue.doorbell()));
        self.submission.push(queue);
    }

    pub(crate) fn add_completion(&mut self, queue: CompletionQueue) {
        queue.set_polled(self.begin(queue.doorbell()));
        self.completion.push(Rc::new(queue));
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
        let place = self.submission.iter().position(|queue| queue.id() == id)?;
        let removed = self.submission.remove(place);
        removed.completions().forget(id);
        Some(removed)
    }

    pub(crate) fn remove_completion(&mut self, id: u16) {
        self.completion.retain(|queue| queue.id() != id);
    }

    /// Has the I/O queues read their doorbells in host memory.
    pub(crate) fn set_shadow(&mut self, shadow: PolledDoorbells) {
        let shadow = Rc::new(shadow);
        for queue in self.submission.iter().filter(|queue| shadow.has_those_of(queue.id())) {
            queue.set_polled(Some(shadow.clone()));
        }
        for queue in self.completion.iter().filter(|queue| shadow.has_those_of(queue.id())) {
            queue.set_polled(Some(shadow.clone()));
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

    /// Reads the doorbells that are polled.
    pub(crate) fn look(&self) -> Result<(), QueueFault> {
        if self.polled.is_some() {
            self.completion.iter().try_for_each(|queue| queue.look())?;
            self.submission.iter().try_for_each(|queue| queue.look())?;
        }
        Ok(())
    }

    /// Asks the host to write real doorbells from now on. Returns whether doorbells are polled,
    /// which are to be read once more then.
    pub(crate) fn arm(&self) -> bool {
        self.completion.iter().for_each(|queue| queue.arm());
        self.submission.iter().for_each(|queue| queue.arm());
        self.polled.is_some()
    }

    /// Returns whether an interrupt is to be raised.
    #[inline]
    pub(crate) fn has_interrupt(&self) -> bool {
        self.completion.iter().any(|queue| queue.has_interrupt())
    }

    /// Returns whether a command can be fetched.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.submission.iter().any(|queue| queue.has_next())
    }

    /// Calls `raise` with the vectors of queues that have posted completions.
    #[inline]
    pub(crate) fn take_interrupt(&self, raise: impl Fn(u16)) {
        self.completion.iter().filter_map(|queue| queue.take_interrupt()).for_each(raise);
    }

    /// Ends all queues.
    pub(crate) fn close(self) {
        self.submission.iter().for_each(|queue| queue.close());
    }
}
