use super::address::parse_address;
use resp::Users;
use std::net::SocketAddr;
use std::path::Path;

/// Where clients of the Redis protocol connect, and who they may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResp {
    /// Port 0 is any that is free.
    pub address: SocketAddr,
    /// The users.
    pub users: Users,
}

impl ServedResp {
    /// At the address that `text` names, for the users of a file, or for everybody on this machine.
    /// Otherwise a sentence that says what is wrong.
    pub fn named(text: &str, users: Option<&Path>) -> Result<Self, String> {
        let address = parse_address(text)?;
        let users = users.map(read).transpose()?;
        if address.ip().is_loopback() || users.as_ref().is_some_and(|users| !users.are_open()) {
            return Ok(Self { address, users: users.unwrap_or_default() });
        }
        let why = match users {
            None => "there are no users",
            Some(_) => "the user default needs no password",
        };
        Err(format!(
            "{text:?} is for other machines too, and {why}: give --resp-users a file in which \
             each user has a password, or use :{} for this machine only",
            address.port()
        ))
    }
}

fn read(path: &Path) -> Result<Users, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("the users of {}: {error}", path.display()))?;
    Users::parse(&text).map_err(|error| format!("the users of {}: {error}", path.display()))
}
