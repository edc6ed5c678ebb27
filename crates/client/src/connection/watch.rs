use super::shared::Shared;
use crate::error::Error;
use base::Nanos;
use clock::Stage;
use net::Stream;
use std::rc::{Rc, Weak};

/// Starts a task that polls whether the target has been silent for `timeout`, also during the
/// handshake. A waiting task learns of it after at most twice that.
pub(super) fn start<S: Stream>(shared: &Rc<Shared<S>>, timeout: Nanos) {
    assert!(timeout > Nanos::ZERO, "an answer takes some time");
    let shared = Rc::downgrade(shared);
    let opened = clock::host_now();
    clock::spawn(async move {
        loop {
            clock::sleep(timeout, Stage::Queue).await;
            if !is_to_go_on(&shared, opened, timeout) {
                return;
            }
        }
    });
}

fn is_to_go_on<S: Stream>(shared: &Weak<Shared<S>>, opened: Nanos, timeout: Nanos) -> bool {
    let Some(shared) = shared.upgrade() else { return false };
    let now = clock::host_now();
    let has_ended = shared.table.borrow().end().is_some();
    if has_ended {
        // The target has had time to read the termination.
        shared.stream.shut_down();
        return false;
    }
    let is_opening = shared.terms.get().h2c_data_max == 0 && now.saturating_sub(opened) >= timeout;
    let is_silent = is_opening || shared.table.borrow().has_been_waiting(now, timeout);
    if is_silent {
        shared.end(Error::Silent(timeout));
    }
    !is_silent
}
