use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::section::Section;
use base::Nanos;
use nand::PageMap;
use serde::Serialize;

/// Most bits of a cell, each of which makes a page of its own level.
const LEVELS_MAX: usize = 4;

/// What each page takes to sense and to program. A cell of several bits has a page of each, and
/// they differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Levels {
    /// From cells to register, by level: 1 to 4.
    #[serde(rename = "read_ns", with = "super::nanos::each")]
    pub read: Vec<Nanos>,
    /// From register to cells, by level: as many.
    #[serde(rename = "program_ns", with = "super::nanos::each")]
    pub program: Vec<Nanos>,
    /// Which level each page of a block has, as [`PageMap`] reads it.
    pub page_map: String,
}

impl Levels {
    /// One level for all pages.
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

/// One time, or one for each level.
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

/// The page map of a block: the one given, or one that interleaves.
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

/// Refuses text that is no page map, and one that has other levels than there are: a level that no
/// page has would be a number without meaning.
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

/// Each page of the next level, and then the first again.
fn interleaved(levels: usize) -> String {
    format!("({})", &"0123"[..levels])
}
