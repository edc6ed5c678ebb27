use crate::profile::block::check_layer;
use crate::profile::error::ProfileError;
use crate::profile::field::{Field, to_u64};
use crate::profile::index::Index;
use crate::profile::log::{Log, LogFtl, Stripe};
use crate::profile::namespace::{Given, NamespaceKind};
use crate::profile::nand::Nand;
use crate::profile::section::Section;
use base::human_bytes;
use base::limits::BLOCK_BYTES;
use engine::SPARE_EXTENTS_MIN;
use ftl::{Region, Zones};
use media::{BlocksShape, LogOnBlocks, Media, MemoryBlocks, Shape};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Least over-provisioning: below it cleaning moves nearly all that it reads. Zones are not cleaned
/// and can do without.
const OVER_PROVISIONING_MIN: f64 = 0.02;

/// Most over-provisioning.
const OVER_PROVISIONING_MAX: f64 = 10.0;

/// How far `over_provisioning` may be from what `size_gb` makes it: people give it in percent.
const ROUNDING: f64 = 0.005;

/// Largest size in GB that is read at all, far above any flash.
const SIZE_GB_MAX: f64 = 1e9;

/// Fewest bytes of the layer below a log: some extents of the smallest kind.
const LOG_LAYER_BYTES_MIN: u64 = 16 << 20;

/// What a namespace says of its size.
#[derive(Debug)]
pub(super) struct Size<'t> {
    pub(super) bytes: u64,
    pub(super) over_provisioning: f64,
    /// The key that the size is from.
    pub(super) field: Field<'t>,
}

/// Blocks of every plane that hold `size_bytes` and the over-provisioning.
#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
pub(super) fn rows(nand: &Nand, size_bytes: u64, over_provisioning: f64) -> u64 {
    let rows = size_bytes as f64 * (1.0 + over_provisioning) / nand.row_bytes() as f64;
    // What 1 / (1 + x) lost when a size was computed from an over-provisioning is no block.
    to_u64((rows - 1e-9).ceil().max(1.0))
}

/// Bytes of the layer between the log of a store of `size_bytes` and its flash: half of what is
/// beyond the size is the layer's, half the log's.
pub(super) fn log_layer_bytes(size_bytes: u64, nand: &Nand, region: Region) -> u64 {
    let raw = u64::from(region.count) * nand.row_bytes();
    let bytes = size_bytes + raw.saturating_sub(size_bytes) / 2;
    bytes - bytes % u64::from(BLOCK_BYTES)
}

impl<'t> Size<'t> {
    /// The size of the namespace at `section`; one that is the only one has all of the flash.
    pub(super) fn read(
        section: Section<'t>,
        nand: &Nand,
        kind: &NamespaceKind,
        is_only: bool,
    ) -> Result<Self, ProfileError> {
        let range = match kind {
            NamespaceKind::Zoned(_) => 0.0..=OVER_PROVISIONING_MAX,
            _ => OVER_PROVISIONING_MIN..=OVER_PROVISIONING_MAX,
        };
        if !is_only {
            return Self::of_several(section, range);
        }
        let size = section.optional("size_gb");
        let spare = section.optional("over_provisioning");
        let (field, bytes) = match (size, spare) {
            (Some(size), None) => (size, size_from_gb(size, nand, &range)?),
            (None, Some(spare)) => (spare, size_from_spare(spare, nand, &range)?),
            (Some(size), Some(spare)) => (spare, size_from_both(size, spare, nand, &range)?),
            (None, None) => return Err(section.lacks("size_gb or over_provisioning")),
        };
        Ok(Self { bytes, over_provisioning: over_provisioning(bytes, nand), field })
    }

    fn of_several(section: Section<'t>, range: RangeInclusive<f64>) -> Result<Self, ProfileError> {
        let both = "size_gb, which each of several namespaces needs,";
        let size = section.optional("size_gb").ok_or_else(|| section.lacks(both))?;
        let both = "over_provisioning, which each of several namespaces needs,";
        let spare = section.optional("over_provisioning").ok_or_else(|| section.lacks(both))?;
        let over_provisioning = spare.number(range)?;
        Ok(Self { bytes: gigabytes(size)?, over_provisioning, field: size })
    }
}

fn gigabytes(size: Field<'_>) -> Result<u64, ProfileError> {
    let bytes = to_u64(size.number(0.0..=SIZE_GB_MAX)? * 1e9);
    if bytes == 0 {
        return Err(size.must_be("more than 0"));
    }
    Ok(bytes)
}

fn size_from_gb(
    size: Field<'_>,
    nand: &Nand,
    range: &RangeInclusive<f64>,
) -> Result<u64, ProfileError> {
    let bytes = gigabytes(size)?;
    let raw = nand.raw_bytes();
    if bytes > raw {
        return Err(size.wrong(format!("the namespace has {bytes} bytes, but the NAND only {raw}")));
    }
    let spare = over_provisioning(bytes, nand);
    if !range.contains(&spare) {
        return Err(size.wrong(format!(
            "of the NAND's {raw} bytes this leaves an over-provisioning of {spare:.4}, but it must \
             be from {} to {}",
            range.start(),
            range.end()
        )));
    }
    Ok(bytes)
}

#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn size_from_spare(
    spare: Field<'_>,
    nand: &Nand,
    range: &RangeInclusive<f64>,
) -> Result<u64, ProfileError> {
    let fraction = spare.number(range.clone())?;
    Ok(to_u64(nand.raw_bytes() as f64 / (1.0 + fraction)))
}

fn size_from_both(
    size: Field<'_>,
    spare: Field<'_>,
    nand: &Nand,
    range: &RangeInclusive<f64>,
) -> Result<u64, ProfileError> {
    let given = spare.number(range.clone())?;
    let bytes = size_from_gb(size, nand, range)?;
    let derived = over_provisioning(bytes, nand);
    if (given - derived).abs() > ROUNDING {
        return Err(spare.wrong(format!(
            "over_provisioning is {given}, but size_gb in line {} makes it {derived:.4}; give one \
             of the two",
            size.line
        )));
    }
    Ok(bytes)
}

#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn over_provisioning(size_bytes: u64, nand: &Nand) -> f64 {
    (nand.raw_bytes() - size_bytes) as f64 / size_bytes as f64
}

/// Refuses namespaces that take more blocks of every plane together than there are.
pub(super) fn check_room(given: &[Given<'_>], nand: &Nand) -> Result<(), ProfileError> {
    let mut taken = 0;
    for Given { namespace, field } in given {
        taken += rows(nand, namespace.size_bytes, namespace.over_provisioning);
        if given.len() > 1 && taken > u64::from(nand.blocks_per_plane) {
            return Err(field.wrong(format!(
                "the namespaces up to this one take {taken} blocks of every plane, each {} over \
                 all planes, but there are {} (blocks_per_plane)",
                human_bytes(nand.row_bytes()),
                nand.blocks_per_plane
            )));
        }
    }
    Ok(())
}

/// What a log is on that has blocks of flash for itself.
pub(super) fn log_on_flash(stripe: Stripe, nand: &Nand, region: Region) -> Shape {
    Shape {
        page_bytes: nand.page_bytes,
        spare_bytes: nand.spare_bytes,
        pages_per_extent: nand.pages_per_block * stripe.units(nand),
        extents: u32::try_from(stripe.log_extents(nand, region.count)).unwrap_or(u32::MAX),
        parallelism: nand.units(),
        frames: None,
    }
}

/// What a log is on that has a page-mapped layer of `bytes` below it.
pub(super) fn log_on_layer(bytes: u64, nand: &Nand) -> Shape {
    let shape = BlocksShape {
        block_bytes: BLOCK_BYTES,
        blocks: bytes / u64::from(BLOCK_BYTES),
        parallelism: nand.units(),
    };
    LogOnBlocks::format(Arc::new(MemoryBlocks::new(shape))).shape()
}

/// Says what is wrong when a log of this shape has no room for a store of `size_bytes` in all.
pub(super) fn check_extents(
    size_bytes: u64,
    shape: &Shape,
    log: &Log,
    index: &Index,
) -> Result<(), String> {
    let tables = index.table_extents(size_bytes, shape);
    let keeps = SPARE_EXTENTS_MIN.saturating_add(tables);
    let room = u64::from(shape.extents.saturating_sub(keeps)) * shape.extent_bytes();
    if size_bytes <= room {
        return Ok(());
    }
    let (whose, way_out) = match log.ftl {
        LogFtl::Append { .. } => ("the NAND's", ", or the stripe narrower"),
        LogFtl::Page => ("the page-mapped layer's", ""),
    };
    let (for_index, fewer) = match tables {
        0 => (String::new(), ""),
        _ => (format!(" and {tables} for the table of its index"), ", keys_max less"),
    };
    Err(format!(
        "of {whose} {} extents of {} the log keeps {SPARE_EXTENTS_MIN} beside the \
         namespace{for_index}, which leaves {} for its {}; make it smaller{fewer}{way_out}",
        shape.extents,
        human_bytes(shape.extent_bytes()),
        human_bytes(room),
        human_bytes(size_bytes)
    ))
}

impl Given<'_> {
    /// Refuses a namespace that does not fit its region.
    pub(super) fn check(&self, nand: &Nand, region: Region) -> Result<(), ProfileError> {
        match &self.namespace.kind {
            NamespaceKind::Kv => Ok(()),
            NamespaceKind::Block(_) => {
                let size_bytes = self.namespace.size_bytes;
                self.check_bad_blocks(size_bytes, nand, region)?;
                check_layer(self.field, size_bytes, nand, region)
            }
            NamespaceKind::Zoned(zoned) => self.check_zones(zoned.stripe, nand, region),
        }
    }

    /// Refuses a store of `size_bytes` in all that its log has no room for.
    pub(super) fn check_log(
        &self,
        size_bytes: u64,
        nand: &Nand,
        region: Region,
        log: &Log,
        index: &Index,
    ) -> Result<(), ProfileError> {
        self.check_bad_blocks(size_bytes, nand, region)?;
        let shape = match log.ftl {
            LogFtl::Append { stripe } => log_on_flash(stripe, nand, region),
            LogFtl::Page => self.log_on_blocks(size_bytes, nand, region)?,
        };
        check_extents(size_bytes, &shape, log, index).map_err(|problem| self.field.wrong(problem))
    }

    /// What a log is on, if there is a page-mapped layer below it.
    fn log_on_blocks(
        &self,
        size_bytes: u64,
        nand: &Nand,
        region: Region,
    ) -> Result<Shape, ProfileError> {
        if nand.page_bytes < BLOCK_BYTES {
            return Err(self.field.wrong(format!(
                "with ftl = \"page\" the log is on logical blocks of {BLOCK_BYTES} bytes, but \
                 page_bytes is {}",
                nand.page_bytes
            )));
        }
        let bytes = log_layer_bytes(size_bytes, nand, region);
        check_layer(self.field, bytes, nand, region)?;
        if bytes < LOG_LAYER_BYTES_MIN {
            return Err(self.field.wrong(format!(
                "with ftl = \"page\" the layer below the log has {bytes} bytes, but it needs at \
                 least {LOG_LAYER_BYTES_MIN}"
            )));
        }
        Ok(log_on_layer(bytes, nand))
    }

    /// Refuses a size that the blocks which are good leave too little room beside.
    fn check_bad_blocks(
        &self,
        size_bytes: u64,
        nand: &Nand,
        region: Region,
    ) -> Result<(), ProfileError> {
        let raw = u128::from(nand.row_bytes()) * u128::from(region.count);
        let bad = raw * u128::from(nand.factory_bad_ppm) / 1_000_000;
        let good = raw - bad;
        // In hundredths: the size and OVER_PROVISIONING_MIN more.
        if bad > 0 && good * 100 < u128::from(size_bytes) * 102 {
            return Err(self.field.wrong(format!(
                "with factory_bad_ppm = {} only {good} bytes of the NAND are good, too few for a \
                 namespace of {size_bytes} bytes and an over-provisioning of \
                 {OVER_PROVISIONING_MIN}",
                nand.factory_bad_ppm
            )));
        }
        Ok(())
    }

    fn check_zones(&self, stripe: Stripe, nand: &Nand, region: Region) -> Result<(), ProfileError> {
        let (extents, bytes) = (stripe.extents(nand, region.count), stripe.extent_bytes(nand));
        let zones = self.namespace.size_bytes / bytes;
        let spare_extents = u64::from(Zones::SPARE_EXTENTS);
        if zones == 0 {
            return Err(self.field.wrong(format!(
                "a zone has {bytes} bytes with this stripe, but the namespace only {}",
                self.namespace.size_bytes
            )));
        }
        if zones + spare_extents > extents {
            return Err(self.field.wrong(format!(
                "the namespace has {zones} zones of {bytes} bytes and needs {spare_extents} more \
                 for what is in memory when power is lost, but its part of the NAND makes only \
                 {extents}"
            )));
        }
        Ok(())
    }
}
