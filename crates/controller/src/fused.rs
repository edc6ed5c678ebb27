//! Compare and Write, the only fused operation (Base 2.1, Fused Operations; NVM 1.1, Fused
//! Operation). It compares a block and then writes it; no other command writes it in between.
//!
//! Each of the two commands has a completion. If one is invalid, it gets its own status and the
//! other one Failed Fused Command, and nothing is done.

use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::logical_blocks::LogicalBlocks;
use crate::namespace::Namespace;
use crate::nvm::{compared, written};
use crate::queue::Submission;
use crate::span::Span;
use media::Blocks;
use smallvec::smallvec;
use spec::{Command, Status};
use std::sync::Arc;

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

impl Controller {
    /// Executes two adjacent commands as one operation. Polled inside.
    pub(crate) async fn execute_fused(
        &self,
        namespace: Option<Arc<Namespace>>,
        [first, second]: [Submission; 2],
    ) -> [Outcome; 2] {
        if let Some(delays) = &self.delays {
            delays.begin(2).await;
        }
        let outcomes = match namespace.as_deref() {
            None => [Err(Status::INVALID_NAMESPACE), Err(Status::INVALID_NAMESPACE)],
            Some(namespace) => match (check(namespace, &first.command, &second.command), namespace)
            {
                (Ok(()), Namespace::Block(blocks)) => {
                    self.compare_and_write(blocks, &first, second).await
                }
                (Ok(()), _) => unreachable!("only blocks have a fused operation"),
                (Err(status), _) => [Err(status), Err(status)],
            },
        };
        if let Some(delays) = &self.delays {
            delays.complete(2).await;
        }
        outcomes.map(Outcome::from)
    }

    async fn compare_and_write(
        &self,
        blocks: &Arc<dyn Blocks>,
        first: &Submission,
        second: Submission,
    ) -> [Executed; 2] {
        let shape = blocks.shape();
        let span = match Span::of(&first.command).within(shape.blocks) {
            Ok(span) => span,
            Err(status) => return failed(0, status).map(Err),
        };
        for (at, data) in [&first.data, &second.data].into_iter().enumerate() {
            let bytes = match span.fetch(shape.block_bytes, data) {
                Ok(bytes) => bytes,
                Err(status) => return failed(at, status).map(Err),
            };
            if let Some(delays) = &self.delays {
                delays.fetch(bytes).await;
            }
        }
        if let Some(delays) = &self.delays {
            delays.read("compare").await;
            delays.write("write").await;
        }
        let put = {
            let _held = self.span_locks.exclude(first.command.nsid(), span).await;
            if let Err(status) = compared(blocks, span, &first.data).await {
                return failed(0, status).map(Err);
            }
            blocks.write_from(span.first, smallvec![second.data]).await
        };
        let ended = match put {
            Ok(()) => written(blocks, &second.command).await,
            Err(status) => Err(status),
        };
        [Ok(Outcome::done()), ended]
    }
}
