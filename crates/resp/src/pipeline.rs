use crate::door::Door;
use crate::outbox::Outbox;
use crate::pipelined_writes::PipelinedWrites;
use crate::request::Request;
use crate::run::Run;
use crate::session::Session;
use std::cell::RefCell;
use std::rc::Rc;

/// Requests of one connection that execute together: a run of GETs and SETs, or writes of one key.
#[derive(Default)]
pub(crate) struct Pipeline {
    run: Run,
    writes: PipelinedWrites,
}

impl Pipeline {
    /// Adds `request` if it can execute together with those before it.
    pub(crate) fn take(&mut self, door: &Door, session: &Session, request: Request<'_>) -> bool {
        if !self.writes.is_empty() {
            return self.writes.take(door, session, request);
        }
        let is_first = self.run.is_empty();
        self.run.take(door, session, request)
            || is_first && self.writes.take(door, session, request)
    }

    /// Executes the requests and queues their answers. `staging` is that of the requests.
    pub(crate) async fn finish(
        &mut self,
        door: &Rc<Door>,
        session: &mut Session,
        staging: &[u8],
        outbox: &RefCell<Outbox>,
    ) {
        if !self.run.is_empty() {
            if self.run.stores() {
                // SETs that other clients have sent are announced first, and share pages.
                clock::give_way().await;
            }
            if let Some(waiting) = self.run.begin(door, session, staging) {
                self.run.add(Box::pin(waiting.finish()).await);
            }
            self.run.reply(session, &mut outbox.borrow_mut());
        } else if !self.writes.is_empty() {
            for reply in Box::pin(self.writes.finish(door, session)).await {
                session.answer(reply, &mut outbox.borrow_mut());
            }
        }
    }
}
