//! The kernels of Linux: 6.1, 6.12 and 7.2, with the options that change what goes over the wire.

use crate::hosts::attach::Host;
use crate::hosts::namespace::{find_namespace, show_effects};
use crate::hosts::passthrough;
use crate::hosts::pdu::Digests;
use crate::hosts::world::{NQN, World, play};
use crate::hosts::{attach, discovery};

/// A kernel, and how `nvme connect` was called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux {
    pub(crate) name: &'static str,
    /// 6.1 alone reads CC back before it enables the controller.
    pub(crate) reads_configuration_back: bool,
    /// `--hdr-digest --data-digest`.
    pub(crate) digests: Digests,
    /// Not `--disable-sqflow`.
    pub(crate) has_flow_control: bool,
}

pub(crate) const V6_1: Linux = Linux::new("Linux 6.1", true);
pub(crate) const V6_12: Linux = Linux::new("Linux 6.12", false);
pub(crate) const V7_2: Linux = Linux::new("Linux 7.2", false);

impl Linux {
    const fn new(name: &'static str, reads_configuration_back: bool) -> Self {
        Self { name, reads_configuration_back, digests: Digests::NONE, has_flow_control: true }
    }

    pub(crate) const fn with_digests(self) -> Self {
        Self { digests: Digests::BOTH, ..self }
    }

    pub(crate) const fn without_flow_control(self) -> Self {
        Self { has_flow_control: false, ..self }
    }
}

/// `nvme discover`, `nvme connect`, use of /dev/ng0n1, `nvme disconnect`, and all of it again.
pub(crate) async fn session(world: &World, linux: Linux) {
    discovery::session(world, linux).await;
    let mut host = Host::attach(world, linux, NQN, 5_000).await;
    host.connect_queues(world, 2).await;
    find_namespace(&mut host).await;
    show_effects(&mut host).await;
    passthrough::values(&mut host).await;
    passthrough::keys(&mut host).await;
    passthrough::crowd(&mut host).await;
    host.idle().await;
    passthrough::keep(&mut host.queues[0]).await;
    let first = host.controller_id;
    host.detach(world).await;

    let mut host = Host::attach(world, linux, NQN, 5_000).await;
    assert_ne!(host.controller_id, first, "another controller, each time");
    host.connect_queues(world, 1).await;
    find_namespace(&mut host).await;
    passthrough::find(&mut host.queues[0]).await;
    host.detach(world).await;
}

#[test]
fn linux_6_1_connects_and_uses_the_namespace_and_comes_again() {
    for linux in [V6_1, V6_1.with_digests(), V6_1.without_flow_control()] {
        play(&async |world| session(world, linux).await);
    }
}

#[test]
fn linux_6_12_connects_and_uses_the_namespace_and_comes_again() {
    for linux in [V6_12, V6_12.with_digests()] {
        play(&async |world| session(world, linux).await);
    }
}

#[test]
fn linux_7_2_connects_and_uses_the_namespace_and_comes_again() {
    for linux in [V7_2, V7_2.with_digests().without_flow_control()] {
        play(&async |world| session(world, linux).await);
    }
}

/// A host that the network hides is given up after its time, and connects anew.
#[test]
fn a_silent_linux_is_let_go_and_comes_back() {
    play(&async |world| {
        let mut host = Host::attach(world, V6_1, NQN, 5_000).await;
        host.connect_queues(world, 2).await;
        passthrough::keep(&mut host.queues[0]).await;
        clock::sleep(base::Nanos::from_secs(7), clock::Stage::Queue).await;
        host.admin.ended().await;
        for queue in &mut host.queues {
            queue.ended().await;
        }
        attach::settle(world).await;
        let mut again = Host::attach(world, V6_1, NQN, 5_000).await;
        again.connect_queues(world, 2).await;
        passthrough::find(&mut again.queues[1]).await;
        again.detach(world).await;
    });
}
