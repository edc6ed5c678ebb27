//! FEMU-6a: latency of reads while garbage collection blocks the controller, a channel or a plane.

mod black_box;

use super::criteria;
use super::finding::{Finding, Row};
use super::run::Run;
use crate::number::grouped;
use crate::output::Failure;
use crate::plot::{Axis, Mark, Panel, Scale, Series, Unit};
use base::human_bytes;
use black_box::{BURST_WRITES, BURSTS, PERIOD, READS_PER_SECOND, SEED, Use, Went};
use node::Profile;
use node::profile::GcBlocking;
use serde::Deserialize;

const SCHEMES: [(&str, GcBlocking); 3] = [
    ("controller", GcBlocking::Controller),
    ("channel", GcBlocking::Channel),
    ("plane", GcBlocking::Plane),
];

/// Quantiles of the rows; the criterion is about the last two.
const QUANTILES: [(f64, &str); 3] = [(0.5, "median"), (0.99, "p99"), (0.999, "p99.9")];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bounds {
    criterion: String,
    apart_min: f64,
}

/// Result of one scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    /// Latencies in nanoseconds at [`QUANTILES`].
    latencies: [f64; QUANTILES.len()],
    host_writes: u64,
    moved_pages: u64,
}

pub(super) fn run(run: Run) -> Result<Finding, Failure> {
    let bounds: Bounds = criteria::bounds("FEMU-6a");
    let used = if run.is_control { Use::Little } else { Use::Steady };
    let profile = black_box::profile(GcBlocking::Nothing);
    let mut bar = run.progress.bar("measuring", crate::progress::Unit::Count);
    let mut wents = Vec::new();
    for (done, (_, blocking)) in (1..).zip(SCHEMES) {
        wents.push(black_box::measure(blocking, used)?);
        bar.set(done, SCHEMES.len() as u64);
    }
    let figures: Vec<Figures> = wents.iter().map(Figures::new).collect();
    let figures: [Figures; 3] = figures.try_into().expect("there are three schemes");
    Ok(Finding {
        setup: setup(&profile, used),
        assumptions: assumptions(&profile),
        rows: rows(&figures),
        holds: bounds.holds(&figures),
        beside: None,
        criterion: bounds.criterion,
        panels: vec![panel(&wents)],
    })
}

impl Figures {
    fn new(went: &Went) -> Self {
        Self {
            latencies: QUANTILES.map(|(quantile, _)| went.latency_ns(quantile)),
            host_writes: went.host_writes,
            moved_pages: went.moved_pages,
        }
    }
}

impl Bounds {
    fn holds(&self, figures: &[Figures; 3]) -> bool {
        let is_same =
            |of: fn(&Figures) -> u64| figures.iter().all(|one| of(one) == of(&figures[0]));
        let is_apart = |quantile: usize| {
            let ratios = ratios(figures, quantile);
            ratios.iter().all(|ratio| *ratio >= 1.0 + self.apart_min)
        };
        is_same(|one| one.host_writes)
            && is_same(|one| one.moved_pages)
            && is_apart(1)
            && is_apart(2)
    }
}

/// Ratios of controller to channel and of channel to plane at one of [`QUANTILES`].
fn ratios([controller, channel, plane]: &[Figures; 3], quantile: usize) -> [f64; 2] {
    let ratio =
        |above: &Figures, below: &Figures| above.latencies[quantile] / below.latencies[quantile];
    [ratio(controller, channel), ratio(channel, plane)]
}

const OWN_ASSUMPTIONS: [&str; 5] = [
    "the paper's figure is a plot; it states no device, no load and no numbers: controller worst, \
     plane best",
    "writes come in bursts, as when a host writes back what it has gathered: all of a burst have \
     arrived before cleaning begins, and cleaning is over before the next burst. So what lives in \
     a victim does not depend on how long cleaning takes, and all schemes move the same pages",
    "the time between bursts is what cleaning 14 blocks one after the other takes, each with two \
     thirds of its pages alive, while a burst needs three on average; reads come at random \
     moments, whatever is outstanding",
    "a read's latency is from its arrival; the flash is the same at the start of all schemes: \
     written in order and then overwritten at random until write amplification was steady",
    "while the controller or a channel is blocked reads wait for the end of the block's cleaning; \
     in a plane, for the page that is being copied or the erase",
];

fn assumptions(profile: &Profile) -> Vec<String> {
    let of_profile = profile.assumptions().iter().map(|assumption| {
        format!("{}: {}", assumption.key, assumption.sentence.trim_end_matches('.'))
    });
    of_profile.chain(OWN_ASSUMPTIONS.iter().map(|&own| own.to_owned())).collect()
}

fn setup(profile: &Profile, used: Use) -> String {
    let nand = &profile.nand;
    let setup = format!(
        "profile {}: {} channels x {} dies, {} blocks of {} pages of {} each, read {}, program {}, \
         erase {}; {} bursts of {} random overwrites of a page, {} apart, beside {} random reads a \
         second, seed {SEED}, virtual time",
        profile.name,
        nand.channels,
        nand.dies_per_channel,
        nand.blocks_per_plane,
        nand.pages_per_block,
        human_bytes(nand.page_bytes.into()),
        nand.levels.read[0],
        nand.levels.program[0],
        nand.erase,
        BURSTS,
        BURST_WRITES,
        PERIOD,
        grouped(READS_PER_SECOND),
    );
    match used {
        Use::Steady => setup,
        Use::Little => setup + "; control: a quarter of it is used, so that nothing is cleaned",
    }
}

fn rows(figures: &[Figures; 3]) -> Vec<Row> {
    let row = |label: String, ours, unit| Row { label, paper: None, ours, unit };
    let named = || SCHEMES.iter().zip(figures);
    let latencies = QUANTILES.iter().enumerate().flat_map(|(at, (_, quantile))| {
        named().map(move |((name, _), one)| {
            row(format!("{name} blocked: {quantile} of reads"), one.latencies[at] / 1e3, "us")
        })
    });
    let ratios = [1, 2].into_iter().flat_map(|at| {
        let [first, second] = ratios(figures, at);
        let (_, quantile) = QUANTILES[at];
        [
            row(format!("{quantile}: controller over channel"), first, "times"),
            row(format!("{quantile}: channel over plane"), second, "times"),
        ]
    });
    let counts = named().flat_map(|((name, _), one)| {
        [
            row(format!("{name} blocked: host writes"), float(one.host_writes), "pages"),
            row(format!("{name} blocked: moved"), float(one.moved_pages), "pages"),
        ]
    });
    latencies.chain(ratios).chain(counts).collect()
}

/// Points from one nine to the next.
const POINTS_PER_NINE: u32 = 8;

fn panel(wents: &[Went]) -> Panel {
    let series = SCHEMES.iter().zip(wents).map(|((name, _), went)| {
        let nines = (1..=POINTS_PER_NINE * 4).map(|at| f64::from(at) / f64::from(POINTS_PER_NINE));
        let quantiles = nines.map(|nines| 1.0 - 10_f64.powf(-nines));
        Series {
            name: format!("{name} blocked"),
            mark: Mark::Line,
            points: quantiles.map(|quantile| (quantile, went.latency_ns(quantile))).collect(),
        }
    });
    Panel {
        title: String::new(),
        x: Axis { label: "share of reads".to_owned(), scale: Scale::Nines, unit: Unit::Plain },
        y: Axis { label: "latency of a read".to_owned(), scale: Scale::Log10, unit: Unit::Nanos },
        series: series.collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of pages are far below 2^53")]
const fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { criterion: String::new(), apart_min: 0.25 };

    /// Exactly at the bounds: each a quarter above the next.
    const AT: [Figures; 3] = {
        const fn figures(latency: f64) -> Figures {
            Figures { latencies: [1.0, latency, latency], host_writes: 5, moved_pages: 7 }
        }
        [figures(100.0), figures(80.0), figures(64.0)]
    };

    #[test]
    fn latencies_at_the_bounds_hold_and_beyond_any_one_they_do_not() {
        assert!(BOUNDS.holds(&AT));
        let changed = |change: fn(&mut [Figures; 3])| {
            let mut figures = AT;
            change(&mut figures);
            BOUNDS.holds(&figures)
        };
        for quantile in [1, 2] {
            let mut figures = AT;
            figures[0].latencies[quantile] = 99.9;
            assert!(!BOUNDS.holds(&figures), "controller too close to channel");
            let mut figures = AT;
            figures[2].latencies[quantile] = 64.1;
            assert!(!BOUNDS.holds(&figures), "plane too close to channel");
        }
        assert!(changed(|figures| figures[2].latencies[0] = 9.0), "the median, of any");
        assert!(!changed(|figures| figures[1].host_writes = 4), "fewer writes");
        assert!(!changed(|figures| figures[2].moved_pages = 8), "more moves");
    }

    #[test]
    fn the_bounds_are_those_of_the_file() {
        assert!(criteria::bounds::<Bounds>("FEMU-6a").holds(&AT));
        let (from, to) = ("apart_min = 0.20", "apart_min = 0.26");
        assert!(!criteria::changed::<Bounds>("FEMU-6a", from, to).holds(&AT));
    }
}
