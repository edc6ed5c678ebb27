//! Whatever a profile's text is, the answer is a profile that holds its promises, or a sentence.

use base::Rng;
use node::profile::{Log, NamespaceKind, builtin_names};
use node::{Profile, ProfileError};
use std::collections::BTreeSet;

const SEEDS: u64 = 4_000;

/// Pieces that profiles are made of, and pieces that they should not be made of.
const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "3",
    "65536",
    "4294967296",
    "18446744073709551616",
    "-0.0",
    "1e308",
    "1e-300",
    "nan",
    "-inf",
    "0x",
    "0xffff",
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\r",
    "\0",
    "\\",
    "\\u{d800}",
    "\u{feff}",
    "\u{1F980}",
    "true",
    "1979-05-27",
    "[nand]",
    "[core]",
    "[[namespace]]",
    "[namespace]",
    "[log]",
    "[index]",
    "kind = \"block\"",
    "kind = \"zoned\"",
    "kind = \"kv\"",
    "size_gb = 1",
    "size_gb = 0.001",
    "max_open = 1",
    "page_map = \"0(1)\"",
    "read_us = [1, 2]",
    "program_us = [3]",
    "multi_plane = \"none\"",
    "read_priority = false",
    "resume_us = 1",
    "over_provisioning = 0.5",
    "buffer_kib = 4096",
    "ack = \"buffer\"",
    "stripe = \"die\"",
    "model = \"scalar\"",
    "handlers = \"unlimited\"",
    "\"kv\"",
    "{ a = 1 }",
    "[1, [2]]",
    "_",
    "# assumption:",
];

fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("below a usize")
}

/// `text` with one thing wrong, or possibly not.
fn mutated(text: &str, rng: &mut Rng) -> String {
    let piece = PIECES[below(rng, PIECES.len())];
    if rng.below(2) == 0 {
        mutated_lines(text, piece, rng)
    } else {
        mutated_chars(text, piece, rng)
    }
}

fn mutated_chars(text: &str, piece: &str, rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = below(rng, chars.len());
    match rng.below(3) {
        0 => chars.truncate(at + 1),
        1 => chars[at] = char::from(u8::try_from(rng.below(256)).expect("below 256")),
        _ => drop(chars.splice(at..at, piece.chars())),
    }
    chars.into_iter().collect()
}

fn mutated_lines(text: &str, piece: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (one, other) = (below(rng, lines.len()), below(rng, lines.len()));
    match rng.below(4) {
        0 => {
            let key = lines[one].split_once(" =").map_or(piece, |(key, _)| key);
            lines[one] = format!("{key} = {piece}");
        }
        1 => drop(lines.remove(one)),
        2 => lines.swap(one, other),
        _ => lines.insert(one, lines[other].clone()),
    }
    lines.join("\n") + "\n"
}

/// What is promised of every profile.
fn check_profile(profile: &Profile) {
    let Profile { nand, log, index, namespaces, .. } = profile;
    assert!(nand.page_bytes.is_power_of_two());
    assert_eq!(nand.levels.read.len(), nand.levels.program.len());
    let map: nand::PageMap = nand.levels.page_map.parse().expect("a page map");
    let levels: BTreeSet<usize> = (0..nand.pages_per_block).map(|page| map.level(page)).collect();
    assert!(levels.into_iter().eq(0..nand.levels.read.len()), "each level has pages");
    let mut first = 0;
    let mut kv = None;
    for (namespace, region) in namespaces.iter().zip(profile.regions()) {
        let row = u64::from(nand.units()) * nand.block_bytes();
        let bytes = u64::from(region.count) * row;
        let spare = namespace.over_provisioning;
        assert!((-0.0001..10.001).contains(&spare), "{spare}");
        assert!(namespace.size_bytes <= bytes, "a namespace fits its region");
        match &namespace.kind {
            NamespaceKind::Kv if kv.is_some() => assert_eq!(kv, Some(region), "they share one"),
            kind => {
                assert_eq!(region.first, first, "regions follow each other");
                first += region.count;
                kv = if kind.is_kv() { Some(region) } else { kv };
            }
        }
        if let NamespaceKind::Zoned(zoned) = &namespace.kind {
            assert!(zoned.stripe.extents(nand, region.count) > 0);
            assert!(namespace.size_bytes >= zoned.stripe.extent_bytes(nand));
            assert!(zoned.max_open <= zoned.max_active);
        }
    }
    assert_eq!(first, nand.blocks_per_plane, "no block is left over");
    assert_eq!((log.is_some(), index.is_some()), (kv.is_some(), kv.is_some()));
    let stripe = log.as_ref().and_then(Log::stripe);
    if let (Some(stripe), Some(region)) = (stripe, kv) {
        assert!(stripe.extents(nand, region.count) >= 8);
        assert!(stripe.extent_bytes(nand) >= (2 << 20) + (64 << 10));
    }
}

fn check(text: &str) -> bool {
    match Profile::parse("fuzz", text) {
        Ok(profile) => {
            check_profile(&profile);
            true
        }
        Err(error) => {
            let sentence = error.to_string();
            assert!(!sentence.chars().any(char::is_control), "{sentence:?}");
            let ProfileError::Invalid { line, problem, .. } = error else {
                panic!("no such error comes of a text: {sentence}");
            };
            assert!((1..=text.split('\n').count()).contains(&line), "{sentence}");
            assert!(problem.len() > 10, "{sentence}");
            assert_eq!(sentence, format!("fuzz line {line}: {problem}"));
            false
        }
    }
}

#[test]
fn a_mutated_profile_never_panics_and_errors_name_a_line_that_exists() {
    // In a profile without comments nearly every mutation is a mistake.
    let bare = (include_str!("full.toml").to_owned(), SEEDS / 50);
    let builtin =
        builtin_names().map(|name| (Profile::text(name).unwrap().into_owned(), SEEDS / 10));
    for (whole, least) in builtin.chain([bare]) {
        let (mut good, mut refused) = (0, 0);
        for seed in 0..SEEDS {
            let mut rng = Rng::new(seed);
            let mut text = whole.clone();
            for _ in 0..=rng.below(4) {
                text = mutated(&text, &mut rng);
            }
            *(if check(&text) { &mut good } else { &mut refused }) += 1;
        }
        assert!(good > least && refused > least, "{good} good, {refused} refused");
    }
}

#[test]
fn every_prefix_of_a_profile_is_a_profile_or_an_error() {
    let text = include_str!("full.toml");
    for end in 0..=text.len() {
        check(&text[..end]);
    }
}

#[test]
fn text_made_of_pieces_alone_never_panics() {
    for seed in 0..SEEDS {
        let mut rng = Rng::new(seed);
        let text: String =
            (0..rng.below(40)).map(|_| PIECES[below(&mut rng, PIECES.len())]).collect();
        check(&text);
    }
}

#[test]
fn deep_and_long_text_neither_overflows_the_stack_nor_takes_forever() {
    check(&format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)));
    check(&format!("{}a = 1", "a.".repeat(100_000)));
    check(&"[a]\n".repeat(100_000));
    check(&"[[a]]\n".repeat(10_000));
    check(&format!("{} = 1", "k".repeat(1_000_000)));
}
