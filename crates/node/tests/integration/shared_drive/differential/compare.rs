use super::answer::Answer;
use super::generate::Words;
use super::request::{Reply, Request};

/// How many seconds apart both servers may have executed a command. Times to live of random
/// commands are farther apart.
const SECONDS_APART: i64 = 10;

/// Compares both replies to each request of a client.
#[derive(Default)]
pub(crate) struct Comparer {
    /// The commands that its transaction has queued.
    queued: Vec<Words>,
}

impl Comparer {
    /// Returns whether both replies to `request` are the same, except for times and random keys.
    pub(crate) fn is_same(&mut self, request: &Request, one: &Reply, many: &Reply) -> bool {
        let Request::Redis(words) = request else { return one == many };
        let (one, many) = (one.answer(), many.answer());
        let (begins, ends) = (is_named(words, "multi"), is_named(words, "exec"));
        match (one, many) {
            (Answer::Array(one), Answer::Array(many)) if ends => {
                let queued = std::mem::take(&mut self.queued);
                let replies = queued.iter().zip(one.iter().zip(many));
                one.len() == many.len()
                    && queued.len() == one.len()
                    && replies.into_iter().all(|(words, (one, many))| is_same(words, one, many))
            }
            _ => {
                if begins && *one == Answer::Status(b"OK".to_vec()) {
                    self.queued.clear();
                }
                if *one == Answer::Status(b"QUEUED".to_vec()) {
                    self.queued.push(words.clone());
                }
                is_same(words, one, many)
            }
        }
    }
}

/// Returns whether this is the command `name`, which is in lower case.
pub(crate) fn is_named(words: &Words, name: &str) -> bool {
    words[0].eq_ignore_ascii_case(name.as_bytes())
}

fn is_same(words: &Words, one: &Answer, many: &Answer) -> bool {
    match words[0].to_ascii_lowercase().as_slice() {
        b"ttl" | b"expiretime" => is_near(one, many, SECONDS_APART),
        b"pttl" | b"pexpiretime" => is_near(one, many, 1_000 * SECONDS_APART),
        // KEYS has no order.
        b"keys" => sorted(one) == sorted(many),
        // Each server draws a key.
        b"randomkey" => std::mem::discriminant(one) == std::mem::discriminant(many),
        _ => one == many,
    }
}

fn sorted(answer: &Answer) -> Answer {
    let Answer::Array(members) = answer else { return answer.clone() };
    let mut members = members.clone();
    members.sort_by_key(ToString::to_string);
    Answer::Array(members)
}

fn is_near(one: &Answer, many: &Answer, apart: i64) -> bool {
    match (one, many) {
        // 0 and below say that the key does not expire, or does not exist.
        (Answer::Integer(one @ 1..), Answer::Integer(many @ 1..)) => (one - many).abs() <= apart,
        _ => one == many,
    }
}
