use crate::geometry::{BlockId, Geometry, Ppa};
use crate::levels::Level;
use crate::timing::{Model, Planes, Retries, Timing};
use base::{Nanos, mix};

const MILLION: u64 = 1_000_000;

/// The speed of each page. A pure function of the seed, the address and the block's erases, so that
/// it does not depend on earlier work of the array.
#[derive(Debug)]
pub(crate) struct Pace {
    /// By page of a block.
    levels: Vec<Level>,
    /// Deviations of the die and of the page at most, in millionths.
    of_die: u64,
    of_page: u64,
    retries: Retries,
    seed: u64,
}

/// The kind of a random draw for an address.
#[derive(Clone, Copy)]
enum Draw {
    Die,
    Page,
    /// Retries, in a block with this many erases.
    Retries(u32),
}

impl Pace {
    pub(crate) fn new(geometry: &Geometry, timing: &Timing) -> Self {
        let most = u64::from(timing.variability_ppm);
        assert!(most < MILLION, "a page that is {most} millionths off may take no time at all");
        Self {
            levels: (0..geometry.pages_per_block).map(|page| timing.levels.of(page)).collect(),
            of_die: most / 2,
            of_page: most - most / 2,
            retries: timing.retries,
            seed: timing.seed,
        }
    }

    /// Returns how long a sense of `ppa` takes.
    #[inline]
    pub(crate) fn read(&self, ppa: Ppa) -> Nanos {
        self.of(ppa, self.levels[ppa.page as usize].read)
    }

    /// True when no sense takes time.
    pub(crate) fn senses_at_once(&self) -> bool {
        self.levels.iter().all(|level| level.read == Nanos::ZERO)
    }

    /// True when no operation of the array waits for another one, since none takes time.
    pub(crate) fn is_instant(timing: &Timing, geometry: &Geometry) -> bool {
        let levels = (0..geometry.pages_per_block).map(|page| timing.levels.of(page));
        timing.model == Model::Staged
            && timing.planes != Planes::Together
            && levels.into_iter().all(|level| level == Level::default())
            && (timing.erase, timing.cache_busy) == (Nanos::ZERO, Nanos::ZERO)
            && timing.channel_bytes_per_second == 0
            && (timing.program_suspend, timing.erase_suspend) == (None, None)
            && timing.retries == Retries::default()
    }

    /// Returns how long a program of `ppa` takes.
    #[inline]
    pub(crate) fn program(&self, ppa: Ppa) -> Nanos {
        self.of(ppa, self.levels[ppa.page as usize].program)
    }

    /// Returns the number of retry senses of `ppa`; `erases` are those of its block.
    #[inline]
    pub(crate) fn retries(&self, ppa: Ppa, erases: impl FnOnce() -> u32) -> u32 {
        if self.retries == Retries::default() {
            return 0;
        }
        let erases = erases();
        let mean = mean_ppm(self.retries, erases);
        let further = u64::from(self.draw(ppa, Draw::Retries(erases), MILLION) < mean % MILLION);
        u32::try_from(mean / MILLION + further).expect("far fewer senses than 2^32")
    }

    #[inline]
    fn of(&self, ppa: Ppa, time: Nanos) -> Nanos {
        if self.of_page == 0 {
            return time;
        }
        let die = self.draw(ppa, Draw::Die, 2 * self.of_die + 1);
        let page = self.draw(ppa, Draw::Page, 2 * self.of_page + 1);
        let share = MILLION - self.of_die - self.of_page + die + page;
        let scaled = u128::from(time.0) * u128::from(share) / u128::from(MILLION);
        Nanos(u64::try_from(scaled).expect("less than twice the time"))
    }

    /// Draws uniformly from `0..bound`.
    fn draw(&self, ppa: Ppa, draw: Draw, bound: u64) -> u64 {
        let Ppa { block: BlockId { die, block }, page } = ppa;
        let die = mix(self.seed ^ mix(u64::from(die.0)));
        let of_page = || mix(die ^ mix(u64::from(block) << 32 | u64::from(page)));
        let bits = match draw {
            Draw::Die => die,
            Draw::Page => of_page(),
            Draw::Retries(erases) => mix(of_page() ^ mix(u64::from(erases))),
        };
        ((u128::from(bits) * u128::from(bound)) >> 64) as u64
    }
}

/// Returns the mean number of retries of a million reads of a block erased `erases` times.
fn mean_ppm(retries: Retries, erases: u32) -> u64 {
    let Retries { fresh_ppm, worn_ppm, endurance } = retries;
    let more = i128::from(worn_ppm) - i128::from(fresh_ppm);
    let worn = more * i128::from(erases) / i128::from(endurance.max(1));
    let worn = if endurance == 0 { 0 } else { worn };
    u64::try_from((i128::from(fresh_ppm) + worn).max(0)).expect("a product of 32 bits each")
}
