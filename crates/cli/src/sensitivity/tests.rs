//! Checks that every key of a profile has the expected effect.

mod bases;
mod cases;
mod chance;
mod drive;
mod measure;

use cases::CASES;
use node::Profile;
use node::profile::{Draft, keys};

/// Changes of a profile's text: each a key and its value; without a value the key is removed.
type Edits = &'static [(&'static str, &'static str)];

/// A key and its expected effect.
struct Case {
    /// The key, in the notation of [`keys`].
    key: &'static str,
    base: &'static str,
    /// Other changes of the base, without which the key has no effect.
    with: Edits,
    /// The key at another value, and other changes that this value needs.
    change: Edits,
    measure: fn(&Profile) -> f64,
    expected: Expected,
}

/// Expected figure after the change, relative to the figure before.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// A factor, and its relative tolerance.
    Times(f64, f64),
    /// A sum, to a millionth.
    Plus(f64),
    /// A factor at least.
    Above(f64),
    /// The ratio of two values of a formula, and its relative tolerance.
    Formula(fn() -> f64, f64),
    /// From zero to at least this value.
    FromNothing(f64),
    /// A factor at most.
    Below(f64),
}

/// Keys without an effect of their own, each with the reason.
const DESCRIPTIVE: [(&str, &str); 2] = [
    ("description", "text for people"),
    ("namespace.kind", "says which keys its section has, and each of those is held to its effect"),
];

impl Case {
    fn profile(&self, changes: &[Edits]) -> Profile {
        let mut draft = Draft::new(self.key, self.base).expect("each base is a profile");
        for &(key, value) in changes.iter().copied().flatten() {
            draft = if value.is_empty() { draft.without(key) } else { draft.set(key, value) };
        }
        draft.profile().unwrap_or_else(|error| panic!("{}: {error}", self.key))
    }

    /// Returns why the key does not have its expected effect, if so.
    fn failure(&self) -> Option<String> {
        let before = (self.measure)(&self.profile(&[self.with]));
        let after = (self.measure)(&self.profile(&[self.with, self.change]));
        println!("{} {:?}: {before} -> {after}, {:?}", self.key, self.change, self.expected);
        (!self.expected.holds(before, after)).then(|| {
            let (key, change, expected) = (self.key, self.change, self.expected);
            format!("{key} at {change:?}: from {before} to {after} is not {expected:?}\n")
        })
    }
}

impl Expected {
    fn holds(self, before: f64, after: f64) -> bool {
        let is_within = |factor: f64, share: f64| (after / before / factor - 1.0).abs() <= share;
        match self {
            Self::Times(factor, share) => is_within(factor, share),
            Self::Plus(sum) => (after - before - sum).abs() <= before.abs().max(sum.abs()) * 1e-6,
            Self::Above(factor) => after >= before * factor,
            Self::Below(factor) => after <= before * factor,
            Self::Formula(formula, share) => is_within(formula(), share),
            Self::FromNothing(least) => before == 0.0 && after >= least,
        }
    }

    /// Checks that a key without its effect is found.
    fn excludes_no_effect(self) -> bool {
        [1e-3, 1.0, 1e6].iter().all(|&same| !self.holds(same, same))
    }
}

/// Checks all cases of each key that starts with one of `sections`.
fn assert_held(sections: &[&str]) {
    let is_of = |key: &str| sections.iter().any(|section| key.starts_with(section));
    let failures: String =
        CASES.iter().filter(|case| is_of(case.key)).filter_map(Case::failure).collect();
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn every_key_that_a_profile_can_have_is_held_to_its_effect() {
    let is_described = |key: &str| DESCRIPTIVE.iter().any(|(described, _)| *described == key);
    for key in keys() {
        let is_held = CASES.iter().any(|case| case.key == key);
        assert!(is_held != is_described(&key), "{key} has no case, or is only descriptive too");
    }
    for case in CASES {
        let (key, expected) = (case.key, case.expected);
        assert!(keys().iter().any(|known| known == key), "{key} is no key");
        assert!(expected.excludes_no_effect(), "{key} may do nothing: {expected:?}");
        let name = key.rsplit('.').next().unwrap_or(key);
        let is_changed = |&(changed, _): &(&str, &str)| changed.ends_with(&format!(".{name}"));
        assert!(case.change.iter().any(is_changed), "{key} is not what its case changes");
    }
}

#[test]
fn the_keys_of_the_flash_have_their_effects() {
    assert_held(&["nand."]);
}

#[test]
fn the_keys_of_link_firmware_cores_and_power_have_their_effects() {
    assert_held(&["link.", "firmware.", "core.", "power."]);
}

#[test]
fn the_keys_of_log_and_index_have_their_effects() {
    assert_held(&["log.", "index."]);
}

#[test]
fn the_keys_of_namespaces_have_their_effects() {
    assert_held(&["namespace.", "block.", "zoned."]);
}
