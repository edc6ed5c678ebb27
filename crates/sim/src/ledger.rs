use crate::history::{Call, History, Moment, Open, Operation, Outcome, Version};
use crate::linearizable::check;
use crate::power::Loss;
use crate::trace;
use crate::violation::Violation;
use base::checksum::hash64;
use base::{Nanos, mix};
use std::borrow::Cow;
use std::fmt::Write;

/// What a host has asked for and was told, of each of the things that it can name: keys, blocks,
/// groups of keys. It lives longer than the devices that it was told by.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// What its subjects are, for a trace.
    name: &'static str,
    /// Whether a change that is not answered yet may be read, and be lost with the power all the
    /// same.
    pub(crate) is_read_early: bool,
    subjects: Vec<Subject>,
    /// Time on the clocks of the devices before.
    before: Nanos,
    /// Answers so far.
    pub(crate) operations: u64,
}

/// A thing with a name, and what its host has seen of it.
#[derive(Debug, Default)]
struct Subject {
    history: History,
    /// The content of each version.
    versions: Vec<Content>,
    /// Before it, all changes are durable.
    flushed: Option<Moment>,
    /// What could not be written before was found then, or never will be.
    opened: Option<Moment>,
    /// When power was lost.
    cuts: Vec<Moment>,
    /// When faults may have brought back something older.
    reverts: Vec<Moment>,
    /// It will be `flushed` when the flush that is under way ends.
    flushing: Option<Moment>,
}

/// What tells values apart: a length and a tag.
pub(crate) type Content = (u32, u64);

/// What faults of the flash excuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Excuses {
    /// Subjects whose value may be lost, or be an older one, at most.
    pub(crate) hit: usize,
    /// The disk has failed to read, write or flush.
    pub(crate) disk_failed: bool,
    /// Blocks have gone bad: not even a delete may find room, and a program no other block.
    pub(crate) is_worn: bool,
}

impl Ledger {
    pub(crate) fn new(name: &'static str, subjects: usize) -> Self {
        let subjects = (0..subjects).map(|_| Subject::default()).collect();
        Self { name, is_read_early: false, subjects, before: Nanos::ZERO, operations: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Returns the number of a content, and assigns one to new content.
    pub(crate) fn version(&mut self, subject: usize, content: Content) -> Version {
        let versions = &mut self.subjects[subject].versions;
        let known = versions.iter().rposition(|version| *version == content);
        let number = known.unwrap_or_else(|| {
            versions.push(content);
            versions.len() - 1
        });
        Version(u32::try_from(number).expect("a key is stored less than 2^32 times"))
    }

    /// Notes that `call` is made now.
    pub(crate) fn invoke(&mut self, subject: usize, call: Call) -> Open {
        let at = self.now();
        trace::event(format_args!("{}: {subject}: {call}", self.name));
        self.subjects[subject].history.invoke(call, at)
    }

    /// Notes that it is answered now.
    pub(crate) fn respond(&mut self, subject: usize, open: Open, outcome: Outcome) {
        let at = self.now();
        trace::event(format_args!("{}: {subject}: {outcome}", self.name));
        self.subjects[subject].history.respond(open, outcome, at);
        self.operations += 1;
    }

    /// Notes that a delete is answered now by someone who does not say whether there was anything.
    pub(crate) fn respond_either(&mut self, subject: usize, open: Open) {
        let at = self.now();
        self.subjects[subject].history.respond_either(open, at);
        self.operations += 1;
    }

    /// What `subject` was before its last change, or earlier, may be back from now on.
    pub(crate) fn may_revert(&mut self, subject: usize) {
        let at = if clock::is_installed() { self.now() } else { self.before };
        self.subjects[subject].history.forget(Moment::FIRST, at);
    }

    /// Faults may have brought back something older, of some subjects.
    pub(crate) fn faults_may_revert(&mut self) {
        let at = self.now();
        for subject in &mut self.subjects {
            let now = subject.history.now(at);
            subject.reverts.push(now);
        }
    }

    /// Notes that a flush of all is asked for now.
    pub(crate) fn start_flush(&mut self) {
        let at = self.now();
        for subject in &mut self.subjects {
            subject.flushing = Some(subject.history.now(at));
        }
    }

    /// Notes that the flush is answered.
    pub(crate) fn end_flush(&mut self) {
        for subject in &mut self.subjects {
            subject.flushed = subject.flushing.take();
        }
    }

    /// Notes that the device is open: what it holds outlives a loss of power.
    pub(crate) fn opened(&mut self) {
        let at = self.now();
        for subject in &mut self.subjects {
            let now = subject.history.now(at);
            (subject.opened, subject.flushed) = (Some(now), Some(now));
        }
    }

    /// Gives up what is not answered: the device has lost its power.
    pub(crate) fn cut_off(&mut self, loss: Loss) {
        self.before += loss.at;
        for Subject { history, flushed, flushing, opened, cuts, .. } in &mut self.subjects {
            history.cut_off(self.before);
            let since = flushed.unwrap_or(Moment::FIRST);
            if loss.forgets {
                history.forget(since, self.before);
            } else if self.is_read_early {
                let now = history.now(self.before);
                history.forget(now, self.before);
            }
            *flushing = None;
            let durable = if loss.forgets { since } else { Moment::NEVER };
            history.resurface(opened.unwrap_or(Moment::FIRST), durable, self.before);
            let now = history.now(self.before);
            if loss.is_lasting {
                *flushed = Some(now);
            }
            cuts.push(now);
        }
    }

    /// Gives up what is not answered: by now it was done, or it never will be.
    pub(crate) fn give_up(&mut self) {
        let at = self.now();
        for subject in &mut self.subjects {
            subject.history.cut_off(at);
        }
    }

    /// Changes by hosts that were never answered.
    pub(crate) fn unanswered(&self) -> u64 {
        let operations = self.subjects.iter().flat_map(|subject| subject.history.operations());
        let by_hosts = operations.filter(|op| matches!(op.call, Call::Store(..) | Call::Delete));
        by_hosts.filter(|op| op.outcome.is_none()).count() as u64
    }

    /// One number for all that was asked and told, and when.
    pub(crate) fn digest(&self) -> u64 {
        let operations = self.subjects.iter().flat_map(|subject| subject.history.operations());
        operations
            .fold(0, |digest, operation| mix(digest ^ hash64(operation.to_string().as_bytes())))
    }

    /// What the last answer that tells says of `subject`: whether it is there, or lost.
    pub(crate) fn last_seen(&self, subject: usize) -> Seen {
        let answers = self.subjects[subject].history.operations().iter().rev();
        let mut telling =
            answers.filter_map(|operation| match (operation.call, operation.outcome) {
                (Call::Retrieve, Some(Outcome::Value(_))) => Some(Seen::There),
                (Call::Retrieve, Some(Outcome::NotFound)) => Some(Seen::Absent),
                (_, Some(Outcome::Lost)) => Some(Seen::Lost),
                _ => None,
            });
        telling.next().unwrap_or(Seen::Absent)
    }

    pub(crate) fn operations_of(&self, subject: usize) -> &[Operation] {
        self.subjects[subject].history.operations()
    }

    /// Holds every history to what an order of its operations explains.
    ///
    /// # Panics
    /// When there is none, or when more was lost than `excuses` say.
    pub(crate) fn check(&self, name: impl Fn(usize) -> String, excuses: Excuses) {
        let mut hit = Vec::new();
        for (number, subject) in self.subjects.iter().enumerate() {
            let mut history = Cow::Borrowed(&subject.history);
            if excuses.disk_failed {
                if history.lost_answers() > 0 {
                    hit.push(name(number));
                }
                history = Cow::Owned(history.on_failing_disk());
            }
            if excuses.is_worn {
                history = Cow::Owned(history.on_bad_blocks());
            }
            let Err(mut violation) = check(&history) else { continue };
            if excuses.hit > 0 {
                let with_faults = history.with_faults(&subject.cuts, &subject.reverts);
                let Err(unexcused) = check(&with_faults) else {
                    hit.push(name(number));
                    continue;
                };
                violation = unexcused;
            }
            panic!("{}: {}", name(number), with_contents(&violation, subject));
        }
        hit.dedup();
        assert!(
            hit.len() <= excuses.hit,
            "{} are hit, but the faults reach no more than {}: {hit:?}",
            hit.len(),
            excuses.hit
        );
    }

    fn now(&self) -> Nanos {
        self.before + clock::now()
    }
}

/// What is known of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    There,
    Absent,
    Lost,
}

/// The violation, and what its versions are.
fn with_contents(violation: &Violation, subject: &Subject) -> String {
    let mut text = violation.to_string();
    for (number, (len, tag)) in subject.versions.iter().enumerate() {
        let version = Version(u32::try_from(number).expect("there are fewer"));
        let shows = |operation: &Operation| {
            matches!(operation.call, Call::Store(stored, _) if stored == version)
                || operation.outcome == Some(Outcome::Value(version))
        };
        if violation.operations().iter().any(shows) {
            write!(text, "\n    {version}: {len} bytes, tag {tag:#x}")
                .expect("a string takes all text");
        }
    }
    text
}
