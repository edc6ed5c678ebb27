//! Verifies all pages, entries and counts of a store, and reports what is wrong.
//!
//! 1. The headers of all records say which of them the index should have: `known`.
//! 2. Every page is read, each extent from its first to its last and several side by side: `pages`.
//! 3. What was counted is counted again.
//!
//! Writes nothing. The store was opened by [`Store::look`] and has no other tasks.

mod finding;
mod known;
mod pages;

use crate::error::Error;
use crate::extent::Live;
use crate::format::record::Kind;
use crate::recover::checkpoint::Image;
use crate::recover::listing::Record;
use crate::store::Store;
use base::Key;
use clock::Class;
pub use finding::{Finding, Wrong};
use known::Known;
use media::{ExtentId, ExtentInfo, PageId, Stream};
use pages::Pages;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// Extents that are read side by side: enough for a disk's full rate, in long reads.
const WORKERS: usize = 8;

/// Findings that are kept; the others are counted.
const FINDINGS_MAX: usize = 1_000;

/// The extent of a verification, and its findings.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// Extents in use.
    pub extents: u64,
    /// Their pages.
    pub pages: u64,
    /// Records on them, live or not, those of tables left out.
    pub records: u64,
    /// Values among them.
    pub values: u64,
    /// Bytes of keys and values of all these.
    pub bytes: u64,
    /// Faults, in the order of extents and pages.
    pub findings: Vec<Finding>,
    /// Number of further faults.
    pub more: u64,
    /// Damage to data that no key and no checkpoint needs.
    pub harmless: Vec<Finding>,
    /// Number of further harmless ones.
    pub more_harmless: u64,
}

/// The findings so far.
#[derive(Default)]
struct Found {
    verified: Verified,
    unreadable: BTreeSet<PageId>,
}

impl Found {
    fn note_record(&mut self, record: &Record) {
        let header = &record.header;
        if header.kind == Kind::Table {
            return;
        }
        self.verified.records += 1;
        self.verified.values += u64::from(header.kind == Kind::Value);
        self.verified.bytes += header.key.as_bytes().len() as u64 + u64::from(header.value_len);
    }

    fn note(
        &mut self,
        extent: Option<ExtentId>,
        page: Option<u32>,
        key: Option<Key>,
        wrong: Wrong,
    ) {
        let Verified { findings, more, harmless, more_harmless, .. } = &mut self.verified;
        let (list, more) =
            if wrong.is_harmless() { (harmless, more_harmless) } else { (findings, more) };
        if list.len() < FINDINGS_MAX {
            list.push(Finding { extent, page, key, wrong });
        } else {
            *more += 1;
        }
    }

    /// Returns the number of faults, harmless or not.
    fn damaged(&self) -> u64 {
        let Verified { findings, more, harmless, more_harmless, .. } = &self.verified;
        findings.len() as u64 + harmless.len() as u64 + more + more_harmless
    }
}

impl Store {
    /// Verifies every record, pointer and count. `progress` is told how many bytes of pages have
    /// been read, of how many.
    ///
    /// An error when the medium fails in another way than by damage.
    pub async fn verify(
        self: &Arc<Self>,
        progress: impl Fn(u64, u64) + 'static,
    ) -> Result<Verified, Error> {
        let infos = self.log.media.extents();
        let known = Rc::new(Known::new(self).await);
        let found = Rc::new(RefCell::new(Found::default()));
        found.borrow_mut().verified.extents = infos.len() as u64;
        self.read_all(&infos, &known, &found, progress).await?;
        let mut found = found.take();
        let image = self.newest_image(&infos).await;
        let wrong = image.iter().flat_map(|image| outdated(image, &infos));
        for (id, wrong) in wrong.filter(|(id, _)| !known.outdated.contains(id)) {
            found.note(Some(id), None, None, wrong);
        }
        self.verify_index(&known, &mut found);
        self.verify_counts(&known, &mut found);
        let mut verified = found.verified;
        for list in [&mut verified.findings, &mut verified.harmless] {
            list.sort_by_key(|finding| (finding.extent, finding.page));
        }
        Ok(verified)
    }

    async fn read_all(
        self: &Arc<Self>,
        infos: &[ExtentInfo],
        known: &Rc<Known>,
        found: &Rc<RefCell<Found>>,
        progress: impl Fn(u64, u64) + 'static,
    ) -> Result<(), Error> {
        let number_bytes = u64::from(self.log.shape.number_bytes());
        let bytes = |pages: u32| u64::from(pages) * number_bytes;
        let total = infos.iter().map(|info| bytes(info.pages)).sum();
        let todo = Rc::new(RefCell::new(VecDeque::from(infos.to_vec())));
        let (progress, done) = (Rc::new(progress), Rc::new(Cell::new(0)));
        let workers = (0..WORKERS).map(|_| {
            let (store, known, found) = (self.clone(), known.clone(), found.clone());
            let (todo, progress, done) = (todo.clone(), progress.clone(), done.clone());
            async move {
                loop {
                    let Some(info) = todo.borrow_mut().pop_front() else { return Ok(()) };
                    let (id, end) = (info.id, info.pages);
                    let mut pages = Pages::new(store.clone(), known.clone(), found.clone(), info);
                    let mut next = Some(0).filter(|_| end > 0);
                    while let Some(from) = next {
                        let swept = store.log.media.sweep(id, from, Class::HostRead).await?;
                        next = swept.next;
                        pages.take(swept).await;
                        let read = next.map_or(end, |next| next) - from;
                        done.set(done.get() + u64::from(read) * number_bytes);
                        progress(done.get(), total);
                    }
                    pages.end();
                }
            }
        });
        clock::join_all(workers.collect()).await.into_iter().collect()
    }

    /// Every entry of the index leads to a record, and is counted.
    fn verify_index(&self, known: &Known, found: &mut Found) {
        let mut lost: BTreeMap<ExtentId, u64> =
            known.outdated.iter().map(|extent| (*extent, 0)).collect();
        for (at, entries) in known.astray(self) {
            if let Some(lost) = lost.get_mut(&at.extent) {
                *lost += entries;
            } else if !found.unreadable.contains(&at) {
                found.note(Some(at.extent), Some(at.page), None, Wrong::Astray { entries });
            }
        }
        for (extent, live) in lost {
            found.note(Some(extent), None, None, Wrong::Outdated { live });
        }
        let (counted, entries) = (self.index.entries(), known.entries());
        if counted != entries {
            found.note(None, None, None, Wrong::Entries { counted, found: entries });
        }
    }

    /// Compares the counts of live pairs and tombstones, and their bytes, with the records.
    /// Unreadable records are left out.
    fn verify_counts(&self, known: &Known, found: &mut Found) {
        let (mut values, mut tombstones) = (Live::default(), Live::default());
        let mut is_complete = true;
        let state = self.log.whole();
        let extents = state.extents.iter();
        for (id, extent) in extents.filter(|(_, extent)| extent.label.stream != Stream::Index) {
            if !known.listed.contains(&id) {
                is_complete = false;
                continue;
            }
            let live = known.values.get(&id).copied().unwrap_or_default();
            values.add_all(live);
            let mut counted = Live::default();
            extent.values().iter().for_each(|(_, live)| counted.add_all(*live));
            if counted != live {
                found.note(Some(id), None, None, Wrong::Values { counted, found: live });
            }
            let deleted = known.tombstones.get(&id).copied().unwrap_or_default();
            tombstones.add_all(deleted);
            let counted = extent.tombstones();
            if counted != deleted {
                found.note(Some(id), None, None, Wrong::Tombstones { counted, found: deleted });
            }
        }
        if is_complete && state.live.values() != values {
            let wrong = Wrong::Values { counted: state.live.values(), found: values };
            found.note(None, None, None, wrong);
        }
        if is_complete && state.live.tombstones() != tombstones {
            let wrong = Wrong::Tombstones { counted: state.live.tombstones(), found: tombstones };
            found.note(None, None, None, wrong);
        }
    }
}

/// Returns extents that match neither the checkpoint nor any write after it.
fn outdated(image: &Image, infos: &[ExtentInfo]) -> Vec<(ExtentId, Wrong)> {
    let then: BTreeMap<_, _> = image.extents.iter().map(|extent| (extent.id, extent)).collect();
    let of_hosts = image.extents.iter().filter(|extent| extent.label.stream == Stream::Host);
    // Hosts' extents get rising epochs as they are opened. So an extent that is older than the
    // newest one of the checkpoint was not opened after the checkpoint.
    let newest = of_hosts.map(|extent| extent.label.epoch).max().unwrap_or(0);
    let was_erased = |info: &ExtentInfo| image.erasing.contains(&(info.id, info.label));
    let mut outdated = Vec::new();
    for info in infos.iter().filter(|info| info.label.stream != Stream::Index) {
        match then.get(&info.id) {
            Some(extent) if extent.label == info.label && info.pages < extent.pages => {
                outdated.push((info.id, Wrong::CutShort));
            }
            Some(extent) if info.label.epoch < extent.label.epoch => {
                outdated.push((info.id, Wrong::OldCopy));
            }
            None if info.label.stream == Stream::Host
                && info.label.epoch < newest
                && !was_erased(info) =>
            {
                outdated.push((info.id, Wrong::OldCopy));
            }
            _ => {}
        }
    }
    outdated
}
