use super::Ended;
use super::connection::{Connection, Course};
use crate::framing::Written;
use clock::Stage;
use net::Stream;
use std::rc::Rc;

/// Sends what is queued, until the connection is over.
pub(super) async fn write_all<S: Stream>(connection: Rc<Connection<S>>) {
    while connection.course() != Course::Over {
        if connection.state.borrow().outbox.is_empty() {
            match connection.course() {
                Course::Open => connection.work.wait().await,
                Course::Ending => connection.shut_down(),
                Course::Terminating | Course::Over => break,
            }
            continue;
        }
        // Behind the commands that were submitted by now, in real time: their responses go out in
        // the same write.
        clock::sleep_until(clock::host_now(), Stage::Queue).await;
        let written = connection.state.borrow_mut().outbox.write(&*connection.stream);
        let Ok(written) = written else {
            connection.note_reason(Ended::ByHost);
            connection.shut_down();
            break;
        };
        connection.note_sent();
        if written == Written::Full {
            connection.stream.writable().await;
        }
    }
    connection.writer_has_ended.set(true);
    connection.end.ring();
}
