use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::section::Section;
use base::Nanos;
use nand::PageMap;
use serde::Serialize;

/// Maximum bits of a cell, each of which is a page of its own level.
const LEVELS_MAX: usize = 4;

/// The read and program times of pages. A cell of several bits has one page for each bit, with
/// different times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Levels {
    /// Read times, cells to register, by level: 1 to 4.
    #[serde(rename = "read_ns", with = "super::nanos::each")]
    pub read: Vec<Nanos>,
    /// Program times, register to cells, by level: as many.
    #[serde(rename = "program_ns", with = "super::nanos::each")]
    pub program: Vec<Nanos>,
    /// The level of each page of a block, in the syntax of [`PageMap`].
    pub page_map: String,
}

impl Levels {
    /// Returns one level for all pages.
    pub fn uniform(read: Nanos, program: Nanos) -> Self {
        Self { read: vec![read], program: vec![program], page_map: interleaved(1) }
    }

    pub(super) fn read(section: Section<'_>, pages_per_block: u32) -> Result<Self, ProfileError> {
        let (read, program) = (section.field("read_us")?, section.field("program_us")?);
        let levels = Self { read: times(read)?, program: times(program)?, page_map: String::new() };
        let (reads, programs) = (levels.read.len(), levels.program.len());
        if reads != programs {
            return Err(program.wrong(format!(
                "program_us has {programs} levels, but read_us in line {} has {reads}; give both \
                 the same",
                read.line
            )));
        }
        let page_map = page_map(section, reads, pages_per_block)?;
        Ok(Self { page_map, ..levels })
    }
}

/// Reads one time, or one for each level.
fn times(field: Field<'_>) -> Result<Vec<Nanos>, ProfileError> {
    let elements = field.elements();
    if elements.is_empty() {
        if field.is_array() {
            return Err(field.must_be("a number or a list of 1 to 4"));
        }
        return Ok(vec![field.micros()?]);
    }
    if elements.len() > LEVELS_MAX {
        return Err(field.must_be("a number or a list of 1 to 4"));
    }
    elements.into_iter().map(Field::micros).collect()
}

/// Reads the page map of a block; by default it interleaves the levels.
fn page_map(
    section: Section<'_>,
    levels: usize,
    pages_per_block: u32,
) -> Result<String, ProfileError> {
    let field = section.optional("page_map");
    let Some(field) = field else {
        let text = interleaved(levels);
        check_used(section.field("read_us")?, &text, levels, pages_per_block)?;
        return Ok(text);
    };
    if levels == 1 {
        return Err(field.wrong("page_map is given, but read_us has only one level".to_owned()));
    }
    let text = field.line_of_text()?;
    check_used(field, &text, levels, pages_per_block)?;
    Ok(text)
}

/// Checks that the page map is valid and uses exactly the levels of the times: a level without a
/// page would have a time without effect.
fn check_used(
    field: Field<'_>,
    text: &str,
    levels: usize,
    pages_per_block: u32,
) -> Result<(), ProfileError> {
    let map = text.parse::<PageMap>().map_err(|error| field.wrong(error.to_string()))?;
    if map.levels() > levels {
        return Err(field.wrong(format!(
            "page_map names level {}, but read_us has {levels}, counted from 0",
            map.levels() - 1
        )));
    }
    let of_pages = || (0..pages_per_block).map(|page| map.level(page));
    match (0..levels).find(|level| !of_pages().any(|of_page| of_page == *level)) {
        None => Ok(()),
        Some(level) => Err(field.wrong(format!(
            "of the {levels} levels of read_us, counted from 0, none of the {pages_per_block} \
             pages of a block has level {level}"
        ))),
    }
}

/// Returns the page map that cycles through the levels.
fn interleaved(levels: usize) -> String {
    format!("({})", &"0123"[..levels])
}
