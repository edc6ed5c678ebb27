use crate::drive::Drive;
use crate::format::superblocks;
use crate::layout::{NOTE_BYTES, NOTE_ENTRIES};
use crate::ledger::{ENTRY_BYTES, Entry};
use crate::medium::Medium;
use crate::note::{Footer, Mark};
use crate::origin::Opening;
use crate::superblock::{Copy, Superblock};
use crate::walk::CLASS;
use crate::workers::each;
use base::Buf;
use media::{Error, ExtentId};
use std::fmt;

/// Something beside the pages of a drive that is not as it was written. The drive does without it:
/// each of these is there twice, or can be found in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it lies on the blocks.
    pub byte: u64,
    /// What it is.
    pub part: DamagedPart,
}

/// What of a drive is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedPart {
    /// A superblock cannot be read.
    Superblock,
    /// A superblock is whole, and not the other one, nor that of the start before.
    OtherSuperblock,
    /// A superblock is whole, and from before a start that extents or ledger tell of.
    OldSuperblock,
    /// A mark, which says that an extent is free until a later page has landed.
    Mark(ExtentId),
    /// A footer, which says where an extent ends.
    Footer(ExtentId),
    /// A copy of the ledger's entry, which says what an extent held at least.
    Ledger(ExtentId),
    /// An old copy of an extent that was reset since, and holds nothing any more.
    OldCopy(ExtentId),
}

impl fmt::Display for DamagedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Superblock => f.write_str("the superblock there is damaged; the other is used"),
            Self::OtherSuperblock => {
                f.write_str("the superblock there is not that of the last start; the other is used")
            }
            Self::OldSuperblock => f.write_str(
                "the superblock there is from before the last start, of which the extents tell",
            ),
            Self::Mark(extent) => write!(f, "a mark of extent {} is damaged", extent.0),
            Self::Footer(extent) => write!(f, "the footer of extent {} is damaged", extent.0),
            Self::Ledger(extent) => {
                write!(f, "the ledger's entry of extent {} is damaged; the other is used", extent.0)
            }
            Self::OldCopy(extent) => {
                write!(f, "extent {} is an old copy, and free: nothing of it is used", extent.0)
            }
        }
    }
}

impl Medium {
    /// What is damaged of superblocks, marks, footers and ledger, and old copies of free extents,
    /// in the order of the blocks. What a loss of power may have left is no damage.
    pub async fn damage(&self) -> Result<Vec<Damage>, Error> {
        let mut damage = self.drive.damaged_superblocks().await;
        let drive = self.drive.clone();
        let look = move |extent| {
            let drive = drive.clone();
            async move { drive.damaged_notes(extent).await }
        };
        for found in each(self.drive.layout.extents, look).await {
            damage.extend(found?);
        }
        damage.extend(self.drive.damaged_ledger().await?);
        let outdated = self.drive.state().outdated.clone();
        damage.extend(outdated.into_iter().map(|extent| Damage {
            byte: self.drive.layout.extent_start(extent),
            part: DamagedPart::OldCopy(extent),
        }));
        damage.sort_unstable_by_key(|damage| damage.byte);
        Ok(damage)
    }
}

impl Drive {
    async fn damaged_superblocks(&self) -> Vec<Damage> {
        let mut damage = Vec::new();
        let last = self.last_mount();
        let copies = superblocks(&*self.blocks).await;
        let whole = copies.iter().filter_map(|(_, copy)| match copy {
            Ok(Copy::Whole(superblock)) => Some(*superblock),
            _ => None,
        });
        let newest = whole.max_by_key(|superblock| superblock.mount);
        for (byte, copy) in copies {
            // A start that was cut off between them leaves one of the start before.
            let is_known = |superblock: Superblock| {
                newest.is_some_and(|newest| {
                    Superblock { mount: superblock.mount, ..newest } == superblock
                        && superblock.mount.saturating_add(1) >= newest.mount
                })
            };
            let part = match copy {
                // One that was cut off before them may have left marks.
                Ok(Copy::Whole(superblock)) if superblock.mount.saturating_add(1) < last => {
                    DamagedPart::OldSuperblock
                }
                Ok(Copy::Whole(superblock)) if is_known(superblock) => continue,
                Ok(Copy::Whole(_)) => DamagedPart::OtherSuperblock,
                _ => DamagedPart::Superblock,
            };
            damage.push(Damage { byte, part });
        }
        damage
    }

    async fn damaged_notes(&self, extent: ExtentId) -> Result<Vec<Damage>, Error> {
        let [first, second] = [self.layout.extent_start(extent), self.layout.second_mark(extent)];
        let footer = self.layout.footer(extent);
        let mut damage = Vec::new();
        let mut ended = Opening::default();
        for byte in [first, second] {
            let mark = self.note(byte).await?;
            let mark = mark.as_ref().and_then(Buf::bytes).and_then(Mark::decode);
            match mark.and_then(|mark| mark.ends(self.secret, extent)) {
                Some(opening) => ended = ended.max(opening),
                None => damage.push(Damage { byte, part: DamagedPart::Mark(extent) }),
            }
        }
        let note = self.note(footer).await?;
        let bytes = note.as_ref().and_then(Buf::bytes);
        let is_ours = |footer: &Footer| {
            footer.origin == self.origin(extent, footer.origin.opening)
                && footer.pages <= self.layout.pages()
        };
        // Of an extent that was never ended there is none.
        let expected = self.footer_after(extent, ended);
        let is_fine = bytes.is_some_and(|bytes| {
            let footer = Footer::decode(bytes).filter(is_ours);
            let opening = footer.map(|footer| footer.origin.opening);
            let is_there = opening.is_some() || bytes.iter().all(|byte| *byte == 0);
            is_there && opening >= expected
        });
        if !is_fine {
            damage.push(Damage { byte: footer, part: DamagedPart::Footer(extent) });
        }
        Ok(damage)
    }

    /// The opening of which an extent has a footer, if that or a later one is known to be there:
    /// the opening is not one that a mark has ended. An old copy is told of as a whole.
    fn footer_after(&self, extent: ExtentId, ended: Opening) -> Option<Opening> {
        let known = self.state().ledger.entry(extent).filter(Entry::is_over);
        let opening = known.map(|known| known.opening).filter(|opening| *opening > ended);
        opening.filter(|_| !self.extent(extent).is_outdated())
    }

    async fn damaged_ledger(&self) -> Result<Vec<Damage>, Error> {
        let mut damage = Vec::new();
        for (copy, note) in
            (0..self.layout.ledger_notes()).flat_map(|note| [0, 1].map(|copy| (copy, note)))
        {
            let start = self.layout.ledger_note(copy, note);
            let first = note * NOTE_ENTRIES;
            let Some(entries) = self.copied(copy, note).await? else {
                damage.push(Damage { byte: start, part: DamagedPart::Ledger(ExtentId(first)) });
                continue;
            };
            for (number, _) in (0..).zip(entries).filter(|(_, entry)| entry.is_err()) {
                let byte = start + u64::from(number * ENTRY_BYTES);
                let part = DamagedPart::Ledger(ExtentId(first + number));
                damage.push(Damage { byte, part });
            }
        }
        Ok(damage)
    }

    /// The 4 KiB at `byte`; `None` when they cannot be read.
    async fn note(&self, byte: u64) -> Result<Option<Buf>, Error> {
        match self.read_bytes(byte, NOTE_BYTES, CLASS).await {
            Ok(found) => Ok(Buf::join(&found)),
            Err(Error::UnrecoveredBlock(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
