//! Whether namespaces have room in their flash, and which sizes would.

use crate::profile::block::layer_problem;
use crate::profile::error::ProfileError;
use crate::profile::field::to_u64;
use crate::profile::index::Index;
use crate::profile::log::{Log, LogFtl, Stripe};
use crate::profile::namespace::{Given, Namespace, NamespaceKind, kv_bytes};
use crate::profile::nand::Nand;
use crate::profile::region::regions;
use crate::profile::size::{
    LOG_LAYER_BYTES_MIN, OVER_PROVISIONING_MAX, OVER_PROVISIONING_MIN, extents_problem,
    log_layer_bytes, log_on_flash, log_on_layer, rows,
};
use base::limits::BLOCK_BYTES;
use ftl::{Region, Zones};
use media::Shape;

/// In whole numbers of this a size is proposed: 0.001 GB.
const SIZE_STEP: u64 = 1_000_000;

/// In whole numbers of this an over-provisioning is proposed, in percent.
const PERCENT: f64 = 100.0;

/// How many more blocks of every plane are tried for a larger size.
const ROWS_TRIED: u64 = 4_096;

/// What namespaces have to fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit<'a> {
    pub(super) nand: &'a Nand,
    /// The log and the index of namespaces of keys and values; `None` leaves those unchecked.
    pub(super) store: Option<(&'a Log, &'a Index)>,
}

impl Fit<'_> {
    /// Refuses namespace `at` if it does not fit its region, and says which sizes would.
    pub(super) fn check(&self, given: &[Given<'_>], at: usize) -> Result<(), ProfileError> {
        let namespaces: Vec<Namespace> = given.iter().map(|one| one.namespace.clone()).collect();
        match self.problem(&namespaces, at) {
            None => Ok(()),
            Some(problem) => {
                let ways = self.ways_out(&namespaces, at);
                let ways = ways.join(" or ");
                let advice = if ways.is_empty() { ways } else { format!("; {ways} fits") };
                Err(given[at].field.wrong(problem + &advice))
            }
        }
    }

    /// Says what is wrong with namespace `at`.
    fn problem(&self, namespaces: &[Namespace], at: usize) -> Option<String> {
        let Namespace { kind, size_bytes, .. } = &namespaces[at];
        let Some(regions) = regions(self.nand, namespaces) else {
            return Some("the namespaces together need more blocks than there are".to_owned());
        };
        let (nand, region) = (self.nand, regions[at]);
        let problem = match (kind, self.store) {
            (NamespaceKind::Kv, None) => Ok(()),
            (NamespaceKind::Kv, Some((log, index))) => {
                log_problem(kv_bytes(namespaces), nand, region, log, index)
            }
            (NamespaceKind::Block(_), _) => bad_blocks_problem(*size_bytes, nand, region)
                .and_then(|()| layer_problem(*size_bytes, nand, region)),
            (NamespaceKind::Zoned(zoned), _) => {
                zones_problem(*size_bytes, zoned.stripe, nand, region)
            }
        };
        problem.err()
    }

    /// Returns which sizes of namespace `at` fit. Each of several namespaces has blocks in
    /// proportion to its size, so that a larger size may fit where a smaller one does not.
    fn ways_out(&self, namespaces: &[Namespace], at: usize) -> Vec<String> {
        let Namespace { size_bytes, over_provisioning, .. } = namespaces[at];
        let fits = |size_bytes: u64, over_provisioning: f64| {
            let mut changed = namespaces.to_vec();
            (changed[at].size_bytes, changed[at].over_provisioning) =
                (size_bytes, over_provisioning);
            size_bytes > 0 && self.problem(&changed, at).is_none()
        };
        let of_size = |steps: u64| fits(steps * SIZE_STEP, over_provisioning);
        let steps = size_bytes.div_ceil(SIZE_STEP);
        let halves = std::iter::successors(Some(steps / 2), |half| Some(half / 2));
        let small = halves.take_while(|half| *half > 0).find(|half| of_size(*half));
        let at_most = small.map(|small| last_that(small, steps, of_size));
        let mut ways = Vec::new();
        ways.extend(at_most.map(|steps| format!("size_gb of at most {}", gigabytes(steps))));
        if namespaces.len() > 1 {
            let at_least = self.least_larger(&namespaces[at], of_size);
            ways.extend(at_least.map(|steps| format!("size_gb of at least {}", gigabytes(steps))));
            #[expect(clippy::cast_precision_loss, reason = "a few hundred percent")]
            let of_spare = |percent: u64| fits(size_bytes, percent as f64 / PERCENT);
            let given = to_u64((over_provisioning * PERCENT).floor());
            let most = to_u64(OVER_PROVISIONING_MAX * PERCENT);
            // More than the flash has room for fits no better than too little.
            let percent = (given..=most).find(|percent| of_spare(*percent));
            #[expect(clippy::cast_precision_loss, reason = "a few hundred percent")]
            let spare = |percent| format!("over_provisioning of {}", percent as f64 / PERCENT);
            ways.extend(percent.map(spare));
        } else if let Some(steps) = at_most {
            let spare = spare_of(self.nand.raw_bytes(), steps * SIZE_STEP);
            ways.push(format!("over_provisioning of at least {spare}"));
        }
        ways
    }

    /// Returns the smallest larger size that fits, in steps. Within as many blocks the smallest
    /// size fits best, so it is enough to try that for each number of blocks.
    fn least_larger(&self, namespace: &Namespace, fits: impl Fn(u64) -> bool) -> Option<u64> {
        let Namespace { size_bytes, over_provisioning, .. } = *namespace;
        let first = rows(self.nand, size_bytes, over_provisioning);
        #[expect(clippy::cast_precision_loss, reason = "one part in 2^53 does not matter")]
        let steps = |rows: u64| {
            let bytes = (rows * self.nand.row_bytes()) as f64 / (1.0 + over_provisioning);
            to_u64((bytes / SIZE_STEP as f64).floor()) + 1
        };
        let most = u64::from(self.nand.blocks_per_plane).min(first + ROWS_TRIED);
        let mut below = size_bytes / SIZE_STEP;
        for steps in (first..most).map(steps) {
            if fits(steps) {
                return Some(last_that(below, steps, |steps| !fits(steps)) + 1);
            }
            below = below.max(steps);
        }
        None
    }
}

/// Returns the last number from `low`, of which `holds` is true, to `high`, of which it is not.
fn last_that(mut low: u64, mut high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while high - low > 1 {
        let middle = u64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// A number of steps in GB, as a profile has it.
#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn gigabytes(steps: u64) -> f64 {
    steps as f64 / 1_000.0
}

/// The over-provisioning of `size_bytes` on `raw_bytes`, rounded up to a hundredth of a percent.
#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn spare_of(raw_bytes: u64, size_bytes: u64) -> f64 {
    let spare = (raw_bytes - size_bytes) as f64 / size_bytes as f64;
    (spare * 10_000.0).ceil() / 10_000.0
}

/// Says what is wrong with a store of `size_bytes` in all whose log has `region`.
fn log_problem(
    size_bytes: u64,
    nand: &Nand,
    region: Region,
    log: &Log,
    index: &Index,
) -> Result<(), String> {
    bad_blocks_problem(size_bytes, nand, region)?;
    let shape = match log.ftl {
        LogFtl::Append { stripe } => log_on_flash(stripe, nand, region),
        LogFtl::Page => log_on_blocks(size_bytes, nand, region)?,
    };
    extents_problem(size_bytes, &shape, log, index)
}

/// Returns what a log is on that has a page-mapped layer below it.
fn log_on_blocks(size_bytes: u64, nand: &Nand, region: Region) -> Result<Shape, String> {
    if nand.page_bytes < BLOCK_BYTES {
        return Err(format!(
            "with ftl = \"page\" the log is on logical blocks of {BLOCK_BYTES} bytes, but \
             page_bytes is {}",
            nand.page_bytes
        ));
    }
    let bytes = log_layer_bytes(size_bytes, nand, region);
    layer_problem(bytes, nand, region)?;
    if bytes < LOG_LAYER_BYTES_MIN {
        return Err(format!(
            "with ftl = \"page\" the layer below the log has {bytes} bytes, but it needs at least \
             {LOG_LAYER_BYTES_MIN}"
        ));
    }
    Ok(log_on_layer(bytes, nand))
}

/// Says what is wrong with a size that the blocks which are good leave too little room beside.
fn bad_blocks_problem(size_bytes: u64, nand: &Nand, region: Region) -> Result<(), String> {
    let raw = u128::from(nand.row_bytes()) * u128::from(region.count);
    let bad = raw * u128::from(nand.factory_bad_ppm) / 1_000_000;
    let good = raw - bad;
    // In hundredths: the size and OVER_PROVISIONING_MIN more.
    if bad > 0 && good * 100 < u128::from(size_bytes) * 102 {
        return Err(format!(
            "with factory_bad_ppm = {} only {good} bytes of the NAND are good, too few for a \
             namespace of {size_bytes} bytes and an over-provisioning of {OVER_PROVISIONING_MIN}",
            nand.factory_bad_ppm
        ));
    }
    Ok(())
}

fn zones_problem(
    size_bytes: u64,
    stripe: Stripe,
    nand: &Nand,
    region: Region,
) -> Result<(), String> {
    let (extents, bytes) = (stripe.extents(nand, region.count), stripe.extent_bytes(nand));
    let zones = size_bytes / bytes;
    let spare_extents = u64::from(Zones::SPARE_EXTENTS);
    if zones == 0 {
        return Err(format!(
            "a zone has {bytes} bytes with this stripe, but the namespace only {size_bytes}"
        ));
    }
    if zones + spare_extents > extents {
        return Err(format!(
            "the namespace has {zones} zones of {bytes} bytes and needs {spare_extents} more for \
             what is in memory when power is lost, but its part of the NAND makes only {extents}"
        ));
    }
    Ok(())
}
