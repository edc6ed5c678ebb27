use crate::content::Name;
use spec::{Status, ZoneSendAction, ZoneState};
use std::collections::BTreeSet;

/// A block that was never written.
const ZEROS: Name = [0, 0];

/// What a zone should hold, as its only writer knows it.
#[derive(Debug, Default)]
pub(crate) struct ZoneModel {
    /// Blocks that were written, from the zone's start; nothing for those of which the answer is
    /// still to come.
    blocks: Vec<Option<Name>>,
    /// Writes that are not answered yet.
    open: Vec<Vec<Name>>,
    /// What is asked of the zone and not answered yet.
    change: Option<ZoneSendAction>,
    /// Blocks that outlive a loss of power whatever is saved.
    durable: usize,
    is_finished: bool,
    /// Whether memory that had answered was lost with the power.
    forgets: bool,
    /// Blocks that the flash lost.
    lost: BTreeSet<usize>,
    lost_before: usize,
}

/// What a device shows of a zone.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) state: ZoneState,
    /// Relative to the zone's start.
    pub(crate) pointer: Option<u64>,
    /// All that can be written; nothing for those that are lost.
    pub(crate) blocks: Vec<Option<Name>>,
    pub(crate) capacity: u64,
}

impl Seen {
    /// Where the zone's content ends.
    fn end(&self) -> Result<usize, String> {
        let last = self.blocks.iter().rposition(|block| *block != Some(ZEROS));
        let end = last.map_or(0, |last| last + 1);
        let pointer = self.pointer.map(|at| usize::try_from(at).expect("a small zone"));
        match (self.state, pointer) {
            (ZoneState::FULL, None) => Ok(end),
            (ZoneState::EMPTY, Some(0)) | (ZoneState::CLOSED, Some(1..))
                if pointer == Some(end) =>
            {
                Ok(end)
            }
            (state, pointer) => Err(format!(
                "after a loss of power it is {state:?}, its write pointer {pointer:?} and its \
                 content ends at {end}"
            )),
        }
    }
}

impl ZoneModel {
    pub(crate) fn write_pointer(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(crate) fn is_full(&self, capacity: u64) -> bool {
        self.is_finished || self.write_pointer() == capacity
    }

    /// Blocks that the flash lost, of all fillings.
    pub(crate) fn lost(&self) -> usize {
        self.lost_before + self.lost.len()
    }

    pub(crate) fn start_write(&mut self, names: &[Name]) {
        self.open.push(names.to_vec());
    }

    pub(crate) fn end_write(
        &mut self,
        status: Status,
        at: u64,
        names: &[Name],
    ) -> Result<(), String> {
        self.open.retain(|open| open != names);
        match status {
            Status::SUCCESS => {}
            Status::ZONE_BOUNDARY_ERROR
            | Status::ZONE_IS_FULL
            | Status::TOO_MANY_ACTIVE_ZONES
            | Status::TOO_MANY_OPEN_ZONES => return Ok(()),
            status => return Err(format!("a write at {at}: {status}")),
        }
        let at = usize::try_from(at).map_err(|_| format!("written outside, at {at}"))?;
        let end = at + names.len();
        self.blocks.resize(self.blocks.len().max(end), None);
        for (block, name) in self.blocks[at..end].iter_mut().zip(names) {
            if let Some(other) = block.replace(*name) {
                return Err(format!("{name:?} is written at {at}, over {other:?}"));
            }
        }
        if self.open.is_empty() && self.blocks.contains(&None) {
            return Err("blocks in the midst were not written".to_owned());
        }
        Ok(())
    }

    pub(crate) fn flushed(&mut self, blocks: u64) {
        let blocks = usize::try_from(blocks).expect("a small zone");
        self.durable = self.durable.max(blocks);
    }

    pub(crate) fn start_change(&mut self, action: ZoneSendAction) {
        self.change = Some(action);
    }

    pub(crate) fn end_change(&mut self, status: Status) -> Result<(), String> {
        let action = self.change.take().expect("one was asked for");
        match (action, status) {
            (ZoneSendAction::Reset, Status::SUCCESS) => self.empty(),
            (ZoneSendAction::Finish, Status::SUCCESS) => self.is_finished = true,
            (_, Status::SUCCESS)
            | (
                ZoneSendAction::Open | ZoneSendAction::Finish,
                Status::TOO_MANY_ACTIVE_ZONES | Status::TOO_MANY_OPEN_ZONES,
            )
            | (
                ZoneSendAction::Close | ZoneSendAction::Open,
                Status::INVALID_ZONE_STATE_TRANSITION | Status::ZONE_IS_FULL,
            ) => {}
            (action, status) => return Err(format!("{action:?}: {status}")),
        }
        Ok(())
    }

    fn empty(&mut self) {
        self.blocks.clear();
        (self.durable, self.is_finished) = (0, false);
        self.lost_before += self.lost.len();
        self.lost.clear();
    }

    pub(crate) fn cut_off(&mut self, forgets: bool) {
        self.forgets |= forgets;
    }

    /// Holds blocks that were read while nothing else went on to what was written.
    pub(crate) fn check_blocks(&mut self, at: u64, found: &[Option<Name>]) -> Result<(), String> {
        let at = usize::try_from(at).expect("a small zone");
        for (at, found) in (at..).zip(found) {
            let expected = self.blocks.get(at).copied().flatten().unwrap_or(ZEROS);
            match found {
                Some(name) if self.lost.contains(&at) => {
                    return Err(format!("block {at} was lost, and is {name:?} again"));
                }
                Some(name) if *name != expected => {
                    return Err(format!("block {at} is {name:?}, not {expected:?}"));
                }
                Some(_) => {}
                None => drop(self.lost.insert(at)),
            }
        }
        Ok(())
    }

    /// Holds all that is seen of the zone to what it should be.
    pub(crate) fn check(&mut self, seen: &Seen) -> Result<(), String> {
        let is_full = self.is_full(seen.capacity);
        if is_full != (seen.state == ZoneState::FULL) {
            return Err(format!("{:?}, but it should be full: {is_full}", seen.state));
        }
        if !is_full && seen.pointer != Some(self.write_pointer()) {
            let expected = self.write_pointer();
            return Err(format!("its write pointer is {:?}, not {expected}", seen.pointer));
        }
        self.check_blocks(0, &seen.blocks)
    }

    /// Holds what is seen of the zone after a loss of power to what may be left, and takes it as
    /// what is there. `may_be_cut`: its end, too, may be lost to faults.
    pub(crate) fn reopen(&mut self, seen: &Seen, may_be_cut: bool) -> Result<(), String> {
        let is_full = seen.state == ZoneState::FULL;
        let end = seen.end()?;
        let change = self.change.take();
        let found = &seen.blocks[..end];
        let is_reset = change == Some(ZoneSendAction::Reset) && end == 0 && !is_full;
        if is_reset {
            self.empty();
        } else {
            self.check_what_is_left(found, may_be_cut)?;
            let may_finish = self.is_finished || change == Some(ZoneSendAction::Finish);
            if is_full && !may_finish && (end as u64) < seen.capacity {
                return Err(format!("is full with {end} blocks, and was not finished"));
            }
            if self.is_finished && !is_full && !may_be_cut {
                return Err(format!("was finished, and is {:?}", seen.state));
            }
        }
        self.open.clear();
        self.is_finished = is_full && (end as u64) < seen.capacity;
        self.lost.extend((0..end).filter(|at| found[*at].is_none()));
        // What is lost stands for itself: it is never compared.
        self.blocks = found.iter().map(|name| Some(name.unwrap_or(ZEROS))).collect();
        (self.durable, self.forgets) = (end, false);
        Ok(())
    }

    fn check_what_is_left(&self, found: &[Option<Name>], may_be_cut: bool) -> Result<(), String> {
        let needed = match (may_be_cut, self.forgets) {
            (true, _) => 0,
            (false, true) => self.durable,
            (false, false) => self.blocks.len(),
        };
        if found.len() < needed {
            return Err(format!("{} of {needed} blocks are left", found.len()));
        }
        let mut begun = BTreeSet::new();
        for (at, name) in found.iter().enumerate() {
            let Some(name @ [write, place]) = *name else { continue };
            if let Some(expected) = self.blocks.get(at).copied().flatten() {
                if name != expected && !self.lost.contains(&at) {
                    return Err(format!("block {at} is {name:?}, not {expected:?}"));
                }
                continue;
            }
            if !self.open.iter().flatten().any(|open| *open == name) {
                return Err(format!("block {at} is {name:?}, which was not being written"));
            }
            let follows =
                place > 0 && at > 0 && found[at - 1].is_none_or(|b| b == [write, place - 1]);
            if !follows && (place > 0 || !begun.insert(write)) {
                return Err(format!("block {at} is {name:?}, which does not follow"));
            }
        }
        Ok(())
    }
}
