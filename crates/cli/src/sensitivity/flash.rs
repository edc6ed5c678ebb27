use crate::output::Failure;
use base::human_bytes;
use node::Profile;
use node::profile::{Draft, NamespaceKind};

/// Candidates for the blocks of a plane, ascending.
const BLOCKS: [u32; 12] = [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512];

/// Candidates for the pages of a block, ascending.
const PAGES: [u32; 6] = [16, 24, 32, 48, 64, 128];

/// Flash of this many bytes is aged within a second.
const ENOUGH: u64 = 128 << 20;

/// Free blocks of a plane for the load, besides those that cleaning reserves. With fewer, the
/// choice of the victim would not matter.
const SPARE_BLOCKS: f64 = 4.0;

/// Returns the profile on the smallest flash that behaves like its own: with its over-provisioning,
/// and enough blocks to choose from. Also returns a sentence on what was made smaller.
pub(super) fn cut(draft: &Draft) -> Result<(Draft, Option<String>), Failure> {
    let profile = draft.profile().map_err(Failure::refused)?;
    let nand = &profile.nand;
    if nand.raw_bytes() <= ENOUGH {
        return Ok((draft.clone(), None));
    }
    let sizes = |choices: &'static [u32], own: u32| {
        choices.iter().copied().filter(move |&choice| choice < own).chain([own])
    };
    let mut choices: Vec<(u32, u32)> = sizes(&BLOCKS, nand.blocks_per_plane)
        .flat_map(|blocks| sizes(&PAGES, nand.pages_per_block).map(move |pages| (blocks, pages)))
        .collect();
    // Of equal sizes, the one with more blocks is closer to the profile's own.
    choices.sort_by_key(|&(blocks, pages)| (u64::from(blocks) * u64::from(pages), pages));
    let found = choices.into_iter().find_map(|(blocks, pages)| {
        let small = with_flash(draft, &profile, blocks, pages);
        let small_profile = small.profile().ok()?;
        works(&small_profile).then_some((small, small_profile))
    });
    let Some((small, small_profile)) = found else { return Ok((draft.clone(), None)) };
    let to = &small_profile.nand;
    if to.raw_bytes() == nand.raw_bytes() {
        return Ok((draft.clone(), None));
    }
    let sentence = format!(
        "the flash is cut to {}: {} blocks of a plane (of {}), {} pages of a block (of {}); an \
         erase takes as much less, and over-provisioning stays",
        human_bytes(to.raw_bytes()),
        to.blocks_per_plane,
        nand.blocks_per_plane,
        to.pages_per_block,
        nand.pages_per_block
    );
    Ok((small, Some(sentence)))
}

/// Returns `draft` with this many blocks of a plane and pages of a block. The time of an erase is
/// scaled to the pages of a block.
fn with_flash(draft: &Draft, profile: &Profile, blocks: u32, pages: u32) -> Draft {
    let nand = &profile.nand;
    let share = f64::from(pages) / f64::from(nand.pages_per_block);
    let erase_us = nand.erase.as_secs_f64() * 1e6 * share;
    let cut = draft
        .set("nand.blocks_per_plane", &blocks.to_string())
        .set("nand.pages_per_block", &pages.to_string())
        .set("nand.erase_us", &format!("{erase_us:.3}"));
    let several = profile.namespaces.len();
    if several < 2 {
        return cut;
    }
    let room = f64::from(blocks) - f64::from(u32::try_from(several).unwrap_or(u32::MAX));
    let ratio = share * room / f64::from(nand.blocks_per_plane);
    let named = (1..).zip(&profile.namespaces);
    named.fold(cut, |cut, (nsid, namespace)| {
        let gigabytes = float(namespace.size_bytes) / 1e9 * ratio;
        cut.set(&format!("namespace.{nsid}.size_gb"), &gigabytes.to_string())
    })
}

/// True if cleaning has blocks to choose from, and zones can spread.
fn works(profile: &Profile) -> bool {
    let regions = profile.regions();
    profile.namespaces.iter().zip(regions).all(|(namespace, region)| {
        let blocks = f64::from(region.count);
        let spare = blocks - blocks / (1.0 + namespace.over_provisioning);
        match &namespace.kind {
            NamespaceKind::Kv => spare >= SPARE_BLOCKS,
            NamespaceKind::Block(block) => spare >= SPARE_BLOCKS + f64::from(block.gc_free_blocks),
            NamespaceKind::Zoned(_) => region.count >= BLOCKS[0],
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "one part in 2^53 of a size does not matter")]
fn float(bytes: u64) -> f64 {
    bytes as f64
}
