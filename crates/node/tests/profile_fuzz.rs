//! Whatever a profile's text is, the answer is a profile that holds its promises, or a sentence.

use base::Rng;
use node::profile::builtin_names;
use node::{Profile, ProfileError};

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
    "size_gb = 1",
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

fn check(text: &str) -> bool {
    match Profile::parse("fuzz", text) {
        Ok(profile) => {
            let Profile { nand, log, namespace, .. } = &profile;
            assert!(nand.page_bytes.is_power_of_two());
            assert!(log.stripe.extents(nand) >= 8);
            assert!(log.stripe.extent_bytes(nand) >= (2 << 20) + (64 << 10));
            assert!(namespace.size_bytes < nand.raw_bytes());
            assert!((0.0199..10.001).contains(&namespace.over_provisioning));
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
    for whole in builtin_names().map(|name| Profile::text(name).unwrap().into_owned()) {
        let (mut good, mut refused) = (0, 0);
        for seed in 0..SEEDS {
            let mut rng = Rng::new(seed);
            let mut text = whole.clone();
            for _ in 0..=rng.below(4) {
                text = mutated(&text, &mut rng);
            }
            *(if check(&text) { &mut good } else { &mut refused }) += 1;
        }
        assert!(good > SEEDS / 10 && refused > SEEDS / 10, "{good} good, {refused} refused");
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
