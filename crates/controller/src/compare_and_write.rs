use crate::completion::{Executed, Outcome};
use crate::controller::Controller;
use crate::fused::{check, failed};
use crate::logical_blocks::LogicalBlocks;
use crate::namespace::{Namespace, NamespaceInUse};
use crate::nvm::{compared, written};
use crate::span::Span;
use crate::submission::Submission;
use media::Blocks;
use smallvec::smallvec;
use spec::Status;
use std::ops::Deref;
use std::sync::Arc;

impl Controller {
    /// Executes two adjacent commands as one operation.
    pub(crate) async fn execute_fused(
        &self,
        namespace: Option<Arc<NamespaceInUse>>,
        [first, second]: [Submission; 2],
    ) -> [Outcome; 2] {
        if let Some(delays) = &self.delays {
            delays.begin(2).await;
        }
        let outcomes = match namespace.as_deref().map(Deref::deref) {
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
        if let Some(complete) = self.delays.as_ref().and_then(|delays| delays.complete(2)) {
            complete.await;
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
