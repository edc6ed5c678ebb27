//! Compare and Write, the one fused operation (Base 2.1, Fused Operations; NVM 1.1, Fused
//! Operation): blocks are compared and then written, and no other command writes them in between.
//!
//! Of the two commands each has a completion. What is found wrong with one before anything is done
//! ends it with its own status, and the other one as Failed Fused Command.

use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::logical_blocks::LogicalBlocks;
use crate::namespace::Namespace;
use crate::nvm::{compared, written};
use crate::queue::Submission;
use crate::span::Span;
use clock::Code;
use media::Blocks;
use smallvec::smallvec;
use spec::{Command, Status};
use std::sync::Arc;

/// Logical blocks of a Compare and Write at most (ACWU): as many as every medium writes as one, so
/// that no Read sees a part of it.
pub(crate) const BLOCKS_MAX: u16 = 1;

/// Why a command that is a part of a fused operation cannot be executed without its other one.
pub(crate) fn refusal_alone(namespace: &Namespace, command: &Command) -> Status {
    let is_part = command.begins_compare_and_write() || command.ends_compare_and_write();
    if matches!(namespace, Namespace::Block(_)) && is_part {
        Status::MISSING_FUSED_COMMAND
    } else {
        Status::INVALID_FIELD
    }
}

/// Whether two commands, which are next to each other, are an operation that there is. What is
/// wrong is so with both.
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

/// How both end when one of them is wrong: that one for `status`, if it is the `at`th.
pub(crate) const fn failed(at: usize, status: Status) -> [Status; 2] {
    let mut both = [Status::FAILED_FUSED_COMMAND; 2];
    both[at] = status;
    both
}

impl Controller {
    /// Executes two commands of a namespace as one operation. Polled inside.
    pub(crate) async fn execute_fused(
        &self,
        namespace: Option<Arc<Namespace>>,
        [first, second]: [Submission; 2],
    ) -> [Outcome; 2] {
        self.gate.pass().await;
        self.cores.charge(Code::Parse, 2).await;
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
        self.cores.charge(Code::Complete, 2).await;
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
            match span.fetch(shape.block_bytes, data) {
                Ok(bytes) => self.link.fetch(bytes).await,
                Err(status) => return failed(at, status).map(Err),
            }
        }
        self.firmware.handle("compare", self.firmware.costs.t_read, None).await;
        self.firmware.handle("write", self.firmware.costs.t_write, None).await;
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
