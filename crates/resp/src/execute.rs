use crate::call::Call;
use crate::check::check;
use crate::command::{AT_ONCE, Command, NO_KEYS, WRITE};
use crate::dispatch::run;
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::key_queues::keys_of;
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::Transaction;
use crate::watcher::since;

/// Does what a client asks, or queues it for EXEC.
pub(crate) async fn execute(door: &Door, session: &mut Session, request: Request<'_>) -> Reply {
    door.counters().count_commands(1);
    session.wire.count_commands(1);
    let (number, command) = match check(door, session, request) {
        Ok(found) => found,
        Err(failure) => {
            door.watcher().reject(request);
            if let Some(queue) = &mut session.queue {
                queue.is_spoilt = true;
            }
            let reply = match failure {
                Failure::Told(text) if request.arg(0).eq_ignore_ascii_case(b"exec") => {
                    session.queue = None;
                    session.watched.clear();
                    session.show(door);
                    let why = text.trim_start_matches("ERR ");
                    Reply::error(format!("EXECABORT Transaction discarded because of: {why}"))
                }
                failure => failure.reply(),
            };
            door.watcher().count_error(&reply);
            return reply;
        }
    };
    if let Some(queue) = &mut session.queue
        && !command.is(AT_ONCE)
    {
        let kept = request.keep();
        queue.bytes += kept.held_bytes();
        if queue.bytes > door.parameters().query_bytes_max() {
            queue.is_spoilt = true;
            queue.requests.clear();
            return Reply::error("ERR the commands of a transaction take too much memory");
        }
        queue.requests.push(kept);
        session.wire.show(number);
        session.show(door);
        return Reply::status("QUEUED");
    }
    session.wire.show(number);
    let began = clock::host_now();
    let reply = once(door, session, command, request).await.unwrap_or_else(Failure::reply);
    if command.keys == NO_KEYS {
        // It may be another client now.
        session.show(door);
    }
    door.watch(session.id, number, since(began), &reply, || request.rest(0));
    reply
}

/// Executes a command as one step. One that changes keys waits for those that already do.
async fn once(
    door: &Door,
    session: &mut Session,
    command: &'static Command,
    request: Request<'_>,
) -> Outcome {
    if command.is(WRITE) && command.keys != NO_KEYS {
        let keys = keys_of(session.space(), command, request).collect();
        let execute = async |transaction: &mut Transaction| {
            run(Call { command, request, transaction, session, door }).await
        };
        // Boxed: the other commands keep no room for it.
        return Box::pin(door.in_turn(keys, false, execute)).await;
    }
    let (before, mut is_again) = (session.manner.clone(), false);
    door.one_step(async |transaction: &mut Transaction| {
        if std::mem::replace(&mut is_again, true) {
            session.manner.clone_from(&before);
        }
        run(Call { command, request, transaction, session, door }).await
    })
    .await
}
