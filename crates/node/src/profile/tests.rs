use super::schema::TOP;
use super::{
    Profile, ProfileError, cores, firmware, fitted, index, link, log, namespace, nand, power,
    schema::Schema,
};

const FULL: &str = include_str!("../../tests/integration/full.toml");
const GUIDE: &str = include_str!("../../../../docs/guide/profiles.md");

/// Every section, the file's top first.
const SCHEMAS: [&Schema; 10] = [
    &TOP,
    &nand::SCHEMA,
    &link::SCHEMA,
    &firmware::SCHEMA,
    &cores::SCHEMA,
    &power::SCHEMA,
    &log::SCHEMA,
    &index::SCHEMA,
    &namespace::SCHEMA,
    &fitted::SCHEMA,
];

/// Keys that may be left out of `full.toml`.
const OPTIONAL: [&str; 27] = [
    "checkpoint_mib",
    "dram_kib",
    "keys_max",
    "spare_bytes",
    "factory_bad_ppm",
    "page_map",
    "transfer_bytes",
    "cache_busy_us",
    "multi_plane",
    "program_suspend_us",
    "erase_suspend_us",
    "resume_us",
    "t_update_us",
    "t_write_kib_us",
    "t_read_kib_us",
    "read_priority",
    "variability_percent",
    "worn_cycles",
    "count",
    "parse_ns",
    "probe_ns",
    "complete_ns",
    "ftl",
    "gc_blocking",
    "gc_frontier",
    "gc_free_blocks",
    "wear_gap",
];

/// Keys that may be left out only together.
const PAIRED: [&str; 2] = ["read_retries", "endurance_cycles"];

/// The sections of `full.toml` with their keys and the number of the line that each is in.
fn keys_of_full() -> Vec<(&'static str, &'static str, usize)> {
    let mut section = "";
    let mut keys = Vec::new();
    for (index, line) in FULL.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, _)) = line.split_once(" = ") {
            keys.push((section, key, index + 1));
        }
    }
    keys
}

/// The same, each key of a section once: there are several `[[namespace]]`.
fn distinct_keys_of_full() -> Vec<(&'static str, &'static str)> {
    let mut distinct = Vec::new();
    for (section, key, _) in keys_of_full() {
        if !distinct.contains(&(section, key)) {
            distinct.push((section, key));
        }
    }
    distinct
}

/// `full.toml` with the line of this number replaced.
fn with_line(number: usize, new: &str) -> String {
    let line = |(index, old)| if index + 1 == number { new } else { old };
    FULL.lines().enumerate().map(|numbered| line(numbered).to_owned() + "\n").collect()
}

#[test]
fn the_full_profile_has_every_key_of_every_section() {
    for schema in SCHEMAS {
        let found: Vec<&str> = distinct_keys_of_full()
            .into_iter()
            .filter_map(|(section, key)| (section == schema.title).then_some(key))
            .collect();
        let keys = schema.keys.iter().copied();
        let is_plain = |key: &&str| !SCHEMAS.iter().any(|section| section.name == *key);
        assert_eq!(found, keys.filter(is_plain).collect::<Vec<_>>(), "{}", schema.title);
    }
    for schema in &SCHEMAS[1..] {
        assert!(TOP.keys.contains(&schema.name));
    }
}

#[test]
fn every_key_is_read_and_refuses_a_table() {
    for (_, key, line) in keys_of_full() {
        let text = with_line(line, &format!("{key} = {{}}"));
        let error = Profile::parse("full.toml", &text).unwrap_err().to_string();
        let begin = format!("full.toml line {line}: {key} ");
        assert!(error.starts_with(&begin), "{error}");
        assert!(error.contains(" is a table, but must be "), "{error}");
    }
}

#[test]
fn every_key_but_the_optional_ones_must_be_there() {
    for (_, key, line) in keys_of_full() {
        if PAIRED.contains(&key) {
            continue;
        }
        match Profile::parse("full.toml", &with_line(line, "")) {
            Ok(_) => assert!(OPTIONAL.contains(&key), "{key} may be left out"),
            Err(ProfileError::Invalid { problem, .. }) => {
                assert!(problem.contains(key) && !OPTIONAL.contains(&key), "{problem}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn the_guide_explains_every_key_that_exists_and_no_other() {
    let mut section = "";
    let mut explained = Vec::new();
    for line in GUIDE.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = if title == "At the top" { "" } else { title.trim_matches('`') };
        } else if let Some(row) = line.strip_prefix("| `") {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 5, "{line}");
            assert!(cells[1..4].iter().all(|cell| !cell.is_empty()), "{line}");
            let key = cells[0].trim_matches('`');
            let must = cells[3].starts_with("must be given");
            let is_optional = OPTIONAL.contains(&key) || PAIRED.contains(&key);
            assert_eq!(must, !is_optional, "{key}: may it be left out?");
            if !explained.contains(&(section, key)) {
                explained.push((section, key));
            }
        }
    }
    assert_eq!(explained, distinct_keys_of_full());
}
