//! What a host may note of a namespace (Base 2.1, Namespace Identification Descriptor list).

use crate::fabrics::host::{KV, NQN, World, run, subsystem, subsystem_of_incarnation};
use spec::{Cns, Command};
use std::collections::BTreeSet;

/// The UUID of the namespace of pairs of this subsystem.
async fn uuid(world: &World, nqn: &str) -> Vec<u8> {
    let (admin, _) = world.admin_of(nqn, 0).await;
    let list = admin.read(Command::identify(Cns::NAMESPACE_DESCRIPTORS, KV)).await;
    // Each begins with NIDT, NIDL and two bytes of nothing; NIDT 3 is a UUID.
    let mut at = 0;
    while list[at] != 3 {
        assert_ne!(list[at], 0, "the list has a UUID");
        at += 4 + usize::from(list[at + 1]);
    }
    assert_eq!(list[at + 1], 16);
    list[at + 4..at + 20].to_vec()
}

/// The worlds stand for two starts of one server.
#[test]
fn a_namespace_has_the_same_uuid_each_time_and_another_in_another_subsystem() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        run(async |world| {
            let other = "nqn.2026-01.org.example:other";
            world.subsystems.add(subsystem(other, &world.device, &world.flash));
            seen.push(uuid(&world, NQN).await);
            assert_ne!(uuid(&world, other).await, uuid(&world, NQN).await);
        });
    }
    assert_eq!(seen[0], seen[1]);
    // RFC 9562: version 8, and the variant of its own.
    assert_eq!((seen[0][6] >> 4, seen[0][8] >> 6), (8, 0b10));
}

/// The UUID of the namespace of pairs of a subsystem of incarnation 0.
const FIRST: u128 = 0x056cc6df_cb08_88b4_9901_e9fee588dc4a;

/// Hosts store these, so another version of the program must not change them.
#[test]
fn namespace_has_another_uuid_in_each_incarnation_of_its_device() {
    let mut seen = BTreeSet::new();
    for incarnation in 0..5 {
        run(async |world| {
            let nqn = "nqn.2026-01.org.example:kept";
            let device = (&world.device, incarnation);
            world.subsystems.add(subsystem_of_incarnation(nqn, device, &world.flash));
            let uuid = uuid(&world, nqn).await;
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (8, 0b10));
            if incarnation == 0 {
                assert_eq!(u128::from_be_bytes(uuid[..].try_into().unwrap()), FIRST);
            }
            assert!(seen.insert(uuid), "incarnation {incarnation}");
        });
    }
}
