//! `kvasir bench` on a namespace over NVMe/TCP. Measures what a host sees. [`fit`] makes a plan
//! that the namespace can run.

mod fit;

use super::foreign;
use super::outside::{self, Asked, More};
use super::plan;
use crate::args::BenchArgs;
use crate::output::{Failure, Output};
use crate::remote::{self, Connected};
use base::human_bytes;
use base::limits::BLOCK_BYTES;
use client::Uri;
use serde::Serialize;
use workload::{DeviceFigures, Plan, Space};

/// Outstanding stores of the fill, as in `workload::fill`.
const FILL_DEPTH: u32 = 64;

/// Entries of the largest queue that this host asks for.
const QUEUE_ENTRIES_MAX: u32 = 1024;

/// Measures what `args` ask for.
pub(super) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    let uri: Uri = args.measure.target.parse().map_err(Failure::refused)?;
    outside::check(args, "over NVMe/TCP")?;
    let operation = plan::operation(args)?;
    fit::check(args, operation, &uri)?;
    let ((plan, measured, device), _) =
        remote::with(&uri, entries(args, &uri), async |connected| {
            let plan = fit::plan(args, operation, &uri, connected)?;
            let Connected { association, queue, .. } = connected;
            let lost = || {
                let error = queue.failure().or_else(|| association.failure());
                error.map(|error| remote::broken(&uri, &error))
            };
            if !args.overwrite {
                check_foreign(&uri, &plan, connected, lost).await?;
            }
            let measured = outside::measure(args, &plan, queue, lost, || {}).await?;
            Ok((plan, measured, describe(connected)))
        })?;
    let target = uri.to_string();
    let asked = Asked { args, plan: &plan, target: &target, device };
    let connection = Connection {
        queues: uri.queues,
        header_digest: uri.digests.header,
        data_digest: uri.digests.data,
    };
    Ok(outside::report(asked, &measured, &DeviceFigures::default(), connection))
}

/// Refuses a namespace with data that no run wrote.
async fn check_foreign(
    uri: &Uri,
    plan: &Plan,
    connected: &Connected,
    lost: impl Fn() -> Option<Failure>,
) -> Result<(), Failure> {
    let (target, queue) = (&uri.to_string(), &connected.queue);
    if plan.space == Space::Pairs {
        return foreign::check_pairs(target, queue, uri.nsid, lost).await;
    }
    let blocks = fit::size_bytes(&connected.namespace) / u64::from(BLOCK_BYTES);
    foreign::check_blocks(target, queue, (uri.nsid, blocks), lost).await
}

/// Entries of each queue: enough that no operation waits in this host, if the target allows as
/// many.
fn entries(args: &BenchArgs, uri: &Uri) -> u16 {
    let depth = match (args.rate, args.queue_depth) {
        (Some(_), None) => QUEUE_ENTRIES_MAX,
        (_, depth) => {
            let depth = depth.unwrap_or(plan::QUEUE_DEPTH);
            depth.max(FILL_DEPTH).div_ceil(uri.queues.into())
        }
    };
    u16::try_from((depth + 1).min(QUEUE_ENTRIES_MAX)).expect("1,024 at most")
}

/// The target's description of itself.
fn describe(connected: &Connected) -> String {
    let model = connected.association.controller().model_number;
    let model = model.as_str().filter(|model| !model.contains(char::is_control)).unwrap_or("?");
    format!("{model}, {}", human_bytes(fit::size_bytes(&connected.namespace)))
}

/// How the host connected.
#[derive(Debug, Serialize)]
struct Connection {
    /// I/O queues.
    queues: u16,
    header_digest: bool,
    data_digest: bool,
}

impl More for Connection {
    /// A host sees the link only, not the stages behind it.
    const TELLS_STAGES: bool = false;
    const IS_SHARED: bool = true;

    fn facts(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}
