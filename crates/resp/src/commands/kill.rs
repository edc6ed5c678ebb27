//! CLIENT KILL: the ends of other clients' connections, and of one's own.

use super::clients::is_normal;
use crate::call::Call;
use crate::command::{ADMIN, Command};
use crate::door::Client;
use crate::failure::{Failure, Outcome};
use crate::number::integer;
use crate::reply::Reply;

/// Which clients are meant: those for which all filters hold.
#[derive(Debug, Default)]
struct Meant<'a> {
    id: Option<u64>,
    peer: Option<&'a [u8]>,
    local: Option<&'a [u8]>,
    user: Option<&'a [u8]>,
    /// None is of the kind that is asked for.
    is_none: bool,
    spares_self: bool,
}

impl Meant<'_> {
    fn is(&self, id: u64, client: &Client, own: u64) -> bool {
        let ends = &client.wire.ends;
        let fits =
            |asked: Option<&[u8]>, is: &str| asked.is_none_or(|asked| asked == is.as_bytes());
        self.id.is_none_or(|asked| asked == id)
            && fits(self.peer, ends.peer())
            && fits(self.local, ends.local())
            && fits(self.user, &client.user)
            && !self.is_none
            && !(self.spares_self && id == own)
    }
}

pub(super) fn kill(call: &mut Call<'_>) -> Outcome {
    check_rights(call)?;
    let is_old = call.request.len() == 3;
    let meant = if is_old {
        Meant { peer: Some(call.request.arg(2)), ..Meant::default() }
    } else {
        meant(call)?
    };
    let (own, mut count) = (call.session.id, 0);
    let mut kills_self = false;
    for (id, client) in call.door.clients().iter() {
        if !meant.is(*id, client, own) {
            continue;
        }
        count += 1;
        // The calling client gets its reply first.
        if *id == own {
            kills_self = true;
        } else {
            client.wire.end();
        }
    }
    call.session.is_over |= kills_self;
    match count {
        0 if is_old => Err(Failure::told("ERR No such client")),
        _ if is_old => Ok(Reply::Ok),
        count => Ok(Reply::Integer(count)),
    }
}

/// Whether the user is one who runs the server: others are not theirs to end.
fn check_rights(call: &Call<'_>) -> Result<(), Failure> {
    let may = |command: &Command| {
        call.session.manner.user.as_ref().is_some_and(|user| user.may_run(command))
    };
    if Command::all().filter(|command| command.is(ADMIN)).all(may) {
        return Ok(());
    }
    let name = call.command.full_name(call.request);
    Err(Failure::told(format!("NOPERM this user has no permissions to run the '{name}' command")))
}

fn meant<'a>(call: &Call<'a>) -> Result<Meant<'a>, Failure> {
    let mut meant = Meant { spares_self: true, ..Meant::default() };
    let mut at = 2;
    while at < call.request.len() {
        let is = |word: &str| call.is_word(at, word) && at + 1 < call.request.len();
        let arg = |at: usize| call.request.arg(at);
        if is("id") {
            let id = integer(arg(at + 1)).filter(|id| *id > 0);
            let id = id.and_then(|id| u64::try_from(id).ok());
            let text = "ERR client-id should be greater than 0";
            meant.id = Some(id.ok_or_else(|| Failure::told(text))?);
        } else if is("type") {
            meant.is_none = !is_normal(call, at + 1)?;
        } else if is("addr") {
            meant.peer = Some(arg(at + 1));
        } else if is("laddr") {
            meant.local = Some(arg(at + 1));
        } else if is("user") {
            if call.door.users().get(arg(at + 1)).is_none() {
                return Err(Failure::quoting("ERR No such user '", arg(at + 1), "'"));
            }
            meant.user = Some(arg(at + 1));
        } else if is("skipme") {
            meant.spares_self = call.is_word(at + 1, "yes");
            if !meant.spares_self && !call.is_word(at + 1, "no") {
                return Err(Failure::SYNTAX);
            }
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    Ok(meant)
}
