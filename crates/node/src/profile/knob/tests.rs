use super::*;
use crate::profile::{Profile, ProfileError};

const FULL: &str = include_str!("../../../tests/integration/full.toml");
const SINGLE: &str = include_str!("../../../tests/integration/single.toml");

fn full() -> Draft {
    Draft::new("full", FULL).unwrap()
}

/// The only line in which `draft` differs from `text`.
fn changed_line(text: &str, draft: &Draft) -> String {
    assert_eq!(text.lines().count(), draft.text().lines().count());
    let pairs = text.lines().zip(draft.text().lines());
    let different: Vec<_> = pairs.filter(|(before, after)| before != after).collect();
    assert_eq!(different.len(), 1, "{different:?}");
    different[0].1.to_owned()
}

#[test]
fn a_number_is_scaled_and_all_else_stays() {
    let commented = FULL.replace("erase_us = 3_500", "erase_us = 3_500 # \u{e9}, a comment");
    let draft = Draft::new("full", &commented).unwrap();
    for (key, change, line) in [
        ("nand.erase_us", Change::Doubled, "erase_us = 7000 # \u{e9}, a comment"),
        ("nand.read_us", Change::Doubled, "read_us = [91, 120]"),
        ("nand.program_us", Change::Halved, "program_us = [330, 900]"),
        ("nand.cache_busy_us", Change::Halved, "cache_busy_us = 1.5"),
        ("firmware.t_exist_us", Change::Doubled, "t_exist_us = 4"),
        ("firmware.t_delete_us", Change::Halved, "t_delete_us = 5"),
        ("namespace.2.gc_free_blocks", Change::Halved, "gc_free_blocks = 1"),
        ("namespace.2.gc_victims", Change::To("fifo"), "gc_victims = \"fifo\""),
        ("nand.read_priority", Change::To("false"), "read_priority = false"),
    ] {
        let changed = draft.changed(key, change).unwrap();
        assert_eq!(changed_line(&commented, &changed), line, "{key}");
        assert!(changed.profile().is_ok(), "{key}");
    }
}

#[test]
fn what_cannot_be_is_refused_as_the_reader_refuses_it() {
    let draft = full();
    let refusal = |key, change| match draft.changed(key, change) {
        Err(ProfileError::Invalid { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert!(refusal("nand.registers", Change::Doubled).contains("from 1 to 2"));
    assert!(refusal("namespace.1.kind", Change::To("zoned")).contains("is missing"));
    assert!(refusal("nand.model", Change::To("scalar")).contains("does not know"));
}

#[test]
fn a_larger_flash_keeps_its_over_provisioning() {
    let single = Draft::new("single", SINGLE).unwrap().with_over_provisioning().unwrap();
    let spare = |draft: &Draft| {
        let profile = draft.profile().unwrap();
        let spares = profile.namespaces.iter().map(|namespace| namespace.over_provisioning);
        (spares.collect::<Vec<_>>(), profile.nand.raw_bytes())
    };
    for draft in [&single, &full()] {
        let (before, raw) = spare(draft);
        for key in ["channels", "dies_per_channel", "blocks_per_plane", "pages_per_block"] {
            let (after, larger) =
                spare(&draft.changed(&format!("nand.{key}"), Change::Doubled).unwrap());
            assert_eq!(larger, 2 * raw, "{key}");
            let is_same = before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-4);
            assert!(is_same, "{key}: {before:?} {after:?}");
        }
    }
    let before = Profile::parse("single", SINGLE).unwrap().namespaces[0].size_bytes;
    let after = single.profile().unwrap().namespaces[0].size_bytes;
    assert!(before.abs_diff(after) < 1_000, "{before} {after}");
    let larger = full().changed("nand.blocks_per_plane", Change::Doubled).unwrap();
    assert!(larger.changed("nand.blocks_per_plane", Change::Halved).is_ok(), "all three fit");
}

#[test]
fn a_key_is_set_or_added_or_taken_away() {
    let draft = full();
    let added = draft.without("nand.page_map").without("core.count");
    assert!(!added.text().contains("page_map"));
    assert_eq!(added.profile().unwrap().core.count, 1);
    let added = added.set("nand.page_map", "\"(01)\"").set("core.count", "3");
    let profile = added.profile().unwrap();
    assert_eq!((profile.nand.levels.page_map.as_str(), profile.core.count), ("(01)", 3));
    let single = Draft::new("single", SINGLE).unwrap();
    let text = single
        .text()
        .replace("[core]\ncount = 2\nparse_ns = 100\nprobe_ns = 50.6\ncomplete_ns = 1\n", "");
    let single = Draft::new("single", &text).unwrap();
    assert_eq!(single.set("core.count", "5").profile().unwrap().core.count, 5);
}

/// Numbers, and keys with words: what is neither is text, and `[fitted]` is of the profile.
#[test]
fn every_number_and_every_choice_of_a_profile_is_a_knob() {
    let draft = full();
    let knobs = draft.knobs();
    let (of_device, _) = FULL.split_once("[fitted]").unwrap();
    let values = of_device.lines().filter_map(|line| line.split_once(" = "));
    let texts = ["description", "page_map"];
    let expected: Vec<_> = values.filter(|(key, _)| !texts.contains(key)).collect();
    let found: Vec<_> = knobs
        .iter()
        .map(|knob| (knob.key.rsplit('.').next().unwrap(), knob.value.as_str()))
        .collect();
    assert_eq!(found, expected);
    for knob in &knobs {
        let is_zero = knob.value == "0";
        assert_eq!(knob.changes.is_empty(), is_zero, "{knob:?}");
    }
}

/// The reader names the words that it takes when it refuses one that it does not.
#[test]
fn the_words_of_a_key_are_those_that_the_reader_names() {
    let draft = full();
    for key in draft.knobs().into_iter().map(|knob| knob.key) {
        let refused = draft.set(&key, "\"no such word\"").profile();
        let Err(ProfileError::Invalid { problem, .. }) = refused else { panic!("{key}") };
        let (_, named) = problem.split_once("must be ").unwrap();
        let (section, name) = key.rsplit_once('.').unwrap();
        let words = words(section.split('.').next().unwrap(), name);
        if key == "firmware.handlers" {
            assert!(named.contains("\"unlimited\""));
        } else if named.starts_with('"') {
            let listed = crate::profile::quote::listed(words, "or");
            assert_eq!(named, listed, "{key}");
        } else {
            assert_eq!(words.is_empty(), named != "true or false", "{key}: {named}");
        }
    }
}

#[test]
fn every_key_of_a_full_profile_is_listed() {
    let keys = keys();
    for key in full().knobs().into_iter().map(|knob| knob.key) {
        let (section, name) = key.rsplit_once('.').unwrap();
        let sections: &[&str] = if section.starts_with("namespace") {
            &["namespace", "block", "zoned"]
        } else {
            &[section]
        };
        let is_listed = |section: &&str| keys.contains(&format!("{section}.{name}"));
        assert!(sections.iter().any(is_listed), "{key}");
    }
    assert!(keys.contains(&"description".to_owned()) && keys.contains(&"zoned.stripe".to_owned()));
}

#[test]
fn a_comment_takes_the_place_of_what_was_said_of_the_source() {
    let text = FULL.replace(
        "t_read_us",
        "# What a read takes,\n# in all. Source: a paper,\n# page 3.\nt_read_us",
    );
    let draft = Draft::new("full", &text).unwrap();
    let changed = draft.commented("firmware.t_read_us", "assumption: fitted,\nas said.");
    let lines = "\n# What a read takes,\n# in all.\n# assumption: fitted,\n# as said.\nt_read_us";
    assert!(changed.text().contains(lines), "{}", changed.text());
    let bare = full().commented("firmware.t_write_us", "assumption: fitted.");
    let above = "\nt_read_us = 4.2\n# assumption: fitted.\nt_write_us = 4.4\n";
    assert!(bare.text().contains(above), "{}", bare.text());
    assert_eq!(full().commented("firmware.none", "x"), full());
}
