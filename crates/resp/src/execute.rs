use crate::command::{AT_ONCE, Call, Command, Outcome};
use crate::door::Door;
use crate::failure::{Failure, quoted};
use crate::reply::Reply;
use crate::request::Request;
use crate::session::Session;
use crate::transaction::Transaction;

/// Does what a client asks, or queues it for EXEC.
pub(crate) async fn execute(door: &Door, session: &mut Session, request: Request<'_>) -> Reply {
    door.counters().count_commands(1);
    let command = match check(door, session, request) {
        Ok(command) => command,
        Err(failure) => {
            if let Some(queue) = &mut session.queue {
                queue.is_spoilt = true;
            }
            return match failure {
                Failure::Told(text) if request.arg(0).eq_ignore_ascii_case(b"exec") => {
                    session.queue = None;
                    session.watched.clear();
                    let why = text.trim_start_matches("ERR ");
                    Reply::error(format!("EXECABORT Transaction discarded because of: {why}"))
                }
                failure => failure.reply(),
            };
        }
    };
    session.show(door, command.name);
    if let Some(queue) = &mut session.queue
        && !command.is(AT_ONCE)
    {
        let kept = request.keep();
        queue.bytes += kept.held_bytes();
        if queue.bytes > door.settings().request_bytes_max {
            queue.is_spoilt = true;
            queue.requests.clear();
            return Reply::error("ERR the commands of a transaction take too much memory");
        }
        queue.requests.push(kept);
        return Reply::Status("QUEUED");
    }
    once(door, session, command, request).await.unwrap_or_else(Failure::reply)
}

/// The command that is asked for, if there is one, it may have such arguments, and the user may do
/// it.
pub(crate) fn check(
    door: &Door,
    session: &Session,
    request: Request<'_>,
) -> Result<&'static Command, Failure> {
    let Some(command) = Command::named(request.arg(0)) else { return Err(unknown(request)) };
    command.check(request)?;
    session.check_rights(command, request)?;
    if request.is_too_long() {
        let max = door.store().value_bytes_max();
        return Err(Failure::told(format!("ERR a value has at most {max} bytes")));
    }
    Ok(command)
}

fn unknown(request: Request<'_>) -> Failure {
    let mut args = Vec::new();
    for arg in request.rest(1) {
        if args.len() >= 128 {
            break;
        }
        args.extend([&b"'"[..], quoted(arg, 128 - args.len()), b"' "].concat());
    }
    let name = quoted(request.arg(0), 128);
    let text = [&b"ERR unknown command '"[..], name, b"', with args beginning with: ", &args];
    Failure::Quoted(text.concat())
}

/// Does a command as one step, again and again until nobody comes between.
async fn once(
    door: &Door,
    session: &mut Session,
    command: &'static Command,
    request: Request<'_>,
) -> Outcome {
    loop {
        let before = session.manner.clone();
        let mut transaction = Transaction::new(door);
        let call = Call { command, request, transaction: &mut transaction, session, door };
        let done = (command.run)(call).await;
        let done = match done {
            Ok(reply) => transaction.commit().await.map(|()| reply),
            failed => failed,
        };
        match done {
            Err(Failure::Overtaken) => session.manner = before,
            done => return done,
        }
    }
}
