use net::HostPort;
use std::fmt;
use std::str::FromStr;

/// The schemes that a URI can have; the second is what others call it.
const SCHEMES: [&str; 2] = ["resp://", "redis://"];

/// The port of Redis.
const PORT: u16 = 6379;

/// Connections that can be asked for.
const CONNECTIONS_MAX: u16 = 1024;

/// A database of a Redis server:
/// `resp://USER:PASSWORD@HOST:PORT/DATABASE?connections=N`, where an IPv6 address is in brackets,
/// and all but the host can be left out.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri {
    /// Where the server is.
    pub place: HostPort,
    /// The user's name.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
    /// The database: 0 unless it is named.
    pub database: u32,
    /// Connections, from 1 to 1,024: 1 unless their number is named.
    pub connections: u16,
}

/// A text that names no database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// It does not look like one. It is not repeated, since it may hold a password.
    #[error("the target is none: one is written as resp://HOST:PORT/DATABASE")]
    Form,
    /// The database is no number.
    #[error("the target's database is a whole number, not {0:?}")]
    Database(String),
    /// An option is none of those that there are.
    #[error("a target of the Redis protocol has no option {0:?}, only connections")]
    Option(String),
    /// The number of connections is none.
    #[error("the target's option connections is 1 to 1024, not {0:?}")]
    Connections(String),
    /// A `%` is not followed by two digits.
    #[error("in a target's user or password a % stands before two hexadecimal digits, as in %40")]
    Escape,
}

impl Uri {
    /// Whether `text` is meant to be one.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("resp:") || text.starts_with("redis:")
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme));
        let rest = rest.ok_or(UriError::Form)?;
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
        let connections = options.map_or(Ok(1), connections)?;
        let user = (!user.is_empty()).then(|| unescaped(user)).transpose()?;
        Ok(Self { place, user, password, database, connections })
    }
}

fn connections(options: &str) -> Result<u16, UriError> {
    let (name, value) = options.split_once('=').unwrap_or((options, ""));
    if name != "connections" {
        return Err(UriError::Option(name.to_owned()));
    }
    let count = value.parse().ok().filter(|count| (1..=CONNECTIONS_MAX).contains(count));
    count.ok_or_else(|| UriError::Connections(value.to_owned()))
}

/// `text` with what stands for its `%40` and the like (RFC 3986, 2.1).
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
    /// Without user and password: it goes into reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/{}", SCHEMES[0], self.place, self.database)?;
        if self.connections != 1 {
            write!(f, "?connections={}", self.connections)?;
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
        };
        assert_eq!(uri, expected);
        let uri: Uri = "redis://ann:p%40ss:w@[::1]:7000/15?connections=8".parse().unwrap();
        let expected = Uri {
            place: place("::1", 7000),
            user: Some("ann".to_owned()),
            password: Some("p@ss:w".to_owned()),
            database: 15,
            connections: 8,
        };
        assert_eq!(uri, expected);
        assert_eq!(uri.to_string(), "resp://[::1]:7000/15?connections=8");
        let uri: Uri = "resp://:secret@h/".parse().unwrap();
        assert_eq!((uri.user, uri.password, uri.database), (None, Some("secret".to_owned()), 0));
    }

    #[test]
    fn what_is_no_uri_is_refused_with_what_would_be_and_without_the_password() {
        let form = "resp://HOST:PORT/DATABASE";
        for (text, words) in [
            ("resp:", form),
            ("resp://", form),
            ("rediss://h", form),
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
