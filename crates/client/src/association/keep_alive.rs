use crate::connection::Connection;
use base::Nanos;
use clock::Stage;
use net::Stream;
use spec::Command;

/// Keeps the association alive while its admin connection exists: sends two commands in each
/// `time`.
pub(super) fn start<S: Stream>(admin: &Connection<S>, time: Nanos) {
    let admin = admin.weak();
    clock::spawn(async move {
        loop {
            clock::sleep(Nanos(time.0 / 2), Stage::Queue).await;
            // A target that does not know the command ends the association itself.
            if admin.execute(Command::keep_alive()).await.is_none_or(|reply| reply.is_err()) {
                return;
            }
        }
    });
}
