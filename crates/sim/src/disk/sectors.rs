use super::left::Left;
use base::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What a sector holds; `None` is zeros.
type Content = Option<Arc<[u8]>>;

/// What the sectors of a disk hold, and what they may hold after a loss of power.
#[derive(Clone, Debug)]
pub(super) struct Sectors {
    sector_bytes: usize,
    /// What each holds for good.
    lasting: Vec<Content>,
    /// What was written since, each with the number of its end, in order.
    since: BTreeMap<usize, Vec<(u64, Content)>>,
    /// Writes that have begun and not ended, by number.
    under_way: BTreeMap<u64, Change>,
    /// Ends of writes so far.
    ends: u64,
}

/// Bytes that are put somewhere.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) start: usize,
    pub(super) data: Arc<[u8]>,
}

impl Sectors {
    pub(super) fn new(bytes: usize, sector_bytes: u32) -> Self {
        let sector_bytes = sector_bytes as usize;
        let lasting = vec![None; bytes.div_ceil(sector_bytes)];
        let (since, under_way) = (BTreeMap::new(), BTreeMap::new());
        Self { sector_bytes, lasting, since, under_way, ends: 0 }
    }

    /// What a sector holds while there is power.
    fn content(&self, sector: usize) -> &Content {
        let newest = self.since.get(&sector).and_then(|since| since.last());
        newest.map_or(&self.lasting[sector], |(_, content)| content)
    }

    /// Fills `bytes`, which begin at byte `start`.
    pub(super) fn read(&self, start: usize, bytes: &mut [u8]) {
        for (sector, of_sector, of_bytes) in self.parts(start, bytes.len()) {
            match self.content(sector) {
                Some(content) => bytes[of_bytes].copy_from_slice(&content[of_sector]),
                None => bytes[of_bytes].fill(0),
            }
        }
    }

    /// The sectors of `len` bytes from `start`: which part of each is which part of them.
    fn parts(
        &self,
        start: usize,
        len: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> + use<> {
        let (end, size) = (start + len, self.sector_bytes);
        (start / size..end.div_ceil(size)).map(move |sector| {
            let (from, to) = (start.max(sector * size), end.min((sector + 1) * size));
            (sector, from - sector * size..to - sector * size, from - start..to - start)
        })
    }

    /// Begins a write. After a loss of power any part of it may be there.
    pub(super) fn begin(&mut self, number: u64, change: Change) {
        self.under_way.insert(number, change);
    }

    /// It has ended, with those of its sectors that `is_done` says.
    pub(super) fn end(&mut self, number: u64, mut is_done: impl FnMut() -> bool) {
        let Change { start, data } = self.under_way.remove(&number).expect("it was under way");
        self.ends += 1;
        for (sector, of_sector, of_data) in self.parts(start, data.len()) {
            if is_done() {
                let content = self.changed(self.content(sector), of_sector, &data[of_data]);
                self.since.entry(sector).or_default().push((self.ends, Some(content)));
            }
        }
    }

    fn changed(&self, content: &Content, at: Range<usize>, data: &[u8]) -> Arc<[u8]> {
        if at.len() == self.sector_bytes {
            return Arc::from(data);
        }
        let mut bytes = match content {
            Some(content) => content.to_vec(),
            None => vec![0; self.sector_bytes],
        };
        bytes[at].copy_from_slice(data);
        Arc::from(bytes)
    }

    /// A flush that begins now will cover writes up to this number.
    pub(super) const fn ends(&self) -> u64 {
        self.ends
    }

    /// A flush has ended that covers writes up to number `ends`.
    pub(super) fn flush(&mut self, ends: u64) {
        let lasting = &mut self.lasting;
        self.since.retain(|sector, since| {
            let covered = since.partition_point(|(end, _)| *end <= ends);
            if let Some((_, content)) = since.drain(..covered).next_back() {
                lasting[*sector] = content;
            }
            !since.is_empty()
        });
    }

    /// What it is when those are gone who wrote.
    pub(super) fn killed(&self, rng: &mut Rng) -> Self {
        let mut after = self.clone();
        for number in self.under_way.keys() {
            after.end(*number, || rng.below(2) == 0);
        }
        after
    }

    /// What a loss of power leaves.
    pub(super) fn cut(&self, left: Left, rng: &mut Rng) -> Self {
        let mut after = Self { since: BTreeMap::new(), under_way: BTreeMap::new(), ..self.clone() };
        for (sector, since) in &self.since {
            let chosen = match left {
                Left::Nothing => 0,
                Left::All => since.len(),
                Left::Newest => since.len() * index(rng.below(2)),
                Left::Any => index(rng.below(since.len() as u64 + 1)),
            };
            if let Some((_, content)) = chosen.checked_sub(1).map(|at| &since[at]) {
                after.lasting[*sector].clone_from(content);
            }
        }
        // What was under way has not been answered: any part may be there, but where nothing is.
        for Change { start, data } in self.under_way.values().filter(|_| left != Left::Nothing) {
            for (sector, of_sector, of_data) in self.parts(*start, data.len()) {
                if rng.below(2) == 0 {
                    let content = self.changed(&after.lasting[sector], of_sector, &data[of_data]);
                    after.lasting[sector] = Some(content);
                }
            }
        }
        after
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a small number")
}
