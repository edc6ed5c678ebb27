//! The connections, a line for each.

use crate::call::Call;
use crate::door::Client;
use crate::failure::{Failure, Outcome};
use crate::number::integer;
use crate::numbering::CommandNumber;
use crate::reply::Reply;
use base::Nanos;
use std::sync::atomic::Ordering::Relaxed;

/// Kinds of clients that Redis knows, and of which there are none here.
const OTHERS: [&str; 4] = ["master", "replica", "slave", "pubsub"];

/// Whether an argument names the kind of clients that there are; an error, if it names none.
pub(super) fn is_normal(call: &Call<'_>, at: usize) -> Result<bool, Failure> {
    let is_known = |name: &str| call.is_word(at, name);
    if !is_known("normal") && !OTHERS.into_iter().any(is_known) {
        return Err(Failure::quoting("ERR Unknown client type '", call.request.arg(at), "'"));
    }
    Ok(is_known("normal"))
}

pub(super) fn list(call: &Call<'_>) -> Outcome {
    let clients = call.door.clients();
    let mut lines = String::new();
    if call.request.len() == 2 {
        clients.iter().for_each(|(id, client)| lines += &line(*id, client));
    } else if call.is_word(2, "type") && call.request.len() == 4 {
        if is_normal(call, 3)? {
            clients.iter().for_each(|(id, client)| lines += &line(*id, client));
        }
    } else if call.is_word(2, "id") && call.request.len() > 3 {
        for arg in call.request.rest(3) {
            let id = integer(arg).filter(|id| *id > 0).and_then(|id| u64::try_from(id).ok());
            let id = id.ok_or_else(|| Failure::told("ERR Invalid client ID"))?;
            if let Some(client) = clients.get(&id) {
                lines += &line(id, client);
            }
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(Reply::Verbatim(lines))
}

/// The line of the calling client.
pub(super) fn own(call: &Call<'_>) -> Reply {
    let clients = call.door.clients();
    let own = clients.get(&call.session.id);
    Reply::Verbatim(own.map(|own| line(call.session.id, own)).unwrap_or_default())
}

fn line(id: u64, client: &Client) -> String {
    let seconds = |time: Nanos| time.0 / 1_000_000_000;
    let Client { since, name, user, database, protocol, queued, library, wire, .. } = client;
    let age = seconds(Nanos(clock::now().0.saturating_sub(since.0)));
    let (idle, [library, version]) = (seconds(wire.idle()), library);
    let queued = queued.map_or(-1, |queued| i64::try_from(queued).unwrap_or(i64::MAX));
    let flags = if queued < 0 { 'N' } else { 'x' };
    let (query, output) = (wire.query_bytes.load(Relaxed), wire.output_bytes.load(Relaxed));
    let free = wire.query_memory.load(Relaxed).saturating_sub(query);
    let (of_queue, all) = (client.queued_bytes, client.held_bytes());
    let events = if output > 0 { "rw" } else { "r" };
    let command = wire.command().map_or("NULL", CommandNumber::name);
    let (peer, local) = (wire.ends.peer(), wire.ends.local());
    format!(
        "id={id} addr={peer} laddr={local} name={name} age={age} idle={idle} flags={flags} \
         db={database} sub=0 psub=0 ssub=0 multi={queued} qbuf={query} qbuf-free={free} \
         argv-mem=0 multi-mem={of_queue} obl=0 oll=0 omem={output} tot-mem={all} events={events} \
         cmd={command} user={user} redir=-1 resp={protocol} lib-name={library} lib-ver={version}\n"
    )
}
