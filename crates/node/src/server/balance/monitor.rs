//! The task that ends the windows.

use super::shared::Shared;
use balance::{Balancer, Load};
use base::Nanos;
use clock::Stage;
use std::sync::Arc;

/// Balances reactors until its reactor ends.
pub(super) async fn balance(shared: Arc<Shared>) {
    clock::name_task("balancer");
    let config = shared.config();
    let mut balancer = Balancer::new(config.policy, config.settings, shared.reactors());
    let (mut began, mut before) = (clock::host_now(), shared.loads());
    loop {
        clock::sleep(shared.config().settings.window, Stage::Queue).await;
        let config = shared.config();
        balancer.set(config.policy, config.settings);
        let (now, loads) = (clock::host_now(), shared.loads());
        let grown: Vec<Load> = loads.iter().zip(&before).map(growth).collect();
        shared.publish(balancer.end_window(now - began, &grown));
        (began, before) = (now, loads);
    }
}

fn growth((now, before): (&Load, &Load)) -> Load {
    let since = |now: Nanos, before: Nanos| now - before;
    Load { busy: since(now.busy, before.busy), movable: since(now.movable, before.movable) }
}
