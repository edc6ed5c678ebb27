use base::Nanos;
use clock::Stage;
use controller::Completion;
use workload::Tally;

/// Commands of one kind, and their total time on the device's clock.
#[derive(Debug, Default)]
pub(super) struct Phase {
    pub(super) tally: Tally,
    pub(super) elapsed: Nanos,
}

impl Phase {
    /// Counts a successful command that the host sees complete now.
    pub(super) fn record(&mut self, completion: &Completion) {
        let late = clock::host_now() - completion.completed;
        let mut stages = completion.stages;
        stages.add(Stage::Late, late);
        self.tally.record(completion.latency() + late, &stages);
    }
}
