use node::server::StagesStatus;
use serde::Serialize;

/// Shares of an interval in which a reactor was busy in each stage, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct StagesSample {
    pub(super) receive: f64,
    pub(super) kv: f64,
    pub(super) submit: f64,
    pub(super) complete: f64,
    pub(super) background: f64,
}

impl StagesSample {
    /// Returns the percentages of the time of each stage since `before`.
    pub(super) fn of(
        before: StagesStatus,
        after: StagesStatus,
        percent: impl Fn(u64) -> f64,
    ) -> Self {
        let share =
            |time: fn(&StagesStatus) -> u64| percent(time(&after).saturating_sub(time(&before)));
        Self {
            receive: share(|it| it.receive_ns),
            kv: share(|it| it.kv_ns),
            submit: share(|it| it.submit_ns),
            complete: share(|it| it.complete_ns),
            background: share(|it| it.background_ns),
        }
    }
}
