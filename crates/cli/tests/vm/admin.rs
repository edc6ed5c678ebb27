use crate::guest::Guest;
use crate::kv;
use crate::on_each_kernel;
use crate::target::Target;

on_each_kernel! {
    the_namespace_is_a_character_device_and_no_block_device
    nvme_cli_shows_the_controller
    nvme_cli_shows_logs_and_features
    the_effects_log_has_the_key_value_commands
}

/// The one controller, whatever its number.
const CONTROLLER: &str = "/dev/nvme[0-9]";

/// Runs a command of nvme-cli and returns what it printed.
fn nvme(guest: &mut Guest, command: &str) -> String {
    guest.succeed(&format!("nvme {command}"))
}

fn the_namespace_is_a_character_device_and_no_block_device(guest: &mut Guest, target: &mut Target) {
    guest.succeed("dmesg -c");
    target.connect(guest, "");
    guest.succeed("[ -c /dev/ng0n1 ] && [ ! -e /dev/nvme0n1 ]");
    let log = guest.succeed("dmesg");
    assert!(log.contains("block device for nsid 1 not supported (csi 1)"), "{log}");
    let listed = nvme(guest, &format!("list-ns {CONTROLLER}"));
    assert_eq!(listed.split_once("]:").map(|(_, id)| id.trim()), Some("0x1"), "{listed}");
}

fn nvme_cli_shows_the_controller(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    let shown = nvme(guest, &format!("id-ctrl {CONTROLLER}"));
    let fields = shown.lines().filter_map(|line| line.split_once(':'));
    let fields: Vec<_> = fields.map(|(name, value)| (name.trim(), value.trim())).collect();
    // An I/O controller, values of 2 MiB in one command, 8 KiB in the capsule.
    for field in [
        ("subnqn", target.name.as_str()),
        ("cntrltype", "1"),
        ("mdts", "9"),
        ("ioccsz", "516"),
        ("sqes", "0x66"),
        ("cqes", "0x44"),
    ] {
        assert!(fields.contains(&field), "{field:?} is not in\n{shown}");
    }
    assert!(!fields.contains(&("kas", "0")), "{shown}");
}

fn nvme_cli_shows_logs_and_features(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    guest.make("/tmp/in", 100);
    assert_eq!(kv::store(guest, "counted", "/tmp/in", 100), Ok(0));
    assert_eq!(kv::retrieve(guest, "counted", "/tmp/out", 4_096), Ok(100));
    let shown = nvme(guest, &format!("smart-log {CONTROLLER}"));
    let count = |name| {
        let line = shown.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    };
    let counts = [count("host_read_commands"), count("host_write_commands")];
    assert_eq!(counts, [Some("1"), Some("1")], "{shown}");
    for command in ["error-log", "fw-log", "effects-log"] {
        nvme(guest, &format!("{command} {CONTROLLER}"));
    }
    // Two I/O queues, counted from zero (Base 2.1, Number of Queues).
    let queues = nvme(guest, &format!("get-feature {CONTROLLER} --feature-id=7"));
    assert!(queues.contains("0x00010001") || queues.contains("0x010001"), "{queues}");
}

/// Its second half is of I/O commands, 4 bytes for each opcode, of which the lowest bit says that
/// the command is there (Base 2.1, Commands Supported and Effects).
fn the_effects_log_has_the_key_value_commands(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    let options = "--log-id=5 --log-len=4096 --csi=1 --raw-binary";
    nvme(guest, &format!("get-log {CONTROLLER} {options} > /tmp/log"));
    let hex = guest.succeed("xxd -p -s 1024 -l 1024 /tmp/log").replace('\n', "");
    let is_there = |opcode: &usize| &hex[8 * opcode..8 * opcode + 2] != "00";
    let opcodes: Vec<_> = (0..256).filter(is_there).collect();
    let (store, retrieve, list, delete, exist) = (0x01, 0x02, 0x06, 0x10, 0x14);
    for opcode in [store, retrieve, list, delete, exist] {
        assert!(opcodes.contains(&opcode), "{opcode:#x} is not among {opcodes:#x?}");
    }
}
