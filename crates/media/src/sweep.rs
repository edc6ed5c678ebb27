use crate::page::Page;

/// Pages of an extent, one after the other, as [`crate::Media::sweep`] reads them.
#[derive(Debug)]
pub struct Swept {
    /// In the order of their numbers.
    pub pages: Vec<SweptPage>,
    /// From which number on there may be more; `None` behind the last page.
    pub next: Option<u32>,
}

/// One of them.
#[derive(Debug)]
pub struct SweptPage {
    /// Its number in the extent; where it cannot be read, the one that it is likely to have.
    pub number: u32,
    /// From which number on nothing else was found: it may have any from here on.
    pub from: u32,
    /// `None` where a page was written, or should begin, that cannot be read as it is.
    pub page: Option<Page>,
    /// Its data is what the medium was given, as far as the medium itself can tell.
    pub is_whole: bool,
    /// [`Media::read`](crate::Media::read) mends it: of what stands before its data one bit was
    /// turned over.
    pub is_mended: bool,
}
