use crate::counters::Counters;

/// The keys that a step has looked for to read them. The counters of INFO get them when the step
/// has ended, because a step that another writer overtakes executes again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lookups {
    hits: u64,
    misses: u64,
}

impl Lookups {
    pub(crate) fn add(&mut self, is_found: bool) {
        *if is_found { &mut self.hits } else { &mut self.misses } += 1;
    }

    /// Adds them to the counters of INFO.
    pub(crate) fn count(self, counters: &Counters) {
        counters.count_lookups(true, self.hits);
        counters.count_lookups(false, self.misses);
    }
}
