//! A queue whose I/O commands are executed where its connection is, all in one reactor.

use crate::fabrics::host::pass;
use base::Nanos;
use clock::Users;
use controller::{
    Capsule, Controller, Entrance, FabricQueue, HostQueue, Lease, LeasedQueue, Response, Responses,
    Tenant,
};
use spec::Command;
use std::cell::OnceCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The number of the one that there is.
pub(crate) const TENANT: u32 = 7;

/// How long it takes until the other reactor is asked, and until it hears that a queue has ended.
const AWAY: Nanos = Nanos::from_micros(100);

/// Both ends of the connection between the reactors.
pub(crate) struct Leasing {
    responses: Rc<dyn Responses>,
    queue: OnceCell<FabricQueue>,
    leased: OnceCell<LeasedQueue>,
}

/// What a host has of it.
pub(crate) struct LeasingQueue(Rc<Leasing>);

/// What the device has of it.
struct End(Weak<Leasing>);

impl LeasingQueue {
    pub(crate) fn new(entrance: &Entrance, responses: Rc<dyn Responses>) -> Self {
        let (queue, leased) = Default::default();
        let leasing = Rc::new(Leasing { responses, queue, leased });
        let end = || Rc::new(End(Rc::downgrade(&leasing)));
        let is_new = leasing.queue.set(entrance.queue_of(end(), end())).is_ok();
        assert!(is_new);
        Self(leasing)
    }
}

impl Leasing {
    fn queue(&self) -> &FabricQueue {
        self.queue.get().expect("it is set at once")
    }
}

impl HostQueue for LeasingQueue {
    fn submit(&self, capsule: Capsule) {
        let left = match self.0.leased.get() {
            Some(leased) => leased.submit(capsule),
            None => Some(capsule),
        };
        if let Some(capsule) = left {
            self.0.queue().submit(capsule);
        }
    }

    fn execute_held(&self) {
        if let Some(leased) = self.0.leased.get() {
            leased.execute_held();
        }
        self.0.queue().execute_held();
    }

    fn close(&self) {
        if let Some(leased) = self.0.leased.get() {
            leased.close();
        }
        self.0.queue().close();
    }
}

impl End {
    fn with(&self, does: impl FnOnce(&Leasing)) {
        // A connection that is gone is told nothing.
        if let Some(leasing) = self.0.upgrade() {
            does(&leasing);
        }
    }

    fn with_later(&self, does: impl FnOnce(&Leasing) + 'static) {
        let end = Self(self.0.clone());
        clock::spawn(async move {
            pass(AWAY).await;
            end.with(does);
        });
    }
}

impl Responses for End {
    fn respond(&self, response: Response) {
        self.with(|leasing| match leasing.leased.get() {
            Some(leased) => leased.relay(response),
            None => leasing.responses.respond(response),
        });
    }

    fn end(&self) {
        self.with_later(|leasing| match leasing.leased.get() {
            Some(leased) => leased.end(),
            None => leasing.responses.end(),
        });
    }

    /// The other reactor has what the transport holds.
    fn withdraw(&self, _: u16) -> Option<Command> {
        None
    }
}

impl Tenant for End {
    fn number(&self) -> u32 {
        TENANT
    }

    fn lease(&self, device: &Arc<Controller>, lease: Lease) -> bool {
        self.with(|leasing| {
            let (responses, user) = (leasing.responses.clone(), Users::default().add());
            let leased = LeasedQueue::new(lease, device.clone(), responses, user);
            assert!(leasing.leased.set(leased).is_ok(), "a queue is leased once");
        });
        true
    }

    fn abort(&self, command_id: u16) {
        self.with_later(move |leasing| {
            let leased = leasing.leased.get().expect("what is not leased is aborted there");
            leasing.queue().aborted(leased.abort(command_id));
        });
    }
}
