use super::address::parse_address;
use super::resp_limits::CLIENT_LIMITS;
use resp::{ClientLimits, Users};
use std::net::SocketAddr;
use std::path::Path;
use tls::{Server, ServerFiles};

/// Where clients of the Redis protocol connect, and who they may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResp {
    /// As they are. Port 0 is any that is free.
    pub address: Option<SocketAddr>,
    /// Over TLS.
    pub tls: Option<ServedTls>,
    /// The users. Without any everybody may do everything.
    pub users: Option<Users>,
    /// What they may have.
    pub limits: ClientLimits,
}

/// Where clients connect over TLS.
#[derive(Clone, Debug)]
pub struct ServedTls {
    /// Port 0 is any that is free.
    pub address: SocketAddr,
    /// Where it stands what the server shows.
    pub files: ServerFiles,
    /// What was in them.
    pub server: Server,
}

/// Without what is in the files, which can be renewed.
impl PartialEq for ServedTls {
    fn eq(&self, other: &Self) -> bool {
        (self.address, &self.files) == (other.address, &other.files)
    }
}

impl Eq for ServedTls {}

impl ServedResp {
    /// For the users of a file, or for everybody on this machine; nowhere yet. Otherwise a sentence
    /// that says what is wrong, here and below.
    pub fn of_users(users: Option<&Path>) -> Result<Self, String> {
        let users = users.map(read).transpose()?;
        Ok(Self { address: None, tls: None, users, limits: CLIENT_LIMITS })
    }

    /// Also at the address that `text` names.
    pub fn at(self, text: &str) -> Result<Self, String> {
        let address = parse_address(text)?;
        self.check(text, address, "")?;
        Ok(Self { address: Some(address), ..self })
    }

    /// Also at the address that `text` names, over TLS, with what is in `files`.
    pub fn at_over_tls(self, text: &str, files: ServerFiles) -> Result<Self, String> {
        let address = parse_address(text)?;
        if files.clients.is_none() {
            self.check(text, address, " or --resp-tls-clients the CA of their certificates,")?;
        }
        let server = Server::load(&files).map_err(|error| error.to_string())?;
        Ok(Self { tls: Some(ServedTls { address, files, server }), ..self })
    }

    /// Whether `address` is for this machine only, or for those who say who they are.
    fn check(&self, text: &str, address: SocketAddr, other_way: &str) -> Result<(), String> {
        let why = match &self.users {
            _ if address.ip().is_loopback() => return Ok(()),
            None => "there are no users".to_owned(),
            Some(users) => match users.without_password() {
                None => return Ok(()),
                Some(name) => format!("the user {name} needs no password"),
            },
        };
        Err(format!(
            "{text:?} is for other machines too, and {why}: give --resp-users a file in which \
             each user has a password,{other_way} or use :{} for this machine only",
            address.port()
        ))
    }
}

fn read(path: &Path) -> Result<Users, String> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| format!("the users of {}: {error}", path.display()))?;
    Users::parse(&text).map_err(|error| format!("the users of {}: {error}", path.display()))
}
