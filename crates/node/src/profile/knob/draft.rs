use super::{Change, Knob, words, written};
use crate::profile::fitted;
use crate::profile::source::Source;
use crate::profile::{Profile, ProfileError};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys whose product is the size of the flash.
const GEOMETRY: [&str; 6] = [
    "nand.channels",
    "nand.dies_per_channel",
    "nand.planes_per_die",
    "nand.blocks_per_plane",
    "nand.pages_per_block",
    "nand.page_bytes",
];

/// The text of a profile in which single values can be changed. The rest of the text stays as is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    name: String,
    text: String,
}

/// The position of a key in the text.
#[derive(Clone, Debug)]
struct Place {
    section: String,
    key: String,
    /// The range of the key and its value.
    whole: Range<usize>,
    value: Range<usize>,
    /// The kind of its value.
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// The numbers, each with its place.
    Numbers(Vec<(Range<usize>, Number)>),
    /// A word or a truth.
    Word(String),
    Text,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Whole(u64),
    Fraction(f64),
}

impl Draft {
    /// Parses the profile `text`. Errors call it `name`.
    pub fn new(name: &str, text: &str) -> Result<Self, ProfileError> {
        Profile::parse(name, text)?;
        Ok(Self { name: name.to_owned(), text: text.to_owned() })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the text as a profile.
    pub fn profile(&self) -> Result<Profile, ProfileError> {
        Profile::parse(&self.name, &self.text)
    }

    /// Returns every number, every list of numbers and every key with a choice of words, in the
    /// order of the text.
    pub fn knobs(&self) -> Vec<Knob> {
        let mut places = self.places();
        places.retain(|place| place.section != fitted::SCHEMA.name);
        places.sort_by_key(|place| place.whole.start);
        places.iter().filter_map(|place| self.knob(place)).collect()
    }

    fn knob(&self, place: &Place) -> Option<Knob> {
        let changes = match &place.content {
            Content::Numbers(numbers) if numbers.iter().all(|(_, number)| number.is_zero()) => {
                Vec::new()
            }
            Content::Numbers(_) => vec![Change::Halved, Change::Doubled],
            Content::Word(word) => {
                let section = place.section.split('.').next().unwrap_or_default();
                let words = words(section, &place.key);
                let others = words.into_iter().filter(|other| *other != word.as_str());
                let others: Vec<Change> = others.map(Change::To).collect();
                if others.is_empty() {
                    return None;
                }
                others
            }
            Content::Text => return None,
        };
        let value = self.text[place.value.clone()].to_owned();
        Some(Knob { key: place.name(), value, changes })
    }

    /// Returns a copy with the value of `key` changed, or an error if the copy is not valid. Half
    /// of an odd number has a fraction, or is rounded down if the key allows none. Sizes of
    /// namespaces scale with the flash, so that their over-provisioning stays.
    ///
    /// # Panics
    /// If the text has no such key, or one whose value is neither scaled nor a word.
    pub fn changed(&self, key: &str, change: Change) -> Result<Self, ProfileError> {
        let place = self.place(key);
        let place = place.unwrap_or_else(|| panic!("{key} is a key of the profile"));
        match (&place.content, change) {
            (Content::Numbers(numbers), Change::Halved | Change::Doubled) => {
                let exact = self.scaled(numbers, |number| number.scaled(change));
                let draft = self.with_sizes_of(key, exact);
                draft.profile().map(|_| draft).or_else(|refusal| {
                    let rounded = self.scaled(numbers, |number| number.scaled_down(change));
                    let draft = self.with_sizes_of(key, rounded);
                    draft.profile().map(|_| draft).map_err(|_| refusal)
                })
            }
            (_, Change::To(word)) => {
                let draft = self.replaced(place.value, &written(word));
                draft.profile().map(|_| draft)
            }
            _ => panic!("{key} is neither a number nor one of a few words"),
        }
    }

    fn scaled(&self, numbers: &[(Range<usize>, Number)], scale: impl Fn(Number) -> String) -> Self {
        let mut draft = self.clone();
        for (range, number) in numbers.iter().rev() {
            draft.text.replace_range(range.clone(), &scale(*number));
        }
        draft
    }

    /// Scales the namespace sizes of `changed`, which differs from this in `key`, with its flash.
    fn with_sizes_of(&self, key: &str, changed: Self) -> Self {
        if !GEOMETRY.contains(&key) {
            return changed;
        }
        let ratio = changed.number(key) / self.number(key);
        if key != "nand.blocks_per_plane" {
            return changed.with_sizes_times(ratio);
        }
        // Each namespace has whole blocks of a plane, and rounding may need one more.
        let namespaces = changed.sizes().count();
        let blocks = changed.number(key) - f64::from(u32::try_from(namespaces).unwrap_or(u32::MAX));
        changed.with_sizes_times(blocks / self.number(key))
    }

    fn with_sizes_times(&self, ratio: f64) -> Self {
        let mut draft = self.clone();
        let sizes: Vec<String> = self.sizes().collect();
        for key in sizes {
            draft = draft.set(&key, &(draft.number(&key) * ratio).to_string());
        }
        draft
    }

    fn sizes(&self) -> impl Iterator<Item = String> {
        self.places().into_iter().map(|place| place.name()).filter(|key| key.ends_with(".size_gb"))
    }

    /// Returns the first number of `key`, or 0.
    fn number(&self, key: &str) -> f64 {
        match self.place(key).map(|place| place.content) {
            Some(Content::Numbers(numbers)) => {
                numbers.first().map_or(0.0, |(_, number)| number.value())
            }
            _ => 0.0,
        }
    }

    /// Returns a copy in which a namespace on the whole flash has an over-provisioning instead of a
    /// size. Then the over-provisioning stays when the flash grows.
    pub fn with_over_provisioning(&self) -> Result<Self, ProfileError> {
        let profile = self.profile()?;
        let [namespace] = &profile.namespaces[..] else { return Ok(self.clone()) };
        let share = format!("{:.6}", namespace.over_provisioning);
        let (size, spare) = ("namespace.1.size_gb", "namespace.1.over_provisioning");
        let draft = match (self.place(size), self.place(spare)) {
            (None, _) => self.clone(),
            (Some(_), Some(_)) => self.without(size).set(spare, &share),
            (Some(place), None) => {
                self.replaced(place.whole, &format!("over_provisioning = {share}"))
            }
        };
        draft.profile().map(|_| draft)
    }

    /// Returns a copy with `key` set to `value`, in TOML syntax. A missing key becomes the first of
    /// its section. The result is not checked.
    ///
    /// # Panics
    /// If there is no such section.
    #[must_use]
    pub fn set(&self, key: &str, value: &str) -> Self {
        if let Some(place) = self.place(key) {
            return self.replaced(place.value, value);
        }
        let (section, name) = key.rsplit_once('.').expect("keys that are set are in a section");
        let head = self.heads().into_iter().find(|(title, _)| title == section);
        let line = format!("{name} = {value}\n");
        let Some((_, head)) = head else {
            return Self { text: format!("{}\n[{section}]\n{line}", self.text), ..self.clone() };
        };
        let end = self.text[head..].find('\n').map_or(self.text.len(), |end| head + end + 1);
        self.replaced(end..end, &line)
    }

    /// Returns a copy in which `comment` replaces the source of the value in the comment of `key`.
    /// The key's description before it stays. Without the key nothing changes.
    #[must_use]
    pub fn commented(&self, key: &str, comment: &str) -> Self {
        let Some(place) = self.place(key) else { return self.clone() };
        let end = self.text[..place.whole.start].rfind('\n').map_or(0, |end| end + 1);
        let above = self.text[..end].lines().rev().take_while(|line| line.starts_with('#'));
        let mut lines: Vec<&str> = above.collect();
        let start = end - lines.iter().map(|line| line.len() + 1).sum::<usize>();
        lines.reverse();
        let mut kept = String::new();
        for line in lines {
            let source =
                [line.find("assumption:"), line.find("Source:")].into_iter().flatten().min();
            let meaning = &line[..source.unwrap_or(line.len())];
            if !meaning.trim_matches(['#', ' ']).is_empty() {
                kept.extend([meaning.trim_end(), "\n"]);
            }
            if source.is_some() {
                break;
            }
        }
        kept.extend(comment.lines().flat_map(|line| ["# ", line, "\n"]));
        self.replaced(start..end, &kept)
    }

    /// Returns a copy without `key`, if present.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let Some(place) = self.place(key) else { return self.clone() };
        self.replaced(place.whole, "")
    }

    fn replaced(&self, range: Range<usize>, value: &str) -> Self {
        let mut draft = self.clone();
        draft.text.replace_range(range, value);
        draft
    }

    fn place(&self, key: &str) -> Option<Place> {
        self.places().into_iter().find(|place| place.name() == key)
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        self.for_each_table(|section, _, table| {
            places.extend(table.iter().map(|(name, value)| Place {
                section: section.to_owned(),
                key: name.get_ref().to_string(),
                whole: name.span().start..value.span().end,
                value: value.span(),
                content: Content::of(value),
            }));
        });
        places
    }

    /// Returns the sections and the positions of their heads.
    fn heads(&self) -> Vec<(String, usize)> {
        let mut heads = Vec::new();
        self.for_each_table(|section, head, _| heads.push((section.to_owned(), head)));
        heads
    }

    fn for_each_table(&self, mut visit: impl FnMut(&str, usize, &DeTable<'_>)) {
        let table = Source { name: &self.name, text: &self.text }.table();
        // Text that is not TOML has no keys.
        let Ok(table) = table else { return };
        for (name, value) in &table {
            match value.get_ref() {
                DeValue::Table(section) => visit(name.get_ref(), name.span().start, section),
                DeValue::Array(elements) => {
                    for (number, element) in (1..).zip(elements) {
                        if let DeValue::Table(section) = element.get_ref() {
                            let title = format!("{}.{number}", name.get_ref());
                            visit(&title, element.span().start, section);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

impl Place {
    fn name(&self) -> String {
        format!("{}.{}", self.section, self.key)
    }
}

impl Content {
    fn of(value: &Spanned<DeValue<'_>>) -> Self {
        match value.get_ref() {
            DeValue::String(word) => Self::Word(word.to_string()),
            DeValue::Boolean(truth) => Self::Word(truth.to_string()),
            DeValue::Array(elements) => {
                let numbers =
                    elements.iter().map(|element| Some((element.span(), number(element)?)));
                numbers.collect::<Option<Vec<_>>>().map_or(Self::Text, Self::Numbers)
            }
            _ => number(value)
                .map_or(Self::Text, |number| Self::Numbers(vec![(value.span(), number)])),
        }
    }
}

fn number(value: &Spanned<DeValue<'_>>) -> Option<Number> {
    match value.get_ref() {
        DeValue::Integer(digits) => {
            u64::from_str_radix(digits.as_str(), digits.radix()).ok().map(Number::Whole)
        }
        DeValue::Float(digits) => digits.as_str().parse().ok().map(Number::Fraction),
        _ => None,
    }
}

impl Number {
    #[expect(clippy::cast_precision_loss, reason = "what a profile may say is far below 2^53")]
    fn value(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Fraction(number) => number,
        }
    }

    fn is_zero(self) -> bool {
        self.value() == 0.0
    }

    fn scaled(self, change: Change) -> String {
        match (self, change) {
            (Self::Whole(whole), Change::Doubled) => (whole * 2).to_string(),
            (_, Change::Doubled) => (self.value() * 2.0).to_string(),
            _ => (self.value() / 2.0).to_string(),
        }
    }

    fn scaled_down(self, change: Change) -> String {
        match (self, change) {
            (Self::Whole(whole), Change::Halved) => (whole / 2).to_string(),
            _ => self.scaled(change),
        }
    }
}
