//! The windows in which reactors are measured.

use base::Nanos;
use clock::Stage;

/// Waits until the window that began at `began` has this `length`, which a reload may change.
/// Returns when it ended.
pub(crate) async fn end_of_window(began: Nanos, length: impl Fn() -> Nanos) -> Nanos {
    loop {
        clock::sleep(length(), Stage::Queue).await;
        clock::catch_up().await;
        let now = clock::host_now();
        // Reactors count their time in pieces, so a short window says little.
        if (now - began).0 >= length().0 / 2 {
            return now;
        }
    }
}
