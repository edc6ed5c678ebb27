use super::connection::{Connection, Course};
use super::ended::Ended;
use crate::framing::Written;
use clock::BusyStage;
use net::Stream;
use std::rc::Rc;

/// Sends queued PDUs until the connection is over.
pub(super) async fn write_all<S: Stream>(connection: Rc<Connection<S>>) {
    clock::set_busy_stage(BusyStage::Complete);
    while connection.course() != Course::Over {
        if connection.state.borrow().outbox.is_empty() {
            match connection.course() {
                Course::Open => connection.work.wait().await,
                Course::Ending => connection.shut_down(),
                Course::Terminating | Course::Over => break,
            }
            continue;
        }
        // Runs after the commands that have arrived, so that their responses share one write.
        clock::catch_up().await;
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
    connection.end.notify();
}
