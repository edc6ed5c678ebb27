use crate::page_ftl::layout::NONE;
use crate::page_ftl::open_page::OpenPage;
use clock::{Class, Group, Promotion, TaskId};
use media::Page;
use std::collections::VecDeque;

/// The frontier that hosts write to.
pub(crate) const HOST: usize = 0;

/// A block that a host or the collector fills.
#[derive(Debug)]
pub(crate) struct Frontier {
    /// [`NONE`] before the first.
    pub(crate) block: u32,
    /// Pages of it that are taken.
    pub(crate) taken: u32,
    pub(crate) open: Option<OpenPage>,
    /// Closed pages that have not landed, in the order of closing.
    pub(crate) unlanded: VecDeque<(u32, Page)>,
    /// The class of the in-flight programs: one class, which keeps their order.
    pub(crate) class: Class,
    /// The collector, waiting for a page to land.
    pub(crate) waiter: Option<(u32, TaskId)>,
}

/// A plane of a die.
#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) free: Vec<u32>,
    pub(crate) frontiers: [Frontier; 2],
    /// True while a task cleans in it.
    pub(crate) cleaning: bool,
    /// Nothing was worth cleaning at the last look.
    pub(crate) barren: bool,
    /// The vote to put cleaning before hosts, when it is urgent.
    pub(crate) promotion: Promotion,
    /// Number of causes that block host writes here.
    pub(crate) blocked: u32,
    /// The last ticket of a newer version of in-flight data that died, where the collector's page
    /// does not name the data.
    pub(crate) died_on_the_way: u64,
    /// Slots of free space that the collector has reserved.
    pub(crate) claimed: u32,
    /// The class in which the collector waits.
    pub(crate) class: Class,
    /// Victims since wear was last evened out.
    pub(crate) since_wear: u32,
    /// Failed pages that have not landed elsewhere.
    pub(crate) rescues: u32,
    /// The collector, waiting until there are none.
    pub(crate) rescue_waiter: Option<TaskId>,
    /// Landed pages that, as far as known, no other page names.
    pub(crate) unnamed: VecDeque<u32>,
}

/// The most pages of a unit that wait to be named: more than are ever in flight together.
const UNNAMED_MAX: usize = 64;

impl Frontier {
    pub(crate) const fn new() -> Self {
        Self {
            block: NONE,
            taken: 0,
            open: None,
            unlanded: VecDeque::new(),
            class: Class::HostWrite,
            waiter: None,
        }
    }

    /// True when `page` is open, or closed and has not landed.
    pub(crate) fn has_on_its_way(&self, page: u32) -> bool {
        self.open.as_ref().is_some_and(|open| open.page == page)
            || self.unlanded.iter().any(|(unlanded, _)| *unlanded == page)
    }

    /// Returns the pages of its block that are not taken.
    #[inline]
    pub(crate) const fn left(&self, pages_per_block: u32) -> u32 {
        if self.block == NONE { 0 } else { pages_per_block - self.taken }
    }
}

impl Unit {
    pub(crate) const fn new(claimed: u32, group: Group) -> Self {
        Self {
            free: Vec::new(),
            frontiers: [Frontier::new(), Frontier::new()],
            cleaning: false,
            barren: false,
            promotion: group.promotion(),
            blocked: 0,
            died_on_the_way: 0,
            claimed,
            class: Class::Gc,
            since_wear: 0,
            rescues: 0,
            rescue_waiter: None,
            unnamed: VecDeque::new(),
        }
    }

    /// Adds the landed `page` to those that wait to be named.
    pub(crate) fn note_unnamed(&mut self, page: u32) {
        if self.unnamed.len() == UNNAMED_MAX {
            self.unnamed.pop_front();
        }
        self.unnamed.push_back(page);
    }

    /// Counts a failed page that has landed elsewhere.
    pub(crate) fn end_rescue(&mut self) {
        self.rescues -= 1;
        if self.rescues == 0
            && let Some(task) = self.rescue_waiter.take()
        {
            clock::wake(task);
        }
    }

    /// Returns how many pages `frontier` can take without an erase.
    #[inline]
    pub(crate) fn room(&self, frontier: usize, pages_per_block: u32) -> u32 {
        let free = u32::try_from(self.free.len()).expect("blocks are counted in 32 bits");
        self.frontiers[frontier].left(pages_per_block) + free * pages_per_block
    }
}
