//! `OctoKV`'s testbed in virtual time: clients whose commands reach a target with six cores.
//!
//! 1. [`costs`] has the time that each stage of a command takes on a core, measured by
//!    `experiments/stages` and scaled to the paper's cores.
//! 2. A [`trial`] runs client threads against a [`target`] of [`core`]s and measures both. The
//!    target asks `balance`, as a server does, which core runs the stages that may move.
//! 3. [`placement`] connects client processors with cores of the target.
//! 4. The experiments compare trials: [`queue_depth`] (OCT-qd), [`core_load`] (OCT-util),
//!    [`speed`] (OCT-rt and OCT-tp), [`balanced`] (OCT-lb).
//! 5. [`automatic`] (OCT-auto) compares balancers under the loads of a [`sweep`].

pub(super) mod automatic;
pub(super) mod balanced;
mod core;
pub(super) mod core_load;
mod costs;
mod description;
mod duration;
mod placement;
pub(super) mod queue_depth;
pub(super) mod speed;
mod sweep;
mod target;
mod testbed;
mod trial;
