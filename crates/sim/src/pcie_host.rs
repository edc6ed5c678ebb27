use crate::client::Client;
use crate::host_command::HostCommand;
use crate::pcie_queues::{Content, PcieQueues, Reset, reset_later};
use crate::pcie_target::{DoorbellMode, PcieTarget};
use crate::remote_plan::{Plan, pick};
use base::{Nanos, Rng};
use clock::Stage;
use controller::{Completion, Queue};
use pcie::PciFunction;
use spec::Status;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Operations of a host.
const OPERATIONS: u64 = 60;

/// How long a host waits at most before it enables its controller again.
const PAUSE: Nanos = Nanos::from_millis(1);

/// A machine with a function of the device. It resets its controller at any time, and then enables
/// it again.
pub(crate) struct PcieHost {
    plan: Rc<Plan>,
    client: Rc<Client>,
    target: Rc<PcieTarget>,
    rng: Rng,
    mode: DoorbellMode,
    /// Entries of each I/O queue.
    entries: Vec<u16>,
    /// Commands that it keeps outstanding.
    outstanding: usize,
}

impl PcieHost {
    pub(crate) fn new(
        plan: &Rc<Plan>,
        client: &Rc<Client>,
        target: &Rc<PcieTarget>,
        mut rng: Rng,
    ) -> Self {
        let mode = DoorbellMode::draw(&mut rng);
        let queues = 1 + pick(8, &mut rng);
        let entries = (0..queues).map(|_| [2, 3, 17, 64][pick(4, &mut rng)]).collect();
        let outstanding = 1 + pick(if rng.below(4) == 0 { 64 } else { 8 }, &mut rng);
        let (plan, client, target) = (plan.clone(), client.clone(), target.clone());
        Self { plan, client, target, rng, mode, entries, outstanding }
    }

    /// Does all its operations, and leaves. Returns how often it had to enable a controller again.
    pub(crate) async fn work(mut self) -> u64 {
        let (mut left, mut sessions) = (OPERATIONS, 0);
        let mut driver = Rc::new(self.target.attach(self.mode));
        while left > 0 {
            let rng = Rng::new(self.rng.next_u64());
            let (mode, entries) = (self.mode, &self.entries);
            let (target, driver_now) = (&self.target, driver.clone());
            let queues =
                PcieQueues::open(target, driver_now, mode, Content::Pairs, entries, rng).await;
            sessions += 1;
            left = self.talk(&queues, left).await;
            queues.reset(self.draw_reset());
            clock::sleep(Nanos(self.rng.below(PAUSE.0)), Stage::Queue).await;
            queues.check_untouched();
            if queues.is_closed() {
                driver = Rc::new(self.target.attach(self.mode));
            }
        }
        driver.function.close();
        sessions - 1
    }

    fn draw_reset(&mut self) -> Reset {
        // It ends the queues of all hosts.
        if self.rng.below(16) == 0 {
            return Reset::Subsystem;
        }
        let resets = [Reset::Disable, Reset::ShutDown, Reset::Function, Reset::Close];
        resets[pick(4, &mut self.rng)]
    }

    /// Submits some of the `left` operations, until the controller is reset or the host wants to
    /// leave. Returns how many operations it has not submitted. The device never answers commands
    /// that are still outstanding.
    async fn talk(&mut self, queues: &PcieQueues, left: u64) -> u64 {
        let here = left.min(1 + self.rng.below(2 * OPERATIONS));
        let (mut done, leaves_abruptly) = (0, self.rng.below(4) == 0);
        if self.plan.cuts > 0 && self.rng.below(2) == 0 {
            let after = Nanos(self.rng.below(self.plan.cut_every.0));
            let reset = self.draw_reset();
            clock::spawn(reset_later(queues.clone(), after, reset));
        }
        let mut pending = BTreeMap::new();
        loop {
            while done < here && !queues.is_over() && pending.len() < self.outstanding {
                let (command, submission) =
                    HostCommand::draw(&self.plan, &self.client, &mut self.rng);
                let before = pending.insert(queues.submit(submission), command);
                assert!(before.is_none(), "a queue numbers its commands");
                done += 1;
            }
            if pending.is_empty() || (done == here && leaves_abruptly) {
                break;
            }
            let completion = queues.next().await;
            let command = pending.remove(&completion.id).expect("a command is completed once");
            self.note(queues, command, &completion);
        }
        left - done
    }

    fn note(&self, queues: &PcieQueues, command: HostCommand, completion: &Completion) {
        if completion.status == Status::HOST_PATHING_ERROR {
            assert!(queues.is_over(), "only a reset ends a command so");
        } else {
            command.note(&self.client, completion);
        }
    }
}
