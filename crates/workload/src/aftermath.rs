use crate::generated::BlockExtent;
use crate::judge::Judge;
use crate::ledger::{Content, Ledger};
use crate::script::Script;
use base::Buf;
use base::limits::BLOCK_BYTES;
use controller::{Completion, QueuePair, Submission};
use spec::{Command, Status};
use std::collections::BTreeMap;

/// The expected content of a device that lost its power during a run.
#[derive(Debug)]
pub struct Aftermath {
    pub(crate) script: Script,
    pub(crate) judge: Judge,
    pub(crate) ledger: Ledger,
    pub(crate) nsid: u32,
}

/// The result of the check after the device was reopened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Keys or blocks read.
    pub checked: u64,
    /// Stores and deletes without an answer at the loss of power: each happened or did not.
    pub unanswered: u64,
    /// Of the keys, those that fail with a media error.
    pub unrecovered: u64,
    /// Of the keys, those that hold neither the last acknowledged content nor an unanswered one.
    pub lost: u64,
    /// Of the keys, the first that is lost.
    pub first_lost: Option<u32>,
}

/// Reads outstanding at a time.
const QUEUE_DEPTH: usize = 64;

/// Keys between two calls of a progress callback.
const PROGRESS_STEP: u64 = 4_096;

impl Aftermath {
    /// Reads each key or block and compares it with the expected content. Calls `progress`
    /// regularly with the number of reads so far and in all.
    pub async fn check(&self, queue: &QueuePair, mut progress: impl FnMut(u64, u64)) -> Findings {
        let keys = self.ledger.keys();
        let mut findings =
            Findings { unanswered: self.ledger.outstanding(), ..Findings::default() };
        let mut asked: BTreeMap<u64, u32> = BTreeMap::new();
        let mut torn = Vec::new();
        let mut next = 0;
        while next < keys || !asked.is_empty() {
            while next < keys && asked.len() < QUEUE_DEPTH {
                asked.insert(queue.submit(self.question(next)), next);
                next += 1;
            }
            let completion = queue.next().await;
            let key =
                asked.remove(&completion.id).expect("no other task uses the queue of a check");
            if self.is_partly_written(key, &completion) {
                torn.push(key);
                continue;
            }
            let is_right = self.ledger.contents(key).any(|of| self.is(key, of, &completion));
            findings.note(key, is_right, completion.status);
            if findings.checked.is_multiple_of(PROGRESS_STEP) {
                progress(findings.checked, keys.into());
            }
        }
        for key in torn {
            let (is_right, status) = self.check_by_block(queue, key).await;
            findings.note(key, is_right, status);
        }
        progress(keys.into(), keys.into());
        findings
    }

    fn question(&self, key: u32) -> Submission {
        if self.script.has_keys() {
            let name = self.script.key(key);
            let room = self.script.value_bytes_max();
            return Submission::new(Command::retrieve(self.nsid, name.as_bytes(), room), &name);
        }
        let BlockExtent { lba, blocks, .. } = self.script.extent(key);
        self.read(lba, blocks)
    }

    fn read(&self, lba: u64, blocks: u32) -> Submission {
        let command = Command::read(self.nsid, lba, blocks);
        Submission { command, long_key: None, data: Buf::phantom(0, 0) }
    }

    /// True for a read of several logical blocks with an unanswered write: each block is whole, but
    /// they are of different versions.
    fn is_partly_written(&self, key: u32, completion: &Completion) -> bool {
        !self.script.has_keys()
            && self.script.extent(key).blocks > 1
            && self.ledger.contents(key).count() > 1
            && !self.ledger.contents(key).any(|content| self.is(key, content, completion))
    }

    async fn check_by_block(&self, queue: &QueuePair, key: u32) -> (bool, Status) {
        let BlockExtent { lba, blocks, .. } = self.script.extent(key);
        let mut is_right = true;
        for block in 0..blocks {
            queue.submit(self.read(lba + u64::from(block), 1));
            let completion = queue.next().await;
            if !completion.status.is_success() {
                return (false, completion.status);
            }
            let from = block * BLOCK_BYTES;
            let may_be = |content| match self.value(key, content) {
                None => is_zeros(&completion.data),
                Some(whole) => is_same(&whole.slice(from..from + BLOCK_BYTES), &completion.data),
            };
            is_right &= self.ledger.contents(key).any(may_be);
        }
        (is_right, Status::SUCCESS)
    }

    /// True when `completion` shows that `key` holds `content`.
    fn is(&self, key: u32, content: Content, completion: &Completion) -> bool {
        let has_keys = self.script.has_keys();
        match self.value(key, content) {
            None if has_keys => completion.status == Status::KEY_DOES_NOT_EXIST,
            None => completion.status.is_success() && is_zeros(&completion.data),
            Some(value) => completion.status.is_success() && is_same(&value, &completion.data),
        }
    }

    /// Returns the value of `content`, if it has one.
    fn value(&self, key: u32, content: Content) -> Option<Buf> {
        let Content::Version(version) = content else { return None };
        let len = self.script.value_bytes(key, version)?;
        Some(self.judge.value(key, version, len))
    }
}

fn is_zeros(data: &Buf) -> bool {
    data.bytes().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
}

fn is_same(a: &Buf, b: &Buf) -> bool {
    let is_same = match (a.bytes(), b.bytes()) {
        (Some(a), Some(b)) => a == b,
        (None, None) => a.len() == 0 || a.checksum() == b.checksum(),
        _ => a.len() == 0,
    };
    a.len() == b.len() && is_same
}

impl Findings {
    fn note(&mut self, key: u32, is_right: bool, status: Status) {
        self.checked += 1;
        if matches!(status, Status::UNRECOVERED_ERROR | Status::UNRECOVERED_READ_ERROR) {
            self.unrecovered += 1;
        } else if !is_right {
            self.lost += 1;
            self.first_lost = Some(self.first_lost.map_or(key, |first| first.min(key)));
        }
    }
}
