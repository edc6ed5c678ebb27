use crate::command::Command;
use crate::door::Door;
use crate::failure::{Failure, quoted};
use crate::numbering::CommandNumber;
use crate::request::Request;
use crate::session::Session;

/// The command that is asked for and its number, if there is one, it may have such arguments, and
/// the user may do it.
pub(crate) fn check(
    door: &Door,
    session: &Session,
    request: Request<'_>,
) -> Result<(CommandNumber, &'static Command), Failure> {
    let command = Command::named(request.arg(0)).ok_or_else(|| unknown(request))?;
    command.check(request)?;
    session.check_rights(command, request)?;
    if request.is_too_long() {
        let max = door.store().value_bytes_max();
        return Err(Failure::told(format!("ERR a value has at most {max} bytes")));
    }
    Ok((CommandNumber::of(command, request), command))
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
