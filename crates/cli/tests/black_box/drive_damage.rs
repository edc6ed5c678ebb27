//! Damages a drive: flips bits and swaps extents. `check` must name the place, and a read must
//! return an error or the stored value.

use crate::drive::{formatted, shown};
use crate::program::{json, kvasir};
use crate::redis::Client;
use crate::serving::{Serving, store};
use rustix::process::Signal;
use serde_json::Value;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{fs, mem};
use tempfile::TempDir;

const EXTENT_BYTES: u64 = 4 << 20;

/// A drive with many writes, and the place of everything on it.
struct Used {
    folder: TempDir,
    path: PathBuf,
    content: Vec<u8>,
    extents: Vec<Value>,
}

/// A record on it.
#[derive(Clone, Debug)]
struct Record {
    extent: u64,
    page: u64,
    page_byte: u64,
    value_byte: u64,
    value_bytes: u64,
    kind: String,
    key_hex: String,
    is_live: bool,
    /// Of a namespace's.
    is_pair: bool,
}

impl Used {
    fn new() -> Self {
        let (folder, path) = formatted();
        for load in ["mixed --ops 6000", "delete --ops 60"] {
            let load = format!("bench {load} --keys 1500 --value-size 8KiB --target");
            let target = format!("file:{}", shown(&path));
            let ran = kvasir(load.split(' ').chain([&target[..]]));
            assert_eq!((ran.code, &ran.stderr[..]), (Some(0), ""));
        }
        Self::of(folder, path)
    }

    /// One whose server was killed after it had stored over and deleted what a checkpoint has.
    fn killed() -> Self {
        let (folder, path) = formatted();
        let words = ["--device", shown(&path), "--resp", ":0"];
        for (number, is_last) in [(30, false), (20, true)] {
            let served = Serving::start(words);
            let mut client = Client::of(&served);
            for key in 0..number {
                let value = format!("{is_last}{key}").repeat(700);
                client.says(&format!("set key{key} {value}"), "+OK");
            }
            if is_last {
                client.says("del key25", ":1");
                served.end(Signal::KILL);
            } else {
                served.stop();
            }
        }
        Self::of(folder, path)
    }

    fn of(folder: TempDir, path: PathBuf) -> Self {
        let facts = json(["inspect", shown(&path), "--json"]);
        assert_eq!(facts["extent_bytes"], EXTENT_BYTES);
        let extents = facts["in_use"].as_array().unwrap().iter().map(|extent| {
            let number = extent["extent"].to_string();
            json(["inspect", shown(&path), "--extent", &number, "--json"])
        });
        let (extents, content) = (extents.collect(), fs::read(&path).unwrap());
        Self { folder, path, content, extents }
    }

    fn records(&self) -> Vec<Record> {
        let number = |value: &Value| value.as_u64().unwrap();
        let mut records = Vec::new();
        for extent in &self.extents {
            for page in extent["pages"].as_array().unwrap() {
                for record in page["records"].as_array().into_iter().flatten() {
                    records.push(Record {
                        extent: number(&extent["extent"]),
                        page: number(&page["page"]),
                        page_byte: number(&page["byte"]),
                        value_byte: number(&record["value_byte"]),
                        value_bytes: number(&record["value_bytes"]),
                        kind: record["kind"].as_str().unwrap().to_owned(),
                        key_hex: record["key_hex"].as_str().unwrap().to_owned(),
                        is_live: record["is_live"] == true,
                        is_pair: record["space"] == 1,
                    });
                }
            }
        }
        records
    }

    /// The byte of a page of this content, and its extent and number.
    fn page(&self, content: &str) -> (u64, u64, u64) {
        let pages = self.extents.iter().flat_map(|extent| {
            let pages = extent["pages"].as_array().unwrap().iter();
            pages.map(move |page| (page, extent["extent"].as_u64().unwrap()))
        });
        let mut found = pages.filter(|(page, _)| page["content"] == content);
        let (page, extent) = found.next().unwrap();
        (page["byte"].as_u64().unwrap(), extent, page["page"].as_u64().unwrap())
    }

    /// A copy that was changed.
    fn changed(&self, change: impl FnOnce(&fs::File)) -> PathBuf {
        let path = self.folder.path().join("copy.kv");
        fs::write(&path, &self.content).unwrap();
        change(&fs::File::options().write(true).open(&path).unwrap());
        path
    }

    /// A copy in which a bit of byte `at` is turned over.
    fn flipped(&self, at: u64) -> PathBuf {
        let byte = self.content[usize::try_from(at).unwrap()] ^ 4;
        self.changed(|file| file.write_all_at(&[byte], at).unwrap())
    }

    /// What is found wrong with a drive, and what is harmless.
    #[track_caller]
    fn check(path: &Path) -> (Vec<Value>, Vec<Value>) {
        let checked = kvasir(["check", shown(path), "--json"]);
        let report = checked.json();
        let [wrong, harmless] =
            ["findings", "harmless"].map(|list| report[list].as_array().unwrap().clone());
        assert_eq!(report["is_whole"], wrong.is_empty());
        assert_eq!(checked.code, Some(i32::from(!wrong.is_empty())), "{}", checked.stderr);
        (wrong, harmless)
    }

    /// A server of `path` returns of each of these pairs what was stored, or an error; of how many
    /// it returns an error.
    #[track_caller]
    fn refused(&self, path: &Path, pairs: &[Record]) -> usize {
        let served = Serving::start(["--device", shown(path), "--nvme-tcp", ":0"]);
        let target = served.uri(0);
        let out = self.folder.path().join("value");
        let refused = pairs.iter().filter(|pair| {
            let words = ["kv", "retrieve", "--hex", &pair.key_hex, "--target", &target, "--output"];
            let ran = kvasir(words.into_iter().chain([shown(&out)]));
            if ran.code != Some(0) {
                assert!(ran.code == Some(1) && !ran.stderr.is_empty(), "{}", ran.stderr);
                return true;
            }
            let at = usize::try_from(pair.value_byte).unwrap();
            let len = usize::try_from(pair.value_bytes).unwrap();
            assert!(fs::read(&out).unwrap() == self.content[at..at + len], "{pair:?} is another");
            false
        });
        refused.count()
    }
}

fn live(records: &[Record]) -> Vec<Record> {
    let is_live = |record: &&Record| record.is_live && record.is_pair && record.kind == "value";
    records.iter().filter(is_live).cloned().collect()
}

/// One finding, which names this place.
#[track_caller]
fn assert_names(found: &[Value], record: &Record, words: &str) {
    assert_eq!(found.len(), 1, "{found:?}");
    let Value::Object(finding) = &found[0] else { panic!("{found:?}") };
    assert_eq!(
        (&finding["extent"], &finding["page"], &finding["byte"]),
        (&record.extent.into(), &record.page.into(), &record.page_byte.into()),
        "{finding:?}"
    );
    assert!(finding["wrong"].as_str().unwrap().contains(words), "{finding:?}");
}

#[test]
fn damage_is_named_with_its_place_and_never_returned() {
    let used = Used::new();
    let records = used.records();
    assert_eq!(Used::check(&used.path), (vec![], vec![]));
    let live = live(&records);
    let pair = &live[live.len() / 2];
    let beside = live.iter().rev().take(3).cloned();
    let pairs: Vec<Record> = [pair.clone()].into_iter().chain(beside).collect();

    let copy = used.flipped(pair.value_byte + 5_000);
    let (wrong, _) = Used::check(&copy);
    assert_names(&wrong, pair, "the value is not what was stored");
    assert_eq!(wrong[0]["key_hex"], pair.key_hex);
    assert_eq!(used.refused(&copy, &pairs), 1);

    // The medium's head, the page's prologue, and the record's header.
    for at in [20, 40, 64, 64 + 24 + 8, 64 + 24 + 34] {
        let copy = used.flipped(pair.page_byte + at);
        assert_names(&Used::check(&copy).0, pair, "live pairs on it are 1");
    }
    let copy = used.flipped(pair.page_byte + 64 + 24 + 8);
    assert!(used.refused(&copy, &pairs) <= 1, "a summary has the header too");

    let dead = records.iter().find(|record| !record.is_live && record.kind == "value").unwrap();
    let (wrong, harmless) = Used::check(&used.flipped(dead.value_byte + 100));
    assert_eq!(wrong, [] as [Value; 0]);
    assert_names(&harmless, dead, "needed");

    let (byte, extent, page) = used.page("summary");
    let copy = used.flipped(byte + 5_000);
    let (wrong, _) = Used::check(&copy);
    assert_eq!((wrong.len(), &wrong[0]["extent"]), (1, &extent.into()), "{wrong:?}");
    assert!(wrong[0]["page"].as_u64() >= Some(page));
    assert_eq!(used.refused(&copy, &pairs), 0);

    for table in records.iter().filter(|record| record.kind == "table") {
        let copy = used.flipped(table.value_byte + 3);
        let (wrong, harmless) = Used::check(&copy);
        assert_names(if wrong.is_empty() { &harmless } else { &wrong }, table, "checkpoint");
        assert_eq!(used.refused(&copy, &pairs), 0, "it is opened by its log");
    }
}

/// Of what was written since the last checkpoint nothing else tells: without a record its key has
/// the one before again.
#[test]
fn a_flipped_bit_does_not_restore_an_older_value() {
    let used = Used::killed();
    let records = used.records();
    let live = live(&records);
    let newest = live.iter().max_by_key(|record| record.page_byte).unwrap();
    // The medium's head, the page's prologue, the record's header and its key.
    for at in [5, 20, 40, 49, 57, 64, 64 + 9, 64 + 24 + 8, 64 + 24 + 34] {
        let copy = used.flipped(newest.page_byte + at);
        assert_names(&Used::check(&copy).0, newest, "live pairs on it are");
        assert_eq!(used.refused(&copy, std::slice::from_ref(newest)), 0, "byte {at}");
    }
    let deleted = records.iter().find(|record| record.kind == "tombstone" && record.is_pair);
    let deleted = deleted.expect("there is one");
    for at in [20, 64 + 9, 64 + 24 + 8] {
        let copy = used.flipped(deleted.page_byte + at);
        let served = Serving::start(["--device", shown(&copy), "--resp", ":0"]);
        assert_eq!(Client::of(&served).ask(&["get", "key25"]), None, "byte {at}");
        served.end(Signal::KILL);
    }
}

#[test]
fn damage_outside_pages_is_named_and_loses_no_pair() {
    let used = Used::new();
    let pairs: Vec<Record> = live(&used.records()).into_iter().step_by(400).collect();
    let extent = 8_192 + pairs[0].extent * EXTENT_BYTES;
    let size = used.content.len() as u64;
    let ledger = size / 4_096 * 4_096 - 3 * 4_096;
    for (note, words) in [
        (4_096, "the superblock there is damaged"),
        (size / 4_096 * 4_096 - 4_096, "the superblock there is damaged"),
        (extent, "a mark of extent"),
        (extent + EXTENT_BYTES - 8_192, "a mark of extent"),
        (extent + EXTENT_BYTES - 4_096, "the footer of extent"),
        (ledger + 32 * pairs[0].extent, "the ledger's entry of extent"),
        (ledger + 4_096 + 32 * pairs[0].extent, "the ledger's entry of extent"),
    ] {
        let copy = used.flipped(note + 21);
        let (wrong, _) = Used::check(&copy);
        assert_eq!((wrong.len(), &wrong[0]["byte"]), (1, &note.into()), "{wrong:?}");
        assert!(wrong[0]["wrong"].as_str().unwrap().starts_with(words), "{wrong:?}");
        assert_eq!(used.refused(&copy, &pairs), 0, "{words}");
    }
    // No reader needs bytes that were never written.
    let copy = used.flipped(extent + EXTENT_BYTES - 4_096 - 4_096 + 3_000);
    assert_eq!(Used::check(&copy), (vec![], vec![]));
}

#[test]
fn extents_in_each_others_place_are_named() {
    let used = Used::new();
    let live = live(&used.records());
    let (one, other) = (live[0].extent, live[live.len() - 1].extent);
    assert_ne!(one, other);
    let content = |extent: u64| {
        let start = usize::try_from(8_192 + extent * EXTENT_BYTES).unwrap();
        &used.content[start..start + usize::try_from(EXTENT_BYTES).unwrap()]
    };
    let copy = used.changed(|file| {
        file.write_all_at(content(one), 8_192 + other * EXTENT_BYTES).unwrap();
        file.write_all_at(content(other), 8_192 + one * EXTENT_BYTES).unwrap();
    });
    let (wrong, _) = Used::check(&copy);
    for extent in [one, other] {
        let is_named = |finding: &Value| finding["extent"] == extent;
        assert!(wrong.iter().any(is_named), "extent {extent} of {wrong:?}");
    }
}

/// A drive of which extents are put back as they were before.
struct Aged {
    used: Used,
    /// What lay there before the last server was started, while it served, and lies there now.
    before: Vec<u8>,
    amid: Vec<u8>,
}

impl Aged {
    fn new(end: impl FnOnce(Serving)) -> Self {
        let used = Used::new();
        let before = used.content.clone();
        let served = Serving::start(["--device", shown(&used.path), "--nvme-tcp", ":0"]);
        let store_all = |numbers: Range<u32>| {
            for number in numbers {
                store(&format!("key{number}"), &served.uri(0));
            }
        };
        store_all(0..12);
        let amid = fs::read(&used.path).unwrap();
        store_all(12..24);
        end(served);
        let content = fs::read(&used.path).unwrap();
        Self { used: Used { content, ..used }, before, amid }
    }

    /// The bytes of an extent.
    fn range(extent: u64) -> Range<usize> {
        let start = usize::try_from(8_192 + extent * EXTENT_BYTES).unwrap();
        start..start + usize::try_from(EXTENT_BYTES).unwrap()
    }

    /// Extents that were others then: without a footer an extent holds what it does with one.
    fn changed_since(&self, then: &[u8]) -> Vec<u64> {
        let extents = (self.used.content.len() as u64 - 8_192) / EXTENT_BYTES;
        let is_other = |extent: &u64| {
            let Range { start, end } = Self::range(*extent);
            let range = start..end - 4_096;
            then[range.clone()] != self.used.content[range]
        };
        (0..extents).filter(is_other).collect()
    }

    fn with_old(&self, then: &[u8], extent: u64) -> PathBuf {
        let range = Self::range(extent);
        let start = range.start as u64;
        self.used.changed(|file| file.write_all_at(&then[range], start).unwrap())
    }

    /// An old copy of this extent is named, and no key has what it had before.
    #[track_caller]
    fn assert_named(&self, then: &[u8], extent: u64) {
        let copy = self.with_old(then, extent);
        let (wrong, _) = Used::check(&copy);
        let is_named = |finding: &Value| {
            let sentence = finding["wrong"].as_str().unwrap();
            sentence.contains("an old copy")
                && (finding["extent"] == extent
                    || sentence.starts_with(&format!("extent {extent} is")))
        };
        assert!(wrong.iter().any(is_named), "extent {extent}: {wrong:?}");
        assert_eq!(wrong.len(), 1, "{wrong:?}");
    }
}

#[test]
fn an_old_copy_of_an_extent_is_named_after_a_clean_stop() {
    let aged = Aged::new(|served| drop(served.stop()));
    assert_eq!(Used::check(&aged.used.path), (vec![], vec![]));
    for then in [&aged.before, &aged.amid] {
        let extents = aged.changed_since(then);
        assert!(!extents.is_empty());
        for extent in extents {
            aged.assert_named(then, extent);
        }
    }
    let pair = ["kv", "retrieve", "key23", "--target"];
    let extents = aged.changed_since(&aged.amid);
    let refused = extents.into_iter().filter(|extent| {
        let copy = aged.with_old(&aged.amid, *extent);
        let served = Serving::start(["--device", shown(&copy), "--nvme-tcp", ":0"]);
        let target = served.uri(0);
        let ran = kvasir(pair.iter().copied().chain([&target[..]]));
        assert!(ran.code == Some(0) || ran.stderr.contains("Unrecovered"), "{}", ran.stderr);
        ran.code != Some(0)
    });
    assert_eq!(refused.count(), 1, "one of them had it");
}

#[test]
fn an_old_copy_of_an_extent_is_named_after_a_crash() {
    let aged = Aged::new(|served| {
        served.end(Signal::KILL);
    });
    assert_eq!(Used::check(&aged.used.path), (vec![], vec![]));
    for extent in aged.changed_since(&aged.before) {
        aged.assert_named(&aged.before, extent);
    }
    // How far an open extent was filled, the next start tells.
    let served = Serving::start(["--device", shown(&aged.used.path), "--nvme-tcp", ":0"]);
    served.end(Signal::KILL);
    let Aged { mut used, before, amid } = aged;
    let crashed = mem::replace(&mut used.content, fs::read(&used.path).unwrap());
    let aged = Aged { used, before, amid };
    // What that start itself may have opened, no ledger need know yet.
    let opened = aged.changed_since(&crashed);
    let extents = aged.changed_since(&aged.amid);
    let known: Vec<_> = extents.into_iter().filter(|it| !opened.contains(it)).collect();
    assert!(!known.is_empty());
    for extent in known {
        aged.assert_named(&aged.amid, extent);
    }
}

#[test]
fn a_server_finds_damage_by_itself_and_says_where() {
    let used = Used::new();
    let live = live(&used.records());
    let pair = &live[live.len() / 3];
    let copy = used.flipped(pair.value_byte + 5_000);
    let words = ["--device", shown(&copy), "--nvme-tcp", ":0", "--http", ":0", "--scrub", "1GiB"];
    let served = Serving::start(words);
    let said = served.error_line();
    let Record { extent, page, page_byte, .. } = pair;
    let place = format!("damage at byte {page_byte}: extent {extent}, page {page}: its data are");
    assert!(said.contains(&place), "{said} is not of {place}");
    let address = served.ready["http"].as_str().unwrap();
    let address = address.strip_prefix("http://").and_then(|it| it.strip_suffix("/status"));
    let top = json(["top", address.unwrap(), "--once", "--json", "--interval", "200ms"]);
    assert_eq!(top["damaged_pages"], 1);
}
