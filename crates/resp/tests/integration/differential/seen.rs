//! What is seen of commands from outside: the same as with Redis, but for times.

use crate::differential::answer::Answer;
use crate::differential::generate::{Words, encoded};
use crate::differential::ours::{self, door, pass, slow_door};
use crate::differential::redis::{self, Redis};
use reactor::Reactor;
use std::collections::BTreeMap;

/// Words are divided by spaces; `_` within one is a space.
pub(crate) fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.replace('_', " ").into_bytes()).collect()
}

pub(crate) fn line(line: &str) -> Vec<u8> {
    encoded(&words(line))
}

/// Answered alike by both.
const ALIKE: &str = "
config get slowlog*
config get latency-monitor-threshold timeout
config get timeout
config get nosuch
config set slowlog-log-slower-than -2
config set slowlog-log-slower-than x
config set slowlog-log-slower-than -1
config get slowlog-log-slower-than
config set SLOWLOG-MAX-LEN 3 latency-monitor-threshold 7
config get slowlog-max-len
config get latency-monitor-threshold
config set slowlog-max-len 9 latency-monitor-threshold -1
config get slowlog-max-len
config set slowlog-max-len 9 slowlog-max-len 10
config set slowlog-max-len x slowlog-max-len 10
config set slowlog-max-len 9 nosuch 10
config set nosuch 9 databases 10
config set databases 9 nosuch 10
config set databases 9 slowlog-max-len x
config set slowlog-max-len
config set slowlog-max-len 1 timeout
config set slowlog-max-len -1
config set slowlog-max-len 9223372036854775808
config set timeout -1
config set timeout 2147483648
config set timeout 300
config get timeout
config set timeout 0
config set maxclients 0
config set maxclients 4294967296
config set maxclients 1.5
config set maxclients 100
config get maxclients
config set client-query-buffer-limit 1
config set client-query-buffer-limit 1mx
config set client-query-buffer-limit -1
config set client-query-buffer-limit 2mb
config get client-query-buffer-limit
config set client-query-buffer-limit 1073741824
config set client-output-buffer-limit x
config set client-output-buffer-limit normal_1_2
config set client-output-buffer-limit nosuch_1_2_3
config set client-output-buffer-limit normal_1_2_-3
config set client-output-buffer-limit normal_x_2_3
config set client-output-buffer-limit normal_64mb_32mb_10
config set client-output-buffer-limit normal_0_0_0
config rewrite
config resetstat
config resetstat x
slowlog
slowlog get x
slowlog get -2
slowlog get 1 2
slowlog len 1
slowlog nosuch
slowlog reset
slowlog len
slowlog get
latency
latency nosuch
latency latest
latency latest 1
latency history
latency history command
latency reset
latency reset command nosuch
client kill
client kill nosuch
client kill 127.0.0.1:1
client kill id
client kill id 0
client kill id x
client kill id 999999
client kill id 999999 skipme
client kill id 999999 skipme x
client kill id 999999 skipme no type normal
client kill type nosuch
client kill type pubsub
client kill addr 1.2.3.4:5
client kill laddr 1.2.3.4:5
client kill user nosuch
client kill nosuch x
set string abc
set number 12
hset hash a b
zadd scores 1 a
set long aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
object encoding string
object encoding number
object encoding long
object encoding hash
object encoding scores
object encoding nosuch
object refcount string
object refcount nosuch
object freq string
object freq nosuch
object idletime nosuch
object nosuch string
object
memory usage nosuch
memory usage string nosuch 3
memory usage string samples x
memory usage string samples -1
memory nosuch
command getkeys get a
command getkeys mset a 1 b 2
command getkeys object encoding a
command getkeys copy a b
command getkeys ping x
command getkeys nosuch x
command getkeys set a
command getkeys
wait 0 0
wait 1 20
wait x 0
wait 0 x
wait 0 -1
wait 0
function flush
function flush sync
function flush nosuch
function nosuch
function
debug
time x
info nosuch
zadd scores 1.5 b -1 c
zcount scores ( 5
zcount scores _ 5
zcount scores  5
zcount scores _1 ___5
zcount scores (_1 5
zcount scores 1_ 5
zcount scores (__ 5
zcount scores - +
zrangebyscore scores ( (1.5
zrange scores ( 2 byscore
zrevrangebyscore scores 2  withscores
hrandfield hash abc extra
hrandfield hash 1 extra
hrandfield hash -9223372036854775808 extra
hrandfield hash 1 withvalues extra
hrandfield hash abc withvalues extra
hrandfield hash 9223372036854775807 withvalues
hrandfield hash 9223372036854775807
hrandfield nosuch abc extra
zrandmember scores abc extra
zrandmember scores 1 extra
zrandmember scores 9223372036854775807 withscores
cluster
cluster info
cluster info x
cluster nodes
cluster slots
cluster shards
cluster myid
cluster keyslot a
cluster nosuch
role
role x
lastsave x
module
module list
module list x
module nosuch
command list x
command list filterby
command list filterby pattern
command list filterby nosuch x
command list filterby pattern a b
command list filterby module x
command list filterby pattern HSETN?
command list filterby aclcat nosuch
command list filterby pattern slowlog|G*
";

#[test]
fn what_is_asked_of_the_server_is_answered_as_by_redis() {
    let Some(server) = Redis::start("seen") else { return };
    for protocol in [2, 3] {
        Reactor::new(None).run(async {
            let door = door(1).await;
            let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
            for of_server in
                ["flushall", "config set slowlog-log-slower-than 10000", "slowlog reset"]
            {
                theirs.ask(&line(of_server), 1);
            }
            let defaults = "config set slowlog-max-len 128 latency-monitor-threshold 0";
            theirs.ask(&line(defaults), 1);
            let hello = line(&format!("hello {protocol}"));
            theirs.ask(&hello, 1);
            ours.ask(&hello, 1).await;
            for asked in ALIKE.lines().filter(|line| !line.is_empty()) {
                let redis = theirs.ask(&line(asked), 1);
                let kvasir = ours.ask(&line(asked), 1).await;
                assert_eq!(sorted(&redis[0]), sorted(&kvasir[0]), "{asked}, RESP{protocol}");
            }
        });
    }
}

/// Parameters come in any order.
pub(crate) fn sorted(answer: &Answer) -> Answer {
    let pairs = |members: &[Answer]| {
        let mut pairs: Vec<_> = members.chunks(2).map(<[Answer]>::to_vec).collect();
        pairs.sort_by_key(|pair| pair[0].to_string());
        pairs.concat()
    };
    match answer {
        Answer::Array(members) => Answer::Array(pairs(members)),
        Answer::Map(members) => Answer::Map(pairs(members)),
        other => other.clone(),
    }
}

pub(crate) fn members(answer: &Answer) -> &[Answer] {
    match answer {
        Answer::Array(members) | Answer::Map(members) => members,
        other => panic!("no array: {other:?}"),
    }
}

/// What both have kept: the order of ids, the arguments, and the name.
fn kept(log: &Answer) -> Vec<(i64, Answer, Answer)> {
    let number = |answer: &Answer| match answer {
        Answer::Integer(number) => *number,
        other => panic!("no number: {other:?}"),
    };
    let first = members(log).last().map_or(0, |entry| number(&members(entry)[0]));
    let entries = members(log).iter().map(|entry| {
        let [id, at, took, args, _, name] = members(entry) else { panic!("{entry:?}") };
        assert!(number(at) > 0 && number(took) >= 0);
        (number(id) - first, args.clone(), name.clone())
    });
    entries.collect()
}

#[test]
fn the_slow_log_keeps_what_that_of_redis_keeps() {
    let Some(server) = Redis::start("slowlog") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        let many = format!("mget {}", ["k"; 40].join(" "));
        let lines = [
            "config set slowlog-log-slower-than 0",
            "slowlog reset",
            "client setname me",
            "set k v",
            "get k",
            "get nosuch",
            "nosuch x",
            "get too many",
            "hello 2 auth nosuch password",
            "hello 2 setname me",
            "auth password",
            "auth default password",
            &format!("echo {}", "v".repeat(200)),
            &many,
            "incr k",
            "multi",
            "incr n",
            "slowlog len",
            "discard",
            "slowlog len",
            "multi",
            "incr n",
            "exec",
            "slowlog len",
            "config set slowlog-max-len 20",
        ];
        for asked in lines {
            let (redis, kvasir) = (theirs.ask(&line(asked), 1), ours.ask(&line(asked), 1).await);
            assert!(redis == kvasir || asked.starts_with("hello"), "{asked}: {redis:?} {kvasir:?}");
        }
        for asked in ["slowlog get -1", "slowlog get 3", "slowlog get 0", "slowlog get"] {
            let (redis, kvasir) = (theirs.ask(&line(asked), 1), ours.ask(&line(asked), 1).await);
            assert_eq!(kept(&redis[0]), kept(&kvasir[0]), "{asked}");
        }
        let all = ours.ask(&line("slowlog get -1"), 1).await[0].to_string();
        assert!(all.contains("(redacted)") && !all.contains("password"), "{all}");
    });
}

/// Names and calls of a histogram.
fn histogram(answer: &Answer) -> BTreeMap<String, String> {
    let pairs = members(answer).chunks(2);
    let calls = pairs.map(|pair| (pair[0].to_string(), members(&pair[1])[1].to_string()));
    calls.collect()
}

/// The figures of lines that begin with `prefix`, without times.
pub(crate) fn figures(info: &Answer, prefix: &str) -> Vec<String> {
    let text = info.to_string().replace("\\r\\n", "\n");
    let lines = text.lines().filter(|line| line.starts_with(prefix));
    let parts = |line: &str| {
        let parts = line.split(',').filter(|part| !part.starts_with("usec"));
        parts.collect::<Vec<_>>().join(",")
    };
    let mut figures: Vec<_> = lines.map(parts).collect();
    figures.sort_unstable();
    figures
}

#[test]
fn commands_and_errors_are_counted_as_by_redis() {
    let Some(server) = Redis::start("counts") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        let lines = [
            "config resetstat",
            "set a x",
            "get a",
            "get a",
            "incr a",
            "hset h a 1",
            "hget a f",
            "get",
            "config get timeout",
            "config get",
            "config nosuch",
            "nosuch",
            "select 99",
            "multi",
            "incr n",
            "set n x",
            "incr n",
            "exec",
            "multi",
            "nosuch",
            "exec",
            "client list x",
        ];
        // The same once more, all at a time, and values that are asked for twice.
        let together: Vec<u8> = lines[1..].iter().flat_map(|asked| line(asked)).collect();
        for asked in lines {
            theirs.ask(&line(asked), 1);
            ours.ask(&line(asked), 1).await;
        }
        let count = lines.len() - 1;
        theirs.ask(&together, count);
        ours.ask(&together, count).await;
        let gets = line("get a").repeat(20);
        theirs.ask(&gets, 20);
        ours.ask(&gets, 20).await;
        for asked in ["", " get", " config get nosuch", " config|get", " SET", " nosuch"] {
            let asked = line(&format!("latency histogram{asked}"));
            let (redis, kvasir) = (theirs.ask(&asked, 1), ours.ask(&asked, 1).await);
            assert_eq!(histogram(&redis[0]), histogram(&kvasir[0]), "{}", asked.escape_ascii());
        }
        let redis = theirs.ask(&line("info all"), 1);
        let kvasir = ours.ask(&line("info all"), 1).await;
        for prefix in ["cmdstat_", "errorstat_", "total_error_replies", "maxclients", "maxmemory:"]
        {
            let (theirs, ours) = (figures(&redis[0], prefix), figures(&kvasir[0], prefix));
            assert!(!ours.is_empty(), "{prefix}");
            assert_eq!(theirs, ours, "{prefix}");
        }
        let reset = [line("config resetstat"), line("info commandstats")].concat();
        let (redis, kvasir) = (theirs.ask(&reset, 2), ours.ask(&reset, 2).await);
        assert_eq!(figures(&redis[1], "cmdstat"), figures(&kvasir[1], "cmdstat"));
    });
}

fn number_of(answer: &Answer) -> String {
    answer.to_string().trim_start_matches(':').to_owned()
}

/// A web page can make a browser send requests whose bodies are commands.
#[test]
fn a_browser_is_cut_off_before_the_body_of_its_request_executes() {
    let Some(server) = Redis::start("browser") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let requests = [
            "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nFLUSHALL\r\nSET k owned\r\n",
            "GET /x\r\nHost: localhost\r\n\r\nSET k owned\r\n",
            "hOsT: localhost\r\nSET k owned\r\n",
        ];
        for request in requests {
            let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
            let mut watch = (server.connect(), ours::Client::connect(&door, 2));
            watch.0.ask(&line("set k v"), 1);
            watch.1.ask(&line("set k v"), 1).await;
            theirs.say(request.as_bytes());
            ours.say(request.as_bytes());
            pass(100).await;
            assert!(theirs.is_closed() && ours.is_over(), "{request:?}");
            let kept = Answer::Bulk(b"v".to_vec());
            let (redis, kvasir) =
                (watch.0.ask(&line("get k"), 1), watch.1.ask(&line("get k"), 1).await);
            assert_eq!((&redis[0], &kvasir[0]), (&kept, &kept));
        }
    });
}

/// The list of clients has the last command, the database and the state of a transaction at once.
#[test]
fn what_a_client_does_is_seen_by_others_as_by_redis() {
    let Some(server) = Redis::start("queued") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let (mut theirs, mut ours) = (server.connect(), ours::Client::connect(&door, 1));
        let mut watch = (server.connect(), ours::Client::connect(&door, 2));
        let seen = |list: &Answer, asked: &str| {
            let (Answer::Bulk(text) | Answer::Verbatim(text)) = list else { panic!("{list}") };
            let text = String::from_utf8_lossy(text);
            let line = text.lines().find(|line| line.contains(" name=me "));
            let line = line.unwrap_or_else(|| panic!("{text}"));
            let field = |name| line.split(' ').find_map(|part| part.strip_prefix(name));
            let flags = field("flags=").expect("it has some");
            // Redis also tells a command that it has refused.
            let command = field("cmd=").filter(|_| asked != "exec x");
            let fields = [field("multi="), field("db="), command];
            (fields.map(|field| field.map(str::to_owned)), flags.contains('x'))
        };
        let transaction = ["client setname me", "multi", "set a 1", "incr a", "exec", "multi"];
        let others = ["discard", "get a", "set a 1", "multi", "exec x", "select 1", "get a"];
        for asked in transaction.into_iter().chain(others) {
            theirs.ask(&line(asked), 1);
            ours.ask(&line(asked), 1).await;
            let redis = watch.0.ask(&line("client list"), 1).remove(0);
            let kvasir = watch.1.ask(&line("client list"), 1).await.remove(0);
            assert_eq!(seen(&redis, asked), seen(&kvasir, asked), "{asked}");
        }
    });
}

#[test]
fn clients_are_ended_by_others_and_by_themselves() {
    let Some(server) = Redis::start("kill") else { return };
    Reactor::new(None).run(async {
        let door = door(1).await;
        let mut theirs: Vec<redis::Client> = (0..4).map(|_| server.connect()).collect();
        let mut ours: Vec<_> = (0..4).map(|at| ours::Client::connect(&door, at)).collect();
        // Each client has executed a command, so that the server tells it.
        for at in 0..4 {
            theirs[at].ask(&line("get a"), 1);
            ours[at].ask(&line("get a"), 1).await;
        }
        let kills = [
            "client kill id ID",
            "client kill id ID skipme no user default",
            "client kill type normal",
        ];
        for (at, kill) in kills.into_iter().enumerate() {
            let id = [
                number_of(&theirs[at + 1].ask(&line("client id"), 1)[0]),
                number_of(&ours[at + 1].ask(&line("client id"), 1).await[0]),
            ];
            let ask = |id: &str| line(&kill.replace("ID", id));
            let both = (theirs[0].ask(&ask(&id[0]), 1), ours[0].ask(&ask(&id[1]), 1).await);
            assert_eq!(both.0, both.1, "{kill}");
            pass(10).await;
            assert!(theirs[at + 1].is_over() && ours[at + 1].is_over(), "{kill}");
        }
        // One's own connection ends behind the answer.
        let kill = line("client kill type normal skipme no");
        assert_eq!(theirs[0].ask(&kill, 1), ours[0].ask(&kill, 1).await);
        pass(10).await;
        assert!(theirs[0].is_over() && ours[0].is_over());
    });
}

#[test]
fn what_took_long_is_told_with_its_time() {
    Reactor::new(None).run(async {
        let door = door(1).await;
        let mut client = ours::Client::connect(&door, 1);
        client.ask(&line("config set latency-monitor-threshold 15"), 1).await;
        let asked = ["debug sleep 0.012", "get a", "debug sleep 0.02", "debug sleep 0.017"];
        for asked in asked {
            client.ask(&line(asked), 1).await;
        }
        let log = client.ask(&line("slowlog get"), 1).await.remove(0);
        let times: Vec<_> = members(&log).iter().map(|one| members(one)[2].to_string()).collect();
        assert_eq!(times, [":17000", ":20000", ":12000"]);
        let at = members(&members(&log)[0])[1].to_string();
        let latest = client.ask(&line("latency latest"), 1).await.remove(0);
        assert_eq!(latest.to_string(), format!("[[\"command\" {at} :20 :20]]"));
        // Both were in one second, of which the longest is kept.
        let history = client.ask(&line("latency history command"), 1).await.remove(0);
        assert_eq!(history.to_string(), format!("[[{at} :20]]"));
        let histogram = client.ask(&line("latency histogram debug"), 1).await.remove(0);
        let told = "[\"debug\" [\"calls\" :3 \"histogram_usec\" [:16908 :1 :33816 :3]]]";
        assert_eq!(histogram.to_string(), told);
        assert_eq!(client.ask(&line("latency reset"), 1).await, [Answer::Integer(1)]);
    });
}

/// The time of a command includes that of the disk. That of a transaction is in the time of EXEC,
/// which is not in the slow log.
#[test]
fn the_time_of_a_command_is_also_that_of_the_disk() {
    Reactor::new(None).run(async {
        let door = slow_door(3).await;
        let mut client = ours::Client::connect(&door, 1);
        client.ask(&line("config set slowlog-log-slower-than 1"), 1).await;
        for (asked, slow) in [
            (vec!["set a x"], Some("set")),
            (vec!["incr n"], Some("incr")),
            (vec!["multi", "incr n", "get a", "exec"], None),
        ] {
            let bytes = asked.iter().flat_map(|asked| line(asked)).collect::<Vec<_>>();
            client.ask(&[line("slowlog reset"), bytes].concat(), asked.len() + 1).await;
            let log = client.ask(&line("slowlog get"), 1).await.remove(0);
            let args: Vec<_> = members(&log).iter().map(|one| &members(one)[3]).collect();
            let names: Vec<_> = args.iter().map(|args| members(args)[0].to_string()).collect();
            let slow: Vec<_> = slow.iter().map(|name| format!("\"{name}\"")).collect();
            assert_eq!(names, slow, "{log}");
        }
        let told = client.ask(&line("latency histogram exec incr"), 1).await.remove(0).to_string();
        let least = |name: &str| {
            let of = told.split(&format!("\"{name}\" [\"calls\" ")).nth(1).expect(name);
            let least = of.split("[:").nth(1).and_then(|rest| rest.split(' ').next());
            least.expect("a bucket").parse::<u64>().expect("microseconds")
        };
        assert!(least("exec") > least("incr"), "{told}");
    });
}

/// Writes of one key that a client pipelines execute as one step. Each command gets its share of
/// the time, so all of them together take no longer than the client waited.
#[test]
fn pipelined_writes_share_the_time_of_their_step() {
    Reactor::new(None).run(async {
        let door = slow_door(3).await;
        let mut client = ours::Client::connect(&door, 1);
        client.ask(&line("config set slowlog-log-slower-than 0"), 1).await;
        client.ask(&line("slowlog reset"), 1).await;
        let began = clock::host_now();
        client.ask(&line("append a x").repeat(16), 16).await;
        let waited = (clock::host_now() - began).0 / 1_000;
        let log = client.ask(&line("slowlog get -1"), 1).await.remove(0);
        let appends = members(&log)
            .iter()
            .map(members)
            .filter(|one| members(&one[3])[0].to_string() == "\"append\"");
        let times: Vec<u64> = appends.map(|one| one[2].to_string()[1..].parse().unwrap()).collect();
        assert_eq!(times.len(), 16);
        let total: u64 = times.iter().sum();
        assert!((1..=waited).contains(&total), "{times:?} of {waited} microseconds");
    });
}
