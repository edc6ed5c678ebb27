//! Profiles: TOML files that describe devices.

mod block;
mod builtin;
mod comment;
mod cores;
mod error;
pub(crate) mod field;
mod firmware;
mod fit;
mod fitted;
mod index;
mod knob;
mod levels;
mod link;
mod log;
mod namespace;
mod nand;
mod nanos;
mod near;
mod power;
pub(crate) mod quote;
mod region;
pub(crate) mod schema;
pub(crate) mod section;
mod size;
pub(crate) mod source;
mod suspend;
mod undelayed;
mod wear;
mod zoned;

pub(crate) use self::block::GC_FREE_BLOCKS;
pub use self::block::{Block, GcBlocking, GcFrontier};
pub use self::builtin::builtin_names;
pub use self::comment::Assumption;
pub use self::cores::Cores;
pub use self::error::ProfileError;
pub use self::firmware::{Firmware, Handlers};
pub use self::fitted::{Fitted, FittedLoad};
pub use self::index::Index;
pub use self::knob::{Change, Draft, Knob, keys};
pub use self::levels::Levels;
pub use self::link::Link;
pub use self::log::{Ack, GcVictims, Log, LogFtl, Stripe};
pub use self::namespace::{Namespace, NamespaceKind};
pub use self::nand::{Model, MultiPlane, Nand};
pub use self::power::Power;
pub use self::suspend::Suspend;
pub use self::wear::{ReadRetries, Wear};
pub use self::zoned::Zoned;

use self::builtin::BUILTIN;
use self::fit::Fit;
use self::namespace::{Given, kv_bytes};
use self::schema::TOP;
use self::section::Section;
use self::source::Source;
use ftl::Region;
use serde::Serialize;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum profile in bytes. The built-in ones take 6 KiB; a larger file is no profile.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// A checked description of a device, in the units of the code.
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
    /// The request handlers and their times.
    pub firmware: Firmware,
    /// The cores that the device's code runs on.
    pub core: Cores,
    /// Energy for data in memory at a loss of power; `None` if it suffices for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// The log of records, where there are namespaces of keys and values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<Log>,
    /// The index of where records lie, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<Index>,
    /// The measurements that its numbers were fitted to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Fitted>,
    /// The namespaces in the order of their ids, from 1.
    pub namespaces: Vec<Namespace>,
    assumptions: Vec<Assumption>,
    /// The line of the size of each namespace.
    #[serde(skip)]
    size_lines: Vec<usize>,
}

impl Profile {
    /// Loads a profile by its name or path. [`Self::text`] says how the two differ.
    pub fn load(name_or_path: &str) -> Result<Self, ProfileError> {
        Self::parse(name_or_path, &Self::text(name_or_path)?)
    }

    pub(crate) fn is_path(name_or_path: &str) -> bool {
        let is_toml = Path::new(name_or_path).extension().is_some_and(|end| end == "toml");
        is_toml || name_or_path.contains('/')
    }

    /// Returns whether a profile of this name is built in.
    pub(crate) fn is_built_in(name: &str) -> bool {
        BUILTIN.iter().any(|(known, _)| *known == name)
    }

    /// Returns the TOML of a profile, with its comments. An argument that contains a `/` or ends in
    /// `.toml` is the path of a file, any other the name of a built-in profile.
    pub fn text(name_or_path: &str) -> Result<Cow<'static, str>, ProfileError> {
        if Self::is_path(name_or_path) {
            return read_file(name_or_path, "a profile").map(Cow::Owned);
        }
        let builtin = BUILTIN.iter().find(|(name, _)| *name == name_or_path);
        builtin
            .map(|&(_, text)| Cow::Borrowed(text))
            .ok_or_else(|| ProfileError::UnknownName { name: name_or_path.to_owned() })
    }

    /// Parses a profile. Errors call it `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let source = Source { name, text };
        let table = source.table()?;
        let top = Section::top(source, &TOP, &table)?;
        let nand = Nand::read(top.section(&nand::SCHEMA)?)?;
        let given = namespace::read_all(top, &nand)?;
        let (log, index) = read_store(top, &nand, &given)?.unzip();
        let has_keys = log.is_some();
        let size_lines = given.iter().map(|given| given.field.line).collect();
        let namespaces: Vec<Namespace> = given.into_iter().map(|given| given.namespace).collect();
        Ok(Self {
            name: name.to_owned(),
            description: top.field("description")?.line_of_text()?,
            link: Link::read(top.section(&link::SCHEMA)?)?,
            firmware: Firmware::read(top.section(&firmware::SCHEMA)?, has_keys)?,
            core: Cores::read(top.section_or_defaults(&cores::SCHEMA)?)?,
            power: Power::read(top)?,
            log,
            index,
            fitted: Fitted::read(top)?,
            namespaces,
            assumptions: comment::assumptions(text, &table),
            size_lines,
            nand,
        })
    }

    /// Returns the blocks of every plane that each namespace has. Namespaces of keys and values
    /// share theirs.
    ///
    /// # Panics
    /// If the namespaces do not fit the flash. Those of a parsed profile fit.
    pub fn regions(&self) -> Vec<Region> {
        let regions = region::regions(&self.nand, &self.namespaces);
        regions.expect("the namespaces together fit the flash")
    }

    /// Returns the size of all namespaces of keys and values for hosts, in bytes.
    pub fn kv_bytes(&self) -> u64 {
        kv_bytes(&self.namespaces)
    }

    /// Names the profile in an error about the size of namespace `nsid`, with the line of that.
    pub(crate) fn place_of_size(&self, nsid: u32) -> String {
        let line = (nsid as usize).checked_sub(1).and_then(|at| self.size_lines.get(at));
        let name = self.name.escape_debug();
        line.map_or_else(|| name.to_string(), |line| format!("{name} line {line}"))
    }

    /// A hash of all that a device of this profile does: of nothing that is for people only.
    pub(crate) fn meaning(&self) -> u128 {
        let meaning = Self {
            name: String::new(),
            description: String::new(),
            assumptions: Vec::new(),
            size_lines: Vec::new(),
            fitted: None,
            ..self.clone()
        };
        let text = serde_json::to_vec(&meaning).expect("a profile can be written down");
        base::checksum::hash128(&text)
    }

    /// Checks an index that replaces the profile's own. Fails if it has too little memory for its
    /// keys or too little flash for its table.
    pub fn check_index(&self) -> Result<(), String> {
        let (Some(log), Some(index)) = (&self.log, &self.index) else { return Ok(()) };
        index.check_budget(self.kv_bytes())?;
        let at = self.namespaces.iter().position(|namespace| namespace.kind.is_kv());
        let region = self.regions()[at.expect("a log is of namespaces of keys and values")];
        let shape = match log.ftl {
            LogFtl::Append { stripe } => size::log_on_flash(stripe, &self.nand, region),
            LogFtl::Page => {
                let bytes = size::log_layer_bytes(self.kv_bytes(), &self.nand, region);
                size::log_on_layer(bytes, &self.nand)
            }
        };
        size::extents_problem(self.kv_bytes(), &shape, log, index)
    }

    /// Returns the bytes of the page-mapped layer between the log and its flash, if there is one.
    pub fn log_layer_bytes(&self) -> Option<u64> {
        self.log.as_ref().filter(|log| log.ftl == LogFtl::Page)?;
        let at = self.namespaces.iter().position(|namespace| namespace.kind.is_kv())?;
        Some(size::log_layer_bytes(self.kv_bytes(), &self.nand, self.regions()[at]))
    }

    /// Returns the values that the profile's comments call assumptions, in the file's order.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }
}

/// Reads the sections that namespaces of keys and values need; none if there are none.
fn read_store(
    top: Section<'_>,
    nand: &Nand,
    given: &[Given<'_>],
) -> Result<Option<(Log, Index)>, ProfileError> {
    let namespaces: Vec<Namespace> = given.iter().map(|given| given.namespace.clone()).collect();
    let regions = region::regions(nand, &namespaces).expect("that they fit was checked");
    let fit = Fit { nand, store: None };
    (0..given.len()).try_for_each(|at| fit.check(given, at))?;
    let Some(last) = namespaces.iter().rposition(|namespace| namespace.kind.is_kv()) else {
        let reason = "there is no [[namespace]] of kind \"kv\"";
        top.refuse(&log::SCHEMA, reason)?;
        top.refuse(&index::SCHEMA, reason)?;
        return Ok(None);
    };
    let log = Log::read(top.section(&log::SCHEMA)?, nand, regions[last].count)?;
    let kv_bytes = kv_bytes(&namespaces);
    let index = Index::read(top.section(&index::SCHEMA)?, kv_bytes)?;
    Fit { nand, store: Some((&log, &index)) }.check(given, last)?;
    Ok(Some((log, index)))
}

/// Reads the text of `what` at `path`.
pub(crate) fn read_file(path: &str, what: &str) -> Result<String, ProfileError> {
    let unreadable = |reason: String| ProfileError::Unreadable { file: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(unreadable(format!("{what} has at most {TEXT_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let source = Source { name: path, text: &String::from_utf8_lossy(error.as_bytes()) };
        let line = source.line(error.utf8_error().valid_up_to());
        source.error(line, "this is not text in UTF-8".to_owned())
    })
}

#[cfg(test)]
mod tests;
