use crate::call::{Call, Functions};
use crate::check::check;
use crate::command::{APART, Command, WRITE};
use crate::dispatch::run;
use crate::door::Door;
use crate::failure::{Failure, Outcome};
use crate::hidden;
use crate::key_queues::{QueueKey, keys_of};
use crate::numbering::CommandNumber;
use crate::reply::Reply;
use crate::request::{KeptRequest, Request};
use crate::session::{Queue, Session, Watched};
use crate::transaction::Transaction;
use crate::watcher::since;
use base::Nanos;
use clock::LocalFuture;
use std::future::ready;

pub(crate) const FUNCTIONS: Functions = &[
    ("multi", |mut call| Box::pin(ready(multi(&mut call)))),
    ("exec", |call| exec(call)),
    ("discard", |mut call| Box::pin(ready(discard(&mut call)))),
    ("watch", |call| Box::pin(watch(call))),
    ("unwatch", |mut call| Box::pin(ready(Ok(unwatch(&mut call))))),
];

fn multi(call: &mut Call<'_>) -> Outcome {
    if call.session.queue.is_some() {
        return Err(Failure::told("ERR MULTI calls can not be nested"));
    }
    call.session.queue = Some(Queue::default());
    Ok(Reply::Ok)
}

fn discard(call: &mut Call<'_>) -> Outcome {
    if call.session.queue.take().is_none() {
        return Err(Failure::told("ERR DISCARD without MULTI"));
    }
    call.session.watched.clear();
    Ok(Reply::Ok)
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
    Ok(Reply::Ok)
}

fn unwatch(call: &mut Call<'_>) -> Reply {
    call.session.watched.clear();
    Reply::Ok
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
        let command = Command::named(door.request(kept).arg(0));
        command.is_some_and(|command| command.is(APART))
    };
    if has_changed(door, watched).await? {
        return Ok(Reply::NullArray);
    }
    let mut replies = Vec::with_capacity(queue.requests.len());
    // What looks at all keys sees what was written before, so that is written first.
    for (number, step) in queue.requests.chunk_by(|a, b| !is_apart(a) && !is_apart(b)).enumerate() {
        let watched = if number == 0 { watched } else { &[] };
        let keys = keys_of_all(door, session, step);
        let before = session.manner.clone();
        let execute = async |transaction: &mut Transaction| {
            session.manner.clone_from(&before);
            if has_changed(door, watched).await? {
                return Ok(None);
            }
            for (space, key, version) in watched {
                transaction.expect(*space, key, *version);
            }
            together(door, session, step, transaction).await.map(Some)
        };
        // Only the store tells versions of watched keys, so a commit with some is not shared.
        let done = door.in_turn(keys, !watched.is_empty(), execute).await?;
        let Some(done) = done else { return Ok(Reply::NullArray) };
        replies.extend(count_all(door, session, step, done));
    }
    Ok(Reply::Array(replies))
}

/// The keys of all commands, if one of them may change some.
fn keys_of_all(door: &Door, session: &Session, requests: &[KeptRequest]) -> Vec<QueueKey> {
    let (mut keys, mut writes) = (Vec::new(), false);
    for kept in requests {
        let request = door.request(kept);
        if let Some(command) = Command::named(request.arg(0)) {
            writes |= command.is(WRITE);
            keys.extend(keys_of(session.space(), command, request));
        }
    }
    keys.retain(|_| writes);
    keys
}

/// A reply to a command, and the command's number and how long it took, unless it was refused.
type Done = (Reply, Option<(CommandNumber, Nanos)>);

/// Executes commands on a transaction.
async fn together(
    door: &Door,
    session: &mut Session,
    requests: &[KeptRequest],
    transaction: &mut Transaction,
) -> Result<Vec<Done>, Failure> {
    let mut all = Vec::with_capacity(requests.len());
    for kept in requests {
        let request: Request<'_> = door.request(kept);
        all.push(match check(door, session, request) {
            Err(failure) => (failure.reply(), None),
            Ok((number, command)) => {
                let call = Call { command, request, transaction, session, door };
                let began = clock::host_now();
                let reply = match run(call).await {
                    Err(Failure::Overtaken) => return Err(Failure::Overtaken),
                    done => done.unwrap_or_else(Failure::reply),
                };
                (reply, Some((number, since(began))))
            }
        });
    }
    Ok(all)
}

/// Counts commands that were executed, once however often that took, and returns their replies.
fn count_all(
    door: &Door,
    session: &Session,
    requests: &[KeptRequest],
    all: Vec<Done>,
) -> impl Iterator<Item = Reply> {
    requests.iter().zip(all).map(|(kept, (reply, done))| {
        let request = door.request(kept);
        match done {
            Some((number, took)) => {
                door.watch(session.id, number, took, &reply, || request.rest(0));
            }
            None => {
                door.watcher().reject(request);
                door.watcher().count_error(&reply);
            }
        }
        reply
    })
}

/// Whether a watched key is not what it was.
async fn has_changed(door: &Door, watched: &[Watched]) -> Result<bool, Failure> {
    let mut transaction = door.transaction();
    for (space, key, version) in watched {
        if transaction.version(*space, key).await? != *version {
            return Ok(true);
        }
    }
    Ok(false)
}
