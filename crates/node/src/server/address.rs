use std::net::{SocketAddr, ToSocketAddrs};

/// The address that `text` names: `HOST:PORT`, or `:PORT` on this machine only. Otherwise a
/// sentence that says what is wrong.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    let is_whole = whole.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if !is_whole {
        return Err(format!(
            "{text:?} is no address: use HOST:PORT, as 127.0.0.1:4420, [::1]:4420 or :4420"
        ));
    }
    let found = whole.to_socket_addrs().map(|mut addresses| addresses.next());
    found.ok().flatten().ok_or_else(|| format!("there is no host of {text:?}"))
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
            assert_eq!(parse_address(text), Ok(address.parse().unwrap()));
        }
        for text in ["", "4420", "127.0.0.1", "127.0.0.1:", "::1", ":65536", "[::1:1", ":x"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }
}
