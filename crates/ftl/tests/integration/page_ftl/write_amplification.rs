//! Write amplification under uniform random overwrites against the formulas of the literature.

use crate::page_ftl::content::Content;
use crate::page_ftl::rig::{cells, config, one_plane};
use base::{Nanos, Rng};
use clock::{Class, Stage, sleep};
use ftl::{Frontier, PageFtlCounts};
use media::{Blocks, Victims};

const PAGES: u32 = 64;
const BLOCKS: u32 = 256;
/// Times that everything is overwritten before it is measured, and while it is.
const WARM_UP: u64 = 4;
const MEASURED: u64 = 6;

fn to_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).expect("runs are short"))
}

/// Free blocks of the plane at which cleaning starts.
const FREE_BLOCKS: u32 = 3;

/// Logical blocks by blocks of flash that can hold them: some are kept free, and one is being
/// filled.
fn fill(blocks: u64) -> f64 {
    to_f64(blocks) / f64::from((BLOCKS - FREE_BLOCKS - 1) * PAGES)
}

/// The written over the wanted, when the collector is never under way while the host writes.
fn measured(blocks: u64, victims: Victims) -> f64 {
    let cells = cells(one_plane(BLOCKS, PAGES));
    let mut setup = config(&cells);
    setup.config.blocks = blocks;
    setup.config.victims = victims;
    setup.config.frontier = Frontier::Shared;
    setup.config.gc_free_blocks = FREE_BLOCKS;
    let (before, after) = setup.on_blank(&cells, async |ftl, _| {
        let mut rng = Rng::new(11);
        let mut before = PageFtlCounts::default();
        for step in 0..blocks * (1 + WARM_UP + MEASURED) {
            if step == blocks * (1 + WARM_UP) {
                before = ftl.counts();
            }
            let block = if step < blocks { step } else { rng.below(blocks) };
            let data = Content::data(&[Content::Phantom(block)], &mut Rng::new(1));
            ftl.write(block, data, Class::HostWrite).await.expect("nothing fails");
            sleep(Nanos::from_micros(200_000), Stage::Queue).await;
        }
        (before, ftl.counts())
    });
    let host = after.host_blocks - before.host_blocks;
    let moved = after.moved_blocks - before.moved_blocks;
    to_f64(host + moved) / to_f64(host)
}

/// First in, first out (Menon and Stockmeyer, 1998, for log arrays; Desnoyers, 2012, for flash): of
/// a block that comes up for cleaning the share `u` lives, where `fill = (1 - u) / -ln(u)`; in
/// closed form `u = -fill * W(-exp(-1 / fill) / fill)` with Lambert's W.
fn fifo(fill: f64) -> f64 {
    let (mut low, mut high) = (1e-9_f64, 1.0 - 1e-9);
    for _ in 0..100 {
        let u = f64::midpoint(low, high);
        if (1.0 - u) / -u.ln() < fill { low = u } else { high = u }
    }
    1.0 / (1.0 - low)
}

/// Greedy: the mean-field model of Van Houdt (2013) for blocks of `b` pages, in the limit of many
/// choices. With `x(i)` the share of blocks with `i` live pages and `w` the chance that a given
/// live page dies between two cleanings, `i * x(i) * w` blocks go from `i` to `i - 1` live pages. A
/// block goes through all counts down to some `m`, from which it is cleaned, or, with chance `f`,
/// from `m - 1`; so `x(i) = 1 / (i * w)` above `m`, `x(m) = f / (m * w)`, the shares add up to 1,
/// and `w = (b - m + f) / (fill * b)` since a cleaning makes room for `b - (m - f)` writes.
fn greedy(fill: f64) -> f64 {
    let b = f64::from(PAGES);
    let mut harmonic = 0.0;
    for m in (1..PAGES).rev().map(f64::from) {
        harmonic += 1.0 / (m + 1.0);
        let f = (harmonic - (b - m) / (fill * b)) / (1.0 / (fill * b) - 1.0 / m);
        if (0.0..=1.0).contains(&f) {
            return b / (b - m + f);
        }
    }
    panic!("no fixed point for {fill}");
}

/// Any block, each with the same chance: of a victim as much lives as of all, so with an
/// over-provisioning `o` it is `(1 + o) / o` (Van Houdt, 2013).
fn random(fill: f64) -> f64 {
    1.0 / (1.0 - fill)
}

fn compare(victims: Victims, formula: fn(f64) -> f64, tolerance: f64) {
    for percent in [60, 75, 85, 91] {
        let blocks = u64::from(BLOCKS * PAGES) * percent / 100;
        let (expected, measured) = (formula(fill(blocks)), measured(blocks, victims));
        let off = measured / expected - 1.0;
        println!("{victims:?} {percent} %: {measured:.4}, formula {expected:.4}, {off:+.4}");
        assert!(off.abs() < tolerance, "{measured} is not {expected}, at {percent} % full");
    }
}

#[test]
fn fifo_amplifies_as_lambert_w_has_it() {
    compare(Victims::Fifo, fifo, 0.02);
}

#[test]
fn greedy_amplifies_as_the_mean_field_model_has_it() {
    compare(Victims::Greedy, greedy, 0.05);
}

#[test]
fn random_amplifies_as_the_average_block_has_it() {
    compare(Victims::Random, random, 0.03);
}
