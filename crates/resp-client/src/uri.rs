use net::HostPort;
use std::fmt;
use std::str::FromStr;

/// The schemes of a URI: Kvasir's own, and that of other programs.
const SCHEMES: [&str; 2] = ["resp://", "redis://"];

/// The scheme over TLS.
const TLS_SCHEME: &str = "rediss://";

/// The port of Redis.
const PORT: u16 = 6379;

/// The most connections that can be asked for.
const CONNECTIONS_MAX: u16 = 1024;

/// A database of a Redis server: `resp://USER:PASSWORD@HOST:PORT/DATABASE?connections=N`. An IPv6
/// address is in brackets; only the host is required. Over TLS:
/// `rediss://...?ca=FILE&cert=FILE&key=FILE`, where `cert` and `key` are optional.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    /// The address of the server.
    pub place: HostPort,
    /// The user's name.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// The database [0].
    pub database: u32,
    /// Connections, from 1 to 1,024 [1].
    pub connections: u16,
    /// The files for TLS, if it is used.
    pub tls: Option<Tls>,
}

/// Names of files for a connection over TLS. This module does not open them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The CA of the server's certificate.
    pub ca: String,
    /// The client's certificate and its key, if it presents one.
    pub own: Option<(String, String)>,
}

/// Why a text is no URI of a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// It has another form. The message omits the text, which may hold a password.
    #[error("the target is none: one is written as resp://HOST:PORT/DATABASE")]
    Form,
    /// The database is not a number.
    #[error("the target's database is a whole number, not {0:?}")]
    Database(String),
    /// An unknown option.
    #[error(
        "a target of the Redis protocol has no option {0:?}, only connections, and with rediss:// \
         ca, cert and key"
    )]
    Option(String),
    /// An option is given twice.
    #[error("the target's option {0} is given twice")]
    Twice(String),
    /// The option requires TLS.
    #[error("the target's option {0} is for rediss://")]
    NoTls(&'static str),
    /// Without a CA the client cannot authenticate the server.
    #[error(
        "a target of rediss:// names the file with the CA of the server's certificate, as \
         rediss://HOST:PORT/DATABASE?ca=ca.crt"
    )]
    NoCa,
    /// One of the two options is missing.
    #[error("the target's options cert and key are given together")]
    HalfOwn,
    /// The number of connections is invalid.
    #[error("the target's option connections is 1 to 1024, not {0:?}")]
    Connections(String),
    /// A `%` is not followed by two digits.
    #[error("in a target's user or password a % stands before two hexadecimal digits, as in %40")]
    Escape,
}

impl Uri {
    /// True when `text` has the scheme of such a URI.
    pub fn is_meant(text: &str) -> bool {
        ["resp:", "redis:", "rediss:"].iter().any(|scheme| text.starts_with(scheme))
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let plain = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let is_plain = plain.is_some();
        let rest = plain.or(text.strip_prefix(TLS_SCHEME)).ok_or(UriError::Form)?;
        let (rest, options) = match rest.split_once('?') {
            Some((rest, options)) => (rest, Some(options)),
            None => (rest, None),
        };
        let (who, rest) = match rest.rsplit_once('@') {
            Some((who, rest)) => (who, rest),
            None => ("", rest),
        };
        let (user, password) = match who.split_once(':') {
            Some((user, password)) => (user, Some(unescaped(password)?)),
            None => (who, None),
        };
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let place = HostPort::parse(place, PORT).ok_or(UriError::Form)?;
        let database = if database.is_empty() { "0" } else { database };
        let is_number = database.bytes().all(|byte| byte.is_ascii_digit());
        let number = database.parse().ok().filter(|_| is_number);
        let database = number.ok_or_else(|| UriError::Database(database.to_owned()))?;
        let options = options.map(Options::parse).transpose()?.unwrap_or_default();
        let connections = options.connections.map_or(Ok(1), connections)?;
        let tls = options.tls(is_plain)?;
        let user = (!user.is_empty()).then(|| unescaped(user)).transpose()?;
        Ok(Self { place, user, password, database, connections, tls })
    }
}

/// The options after the `?`.
#[derive(Default)]
struct Options<'a> {
    connections: Option<&'a str>,
    ca: Option<&'a str>,
    cert: Option<&'a str>,
    key: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(text: &'a str) -> Result<Self, UriError> {
        let mut options = Self::default();
        for option in text.split('&') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let place = match name {
                "connections" => &mut options.connections,
                "ca" => &mut options.ca,
                "cert" => &mut options.cert,
                "key" => &mut options.key,
                _ => return Err(UriError::Option(name.to_owned())),
            };
            if place.replace(value).is_some() {
                return Err(UriError::Twice(name.to_owned()));
            }
        }
        Ok(options)
    }

    fn tls(&self, is_plain: bool) -> Result<Option<Tls>, UriError> {
        let Self { ca, cert, key, .. } = *self;
        if is_plain {
            let named = [(ca, "ca"), (cert, "cert"), (key, "key")];
            let given = named.into_iter().find(|(value, _)| value.is_some());
            return given.map_or(Ok(None), |(_, name)| Err(UriError::NoTls(name)));
        }
        let ca = ca.filter(|name| !name.is_empty()).ok_or(UriError::NoCa)?.to_owned();
        let own = match (cert, key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert.to_owned(), key.to_owned())),
            _ => return Err(UriError::HalfOwn),
        };
        Ok(Some(Tls { ca, own }))
    }
}

fn connections(value: &str) -> Result<u16, UriError> {
    let count = value.parse().ok().filter(|count| (1..=CONNECTIONS_MAX).contains(count));
    count.ok_or_else(|| UriError::Connections(value.to_owned()))
}

/// Returns `text` with its `%40` and the like decoded (RFC 3986, 2.1).
fn unescaped(text: &str) -> Result<String, UriError> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(UriError::Escape) };
        bytes.push(u8::try_from(high << 4 | low).expect("two digits are a byte"));
    }
    String::from_utf8(bytes).map_err(|_| UriError::Escape)
}

impl fmt::Display for Uri {
    /// Omits user and password, because reports contain the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { TLS_SCHEME } else { SCHEMES[0] };
        write!(f, "{scheme}{}/{}", self.place, self.database)?;
        let mut options = Vec::new();
        if self.connections != 1 {
            options.push(("connections", self.connections.to_string()));
        }
        if let Some(Tls { ca, own }) = &self.tls {
            options.push(("ca", ca.clone()));
            if let Some((cert, key)) = own {
                options.extend([("cert", cert.clone()), ("key", key.clone())]);
            }
        }
        for (at, (name, value)) in options.iter().enumerate() {
            write!(f, "{}{name}={value}", if at == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_has_what_it_names_and_redis_own_where_it_names_nothing() {
        let uri: Uri = "resp://localhost".parse().unwrap();
        let place = |host: &str, port| HostPort { host: host.to_owned(), port };
        let expected = Uri {
            place: place("localhost", 6379),
            user: None,
            password: None,
            database: 0,
            connections: 1,
            tls: None,
        };
        assert_eq!(uri, expected);
        let uri: Uri = "redis://ann:p%40ss:w@[::1]:7000/15?connections=8".parse().unwrap();
        let expected = Uri {
            place: place("::1", 7000),
            user: Some("ann".to_owned()),
            password: Some("p@ss:w".to_owned()),
            database: 15,
            connections: 8,
            tls: None,
        };
        assert_eq!(uri, expected);
        assert_eq!(uri.to_string(), "resp://[::1]:7000/15?connections=8");
        let uri: Uri = "resp://:secret@h/".parse().unwrap();
        assert_eq!((uri.user, uri.password, uri.database), (None, Some("secret".to_owned()), 0));
        for text in [
            "rediss://h:6379/1?ca=a/ca.crt",
            "rediss://h:6379/0?connections=2&ca=ca.crt&cert=c.crt&key=c.key",
        ] {
            let uri: Uri = text.parse().unwrap();
            let own = text.contains("cert").then(|| ("c.crt".to_owned(), "c.key".to_owned()));
            let tls = uri.tls.clone().unwrap();
            assert!(tls.ca.ends_with("ca.crt") && tls.own == own, "{tls:?}");
            assert_eq!(uri.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_uri_is_refused_with_what_would_be_and_without_the_password() {
        let form = "resp://HOST:PORT/DATABASE";
        for (text, words) in [
            ("resp:", form),
            ("resp://", form),
            ("rediss://", form),
            ("rediss://h", "names the file with the CA"),
            ("rediss://h?ca=", "names the file with the CA"),
            ("rediss://h?cert=a&key=b", "names the file with the CA"),
            ("rediss://h?ca=a&cert=b", "cert and key are given together"),
            ("rediss://h?ca=a&key=b", "cert and key are given together"),
            ("rediss://h?ca=a&ca=b", "option ca is given twice"),
            ("resp://h?connections=2&ca=a", "option ca is for rediss://"),
            ("redis://h?key=a", "option key is for rediss://"),
            ("resp://secret@", form),
            ("resp://h:0", form),
            ("resp://h:65536/0", form),
            ("resp://::1/0", form),
            ("resp://h/x", "a whole number, not \"x\""),
            ("resp://h/-1", "a whole number, not \"-1\""),
            ("resp://h/+1", "a whole number, not \"+1\""),
            ("resp://h/4294967296", "a whole number"),
            ("resp://h?queues=1", "no option \"queues\", only connections"),
            ("resp://h?", "no option \"\""),
            ("resp://h?connections=0", "1 to 1024, not \"0\""),
            ("resp://h?connections=1025", "1 to 1024"),
            ("resp://a:secret%4@h", "two hexadecimal digits"),
            ("resp://a:secret%zz@h", "two hexadecimal digits"),
        ] {
            let sentence = text.parse::<Uri>().unwrap_err().to_string();
            assert!(sentence.contains(words) && !sentence.contains("secret"), "{text}: {sentence}");
        }
    }
}
