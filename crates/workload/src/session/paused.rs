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

/// A run in the middle, of which nothing is outstanding. It goes on with a queue of its own, in
/// this process or another one.
#[derive(Debug)]
pub struct Paused {
    pub(crate) session: Session,
    pub(crate) load: Load,
    /// Of what came before.
    digest: u64,
}

/// What is known of the keys of a plan, or its blocks, after a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Contents {
    population: Vec<(String, String)>,
    versions: Versions,
}

/// Which versions keys may have.
#[derive(Debug, Serialize, Deserialize)]
enum Versions {
    First,
    Counted(History),
    /// Nobody knows, nor whether all keys are there.
    Unknown,
}

/// How a run went to its end.
#[derive(Debug)]
pub struct Finished {
    /// What was measured.
    pub outcome: Outcome,
    /// What it left.
    pub contents: Contents,
}

/// A plan is another one than that of what was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// What is different, as the command line calls it.
    pub what: String,
    /// What it was.
    pub saved: String,
    /// What it is now.
    pub wanted: String,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has {} {}, not {}", self.what, self.saved, self.wanted)
    }
}

impl std::error::Error for Differs {}

/// [`Paused`] in a saved state.
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

    /// Operations that have ended.
    pub fn completed(&self) -> u64 {
        self.session.completed()
    }

    /// All that is needed to go on with `plan`, of which this is a run.
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

    /// A run of `plan` that was saved. `None` when `saved` is none.
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

    /// The session, which goes on with another queue.
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
    /// As `new`, on keys of which `contents` tells what they have.
    pub(crate) fn on(plan: &Plan, contents: Option<Contents>, now: Nanos) -> Self {
        let session = Self::new(plan, now);
        let history = contents.and_then(|contents| match contents.versions {
            Versions::Counted(history) => Some(history),
            Versions::First | Versions::Unknown => None,
        });
        Self { judge: session.judge.with_history(history), ..session }
    }

    /// The same, which pauses when so many operations were submitted.
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
    /// What was saved with [`Self::save`].
    pub fn restore(saved: &[u8]) -> Option<Self> {
        postcard::from_bytes(saved).ok()
    }

    /// For a saved state.
    pub fn save(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("all of it can be written down")
    }

    /// How many keys or blocks there are.
    pub fn keys(&self) -> Option<u64> {
        let count = self.population.iter().find(|(name, _)| name == "--keys" || name == "blocks");
        count?.1.parse().ok()
    }

    /// An error when the keys of `plan`, or what they have, are others.
    pub fn check(&self, plan: &Plan) -> Result<(), Differs> {
        match first_difference(&self.population, &population(plan)) {
            Some(differs) => Err(differs),
            None => Ok(()),
        }
    }

    /// True when what `plan` does can be judged on these keys: it only writes, or it is known what
    /// they have. Where keys are added nobody may have overwritten any.
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

/// What the keys of a plan follow from, and their first values, by what the command line calls it.
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

/// All of a plan, likewise.
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
