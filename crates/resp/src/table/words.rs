//! What may follow the names of some commands.

use crate::word::{HELP, Words, word};

/// The words that may follow the name of a command; none if it has no words.
pub(super) fn words_of(name: &str) -> Words {
    match name {
        "acl" => ACL,
        "client" => CLIENT,
        "cluster" => CLUSTER,
        "command" => COMMAND,
        "config" => CONFIG,
        "function" => FUNCTION,
        "latency" => LATENCY,
        "memory" => MEMORY,
        "module" => MODULE,
        "object" => OBJECT,
        "slowlog" => SLOWLOG,
        _ => &[],
    }
}

const ACL: Words = &[
    word("whoami", 2, "", "Tell the name of this connection's user"),
    word("list", 2, "", "Tell what each user may do, as lines of a file of users"),
    word("users", 2, "", "Tell the names of all users"),
    word("getuser", 3, "name", "Tell what a user may do"),
    word("cat", -2, "[category]", "Tell the kinds of commands, or the commands of a kind"),
    HELP,
];

const CLIENT: Words = &[
    word("id", 2, "", "Tell the number of this connection"),
    word("setname", 3, "name", "Give this connection a name"),
    word("getname", 2, "", "Tell its name"),
    word("setinfo", 4, "LIB-NAME|LIB-VER text", "Say with which library this client was made"),
    word("list", -2, "[TYPE type] [ID id ...]", "Tell of all connections, or of some"),
    word("info", 2, "", "Tell of this connection"),
    word("kill", -3, "address | filter value ...", "End connections"),
    word("no-evict", 3, "ON|OFF", "Accept the option; Kvasir evicts no connection"),
    word("no-touch", 3, "ON|OFF", "Accept the option; Kvasir does not track accesses"),
    word("reply", 3, "ON|OFF|SKIP", "Say which commands are to be answered"),
    HELP,
];

/// All of them are answered alike.
const CLUSTER: Words = &[
    word("countkeysinslot", 3, "slot", "Is refused: there is no cluster"),
    word("getkeysinslot", 4, "slot count", "Is refused: there is no cluster"),
    word("info", 2, "", "Is refused: there is no cluster"),
    word("keyslot", 3, "key", "Is refused: there is no cluster"),
    word("links", 2, "", "Is refused: there is no cluster"),
    word("myid", 2, "", "Is refused: there is no cluster"),
    word("nodes", 2, "", "Is refused: there is no cluster"),
    word("shards", 2, "", "Is refused: there is no cluster"),
    word("slots", 2, "", "Is refused: there is no cluster"),
    HELP,
];

const COMMAND: Words = &[
    word("count", 2, "", "Tell how many commands there are"),
    word("info", -2, "[command ...]", "Tell what clients need to know of commands"),
    word("list", -2, "[FILTERBY MODULE|ACLCAT|PATTERN name]", "Tell names of commands"),
    word("docs", -2, "[command ...]", "Tell what they are for"),
    word("getkeys", -4, "command ...", "Tell which arguments of a command are keys"),
    HELP,
];

const CONFIG: Words = &[
    word("get", -3, "pattern ...", "Tell the parameters whose names are like that"),
    word("set", -4, "name value ...", "Change parameters"),
    word("resetstat", 2, "", "Let what INFO counts begin at 0 again"),
    word("rewrite", 2, "", "Is refused: no file has the parameters"),
    HELP,
];

const FUNCTION: Words =
    &[word("flush", -2, "[ASYNC|SYNC]", "Forget all functions, of which there are none"), HELP];

const LATENCY: Words = &[
    word("latest", 2, "", "Tell of the last time that each kind of event took long"),
    word("history", 3, "event", "Tell when events of a kind took long, and how long"),
    word("reset", -2, "[event ...]", "Forget all of these, or of these kinds"),
    word("histogram", -2, "[command ...]", "Tell how many calls took up to how long"),
    HELP,
];

const MEMORY: Words =
    &[word("usage", -3, "key [SAMPLES count]", "Tell how many bytes key and value have"), HELP];

const MODULE: Words = &[word("list", 2, "", "Return an empty list"), HELP];

const OBJECT: Words = &[
    word("encoding", 3, "key", "Tell by which name Redis knows the form of a value"),
    word("freq", 3, "key", "Return an error: Kvasir does not count accesses"),
    word("idletime", 3, "key", "Return an error: Kvasir does not track accesses"),
    word("refcount", 3, "key", "Tell how many keys share a value: 1"),
    HELP,
];

const SLOWLOG: Words = &[
    word("get", -2, "[count]", "Tell of the last 10 commands that took long, or so many; all: -1"),
    word("len", 2, "", "Tell how many commands that took long are known"),
    word("reset", 2, "", "Forget them"),
    HELP,
];
