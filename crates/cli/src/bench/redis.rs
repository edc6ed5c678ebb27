//! `kvasir bench` on a database of a Redis server: Kvasir or another. Measures what a client sees.

use super::foreign;
use super::outside::{self, Asked, Measured, More};
use super::plan::{self, Place};
use crate::args::BenchArgs;
use crate::output::{Failure, Output};
use crate::redis;
use resp_client::{RespQueue, Uri};
use serde::Serialize;
use workload::{DeviceFigures, Operation, Payload, Plan, Space, Ycsb};

/// Keys go into the target's database: a Redis server has no namespaces.
const NSID: u32 = 1;

/// Measures what `args` ask for.
pub(super) fn run(args: &BenchArgs) -> Result<Output, Failure> {
    let uri: Uri = args.measure.target.parse().map_err(Failure::refused)?;
    outside::check(args, "behind the Redis protocol")?;
    let plan = plan_of(args)?;
    let (measured, device, refusal) = redis::with(&uri, async |connections| {
        let info = redis::info(&uri, &connections[0]).await?;
        if !args.overwrite {
            foreign::check_database(&uri, &connections[0]).await?;
        }
        let queue = RespQueue::new(connections.to_vec());
        let lost = || queue.failure().map(|error| redis::broken(&uri, &error));
        let measured = outside::measure(args, &plan, &queue, lost, || {}).await;
        let measured = measured.map_err(|failure| with_words(failure, queue.refusal()))?;
        Ok((measured, redis::software(&info), queue.refusal()))
    })?;
    Ok(report(args, &plan, &uri, (&measured, device), refusal))
}

fn plan_of(args: &BenchArgs) -> Result<Plan, Failure> {
    let operation = plan::operation(args)?;
    if operation == Operation::Ycsb(Ycsb::E) {
        return Err(Failure::refused(
            "ycsb-e scans keys in their order, and plain keys of the Redis protocol have none",
        ));
    }
    plan::of(args, operation, Place { nsid: NSID, space: Space::Pairs, keys: None }, Payload::Full)
}

/// Adds the server's own message to a failure.
fn with_words(failure: Failure, refusal: Option<String>) -> Failure {
    match (failure, refusal) {
        (Failure::Broken(sentence), Some(said)) => {
            Failure::Broken(format!("{sentence}; the server said: {said}"))
        }
        (failure, _) => failure,
    }
}

fn report(
    args: &BenchArgs,
    plan: &Plan,
    uri: &Uri,
    (measured, device): (&Measured, String),
    refusal: Option<String>,
) -> Output {
    let target = uri.to_string();
    let asked = Asked { args, plan, target: &target, device };
    let more = Client { connections: uri.connections, refusal };
    outside::report(asked, measured, &DeviceFigures::default(), more)
}

/// How the client connected, and what the server refused.
#[derive(Debug, Serialize)]
struct Client {
    connections: u16,
    /// The first reply that refused a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
}

impl More for Client {
    /// A client sees the link only, not the stages behind it.
    const TELLS_STAGES: bool = false;
    const IS_SHARED: bool = true;

    fn facts(&self) -> Vec<(&'static str, String)> {
        let refusal = self.refusal.clone().map(|said| ("first refusal", said));
        let connections = ("connections", self.connections.to_string());
        [connections].into_iter().chain(refusal).collect()
    }
}
