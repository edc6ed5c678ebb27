//! The Redis front end by its requests, and beside a model.

mod differential;
mod requests;
