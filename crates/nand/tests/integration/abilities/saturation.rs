//! The rate of an array whose planes never lack work, against closed forms, over geometries and
//! times drawn by seeds.

use crate::abilities::rig::{PAGE_BYTES, RATE, on_cells, page, tag, times};
use base::{Nanos, Rng};
use clock::{Class, Stage, join_all, now, sleep_until};
use nand::{BlockId, Cells, DieId, Geometry, Model, Nand, Planes, Ppa, Registers, Timing};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const PLANES: [Planes; 3] = [Planes::Alone, Planes::Together, Planes::Independent];
const REGISTERS: [Registers; 2] = [Registers::Single, Registers::Double];

/// Tasks for each plane: more than it has registers, so that one always waits.
const TASKS: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Read,
    Program,
    Erase,
    Copyback,
}

/// An array and its times.
#[derive(Clone, Copy)]
struct Case {
    geometry: Geometry,
    timing: Timing,
    load: Load,
}

/// Draws a whole number of microseconds from `least` to `most`, plus some nanoseconds.
fn micros(rng: &mut Rng, least: u64, most: u64) -> Nanos {
    Nanos(1_000 * (least + rng.below(most - least + 1)) + rng.below(1_000))
}

fn count(rng: &mut Rng, least: u32, most: u32) -> u32 {
    least + u32::try_from(rng.below(u64::from(most - least + 1))).expect("a small number")
}

fn draw(seed: u64, planes: Planes, registers: Registers, load: Load) -> Case {
    let mut rng = Rng::new(seed);
    let geometry = Geometry {
        channels: count(&mut rng, 1, 2),
        dies_per_channel: count(&mut rng, 1, 8),
        planes_per_die: count(&mut rng, 2, 4),
        blocks_per_plane: 8,
        pages_per_block: 64,
        page_bytes: PAGE_BYTES,
        spare_bytes: 1_024,
    };
    let (read, program) = (micros(&mut rng, 20, 120), micros(&mut rng, 150, 1_500));
    let rate = RATE * (1 + rng.below(40)) / 10;
    let erase = micros(&mut rng, 1_000, 4_000);
    let timing = Timing::uniform(Model::Staged, registers, read, program, erase, rate);
    let cache_busy =
        if registers == Registers::Double { Nanos(rng.below(4_000)) } else { Nanos(0) };
    Case { geometry, timing: Timing { planes, cache_busy, ..timing }, load }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { geometry, timing, load } = self;
        let (level, busy) = (timing.levels.of(0), timing.cache_busy);
        write!(
            f,
            "{load:?} {:?} {:?} {}x{}x{} read {} program {} busy {busy} transfer {} round {}",
            timing.planes,
            timing.registers,
            geometry.channels,
            geometry.dies_per_channel,
            geometry.planes_per_die,
            level.read,
            level.program,
            self.transfer(),
            self.round(),
        )
    }
}

impl Case {
    fn transfer(&self) -> Nanos {
        Nanos::for_bytes(u64::from(PAGE_BYTES), self.timing.channel_bytes_per_second)
    }

    /// Returns the time in which each plane of a die does one operation.
    fn round(&self) -> Nanos {
        let Self { geometry, timing, load } = self;
        let n = u64::from(geometry.planes_per_die);
        let level = timing.levels.of(0);
        let (array, moved) = match load {
            Load::Read => (level.read + timing.cache_busy, self.transfer()),
            Load::Program => (level.program + timing.cache_busy, self.transfer()),
            Load::Erase => (timing.erase, Nanos::ZERO),
            Load::Copyback => (level.read + level.program, Nanos::ZERO),
        };
        let of_die = match (timing.planes, timing.registers) {
            (Planes::Alone, Registers::Single) => times(n, array + moved),
            (Planes::Alone, Registers::Double) => times(n, array),
            (Planes::Together, Registers::Single) => array + times(n, moved),
            (Planes::Independent, Registers::Single) => array + moved,
            (Planes::Together | Planes::Independent, Registers::Double) => array,
        };
        of_die.max(times(n * u64::from(geometry.dies_per_channel), moved))
    }

    /// Runs `body` on an array where block 0 of each plane has one page.
    fn on<T>(&self, body: impl AsyncFnOnce(Arc<Nand>) -> T) -> T {
        let cells = Arc::new(Cells::new(self.geometry, 0, 0, 0));
        on_cells(cells, self.timing, async |nand| {
            for plane in 0..self.geometry.units() {
                let at = self.first(plane);
                nand.program(at, page(), tag(at), Class::HostWrite).await.expect("good flash");
            }
            body(nand).await
        })
    }

    /// Has each plane do `each` operations, and returns how long that takes. Tasks begin within
    /// `spread`, so that planes are out of step at first.
    async fn saturate(&self, nand: &Arc<Nand>, each: u32, spread: Nanos) -> Nanos {
        let planes = self.geometry.units();
        let next: Vec<Rc<Cell<u32>>> = (0..planes).map(|_| Rc::default()).collect();
        let (start, mut rng) = (now(), Rng::new(1));
        let tasks = (0..TASKS * planes).map(|task| {
            let (nand, plane, case) = (nand.clone(), task % planes, *self);
            let next = next[plane as usize].clone();
            let at = start + Nanos(rng.below(spread.0 + 1));
            async move {
                sleep_until(at, Stage::Batch).await;
                while next.get() < each {
                    let number = next.replace(next.get() + 1);
                    case.operate(&nand, plane, number).await;
                }
            }
        });
        join_all(tasks.collect()).await;
        now() - start
    }

    fn run(&self, each: u32) -> Nanos {
        self.on(async |nand| self.saturate(&nand, each, self.round()).await)
    }

    fn first(&self, plane: u32) -> Ppa {
        Ppa { block: self.block(plane, 0), page: 0 }
    }

    /// Block `number` of plane `plane` of the array.
    fn block(&self, plane: u32, number: u32) -> BlockId {
        let Geometry { planes_per_die, .. } = self.geometry;
        let block = number * planes_per_die + plane % planes_per_die;
        BlockId { die: DieId(plane / planes_per_die), block }
    }

    fn ppa(&self, plane: u32, number: u32) -> Ppa {
        let pages = self.geometry.pages_per_block;
        Ppa { block: self.block(plane, 1 + number / pages), page: number % pages }
    }

    async fn operate(&self, nand: &Nand, plane: u32, number: u32) {
        let (first, at) = (self.first(plane), self.ppa(plane, number));
        match self.load {
            Load::Read => {
                nand.read(first, &|_| PAGE_BYTES, Class::HostRead).await.expect("good flash");
            }
            Load::Program => {
                nand.program(at, page(), tag(at), Class::HostWrite).await.expect("good flash");
            }
            Load::Erase => {
                nand.erase(self.block(plane, 7), Class::Gc).await.expect("good flash");
            }
            Load::Copyback => {
                nand.copyback(first, at, tag(at), Class::Gc).await.expect("good flash");
            }
        }
    }

    /// Returns the time of a round after the start, relative to the closed form.
    fn measured(&self) -> f64 {
        let (few, many) = (40, 240);
        let rounds = self.run(many) - self.run(few);
        rounds.as_secs_f64() / times(u64::from(many - few), self.round()).as_secs_f64()
    }
}

#[test]
fn saturated_planes_reach_the_closed_form() {
    let mut missed = Vec::new();
    for load in [Load::Read, Load::Program, Load::Erase, Load::Copyback] {
        for (planes, registers) in PLANES.iter().flat_map(|p| REGISTERS.map(|r| (*p, r))) {
            for seed in 0..12 {
                let case = draw(seed, planes, registers, load);
                let measured = case.measured();
                if (measured - 1.0).abs() > 0.005 {
                    missed.push(format!("{measured:.4} of {case} at seed {seed}"));
                }
            }
        }
    }
    assert!(missed.is_empty(), "rounds take these times the closed form:\n{}", missed.join("\n"));
}

/// Saturates one die of `case`, whose operations are each suspended once by a host's read, and
/// asserts the exact time that `each` operations of each plane take.
fn assert_suspended(case: &Case, each: u32, rng: &mut Rng) {
    let Case { geometry, timing, load } = case;
    let planes = geometry.planes_per_die;
    let level = timing.levels.of(0);
    let (array, moved) = match load {
        Load::Erase => (timing.erase, Nanos::ZERO),
        _ => (level.program + timing.cache_busy, case.transfer()),
    };
    let (groups, members) = match timing.planes {
        Planes::Alone => (each * planes, 1),
        _ => (each, planes),
    };
    let load_time = times(u64::from(members), moved);
    let suspension = timing.program_suspend.expect("it suspends both");
    let longer = suspension + level.read + timing.cache_busy + timing.resume;
    let round = match timing.registers {
        Registers::Single => load_time + array + longer,
        Registers::Double => array + longer,
    };
    let (time, suspends) = case.on(async |nand| {
        let start = now();
        for group in 0..groups {
            let begins = start + load_time + times(u64::from(group), round);
            let at = begins + Nanos(1 + rng.below(array.0 - 1));
            let (nand, first) = (nand.clone(), case.first(group % planes));
            clock::spawn(async move {
                sleep_until(at, Stage::Batch).await;
                nand.probe(first, Class::HostRead).await.expect("good flash");
            });
        }
        (case.saturate(&nand, each, Nanos::ZERO).await, nand.counters().suspends)
    });
    let formula = match timing.registers {
        Registers::Single => times(u64::from(groups), round),
        Registers::Double => load_time + times(u64::from(groups), round),
    };
    assert_eq!(time, formula, "{case}");
    assert_eq!(suspends, u64::from(groups * members), "{case}");
}

#[test]
fn saturated_planes_lose_exactly_the_time_of_suspensions() {
    for (planes, registers) in PLANES[..2].iter().flat_map(|p| REGISTERS.map(|r| (*p, r))) {
        for (seed, load) in (0..12).flat_map(|seed| [(seed, Load::Program), (seed, Load::Erase)]) {
            let mut rng = Rng::new(seed + 100);
            let mut case = draw(seed, planes, registers, load);
            (case.geometry.channels, case.geometry.dies_per_channel) = (1, 1);
            let enter = Some(micros(&mut rng, 1, 20));
            case.timing.program_suspend = enter;
            case.timing.erase_suspend = enter;
            case.timing.resume = micros(&mut rng, 0, 10);
            assert_suspended(&case, 12, &mut rng);
        }
    }
}
