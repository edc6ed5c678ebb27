//! Keys and values over PCIe: one device with a function for each of several machines, which write
//! doorbells in each of three ways and reset their controllers, and now and then those of all
//! machines, at any time. All of them work on the same keys.

use crate::client::Client;
use crate::history::Condition;
use crate::kv::check_pairs;
use crate::pcie_host::PcieHost;
use crate::pcie_queues::{Content, PcieQueues, Reset};
use crate::pcie_target::{DoorbellMode, PcieTarget};
use crate::power::Power;
use crate::remote_plan::{HOT_KEYS, Plan};
use crate::tally::Tally;
use base::Rng;
use node::Device;
use std::rc::Rc;

/// Machines at a time.
const HOSTS: u64 = 12;

/// Runs `seed`, and returns what it went through.
///
/// # Panics
/// If no order of the operations explains every answer, or if a machine that has left still holds a
/// handle on the subsystem.
pub(crate) fn run(seed: u64) -> Tally {
    Plan::run(seed, serve)
}

/// Serves a device to all machines until they have left. Returns the victims that it cleaned, and
/// how often a controller was enabled again.
async fn serve(plan: Rc<Plan>, client: Rc<Client>) -> (u64, u64) {
    let mut rng = Rng::new(base::mix(plan.seed));
    let device = plan.device().await;
    let target = Rc::new(PcieTarget::new(device.controller()));
    fill(&plan, &client, &target, &mut rng).await;
    let hosts = (0..HOSTS).map(|_| {
        let rng = Rng::new(rng.next_u64());
        PcieHost::new(&plan, &client, &target, rng).work()
    });
    let reconnections = clock::join_all(hosts.collect()).await.iter().sum();
    target.wait_until_idle().await;
    client.give_up();
    check_content(&target, &client, &device, &mut rng).await;
    target.wait_until_idle().await;
    (device.figures().store.victims, reconnections)
}

/// Stores all but the hot keys.
async fn fill(plan: &Plan, client: &Client, target: &Rc<PcieTarget>, rng: &mut Rng) {
    let queues = open_one(target, rng).await;
    let stores =
        (HOT_KEYS..plan.subjects).map(|subject| (subject, plan.store(Condition::None, rng)));
    let power = Power::default();
    let session = client.session(&queues);
    session.submit_all(&power, stores).await;
    session.finish_all(&power).await;
    queues.reset(Reset::Close);
}

/// Checks the pairs as one more machine.
async fn check_content(target: &Rc<PcieTarget>, client: &Client, device: &Device, rng: &mut Rng) {
    let queues = open_one(target, rng).await;
    check_pairs(&queues, client, device).await;
    queues.reset(Reset::Close);
}

async fn open_one(target: &Rc<PcieTarget>, rng: &mut Rng) -> PcieQueues {
    let mode = DoorbellMode::draw(rng);
    let (driver, rng) = (Rc::new(target.attach(mode)), Rng::new(rng.next_u64()));
    PcieQueues::open(target, driver, mode, Content::Pairs, &[64, 64], rng).await
}
