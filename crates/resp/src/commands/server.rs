use super::connection::REDIS_VERSION;
use crate::command::{
    ADMIN, APART, Call, Command, DANGEROUS, FAMILIES, FAST, FLAG_NAMES, NO_KEYS, Outcome, READ,
    WRITE, Words,
};
use crate::door::Door;
use crate::failure::Failure;
use crate::glob::matches;
use crate::hidden;
use crate::reply::Reply;
use engine::{Error, KeySpaceId};
use std::fmt::Write;
use std::future::ready;

pub(crate) const COMMANDS: &[Command] = &[
    Command {
        name: "command",
        arity: -1,
        flags: 0,
        keys: NO_KEYS,
        summary: "Tell of commands",
        run: |mut call| Box::pin(ready(command(&mut call))),
    },
    Command {
        name: "config",
        arity: -2,
        flags: ADMIN,
        keys: NO_KEYS,
        summary: "Tell how the server works",
        run: |mut call| Box::pin(ready(config(&mut call))),
    },
    Command {
        name: "info",
        arity: -1,
        flags: DANGEROUS,
        keys: NO_KEYS,
        summary: "Tell what the server has done",
        run: |mut call| Box::pin(ready(info(&mut call))),
    },
    Command {
        name: "time",
        arity: 1,
        flags: FAST,
        keys: NO_KEYS,
        summary: "Tell the time",
        run: |_| Box::pin(ready(Ok(time()))),
    },
    Command {
        name: "dbsize",
        arity: 1,
        flags: READ | FAST | APART,
        keys: NO_KEYS,
        summary: "Count the keys",
        run: |mut call| Box::pin(ready(dbsize(&mut call))),
    },
    Command {
        name: "flushall",
        arity: -1,
        flags: WRITE | APART | DANGEROUS,
        keys: NO_KEYS,
        summary: "Delete all keys of all databases",
        run: |call| Box::pin(flushall(call)),
    },
    Command {
        name: "flushdb",
        arity: -1,
        flags: WRITE | APART | DANGEROUS,
        keys: NO_KEYS,
        summary: "Delete all keys of a database",
        run: |call| Box::pin(flushdb(call)),
    },
];

pub(crate) const COMMAND_WORDS: Words = &[("count", 2), ("info", -2), ("list", -2), ("docs", -2)];

pub(crate) const CONFIG_WORDS: Words = &[("get", -3), ("set", -4), ("resetstat", 2)];

fn command(call: &mut Call<'_>) -> Outcome {
    let all = || FAMILIES.iter().flat_map(|(_, commands)| commands.iter());
    if call.request.len() == 1 {
        return Ok(Reply::Array(all().map(facts).collect()));
    }
    let named = || call.request.rest(2).map(Command::named);
    match call.word() {
        "count" => Ok(Reply::count(all().count())),
        "info" if call.request.len() == 2 => Ok(Reply::Array(all().map(facts).collect())),
        "info" => Ok(Reply::Array(named().map(|one| one.map_or(Reply::Null, facts)).collect())),
        "list" if call.request.len() > 2 => Err(Failure::SYNTAX),
        "list" => Ok(Reply::Set(all().map(|command| Reply::text(command.name)).collect())),
        _ if call.request.len() == 2 => Ok(Reply::Map(all().map(docs).collect())),
        _ => Ok(Reply::Map(named().flatten().map(docs).collect())),
    }
}

/// What clients know a command by.
fn facts(command: &'static Command) -> Reply {
    let flags = FLAG_NAMES.iter().filter(|(flag, _)| command.is(*flag));
    let (first, last, step) = command.keys;
    Reply::Array(vec![
        Reply::text(command.name),
        Reply::Integer(command.arity),
        Reply::Set(flags.map(|(_, name)| Reply::Status(name)).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

fn docs(command: &'static Command) -> (Reply, Reply) {
    let is_of = |commands: &[Command]| commands.iter().any(|one| one.name == command.name);
    let group =
        FAMILIES.iter().find(|(_, commands)| is_of(commands)).map_or("", |(group, _)| group);
    let facts = vec![
        (Reply::text("summary"), Reply::text(command.summary)),
        (Reply::text("group"), Reply::text(group)),
    ];
    (Reply::text(command.name), Reply::Map(facts))
}

fn config(call: &mut Call<'_>) -> Outcome {
    let known = parameters(call.door);
    match call.word() {
        "get" => {
            let is_asked = |name: &str| {
                let mut patterns = call.request.rest(2);
                patterns.any(|one| matches(&one.to_ascii_lowercase(), name.as_bytes()))
            };
            let asked = known.into_iter().filter(|(name, _)| is_asked(name));
            let pair = |(name, value)| (Reply::text(name), Reply::Text(value));
            Ok(Reply::Map(asked.map(pair).collect()))
        }
        "set" => {
            if !call.request.len().is_multiple_of(2) {
                return Err(Failure::SYNTAX);
            }
            let unknown = (2..call.request.len())
                .step_by(2)
                .find(|at| !known.iter().any(|(name, _)| call.is_word(*at, name)));
            let name = call.request.arg(unknown.unwrap_or(2));
            let (before, after) = match unknown {
                Some(_) => ("ERR Unknown option or number of arguments for CONFIG SET - '", "'"),
                None => (
                    "ERR CONFIG SET failed (possibly related to argument '",
                    "') - can't set immutable config",
                ),
            };
            Err(Failure::quoting(before, name, after))
        }
        _ => {
            call.door.counters().reset();
            Ok(Reply::OK)
        }
    }
}

type Text = std::borrow::Cow<'static, str>;

/// What clients ask for to know how the server works.
fn parameters(door: &Door) -> Vec<(&'static str, Text)> {
    vec![
        ("appendonly", "no".into()),
        ("client-query-buffer-limit", door.settings().request_bytes_max.to_string().into()),
        ("databases", door.settings().databases.to_string().into()),
        ("maxmemory", "0".into()),
        ("maxmemory-policy", "noeviction".into()),
        ("proto-max-bulk-len", door.store().value_bytes_max().to_string().into()),
        ("save", "".into()),
    ]
}

fn info(call: &mut Call<'_>) -> Outcome {
    let sections = [
        ("Server", server_lines(call.door)),
        ("Clients", format!("connected_clients:{}\r\n", call.door.clients().len())),
        ("Memory", memory_lines(call.door)),
        ("Stats", stats_lines(call.door)),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("Cluster", "cluster_enabled:0\r\n".to_owned()),
        ("Keyspace", keyspace_lines(call.door)?),
    ];
    let wants = |name: &str| {
        let mut asked = call.request.rest(1);
        let all = ["all", "default", "everything", name];
        call.request.len() == 1
            || asked.any(|one| all.iter().any(|all| one.eq_ignore_ascii_case(all.as_bytes())))
    };
    let wanted = sections.into_iter().filter(|(name, _)| wants(name));
    let texts: Vec<_> = wanted.map(|(name, lines)| format!("# {name}\r\n{lines}")).collect();
    Ok(Reply::Verbatim(texts.join("\r\n")))
}

fn server_lines(door: &Door) -> String {
    let up = clock::now().0.saturating_sub(door.started().0) / 1_000_000_000;
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "redis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\nkvasir_version:{version}\r\n\
         arch_bits:64\r\nuptime_in_seconds:{up}\r\n"
    )
}

fn memory_lines(door: &Door) -> String {
    let (usage, cache) = (door.store().usage(), door.store().cache_counts());
    let (live, capacity) = (usage.values.bytes, door.store().capacity_bytes());
    format!(
        "index_bytes:{}\r\nindex_entries:{}\r\nvalue_bytes:{live}\r\ncapacity_bytes:{capacity}\r\n\
         cache_bytes:{}\r\n",
        usage.index_bytes, usage.index_entries, cache.bytes
    )
}

fn stats_lines(door: &Door) -> String {
    let (counters, cache) = (door.counters(), door.store().cache_counts());
    format!(
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\n\
         total_net_input_bytes:{}\r\ntotal_net_output_bytes:{}\r\ncopied_value_bytes:{}\r\n\
         cache_hits:{}\r\ncache_misses:{}\r\n",
        counters.connections(),
        counters.commands(),
        counters.read_bytes(),
        counters.written_bytes(),
        counters.copied_bytes(),
        cache.hits,
        cache.misses,
    )
}

fn keyspace_lines(door: &Door) -> Result<String, Failure> {
    let mut lines = String::new();
    for database in 0..door.settings().databases {
        let keys = keys_of(door, Door::space(database))?;
        if keys > 0 {
            write!(lines, "db{database}:keys={keys}\r\n").expect("a text takes all");
        }
    }
    Ok(lines)
}

/// Strings and collections of a database.
fn keys_of(door: &Door, strings: KeySpaceId) -> Result<u64, Failure> {
    Ok(count(door, strings)? + count(door, hidden::roots(strings))?)
}

pub(super) fn count(door: &Door, space: KeySpaceId) -> Result<u64, Failure> {
    match door.store().key_count(space) {
        Err(Error::NoKeySpace) => Ok(0),
        keys => Ok(keys?),
    }
}

fn time() -> Reply {
    let millis = clock::unix_now().0;
    let part = |number: u64| Reply::text(number.to_string());
    let micros = millis % 1_000 * 1_000 + clock::now().0 / 1_000 % 1_000;
    Reply::Array(vec![part(millis / 1_000), part(micros)])
}

fn dbsize(call: &mut Call<'_>) -> Outcome {
    let keys = keys_of(call.door, call.space())?;
    Ok(Reply::Integer(i64::try_from(keys).unwrap_or(i64::MAX)))
}

/// Whether there is no more than a word that says when it is to be done: it is done at once.
fn check_when(call: &Call<'_>) -> Result<(), Failure> {
    let is_known = call.request.len() == 1
        || call.request.len() == 2 && (call.is_word(1, "async") || call.is_word(1, "sync"));
    if is_known { Ok(()) } else { Err(Failure::SYNTAX) }
}

async fn flushall(call: Call<'_>) -> Outcome {
    check_when(&call)?;
    for database in 0..call.door.settings().databases {
        call.session.check_database(database)?;
    }
    for database in 0..call.door.settings().databases {
        call.door.empty(Door::space(database)).await?;
    }
    Ok(Reply::OK)
}

async fn flushdb(call: Call<'_>) -> Outcome {
    check_when(&call)?;
    call.door.empty(call.space()).await?;
    Ok(Reply::OK)
}
