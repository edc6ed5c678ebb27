use crate::subject::{EchoCost, TargetCost};
use experiments::median;

/// A larger share of the core for other programs disturbs a measurement.
const DISTURBED_MAX: f64 = 0.10;

/// A measurement of each server and drive.
pub(crate) struct Round {
    pub(crate) echo: EchoCost,
    /// `mem:` over TCP.
    pub(crate) memory: TargetCost,
    /// The drive on a file over TCP.
    pub(crate) file: TargetCost,
    /// The drive in memory without sockets, in nanoseconds.
    pub(crate) local_memory: f64,
    /// The drive on a file without sockets, in nanoseconds.
    pub(crate) local_file: f64,
}

/// The measurements of an operation, one of each server a round.
#[derive(Default)]
pub(crate) struct Rounds {
    receive: Vec<f64>,
    reply: Vec<f64>,
    /// What `mem:` takes more than the echo of the same round.
    kv: Vec<f64>,
    /// What a drive on a file takes more than one in memory, without sockets.
    disk: Vec<f64>,
    /// The drive on a file, over TCP.
    file: Vec<f64>,
    memory_busy: Vec<f64>,
    file_busy: Vec<f64>,
    file_with_idle: Vec<f64>,
    disturbed: Vec<f64>,
    disk_bytes: Vec<f64>,
}

/// CPU time of the stages of a request, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stages {
    pub(crate) receive: f64,
    pub(crate) kv: f64,
    pub(crate) submit: f64,
    pub(crate) complete: f64,
    pub(crate) reply: f64,
}

impl Rounds {
    pub(crate) fn push(&mut self, round: &Round) {
        let Round { echo, memory, file, local_memory, local_file } = round;
        self.receive.push(echo.receive);
        self.reply.push(echo.reply);
        self.kv.push(memory.cpu - echo.receive - echo.reply);
        self.disk.push(local_file - local_memory);
        self.file.push(file.cpu);
        self.memory_busy.push(memory.busy_share);
        self.file_busy.push(file.busy_share);
        self.file_with_idle.push(file.with_idle);
        self.disturbed.push(memory.disturbed_share.max(file.disturbed_share));
        self.disk_bytes.push(file.disk_bytes);
    }

    /// Returns the medians. Fails if they do not count: another program used the core, a stage took
    /// less than no time, or values of `value_bytes` did not go to the disk or come from it.
    pub(crate) fn stages(&self, value_bytes: usize) -> Result<Stages, String> {
        let [receive, kv, disk, reply, disk_bytes] =
            [&self.receive, &self.kv, &self.disk, &self.reply, &self.disk_bytes]
                .map(|values| median(&mut values.clone()));
        let disturbed = median(&mut self.disturbed.clone());
        if disturbed > DISTURBED_MAX {
            let percent = disturbed * 100.0;
            return Err(format!("another program used {percent:.0} % of the server's core"));
        }
        if kv < 0.0 {
            return Err(format!("mem: took {:.0} ns less than the echo", -kv));
        }
        if disk < 0.0 {
            return Err(format!("a drive on a file took {:.0} ns less than one in memory", -disk));
        }
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        if disk_bytes < value_bytes as f64 {
            return Err(format!("the disk moved {disk_bytes:.0} B for {value_bytes} B"));
        }
        let (submit, complete) = (disk / 2.0, disk / 2.0);
        Ok(Stages { receive, kv, submit, complete, reply })
    }

    /// Returns the median CPU time of the drive on a file over TCP, without and with that of
    /// looking for something to do.
    pub(crate) fn on_file(&self) -> [f64; 2] {
        [&self.file, &self.file_with_idle].map(|values| median(&mut values.clone()))
    }

    /// Returns the median busy shares of `mem:` and of the drive on a file.
    pub(crate) fn busy_shares(&self) -> [f64; 2] {
        [&self.memory_busy, &self.file_busy].map(|values| median(&mut values.clone()))
    }
}

impl Stages {
    /// The names, in the order of [`Self::values`].
    pub(crate) const NAMES: [&str; 5] = ["receive", "kv", "submit", "complete", "reply"];

    /// Returns the times in the order of a request.
    pub(crate) fn values(&self) -> [f64; 5] {
        [self.receive, self.kv, self.submit, self.complete, self.reply]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: EchoCost = EchoCost { receive: 1.0, reply: 2.0 };

    fn target(cpu: f64) -> TargetCost {
        TargetCost { cpu, with_idle: cpu, busy_share: 1.0, disturbed_share: 0.0, disk_bytes: 100.0 }
    }

    fn rounds(memory: f64, disk: f64) -> Rounds {
        let mut rounds = Rounds::default();
        let (memory, file) = (target(memory), target(memory));
        let (local_memory, local_file) = (10.0, 10.0 + disk);
        rounds.push(&Round { echo: ECHO, memory, file, local_memory, local_file });
        rounds
    }

    #[test]
    fn stages_are_differences_of_servers() {
        let stages = Stages { receive: 1.0, kv: 4.0, submit: 3.0, complete: 3.0, reply: 2.0 };
        assert_eq!(rounds(7.0, 6.0).stages(100), Ok(stages));
    }

    #[test]
    fn a_negative_difference_does_not_count() {
        assert!(rounds(2.0, 6.0).stages(100).is_err());
        assert!(rounds(7.0, -1.0).stages(100).is_err());
    }

    #[test]
    fn a_machine_that_others_use_does_not_count() {
        let mut disturbed = rounds(7.0, 6.0);
        disturbed.disturbed = vec![0.11];
        assert!(disturbed.stages(100).is_err());
    }

    #[test]
    fn a_drive_that_answers_without_its_disk_does_not_count() {
        assert!(rounds(7.0, 6.0).stages(101).is_err());
    }
}
