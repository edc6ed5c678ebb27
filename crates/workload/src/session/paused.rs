use super::Session;
use super::compound::Compounds;
use crate::generated::{Generated, Leaves, SavedGenerated};
use crate::history::History;
use crate::judge::Judge;
use crate::outcome::Outcome;
use crate::plan::{Load, Operation, Plan, Until};
use crate::script::Script;
use base::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A paused run without outstanding commands. It continues on another queue, in this process or a
/// later one.
#[derive(Debug)]
pub struct Paused {
    pub(crate) session: Session,
    pub(crate) load: Load,
    /// The digest of the run before the pause.
    digest: u64,
}

/// The known content of a plan's keys or blocks after a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Contents {
    population: Vec<(String, String)>,
    versions: Versions,
}

/// The versions that keys may have.
#[derive(Debug, Serialize, Deserialize)]
enum Versions {
    First,
    Counted(History),
    /// Unknown, as is whether all keys exist.
    Unknown,
}

/// The result of a completed run.
#[derive(Debug)]
pub struct Finished {
    /// The measurements.
    pub outcome: Outcome,
    /// The content that it left.
    pub contents: Contents,
}

/// A plan differs from that of the saved state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// The option that differs, as on the command line.
    pub what: String,
    /// The saved value.
    pub saved: String,
    /// The present value.
    pub wanted: String,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has {} {}, not {}", self.what, self.saved, self.wanted)
    }
}

impl std::error::Error for Differs {}

/// The saved state of [`Paused`].
#[derive(Serialize, Deserialize)]
struct Saved {
    plan: Vec<(String, String)>,
    script: SavedGenerated,
    history: Option<History>,
    started: Nanos,
    submitted: u64,
    last_due: Nanos,
    simultaneous: u64,
    is_stopped: bool,
    outcome: Outcome,
    digest: u64,
}

impl Paused {
    pub(crate) fn new(mut session: Session, load: Load) -> Self {
        assert!(session.outstanding == 0, "a run pauses when nothing is outstanding");
        let digest = session.outcome.pause_digest();
        Self { session, load, digest }
    }

    /// Returns the number of operations that have ended.
    pub fn completed(&self) -> u64 {
        self.session.completed()
    }

    /// Saves the state needed to continue `plan`, of which this is a run.
    pub fn save(&self, plan: &Plan) -> Vec<u8> {
        let session = &self.session;
        let Script::Generated(script) = &session.script else {
            unreachable!("only what is generated pauses")
        };
        let saved = Saved {
            plan: whole(plan),
            script: script.save(),
            history: session.judge.history().cloned(),
            started: session.started,
            submitted: session.submitted,
            last_due: session.last_due,
            simultaneous: session.simultaneous,
            is_stopped: session.is_stopped,
            outcome: session.outcome.clone(),
            digest: self.digest,
        };
        postcard::to_stdvec(&saved).expect("all of it can be written down")
    }

    /// Restores a run of `plan`. `None` when `saved` is no such state.
    pub fn restore(plan: &Plan, saved: &[u8]) -> Option<Result<Self, Differs>> {
        let saved: Saved = postcard::from_bytes(saved).ok()?;
        if let Some(differs) = first_difference(&saved.plan, &whole(plan)) {
            return Some(Err(differs));
        }
        let mut session = Session::new(plan, saved.started);
        let script = Generated::restored(plan, saved.script);
        session.script = Script::Generated(Box::new(script));
        session.judge = Judge::new(plan.seed, plan.payload, None).with_history(saved.history);
        (session.submitted, session.last_due) = (saved.submitted, saved.last_due);
        (session.simultaneous, session.is_stopped) = (saved.simultaneous, saved.is_stopped);
        session.outcome = saved.outcome;
        Some(Ok(Self { session, load: plan.load, digest: saved.digest }))
    }

    /// Returns the session, for another queue.
    pub(crate) fn resume(self) -> Session {
        let Self { mut session, digest, .. } = self;
        session.pauses_after = None;
        session.first_id = None;
        session.compounds = Compounds::default();
        session.outcome.resume_digest(digest);
        session
    }
}

impl Session {
    /// As `new`, on keys with the given `contents`.
    pub(crate) fn on(plan: &Plan, contents: Option<Contents>, now: Nanos) -> Self {
        let session = Self::new(plan, now);
        let history = contents.and_then(|contents| match contents.versions {
            Versions::Counted(history) => Some(history),
            Versions::First | Versions::Unknown => None,
        });
        Self { judge: session.judge.with_history(history), ..session }
    }

    /// Returns the session with a pause after `operations` submitted ones.
    pub(crate) const fn pausing_after(mut self, operations: u64) -> Self {
        self.pauses_after = Some(operations);
        self
    }

    pub(crate) fn into_finished(self, plan: &Plan) -> Finished {
        let contents = self.contents(plan);
        Finished { outcome: self.into_outcome(), contents }
    }

    fn contents(&self, plan: &Plan) -> Contents {
        let Script::Generated(script) = &self.script else {
            unreachable!("only what is generated leaves something known")
        };
        let versions = match (script.leaves(self.submitted), self.judge.history()) {
            (Leaves::Same | Leaves::Counted, Some(history)) => Versions::Counted(history.clone()),
            (Leaves::Same, None) => Versions::First,
            (Leaves::First, None) if self.outcome.errors() == 0 => Versions::First,
            _ => Versions::Unknown,
        };
        Contents { population: population(plan), versions }
    }
}

impl Contents {
    /// Restores a state of [`Self::save`].
    pub fn restore(saved: &[u8]) -> Option<Self> {
        postcard::from_bytes(saved).ok()
    }

    /// Saves the state.
    pub fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("all of it can be written down")
    }

    /// Returns the number of keys or blocks.
    pub fn keys(&self) -> Option<u64> {
        let count = self.population.iter().find(|(name, _)| name == "--keys" || name == "blocks");
        count?.1.parse().ok()
    }

    /// Fails when the keys of `plan` or their contents differ.
    pub fn check(&self, plan: &Plan) -> Result<(), Differs> {
        match first_difference(&self.population, &population(plan)) {
            Some(differs) => Err(differs),
            None => Ok(()),
        }
    }

    /// True when a run of `plan` on these keys can be judged: it only writes, or their versions are
    /// known. For a plan that adds keys, no key may have been overwritten.
    pub const fn suffice(&self, plan: &Plan) -> bool {
        let only_writes =
            matches!(plan.operation, Operation::Store | Operation::Write | Operation::RandWrite);
        match self.versions {
            Versions::First => true,
            Versions::Counted(_) => !plan.operation.adds_keys(),
            Versions::Unknown => only_writes,
        }
    }
}

fn first_difference(saved: &[(String, String)], wanted: &[(String, String)]) -> Option<Differs> {
    let mut pairs = saved.iter().zip(wanted);
    let ((what, saved), (_, wanted)) = pairs.find(|(saved, wanted)| saved != wanted)?;
    let [what, saved, wanted] = [what, saved, wanted].map(Clone::clone);
    Some(Differs { what, saved, wanted })
}

/// Returns the options that determine a plan's keys and their first values, as on the command line.
fn population(plan: &Plan) -> Vec<(String, String)> {
    let of_pairs = plan.space == crate::space::Space::Pairs;
    let sizes = if of_pairs { "--value-size" } else { "--block-size" };
    let order = match plan.distribution {
        crate::chooser::Distribution::Sequential if of_pairs => "sequential",
        _ => "another",
    };
    let named = [
        ("namespace", plan.nsid.to_string()),
        ("--key-size", plan.key_bytes.to_string()),
        (sizes, plan.values.to_string()),
        (if of_pairs { "--keys" } else { "blocks" }, plan.keys.to_string()),
        ("--seed", plan.seed.to_string()),
        ("payload", format!("{:?}", plan.payload).to_lowercase()),
        ("--distribution", order.to_owned()),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Returns all options of a plan, as on the command line.
fn whole(plan: &Plan) -> Vec<(String, String)> {
    let read_percent = match plan.operation {
        Operation::Mixed { read_percent } => read_percent,
        _ => 0,
    };
    let end = match plan.until {
        Until::Operations(operations) => format!("--ops {operations}"),
        Until::Time(time) => format!("--seconds {}", time.as_secs_f64()),
    };
    let load = match plan.load {
        Load::QueueDepth(depth) => format!("--queue-depth {depth}"),
        Load::Rate { per_second, outstanding: None } => format!("--rate {per_second}"),
        Load::Rate { per_second, outstanding: Some(depth) } => {
            format!("--rate {per_second} --queue-depth {depth}")
        }
    };
    let named = [
        ("workload", plan.operation.name().to_owned()),
        ("--read-percent", read_percent.to_string()),
        ("a run with", end),
        ("a run with", load),
        ("--distribution", plan.distribution.name().to_owned()),
        ("keys that were", if plan.is_filled { "there" } else { "not there" }.to_owned()),
    ];
    let named = named.map(|(name, value)| (name.to_owned(), value));
    named.into_iter().chain(population(plan)).collect()
}
