//! All commands, by families: what is known of each. `dispatch` has their functions.

mod words;

use self::words::words_of;
use crate::command::{
    ADMIN, ALL_KEYS, APART, AT_ONCE, Command, DANGEROUS, FAST, GROWS, Keys, NO_KEYS, ONE_KEY, READ,
    UNASKED, WRITE,
};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The first two arguments are keys.
const TWO_KEYS: Keys = (1, 2, 1);
/// Every second argument is a key.
const PAIRS: Keys = (1, -1, 2);
/// The argument after the word is a key.
const SECOND: Keys = (2, 2, 1);

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 32;

/// Name, arity, flags, keys and summary of a command: see [`Command`].
type Row = (&'static str, i64, u16, Keys, &'static str);

const FAMILIES: [(&str, &[Row]); 7] = [
    ("string", STRING),
    ("hash", HASH),
    ("sorted-set", SORTED_SET),
    ("generic", GENERIC),
    ("transactions", TRANSACTIONS),
    ("connection", CONNECTION),
    ("server", SERVER),
];

const STRING: &[Row] = &[
    ("get", 2, READ | FAST, ONE_KEY, "Get the value of a key"),
    ("set", -3, WRITE | GROWS, ONE_KEY, "Set the value of a key"),
    ("setnx", 3, WRITE | GROWS | FAST, ONE_KEY, "Set the value of a key that does not exist"),
    ("setex", 4, WRITE | GROWS, ONE_KEY, "Set a value for some seconds"),
    ("psetex", 4, WRITE | GROWS, ONE_KEY, "Set a value for some milliseconds"),
    ("getset", 3, WRITE | GROWS | FAST, ONE_KEY, "Set a value and return the one before"),
    ("getdel", 2, WRITE | FAST, ONE_KEY, "Return a value and delete its key"),
    ("getex", -2, WRITE | FAST, ONE_KEY, "Return a value and set when its key expires"),
    ("mget", -2, READ | FAST, ALL_KEYS, "Return the values of several keys"),
    ("mset", -3, WRITE | GROWS, PAIRS, "Set several values as one step"),
    ("msetnx", -3, WRITE | GROWS, PAIRS, "Set several values if none of their keys exists"),
    ("strlen", 2, READ | FAST, ONE_KEY, "Return the length of a value"),
    ("append", 3, WRITE | GROWS | FAST, ONE_KEY, "Make a value longer"),
    ("getrange", 4, READ, ONE_KEY, "Return a part of a value"),
    ("substr", 4, READ, ONE_KEY, "Return a part of a value"),
    ("setrange", 4, WRITE | GROWS, ONE_KEY, "Overwrite a part of a value"),
    ("incr", 2, WRITE | GROWS | FAST, ONE_KEY, "Add one to a number"),
    ("decr", 2, WRITE | GROWS | FAST, ONE_KEY, "Take one from a number"),
    ("incrby", 3, WRITE | GROWS | FAST, ONE_KEY, "Add to a number"),
    ("decrby", 3, WRITE | GROWS | FAST, ONE_KEY, "Take from a number"),
    ("incrbyfloat", 3, WRITE | GROWS | FAST, ONE_KEY, "Add to a decimal number"),
];

const HASH: &[Row] = &[
    ("hset", -4, WRITE | GROWS | FAST, ONE_KEY, "Set fields of a hash"),
    ("hmset", -4, WRITE | GROWS | FAST, ONE_KEY, "Set fields of a hash"),
    ("hsetnx", 4, WRITE | GROWS | FAST, ONE_KEY, "Set a field of a hash if it does not exist"),
    ("hget", 3, READ | FAST, ONE_KEY, "Return the value of a field"),
    ("hmget", -3, READ | FAST, ONE_KEY, "Return the values of fields"),
    ("hgetall", 2, READ, ONE_KEY, "Return all fields and values of a hash"),
    ("hkeys", 2, READ, ONE_KEY, "Return all fields of a hash"),
    ("hvals", 2, READ, ONE_KEY, "Return all values of a hash"),
    ("hdel", -3, WRITE | FAST, ONE_KEY, "Delete fields of a hash"),
    ("hlen", 2, READ | FAST, ONE_KEY, "Count the fields of a hash"),
    ("hexists", 3, READ | FAST, ONE_KEY, "Say whether a field exists"),
    ("hstrlen", 3, READ | FAST, ONE_KEY, "Return the length of the value of a field"),
    ("hincrby", 4, WRITE | GROWS | FAST, ONE_KEY, "Add to the number that a field has"),
    (
        "hincrbyfloat",
        4,
        WRITE | GROWS | FAST,
        ONE_KEY,
        "Add to the decimal number that a field has",
    ),
    ("hscan", -3, READ, ONE_KEY, "Return some fields, and where to go on"),
    ("hrandfield", -2, READ, ONE_KEY, "Return some of the fields by chance"),
];

const SORTED_SET: &[Row] = &[
    (
        "zadd",
        -4,
        WRITE | GROWS | FAST,
        ONE_KEY,
        "Add members to a sorted set, or change their scores",
    ),
    ("zincrby", 4, WRITE | GROWS | FAST, ONE_KEY, "Add to the score of a member"),
    ("zrem", -3, WRITE | FAST, ONE_KEY, "Remove members of a sorted set"),
    ("zscore", 3, READ | FAST, ONE_KEY, "Return the score of a member"),
    ("zmscore", -3, READ | FAST, ONE_KEY, "Return the scores of members"),
    ("zcard", 2, READ | FAST, ONE_KEY, "Count the members of a sorted set"),
    ("zrank", 3, READ | FAST, ONE_KEY, "Count the members of lesser scores"),
    ("zrevrank", 3, READ | FAST, ONE_KEY, "Count the members of greater scores"),
    ("zpopmin", -2, WRITE | FAST, ONE_KEY, "Remove the members of the least scores"),
    ("zpopmax", -2, WRITE | FAST, ONE_KEY, "Remove the members of the greatest scores"),
    ("zscan", -3, READ, ONE_KEY, "Return some members, and where to go on"),
    ("zrandmember", -2, READ, ONE_KEY, "Return some of the members by chance"),
    ("zrange", -4, READ, ONE_KEY, "Return members of a range"),
    ("zrevrange", -4, READ, ONE_KEY, "Return members of a range, the last one first"),
    ("zrangebyscore", -4, READ, ONE_KEY, "Return members of a range of scores"),
    (
        "zrevrangebyscore",
        -4,
        READ,
        ONE_KEY,
        "Return members of a range of scores, the last one first",
    ),
    ("zcount", 4, READ | FAST, ONE_KEY, "Count the members of a range of scores"),
    ("zremrangebyscore", 4, WRITE, ONE_KEY, "Remove the members of a range of scores"),
    ("zremrangebyrank", 4, WRITE, ONE_KEY, "Remove the members of a range"),
];

const GENERIC: &[Row] = &[
    ("del", -2, WRITE, ALL_KEYS, "Delete keys"),
    ("unlink", -2, WRITE | FAST, ALL_KEYS, "Delete keys"),
    ("exists", -2, READ | FAST, ALL_KEYS, "Count the keys that exist"),
    ("touch", -2, READ | FAST, ALL_KEYS, "Count the keys that exist"),
    ("type", 2, READ | FAST, ONE_KEY, "Say what kind of value a key has"),
    ("rename", 3, WRITE, TWO_KEYS, "Give a value another key"),
    ("renamenx", 3, WRITE | FAST, TWO_KEYS, "Give a value another key that does not exist"),
    ("copy", -3, WRITE | GROWS, TWO_KEYS, "Copy a value to another key"),
    ("randomkey", 1, READ | APART, NO_KEYS, "Return one of the keys"),
    ("expire", -3, WRITE | FAST, ONE_KEY, "Set in how many seconds a key expires"),
    ("pexpire", -3, WRITE | FAST, ONE_KEY, "Set in how many milliseconds a key expires"),
    ("expireat", -3, WRITE | FAST, ONE_KEY, "Set when a key expires, in seconds since 1970"),
    ("pexpireat", -3, WRITE | FAST, ONE_KEY, "Set when a key expires, in milliseconds since 1970"),
    ("ttl", 2, READ | FAST, ONE_KEY, "Say in how many seconds a key expires"),
    ("pttl", 2, READ | FAST, ONE_KEY, "Say in how many milliseconds a key expires"),
    ("expiretime", 2, READ | FAST, ONE_KEY, "Say when a key expires, in seconds since 1970"),
    ("pexpiretime", 2, READ | FAST, ONE_KEY, "Say when a key expires, in milliseconds since 1970"),
    ("persist", 2, WRITE | FAST, ONE_KEY, "Let a key not expire"),
    ("scan", -2, READ | APART, NO_KEYS, "Return some keys, and where to go on"),
    ("keys", 2, READ | APART | DANGEROUS, NO_KEYS, "Return all keys that are like a pattern"),
    ("object", -2, READ, SECOND, "Tell of what a key holds"),
    ("memory", -2, READ, SECOND, "Tell how many bytes a key takes"),
    ("wait", 3, 0, NO_KEYS, "Count the copies of what was stored"),
];

const TRANSACTIONS: &[Row] = &[
    ("multi", 1, FAST | AT_ONCE, NO_KEYS, "Begin a transaction"),
    ("exec", 1, FAST | AT_ONCE, NO_KEYS, "Do all commands of a transaction"),
    ("discard", 1, FAST | AT_ONCE, NO_KEYS, "Forget a transaction"),
    (
        "watch",
        -2,
        FAST | AT_ONCE,
        ALL_KEYS,
        "Let a transaction happen only if keys stay as they are",
    ),
    ("unwatch", 1, FAST, NO_KEYS, "Forget which keys are watched"),
];

const CONNECTION: &[Row] = &[
    ("ping", -1, FAST, NO_KEYS, "Answer"),
    ("echo", 2, FAST, NO_KEYS, "Answer with an argument"),
    ("hello", -1, UNASKED | FAST, NO_KEYS, "Choose the protocol"),
    ("auth", -2, UNASKED | FAST, NO_KEYS, "Log in as a user"),
    ("select", 2, FAST, NO_KEYS, "Choose the database"),
    ("quit", -1, UNASKED | FAST | AT_ONCE, NO_KEYS, "End the connection"),
    ("reset", 1, UNASKED | FAST | AT_ONCE, NO_KEYS, "Make the connection as it was at first"),
    ("client", -2, 0, NO_KEYS, "Name the connection; list and end connections"),
];

const SERVER: &[Row] = &[
    ("acl", -2, ADMIN, NO_KEYS, "Tell of users"),
    ("command", -1, 0, NO_KEYS, "Tell of commands"),
    ("time", 1, FAST, NO_KEYS, "Tell the time"),
    ("dbsize", 1, READ | FAST | APART, NO_KEYS, "Count the keys"),
    ("flushall", -1, WRITE | APART | DANGEROUS, NO_KEYS, "Delete all keys of all databases"),
    ("flushdb", -1, WRITE | APART | DANGEROUS, NO_KEYS, "Delete all keys of a database"),
    ("config", -2, ADMIN, NO_KEYS, "Tell how the server works, and change that"),
    ("info", -1, DANGEROUS, NO_KEYS, "Tell what the server has done"),
    ("slowlog", -2, ADMIN, NO_KEYS, "Tell which commands took long"),
    ("latency", -2, ADMIN, NO_KEYS, "Tell how long commands took"),
    ("function", -2, WRITE, NO_KEYS, "Forget all functions, of which there are none"),
    ("debug", -2, ADMIN, NO_KEYS, "Take some time"),
    ("cluster", -2, 0, NO_KEYS, "Tell that the server is not of a cluster"),
    ("role", 1, FAST | DANGEROUS, NO_KEYS, "Tell that the server is a master without replicas"),
    ("lastsave", 1, FAST | DANGEROUS, NO_KEYS, "Tell the time, since what is stored is saved"),
    ("module", -2, ADMIN, NO_KEYS, "Tell that there are no modules"),
];

/// All commands in the order of the table, and their places by name.
struct Table {
    commands: Vec<Command>,
    names: BTreeMap<&'static [u8], usize>,
}

static TABLE: OnceLock<Table> = OnceLock::new();

fn table() -> &'static Table {
    TABLE.get_or_init(|| {
        let rows =
            FAMILIES.iter().flat_map(|(family, rows)| rows.iter().map(move |row| (family, row)));
        let commands: Vec<Command> = rows
            .enumerate()
            .map(|(place, (family, &(name, arity, flags, keys, summary)))| {
                let words = words_of(name);
                Command { place, family, name, arity, flags, keys, summary, words }
            })
            .collect();
        let names = commands.iter().map(|command| (command.name.as_bytes(), command.place));
        let names = names.collect();
        Table { commands, names }
    })
}

impl Command {
    /// All commands, by families.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        table().commands.iter()
    }

    /// The command of this name, in small or capital letters.
    pub(crate) fn named(name: &[u8]) -> Option<&'static Self> {
        let mut small = [0; NAME_BYTES_MAX];
        let small = small.get_mut(..name.len())?;
        small.copy_from_slice(name);
        small.make_ascii_lowercase();
        let Table { commands, names } = table();
        names.get(&*small).map(|place| &commands[*place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_there_once_and_in_small_letters() {
        let Table { commands, names } = table();
        assert_eq!(names.len(), commands.len());
        for (place, command) in commands.iter().enumerate() {
            let name = command.name;
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{name}");
            assert_eq!(command.place, place);
            for name in [name.to_owned(), name.to_ascii_uppercase()] {
                assert_eq!(Command::named(name.as_bytes()).unwrap().place, place);
            }
        }
        for name in [String::new(), "nosuch".to_owned(), "get".repeat(100)] {
            assert!(Command::named(name.as_bytes()).is_none());
        }
    }
}
