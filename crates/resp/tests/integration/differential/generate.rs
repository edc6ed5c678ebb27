//! Random commands.

use base::Rng;

/// A command: its arguments.
pub(crate) type Words = Vec<Vec<u8>>;

/// What makes commands from a seed.
pub(crate) struct Generator(pub(crate) Rng);

/// Names with what they are followed by: k a key, H one of a hash, Z one of a sorted set, w one
/// that is watched, v a value, n a number, i a small number, t a time to live, T one in
/// milliseconds, d a date, F the key of a decimal, f a decimal, p a pattern, b a database, h a
/// field, m a member, S a score, r the bound of a range of scores, s options of SET, g those of
/// GETEX, e those of EXPIRE, c those of COPY, a those of ZADD, o those of ZRANGE; + repeats the
/// last ones.
const FORMS: &[&str] = &[
    "get k",
    "get k",
    "get k",
    "set k v",
    "set k v",
    "set k v",
    "set k v s",
    "set k v s",
    "setnx k v",
    "setex k t v",
    "psetex k T v",
    "getset k v",
    "getdel k",
    "getex k g",
    "mget k+",
    "mset kv+",
    "msetnx kv+",
    "strlen k",
    "append k v",
    "getrange k i i",
    "substr k i i",
    "setrange k i v",
    "incr k",
    "decr k",
    "incrby k n",
    "decrby k n",
    "incrbyfloat F f",
    "incrbyfloat F f",
    "setnx F abc",
    "del F",
    "get F",
    "hset H hv+",
    "hset H hv+",
    "hset H hv+",
    "hmset H hv+",
    "hsetnx H h v",
    "hget H h",
    "hmget H h+",
    "hgetall H",
    "hkeys H",
    "hvals H",
    "hdel H h+",
    "hdel H h+",
    "hlen H",
    "hexists H h",
    "hstrlen H h",
    "hincrby H h n",
    "hincrby H 9 n",
    "hincrbyfloat H 8 f",
    "hsetnx H 8 abc",
    "hscan H 0 count 1000",
    "hscan H 0 match *1* count 1000",
    "hscan H nosuch",
    "hscan H 0 nosuch",
    "zadd Z a Sm+",
    "zadd Z a Sm+",
    "zadd Z Sm+",
    "zadd Z Sm+",
    "zadd Z Sm+",
    "zincrby Z S m",
    "zrem Z m+",
    "zscore Z m",
    "zmscore Z m+",
    "zcard Z",
    "zrank Z m",
    "zrevrank Z m",
    "zpopmin Z",
    "zpopmax Z i",
    "zscan Z 0 count 1000",
    "zcount Z r r",
    "zrange Z i i",
    "zrange Z i i o",
    "zrange Z r r byscore o",
    "zrange Z r r byscore rev o",
    "zrevrange Z i i o",
    "zrangebyscore Z r r o",
    "zrevrangebyscore Z r r o",
    "zremrangebyscore Z r r",
    "zremrangebyrank Z i i",
    "del k+",
    "unlink k+",
    "exists k+",
    "touch k+",
    "type k",
    "rename k k",
    "renamenx k k",
    "copy k k c",
    "expire k t e",
    "pexpire k T e",
    "expireat k d e",
    "pexpireat k d e",
    "ttl k",
    "pttl k",
    "expiretime k",
    "pexpiretime k",
    "persist k",
    "keys p",
    "randomkey",
    "dbsize",
    "select b",
    "ping",
    "ping v",
    "echo v",
    "multi",
    "multi",
    "exec",
    "exec",
    "exec",
    "discard",
    "watch w+",
    "set w v",
    "append w v",
    "get w",
    "unwatch",
    "client getname",
    "client setname v",
    "client no-evict on",
    "auth v",
    "auth v v",
    "flushdb",
    "flushall async",
    "config set nosuch v",
    "config get nosuch",
    "command info nosuch",
    "hello v",
    "client reply v",
    "client nosuch",
    "config nosuch v",
    "nosuch v v",
    "reset",
    "time v",
    "flushdb v",
    "scan nosuch",
    "scan 0 count i v",
    "client list v",
    "client id v",
    "config get",
    "config set slowlog-max-len n",
    "config set latency-monitor-threshold n",
    "config set client-query-buffer-limit i",
    "config set maxclients nosuch timeout 0",
    "config rewrite",
    "config resetstat",
    "slowlog reset",
    "slowlog get nosuch",
    "slowlog nosuch",
    "latency history v",
    "latency nosuch",
    "client kill nosuch",
    "client kill id 0",
    "client kill id 99999999 skipme v",
    "client kill user nosuch",
    "client kill type nosuch",
    "object freq k",
    "object encoding",
    "object nosuch k",
    "memory usage",
    "wait 0 i",
    "function flush v",
    "function nosuch",
    "command getkeys nosuch k",
];

const VALUES: &[&str] = &[
    "",
    "0",
    "1",
    "-5",
    "12",
    "3.5",
    "-0.25",
    "abc",
    "hello world",
    "9223372036854775807",
    "-9223372036854775808",
    " 1",
    "01",
    "1x",
    "default",
    "a\r\nb",
    "{}\"'\\",
    "nan",
];

impl Generator {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).expect("it is below")
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// The next command; now and then one with something too few or too much.
    pub(crate) fn command(&mut self) -> Words {
        let form = self.pick(FORMS);
        let mut words: Words = Vec::new();
        for (at, part) in form.split(' ').enumerate() {
            let (part, times) = match part.strip_suffix('+') {
                Some(part) => (part, 1 + self.below(4)),
                None => (part, 1),
            };
            let is_literal = at == 0
                || (part.len() > 1 && !["kv", "hv", "Sm"].contains(&part))
                || part.parse::<u8>().is_ok();
            for _ in 0..times {
                if is_literal {
                    words.push(part.as_bytes().to_vec());
                } else {
                    part.chars().for_each(|kind| self.fill(kind, &mut words));
                }
            }
        }
        if self.below(3) == 0 {
            words[0] = words[0].to_ascii_uppercase();
        }
        // With less it is asked for what is each server's own.
        let own = ["hello", "time", "client", "command", "scan", "hscan", "zscan"];
        let tells_of_itself = own.iter().any(|own| words[0].eq_ignore_ascii_case(own.as_bytes()));
        match self.below(40) {
            0 if words.len() > 1 && !tells_of_itself => drop(words.pop()),
            1 => words.push(b"extra".to_vec()),
            _ => {}
        }
        words
    }

    fn fill(&mut self, kind: char, words: &mut Words) {
        let times = ["100", "5000", "100000", "0", "-1", "x", "9223372036854775807", "3000"];
        let millis = ["100000", "5000000", "0", "-1", "x", "9223372036854775807"];
        let dates = ["4000000000", "4000000000000", "1", "-7", "1.5", "5000000000000", "0"];
        let numbers = ["1", "-1", "10", "0", "x", "9223372036854775807", "-9223372036854775808"];
        let small = ["0", "1", "2", "-1", "-3", "5", "100", "-100", "y"];
        let decimals = ["0.5", "-1.25", "3", "1e0", "x", "nan", "inf", "0.1", " 1"];
        let patterns = ["*", "k*", "*1", "k?", "k[0-2]", "[^k]*", "\\k1", "", "k[", "*0*"];
        let scores = [
            "1", "2", "-1.5", "3", "1e3", "0.1", "-7e-8", "1e300", "inf", "x", "0", "1e400",
            "1e-400",
        ];
        let bounds =
            ["1", "(1", "2", "-inf", "+inf", "(inf", "0", "(0.1", "-2", "x", "(1e3", "1e400"];
        let word = match kind {
            'k' => match self.below(12) {
                0 => return self.fill('H', words),
                1 => return self.fill('Z', words),
                _ => format!("k{}", self.below(6)),
            },
            'H' | 'Z' if self.below(20) == 0 => return self.fill('k', words),
            'H' => format!("h{}", self.below(2)),
            'Z' => format!("z{}", self.below(2)),
            'h' => format!("f{}", self.below(30)),
            'm' => format!("m{:0>1$}", self.below(60), 150 * self.below(2)),
            'S' => self.pick(&scores).to_owned(),
            'r' => self.pick(&bounds).to_owned(),
            'a' => return self.some_of(&["nx", "xx", "gt", "lt", "ch", "incr"], words),
            'o' => return self.range_options(words),
            'v' => return words.push(self.value()),
            'w' => format!("w{}", self.below(3)),
            'F' => format!("f{}", self.below(2)),
            't' => self.pick(&times).to_owned(),
            'T' => self.pick(&millis).to_owned(),
            'd' => self.pick(&dates).to_owned(),
            'n' => self.pick(&numbers).to_owned(),
            'i' => self.pick(&small).to_owned(),
            'f' => self.pick(&decimals).to_owned(),
            'p' => self.pick(&patterns).to_owned(),
            'b' => self.pick(&["0", "0", "1", "2", "15", "16", "-1", "x"]).to_owned(),
            's' => return self.options(&["nx", "xx", "get", "keepttl", "persist"], words),
            'g' => return self.options(&["persist", "keepttl"], words),
            'e' => return self.some_of(&["nx", "xx", "gt", "lt", "zz"], words),
            'c' => return self.copy_options(words),
            other => panic!("nothing is said of {other}"),
        };
        words.push(word.into_bytes());
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(12) {
            0 => {
                let mut bytes = vec![0; self.below(60)];
                self.0.fill(&mut bytes);
                bytes
            }
            1 => vec![b'z'; 200 + self.below(9_000)],
            _ => self.pick(VALUES).as_bytes().to_vec(),
        }
    }

    fn some_of(&mut self, all: &[&str], words: &mut Words) {
        for _ in 0..self.below(3) {
            words.push(self.pick(all).as_bytes().to_vec());
        }
    }

    fn options(&mut self, flags: &[&str], words: &mut Words) {
        for _ in 0..self.below(4) {
            match self.below(5) {
                0 => {
                    let (word, kind) = [("ex", 't'), ("PX", 'T'), ("zz", 't')][self.below(3)];
                    words.push(word.as_bytes().to_vec());
                    self.fill(kind, words);
                }
                1 => {
                    // None that is over: it is counted for some time yet by Redis.
                    let (word, date) = [
                        ("exat", "4000000000"),
                        ("pxat", "5000000000000"),
                        ("EXAT", "0"),
                        ("pxat", "x"),
                    ][self.below(4)];
                    words.extend([word.as_bytes().to_vec(), date.as_bytes().to_vec()]);
                }
                _ => words.push(self.pick(flags).as_bytes().to_vec()),
            }
        }
    }

    fn range_options(&mut self, words: &mut Words) {
        for _ in 0..self.below(3) {
            match self.below(3) {
                0 => {
                    words.push(b"limit".to_vec());
                    self.fill('i', words);
                    self.fill('i', words);
                }
                _ => words.push(self.pick(&["withscores", "WITHSCORES", "zz"]).as_bytes().to_vec()),
            }
        }
    }

    fn copy_options(&mut self, words: &mut Words) {
        for _ in 0..self.below(3) {
            match self.below(3) {
                0 => {
                    words.push(b"db".to_vec());
                    self.fill('b', words);
                }
                _ => words.push(self.pick(&["replace", "replace", "zz"]).as_bytes().to_vec()),
            }
        }
    }
}

/// As clients send it.
pub(crate) fn encoded(words: &Words) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
