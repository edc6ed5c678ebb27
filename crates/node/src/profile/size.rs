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
use ftl::Region;
use media::{BlocksShape, LogOnBlocks, Media, MemoryBlocks, Shape};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Least over-provisioning: below it cleaning moves nearly all that it reads. Zones are not cleaned
/// and can do without.
pub(super) const OVER_PROVISIONING_MIN: f64 = 0.02;

/// Most over-provisioning.
pub(super) const OVER_PROVISIONING_MAX: f64 = 10.0;

/// Tolerance between `over_provisioning` and the value from `size_gb`: users round to percent.
const ROUNDING: f64 = 0.005;

/// Maximum size in GB, far above any flash.
const SIZE_GB_MAX: f64 = 1e9;

/// Fewest bytes of the layer below a log: some extents of the smallest kind.
pub(super) const LOG_LAYER_BYTES_MIN: u64 = 16 << 20;

/// The size of a namespace in a profile.
#[derive(Debug)]
pub(super) struct Size<'t> {
    pub(super) bytes: u64,
    pub(super) over_provisioning: f64,
    /// The key that gives the size.
    pub(super) field: Field<'t>,
}

/// Returns the blocks of every plane for `size_bytes` and the over-provisioning.
#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
pub(super) fn rows(nand: &Nand, size_bytes: u64, over_provisioning: f64) -> u64 {
    let rows = size_bytes as f64 * (1.0 + over_provisioning) / nand.row_bytes() as f64;
    // A rounding error of 1 / (1 + x) in a computed size must not add a block.
    to_u64((rows - 1e-9).ceil().max(1.0))
}

/// Returns the bytes of the layer between the log of a store of `size_bytes` and its flash. The
/// layer and the log get half of the over-provisioned flash each.
pub(super) fn log_layer_bytes(size_bytes: u64, nand: &Nand, region: Region) -> u64 {
    let raw = u64::from(region.count) * nand.row_bytes();
    let bytes = size_bytes + raw.saturating_sub(size_bytes) / 2;
    bytes - bytes % u64::from(BLOCK_BYTES)
}

impl<'t> Size<'t> {
    /// Reads the size of the namespace at `section`. A single namespace has all of the flash.
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

/// Checks that the namespaces together fit the blocks of every plane.
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

/// Returns the shape of a log's medium on flash blocks of its own.
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

/// Returns the shape of a log's medium on a page-mapped layer of `bytes`.
pub(super) fn log_on_layer(bytes: u64, nand: &Nand) -> Shape {
    let shape = BlocksShape {
        block_bytes: BLOCK_BYTES,
        blocks: bytes / u64::from(BLOCK_BYTES),
        parallelism: nand.units(),
    };
    LogOnBlocks::format(Arc::new(MemoryBlocks::new(shape))).shape()
}

/// Says what is wrong when a log of this shape has no room for a store of `size_bytes` in all.
pub(super) fn extents_problem(
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
    let (whose, narrower) = match log.ftl {
        LogFtl::Append { .. } => ("the NAND's", ", a narrower stripe keeps less"),
        LogFtl::Page => ("the page-mapped layer's", ""),
    };
    let (for_index, fewer) = match tables {
        0 => (String::new(), ""),
        _ => (
            format!(" and {tables} for the table of its index"),
            ", a smaller keys_max needs a smaller table",
        ),
    };
    Err(format!(
        "of {whose} {} extents of {} the log keeps {SPARE_EXTENTS_MIN} beside the \
         namespace{for_index}, which leaves {} for its {}{narrower}{fewer}",
        shape.extents,
        human_bytes(shape.extent_bytes()),
        human_bytes(room),
        human_bytes(size_bytes)
    ))
}
