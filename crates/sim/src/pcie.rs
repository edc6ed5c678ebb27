//! Keys and values over PCIe: one device with a function for each of several machines, which write
//! doorbells in each of three ways and reset their controllers at any time. All of them work on the
//! same keys.

use crate::client::{Client, ROOM, Request, list_all};
use crate::history::Condition;
use crate::kv::check_counts;
use crate::ledger::{Excuses, Seen};
use crate::pcie_host::PcieHost;
use crate::pcie_queues::{Content, PcieQueues, Reset};
use crate::pcie_target::{DoorbellMode, PcieTarget};
use crate::power::Power;
use crate::remote_plan::{HOT_KEYS, Plan};
use crate::tally::Tally;
use crate::trace;
use base::Rng;
use node::{Device, FaultPlan};
use reactor::Reactor;
use std::rc::Rc;

/// Machines at a time.
const HOSTS: u64 = 12;

/// Runs `seed`, and returns what it went through.
///
/// # Panics
/// If no order of the operations explains every answer, or if a machine that has left still holds a
/// handle on the subsystem.
pub(crate) fn run(seed: u64) -> Tally {
    let plan = Rc::new(Plan::new(seed));
    let client = Rc::new(plan.client());
    let mut reactor = Reactor::new((seed % 2 == 1).then_some(seed));
    reactor.set_trace(trace::is_on().then(trace::sink));
    let (victims, reconnections) = reactor.run(serve(plan, client.clone()));
    let tally = client.check(Excuses::default());
    Tally { victims, reconnections, ..tally }
}

/// Serves a device to all machines until they have left. Returns the victims that it cleaned, and
/// how often a controller was enabled again.
async fn serve(plan: Rc<Plan>, client: Rc<Client>) -> (u64, u64) {
    let mut rng = Rng::new(base::mix(plan.seed));
    let cells = Device::manufacture(&plan.profile, plan.seed);
    let device = Device::format(&plan.profile, cells, plan.seed, FaultPlan::default()).await;
    let device = Rc::new(device.expect("the device is large enough"));
    device.controller().set_delete_reports_missing(true);
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
async fn fill(plan: &Plan, client: &Client, target: &PcieTarget, rng: &mut Rng) {
    let queues = open_one(target, rng).await;
    let stores =
        (HOT_KEYS..plan.subjects).map(|subject| (subject, plan.store(Condition::None, rng)));
    let power = Power::default();
    let session = client.session(&queues);
    session.submit_all(&power, stores).await;
    session.finish_all(&power).await;
    queues.reset(Reset::Close);
}

/// Retrieves every key as one more machine. Checks that the device lists and counts exactly the
/// keys that exist.
async fn check_content(target: &PcieTarget, client: &Client, device: &Device, rng: &mut Rng) {
    let queues = open_one(target, rng).await;
    let everything =
        (0..client.keys.len()).map(|subject| (subject, Request::Retrieve { room: ROOM }));
    let power = Power::default();
    let session = client.session(&queues);
    session.submit_all(&power, everything).await;
    session.finish_all(&power).await;
    let listed = list_all(&queues, 4_096).await;
    let there = client.seen(Seen::There);
    assert!(listed == there, "{} keys are listed, and {} are there", listed.len(), there.len());
    check_counts(device, there.len() as u64, 0);
    queues.reset(Reset::Close);
}

async fn open_one(target: &PcieTarget, rng: &mut Rng) -> PcieQueues {
    let mode = DoorbellMode::draw(rng);
    let (driver, rng) = (Rc::new(target.attach(mode)), Rng::new(rng.next_u64()));
    PcieQueues::open(driver, mode, Content::Pairs, &[64, 64], rng).await
}
