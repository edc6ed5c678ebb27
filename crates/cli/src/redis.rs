//! A database of a Redis server, as commands use it: found, connected to, asked and let go.

use crate::dial::{self, dial, dial_any, resolve};
use crate::output::Failure;
use reactor::TcpStream;
use resp_client::{Connection, Error, Settings, Uri};
use std::env;

/// Where redis-cli too finds the password that nobody is to read on a command line.
const PASSWORD: &str = "REDISCLI_AUTH";

/// The lines of INFO that say what a server is.
const SOFTWARE: [(&str, &str); 2] = [("kvasir_version:", "Kvasir"), ("redis_version:", "Redis")];

/// Does `act` over as many connections as `uri` asks for.
pub(crate) fn with<T>(
    uri: &Uri,
    act: impl AsyncFnOnce(&[Connection<TcpStream>]) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let addresses = resolve(&uri.place)?;
    let mut settings = Settings::of(uri);
    settings.password = settings.password.or_else(|| env::var(PASSWORD).ok());
    let said = |error: Error| broken(uri, &error);
    let done = dial::with(async || {
        let (stream, address) = dial_any(&addresses).await?;
        let mut connections = vec![Connection::open(stream, &settings).await.map_err(said)?];
        for _ in 1..uri.connections {
            let stream = dial(address).await?;
            connections.push(Connection::open(stream, &settings).await.map_err(said)?);
        }
        let done = act(&connections).await;
        connections.iter().for_each(Connection::close);
        done
    });
    done.map(|(done, _)| done)
}

/// What an error of a connection is to a user.
pub(crate) fn broken(uri: &Uri, error: &Error) -> Failure {
    let asks_who = matches!(error, Error::Refused { said, .. } if said.starts_with("NOAUTH"));
    let hint = if asks_who {
        format!("; say who you are as resp://USER:PASSWORD@HOST, or give {PASSWORD} a password")
    } else {
        String::new()
    };
    Failure::Broken(format!("{}: {error}{hint}", uri.place))
}

/// The value of a line of `info`, as INFO answers it.
pub(crate) fn fact<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// What the server says of itself.
pub(crate) async fn info(uri: &Uri, server: &Connection<TcpStream>) -> Result<String, Failure> {
    let reply = server.ask(&["INFO".into(), "server".into()]).await;
    let reply = reply.map_err(|error| broken(uri, &error))?;
    // A user may lack the right to ask.
    Ok(String::from_utf8_lossy(reply.bytes().unwrap_or_default()).into_owned())
}

/// The name and the version of the server that says `info` of itself.
pub(crate) fn software(info: &str) -> String {
    let found = SOFTWARE.iter().find_map(|(line, name)| {
        let version = fact(info, line).filter(|version| !version.contains(char::is_control))?;
        Some(format!("{name} {version}"))
    });
    found.unwrap_or_else(|| "a server that does not say what it is".to_owned())
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
        assert!(software("").contains("does not say"));
        assert!(software("redis_version:7\x1b[2J\r\n").contains("does not say"));
    }
}
