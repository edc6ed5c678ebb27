//! Finds, connects to and uses a database of a Redis server.

mod line;

use crate::dial::{self, dial, dial_any, resolve};
use crate::output::Failure;
use base::Nanos;
pub(crate) use line::Line;
use reactor::TcpStream;
use resp_client::{Connection, Error, Settings, Tls, Uri};
use std::env;
use std::rc::Rc;
use tls::{BadFile, Client, ClientFiles, TlsStream};

/// Timeout of a TLS handshake.
const HANDSHAKE_LIMIT: Nanos = Nanos::from_secs(10);

/// Environment variable for the password, which redis-cli reads too. It keeps the password off the
/// command line.
const PASSWORD: &str = "REDISCLI_AUTH";

/// Lines of INFO with the server's name and version.
const SOFTWARE: [(&str, &str); 2] = [("kvasir_version:", "Kvasir"), ("redis_version:", "Redis")];

/// Runs `act` over as many connections as `uri` says.
pub(crate) fn with<T>(
    uri: &Uri,
    act: impl AsyncFnOnce(&[Connection<Line>]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let addresses = resolve(&uri.place)?;
    let mut settings = Settings::of(uri);
    settings.password = settings.password.or_else(|| env::var(PASSWORD).ok());
    let tls = uri.tls.as_ref().map(trusted).transpose().map_err(Failure::refused)?;
    let opener = Opener { uri, settings, tls };
    let done = dial::with(async || {
        let (stream, address) = dial_any(&addresses).await?;
        let mut connections = vec![opener.open(stream).await?];
        for _ in 1..uri.connections {
            connections.push(opener.open(dial(address).await?).await?);
        }
        let done = act(&connections).await;
        connections.iter().for_each(Connection::close);
        done
    });
    done.map(|(done, _)| done)
}

/// Reads the files that a TLS target names.
fn trusted(Tls { ca, own }: &Tls) -> Result<Client, BadFile> {
    let own = own.as_ref().map(|(certificate, key)| (certificate.into(), key.into()));
    Client::load(&ClientFiles { ca: ca.into(), own })
}

/// Turns sockets into connections.
struct Opener<'a> {
    uri: &'a Uri,
    settings: Settings,
    tls: Option<Client>,
}

impl Opener<'_> {
    async fn open(&self, stream: TcpStream) -> Result<Connection<Line>, Failure> {
        let place = &self.uri.place;
        let Some(client) = &self.tls else {
            let opened = Connection::open(Line::Plain(stream), &self.settings).await;
            return opened.map_err(|error| broken(self.uri, &error));
        };
        let stream = TlsStream::of_client(stream, client, &place.host).map_err(Failure::refused)?;
        let stream = Rc::new(stream);
        let failure = |why: String| Failure::Broken(format!("{place}: {why}"));
        let made = stream.handshake(HANDSHAKE_LIMIT).await;
        made.map_err(|error| failure(error.to_string()))?;
        let opened = Connection::open(Line::Tls(stream.clone()), &self.settings).await;
        // With TLS 1.3 a server rejects a client certificate only after the handshake.
        opened.map_err(|error| stream.failure().map_or_else(|| broken(self.uri, &error), failure))
    }
}

/// Turns an error of a connection into a user's error.
pub(crate) fn broken(uri: &Uri, error: &Error) -> Failure {
    let asks_who = matches!(error, Error::Refused { said, .. } if said.starts_with("NOAUTH"));
    let hint = if asks_who {
        format!("; log in with resp://USER:PASSWORD@HOST, or set {PASSWORD} to the password")
    } else {
        String::new()
    };
    Failure::Broken(format!("{}: {error}{hint}", uri.place))
}

/// Returns the value of a line of `info`, an INFO reply.
pub(crate) fn fact<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Returns the server's description of itself.
pub(crate) async fn info(uri: &Uri, server: &Connection<Line>) -> Result<String, Failure> {
    let reply = server.ask(&["INFO".into(), "server".into()]).await;
    let reply = reply.map_err(|error| broken(uri, &error))?;
    // The user may lack permission for INFO.
    Ok(String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned())
}

/// Returns name and version of the server from its `info`.
pub(crate) fn software(info: &str) -> String {
    let found = SOFTWARE.iter().find_map(|(line, name)| {
        let version = fact(info, line).filter(|version| !version.contains(char::is_control))?;
        Some(format!("{name} {version}"))
    });
    found.unwrap_or_else(|| "an unknown server".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_what_it_says_first_of_itself() {
        let info = "# Server\r\nredis_version:7.0.15\r\nrun_id:ab12\r\n";
        assert_eq!(software(info), "Redis 7.0.15");
        assert_eq!(fact(info, "run_id:"), Some("ab12"));
        assert_eq!(software(&format!("{info}kvasir_version:0.1.0\r\n")), "Kvasir 0.1.0");
        assert!(software("").contains("unknown server"));
        assert!(software("redis_version:7\x1b[2J\r\n").contains("unknown server"));
    }
}
