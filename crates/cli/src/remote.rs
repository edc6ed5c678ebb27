//! Finds, connects to and uses a namespace over NVMe/TCP.

use crate::dial::{self, dial, dial_any, resolve};
use crate::output::Failure;
use client::{Association, Error, Host, IoQueue, Namespace, Settings, Uri};
use reactor::{Lateness, TcpStream};
use spec::{KvNamespace, QualifiedName, SubsystemType};
use std::fs;
use std::net::SocketAddr;

/// Most subsystem names in an error sentence.
const NAMES_MAX: usize = 5;

/// Each read of this Linux file returns a new random UUID.
const UUIDS: &str = "/proc/sys/kernel/random/uuid";

/// A connected namespace.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) association: Association<TcpStream>,
    pub(crate) queue: IoQueue<TcpStream>,
    pub(crate) namespace: Namespace,
}

impl Connected {
    /// Returns the namespace, which `uri` names, if it has pairs.
    pub(crate) fn pairs(&self, uri: &Uri) -> Result<&KvNamespace, Failure> {
        match &self.namespace {
            Namespace::Pairs(namespace) => Ok(namespace),
            other => {
                let (nsid, set) = (uri.nsid, other.command_set());
                Err(broken(uri, &Error::NotKeyValue { nsid, set }))
            }
        }
    }
}

/// Runs `act` with the namespace that `uri` names, over I/O queues of `entries` entries.
pub(crate) fn with<T>(
    uri: &Uri,
    entries: u16,
    act: impl AsyncFnOnce(&Connected) -> Result<T, Failure>,
) -> Result<(T, Lateness), Failure> {
    let settings = Settings {
        digests: uri.digests,
        data_digest: uri.data_digest,
        queue_entries: entries,
        ..Settings::new(host(uri)?, &uri.subsystem)
    };
    let addresses = resolve(&uri.place)?;
    dial::with(async || {
        let connected = Box::pin(connect(uri, settings, &addresses)).await?;
        let done = act(&connected).await;
        let Connected { association, queue, .. } = connected;
        queue.close();
        // The result of `act` matters more than an error while disconnecting.
        let _ = association.shut_down().await;
        done
    })
}

async fn connect(
    uri: &Uri,
    settings: Settings,
    addresses: &[SocketAddr],
) -> Result<Connected, Failure> {
    let said = |error: Error| broken(uri, &error);
    let (stream, address) = dial_any(addresses).await?;
    let host = settings.host.clone();
    let association = match Association::connect(settings, stream).await {
        Ok(association) => association,
        Err(Error::UnknownSubsystem(_)) => return Err(unknown(uri, address, host).await),
        Err(error) => return Err(said(error)),
    };
    let namespace = association.namespace(uri.nsid).await.map_err(said)?;
    let mut streams = Vec::new();
    for _ in 0..uri.queues {
        streams.push(dial(address).await?);
    }
    let queue = association.io_queue(streams, namespace.reads()).await.map_err(said)?;
    Ok(Connected { association, queue, namespace })
}

/// Returns an error with the names of the existing subsystems, if the target lists them.
async fn unknown(uri: &Uri, address: SocketAddr, host: Host) -> Failure {
    let names = subsystems(address, host).await.unwrap_or_default();
    let others = match &names[..] {
        [] => "kvasir serve prints its name".to_owned(),
        names => format!("there is {}", names.join(", ")),
    };
    let (address, name) = (&uri.place, &uri.subsystem);
    Failure::Broken(format!("{address}: the target has no subsystem {name}; {others}"))
}

/// Returns the names that the discovery subsystem at `address` lists.
async fn subsystems(address: SocketAddr, host: Host) -> Option<Vec<String>> {
    let stream = dial(address).await.ok()?;
    let settings = Settings::new(host, QualifiedName::DISCOVERY);
    let discovery = Association::connect(settings, stream).await.ok()?;
    let entries = discovery.discover().await.ok()?;
    let entries = entries.iter().filter(|entry| entry.subsystem_type == SubsystemType::NVM);
    let names = entries.filter_map(|entry| entry.subsystem.as_str()).take(NAMES_MAX);
    Some(names.map(str::to_owned).collect())
}

/// Turns an error of a connection into a user's error.
pub(crate) fn broken(uri: &Uri, error: &Error) -> Failure {
    Failure::Broken(format!("{}: {error}", uri.place))
}

/// Returns the host that `uri` names. Otherwise a random host: reservations and associations of one
/// run must not affect the next.
fn host(uri: &Uri) -> Result<Host, Failure> {
    if let Some(name) = &uri.host_name {
        return Ok(Host::of_name(name));
    }
    let text = fs::read_to_string(UUIDS)
        .map_err(|error| Failure::Broken(format!("{UUIDS} cannot be read: {error}")))?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let uuid = u128::from_str_radix(&digits, 16).ok().filter(|uuid| *uuid != 0);
    let uuid = uuid.ok_or_else(|| Failure::Broken(format!("{UUIDS} has no UUID")))?;
    Ok(Host::of_uuid(uuid.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_is_another() {
        let uri: Uri = "nvme-tcp://h/nqn.2026-11.com.example:kv".parse().unwrap();
        let [one, other] = [host(&uri).unwrap(), host(&uri).unwrap()];
        assert_ne!(one.id, other.id);
        assert!(one.name.starts_with("nqn.2014-08.org.nvmexpress:uuid:"), "{}", one.name);
        let [one, other] =
            ["nqn.2026-11.com.example:one", "nqn.2026-11.com.example:other"].map(|name| {
                let uri: Uri =
                    format!("nvme-tcp://h/nqn.2026-11.com.example:kv?as={name}").parse().unwrap();
                let host = host(&uri).unwrap();
                assert_eq!((&host.name[..], host.clone()), (name, Host::of_name(name)));
                host.id
            });
        assert_ne!(one, other);
    }
}
