//! Pages that a disk has queued, by extent.

use crate::write::pending::Pending;
use media::{ExtentId, Stream};
use std::collections::VecDeque;
use std::sync::Arc;

/// The pages that a disk has and that have not landed. Each of these extents has a task.
#[derive(Default)]
pub(crate) struct Landers(Vec<Lander>);

struct Lander {
    extent: ExtentId,
    stream: Stream,
    /// In the order of their numbers.
    pages: VecDeque<QueuedPage>,
}

pub(crate) struct QueuedPage {
    pub(crate) page: u32,
    /// The number after its last one, or why the disk did not take it.
    pub(crate) end: Result<u32, media::Error>,
    pub(crate) pending: Arc<Pending>,
}

impl Landers {
    fn find(&mut self, extent: ExtentId) -> Option<&mut Lander> {
        self.0.iter_mut().find(|lander| lander.extent == extent)
    }

    /// Adds a page of `extent`. Returns true for the first one: the caller starts the task.
    pub(crate) fn push(&mut self, extent: ExtentId, stream: Stream, page: QueuedPage) -> bool {
        let Some(lander) = self.find(extent) else {
            self.0.push(Lander { extent, stream, pages: VecDeque::from([page]) });
            return true;
        };
        let is_next = lander.pages.back().is_none_or(|last| last.page < page.page);
        assert!(is_next, "pages of an extent are queued in the order of their numbers");
        lander.pages.push_back(page);
        false
    }

    /// Returns where the next page ends. Forgets the extent if there is none: its task ends.
    pub(crate) fn next_end(&mut self, extent: ExtentId) -> Option<Result<u32, media::Error>> {
        let lander = self.find(extent).expect("it is there until its task ends");
        let end = lander.pages.front().map(|page| page.end);
        if end.is_none() {
            self.0.retain(|lander| lander.extent != extent);
        }
        end
    }

    /// Takes the next page, whose end was returned.
    pub(crate) fn take(&mut self, extent: ExtentId) -> (Stream, QueuedPage) {
        let lander = self.find(extent).expect("it is there until its task ends");
        (lander.stream, lander.pages.pop_front().expect("its end was known"))
    }
}
