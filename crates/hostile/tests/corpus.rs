//! Every input that was kept, through the function that a fuzzer gives its inputs to.

use std::fs;
use std::path::Path;

fn replay(name: &str) {
    let (_, run) = hostile::TARGETS.iter().find(|target| target.0 == name).expect("a target");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(&folder).expect("each target has a folder of inputs");
    let mut paths: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "there is no input in {}", folder.display());
    for path in paths {
        // Shown only for an input that fails.
        println!("{}", path.display());
        run(&fs::read(&path).expect("it can be read"));
    }
}

#[test]
fn streams_of_pdus_harm_nothing() {
    replay("stream");
}

#[test]
fn capsules_harm_nothing() {
    replay("capsule");
}

#[test]
fn admin_commands_harm_nothing() {
    replay("admin");
}

#[test]
fn io_commands_harm_nothing() {
    replay("io");
}

#[test]
fn data_pointers_harm_nothing() {
    replay("pointer");
}

#[test]
fn accesses_of_hosts_on_pcie_harm_nothing() {
    replay("pcie");
}

#[test]
fn requests_of_redis_clients_harm_nothing() {
    replay("resp");
}

#[test]
fn vfio_user_messages_harm_nothing() {
    replay("vfio_user");
}
