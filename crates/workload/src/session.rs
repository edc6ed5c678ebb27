mod compound;
mod paused;

pub use paused::{Contents, Differs, Finished, Paused};

use crate::aftermath::Aftermath;
use crate::asked::Asked;
use crate::generated::{BlockExtent, Generated};
use crate::judge::{Judge, listed};
use crate::kind::Kind;
use crate::ledger::{Content, End, Ledger};
use crate::mismatch::{Mismatch, described_value, hex};
use crate::outcome::{EarlyEnd, Ended, Finding, Outcome};
use crate::plan::{Plan, Until};
use crate::replay_plan::ReplayPlan;
use crate::script::{Choice, Replayed, Script};
use base::{Buf, Nanos};
use clock::{Stage, Stages};
use compound::{Compound, Compounds, Place};
use controller::{Completion, Submission};
use spec::{Command, Status, StoreOptions, ZoneSendAction};
use std::collections::VecDeque;

/// Executes a script: makes the submissions, and has the completions judged.
#[derive(Debug)]
pub(crate) struct Session {
    script: Script,
    judge: Judge,
    nsid: u32,
    /// By command id, from the oldest outstanding command on.
    in_flight: VecDeque<InFlight>,
    first_id: Option<u64>,
    /// Operations of several commands.
    compounds: Compounds,
    started: Nanos,
    /// The last due time after the start.
    duration: Option<Nanos>,
    submitted: u64,
    /// When the last operation was due, and how many were due at the same instant.
    last_due: Nanos,
    simultaneous: u64,
    outstanding: u64,
    stops_on_error: bool,
    is_stopped: bool,
    outcome: Outcome,
    /// The number of operations before a pause.
    pauses_after: Option<u64>,
    /// Present if the device may lose its power.
    ledger: Option<Ledger>,
}

/// More operations at one instant than any queue depth. Without this limit a run for a time would
/// never end on a device whose clock stands still.
const SIMULTANEOUS_MAX: u64 = 1 << 20;

/// A submitted command.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    asked: Asked,
    /// The kind of its operation.
    kind: Kind,
    due: Nanos,
    /// The operation that it is a part of, if it is not all of it.
    part_of: Option<Place>,
    /// Identifies it to the ledger, if it changes something.
    change: Option<u64>,
    has_ended: bool,
}

impl Session {
    /// Returns a run of `plan` that starts at `now`.
    pub(crate) fn new(plan: &Plan, now: Nanos) -> Self {
        let duration = match plan.until {
            Until::Operations(_) => None,
            Until::Time(duration) => Some(duration),
        };
        Self { duration, ..Self::generating(plan, Generated::new, now) }
    }

    /// As `new`, with a ledger of the content after a loss of power. Not for zones.
    pub(crate) fn recorded(plan: &Plan, now: Nanos) -> Self {
        let is_there = plan.is_filled || plan.needs_fill();
        let content = if is_there { Content::Version(0) } else { Content::Absent };
        Self { ledger: Some(Ledger::new(plan.keys, content)), ..Self::new(plan, now) }
    }

    /// As `new`, but stores the keys of `plan`, up to the first error.
    pub(crate) fn filling(plan: &Plan, now: Nanos) -> Self {
        let filling = |plan: &Plan| Generated::filling(plan, 0);
        Self { stops_on_error: true, ..Self::generating(&plan.filling(), filling, now) }
    }

    /// As `filling`, from key number `first` on, in the order of the numbers.
    pub(crate) fn filling_from(plan: &Plan, first: u64, now: Nanos) -> Self {
        let filling = |plan: &Plan| Generated::filling_in_order(plan, first);
        Self { stops_on_error: true, ..Self::generating(&plan.filling(), filling, now) }
    }

    /// Stores drawn keys of `plan` again, up to the first error.
    pub(crate) fn overwriting(plan: &Plan, round: u32, operations: u64, now: Nanos) -> Self {
        let overwriting = |plan: &Plan| Generated::overwriting(plan, round, operations);
        Self { stops_on_error: true, ..Self::generating(&plan.filling(), overwriting, now) }
    }

    fn generating(plan: &Plan, script: impl FnOnce(&Plan) -> Generated, now: Nanos) -> Self {
        plan.validate().expect("plans are validated before they are run");
        let script = Script::Generated(Box::new(script(plan)));
        let judge = Judge::new(plan.seed, plan.payload, script.keys_with_versions());
        Self::of(script, judge, plan.nsid, Outcome::new(now), now)
    }

    /// Returns a replay that starts at `now`.
    pub(crate) fn replaying(plan: &ReplayPlan, now: Nanos) -> Self {
        let script = Script::Replayed(Replayed::new(plan.replay.clone()));
        let judge = Judge::new(plan.seed, plan.payload, script.keys_with_versions());
        Self::of(script, judge, plan.nsid, Outcome::new(now).with_misses(), now)
    }

    /// Stores the keys that exist before the trace, up to the first error.
    pub(crate) fn filling_replay(plan: &ReplayPlan, now: Nanos) -> Self {
        let script = Script::Replayed(Replayed::filling(plan.replay.clone()));
        let judge = Judge::new(plan.seed, plan.payload, script.keys_with_versions());
        let session = Self::of(script, judge, plan.nsid, Outcome::new(now), now);
        Self { stops_on_error: true, ..session }
    }

    fn of(script: Script, judge: Judge, nsid: u32, outcome: Outcome, started: Nanos) -> Self {
        Self {
            script,
            judge,
            nsid,
            in_flight: VecDeque::new(),
            first_id: None,
            compounds: Compounds::default(),
            started,
            duration: None,
            submitted: 0,
            last_due: started,
            simultaneous: 0,
            outstanding: 0,
            stops_on_error: false,
            is_stopped: false,
            outcome,
            pauses_after: None,
            ledger: None,
        }
    }

    /// True when an operation is left to submit that is due at `due`.
    #[inline]
    pub(crate) fn has_more(&self, due: Nanos) -> bool {
        !self.is_stopped
            && self.pauses_after.is_none_or(|operations| self.submitted < operations)
            && self.duration.is_none_or(|duration| due < self.started + duration)
            && self.simultaneous < SIMULTANEOUS_MAX
            && self.script.has_more()
    }

    /// True when the next operation must wait for an outstanding one.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.script.is_held()
    }

    /// Returns why the run submits nothing more although its plan has more, if so.
    fn early_end(&self) -> Option<EarlyEnd> {
        if self.is_stopped {
            return None;
        }
        if self.simultaneous >= SIMULTANEOUS_MAX {
            return Some(EarlyEnd::NoTimePassed);
        }
        let is_over = match self.duration {
            None => self.submitted >= self.script.operations(),
            Some(_) => self.script.has_more(),
        };
        (!is_over).then_some(EarlyEnd::NoKeyLeft)
    }

    /// Returns when the next operation is due; `None` if the script has no recorded times.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.script.due().map(|due| self.started + due)
    }

    /// Returns when the run started.
    pub(crate) fn started(&self) -> Nanos {
        self.started
    }

    /// Returns the number of operations submitted.
    pub(crate) fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Returns the number of operations that are outstanding.
    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Returns the number of operations that have ended.
    pub(crate) fn completed(&self) -> u64 {
        self.submitted - self.outstanding
    }

    /// Returns the progress of the run at `now` and its end: in operations, or in nanoseconds if it
    /// is for a time.
    pub(crate) fn progress(&self, now: Nanos) -> (u64, u64) {
        match self.duration {
            None => (self.completed(), self.script.operations()),
            Some(duration) => ((now - self.started).min(duration).0, duration.0),
        }
    }

    pub(crate) fn into_outcome(self) -> Outcome {
        assert!(self.outstanding == 0, "the run is over");
        let early_end = self.early_end();
        self.outcome.with_early_end(early_end)
    }

    /// Returns the outcome so far and the expected content. The session must be [`Self::recorded`].
    pub(crate) fn into_aftermath(self) -> (Outcome, Aftermath) {
        let ledger = self.ledger.expect("a recorded session has a ledger");
        let Self { script, judge, nsid, .. } = self;
        (self.outcome, Aftermath { script, judge, ledger, nsid })
    }

    /// Passes the next operation, due at `due`, to `submit`, which returns its command id.
    #[inline]
    pub(crate) fn submit(&mut self, due: Nanos, submit: impl FnMut(Submission) -> u64) {
        let choice = self.script.next();
        if self.duration.is_some() {
            self.simultaneous = if due == self.last_due { self.simultaneous + 1 } else { 0 };
            self.last_due = due;
        }
        self.submitted += 1;
        self.outstanding += 1;
        let Choice { kind, key, version, count, is_reset_first } = choice;
        let asked = match kind {
            Kind::Store | Kind::Write if !is_reset_first => self.store(key, version),
            Kind::Retrieve | Kind::Read => self.retrieve(key),
            Kind::Delete => self.delete(key),
            Kind::Exist => Asked::Exist { key, oldest: self.judge.oldest(key) },
            Kind::Store | Kind::Write | Kind::Scan | Kind::ReadModifyWrite => {
                let asked = match kind {
                    Kind::Scan => Asked::List { start: key, count },
                    Kind::ReadModifyWrite => self.retrieve(key),
                    _ => Asked::Reset { key, version },
                };
                let place = self.compounds.begin(Compound::new(kind, due));
                return self.ask(asked, kind, due, Some(place), submit);
            }
        };
        self.ask(asked, kind, due, None, submit);
    }

    #[inline]
    fn retrieve(&self, key: u32) -> Asked {
        Asked::Retrieve { key, oldest: self.judge.oldest(key) }
    }

    /// Returns a store of the next version, or of `version` if no history counts versions.
    #[inline]
    fn store(&mut self, key: u32, version: u32) -> Asked {
        if let Some(writer) = self.script.zone_writer() {
            writer.begin(key.into());
        }
        match self.judge.begin(key) {
            Some(begun) => Asked::Store { key, version: begun.version, store: begun.store },
            None => Asked::Store { key, version, store: 0 },
        }
    }

    fn delete(&mut self, key: u32) -> Asked {
        let oldest = self.judge.oldest(key);
        let (version, store) =
            self.judge.begin(key).map_or((0, 0), |begun| (begun.version, begun.store));
        Asked::Delete { key, version, store, oldest }
    }

    #[inline]
    fn ask(
        &mut self,
        asked: Asked,
        kind: Kind,
        due: Nanos,
        part_of: Option<Place>,
        mut submit: impl FnMut(Submission) -> u64,
    ) {
        let id = submit(self.submission(asked));
        let first_id = *self.first_id.get_or_insert(id);
        let expected = first_id + self.in_flight.len() as u64;
        assert_eq!(id, expected, "no other task submits to the queue of a run");
        let change = self.ledger.as_mut().and_then(|ledger| change(ledger, asked));
        self.in_flight.push_back(InFlight { asked, kind, due, part_of, change, has_ended: false });
    }

    #[inline]
    fn submission(&self, asked: Asked) -> Submission {
        if !self.script.has_keys() {
            return self.block_submission(asked);
        }
        let (nsid, number) = (self.nsid, key_of(asked));
        let key = self.script.key(number);
        let mut data = Buf::phantom(0, 0);
        let command = match asked {
            Asked::Store { version, .. } => {
                let len = self.script.value_bytes(number, version);
                let len = len.expect("a version that is stored has a value");
                data = self.judge.value(number, version, len);
                Command::store(nsid, key.as_bytes(), len, StoreOptions::NONE)
            }
            Asked::Retrieve { .. } => {
                Command::retrieve(nsid, key.as_bytes(), self.script.value_bytes_max())
            }
            Asked::Delete { .. } => Command::delete(nsid, key.as_bytes()),
            Asked::Exist { .. } => Command::exist(nsid, key.as_bytes()),
            Asked::List { count, .. } => {
                let room = list_bytes(key.as_bytes().len(), count);
                Command::list(nsid, key.as_bytes(), room)
            }
            Asked::Reset { .. } => unreachable!("pairs have no zones"),
        };
        Submission::with_data(command, &key, data)
    }

    #[inline]
    fn block_submission(&self, asked: Asked) -> Submission {
        let nsid = self.nsid;
        let mut data = Buf::phantom(0, 0);
        let command = match asked {
            Asked::Store { key, version, .. } => {
                let BlockExtent { lba, blocks, append_to } = self.script.extent(key);
                data = self.judge.value(key, version, self.script.value_bytes_max());
                match append_to {
                    None => Command::write(nsid, lba, blocks),
                    Some(zone) => Command::zone_append(nsid, zone, blocks),
                }
            }
            Asked::Retrieve { key, .. } => {
                let BlockExtent { lba, blocks, .. } = self.script.extent(key);
                Command::read(nsid, lba, blocks)
            }
            Asked::Reset { key, .. } => {
                let zone = self.script.extent(key).lba;
                Command::zone_management_send(nsid, zone, ZoneSendAction::Reset)
            }
            _ => unreachable!("a block is only read and written"),
        };
        Submission { command, long_key: None, data }
    }

    /// Handles a completion seen at `seen`, and passes following commands to `submit`, which
    /// returns their command ids. Returns true when an operation has ended with it.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        completion: &Completion,
        seen: Nanos,
        submit: impl FnMut(Submission) -> u64,
    ) -> bool {
        let InFlight { asked, kind, due, part_of, change, .. } = self.end(completion.id);
        let verdict = self.judge.judge(&self.script, &asked, completion);
        if !verdict.finding.is_fine() {
            self.note_mismatch(asked, completion, verdict.finding);
        }
        if let (Some(ledger), Some(change)) = (&mut self.ledger, change) {
            ledger.end(key_of(asked), change, end_of(completion.status));
        }
        self.note(asked, verdict.finding);
        // The path to the device is gone, so further commands are pointless.
        self.is_stopped |= completion.status == Status::HOST_PATHING_ERROR;
        self.outcome.add_command(completion, verdict.checksum);
        let mut stages = completion.stages;
        stages.add(Stage::Queue, completion.submitted - due);
        stages.add(Stage::Late, seen - completion.completed);
        let finding = verdict.finding;
        if let Some(place) = part_of {
            let part = Part { asked, seen, stages, finding };
            return self.go_on(place, part, &completion.data, submit);
        }
        self.finish(&Ended { kind, due, seen, stages: &stages, finding });
        true
    }

    #[inline]
    fn end(&mut self, id: u64) -> InFlight {
        let place = self.first_id.and_then(|first| usize::try_from(id.checked_sub(first)?).ok());
        let command = place
            .and_then(|place| self.in_flight.get_mut(place))
            .filter(|command| !command.has_ended)
            .expect("a completion is of a command that is outstanding");
        command.has_ended = true;
        let command = *command;
        while self.in_flight.front().is_some_and(|front| front.has_ended) {
            self.in_flight.pop_front();
            self.first_id = self.first_id.map(|first| first + 1);
        }
        command
    }

    /// Keeps what `completion` is about, if it is the first that shows other data than was stored.
    #[cold]
    fn note_mismatch(&mut self, asked: Asked, completion: &Completion, finding: Finding) {
        let found = match (asked, finding) {
            (_, Finding::Failed(Status::KEY_DOES_NOT_EXIST)) => "no value".to_owned(),
            (Asked::Retrieve { .. }, Finding::Wrong) => described_value(&completion.data),
            (Asked::Exist { .. }, Finding::Wrong) => "a value".to_owned(),
            _ => return,
        };
        let Self { script, judge, outcome, .. } = self;
        let key = key_of(asked);
        outcome.add_mismatch(|| {
            let expected = match asked {
                Asked::Retrieve { oldest, .. }
                | Asked::Delete { oldest, .. }
                | Asked::Exist { oldest, .. } => judge.expected(script, key, oldest),
                Asked::Store { .. } | Asked::List { .. } | Asked::Reset { .. } => {
                    "a value".to_owned()
                }
            };
            Mismatch { place: place_of(script, key), expected, found }
        });
    }

    /// Keeps that the list from `start` on is none that the run may see, if that is the first.
    fn note_wrong_list(&mut self, start: u32) {
        let Self { script, outcome, .. } = self;
        outcome.add_mismatch(|| Mismatch {
            place: place_of(script, start),
            expected: "a list that begins with it and has keys of this run alone".to_owned(),
            found: "another list".to_owned(),
        });
    }

    /// What the end of a store or delete means for later commands.
    #[inline]
    fn note(&mut self, asked: Asked, finding: Finding) {
        match asked {
            Asked::Store { key, store, .. } => {
                self.judge.end(store, finding.is_fine());
                if let Some(writer) = self.script.zone_writer() {
                    writer.end(key.into());
                }
                if finding.is_fine() {
                    self.script.acknowledge(key);
                }
            }
            Asked::Delete { store, .. } => self.judge.end(store, finding.is_fine()),
            Asked::Reset { .. } => {
                let writer = self.script.zone_writer();
                writer.expect("zones are reset by who writes them").end_reset();
            }
            _ => (),
        }
    }

    #[inline]
    fn finish(&mut self, ended: &Ended<'_>) {
        self.outcome.add_operation(ended);
        self.outstanding -= 1;
        if self.stops_on_error && !ended.finding.is_fine() {
            self.is_stopped = true;
        }
    }

    /// Handles the end of `part`, one of several commands of an operation, which returned `data`.
    /// Returns true when it was the last one.
    #[cold]
    fn go_on(
        &mut self,
        place: Place,
        part: Part,
        data: &Buf,
        mut submit: impl FnMut(Submission) -> u64,
    ) -> bool {
        let (finding, next) = self.following(place, part, data);
        let compound = self.compounds.at(place);
        compound.end_part(finding);
        if !next.is_empty() {
            let kind = compound.kind;
            compound.begin_parts(next.len(), &part.stages);
            for asked in next {
                self.ask(asked, kind, part.seen, Some(place), &mut submit);
            }
            return false;
        }
        if compound.outstanding > 0 {
            return false;
        }
        let Compound { kind, due, before, finding, .. } = self.compounds.end(place);
        let mut stages = part.stages;
        stages += &before;
        self.finish(&Ended { kind, due, seen: part.seen, stages: &stages, finding });
        true
    }

    /// Returns the judgement of `part` and the commands that follow it.
    fn following(&mut self, place: Place, part: Part, data: &Buf) -> (Finding, Vec<Asked>) {
        let is_read_first = self.compounds.at(place).kind == Kind::ReadModifyWrite;
        match part.asked {
            Asked::List { start, count } if part.finding.is_fine() => {
                match listed(&self.script, start, count, data) {
                    Some(keys) => {
                        (part.finding, keys.into_iter().map(|key| self.retrieve(key)).collect())
                    }
                    None => {
                        self.note_wrong_list(start);
                        (Finding::Wrong, Vec::new())
                    }
                }
            }
            // A read-modify-write does not store a value that it could not read.
            Asked::Retrieve { key, .. } if part.finding.is_fine() && is_read_first => {
                (part.finding, vec![self.store(key, 0)])
            }
            Asked::Reset { key, version } if part.finding.is_fine() => {
                (part.finding, vec![self.store(key, version)])
            }
            _ => (part.finding, Vec::new()),
        }
    }
}

/// A command that has ended.
#[derive(Clone, Copy, Debug)]
struct Part {
    asked: Asked,
    seen: Nanos,
    /// The stages from its due time until the host saw it.
    stages: Stages,
    finding: Finding,
}

/// Returns the number of the first key or block of a command.
fn key_of(asked: Asked) -> u32 {
    let (Asked::Store { key, .. }
    | Asked::Retrieve { key, .. }
    | Asked::Delete { key, .. }
    | Asked::Exist { key, .. }
    | Asked::List { start: key, .. }
    | Asked::Reset { key, .. }) = asked;
    key
}

/// What names key number `key`, or the block of that number, to people.
fn place_of(script: &Script, key: u32) -> String {
    if script.has_keys() {
        format!("key {}", hex(script.key(key).as_bytes()))
    } else {
        format!("block {}", script.extent(key).lba)
    }
}

/// Enters what `asked` changes.
fn change(ledger: &mut Ledger, asked: Asked) -> Option<u64> {
    match asked {
        Asked::Store { key, version, .. } => Some(ledger.begin(key, Content::Version(version))),
        Asked::Delete { key, .. } => Some(ledger.begin(key, Content::Absent)),
        _ => None,
    }
}

/// Returns what the status of a store or a delete tells about its change.
fn end_of(status: Status) -> End {
    match status {
        Status::CAPACITY_EXCEEDED | Status::KEY_DOES_NOT_EXIST => End::Refused,
        status if status.is_success() => End::Acknowledged,
        _ => End::Unknown,
    }
}

/// Returns the bytes of a list of `count` keys of `key_bytes` bytes: their number, and for each its
/// length, its bytes, and zeros to the next multiple of four (KV 1.0d, List command).
fn list_bytes(key_bytes: usize, count: u32) -> u32 {
    let entry = (size_of::<u16>() + key_bytes).next_multiple_of(size_of::<u32>());
    let entry = u32::try_from(entry).expect("a key has at most 255 bytes");
    count * entry + u32::BITS / 8
}

#[cfg(test)]
mod tests;
