use crate::profile::error::ProfileError;
use crate::profile::field::Field;
use crate::profile::near::nearest;
use crate::profile::schema::Schema;
use crate::profile::source::{Source, listed, quoted};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One section of a profile. It has no keys but known ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'t> {
    pub(super) source: Source<'t>,
    schema: &'static Schema,
    line: usize,
    table: Option<&'t DeTable<'t>>,
}

impl<'t> Section<'t> {
    /// The keys of the file that are in no section, the sections among them.
    pub(super) fn top(
        source: Source<'t>,
        schema: &'static Schema,
        table: &'t DeTable<'t>,
    ) -> Result<Self, ProfileError> {
        Self { source, schema, line: 1, table: Some(table) }.checked()
    }

    /// The section `[name]`, which must be there.
    pub(super) fn section(self, schema: &'static Schema) -> Result<Self, ProfileError> {
        let section = self.section_or_defaults(schema)?;
        match section.table {
            Some(_) => Ok(section),
            None => Err(section.lacks_itself()),
        }
    }

    /// The section `[name]`; where the file has none, one without any key.
    pub(super) fn section_or_defaults(self, schema: &'static Schema) -> Result<Self, ProfileError> {
        let section = Self { schema, line: 1, table: None, ..self };
        let Some(field) = self.optional(schema.name) else { return Ok(section) };
        let DeValue::Table(table) = field.value else {
            return Err(field.must_be(&format!("a section, written {}", schema.title)));
        };
        Self { line: field.line, table: Some(table), ..section }.checked()
    }

    /// The one element of `[[name]]`.
    pub(super) fn only_element(self, schema: &'static Schema) -> Result<Self, ProfileError> {
        let section = Self { schema, line: 1, table: None, ..self };
        let field = self.optional(schema.name).ok_or_else(|| section.lacks_itself())?;
        let as_written = || field.must_be(&format!("a section, written {}", schema.title));
        let DeValue::Array(elements) = field.value else { return Err(as_written()) };
        let first = elements.first().ok_or_else(as_written)?;
        if let Some(second) = elements.get(1) {
            let problem = format!("a second {}; one is all that is possible", schema.title);
            return Err(self.source.error(self.source.line(second.span().start), problem));
        }
        let DeValue::Table(table) = first.get_ref() else { return Err(as_written()) };
        let line = self.source.line(first.span().start);
        Self { line, table: Some(table), ..section }.checked()
    }

    /// The key `key`, which must be there.
    pub(super) fn field(self, key: &'static str) -> Result<Field<'t>, ProfileError> {
        self.optional(key).ok_or_else(|| self.lacks(&format!("the key {key:?}")))
    }

    /// The key `key`, if it is there.
    pub(super) fn optional(self, key: &'static str) -> Option<Field<'t>> {
        assert!(self.schema.keys.contains(&key), "the key {key} is not among those of its section");
        let (name, value) = self.table?.get_key_value(key)?;
        Some(Field {
            section: self,
            key,
            value: value.get_ref(),
            line: self.source.line(name.span().start),
        })
    }

    /// Where its keys are, as errors say it.
    pub(super) fn place(self) -> String {
        match self.schema.title {
            "" => "at the top".to_owned(),
            title => format!("in {title}"),
        }
    }

    /// The error that this section lacks `what`.
    pub(super) fn lacks(self, what: &str) -> ProfileError {
        let problem = format!("{what} is missing {}", self.place());
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
