//! Paths whose instructions are held to those of another path.

use crate::paths::Path;
use std::collections::BTreeMap;

/// The largest ratio of a command's instructions with 64 queues to those with 4: issue 37.
const MANY_QUEUES: f64 = 1.05;

/// Two paths, and the largest ratio of the first path's instructions to those of the second.
const RATIOS: [(Path, Path, f64); 2] = [
    (Path::Pcie64Queues, Path::Pcie4Queues, MANY_QUEUES),
    (Path::Pcie64InTurn, Path::Pcie4InTurn, MANY_QUEUES),
];

/// Returns a sentence for each ratio of two paths that were counted, and whether all hold.
pub(crate) fn check(instructions: &BTreeMap<&'static str, f64>) -> (Vec<String>, bool) {
    let mut hold = true;
    let sentences = RATIOS.iter().filter_map(|(path, of, max)| {
        let ratio = instructions.get(path.name())? / instructions.get(of.name())?;
        hold &= ratio <= *max;
        Some(format!("{} of {}: {ratio:.3} (at most {max})", path.name(), of.name()))
    });
    (sentences.collect(), hold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_holds_up_to_its_bound() {
        let counted = |many| {
            let counted = [("pcie-4-queues", 1_000.0), ("pcie-64-queues", many), ("set", 5.0)];
            check(&counted.into())
        };
        let (sentences, holds) = counted(1_050.0);
        assert_eq!(sentences, ["pcie-64-queues of pcie-4-queues: 1.050 (at most 1.05)"]);
        assert!(holds);
        assert!(!counted(1_051.0).1);
        assert_eq!(check(&[("pcie-64-queues", 1.0)].into()), (Vec::new(), true));
    }
}
