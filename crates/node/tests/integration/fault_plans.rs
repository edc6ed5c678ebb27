//! A fault plan's text is the plan, and what is wrong with it is said with file and line.

use base::Nanos;
use nand::{FaultKind, FaultRule, When};
use node::{FaultPlan, Profile, faults};

const FULL: &str = r#"# What one drive went through.
seed = 18446744073709551615

[[fault]]
kind = "uncorrectable-read"
ppm = 20
die = 3
block = 7
page = 12
from_us = 1_500.5
until_us = 2e6
most = 4

[[fault]]
kind = "failed-erase"
nth = 9

[[fault]]
kind = "slow-die"
die = 1
percent = 250
"#;

fn sentence(text: &str) -> String {
    faults::parse("my.toml", text).expect_err(text).to_string()
}

#[test]
fn every_key_arrives_in_the_unit_of_its_field() {
    let plan = faults::parse("test", FULL).unwrap();
    let reads = FaultRule {
        kind: FaultKind::UncorrectableRead,
        when: When::Ppm(20),
        die: Some(3),
        block: Some(7),
        page: Some(12),
        from: Nanos(1_500_500),
        until: Some(Nanos(2_000_000_000)),
        most: Some(4),
    };
    let erase = FaultRule::new(FaultKind::FailedErase, When::Nth(9));
    let slow = FaultRule::new(FaultKind::SlowDie { percent: 250 }, When::Ppm(1_000_000));
    let slow = FaultRule { die: Some(1), ..slow };
    assert_eq!(plan, FaultPlan { seed: u64::MAX, rules: vec![reads, erase, slow] });
    assert_eq!(faults::parse("test", ""), Ok(FaultPlan::default()));
}

#[test]
fn every_kind_has_its_name() {
    for (name, kind) in [
        ("uncorrectable-read", FaultKind::UncorrectableRead),
        ("flipped-bit", FaultKind::FlippedBit),
        ("failed-program", FaultKind::FailedProgram),
        ("failed-erase", FaultKind::FailedErase),
        ("bad-block", FaultKind::BadBlock),
    ] {
        let plan = faults::parse("test", &format!("[[fault]]\nkind = {name:?}\nnth = 1\n"));
        assert_eq!(plan.unwrap().rules, [FaultRule::new(kind, When::Nth(1))]);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let plan = faults::parse("test", FULL).unwrap();
    assert_eq!(faults::parse("again", &faults::text(&plan)), Ok(plan));
    let none = FaultPlan { seed: 5, rules: Vec::new() };
    assert_eq!(faults::parse("again", &faults::text(&none)), Ok(none));
}

#[test]
fn each_mistake_is_one_sentence_with_file_and_line() {
    let cases = [
        (
            "[[fault]]\nkind = \"bad-blocks\"\nnth = 1",
            "my.toml line 2: kind in [[fault]] is \"bad-blocks\", but must be \
             \"uncorrectable-read\", \"flipped-bit\", \"failed-program\", \"failed-erase\", \
             \"bad-block\" or \"slow-die\"",
        ),
        ("[[fault]]\nkind = \"bad-block\"", "my.toml line 1: ppm or nth is missing in [[fault]]"),
        (
            "[[fault]]\nkind = \"bad-block\"\nppm = 1\nnth = 1",
            "my.toml line 4: both ppm and nth are given",
        ),
        (
            "[[fault]]\nkind = \"bad-block\"\nnth = 0",
            "my.toml line 3: nth in [[fault]] is 0, but must be a whole number from 1 to \
             18446744073709551615",
        ),
        (
            "[[fault]]\nkind = \"bad-block\"\nnth = 1\npercent = 200",
            "my.toml line 4: percent is given, but only the kind \"slow-die\" has it",
        ),
        (
            "[[fault]]\nkind = \"slow-die\"",
            "my.toml line 1: the key \"percent\" is missing in [[fault]]",
        ),
        (
            "[[fault]]\nkind = \"slow-die\"\npercent = 99",
            "my.toml line 3: percent in [[fault]] is 99, but must be a whole number from 100 to \
             1000000",
        ),
        (
            "[[fault]]\nkind = \"bad-block\"\nnth = 1\nfrom_us = 5\nuntil_us = 5",
            "my.toml line 5: until_us is not after from_us",
        ),
        (
            "[[fault]]\nkind = \"bad-block\"\nnht = 1",
            "my.toml line 3: unknown key \"nht\" in [[fault]]; did you mean \"nth\"?",
        ),
        (
            "[fault]\n",
            "my.toml line 1: fault at the top is a table, but must be a section, written \
             [[fault]]",
        ),
        (
            "[[fault]]\nkind = \"failed-erase\"\nnth = 1\npage = 3",
            "my.toml line 4: page is given, but what is erased is a block",
        ),
        ("seeds = 1", "my.toml line 1: unknown key \"seeds\" at the top; did you mean \"seed\"?"),
    ];
    for (text, expected) in cases {
        assert_eq!(sentence(text), expected, "{text}");
    }
    let moke = Profile::load("moke").unwrap();
    let missing = faults::load("/nowhere/plan.toml", &moke).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/plan.toml cannot be read: "), "{missing}");
}

#[test]
fn a_place_is_one_that_the_device_has() {
    let moke = Profile::load("moke").unwrap();
    let nand = &moke.nand;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let path = path.to_str().unwrap();
    for (key, count) in [
        ("die", nand.channels * nand.dies_per_channel),
        ("block", nand.planes_per_die * nand.blocks_per_plane),
        ("page", nand.pages_per_block),
    ] {
        let load = |number: u32| {
            let rule = format!("[[fault]]\nkind = \"bad-block\"\nnth = 1\n{key} = {number}\n");
            std::fs::write(path, rule).unwrap();
            faults::load(path, &moke)
        };
        assert!(load(count - 1).is_ok(), "{key}");
        let expected = format!(
            "{path} line 4: {key} in [[fault]] is {count}, but must be from 0 to {} on moke",
            count - 1
        );
        assert_eq!(load(count).unwrap_err().to_string(), expected);
    }
}
