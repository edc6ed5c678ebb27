use super::address::parse_address;
use super::resp_limits::CLIENT_LIMITS;
use resp::{ClientLimits, Users};
use std::net::SocketAddr;
use std::path::Path;
use tls::{Server, ServerFiles};

/// The configuration of a Redis service: addresses, users and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResp {
    /// Address without TLS; port 0 takes any free port.
    pub address: Option<SocketAddr>,
    /// Address and files for TLS.
    pub tls: Option<ServedTls>,
    /// The users. Without any, every client may run every command.
    pub users: Option<Users>,
    /// Limits of clients.
    pub limits: ClientLimits,
}

/// The TLS part of a Redis service.
#[derive(Clone, Debug)]
pub struct ServedTls {
    /// Address; port 0 takes any free port.
    pub address: SocketAddr,
    /// The files of the certificate and key.
    pub files: ServerFiles,
    /// The loaded certificate and key.
    pub server: Server,
}

/// Ignores the content of the files, which can be reloaded.
impl PartialEq for ServedTls {
    fn eq(&self, other: &Self) -> bool {
        (self.address, &self.files) == (other.address, &other.files)
    }
}

impl Eq for ServedTls {}

impl ServedResp {
    /// Creates a configuration with the users of a file, or for all clients on this machine,
    /// without an address. This and the functions below return an error sentence if they fail.
    pub fn of_users(users: Option<&Path>) -> Result<Self, String> {
        let users = users.map(read).transpose()?;
        Ok(Self { address: None, tls: None, users, limits: CLIENT_LIMITS })
    }

    /// Adds the address `text`.
    pub fn at(self, text: &str) -> Result<Self, String> {
        let address = parse_address(text)?;
        self.check(text, address, "")?;
        Ok(Self { address: Some(address), ..self })
    }

    /// Adds the TLS address `text` with the certificate in `files`.
    pub fn at_over_tls(self, text: &str, files: ServerFiles) -> Result<Self, String> {
        let address = parse_address(text)?;
        if files.clients.is_none() {
            self.check(text, address, " or --resp-tls-clients the CA of their certificates,")?;
        }
        let server = Server::load(&files).map_err(|error| error.to_string())?;
        Ok(Self { tls: Some(ServedTls { address, files, server }), ..self })
    }

    /// Checks that `address` is local, or that clients must authenticate.
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
