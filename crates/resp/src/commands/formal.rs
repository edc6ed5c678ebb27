//! Commands of clients and tests of Redis for which there is little to do here.

use crate::call::{Call, Functions};
use crate::failure::{Failure, Outcome};
use crate::number::parse_bound;
use crate::reply::Reply;
use crate::word::{HELP, Words, help, word};
use base::Nanos;
use clock::Stage;
use std::future::ready;

pub(crate) const FUNCTIONS: Functions = &[
    ("wait", |mut call| Box::pin(ready(wait(&mut call)))),
    ("function", |mut call| Box::pin(ready(function(&mut call)))),
    ("debug", |call| Box::pin(debug(call))),
    ("cluster", |_| Box::pin(ready(Err(Failure::told(NO_CLUSTER))))),
    ("role", |_| Box::pin(ready(Ok(role())))),
    ("lastsave", |_| Box::pin(ready(Ok(lastsave())))),
    ("module", |mut call| Box::pin(ready(Ok(module(&mut call))))),
];

const NO_CLUSTER: &str = "ERR This instance has cluster support disabled";

/// Those of a command that Redis has for its own tests: who knows of it knows its words.
const DEBUG_WORDS: Words = &[
    word("log", 3, "text", "Is taken, and kept nowhere"),
    word("sleep", 3, "seconds", "Answer later, by 10 seconds at most"),
    HELP,
];

/// Seconds that a client can have the server wait: a server that ends waits for that.
const SECONDS_MAX: f64 = 10.0;

fn role() -> Reply {
    Reply::Array(vec![Reply::text("master"), Reply::Integer(0), Reply::Array(Vec::new())])
}

fn lastsave() -> Reply {
    let seconds = clock::host_unix_now().0 / 1_000;
    Reply::Integer(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn module(call: &mut Call<'_>) -> Reply {
    if call.word() == "help" { call.help() } else { Reply::Array(Vec::new()) }
}

/// Returns 0 at once: the server has no replicas.
fn wait(call: &mut Call<'_>) -> Outcome {
    call.integer(1)?;
    let millis = call.integer(2);
    let text = "ERR timeout is not an integer or out of range";
    if millis.map_err(|_| Failure::told(text))? < 0 {
        return Err(Failure::told("ERR timeout is negative"));
    }
    Ok(Reply::Integer(0))
}

fn function(call: &mut Call<'_>) -> Outcome {
    if call.word() == "help" {
        return Ok(call.help());
    }
    let is_right = match call.request.len() {
        2 => true,
        3 => call.is_word(2, "sync") || call.is_word(2, "async"),
        _ => return Err(Failure::no_word("function", call.request.arg(1))),
    };
    let text = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option";
    if is_right { Ok(Reply::Ok) } else { Err(Failure::told(text)) }
}

async fn debug(call: Call<'_>) -> Outcome {
    let is = |word: &str| call.request.len() == 3 && call.is_word(1, word);
    if call.request.len() == 2 && call.is_word(1, "help") {
        return Ok(help("debug", DEBUG_WORDS));
    }
    if is("log") {
        return Ok(Reply::Ok);
    }
    if !is("sleep") {
        return Err(Failure::no_word("debug", call.request.arg(1)));
    }
    let seconds = parse_bound(call.request.arg(2)).unwrap_or(0.0).clamp(0.0, SECONDS_MAX);
    #[expect(clippy::cast_possible_truncation, reason = "it is a few seconds")]
    #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
    let time = Nanos((seconds * 1e9) as u64);
    clock::sleep(time, Stage::Core).await;
    Ok(Reply::Ok)
}
