use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// Default port of the HTTP status service; 4420 is that of NVMe/TCP hosts.
pub const HTTP_PORT: u16 = 8_420;

/// Path of the status document of that service.
pub(super) const STATUS_PATH: &str = "/status";

/// Parses and resolves an address: `HOST:PORT`, or `:PORT` for this machine only. Returns an error
/// sentence if it fails.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if !is_whole(text) {
        return Err(format!(
            "{text:?} is not an address: use HOST:PORT, as 127.0.0.1:4420, [::1]:4420 or :4420"
        ));
    }
    found(text).ok_or_else(|| format!("cannot resolve the host of {text:?}"))
}

/// Parses the address of an HTTP status service. The port is [`HTTP_PORT`] by default, and a URL
/// as the server prints it is an address too.
pub fn parse_http_address(text: &str) -> Result<SocketAddr, String> {
    let place = text.strip_prefix("http://").unwrap_or(text);
    let place = place.strip_suffix(STATUS_PATH).or(place.strip_suffix('/')).unwrap_or(place);
    let bracketed = place.strip_prefix('[').and_then(|inner| inner.strip_suffix(']'));
    if let Ok(address) = bracketed.unwrap_or(place).parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, HTTP_PORT));
    }
    let whole = if place.contains([':', '/']) || place.is_empty() {
        place.to_owned()
    } else {
        format!("{place}:{HTTP_PORT}")
    };
    if is_whole(&whole) {
        return found(&whole).ok_or_else(|| format!("cannot resolve the host of {text:?}"));
    }
    Err(format!(
        "{text:?} is not an address: use HOST:PORT, HOST or :PORT, as 127.0.0.1:{HTTP_PORT}, \
         [::1]:{HTTP_PORT} or :{HTTP_PORT}"
    ))
}

/// Returns whether `text` has a port after a possible host.
fn is_whole(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

/// Returns the first address of `text`, or of this machine if `text` has no host.
fn found(text: &str) -> Option<SocketAddr> {
    let whole = if text.starts_with(':') { format!("127.0.0.1{text}") } else { text.to_owned() };
    whole.to_socket_addrs().ok()?.next()
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
    fn an_unknown_host_is_a_resolve_error() {
        // A label has at most 63 bytes (RFC 1035, section 2.3.4), so no DNS query is sent.
        let host = "x".repeat(64);
        for text in [host.clone(), format!("{host}:1"), format!("http://{host}/status")] {
            let sentence = format!("cannot resolve the host of {text:?}");
            assert_eq!(parse_http_address(&text), Err(sentence));
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
            ("[::1]", "[::1]:8420"),
            ("http://127.0.0.1:8420/status", "127.0.0.1:8420"),
            ("http://127.0.0.1:8420/", "127.0.0.1:8420"),
            ("http://[::1]/status", "[::1]:8420"),
        ] {
            assert_eq!(parse_http_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for text in ["", ":", ":x", "127.0.0.1:", "[::1:1", "[::1", "https://127.0.0.1:1", "a/b"] {
            assert!(parse_http_address(text).is_err(), "{text}");
        }
    }
}
