//! Rates of operations, in millions a second of wall time.

use node::Device;
use std::time::Instant;
use workload::Plan;

/// Runs `plan` and returns its rate.
pub(crate) async fn rate(device: &Device, plan: &Plan) -> f64 {
    let queue = device.controller().queue_pair();
    let start = Instant::now();
    let outcome = workload::run(&queue, plan, |_, _| {}).await;
    assert_eq!(outcome.errors(), 0, "every operation succeeds");
    millions_a_second(outcome.operations(), start)
}

/// Returns the rate of `operations` since `start`.
#[expect(clippy::cast_precision_loss, reason = "for a report")]
pub(crate) fn millions_a_second(operations: u64, start: Instant) -> f64 {
    operations as f64 / start.elapsed().as_secs_f64() / 1e6
}

/// Returns the rate of the last round, or 0 before the first.
pub(crate) fn last(rates: &[f64]) -> f64 {
    rates.last().copied().unwrap_or(0.0)
}
