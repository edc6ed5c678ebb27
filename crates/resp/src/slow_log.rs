use base::Nanos;
use std::collections::VecDeque;

/// Arguments of a command that are kept; one of them says how many others there were.
const ARGS_MAX: usize = 32;
/// Bytes of an argument that are kept.
const ARG_BYTES_MAX: usize = 128;

/// Replaces a secret argument.
const REDACTED: &[u8] = b"(redacted)";

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlowCommand {
    /// Which of all it is.
    pub(crate) id: u64,
    /// Seconds since 1970.
    pub(crate) at: u64,
    pub(crate) took: Nanos,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) address: String,
    pub(crate) name: String,
}

/// The last commands that took long, the latest first.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    commands: VecDeque<SlowCommand>,
    next: u64,
}

impl SlowLog {
    /// Adds one, whose number it gives, and keeps so many.
    pub(crate) fn add(&mut self, command: SlowCommand, max: usize) {
        let id = self.next;
        self.next += 1;
        self.commands.push_front(SlowCommand { id, ..command });
        self.commands.truncate(max);
    }

    /// Keeps the latest `max`.
    pub(crate) fn truncate(&mut self, max: usize) {
        self.commands.truncate(max);
    }

    /// Forgets all. Numbers go on.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// The latest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &SlowCommand> {
        self.commands.iter()
    }
}

/// What is kept of the arguments of a command, of which there are `count`: as Redis cuts them, and
/// without passwords.
pub(crate) fn kept<'a>(args: impl Iterator<Item = &'a [u8]>, count: usize) -> Vec<Vec<u8>> {
    let whole = if count > ARGS_MAX { ARGS_MAX - 1 } else { count };
    let mut secrets = Secrets::default();
    let mut kept: Vec<Vec<u8>> = args.take(whole).map(|arg| secrets.cut(arg)).collect();
    if count > whole {
        kept.push(format!("... ({} more arguments)", count - whole).into_bytes());
    }
    kept
}

fn cut(arg: &[u8]) -> Vec<u8> {
    let Some((head, rest)) = arg.split_at_checked(ARG_BYTES_MAX) else { return arg.to_vec() };
    if rest.is_empty() {
        return arg.to_vec();
    }
    [head, format!("... ({} more bytes)", rest.len()).as_bytes()].concat()
}

/// Knows which arguments of a command are secret, from those before them.
#[derive(Debug, Default)]
struct Secrets {
    at: usize,
    is_auth: bool,
    is_hello: bool,
    /// How many of the next arguments are secret.
    left: usize,
}

impl Secrets {
    fn cut(&mut self, arg: &[u8]) -> Vec<u8> {
        let is = |word: &[u8]| arg.eq_ignore_ascii_case(word);
        if self.at == 0 {
            (self.is_auth, self.is_hello) = (is(b"auth"), is(b"hello"));
        }
        let is_secret = self.at > 0 && (self.is_auth || self.left > 0);
        self.left = self.left.saturating_sub(1);
        // A name may be this word as well: what follows it is not shown then.
        if self.is_hello && is(b"auth") {
            self.left = 2;
        }
        self.at += 1;
        if is_secret { REDACTED.to_vec() } else { cut(arg) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
        let count = words.len();
        let kept = kept(words.into_iter(), count);
        kept.iter().map(|arg| String::from_utf8_lossy(arg)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn passwords_are_not_kept() {
        assert_eq!(of("AUTH me secret"), "AUTH (redacted) (redacted)");
        assert_eq!(of("auth secret"), "auth (redacted)");
        assert_eq!(of("hello 3"), "hello 3");
        let told = "HELLO 3 setname me Auth (redacted) (redacted)";
        assert_eq!(of("HELLO 3 setname me Auth bob secret"), told);
        let told = "hello 3 setname auth (redacted) (redacted) (redacted)";
        assert_eq!(of("hello 3 setname auth auth bob secret"), told);
        assert_eq!(of("set auth secret"), "set auth secret");
    }

    #[test]
    fn what_is_long_is_cut_as_redis_cuts_it() {
        let value = "v".repeat(200);
        let told = format!("set a {}... (72 more bytes)", "v".repeat(128));
        assert_eq!(of(&format!("set a {value}")), told);
        assert_eq!(of(&"v".repeat(128)), "v".repeat(128));
        let many = |count: usize| vec!["a"; count].join(" ");
        assert_eq!(of(&many(32)), many(32));
        assert_eq!(of(&many(40)), format!("{} ... (9 more arguments)", many(31)));
    }

    #[test]
    fn the_latest_are_kept() {
        let mut log = SlowLog::default();
        let command = SlowCommand {
            id: 0,
            at: 7,
            took: Nanos(5_000),
            args: Vec::new(),
            address: String::new(),
            name: String::new(),
        };
        for _ in 0..5 {
            log.add(command.clone(), 3);
        }
        assert_eq!(log.iter().map(|slow| slow.id).collect::<Vec<_>>(), [4, 3, 2]);
        log.truncate(1);
        assert_eq!(log.len(), 1);
        log.clear();
        log.add(command, 0);
        assert_eq!((log.len(), log.next), (0, 6), "numbers go on");
    }
}
