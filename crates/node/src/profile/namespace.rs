use crate::profile::error::ProfileError;
use crate::profile::field::{Field, to_u64};
use crate::profile::log::Stripe;
use crate::profile::nand::Nand;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::human_bytes;
use engine::SPARE_EXTENTS_MIN;
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema {
    name: "namespace",
    title: "[[namespace]]",
    keys: &["kind", "size_gb", "over_provisioning"],
};

/// Least over-provisioning: below it cleaning moves nearly all that it reads.
const OVER_PROVISIONING_MIN: f64 = 0.02;

/// Most over-provisioning.
const OVER_PROVISIONING_MAX: f64 = 10.0;

/// How far `over_provisioning` may be from what `size_gb` makes it: people give it in percent.
const ROUNDING: f64 = 0.005;

/// Largest size in GB that is read at all, far above any flash.
const SIZE_GB_MAX: f64 = 1e9;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Namespace {
    /// What hosts see in it.
    pub kind: NamespaceKind,
    /// The capacity in bytes that it reports.
    pub size_bytes: u64,
    /// Data bytes of the flash beyond the reported size, as a fraction of that size.
    pub over_provisioning: f64,
}

/// What hosts see in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamespaceKind {
    /// Keys and values.
    Kv,
}

impl Namespace {
    pub(super) fn read(
        section: Section<'_>,
        nand: &Nand,
        stripe: Stripe,
    ) -> Result<Self, ProfileError> {
        let kind = section.field("kind")?;
        if !kind.is("kv") {
            return Err(kind.must_be("\"kv\", the only kind of namespace that is possible"));
        }
        let size = section.optional("size_gb");
        let spare = section.optional("over_provisioning");
        let (field, size_bytes) = match (size, spare) {
            (Some(size), None) => (size, size_from_gb(size, nand)?),
            (None, Some(spare)) => (spare, size_from_spare(spare, nand)?),
            (Some(size), Some(spare)) => (spare, size_from_both(size, spare, nand)?),
            (None, None) => return Err(section.lacks("size_gb or over_provisioning")),
        };
        check_bad_blocks(field, size_bytes, nand)?;
        check_spare_extents(field, size_bytes, nand, stripe)?;
        let over_provisioning = over_provisioning(size_bytes, nand);
        Ok(Self { kind: NamespaceKind::Kv, size_bytes, over_provisioning })
    }
}

fn size_from_gb(size: Field<'_>, nand: &Nand) -> Result<u64, ProfileError> {
    let bytes = to_u64(size.number(0.0..=SIZE_GB_MAX)? * 1e9);
    let raw = nand.raw_bytes();
    if bytes == 0 {
        return Err(size.must_be("more than 0"));
    }
    if bytes > raw {
        return Err(size.wrong(format!("the namespace has {bytes} bytes, but the NAND only {raw}")));
    }
    let spare = over_provisioning(bytes, nand);
    if !(OVER_PROVISIONING_MIN..=OVER_PROVISIONING_MAX).contains(&spare) {
        return Err(size.wrong(format!(
            "of the NAND's {raw} bytes this leaves an over-provisioning of {spare:.4}, but it must \
             be from {OVER_PROVISIONING_MIN} to {OVER_PROVISIONING_MAX}"
        )));
    }
    Ok(bytes)
}

#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn size_from_spare(spare: Field<'_>, nand: &Nand) -> Result<u64, ProfileError> {
    let fraction = spare.number(OVER_PROVISIONING_MIN..=OVER_PROVISIONING_MAX)?;
    Ok(to_u64(nand.raw_bytes() as f64 / (1.0 + fraction)))
}

fn size_from_both(size: Field<'_>, spare: Field<'_>, nand: &Nand) -> Result<u64, ProfileError> {
    let given = spare.number(OVER_PROVISIONING_MIN..=OVER_PROVISIONING_MAX)?;
    let bytes = size_from_gb(size, nand)?;
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

/// Refuses a size that the blocks which are good leave too little room beside.
fn check_bad_blocks(field: Field<'_>, size_bytes: u64, nand: &Nand) -> Result<(), ProfileError> {
    let bad = u128::from(nand.raw_bytes()) * u128::from(nand.factory_bad_ppm) / 1_000_000;
    let good = u128::from(nand.raw_bytes()) - bad;
    // In hundredths: the size and OVER_PROVISIONING_MIN more.
    if bad > 0 && good * 100 < u128::from(size_bytes) * 102 {
        return Err(field.wrong(format!(
            "with factory_bad_ppm = {} only {good} bytes of the NAND are good, too few for a \
             namespace of {size_bytes} bytes and an over-provisioning of {OVER_PROVISIONING_MIN}",
            nand.factory_bad_ppm
        )));
    }
    Ok(())
}

/// Refuses a size that leaves fewer extents than the log needs beside it.
fn check_spare_extents(
    field: Field<'_>,
    size_bytes: u64,
    nand: &Nand,
    stripe: Stripe,
) -> Result<(), ProfileError> {
    let (extents, bytes) = (stripe.extents(nand), stripe.extent_bytes(nand));
    let room = extents.saturating_sub(u64::from(SPARE_EXTENTS_MIN)) * bytes;
    if size_bytes <= room {
        return Ok(());
    }
    Err(field.wrong(format!(
        "of the NAND's {extents} extents of {} the log keeps {SPARE_EXTENTS_MIN} beside the \
         namespace, which leaves {} for its {}; make it smaller, or the stripe narrower",
        human_bytes(bytes),
        human_bytes(room),
        human_bytes(size_bytes)
    )))
}

#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn over_provisioning(size_bytes: u64, nand: &Nand) -> f64 {
    (nand.raw_bytes() - size_bytes) as f64 / size_bytes as f64
}
