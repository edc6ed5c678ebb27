use crate::fabrics::io_context::IoContext;
use crate::fabrics::slots::Ticket;
use crate::io_command::Begun;
use crate::namespace::NamespaceInUse;
use crate::quick::Quick;
use crate::submission::Submission;
use base::Nanos;
use clock::BusyStage;
use std::sync::Arc;

/// A decoded I/O command.
pub(crate) struct Job<T> {
    pub(crate) namespace: Arc<NamespaceInUse>,
    pub(crate) begun: Begun,
    pub(crate) todo: T,
}

/// What the device has to do for a command.
pub(crate) enum Todo {
    Execute(Submission),
    /// Execute what may have to wait.
    Quick(Quick),
}

impl<T> Job<T> {
    /// Begins it in the task that executes it. Returns the device's and the controller's part.
    pub(crate) fn begin(
        self,
        io_context: &IoContext,
        ticket: Ticket,
    ) -> (Arc<NamespaceInUse>, T, (Begun, Nanos)) {
        clock::set_busy_stage(BusyStage::Kv);
        clock::label(ticket.head.command_id.into());
        clock::begin_account();
        let at = clock::now();
        io_context.tally.begin(at);
        (self.namespace, self.todo, (self.begun, at))
    }

    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Job<U> {
        let Self { namespace, begun, todo } = self;
        Job { namespace, begun, todo: map(todo) }
    }
}
