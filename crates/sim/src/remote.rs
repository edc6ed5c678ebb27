//! Keys and values over NVMe/TCP: one device behind the target, and hosts at the other end of a
//! network that splits, delays and cuts what they say. All of them work on the same keys.

use crate::client::Client;
use crate::history::Condition;
use crate::kv::check_pairs;
use crate::power::Power;
use crate::remote_host::RemoteHost;
use crate::remote_plan::{HOT_KEYS, Plan, pick};
use crate::remote_target::{ADDRESS, NQN, Target};
use crate::tally::Tally;
use crate::trace;
use base::{Nanos, Rng};
use client::{Association, Host, IoQueue, Reads, Settings};
use clock::Stage;
use net::{Conditions, End, Network};
use node::Device;
use std::cell::Cell;
use std::rc::Rc;

/// Hosts at a time.
const HOSTS: u8 = 16;

/// Runs `seed`, and returns what it went through.
///
/// # Panics
/// When some answer can not be, or a host that has left leaves something behind in the target.
pub(crate) fn run(seed: u64) -> Tally {
    Plan::run(seed, serve)
}

/// Serves a device to all hosts until they have left. Returns the victims that it cleaned, and how
/// often a host connected again.
async fn serve(plan: Rc<Plan>, client: Rc<Client>) -> (u64, u64) {
    let mut rng = Rng::new(base::mix(plan.seed));
    let device = plan.device().await;
    fill(&plan, &client, &device, &mut rng).await;

    let network = Network::new(plan.seed, plan.conditions);
    let target = Target::start(&network, &device);
    let has_ended = Rc::new(Cell::new(false));
    clock::spawn(cut(network.clone(), plan.clone(), rng.next_u64(), has_ended.clone()));
    let hosts = (1..=HOSTS).map(|number| {
        let rng = Rng::new(rng.next_u64());
        RemoteHost::new(number, &plan, &client, &network, rng).work()
    });
    let reconnections = clock::join_all(hosts.collect()).await.iter().sum();
    has_ended.set(true);
    target.wait_until_idle(&network).await;
    client.give_up();

    network.set_conditions(Conditions::CALM);
    check_content(&network, &client, &device).await;
    target.wait_until_idle(&network).await;
    (device.figures().store.victims, reconnections)
}

/// Stores all but the hot keys, from within the process: that takes no time.
async fn fill(plan: &Plan, client: &Client, device: &Device, rng: &mut Rng) {
    let queue = device.controller().queue_pair();
    let stores =
        (HOT_KEYS..plan.subjects).map(|subject| (subject, plan.store(Condition::None, rng)));
    let power = Power::default();
    let session = client.session(&queue);
    session.submit_all(&power, stores).await;
    session.finish(&power).await;
}

/// Cuts some connection again and again, whatever it is at.
async fn cut(network: Network, plan: Rc<Plan>, seed: u64, has_ended: Rc<Cell<bool>>) {
    let mut rng = Rng::new(seed);
    for _ in 0..plan.cuts {
        clock::sleep(Nanos(rng.below(plan.cut_every.0)), Stage::Queue).await;
        if has_ended.get() {
            return;
        }
        let open = network.open();
        if !open.is_empty() {
            let number = open[pick(open.len() as u64, &mut rng)];
            trace::event(format_args!("connection {number} of {} is cut", open.len()));
            network.cut(number);
        }
    }
}

/// Checks the pairs as one more host.
async fn check_content(network: &Network, client: &Client, device: &Device) {
    let (association, queue) = connect_calmly(network).await;
    check_pairs(&queue, client, device).await;
    assert_eq!((queue.failure(), association.failure()), (None, None), "nothing was cut");
    queue.close();
    association.shut_down().await.expect("nothing is cut");
}

async fn connect_calmly(network: &Network) -> (Association<End>, IoQueue<End>) {
    let stream = || async { network.connect(ADDRESS).await.expect("the target listens") };
    let settings = Settings::new(Host::of_uuid([HOSTS + 1; 16]), NQN);
    let association = Association::connect(settings, stream().await).await;
    let association = association.expect("the target takes one host");
    let queue = association.io_queue(vec![stream().await], Reads::Pairs).await;
    (association, queue.expect("the target takes one queue"))
}
