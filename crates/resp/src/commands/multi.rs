use crate::command::{ALL_KEYS, APART, AT_ONCE, Call, Command, FAST, NO_KEYS, Outcome};
use crate::door::Door;
use crate::execute::{check, since};
use crate::failure::Failure;
use crate::hidden;
use crate::reply::Reply;
use crate::request::{KeptRequest, Request};
use crate::session::{Queue, Session, Watched};
use crate::transaction::Transaction;
use clock::LocalFuture;
use std::future::ready;

const FLAGS: u16 = FAST | AT_ONCE;

pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "multi",
        arity: 1,
        flags: FLAGS,
        keys: NO_KEYS,
        summary: "Begin a transaction",
        run: |mut call| Box::pin(ready(multi(&mut call))),
    },
    Command {
        name: "exec",
        arity: 1,
        flags: FLAGS,
        keys: NO_KEYS,
        summary: "Do all commands of a transaction",
        run: |call| exec(call),
    },
    Command {
        name: "discard",
        arity: 1,
        flags: FLAGS,
        keys: NO_KEYS,
        summary: "Forget a transaction",
        run: |mut call| Box::pin(ready(discard(&mut call))),
    },
    Command {
        name: "watch",
        arity: -2,
        flags: FLAGS,
        keys: ALL_KEYS,
        summary: "Let a transaction happen only if keys stay as they are",
        run: |call| Box::pin(watch(call)),
    },
    Command {
        name: "unwatch",
        arity: 1,
        flags: FAST,
        keys: NO_KEYS,
        summary: "Forget which keys are watched",
        run: |mut call| Box::pin(ready(Ok(unwatch(&mut call)))),
    },
];

fn multi(call: &mut Call<'_>) -> Outcome {
    if call.session.queue.is_some() {
        return Err(Failure::told("ERR MULTI calls can not be nested"));
    }
    call.session.queue = Some(Queue::default());
    Ok(Reply::OK)
}

fn discard(call: &mut Call<'_>) -> Outcome {
    if call.session.queue.take().is_none() {
        return Err(Failure::told("ERR DISCARD without MULTI"));
    }
    call.session.watched.clear();
    Ok(Reply::OK)
}

async fn watch(call: Call<'_>) -> Outcome {
    if call.session.queue.is_some() {
        return Err(Failure::told("ERR WATCH inside MULTI is not allowed"));
    }
    let space = call.space();
    for at in 1..call.request.len() {
        let key = call.key(at)?;
        if call.session.watched.iter().any(|(of, known, _)| (*of, known) == (space, &key)) {
            continue;
        }
        for space in [space, hidden::roots(space)] {
            let version = call.transaction.version(space, &key).await?;
            call.session.watched.push((space, key.clone(), version));
        }
    }
    Ok(Reply::OK)
}

fn unwatch(call: &mut Call<'_>) -> Reply {
    call.session.watched.clear();
    Reply::OK
}

fn exec(call: Call<'_>) -> LocalFuture<'_, Outcome> {
    Box::pin(async move {
        let Call { session, door, .. } = call;
        let Some(queue) = session.queue.take() else {
            return Err(Failure::told("ERR EXEC without MULTI"));
        };
        let watched = std::mem::take(&mut session.watched);
        exec_all(door, session, &queue, &watched).await
    })
}

async fn exec_all(
    door: &Door,
    session: &mut Session,
    queue: &Queue,
    watched: &[Watched],
) -> Outcome {
    if queue.is_spoilt {
        return Err(Failure::told("EXECABORT Transaction discarded because of previous errors."));
    }
    let is_apart = |kept: &KeptRequest| {
        let command = Command::named(kept.request(door).arg(0));
        command.is_some_and(|command| command.is(APART))
    };
    if has_changed(door, watched).await? {
        return Ok(Reply::NullArray);
    }
    let mut replies = Vec::with_capacity(queue.requests.len());
    // What looks at all keys sees what was written before, so that is written first.
    for (number, step) in queue.requests.chunk_by(|a, b| !is_apart(a) && !is_apart(b)).enumerate() {
        let watched = if number == 0 { watched } else { &[] };
        loop {
            let before = session.manner.clone();
            match together(door, session, step, watched).await {
                Err(Failure::Overtaken) if has_changed(door, watched).await? => {
                    return Ok(Reply::NullArray);
                }
                Err(Failure::Overtaken) => session.manner = before,
                done => {
                    replies.extend(done?);
                    break;
                }
            }
        }
    }
    Ok(Reply::Array(replies))
}

/// Does commands as one step.
async fn together(
    door: &Door,
    session: &mut Session,
    requests: &[KeptRequest],
    watched: &[Watched],
) -> Result<Vec<Reply>, Failure> {
    let mut transaction = Transaction::new(door);
    for (space, key, version) in watched {
        transaction.expect(*space, key, *version);
    }
    let mut replies = Vec::with_capacity(requests.len());
    let mut done = Vec::with_capacity(requests.len());
    for kept in requests {
        let request: Request<'_> = kept.request(door);
        let reply = match check(door, session, request) {
            Err(failure) => {
                done.push(None);
                failure.reply()
            }
            Ok((number, command)) => {
                let transaction = &mut transaction;
                let call = Call { command, request, transaction, session, door };
                let began = clock::host_now();
                let reply = match (command.run)(call).await {
                    Err(Failure::Overtaken) => return Err(Failure::Overtaken),
                    done => done.unwrap_or_else(Failure::reply),
                };
                done.push(Some((number, since(began))));
                reply
            }
        };
        replies.push(reply);
    }
    transaction.commit().await?;
    // Who was overtaken does all of it once more, and it counts once.
    for ((kept, reply), done) in requests.iter().zip(&replies).zip(done) {
        let request = kept.request(door);
        match done {
            Some((number, took)) => {
                door.watch(session.id, number, took, reply, || request.rest(0));
            }
            None => {
                door.watcher().reject(request);
                door.watcher().count_error(reply);
            }
        }
    }
    Ok(replies)
}

/// Whether a watched key is not what it was.
async fn has_changed(door: &Door, watched: &[Watched]) -> Result<bool, Failure> {
    let mut transaction = Transaction::new(door);
    for (space, key, version) in watched {
        if transaction.version(*space, key).await? != *version {
            return Ok(true);
        }
    }
    Ok(false)
}
