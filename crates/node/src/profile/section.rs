use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::near::nearest;
use crate::profile::quote::{listed, quoted};
use crate::profile::schema::Schema;
use crate::profile::source::Source;
use base::Nanos;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One section of a profile, with known keys only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'t> {
    pub(crate) source: Source<'t>,
    schema: &'static Schema,
    line: usize,
    table: Option<&'t DeTable<'t>>,
}

impl<'t> Section<'t> {
    /// Returns the top level of the file: keys outside of sections, and the sections.
    pub(crate) fn top(
        source: Source<'t>,
        schema: &'static Schema,
        table: &'t DeTable<'t>,
    ) -> Result<Self, ProfileError> {
        Self { source, schema, line: 1, table: Some(table) }.checked()
    }

    /// Returns the section `[name]`, which must be present.
    pub(crate) fn section(self, schema: &'static Schema) -> Result<Self, ProfileError> {
        let section = self.section_or_defaults(schema)?;
        match section.table {
            Some(_) => Ok(section),
            None => Err(section.lacks_itself()),
        }
    }

    /// Returns the section `[name]`, or an empty one if the file has none.
    pub(crate) fn section_or_defaults(self, schema: &'static Schema) -> Result<Self, ProfileError> {
        let section = Self { schema, line: 1, table: None, ..self };
        let Some(field) = self.optional(schema.name) else { return Ok(section) };
        let DeValue::Table(table) = field.value else {
            return Err(field.must_be(&format!("a section, written {}", schema.title)));
        };
        Self { line: field.line, table: Some(table), ..section }.checked()
    }

    /// Returns the elements of `[[name]]`, at least one.
    pub(crate) fn elements(self, schema: &'static Schema) -> Result<Vec<Self>, ProfileError> {
        let section = Self { schema, line: 1, table: None, ..self };
        let field = self.optional(schema.name).ok_or_else(|| section.lacks_itself())?;
        let as_written = || field.must_be(&format!("a section, written {}", schema.title));
        let DeValue::Array(elements) = field.value else { return Err(as_written()) };
        if elements.is_empty() {
            return Err(as_written());
        }
        let tables = elements.iter().map(|element| {
            let DeValue::Table(table) = element.get_ref() else { return Err(as_written()) };
            let line = self.source.line(element.span().start);
            Self { line, table: Some(table), ..section }.checked()
        });
        tables.collect()
    }

    /// Refuses the section `[name]`, which does not apply to the device.
    pub(crate) fn refuse(self, schema: &'static Schema, reason: &str) -> Result<(), ProfileError> {
        match self.optional(schema.name) {
            None => Ok(()),
            Some(field) => Err(field.wrong(format!("{} is given, but {reason}", schema.title))),
        }
    }

    /// Returns the key `key`, which must be present.
    pub(crate) fn field(self, key: &'static str) -> Result<Field<'t>, ProfileError> {
        self.optional(key).ok_or_else(|| self.lacks(&format!("the key {key:?}")))
    }

    /// Returns the key `key`, if present.
    pub(crate) fn optional(self, key: &'static str) -> Option<Field<'t>> {
        assert!(self.schema.keys.contains(&key), "the key {key} is not among those of its section");
        let (name, value) = self.table?.get_key_value(key)?;
        Some(Field {
            section: self,
            key,
            value: value.get_ref(),
            line: self.source.line(name.span().start),
        })
    }

    /// Returns a whole number in `range`, or `default` without the key.
    pub(crate) fn whole_or(
        self,
        key: &'static str,
        range: RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, ProfileError> {
        self.optional(key).map_or(Ok(default), |field| field.whole(range))
    }

    /// Returns true or false, or `default` without the key.
    pub(crate) fn truth_or(self, key: &'static str, default: bool) -> Result<bool, ProfileError> {
        self.optional(key).map_or(Ok(default), Field::truth)
    }

    /// Returns a time given in microseconds, if the key is present.
    pub(crate) fn micros_or_none(self, key: &'static str) -> Result<Option<Nanos>, ProfileError> {
        self.optional(key).map(Field::micros).transpose()
    }

    /// Returns the name of the section in errors.
    pub(crate) fn place(self) -> String {
        match self.schema.title {
            "" => "at the top".to_owned(),
            title => format!("in {title}"),
        }
    }

    /// Returns the error that this section lacks `what`.
    pub(crate) fn lacks(self, what: &str) -> ProfileError {
        self.wrong(format!("{what} is missing {}", self.place()))
    }

    /// Returns the error `problem` at this section.
    pub(crate) fn wrong(self, problem: String) -> ProfileError {
        self.source.error(self.line, problem)
    }

    fn lacks_itself(self) -> ProfileError {
        self.source.error(1, format!("the section {} is missing", self.schema.title))
    }

    fn checked(self) -> Result<Self, ProfileError> {
        let unknown = |name: &Spanned<_>| !self.schema.keys.iter().any(|key| name.get_ref() == key);
        let found = self.table.into_iter().flatten().filter(|(name, _)| unknown(name));
        match found.min_by_key(|(name, _)| name.span().start) {
            None => Ok(self),
            Some((name, value)) => {
                let line = self.source.line(name.span().start);
                Err(self.source.error(line, self.unknown(name.get_ref(), value.get_ref())))
            }
        }
    }

    fn unknown(self, name: &str, value: &DeValue<'_>) -> String {
        let noun = match value {
            DeValue::Table(_) | DeValue::Array(_) if self.schema.name.is_empty() => "section",
            _ => "key",
        };
        let hint = nearest(name, self.schema.keys).map_or_else(
            || format!("known there are {}", listed(self.schema.keys.iter().copied(), "and")),
            |key| format!("did you mean {key:?}?"),
        );
        format!("unknown {noun} {} {}; {hint}", quoted(name), self.place())
    }
}
