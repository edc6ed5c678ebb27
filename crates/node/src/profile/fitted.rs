use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::schema::Schema;
use crate::profile::section::Section;
use base::human_bytes;
use base::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use serde::Serialize;

pub(super) const SCHEMA: Schema = Schema {
    name: "fitted",
    title: "[fitted]",
    keys: &["file", "workloads", "value_bytes", "key_bytes", "queue_depth"],
};

/// Maximum queue depth of a load.
const QUEUE_DEPTH_MAX: u32 = 65_535;

/// Bytes of the longest key.
const LONGEST_KEY: u32 = 255;

const _: () = assert!(LONGEST_KEY as usize == KEY_BYTES_MAX, "two names of one bound");

/// The loads of the measurements that a profile was fitted to. The profile is not validated for
/// other loads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fitted {
    /// The file of the measurements.
    pub file: String,
    /// The measured workloads, such as `insert`.
    pub workloads: Vec<String>,
    /// Bytes of the shortest and of the longest value.
    pub value_bytes: [u32; 2],
    /// The same of keys.
    pub key_bytes: [u32; 2],
    /// The minimum and maximum number of outstanding operations.
    pub queue_depth: [u32; 2],
}

/// A load, described by the parameters of the measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedLoad {
    /// Its workloads, such as `insert`.
    pub workloads: Vec<&'static str>,
    /// Bytes of the shortest and of the longest value.
    pub value_bytes: [u32; 2],
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Number of outstanding operations; `None` if unbounded.
    pub queue_depth: Option<u32>,
}

impl Fitted {
    /// Reads the section, if the profile has one.
    pub(super) fn read(top: Section<'_>) -> Result<Option<Self>, ProfileError> {
        if top.optional(SCHEMA.name).is_none() {
            return Ok(None);
        }
        let section = top.section(&SCHEMA)?;
        let range = |key, least, most| range(section.field(key)?, least, most);
        Ok(Some(Self {
            file: section.field("file")?.line_of_text()?,
            workloads: workloads(section.field("workloads")?)?,
            value_bytes: range("value_bytes", 0, VALUE_BYTES_MAX)?,
            key_bytes: range("key_bytes", 1, LONGEST_KEY)?,
            queue_depth: range("queue_depth", 1, QUEUE_DEPTH_MAX)?,
        }))
    }

    /// Describes the parameters of `load` outside of the measurements; `None` if all are inside.
    pub fn outside(&self, load: &FittedLoad) -> Option<String> {
        let mut found = Vec::new();
        let is_other = |name: &&&str| !self.workloads.iter().any(|fitted| fitted == **name);
        let others: Vec<&str> = load.workloads.iter().filter(is_other).copied().collect();
        if !others.is_empty() {
            found.push(format!("{}, not {}", self.workloads.join(", "), others.join(", ")));
        }
        let bytes = |count: u32| human_bytes(count.into());
        let mut compare = |what: &str, fitted: [u32; 2], asked: [u32; 2], shown: Shown| {
            if asked[0] < fitted[0] || asked[1] > fitted[1] {
                let (fitted, asked) = (span(fitted, shown), span(asked, shown));
                found.push(format!("{what} of {fitted}, not {asked}"));
            }
        };
        compare("values", self.value_bytes, load.value_bytes, bytes);
        compare("keys", self.key_bytes, [load.key_bytes; 2], bytes);
        let count = |count: u32| count.to_string();
        match load.queue_depth {
            Some(depth) => compare("queue depths", self.queue_depth, [depth; 2], count),
            None => found.push("queue depths, not rates".to_owned()),
        }
        (!found.is_empty()).then(|| found.join("; "))
    }
}

type Shown = fn(u32) -> String;

fn span([least, most]: [u32; 2], shown: Shown) -> String {
    if least == most { shown(least) } else { format!("{} to {}", shown(least), shown(most)) }
}

fn workloads(field: Field<'_>) -> Result<Vec<String>, ProfileError> {
    let names = field.elements().into_iter().map(Field::line_of_text);
    let names: Vec<String> =
        names.collect::<Result<_, _>>().map_err(|_| field.must_be("a list of names"))?;
    if names.is_empty() { Err(field.must_be("a list of names")) } else { Ok(names) }
}

fn range(field: Field<'_>, least: u32, most: u32) -> Result<[u32; 2], ProfileError> {
    let wrong =
        || field.must_be(&format!("two whole numbers from {least} to {most}: [smallest, largest]"));
    let [from, to] = field.elements()[..] else { return Err(wrong()) };
    let whole = |field: Field<'_>| field.whole(least..=most).map_err(|_| wrong());
    let found = [whole(from)?, whole(to)?];
    if found[0] > found[1] { Err(wrong()) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const FULL: &str = include_str!("../../tests/integration/full.toml");

    fn fitted() -> Fitted {
        Profile::parse("full.toml", FULL).unwrap().fitted.unwrap()
    }

    #[test]
    fn a_load_is_inside_up_to_the_ends_and_what_is_outside_is_named() {
        let inside = FittedLoad {
            workloads: vec!["insert"],
            value_bytes: [0, 8_192],
            key_bytes: 16,
            queue_depth: Some(64),
        };
        assert_eq!(fitted().outside(&inside), None);
        for (load, words) in [
            (
                FittedLoad { workloads: vec!["insert", "update"], ..inside.clone() },
                "insert, read, not update",
            ),
            (
                FittedLoad { value_bytes: [0, 8_193], ..inside.clone() },
                "values of 0 B to 8.0 KiB, not 0 B to 8.0 KiB",
            ),
            (FittedLoad { key_bytes: 17, ..inside.clone() }, "keys of 16 B, not 17 B"),
            (FittedLoad { key_bytes: 15, ..inside.clone() }, "keys of 16 B, not 15 B"),
            (
                FittedLoad { queue_depth: Some(65), ..inside.clone() },
                "queue depths of 1 to 64, not 65",
            ),
            (FittedLoad { queue_depth: None, ..inside.clone() }, "queue depths, not rates"),
        ] {
            assert_eq!(fitted().outside(&load).as_deref(), Some(words));
        }
    }

    #[test]
    fn ranges_and_names_are_checked() {
        for (line, instead, words) in [
            ("value_bytes = [0, 8192]", "value_bytes = [8, 4]", "two whole numbers from 0 to"),
            ("value_bytes = [0, 8192]", "value_bytes = [8]", "two whole numbers from 0 to"),
            ("key_bytes = [16, 16]", "key_bytes = [0, 16]", "two whole numbers from 1 to 255"),
            ("queue_depth = [1, 64]", "queue_depth = 64", "two whole numbers from 1 to 65535"),
            ("[\"insert\", \"read\"]", "[]", "a list of names"),
            ("[\"insert\", \"read\"]", "[1]", "a list of names"),
        ] {
            assert!(FULL.contains(line));
            let text = FULL.replace(line, instead);
            let error = Profile::parse("full.toml", &text).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("in [fitted]"), "{error}");
        }
    }
}
