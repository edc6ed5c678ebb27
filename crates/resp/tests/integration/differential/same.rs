use crate::differential::answer::Answer;
use crate::differential::generate::{Generator, Words, encoded};
use crate::differential::redis::Redis;
use crate::differential::{ours, redis};
use base::{Rng, mix};
use clock::{UnixMillis, set_unix_now};
use reactor::Reactor;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SEEDS: u64 = 60;
const STEPS: u64 = 150;

/// What both are asked.
struct Pair {
    redis: Vec<redis::Client>,
    ours: Vec<ours::Client>,
}

impl Pair {
    /// Sends the same to both, on one of the connections.
    async fn ask(&mut self, at: usize, bytes: &[u8], count: usize) -> [Vec<Answer>; 2] {
        let redis = self.redis[at].ask(bytes, count);
        [redis, self.ours[at].ask(bytes, count).await]
    }

    async fn check(&mut self, at: usize, commands: &[Words], what: &str) {
        let bytes: Vec<u8> = commands.iter().flat_map(encoded).collect();
        let [redis, ours] = self.ask(at, &bytes, commands.len()).await;
        for ((command, redis), ours) in commands.iter().zip(redis).zip(ours) {
            let text: Vec<_> = command.iter().map(|word| word.escape_ascii().to_string()).collect();
            let is_same = is_same(command, &redis, &ours);
            assert!(is_same, "{what}: {}\nredis {redis}\nours  {ours}", text.join(" "));
        }
    }
}

/// Whether both answers are as good: equal, but for what is the server's own, or goes by.
fn is_same(command: &Words, redis: &Answer, ours: &Answer) -> bool {
    let name = command[0].to_ascii_lowercase();
    let near = |by: i64| match (redis, ours) {
        (Answer::Integer(a), Answer::Integer(b)) => a == b || (*a > 0 && (a - b).abs() <= by),
        _ => redis == ours,
    };
    match name.as_slice() {
        b"ttl" | b"expiretime" => near(2),
        b"pttl" | b"pexpiretime" => near(2_000),
        b"keys" | b"hkeys" | b"hvals" => sorted(redis) == sorted(ours),
        b"hgetall" | b"hscan" | b"zscan" => paired(redis) == paired(ours),
        b"randomkey" => kind(redis) == kind(ours),
        // What was queued is the same command once more; its answers are looked at as a whole.
        b"exec" => match (redis, ours) {
            (Answer::Array(a), Answer::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_within(a, b))
            }
            _ => redis == ours,
        },
        _ => redis == ours,
    }
}

fn is_same_within(redis: &Answer, ours: &Answer) -> bool {
    match (redis, ours) {
        (Answer::Integer(a), Answer::Integer(b)) => a == b || (*a > 50 && (a - b).abs() <= 2_000),
        (Answer::Array(_), Answer::Array(_)) => sorted(redis) == sorted(ours),
        (Answer::Map(_), Answer::Map(_)) => paired(redis) == paired(ours),
        // Any key is a random one.
        (Answer::Bulk(a), Answer::Bulk(b)) => a == b || (is_key(a) && is_key(b)),
        _ => redis == ours,
    }
}

fn is_key(bytes: &[u8]) -> bool {
    bytes.len() == 2 && b"kfwhz".contains(&bytes[0])
}

fn kind(answer: &Answer) -> std::mem::Discriminant<Answer> {
    std::mem::discriminant(answer)
}

fn sorted(answer: &Answer) -> Answer {
    let Answer::Array(members) = answer else { return answer.clone() };
    let mut members: Vec<_> = members.iter().map(sorted).collect();
    members.sort_by_key(ToString::to_string);
    Answer::Array(members)
}

/// With names and what belongs to them in the order of names, also behind a cursor.
fn paired(answer: &Answer) -> Answer {
    let (Answer::Array(members) | Answer::Map(members)) = answer else { return answer.clone() };
    if let [cursor, behind @ Answer::Array(_)] = &members[..] {
        return Answer::Array(vec![cursor.clone(), paired(behind)]);
    }
    let mut pairs: Vec<_> = members.chunks(2).map(<[Answer]>::to_vec).collect();
    pairs.sort_by_key(|pair| pair[0].to_string());
    let pairs = pairs.into_iter().flatten().collect();
    if matches!(answer, Answer::Map(_)) { Answer::Map(pairs) } else { Answer::Array(pairs) }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(since.as_millis()).expect("it is not that late")
}

fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A command, and ahead of a WATCH what it needs: that its keys exist (see the table).
fn whole(command: Words) -> Vec<Words> {
    let watches = command[0].eq_ignore_ascii_case(b"watch");
    let before = watches.then(|| words("mset w0 a w1 b w2 c"));
    before.into_iter().chain([command]).collect()
}

#[test]
fn random_commands_have_the_answers_of_redis() {
    let Some(server) = Redis::start("same") else { return };
    for seed in 0..SEEDS {
        Reactor::new(Some(seed)).run(async {
            set_unix_now(UnixMillis(now()));
            let door = ours::door(seed).await;
            let mut pair = Pair {
                redis: (0..2).map(|_| server.connect()).collect(),
                ours: (0..2).map(|at| ours::Client::connect(&door, seed * 2 + at)).collect(),
            };
            pair.check(0, &[words("flushall")], "at first").await;
            let mut random = Generator(Rng::new(mix(seed)));
            if seed % 2 == 0 {
                // Which server it is differs.
                pair.ask(1, &encoded(&words("hello 3")), 1).await;
            }
            for step in 0..STEPS {
                let at = usize::from(random.0.below(2) == 0);
                let what = format!("seed {seed}, step {step}, connection {at}");
                if random.0.below(60) == 0 {
                    let brief = [words("discard"), words("set k1 brief px 20"), words("get k1")];
                    pair.check(at, &brief, &what).await;
                    std::thread::sleep(Duration::from_millis(30));
                    ours::pass(30).await;
                    // Nothing is left of it that one would count and the other would not. In one
                    // pipeline the store would see neither of the last two.
                    for over in ["get k1", "setnx k1 again", "del k1"] {
                        pair.check(at, &[words(over)], &what).await;
                    }
                }
                let count = 1 + random.0.below(1 + random.0.clone().below(12));
                let commands: Vec<_> = (0..count).flat_map(|_| whole(random.command())).collect();
                pair.check(at, &commands, &what).await;
            }
            let all: Vec<_> = (0..6).map(|key| words(&format!("get k{key}"))).collect();
            for at in 0..2 {
                pair.check(at, &[words("discard"), words("select 0")], "at last").await;
                pair.check(at, &all, "at last").await;
            }
        });
    }
}

#[test]
fn a_scan_meets_all_that_redis_has() {
    let Some(server) = Redis::start("scan") else { return };
    Reactor::new(None).run(async {
        let door = ours::door(1).await;
        let mut pair =
            Pair { redis: vec![server.connect()], ours: vec![ours::Client::connect(&door, 1)] };
        let fill: Vec<_> = (0..500).map(|key| words(&format!("set key:{key} {key}"))).collect();
        pair.check(0, &fill, "filling").await;
        let others =
            |at: u32| [words(&format!("hset h:{at} f 1")), words(&format!("zadd z:{at} 1 m"))];
        pair.check(0, &(0..40).flat_map(others).collect::<Vec<_>>(), "filling").await;
        for options in [
            "",
            " count 1",
            " count 1000",
            " match *7*",
            " type string",
            " type hash",
            " type ZSET count 30",
            " type list",
        ] {
            let mut met = [Vec::new(), Vec::new()];
            for (which, met) in met.iter_mut().enumerate() {
                let mut cursor = "0".to_owned();
                loop {
                    let bytes = encoded(&words(&format!("scan {cursor}{options}")));
                    let answer = match which {
                        0 => pair.redis[0].ask(&bytes, 1),
                        _ => pair.ours[0].ask(&bytes, 1).await,
                    };
                    let Answer::Array(parts) = &answer[0] else { panic!("{answer:?}") };
                    let [Answer::Bulk(next), Answer::Array(keys)] = &parts[..] else {
                        panic!("{answer:?}")
                    };
                    met.extend(keys.iter().map(ToString::to_string));
                    cursor = String::from_utf8(next.clone()).unwrap();
                    if cursor == "0" {
                        break;
                    }
                }
                met.sort_unstable();
            }
            assert_eq!(met[0], met[1], "scan{options}");
        }
    });
}

/// Which ones is left to chance: how many, in what form, and that they are there, is not.
#[test]
fn members_by_chance_are_as_many_as_those_of_redis() {
    let Some(server) = Redis::start("chance") else { return };
    Reactor::new(None).run(async {
        let door = ours::door(1).await;
        let mut pair =
            Pair { redis: vec![server.connect()], ours: vec![ours::Client::connect(&door, 1)] };
        let fields = |at: u32| words(&format!("hset h f{at} {at:0>200}"));
        let members = |at: u32| words(&format!("zadd z {at} {at:0>200}"));
        let fill: Vec<_> = (0..50).flat_map(|at| [fields(at), members(at)]).collect();
        pair.check(0, &fill, "filling").await;
        let names = [
            ("hrandfield h", "withvalues", "hkeys h"),
            ("zrandmember z", "withscores", "zrange z 0 -1"),
        ];
        for (asks, with, all) in names {
            let Answer::Array(all) = &pair.ask(0, &encoded(&words(all)), 1).await[1][0] else {
                panic!("all of them")
            };
            let mut met = BTreeSet::new();
            for protocol in [2, 3] {
                pair.ask(0, &encoded(&words(&format!("hello {protocol}"))), 1).await;
                for count in [0, 1, 7, 50, 90, -1, -90] {
                    for with in [String::new(), format!(" {with}")] {
                        let line = format!("{asks} {count}{with}");
                        let [redis, ours] = pair.ask(0, &encoded(&words(&line)), 1).await;
                        let [theirs, ours] = [flat(&redis[0]), flat(&ours[0])];
                        assert_eq!(theirs.len(), ours.len(), "{line}, RESP{protocol}");
                        let step = if with.is_empty() { 1 } else { 2 };
                        let names: Vec<_> = ours.iter().step_by(step).collect();
                        assert!(names.iter().all(|name| all.contains(name)), "{line}");
                        let different: BTreeSet<_> =
                            names.iter().map(ToString::to_string).collect();
                        assert!(count < 0 || different.len() == names.len(), "{line}");
                        met.extend(different);
                    }
                }
            }
            assert_eq!(met.len(), 50, "each is met some day");
        }
    });
}

/// The members of an answer, whether they come in pairs or not.
fn flat(answer: &Answer) -> Vec<Answer> {
    match answer {
        Answer::Array(members) => members.iter().flat_map(flat).collect(),
        one => vec![one.clone()],
    }
}

#[test]
fn silence_is_the_same_silence() {
    let Some(server) = Redis::start("silence") else { return };
    Reactor::new(None).run(async {
        let door = ours::door(1).await;
        let mut pair =
            Pair { redis: vec![server.connect()], ours: vec![ours::Client::connect(&door, 1)] };
        let cases: [(&[&str], usize); 4] = [
            (&["client reply skip", "set a 1", "get a"], 1),
            (&["client reply off", "set a 2", "client reply skip", "get a", "client reply on"], 1),
            (&["get a", "client reply skip", "client reply skip", "get a", "get a"], 2),
            (&["client reply off", "nosuch", "client reply on", "get a"], 2),
        ];
        for (lines, count) in cases {
            let bytes: Vec<u8> = lines.iter().flat_map(|line| encoded(&words(line))).collect();
            let [redis, ours] = pair.ask(0, &bytes, count).await;
            assert_eq!(redis, ours, "{lines:?}");
        }
        // Typed lines, and what is no request.
        for line in ["PING\r\n", "set b \"x\\x41 y\"\n", "get b\r\n", "\r\nget 'b'\r\n", "get\r\n"]
        {
            let [redis, ours] = pair.ask(0, line.as_bytes(), 1).await;
            assert_eq!(redis, ours, "{line:?}");
        }
        for wrong in [
            "*x\r\n",
            "*1\r\n!3\r\n",
            "*1\r\n$-2\r\n",
            "*1\r\n$x\r\n",
            "get 'a\r\n",
            "*1\r\n$600000000\r\n",
            "*01\r\n",
        ] {
            let mut redis = server.connect();
            let mut ours = ours::Client::connect(&door, 1);
            let (redis, ours) =
                (redis.ask(wrong.as_bytes(), 1), ours.ask(wrong.as_bytes(), 1).await);
            assert_eq!(redis, ours, "{wrong:?}");
        }
    });
}
