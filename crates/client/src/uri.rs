use net::HostPort;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::is_qualified_name;
use std::fmt;
use std::str::FromStr;

const SCHEME: &str = "nvme-tcp://";

/// The port of NVMe/TCP (TCP 1.1).
const PORT: u16 = 4420;

/// Data digests as SPDK's target computes them.
const PADDED_DATA: &str = "padded-data";

/// The most I/O queues that a target can be asked for.
const QUEUES_MAX: u16 = 64;

/// The largest id of a namespace; `FFFFFFFFh` means all of them.
const NSID_MAX: u32 = 0xffff_fffe;

/// A namespace of a subsystem at an address:
/// `nvme-tcp://HOST:PORT/NQN?ns=1&digests=header,data&queues=N&as=NQN`. An IPv6 address is in
/// brackets. The port [4420] and the options are optional.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// The address of the subsystem.
    pub place: HostPort,
    /// The subsystem's NVMe Qualified Name.
    pub subsystem: String,
    /// The namespace's id [1].
    pub nsid: u32,
    /// Digests to ask for.
    pub digests: Digests,
    /// The bytes that data digests cover, if the URI says it.
    pub data_digest: Option<DataDigest>,
    /// I/O queues, each with its own connection, from 1 to 64 [1].
    pub queues: u16,
    /// The host name to connect with, if given.
    pub host_name: Option<String>,
}

/// Why a text is no URI of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// It has another form.
    #[error("{0:?} is no target: one is written as nvme-tcp://HOST:PORT/NQN")]
    Form(String),
    /// The subsystem's name is invalid.
    #[error(
        "{0:?} is no NVMe Qualified Name: one is nqn.YYYY-MM.REVERSE.DOMAIN:NAME or \
         nqn.2014-08.org.nvmexpress:uuid:UUID, of at most 223 bytes"
    )]
    Name(String),
    /// An unknown option.
    #[error("a target over NVMe/TCP has no option {0:?}, only ns, digests, queues and as")]
    Option(String),
    /// An option is given twice.
    #[error("the target's option {0} is given twice")]
    Twice(String),
    /// An option has an invalid value.
    #[error("the target's option {name} is {possible}, not {value:?}")]
    Value {
        /// The option.
        name: &'static str,
        /// The valid values.
        possible: &'static str,
        /// The given value.
        value: String,
    },
}

impl Uri {
    /// True when `text` has the scheme of such a URI.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with("nvme-tcp:")
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), UriError> {
        let refused = |name, possible| {
            let value = value.to_owned();
            UriError::Value { name, possible, value }
        };
        match name {
            "ns" => {
                let nsid = value.parse().ok().filter(|nsid| (1..=NSID_MAX).contains(nsid));
                self.nsid = nsid.ok_or_else(|| refused("ns", "a whole number above 0"))?;
            }
            "queues" => {
                let queues = value.parse().ok().filter(|queues| (1..=QUEUES_MAX).contains(queues));
                self.queues = queues.ok_or_else(|| refused("queues", "1 to 64"))?;
            }
            "digests" => {
                let possible = "none, header, data or padded-data, or header and one of these";
                let digests = digests(value).ok_or_else(|| refused("digests", possible))?;
                (self.digests, self.data_digest) = digests;
            }
            "as" => {
                if !is_qualified_name(value) {
                    return Err(refused("as", "the NVMe Qualified Name of a host"));
                }
                self.host_name = Some(value.to_owned());
            }
            _ => return Err(UriError::Option(name.to_owned())),
        }
        Ok(())
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let form = || UriError::Form(text.to_owned());
        let rest = text.strip_prefix(SCHEME).ok_or_else(form)?;
        let (address, rest) = rest.split_once('/').ok_or_else(form)?;
        let (name, options) = match rest.split_once('?') {
            Some((name, options)) => (name, Some(options)),
            None => (rest, None),
        };
        let place = HostPort::parse(address, PORT).ok_or_else(form)?;
        if !is_qualified_name(name) {
            return Err(UriError::Name(name.to_owned()));
        }
        let mut uri = Self {
            place,
            subsystem: name.to_owned(),
            nsid: 1,
            digests: Digests::NONE,
            data_digest: None,
            queues: 1,
            host_name: None,
        };
        let mut seen = Vec::new();
        for option in options.into_iter().flat_map(|options| options.split('&')) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            if seen.contains(&name) {
                return Err(UriError::Twice(name.to_owned()));
            }
            seen.push(name);
            uri.set(name, value)?;
        }
        Ok(uri)
    }
}

impl fmt::Display for Uri {
    /// Writes only options whose value is not the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.place, self.subsystem)?;
        let mut separator = '?';
        let mut option = |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn fmt::Display| {
            write!(f, "{separator}{name}={value}")?;
            separator = '&';
            Ok(())
        };
        if self.nsid != 1 {
            option(f, "ns", &self.nsid)?;
        }
        let data = if self.data_digest.is_some() { PADDED_DATA } else { "data" };
        match self.digests {
            Digests::NONE => {}
            Digests { header: true, data: true } => {
                option(f, "digests", &format_args!("header,{data}"))?;
            }
            Digests { header, .. } => {
                option(f, "digests", if header { &"header" } else { &data })?;
            }
        }
        if self.queues != 1 {
            option(f, "queues", &self.queues)?;
        }
        if let Some(name) = &self.host_name {
            option(f, "as", name)?;
        }
        Ok(())
    }
}

/// Parses the value of the option `digests`: the digests, and the bytes that data digests cover if
/// it says so.
fn digests(value: &str) -> Option<(Digests, Option<DataDigest>)> {
    let (mut digests, mut data_digest) = (Digests::NONE, None);
    if value == "none" {
        return Some((digests, data_digest));
    }
    for part in value.split(',') {
        match part {
            "header" if !digests.header => digests.header = true,
            "data" if !digests.data => digests.data = true,
            PADDED_DATA if !digests.data => {
                digests.data = true;
                data_digest = Some(DataDigest::Padded);
            }
            _ => return None,
        }
    }
    Some((digests, data_digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NQN: &str = "nqn.2026-11.com.example:kv";

    #[test]
    fn a_uri_has_an_address_a_name_and_options() {
        let uri: Uri = format!("nvme-tcp://10.0.2.2:4421/{NQN}").parse().unwrap();
        let expected = Uri {
            place: HostPort { host: "10.0.2.2".to_owned(), port: 4421 },
            subsystem: NQN.to_owned(),
            nsid: 1,
            digests: Digests::NONE,
            data_digest: None,
            queues: 1,
            host_name: None,
        };
        assert_eq!(uri, expected);
        assert_eq!(uri.place.to_string(), "10.0.2.2:4421");
        let uri: Uri =
            format!("nvme-tcp://[::1]/{NQN}?queues=4&digests=header,data&ns=7").parse().unwrap();
        let digests = Digests { header: true, data: true };
        let expected = Uri {
            place: HostPort { host: "::1".to_owned(), port: 4420 },
            nsid: 7,
            queues: 4,
            digests,
            ..expected
        };
        assert_eq!(uri, expected);
        assert_eq!(uri.place.to_string(), "[::1]:4420");
        let uri: Uri = format!("nvme-tcp://storage/{NQN}").parse().unwrap();
        assert_eq!(uri.place.to_string(), "storage:4420");
    }

    #[test]
    fn a_uri_comes_back_from_its_text() {
        for text in [
            format!("nvme-tcp://h:1/{NQN}"),
            format!("nvme-tcp://[fe80::2]:4420/{NQN}?ns=2&digests=header,data&queues=64"),
            format!("nvme-tcp://h:4420/{NQN}?digests=data"),
            format!("nvme-tcp://h:4420/{NQN}?digests=padded-data"),
            format!("nvme-tcp://h:4420/{NQN}?digests=header,padded-data"),
            format!("nvme-tcp://h:4420/{NQN}?digests=header&queues=2"),
            format!("nvme-tcp://h:4420/{NQN}?as=nqn.2026-11.com.example:host"),
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_uri_is_refused_with_what_would_be() {
        let name = "is no NVMe Qualified Name";
        let form = "nvme-tcp://HOST:PORT/NQN";
        for (text, words) in [
            ("", form),
            ("nvme-tcp:", form),
            ("nvme-tcp://", form),
            ("nvme-tcp://host", form),
            ("tcp://host/nqn.2026-11.x", form),
            ("nvme-tcp:///nqn.2026-11.x", form),
            ("nvme-tcp://:4420/nqn.2026-11.x", form),
            ("nvme-tcp://host:/nqn.2026-11.x", form),
            ("nvme-tcp://host:0/nqn.2026-11.x", form),
            ("nvme-tcp://host:+1/nqn.2026-11.x", form),
            ("nvme-tcp://host:65536/nqn.2026-11.x", form),
            ("nvme-tcp://host:1:2/nqn.2026-11.x", form),
            ("nvme-tcp://::1/nqn.2026-11.x", form),
            ("nvme-tcp://[::1/nqn.2026-11.x", form),
            ("nvme-tcp://[::1]4420/nqn.2026-11.x", form),
            ("nvme-tcp://[]/nqn.2026-11.x", form),
            ("nvme-tcp://[host]/nqn.2026-11.x", form),
            ("nvme-tcp://a b/nqn.2026-11.x", form),
            ("nvme-tcp://host/", name),
            ("nvme-tcp://host/kv", name),
            ("nvme-tcp://host/nqn.x", name),
            ("nvme-tcp://host/nqn.2014-08.org.nvmexpress:uuid:0a", name),
            ("nvme-tcp://host/nqn.2026-11.a b", name),
            ("nvme-tcp://host/nqn.2026-11.x?", "only ns, digests, queues and as"),
            ("nvme-tcp://host/nqn.2026-11.x?payload=full", "only ns, digests, queues and as"),
            (
                "nvme-tcp://host/nqn.2026-11.x?ns=0",
                "option ns is a whole number above 0, not \"0\"",
            ),
            ("nvme-tcp://host/nqn.2026-11.x?ns=4294967295", "a whole number above 0"),
            ("nvme-tcp://host/nqn.2026-11.x?ns", "a whole number above 0, not \"\""),
            ("nvme-tcp://host/nqn.2026-11.x?queues=0", "option queues is 1 to 64"),
            ("nvme-tcp://host/nqn.2026-11.x?queues=65", "option queues is 1 to 64"),
            (
                "nvme-tcp://host/nqn.2026-11.x?as=me",
                "option as is the NVMe Qualified Name of a host",
            ),
            ("nvme-tcp://host/nqn.2026-11.x?digests=crc", "none, header, data or padded-data, or"),
            ("nvme-tcp://host/nqn.2026-11.x?digests=data,padded-data", "not \"data,padded-data\""),
            ("nvme-tcp://host/nqn.2026-11.x?digests=", "not \"\""),
            ("nvme-tcp://host/nqn.2026-11.x?ns=1&ns=1", "option ns is given twice"),
        ] {
            let sentence = text.parse::<Uri>().unwrap_err().to_string();
            assert!(sentence.contains(words), "{text}: {sentence}");
        }
        let long = format!("nvme-tcp://host/nqn.2026-11.x:{}", "x".repeat(210));
        assert!(long.parse::<Uri>().unwrap_err().to_string().contains(name));
        assert!(long[..long.len() - 1].parse::<Uri>().is_ok(), "223 bytes are a name");
    }
}
