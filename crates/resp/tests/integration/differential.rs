//! The same requests to redis-server and to this door: the same answers, errors too.
//!
//! `redis-server` is looked for on the path. Without it the tests say so and pass; with
//! `REQUIRE_REDIS=1` that is a failure.

mod answer;
mod differences;
mod generate;
mod limits;
mod listing;
mod moved;
mod ours;
mod racing;
mod redis;
mod same;
mod seen;
mod slow;
mod together;
mod tools;
mod users;
