use std::fmt;

/// A host's name or address, and a port, as they stand in a URI: `HOST:PORT`, where an IPv6 address
/// is in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// What `text` names, which has the port `default` unless it names one. `None`: it is neither a
    /// name nor an address.
    pub fn parse(text: &str, default: u16) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                host.contains(':').then_some((host, port))?
            }
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                port.parse().ok().filter(|port| *port > 0)?
            }
            None if port.is_empty() => default,
            _ => return None,
        };
        let is_strange = |character: char| {
            character.is_control() || character.is_whitespace() || matches!(character, '[' | ']')
        };
        let is_host = !host.is_empty() && !host.contains(is_strange);
        is_host.then(|| Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
