//! The task that ends the windows.

use super::shared::Shared;
use super::window::end_of_window;
use balance::{Balancer, Load};
use clock::BusyStage;
use std::sync::Arc;

/// Ends a window of the balancer again and again, until its reactor ends.
pub(super) async fn end_windows(shared: Arc<Shared>) {
    clock::name_task("balancer");
    clock::set_busy_stage(BusyStage::Background);
    let config = shared.config();
    let mut balancer = Balancer::new(config.policy, config.settings, shared.reactors());
    let (mut began, mut before) = (clock::host_now(), shared.loads());
    loop {
        let now = end_of_window(began, || shared.config().settings.window).await;
        let (config, loads) = (shared.config(), shared.loads());
        balancer.set(config.policy, config.settings);
        let grown: Vec<Load> =
            loads.iter().zip(&before).map(|(now, before)| *now - *before).collect();
        shared.publish(balancer.end_window(now - began, &grown));
        (began, before) = (now, loads);
    }
}
