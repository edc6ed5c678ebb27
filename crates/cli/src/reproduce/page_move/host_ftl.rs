//! The translation layer that the host runs on zones.

use std::collections::VecDeque;

/// A page of a zone: zone number times pages per zone, plus the page's number.
pub(super) type Place = u32;

/// No page, or no place.
const NONE: u32 = u32::MAX;

/// Space and parameters of a host's translation layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) zones: u32,
    pub(super) pages_per_zone: u32,
    /// Pages of the host's data.
    pub(super) pages: u32,
    /// Zones for moved pages, filled in parallel.
    pub(super) lanes: u32,
    /// Cleaning starts at this many free zones, and ends above it.
    pub(super) free_min: u32,
    /// Pages of a batch: moved from one victim to consecutive pages in one zone.
    pub(super) batch: u32,
}

/// Pages that are moved together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// Index of the zone for moved pages that they go to.
    pub(super) lane: u32,
    pub(super) sources: Vec<Place>,
    /// Place of the first; the others follow it.
    pub(super) to: Place,
}

/// Cleaning that a write causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaning {
    pub(super) batch: Option<Batch>,
    /// A zone without live pages, to be reset.
    pub(super) cleaned: Option<u32>,
}

/// A page map. The host's pages are stored in zones. When free zones run low, the layer cleans the
/// zone with the fewest live pages, in proportion to the writes.
///
/// The layer decides at once and in the order of the host's requests, independently of the device's
/// progress. So equal requests cause equal moves at any speed.
#[derive(Clone, Debug)]
pub(super) struct HostFtl {
    shape: Shape,
    /// Place of each page.
    map: Vec<Place>,
    /// Live page at each place.
    owners: Vec<u32>,
    zones: Vec<Zone>,
    free: VecDeque<u32>,
    /// Current zone for the host's pages.
    host: u32,
    /// Current zones for moved pages.
    lanes: Vec<u32>,
    next_lane: u32,
    victim: Option<Victim>,
    moved: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Zone {
    written: u32,
    living: u32,
}

/// A zone that is being cleaned.
#[derive(Clone, Copy, Debug)]
struct Victim {
    zone: u32,
    /// Pages before this one have been moved, or were dead.
    next: u32,
    /// Live pages at the start: `living` pages are moved for each `pages_per_zone - living` that
    /// the host writes.
    living: u32,
    /// Moves that are due, times the pages that the host writes for them.
    due: i64,
}

impl HostFtl {
    /// Returns a layer on empty zones.
    pub(super) fn new(shape: Shape) -> Self {
        let mut free: VecDeque<u32> = (0..shape.zones).collect();
        let mut take = || free.pop_front().expect("there are more zones than open ones");
        let host = take();
        let lanes = (0..shape.lanes).map(|_| take()).collect();
        let places = (shape.zones * shape.pages_per_zone) as usize;
        Self {
            shape,
            map: vec![NONE; shape.pages as usize],
            owners: vec![NONE; places],
            zones: vec![Zone::default(); shape.zones as usize],
            free,
            host,
            lanes,
            next_lane: 0,
            victim: None,
            moved: 0,
        }
    }

    pub(super) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the place of `page`, which was written.
    pub(super) fn place(&self, page: u32) -> Place {
        self.map[page as usize]
    }

    /// Returns the number of used pages of `zone`.
    pub(super) fn written(&self, zone: u32) -> u32 {
        self.zones[zone as usize].written
    }

    /// Pages moved so far.
    pub(super) const fn moved(&self) -> u64 {
        self.moved
    }

    pub(super) const fn zone_of(&self, place: Place) -> u32 {
        place / self.shape.pages_per_zone
    }

    /// Assigns `page` a new place: the next one of the host's zone.
    pub(super) fn write(&mut self, page: u32) -> Place {
        if self.is_full(self.host) {
            self.host = self.take_free();
        }
        let before = self.map[page as usize];
        if before != NONE {
            self.kill(before);
        }
        self.put(self.host, page)
    }

    /// Returns the cleaning that a write causes.
    pub(super) fn clean(&mut self) -> Cleaning {
        if self.victim.is_none() && self.free.len() <= self.shape.free_min as usize {
            self.victim = Some(self.choose());
        }
        let Some(victim) = &mut self.victim else { return Cleaning::default() };
        victim.due += i64::from(victim.living);
        let Victim { zone, living, due, .. } = *victim;
        // Moves run ahead of their writes: zones are free before they are needed.
        let is_due = due > 0 && self.zones[zone as usize].living > 0;
        let batch = is_due.then(|| self.next_batch());
        if let (Some(victim), Some(batch)) = (&mut self.victim, &batch) {
            let gained = i64::from(self.shape.pages_per_zone - living);
            let done = i64::try_from(batch.sources.len()).expect("a batch has few pages");
            victim.due -= done * gained;
        }
        let is_clean = self.zones[zone as usize].living == 0;
        if is_clean {
            self.victim = None;
            self.zones[zone as usize] = Zone::default();
            self.free.push_back(zone);
        }
        Cleaning { batch, cleaned: is_clean.then_some(zone) }
    }

    /// Returns the full zone with the fewest live pages.
    fn choose(&self) -> Victim {
        let full = (0..self.shape.zones).filter(|zone| self.is_full(*zone));
        let least = full.min_by_key(|zone| self.zones[*zone as usize].living);
        let zone = least.expect("zones are full when free ones are low");
        let living = self.zones[zone as usize].living;
        assert!(living < self.shape.pages_per_zone, "the host has fewer pages than zones hold");
        Victim { zone, next: 0, living, due: 0 }
    }

    /// Returns the victim's next live pages, as many as a batch has and the lane's zone has room
    /// for.
    fn next_batch(&mut self) -> Batch {
        let lane = self.next_lane;
        self.next_lane = (lane + 1) % self.shape.lanes;
        if self.is_full(self.lanes[lane as usize]) {
            self.lanes[lane as usize] = self.take_free();
        }
        let zone = self.lanes[lane as usize];
        let to = self.next_place(zone);
        let room = self.shape.pages_per_zone - self.written(zone);
        let sources: Vec<Place> =
            (0..self.shape.batch.min(room)).map_while(|_| self.next_living()).collect();
        for &source in &sources {
            let page = self.owners[source as usize];
            self.kill(source);
            self.put(zone, page);
        }
        self.moved += sources.len() as u64;
        Batch { lane, sources, to }
    }

    /// Returns the victim's next live page.
    fn next_living(&mut self) -> Option<Place> {
        let victim = self.victim.as_mut().expect("a zone is being cleaned");
        let first = victim.zone * self.shape.pages_per_zone;
        let rest = first + victim.next..first + self.shape.pages_per_zone;
        let found = rest.into_iter().find(|place| self.owners[*place as usize] != NONE)?;
        victim.next = found - first + 1;
        Some(found)
    }

    fn take_free(&mut self) -> u32 {
        self.free.pop_front().expect("cleaning keeps zones free")
    }

    fn is_full(&self, zone: u32) -> bool {
        self.written(zone) == self.shape.pages_per_zone
    }

    fn next_place(&self, zone: u32) -> Place {
        zone * self.shape.pages_per_zone + self.written(zone)
    }

    fn put(&mut self, zone: u32, page: u32) -> Place {
        let place = self.next_place(zone);
        let zone = &mut self.zones[zone as usize];
        (zone.written, zone.living) = (zone.written + 1, zone.living + 1);
        self.owners[place as usize] = page;
        self.map[page as usize] = place;
        place
    }

    fn kill(&mut self, place: Place) {
        let zone = self.zone_of(place);
        self.owners[place as usize] = NONE;
        self.zones[zone as usize].living -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    const SHAPE: Shape =
        Shape { zones: 14, pages_per_zone: 32, pages: 200, lanes: 2, free_min: 3, batch: 4 };

    /// A model of the data: page and version at each place.
    struct Model {
        content: Vec<Option<(u32, u32)>>,
        versions: Vec<u32>,
    }

    impl Model {
        fn write(&mut self, ftl: &mut HostFtl, page: u32) {
            self.versions[page as usize] += 1;
            let place = ftl.write(page) as usize;
            assert_eq!(self.content[place], None, "zones are written once");
            self.content[place] = Some((page, self.versions[page as usize]));
            let Cleaning { batch, cleaned } = ftl.clean();
            if let Some(Batch { sources, to, .. }) = batch {
                assert!(sources.len() <= SHAPE.batch as usize);
                for (source, to) in sources.iter().zip(to as usize..) {
                    assert_eq!(self.content[to], None, "zones are written once");
                    self.content[to] = self.content[*source as usize];
                }
            }
            if let Some(zone) = cleaned {
                let first = (zone * SHAPE.pages_per_zone) as usize;
                self.content[first..first + SHAPE.pages_per_zone as usize].fill(None);
            }
        }
    }

    #[test]
    fn every_page_is_found_in_its_last_version_while_zones_are_cleaned() {
        let mut ftl = HostFtl::new(SHAPE);
        let places = (SHAPE.zones * SHAPE.pages_per_zone) as usize;
        let mut model = Model { content: vec![None; places], versions: vec![0; 200] };
        (0..200).for_each(|page| model.write(&mut ftl, page));
        let mut rng = Rng::new(1);
        for _ in 0..5_000 {
            model.write(&mut ftl, u32::try_from(rng.below(200)).unwrap());
            let page = u32::try_from(rng.below(200)).unwrap();
            let expected = (page, model.versions[page as usize]);
            assert_eq!(model.content[ftl.place(page) as usize], Some(expected));
        }
        assert!(ftl.moved() > 1_000, "{} pages were moved", ftl.moved());
        assert!(!ftl.free.is_empty(), "zones stay free");
    }

    #[test]
    fn the_victim_is_the_full_zone_with_the_least_that_lives() {
        let mut ftl = HostFtl::new(SHAPE);
        (0..200).for_each(|page| _ = ftl.write(page));
        // Zones 0 and 3 to 7 have them, the last zone 8. Zone 4 loses most.
        (30..70).for_each(|page| _ = ftl.write(page));
        let living = |zone: usize| ftl.zones[zone].living;
        assert_eq!([living(0), living(3), living(4), living(5)], [30, 0, 26, 32]);
        assert_eq!(ftl.choose().zone, 3);
    }

    #[test]
    fn moves_keep_step_with_writes() {
        let mut ftl = HostFtl::new(SHAPE);
        let mut rng = Rng::new(2);
        (0..200).for_each(|page| _ = ftl.write(page));
        let (mut cleaned, mut writes, mut moved) = (NONE, 0, 0);
        for _ in 0..5_000 {
            ftl.write(u32::try_from(rng.below(200)).unwrap());
            let batch = ftl.clean().batch;
            let Some(Victim { zone, living, .. }) = ftl.victim else { continue };
            if cleaned != zone {
                (cleaned, writes, moved) = (zone, 0, 0);
            }
            writes += 1;
            moved += batch.map_or(0, |batch| batch.sources.len());
            // In proportion, ahead by less than a batch.
            let (due, gained) = (writes * living as usize, (32 - living) as usize);
            assert!(due <= moved * gained && moved * gained < due + 4 * gained);
        }
        assert!(ftl.moved() > 1_000, "{} pages were moved", ftl.moved());
    }
}
