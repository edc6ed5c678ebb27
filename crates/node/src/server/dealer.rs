//! Chooses the reactor of each accepted connection.

use super::accept_order::AcceptOrder;
use super::balance::end_of_window;
use super::placed_connections::DealtReactors;
use super::places::ConnectionPermit;
use balance::ConnectionPlacer;
use base::Nanos;
use clock::BusyStage;
use std::cell::RefCell;
use std::rc::Rc;

/// Deals the connections that a reactor accepts to itself and others.
#[derive(Debug)]
pub(super) struct Dealer {
    order: AcceptOrder,
    /// Set if the server is balanced.
    by_load: Option<Rc<ByLoad>>,
}

/// The choice by load: of the policies `conn` and `auto`.
#[derive(Debug)]
struct ByLoad {
    reactors: DealtReactors,
    placer: RefCell<ConnectionPlacer>,
}

impl Dealer {
    /// Deals to `count` reactors. If the server is balanced, these are `reactors`: spawns a task
    /// that measures their load as long as the calling reactor runs.
    pub(super) fn among(count: usize, reactors: Option<DealtReactors>) -> Self {
        let by_load = reactors.map(|reactors| {
            assert_eq!(reactors.count(), count, "each reactor has a load");
            let placer = RefCell::new(ConnectionPlacer::new(count));
            let by_load = Rc::new(ByLoad { reactors, placer });
            clock::spawn(by_load.clone().end_windows());
            by_load
        });
        Self { order: AcceptOrder::among(count), by_load }
    }

    /// Returns the index of the reactor for the connection with this `permit`. The connection
    /// counts for this reactor until it drops the permit.
    pub(super) fn deal(&self, permit: &mut ConnectionPermit) -> usize {
        let Some(by_load) = &self.by_load else { return self.order.take() };
        let index = by_load.choose().unwrap_or_else(|| self.order.take());
        permit.count_in(by_load.reactors.place(index));
        index
    }
}

impl ByLoad {
    /// Returns the index of the reactor for a new connection. `None`: the policy is another one.
    fn choose(&self) -> Option<usize> {
        let config = self.reactors.config();
        let mut placer = self.placer.borrow_mut();
        let connections = self.reactors.connections();
        config
            .policy
            .places_connections()
            .then(|| placer.choose(&connections, config.settings.spread))
    }

    /// Ends a window of the placer again and again, with each policy: the next one may need it.
    async fn end_windows(self: Rc<Self>) {
        clock::name_task("connection placer");
        clock::set_busy_stage(BusyStage::Background);
        let (mut began, mut before) = (clock::host_now(), self.reactors.busy());
        loop {
            let length = || self.reactors.config().settings.window;
            let now = end_of_window(began, length).await;
            let busy = self.reactors.busy();
            let grown = busy.iter().zip(&before).map(|(&now, &before)| now - before);
            let grown: Vec<Nanos> = grown.collect();
            let connections = self.reactors.connections();
            self.placer.borrow_mut().end_window(now - began, &grown, &connections);
            (began, before) = (now, busy);
        }
    }
}
