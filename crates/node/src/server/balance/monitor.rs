//! The task that ends the windows.

use super::shared::Shared;
use balance::{Balancer, Load};
use clock::{BusyStage, Stage};
use std::sync::Arc;

/// Ends a window of the balancer again and again, until its reactor ends.
pub(super) async fn end_windows(shared: Arc<Shared>) {
    clock::name_task("balancer");
    clock::set_busy_stage(BusyStage::Background);
    let config = shared.config();
    let mut balancer = Balancer::new(config.policy, config.settings, shared.reactors());
    let (mut began, mut before) = (clock::host_now(), shared.loads());
    loop {
        clock::sleep(shared.config().settings.window, Stage::Queue).await;
        clock::catch_up().await;
        let (config, now, loads) = (shared.config(), clock::host_now(), shared.loads());
        let window = now - began;
        // Reactors count their time in pieces, so a short window says little.
        if window.0 < config.settings.window.0 / 2 {
            continue;
        }
        balancer.set(config.policy, config.settings);
        let grown: Vec<Load> =
            loads.iter().zip(&before).map(|(now, before)| *now - *before).collect();
        shared.publish(balancer.end_window(window, &grown));
        (began, before) = (now, loads);
    }
}
