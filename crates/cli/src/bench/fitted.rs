//! Tells whether a load is within the points that a profile was fitted to.

use super::report::Subject;
use crate::calibrate::points::names;
use node::profile::{Fitted, FittedLoad};
use workload::{Load, Operation, Plan, Space, Until};

/// Returns which parts of `subject` are outside the points that a device was `fitted` to.
pub(super) fn beyond(fitted: &Fitted, subject: &Subject<'_>) -> Option<String> {
    let load = match subject {
        Subject::Plan(plan) => of_plan(fitted, plan),
        Subject::Replay { .. } => FittedLoad {
            workloads: vec!["replay"],
            value_bytes: fitted.value_bytes,
            key_bytes: fitted.key_bytes[0],
            queue_depth: Some(fitted.queue_depth[0]),
        },
    };
    let outside = fitted.outside(&load)?;
    Some(format!("fitted to {}: {outside}", fitted.file))
}

fn of_plan(fitted: &Fitted, plan: &Plan) -> FittedLoad {
    let overwrites = match plan.until {
        Until::Operations(operations) => operations > plan.keys || plan.is_filled,
        Until::Time(_) => true,
    };
    let key_bytes = match plan.space {
        Space::Pairs => u32::try_from(plan.key_bytes).unwrap_or(u32::MAX),
        Space::Blocks | Space::Zones(_) => fitted.key_bytes[0],
    };
    FittedLoad {
        workloads: names(plan.operation, plan.operation == Operation::Store && overwrites),
        value_bytes: [plan.values.min(), plan.values.max()],
        key_bytes,
        queue_depth: match plan.load {
            Load::QueueDepth(depth) => Some(depth),
            Load::Rate { .. } => None,
        },
    }
}
