//! Time as the device sees it: a clock, things to wait for, and an account of where the time went.
//!
//! Device code is plain `async fn`. It awaits a [`Resource`] (a die's array, a channel, a handler,
//! the link) for as long as a stage holds it, or [`park`]s until another task [`wake`]s it. Nothing
//! computes a future time ahead: the next task in the queue gets a resource when it is free.
//!
//! # How it works
//! 1. A thread has at most one [`Schedule`] installed: tasks, timers, and the queue of each
//!    resource. Device structures hold only ids into it, so they are plain `Send + Sync` data.
//! 2. [`Resource::serve`] waits for a unit and holds it for a duration: one timer, one
//!    poll. The releaser starts the next waiter's timer itself.
//! 3. A [`Station`] is a resource of one unit. Work of one kind on several planes can share it, and
//!    reads of hosts can suspend work: then its timer is void, and it gets a new one when it
//!    resumes. A [`Gate`] stops all tasks that come to it.
//! 4. The owner of the futures (`reactor`) calls [`turn`] for the next task to poll. When no task
//!    is ready the clock moves to the earliest timer.
//! 5. Each task keeps [`Stages`]: every wait and every stage adds the time it took where it
//!    happens.
//! 6. In real time the clock has a brake: [`turn_by_the_wall`] moves to a timer only when the wall
//!    has reached it. [`now`] stays the instant of the event, so that lateness delays no later
//!    event. Input from outside is stamped with [`host_now`], or comes from a task that waited for
//!    [`catch_up`]. While no event is due the owner of the futures may [`move_on`] to the wall: a
//!    task that it wakes for an input then runs at the instant of that input.
//! 7. Tasks of several schedules, each on its own thread, share what is behind [`Lock`]s. All that
//!    a task does between its first lock and its last is one step to the others. Tasks of peer
//!    schedules wake one another. [`lock_waits`] counts the locks that a thread found taken.
//! 8. A task names its kind by [`name_task`], for reports on where a thread's time went.
//! 9. While a schedule has a [`BusyMeter`], its thread is in one [`BusyStage`] at any time: each
//!    task declares its own by [`set_busy_stage`], and [`enter_busy_stage`] switches inside a poll.
//! 10. A trace sink receives each [`Span`] for which a unit of a resource was held.
//!
//! | to follow | read, in this order |
//! |---|---|
//! | a task | `schedule`, `task`, `task_state`, `park`, `timer` |
//! | the wait for a resource | `queue`, `resource`, `rank`, `class`, `station`, `plane_group` |
//! | an account of time | `stage`, `account`, `charge`, `trace` |
//! | the time of a thread | `busy_stage`, `busy_meter` |
//! | several reactors | `stretch`, `lock`, `section`, `lock_waits` |
//!
//! # Guarantees
//! - Equal inputs give equal runs: ties at one instant break by submission order, or by a seed.
//! - Resources serve by (class, arrival), or by arrival in a group set to that order. A waiter is
//!   bypassed at most `BYPASS_MAX` times in a row, and work is suspended at most `SUSPENDS_MAX`
//!   times.
//! - A task waits only for a [`Rank`] above all that it holds, and holds no [`Lock`] then; anything
//!   else panics.
//! - When a schedule runs dry while tasks wait, [`stuck`] names what each waits for.
//!
//! # Trusts
//! The caller awaits futures from this crate at once and to their end, one at a time in each task.
//! Dropping a waiting one panics, unless the whole schedule is gone (as in a power cut).
//!
//! # Not here
//! Polling and reading the wall clock (`reactor`), threads, sockets.

mod account;
mod arrival;
mod busy_meter;
mod busy_stage;
mod charge;
mod class;
mod gate;
mod join;
mod lock;
mod lock_waits;
mod notify;
mod park;
mod plane_group;
mod power;
mod promotion;
mod queue;
mod rank;
mod resource;
mod saved;
mod schedule;
mod section;
mod stage;
mod station;
mod station_state;
mod stretch;
mod sync;
mod task;
mod task_state;
mod timer;
mod trace;
mod unix;
mod unix_millis;
mod users;

pub use account::account_to;
pub use arrival::{CatchUp, catch_up, give_way};
pub use busy_meter::{
    BusyMeter, BusyScope, busy_stage, enter_busy_stage, set_busy_stage, switch_busy_stage,
};
pub use busy_stage::{BusyStage, BusyTimes};
pub use charge::{Code, CodeCosts, Cores};
pub use class::Class;
pub use gate::{Closed, Gate};
pub use join::{join_all, join_at_once};
pub use lock::{Guard, Lock};
pub use lock_waits::{LockWaits, lock_waits};
pub use notify::Notify;
pub use park::{Held, Park, park, park_unaccounted, wake};
pub use power::{lose_power, wake_from_ended, was_at_work};
pub use promotion::Promotion;
pub use queue::{Group, ResourceInfo};
pub use rank::Rank;
pub use resource::{Acquire, Hold, Resource, Serve, resources};
pub use saved::{Part, SavedClock, restore, save};
pub use schedule::{
    LocalFuture, RemoteWaker, Schedule, Turn, Wall, end_task, install, is_installed, move_on,
    put_back, set_aside, stuck, turn, turn_by_the_wall, uninstall,
};
pub use section::Section;
pub use stage::{Stage, Stages};
pub use station::{Load, Operate, Station};
pub use station_state::Suspension;
pub use stretch::{Order, preempt_by};
pub use task::{
    Sleep, account, begin_account, current, host_now, label, name_task, now, reactor_and_time,
    reactor_id, ready_tasks, sleep, sleep_until, spawn, spawn_at, stages, task_name,
};
pub use task_state::TaskId;
pub use trace::{Span, TraceSink};
pub use unix::{host_unix_now, set_unix_now, unix_now};
pub use unix_millis::UnixMillis;
pub use users::{User, Users};
