//! The namespace of a load.

use crate::output::Failure;
use crate::target::Target;
use node::profile::NamespaceKind;
use workload::{Operation, Space};

/// Returns the id of the namespace that `target` names, or of the first that supports `operation`.
pub(super) fn choose(target: &Target, operation: Operation) -> Result<u32, Failure> {
    choose_by(target, operation.name(), |kind| takes(kind, operation))
}

/// The same for the operations of a trace.
pub(super) fn choose_for_trace(target: &Target) -> Result<u32, Failure> {
    choose_by(target, "replay", NamespaceKind::is_kv)
}

fn choose_by(
    target: &Target,
    workload: &str,
    takes: impl Fn(&NamespaceKind) -> bool,
) -> Result<u32, Failure> {
    let (name, namespaces) = (&target.profile.name, &target.profile.namespaces);
    let wanted = (1..).zip(namespaces).filter(|(nsid, _)| target.nsid.is_none_or(|it| it == *nsid));
    if let Some((nsid, _)) = wanted.clone().find(|(_, namespace)| takes(&namespace.kind)) {
        return Ok(nsid);
    }
    let mut kinds: Vec<String> = wanted.map(|(_, namespace)| fitting(&namespace.kind)).collect();
    kinds.sort();
    kinds.dedup();
    let kinds = kinds.join("; ");
    Err(Failure::Refused(match target.nsid {
        None => format!("{workload} is for no namespace of {name}: {kinds}"),
        Some(nsid) => format!("{workload} is not for namespace {nsid} of {name}: {kinds}"),
    }))
}

fn takes(kind: &NamespaceKind, operation: Operation) -> bool {
    match kind {
        NamespaceKind::Kv => operation.is_for_pairs(),
        NamespaceKind::Block(_) => operation.is_for_blocks(),
        NamespaceKind::Zoned(_) => operation.is_for_zones(),
    }
}

/// Describes a kind of namespace and the loads that it accepts.
fn fitting(kind: &NamespaceKind) -> String {
    let workloads = match kind {
        NamespaceKind::Kv => "store, retrieve, mixed, delete, exist, ycsb-a to ycsb-f and replay",
        NamespaceKind::Block(_) => "read, write, randread, randwrite and mixed",
        NamespaceKind::Zoned(_) => "read, write and randread",
    };
    format!("one of kind {} takes {workloads}", kind.name())
}

/// Returns the keys of a namespace. The zones are known only once the device exists.
pub(super) fn of(kind: &NamespaceKind) -> Space {
    if kind.is_kv() { Space::Pairs } else { Space::Blocks }
}
