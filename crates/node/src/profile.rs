//! A device as its TOML file describes it.

mod comment;
mod cores;
mod error;
mod field;
mod firmware;
mod index;
mod link;
mod log;
mod namespace;
mod nand;
mod nanos;
mod near;
mod schema;
mod section;
mod source;

pub use self::comment::Assumption;
pub use self::cores::Cores;
pub use self::error::ProfileError;
pub use self::firmware::{Firmware, Handlers};
pub use self::index::Index;
pub use self::link::Link;
pub use self::log::{Ack, GcVictims, Log, Stripe};
pub use self::namespace::{Namespace, NamespaceKind};
pub use self::nand::{Model, Nand};

use self::schema::Schema;
use self::section::Section;
use self::source::Source;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The keys outside of any section: the sections, and what describes the profile.
const TOP: Schema = Schema {
    name: "",
    title: "",
    keys: &["description", "nand", "link", "firmware", "core", "log", "index", "namespace"],
};

/// Profiles that are part of the program: name and text.
const BUILTIN: &[(&str, &str)] = &[
    ("moke", include_str!("../profiles/moke.toml")),
    ("ideal", include_str!("../profiles/ideal.toml")),
    ("pm983-kv", include_str!("../profiles/pm983-kv.toml")),
    ("lightstore", include_str!("../profiles/lightstore.toml")),
];

/// Longest profile in bytes. The built-in ones take 6 KiB; this much is another kind of file.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// A device, checked, in the units that it works in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The built-in name or the path that it was loaded by.
    pub name: String,
    /// What the device is, in one line.
    pub description: String,
    /// The flash.
    pub nand: Nand,
    /// The link to the host.
    pub link: Link,
    /// The request handlers and what they take.
    pub firmware: Firmware,
    /// The cores that the device's code runs on.
    pub core: Cores,
    /// The log of records.
    pub log: Log,
    /// The index of where records lie.
    pub index: Index,
    /// The namespace that hosts see.
    pub namespace: Namespace,
    assumptions: Vec<Assumption>,
}

/// The names of the built-in profiles.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|&(name, _)| name)
}

impl Profile {
    /// The profile of this name or at this path. See [`Self::text`] for which is which.
    pub fn load(name_or_path: &str) -> Result<Self, ProfileError> {
        Self::parse(name_or_path, &Self::text(name_or_path)?)
    }

    /// The TOML of a profile, with its comments. Whatever contains a `/` or ends in `.toml` is the
    /// path of a file, anything else the name of a built-in profile.
    pub fn text(name_or_path: &str) -> Result<Cow<'static, str>, ProfileError> {
        let is_toml = Path::new(name_or_path).extension().is_some_and(|end| end == "toml");
        if is_toml || name_or_path.contains('/') {
            return read_file(name_or_path).map(Cow::Owned);
        }
        let builtin = BUILTIN.iter().find(|(name, _)| *name == name_or_path);
        builtin
            .map(|&(_, text)| Cow::Borrowed(text))
            .ok_or_else(|| ProfileError::UnknownName { name: name_or_path.to_owned() })
    }

    /// The profile that `text` describes. `name` is what errors call it.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let source = Source { name, text };
        let table = source.table()?;
        let top = Section::top(source, &TOP, &table)?;
        let nand = Nand::read(top.section(&nand::SCHEMA)?)?;
        let log = Log::read(top.section(&log::SCHEMA)?, &nand)?;
        let namespace = top.only_element(&namespace::SCHEMA)?;
        let namespace = Namespace::read(namespace, &nand, log.stripe)?;
        Ok(Self {
            name: name.to_owned(),
            description: top.field("description")?.line_of_text()?,
            link: Link::read(top.section(&link::SCHEMA)?)?,
            firmware: Firmware::read(top.section(&firmware::SCHEMA)?)?,
            core: Cores::read(top.section_or_defaults(&cores::SCHEMA)?)?,
            log,
            index: Index::read(top.section(&index::SCHEMA)?)?,
            namespace,
            assumptions: comment::assumptions(text, &table),
            nand,
        })
    }

    /// What the profile's comments say to be assumed and not taken from a source, in the file's
    /// order.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }
}

fn read_file(path: &str) -> Result<String, ProfileError> {
    let unreadable = |reason: String| ProfileError::Unreadable { file: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(unreadable(format!("a profile has at most {TEXT_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let source = Source { name: path, text: &String::from_utf8_lossy(error.as_bytes()) };
        let line = source.line(error.utf8_error().valid_up_to());
        source.error(line, "this is not text in UTF-8".to_owned())
    })
}

#[cfg(test)]
mod tests;
