use crate::program::{SMALL, json, kvasir, kvasir_into};
use std::fs::{File, read_to_string};
use std::process::Stdio;

#[test]
fn the_built_in_devices_are_listed_with_their_sizes() {
    let devices = json(["device", "list", "--json"]);
    let sizes: Vec<_> = devices
        .as_array()
        .unwrap()
        .iter()
        .map(|device| (device["name"].as_str().unwrap(), device["size_bytes"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("moke", 64_000_000_000),
        ("ideal", 8_000_000_000),
        ("pm983-kv", 3_840_000_000_000),
        ("lightstore", 512_000_000_000),
        ("cnex-oc", 137_438_953_472),
        ("970pro", 512_000_000_000),
        ("zn540", 1_020_901_982_208),
    ];
    assert_eq!(sizes, expected);
    let table = kvasir(["device", "list"]);
    assert_eq!(table.stdout.lines().count(), 1 + expected.len());
    assert!(table.stdout.lines().all(|line| line.len() <= 80), "{}", table.stdout);
}

#[test]
fn a_profile_is_shown_as_it_is_written() {
    for (profile, file) in [
        ("moke", concat!(env!("CARGO_MANIFEST_DIR"), "/../node/profiles/moke.toml")),
        (SMALL, SMALL),
    ] {
        let shown = kvasir(["device", "show", profile]);
        assert_eq!(shown.code, Some(0));
        assert_eq!(shown.stdout, read_to_string(file).unwrap());
    }
}

#[test]
fn a_profile_has_its_values_and_assumptions_in_json() {
    let profile = json(["device", "show", "moke", "--json"]);
    assert_eq!(profile["nand"]["channels"], 8);
    assert_eq!(profile["namespaces"][0]["size_bytes"], 64_000_000_000_u64);
    let assumptions = profile["assumptions"].as_array().unwrap();
    assert!(assumptions.iter().any(|assumption| assumption["key"] == "link.transfer_us"));
}

#[test]
fn a_full_output_is_an_error_and_a_closed_pipe_is_none() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = kvasir_into(["device", "show", "moke"], full.into());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.starts_with("kvasir: cannot write the output"), "{}", ran.stderr);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = kvasir_into(["device", "show", "moke"], Stdio::from(writer));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = kvasir_into(["device", "show", "moke", "--json"], Stdio::from(writer));
    assert_eq!(ran.code, Some(1), "half of a JSON document cannot be read");
    assert!(ran.stderr.starts_with("kvasir: cannot write the output"), "{}", ran.stderr);
}
