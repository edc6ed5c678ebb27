mod draft;

pub use self::draft::Draft;

use crate::indexes::INDEXES;
use crate::profile::schema::{Schema, TOP};
use crate::profile::{
    block, cores, firmware, fitted, index, link, log, namespace, nand, power, zoned,
};

/// A key of a profile whose value can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// Its path, such as `nand.read_us` or `namespace.1.ack`.
    pub key: String,
    /// Its value as text.
    pub value: String,
    /// Values to try instead; none for a zero, because scaling does not change it.
    pub changes: Vec<Change>,
}

/// Another value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Half of the number, or of each number of a list.
    Halved,
    /// Twice the number, or each number of a list.
    Doubled,
    /// This word instead.
    To(&'static str),
}

/// Sections that occur at most once in a profile.
const SECTIONS: [&Schema; 7] = [
    &nand::SCHEMA,
    &link::SCHEMA,
    &firmware::SCHEMA,
    &cores::SCHEMA,
    &power::SCHEMA,
    &log::SCHEMA,
    &index::SCHEMA,
];

/// Returns every key of a device in a profile, such as `nand.read_us`, without those of `[fitted]`.
/// Keys of one kind of namespace have its name, such as `block.ack`. Keys of all kinds are named
/// as `namespace.size_gb`.
pub fn keys() -> Vec<String> {
    let of_sections = SECTIONS.map(|schema| (schema.name, schema.keys));
    let of_namespaces =
        [("namespace", namespace::KEYS), ("block", block::KEYS), ("zoned", zoned::KEYS)];
    let is_section =
        |key: &&str| SECTIONS.iter().any(|section| section.name == *key) || is_of_all(key);
    let top = TOP.keys.iter().filter(|key| !is_section(key)).map(|key| (*key).to_owned());
    let within = of_sections.into_iter().chain(of_namespaces);
    top.chain(within.flat_map(|(name, keys)| keys.iter().map(move |key| format!("{name}.{key}"))))
        .collect()
}

/// Returns whether a section is of a namespace or of the profile as a whole.
fn is_of_all(section: &str) -> bool {
    section == "namespace" || section == fitted::SCHEMA.name
}

/// Returns the words that `key` of `section` accepts; none for numbers and text.
fn words(section: &str, key: &str) -> Vec<&'static str> {
    match (section, key) {
        ("nand", "model") => of(nand::MODELS),
        ("nand", "multi_plane") => of(nand::MULTI_PLANES),
        ("nand", "read_priority") => vec!["true", "false"],
        // In addition to any number.
        ("firmware", "handlers") => vec!["1", "unlimited"],
        ("log" | "namespace", "stripe") => of(log::STRIPES),
        ("log" | "namespace", "ack") => of(log::ACKS),
        ("log" | "namespace", "gc_victims") => of(log::GC_VICTIMS),
        ("log", "ftl") => of(log::FTLS),
        ("index", "kind") => of(INDEXES),
        ("namespace", "kind") => of(namespace::KINDS),
        ("namespace", "gc_blocking") => of(block::GC_BLOCKINGS),
        ("namespace", "gc_frontier") => of(block::GC_FRONTIERS),
        _ => Vec::new(),
    }
}

fn of<T>(choices: &[(&'static str, T)]) -> Vec<&'static str> {
    choices.iter().map(|(word, _)| *word).collect()
}

/// Returns `word` in TOML syntax.
fn written(word: &str) -> String {
    match word {
        "true" | "false" | "1" => word.to_owned(),
        _ => format!("{word:?}"),
    }
}

#[cfg(test)]
mod tests;
