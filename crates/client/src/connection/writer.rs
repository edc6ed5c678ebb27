use super::shared::Shared;
use net::Stream;
use nvme_tcp::framing::Written;
use std::rc::Rc;

/// Sends queued bytes until the connection ends.
pub(super) async fn write<S: Stream>(shared: Rc<Shared<S>>) {
    loop {
        let written = shared.outbox.borrow_mut().write(&shared.stream);
        match written {
            // The reader finds the reason: the target may have sent it.
            Err(_) => return,
            Ok(Written::Full) => shared.stream.writable().await,
            Ok(Written::All) => {
                let has_ended = shared.table.borrow().end().is_some();
                if has_ended {
                    return shared.stream.shut_down();
                }
                shared.to_write.wait().await;
            }
        }
    }
}
