//! How Linux looks for namespaces, the same since 6.1.

use crate::hosts::attach::Host;
use crate::hosts::entry::Entry;
use crate::hosts::world::NSID;

/// The descriptor of a command set in CNS 03h: NIDT 4, NIDL 1, and here Key Value (Base 2.1,
/// Namespace Identification Descriptor).
pub(crate) const KEY_VALUE: [u8; 5] = [4, 1, 0, 0, 1];

/// From the list of namespaces to /dev/ng0n1.
pub(crate) async fn find_namespace(host: &mut Host) {
    let admin = &mut host.admin;
    // It remembers that this failed, if it does.
    admin.ask("Identify of CSI 0", Entry::identify_of(0x06, 0, 0)).await.whole();
    let list = admin.ask("Identify active namespaces", Entry::identify(0x02, 0)).await.whole();
    list.needs(
        "the list",
        |answer| (answer.u32(0), answer.u32(4)) == (NSID, 0),
        "It shows other namespaces than there are",
    );
    let descriptors = admin.ask("Identify descriptors", Entry::identify(0x03, NSID)).await;
    descriptors.whole().needs(
        "a descriptor of the command set",
        |answer| descriptors_of(&answer.data).any(|descriptor| descriptor == KEY_VALUE),
        "\"Command set not reported for nsid: 1\", and no /dev/ng0n1",
    );
    let independent = admin.ask("Identify independent", Entry::identify(0x08, NSID)).await;
    independent.whole().needs(
        "NSTAT.NRDY",
        |answer| answer.data[14] & 1 == 1,
        "No /dev/ng0n1; 6.1 says nothing of it",
    );
    let effects = admin.ask("effects of CSI 1", Entry::effects(1)).await.whole();
    effects.needs(
        "CSUPP of Store, Retrieve, List, Delete and Exist",
        |answer| {
            [0x01, 0x02, 0x06, 0x10, 0x14].iter().all(|at| answer.u32(1_024 + 4 * at) & 1 == 1)
        },
        "It shows the device; if the command fails there is none, and nothing is said",
    );
}

/// `nvme effects-log` of nvme-cli 2.13: a page for each command set that it knows, to the first
/// that fails.
pub(crate) async fn show_effects(host: &mut Host) {
    for set in [2, 0, 1] {
        host.admin.ask("nvme effects-log", Entry::effects(set)).await.whole();
    }
}

/// The descriptors of CNS 03h, each with its header of 4 bytes, up to one of type 0.
fn descriptors_of(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (kind, len) = (*rest.first()?, usize::from(*rest.get(1)?));
        let (descriptor, behind) = rest.split_at_checked(4 + len)?;
        rest = behind;
        (kind != 0).then_some(descriptor)
    })
}
