use crate::durability::Durability;
use crate::origin::Opening;
use crate::tail::Tail;
use media::{Ends, Error, ExtentId, ExtentInfo, Label};
use std::collections::BTreeSet;

/// What is known of all extents.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    all: Vec<Extent>,
    /// How often each free extent was opened, so that the least used one comes first.
    free: BTreeSet<(u32, ExtentId)>,
}

/// What is known of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extent {
    /// The last one, or how often it was opened before.
    pub(crate) opening: Opening,
    pub(crate) used: Option<Used>,
}

/// An extent that holds something, or is to.
#[derive(Clone, Debug)]
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

impl Extents {
    /// Those that were found, in order.
    pub(crate) fn found(all: Vec<Extent>) -> Self {
        let free = (0..).zip(&all).filter(|(_, extent)| extent.used.is_none());
        let free = free.map(|(id, extent)| (extent.opening.count, ExtentId(id))).collect();
        Self { all, free }
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Opens the free extent that was least often opened.
    pub(crate) fn open(&mut self, mount: u32, label: Label) -> Result<ExtentId, Error> {
        let (count, id) = self.free.pop_first().ok_or(Error::NoFreeExtent)?;
        let extent = &mut self.all[id.0 as usize];
        extent.opening = Opening { mount, count: count.wrapping_add(1) };
        let (pages, tail) = (Some(Vec::new()), Some(Box::default()));
        extent.used = Some(Used { label, end: 0, pages, summary: None, tail, is_outdated: false });
        Ok(id)
    }

    /// Makes an extent free.
    pub(crate) fn release(&mut self, id: ExtentId) {
        let extent = &mut self.all[id.0 as usize];
        assert!(extent.used.take().is_some(), "only an extent in use is reset");
        self.free.insert((extent.opening.count, id));
    }

    /// The last opening of an extent.
    pub(crate) fn opening(&self, id: ExtentId) -> Opening {
        self.all[id.0 as usize].opening
    }

    /// Of the openings of all extents, the last mount.
    pub(crate) fn last_mount(&self) -> u32 {
        self.all.iter().map(|extent| extent.opening.mount).max().unwrap_or_default()
    }

    /// The opening of an extent in use, and what is known of it.
    pub(crate) fn used(&mut self, id: ExtentId) -> (Opening, &mut Used) {
        let Extent { opening, used } = &mut self.all[id.0 as usize];
        (*opening, used.as_mut().unwrap_or_else(|| panic!("extent {} is not in use", id.0)))
    }

    /// The tail of an extent, if this opening of it is still appended to.
    pub(crate) fn tail(&mut self, id: ExtentId, opening: Opening) -> Option<&mut Tail> {
        let extent = &mut self.all[id.0 as usize];
        let used = extent.used.as_mut().filter(|_| extent.opening == opening);
        used?.tail.as_deref_mut()
    }

    /// Returns how the appends to an extent have ended; see [`media::OnDisk::ends`].
    pub(crate) fn ends(&self, id: ExtentId, durability: Durability) -> Ends {
        let used = self.all[id.0 as usize].used.as_ref();
        let tail = used.and_then(|used| used.tail.as_ref());
        let all = Ends { landed: u32::MAX, failed: None };
        tail.map_or(all, |tail| tail.ends(durability))
    }

    /// Returns whether an extent is in use in this opening, and has ended.
    pub(crate) fn is_over(&self, id: ExtentId, opening: Opening) -> bool {
        let extent = &self.all[id.0 as usize];
        let is_over = extent.used.as_ref().is_some_and(|used| used.tail.is_none());
        extent.opening == opening && is_over
    }

    /// Calls `change` with the tail of each extent that is appended to. Returns these extents.
    pub(crate) fn each_tail(
        &mut self,
        mut change: impl FnMut(&mut Tail),
    ) -> Vec<(ExtentId, Opening)> {
        let mut changed = Vec::new();
        for (id, extent) in (0..).zip(&mut self.all) {
            if let Some(tail) = extent.used.as_mut().and_then(|used| used.tail.as_deref_mut()) {
                change(tail);
                changed.push((ExtentId(id), extent.opening));
            }
        }
        changed
    }

    /// Extents that hold something and are appended to.
    pub(crate) fn open_ones(&self) -> Vec<ExtentId> {
        let is_open = |used: &Used| used.end > 0 && used.tail.is_some();
        let open =
            (0..).zip(&self.all).filter(|(_, extent)| extent.used.as_ref().is_some_and(is_open));
        open.map(|(id, _)| ExtentId(id)).collect()
    }

    /// Extents in use of which more is known to have been there.
    pub(crate) fn outdated(&self) -> Vec<ExtentId> {
        let ids = (0..).zip(&self.all).map(|(id, _)| ExtentId(id));
        ids.filter(|id| self.is_outdated(*id)).collect()
    }

    /// Whether more is known to have been in an extent in use.
    pub(crate) fn is_outdated(&self, id: ExtentId) -> bool {
        let used = self.all[id.0 as usize].used.as_ref();
        used.is_some_and(|used| used.is_outdated)
    }

    pub(crate) fn infos(&self) -> Vec<ExtentInfo> {
        let used = (0..).zip(&self.all).filter_map(|(id, extent)| {
            let used = extent.used.as_ref()?;
            let end = used.tail.as_ref().and_then(|tail| tail.failed()).unwrap_or(used.end);
            Some(ExtentInfo {
                id: ExtentId(id),
                label: used.label,
                pages: end,
                holes: Vec::new(),
                summary: used.summary,
            })
        });
        used.collect()
    }
}
