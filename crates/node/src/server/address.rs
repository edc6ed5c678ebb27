use super::http::{HTTP_PORT, STATUS_PATH};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

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

/// The same of the HTTP of a server: without a port that is [`HTTP_PORT`], and what a server says
/// of where it answers is one too.
pub fn parse_http_address(text: &str) -> Result<SocketAddr, String> {
    let place = text.strip_prefix("http://").unwrap_or(text);
    let place = place.strip_suffix(STATUS_PATH).unwrap_or(place);
    if let Ok(address) = place.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, HTTP_PORT));
    }
    let has_port = place.is_empty() || place.contains(':');
    let whole = if has_port { place.to_owned() } else { format!("{place}:{HTTP_PORT}") };
    parse_address(&whole).map_err(|_| {
        format!(
            "{text:?} is no address: use HOST:PORT, HOST or :PORT, as 127.0.0.1:{HTTP_PORT}, \
             [::1]:{HTTP_PORT} or :{HTTP_PORT}"
        )
    })
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

    #[test]
    fn an_address_of_http_can_do_without_a_port() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:8420"),
            ("::1", "[::1]:8420"),
            (":9000", "127.0.0.1:9000"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:7", "[::1]:7"),
            ("http://127.0.0.1:8420/status", "127.0.0.1:8420"),
        ] {
            assert_eq!(parse_http_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for text in ["", ":", ":x", "127.0.0.1:", "[::1:1", "https://127.0.0.1:1"] {
            assert!(parse_http_address(text).is_err(), "{text}");
        }
    }
}
