use super::request::Reply;
use crate::shared_drive::peer::Peer;
use base::Rng;
use spec::{Command, StoreOptions};
use std::collections::BTreeMap;
use std::fmt;

/// Database 0 of Redis clients.
const NAMESPACE: u32 = 1;

/// Numbers too, which Redis clients add to.
const VALUES: [&[u8]; 6] = [b"", b"0", b"12", b"-7", b"stored by a host", &[b'v'; 3_000]];

/// A command of the Key Value command set.
#[derive(Clone, Debug)]
pub(crate) enum HostCommand {
    Store { key: Vec<u8>, value: &'static [u8], options: StoreOptions },
    Retrieve { key: Vec<u8>, len: u32 },
    Exist { key: Vec<u8> },
    Delete { key: Vec<u8> },
    List { start: Vec<u8>, len: u32 },
}

impl HostCommand {
    /// Returns a random command of one key.
    pub(crate) fn of_key(key: Vec<u8>, rng: &mut Rng) -> Self {
        let mut pick = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
        match pick(9) {
            0..=3 => {
                let options = [0, 0, 1, 1, 2, 2, 3][pick(7)];
                let options = StoreOptions::from_bits(options).unwrap();
                Self::Store { key, value: VALUES[pick(VALUES.len())], options }
            }
            4 | 5 => Self::Retrieve { key, len: [4, 100, 4_096][pick(3)] },
            6 | 7 => Self::Exist { key },
            _ => Self::Delete { key },
        }
    }

    fn command(&self) -> Command {
        match self {
            Self::Store { key, value, options } => {
                Command::store(NAMESPACE, key, u32::try_from(value.len()).unwrap(), *options)
            }
            Self::Retrieve { key, len } => Command::retrieve(NAMESPACE, key, *len),
            Self::Exist { key } => Command::exist(NAMESPACE, key),
            Self::Delete { key } => Command::delete(NAMESPACE, key),
            Self::List { start, len } => Command::list(NAMESPACE, start, *len),
        }
    }

    const fn value(&self) -> &[u8] {
        match self {
            Self::Store { value, .. } => value,
            _ => &[],
        }
    }
}

/// Sends all commands before it reads, and returns their replies in the order of the commands. The
/// server may execute them in any order.
pub(crate) fn ask_all(peer: &Peer, commands: &[&HostCommand]) -> Vec<Reply> {
    let send = |command: &&HostCommand| peer.send(command.command(), command.value());
    let ids: Vec<u16> = commands.iter().map(send).collect();
    let mut replies = BTreeMap::new();
    for _ in &ids {
        let answer = peer.next().expect("the server keeps the connection");
        let entry = answer.entry;
        let (status, result) = (entry.status(), entry.result());
        let reply = Reply::Host { status, result, data: answer.data };
        let second = replies.insert(entry.command_id(), reply);
        assert!(second.is_none(), "two replies to command {}", entry.command_id());
    }
    ids.iter().map(|id| replies.remove(id).expect("each command is answered")).collect()
}

impl fmt::Display for HostCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { key, value, options } => {
                let (key, bits) = (key.escape_ascii(), options.bits());
                write!(f, "NVMe Store {key}, options {bits}, {} bytes", value.len())
            }
            Self::Retrieve { key, len } => {
                write!(f, "NVMe Retrieve {}, buffer of {len} bytes", key.escape_ascii())
            }
            Self::Exist { key } => write!(f, "NVMe Exist {}", key.escape_ascii()),
            Self::Delete { key } => write!(f, "NVMe Delete {}", key.escape_ascii()),
            Self::List { start, len } => {
                write!(f, "NVMe List from \"{}\", buffer of {len} bytes", start.escape_ascii())
            }
        }
    }
}
