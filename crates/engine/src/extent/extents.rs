use super::Extent;
use media::ExtentId;
use serde::{Deserialize, Serialize};

/// The extents in use, by id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Extents(Vec<Option<Extent>>);

impl Extents {
    pub(crate) fn insert(&mut self, id: ExtentId, extent: Extent) {
        let at = id.0 as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        assert!(self.0[at].is_none(), "an extent is opened when it is free");
        self.0[at] = Some(extent);
    }

    /// Takes an extent without needed records out of use.
    pub(crate) fn remove(&mut self, id: ExtentId) -> Extent {
        let extent = self.0[id.0 as usize].take().expect("an extent in use is reset once");
        extent.check_unused();
        extent
    }

    #[inline]
    pub(crate) fn get(&mut self, id: ExtentId) -> &mut Extent {
        self.0[id.0 as usize].as_mut().expect("the index names only extents in use")
    }

    /// Returns the extent if it is in use: it may have been reset.
    pub(crate) fn find(&self, id: ExtentId) -> Option<&Extent> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        let extents = self.0.iter().zip(0..);
        extents.filter_map(|(extent, id)| extent.as_ref().map(|extent| (ExtentId(id), extent)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Extent> {
        self.0.iter_mut().flatten()
    }
}
