use crate::durability::Durability;
use crate::origin::Opening;
use crate::tail::Tail;
use media::{Ends, Error, ExtentId, ExtentInfo, Label};
use std::collections::BTreeSet;

/// What is known of an extent.
// A line of the processor's cache is fetched with its neighbour.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Extent {
    /// The last one, or how often it was opened before.
    pub(crate) opening: Opening,
    pub(crate) used: Option<Used>,
}

/// An extent that holds something, or is to.
#[derive(Debug)]
pub(crate) struct Used {
    pub(crate) label: Label,
    /// One more than the number of the last unit.
    pub(crate) end: u32,
    /// The numbers of all pages; `None` where the medium has to be asked.
    pub(crate) pages: Option<Vec<u32>>,
    pub(crate) summary: Option<u32>,
    /// Where it goes on, while it is appended to.
    pub(crate) tail: Option<Box<Tail>>,
    /// More of it is known to have been there.
    pub(crate) is_outdated: bool,
}

impl Extent {
    /// Opens the extent, which is free.
    pub(crate) fn open(&mut self, opening: Opening, label: Label) {
        assert!(self.used.is_none(), "only a free extent is opened");
        self.opening = opening;
        let (pages, tail) = (Some(Vec::new()), Some(Box::default()));
        self.used = Some(Used { label, end: 0, pages, summary: None, tail, is_outdated: false });
    }

    /// Returns what is known of it, which is in use.
    pub(crate) fn used(&mut self) -> &mut Used {
        self.used.as_mut().expect("an extent in use")
    }

    /// Returns its tail, if this opening of it is still appended to.
    pub(crate) fn tail(&mut self, opening: Opening) -> Option<&mut Tail> {
        let used = self.used.as_mut().filter(|_| self.opening == opening);
        used?.tail.as_deref_mut()
    }

    /// Returns how the appends to it have ended; see [`media::OnDisk::ends`].
    pub(crate) fn ends(&self, durability: Durability) -> Ends {
        let tail = self.used.as_ref().and_then(|used| used.tail.as_ref());
        let all = Ends { landed: u32::MAX, failed: None };
        tail.map_or(all, |tail| tail.ends(durability))
    }

    /// Returns whether it is in use in this opening, and has ended.
    pub(crate) fn is_over(&self, opening: Opening) -> bool {
        let is_over = self.used.as_ref().is_some_and(|used| used.tail.is_none());
        self.opening == opening && is_over
    }

    /// Returns whether it holds something and is appended to.
    pub(crate) fn is_open(&self) -> bool {
        self.used.as_ref().is_some_and(|used| used.end > 0 && used.tail.is_some())
    }

    /// Returns whether it is in use, and more is known to have been there.
    pub(crate) fn is_outdated(&self) -> bool {
        self.used.as_ref().is_some_and(|used| used.is_outdated)
    }

    /// Returns one more than the number of its last unit that did not fail, if it is in use.
    pub(crate) fn end(&self) -> Option<u32> {
        let used = self.used.as_ref()?;
        Some(used.tail.as_ref().and_then(|tail| tail.failed()).unwrap_or(used.end))
    }

    /// Returns what the medium says of it, which has this `id`, if it is in use.
    pub(crate) fn info(&self, id: ExtentId) -> Option<ExtentInfo> {
        let used = self.used.as_ref()?;
        let (label, summary, pages) = (used.label, used.summary, self.end()?);
        Some(ExtentInfo { id, label, pages, holes: Vec::new(), summary })
    }
}

/// The free extents, each with how often it was opened: the one that was opened least comes first.
#[derive(Debug, Default)]
pub(crate) struct Free(BTreeSet<(u32, ExtentId)>);

impl Free {
    /// Adds an extent.
    pub(crate) fn add(&mut self, opened: u32, id: ExtentId) {
        assert!(self.0.insert((opened, id)), "only an extent in use becomes free");
    }

    /// Takes the first one.
    pub(crate) fn take(&mut self) -> Result<(u32, ExtentId), Error> {
        self.0.pop_first().ok_or(Error::NoFreeExtent)
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
