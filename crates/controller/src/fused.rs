//! Compare and Write, the only fused operation (Base 2.1, Fused Operations; NVM 1.1, Fused
//! Operation). It compares a block and then writes it; no other command writes it in between.
//!
//! Each of the two commands has a completion. If one is invalid, it gets its own status and the
//! other one Failed Fused Command, and nothing is done. These are its rules; `compare_and_write`
//! executes it.

use crate::namespace::Namespace;
use crate::span::Span;
use spec::{Command, Status};

/// Most logical blocks of a Compare and Write (ACWU). Every medium writes one block atomically, so
/// no Read sees a part of the write.
pub(crate) const BLOCKS_MAX: u16 = 1;

/// The status of a fused command whose other command is missing.
pub(crate) fn refusal_alone(namespace: &Namespace, command: &Command) -> Status {
    let is_part = command.begins_compare_and_write() || command.ends_compare_and_write();
    if matches!(namespace, Namespace::Block(_)) && is_part {
        Status::MISSING_FUSED_COMMAND
    } else {
        Status::INVALID_FIELD
    }
}

/// Checks that two adjacent commands are a Compare and Write of one block. The error is the status
/// of both.
pub(crate) fn check(
    namespace: &Namespace,
    first: &Command,
    second: &Command,
) -> Result<(), Status> {
    let is_one = matches!(namespace, Namespace::Block(_))
        && first.begins_compare_and_write()
        && second.ends_compare_and_write()
        && first.nsid() == second.nsid()
        && Span::of(first) == Span::of(second);
    if !is_one {
        return Err(Status::INVALID_FIELD);
    }
    if Span::of(first).count > BLOCKS_MAX.into() {
        return Err(Status::ATOMIC_WRITE_UNIT_EXCEEDED);
    }
    Ok(())
}

/// The statuses of both commands when the one at `at` ends with `status`.
pub(crate) const fn failed(at: usize, status: Status) -> [Status; 2] {
    let mut both = [Status::FAILED_FUSED_COMMAND; 2];
    both[at] = status;
    both
}
