use crate::profile::namespace::Namespace;
use crate::profile::nand::Nand;
use crate::profile::size::rows;
use ftl::Region;

/// Returns the blocks of every plane that each namespace gets, or `None` if there are too few.
/// Namespaces of keys and values share one region. The last namespace also gets the remainder.
pub(super) fn regions(nand: &Nand, namespaces: &[Namespace]) -> Option<Vec<Region>> {
    let all = nand.blocks_per_plane;
    if let [_] = namespaces {
        return Some(vec![Region { first: 0, count: all }]);
    }
    let is_kv = |namespace: &Namespace| namespace.kind.is_kv();
    let first_kv = namespaces.iter().position(is_kv);
    // The owner of a namespace's region: itself, or the first with keys and values.
    let owner = |at: usize| if is_kv(&namespaces[at]) { first_kv.unwrap_or(at) } else { at };
    let mut counts = vec![0_u64; namespaces.len()];
    for (at, namespace) in namespaces.iter().enumerate() {
        counts[owner(at)] += rows(nand, namespace.size_bytes, namespace.over_provisioning);
    }
    let left = u64::from(all).checked_sub(counts.iter().sum())?;
    counts[owner(namespaces.len() - 1)] += left;
    let mut first = 0;
    let own = counts.iter().map(|count| {
        let count = u32::try_from(*count).expect("no more than the blocks of a plane");
        first += count;
        Region { first: first - count, count }
    });
    let own: Vec<Region> = own.collect();
    Some((0..namespaces.len()).map(|at| own[owner(at)]).collect())
}
