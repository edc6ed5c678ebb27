use crate::output::Failure;
use std::net::{SocketAddr, ToSocketAddrs};

/// The address that `text` names: `HOST:PORT`, or `:PORT` on this machine only.
pub(super) fn parse(text: &str) -> Result<SocketAddr, Failure> {
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let is_whole = whole.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !is_whole {
        return Err(Failure::Refused(format!(
            "{text:?} is no address: use HOST:PORT, as 127.0.0.1:4420, [::1]:4420 or :4420"
        )));
    }
    let found = whole.to_socket_addrs().map(|mut addresses| addresses.next());
    found.ok().flatten().ok_or_else(|| Failure::Refused(format!("there is no host of {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_or_is_of_this_machine() {
        for (text, address) in [
            ("127.0.0.1:4420", "127.0.0.1:4420"),
            (":0", "127.0.0.1:0"),
            ("[::1]:4420", "[::1]:4420"),
            ("0.0.0.0:65535", "0.0.0.0:65535"),
        ] {
            assert_eq!(parse(text).unwrap(), address.parse().unwrap());
        }
        for text in ["", "4420", "127.0.0.1", "127.0.0.1:", "::1", ":65536", "[::1:1", ":x"] {
            assert!(matches!(parse(text), Err(Failure::Refused(_))), "{text}");
        }
    }
}
