use super::*;
use crate::MemoryKind;
use crate::server::{Doorbells, SerialNumber, Served};
use crate::server::{default_nqn, default_serial};
use spec::AddressFamily;

mod tenants;

/// A file with everything in it.
const FULL: &str = "\
[server]
cores = 3
clock = \"none\"
nvme_tcp = [\"127.0.0.1:4420\", \"[::1]:4420\"]

[limits]
connections = 100
associations = 9
io_queues = 8
queue_entries = 64
connection_memory = \"4MiB\"
value_size = \"64KiB\"

[[device]]
name = \"fast\"
device = \"mem:1GiB\"
seed = 7

[[device]]
name = \"slow\"
device = \"ideal\"
state = \"slow.state\"

[[subsystem]]
nqn = \"nqn.2026-11.com.example:fast\"
device = \"fast\"
serial = \"KV-1\"
hosts = [\"nqn.2026-11.com.example:host-a\"]

[[subsystem]]
device = \"slow\"

[[referral]]
address = \"192.0.2.4\"

[[referral]]
address = \"2001:db8::1\"
port = 4420
";

fn parse(text: &str) -> Result<Config, ProfileError> {
    Config::parse("s.toml", text, Path::new(""))
}

/// The sentence about [`FULL`] with `old` replaced by `new`.
#[track_caller]
fn sentence(old: &str, new: &str) -> String {
    assert!(FULL.contains(old), "{old:?} is not in the file");
    parse(&FULL.replacen(old, new, 1)).expect_err(new).to_string()
}

#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    for &(old, new, expected) in cases {
        assert_eq!(sentence(old, new), format!("s.toml {expected}"), "{old:?} -> {new:?}");
    }
}

fn threads(count: u16) -> Cores {
    NonZero::new(count).unwrap().into()
}

#[test]
fn cores_can_be_a_list_of_processors() {
    let config = parse(&FULL.replacen("cores = 3", "cores = \"2-3,0\"", 1)).unwrap();
    assert_eq!(config.cores.processors(), Some(&[2, 3, 0][..]));
    assert_eq!(config.server().cores, config.cores);
}

#[test]
fn a_file_is_what_it_says() {
    let config = parse(FULL).unwrap();
    assert_eq!((&config.cores, config.pace), (&threads(3), Pace::None));
    let connections = ConnectionLimits { most: 100, memory_bytes: 4 << 20 };
    assert_eq!(config.connections, connections);
    let limits = Limits { associations: 9, io_queues: 8, queue_entries: 64, value_bytes: 64 << 10 };
    assert_eq!(config.limits, limits);
    assert_eq!(config.nvme_tcp, ["127.0.0.1:4420".parse().unwrap(), "[::1]:4420".parse().unwrap()]);
    let [fast, slow] = &config.devices[..] else { panic!("there are two devices") };
    assert_eq!((&fast.name[..], fast.seed), ("fast", 7));
    let (size_bytes, kind) = (1 << 30, MemoryKind::Kv);
    assert_eq!(fast.served, Served::Memory { size_bytes, kind, reactors: 1 });
    let mut ideal = crate::Profile::load("ideal").unwrap().without_delays();
    ideal.name = "ideal without delays".to_owned();
    assert_eq!((&slow.served, slow.seed), (&Served::Emulated(Box::new(ideal)), 1));
    assert_eq!((&fast.state, &slow.state), (&None, &Some("slow.state".into())));
    let served: Vec<_> = config.subsystems.iter().map(|subsystem| &subsystem.served).collect();
    let given = SerialNumber::Given("KV-1".to_owned());
    assert_eq!((served[0].device, &served[0].serial), (0, &given));
    assert_eq!((served[1].device, &served[1].nqn), (1, &default_nqn("ideal", 1)));
    assert_eq!(served[1].serial, SerialNumber::Default(default_serial("ideal", 1)));
    let rules = config.rules();
    assert_eq!(rules.limits, limits);
    let hosts = [("nqn.2026-11.com.example:fast".to_owned(), HOST)];
    assert_eq!(rules.hosts, hosts.map(|(name, host)| (name, [host.to_owned()].into())).into());
    let [one, other] = &rules.referrals[..] else { panic!("there are two referrals") };
    assert_eq!((one.family, one.address.as_str(), one.port), V4);
    assert_eq!((other.family, other.address.as_str(), other.port), V6);
}

const HOST: &str = "nqn.2026-11.com.example:host-a";
const V4: (AddressFamily, Option<&str>, u16) = (AddressFamily::IPV4, Some("192.0.2.4"), 8_009);
const V6: (AddressFamily, Option<&str>, u16) = (AddressFamily::IPV6, Some("2001:db8::1"), 4_420);

#[test]
fn what_is_left_out_is_as_without_a_file() {
    let text = "server.nvme_tcp = [\":0\"]\ndevice = [{ name = \"a\", device = \"moke\" }]\n\
                subsystem = [{ device = \"a\" }]\n";
    let config = parse(text).unwrap();
    assert_eq!((&config.cores, config.pace), (&threads(1), Pace::Real));
    assert_eq!(config.connections, ConnectionLimits { most: 1_024, memory_bytes: 16 << 20 });
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.limits.value_bytes, 2 << 20);
    assert_eq!(config.rules(), Rules::default());
}

#[test]
fn where_a_server_says_what_it_is_doing_can_do_without_a_port() {
    let http = |text: &str| parse(&FULL.replacen("cores = 3", text, 1));
    assert_eq!(http("cores = 3").unwrap().http, None);
    let found = http("cores = 3\nhttp = \"127.0.0.1\"").unwrap().server().http;
    assert_eq!(found, Some("127.0.0.1:8420".parse().unwrap()));
    let wrong = http("cores = 3\nhttp = \"\"").unwrap_err().to_string();
    let sentence = "s.toml line 3: \"\" is not an address: use HOST:PORT, HOST or :PORT, as \
                    127.0.0.1:8420, [::1]:8420 or :8420";
    assert_eq!(wrong, sentence);
}

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_meant() {
    check(&[
        ("cores", "core", "line 2: unknown key \"core\" in [server]; did you mean \"cores\"?"),
        (
            "[limits]",
            "[limit]",
            "line 6: unknown section \"limit\" at the top; did you mean \"limits\"?",
        ),
        (
            "io_queues",
            "io_queue",
            "line 9: unknown key \"io_queue\" in [limits]; did you mean \"io_queues\"?",
        ),
        ("seed", "sead", "line 17: unknown key \"sead\" in [[device]]; did you mean \"seed\"?"),
        (
            "hosts",
            "allowed",
            "line 28: unknown key \"allowed\" in [[subsystem]]; known there are \"nqn\", \
             \"device\", \"serial\", \"hosts\", \"vfio_user\" and \"doorbells\"",
        ),
        ("port", "prot", "line 38: unknown key \"prot\" in [[referral]]; did you mean \"port\"?"),
    ]);
}

#[test]
fn what_is_missing_is_named() {
    check(&[
        ("[server]", "[limits]", "line 6: this is not TOML: duplicate key, at \"limits\""),
        (
            "nvme_tcp = [\"127.0.0.1:4420\", \"[::1]:4420\"]",
            "",
            "line 24: no host can connect to this [[subsystem]]: give it vfio_user, or [server] \
             nvme_tcp",
        ),
        ("name = \"fast\"\n", "", "line 14: the key \"name\" is missing in [[device]]"),
        ("device = \"mem:1GiB\"\n", "", "line 14: the key \"device\" is missing in [[device]]"),
        (
            "device = \"slow\"",
            "serial = \"x\"",
            "line 30: the key \"device\" is missing in [[subsystem]]",
        ),
        ("address = \"192.0.2.4\"", "", "line 33: the key \"address\" is missing in [[referral]]"),
    ]);
    for (text, lacks) in [
        ("", "server"),
        ("[server]\nnvme_tcp = [\":0\"]", "device"),
        ("server.nvme_tcp = [\":0\"]\ndevice = [{ name = \"a\", device = \"moke\" }]", "subsystem"),
    ] {
        let title = if lacks == "server" { "[server]" } else { &format!("[[{lacks}]]") };
        let expected = format!("s.toml line 1: the section {title} is missing");
        assert_eq!(parse(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn clients_of_redis_alone_need_no_subsystem_and_no_address_for_hosts() {
    let text = "[server]\n[[device]]\nname = \"a\"\ndevice = \"mem:1GiB\"\nresp = \":0\"\n";
    let config = parse(text).unwrap();
    assert_eq!((config.nvme_tcp.len(), config.subsystems.len()), (0, 0));
    let second = "[[device]]\nname = \"b\"\ndevice = \"mem:1GiB\"\n";
    let hosts = "[[subsystem]]\ndevice = \"b\"\n";
    let both = text.replace("[server]", "[server]\nnvme_tcp = [\":0\"]") + second + hosts;
    assert_eq!(parse(&both).unwrap().subsystems[0].served.device, 1);
    let sentence = parse(&(text.to_owned() + second)).unwrap_err().to_string();
    let expected = "s.toml line 6: the device \"b\" has neither a [[subsystem]] nor resp, so no \
                    client can use it";
    assert_eq!(sentence, expected);
}

#[test]
fn there_are_no_more_clients_of_redis_than_connections() {
    let clients = "device = \"mem:1GiB\"\nresp = \":0\"\nresp_clients = 101";
    let expected = "s.toml line 18: resp_clients in [[device]] is 101, but the server has 100 \
                    connections at most: raise connections in [limits]";
    assert_eq!(sentence("device = \"mem:1GiB\"", clients), expected);
}

#[test]
fn a_value_that_cannot_be_is_named_with_those_that_can() {
    check(&[
        (
            "cores = 3",
            "cores = 0",
            "line 2: cores in [server] is 0, but must be a whole number from 1 to 65535",
        ),
        ("cores = 3", "cores = \"0-3,3\"", "line 2: processor 3 is in the list twice"),
        (
            "\"none\"",
            "\"virtual\"",
            "line 3: clock in [server] is \"virtual\", but must be \"real\" or \"none\"",
        ),
        (
            "[\"127.0.0.1:4420\", \"[::1]:4420\"]",
            "[]",
            "line 4: nvme_tcp in [server] is an array, but must be a list of addresses, as \
             [\"127.0.0.1:4420\"]",
        ),
        (
            "\"[::1]:4420\"",
            "\"[::1]\"",
            "line 4: \"[::1]\" is not an address: use HOST:PORT, as 127.0.0.1:4420, [::1]:4420 or \
             :4420",
        ),
        (
            "\"[::1]:4420\"",
            "4420",
            "line 4: nvme_tcp in [server] is 4420, but must be text in one line",
        ),
        (
            "seed = 7",
            "seed = -1",
            "line 17: seed in [[device]] is -1, but must be a whole number from 0 to \
             18446744073709551615",
        ),
        (
            "\"192.0.2.4\"",
            "\"example.com\"",
            "line 34: address in [[referral]] is \"example.com\", but must be an IP address, as \
             192.0.2.4",
        ),
        (
            "\"192.0.2.4\"",
            "\"0.0.0.0\"",
            "line 34: address in [[referral]] is \"0.0.0.0\", but must be the IP address of one \
             machine, as 192.0.2.4",
        ),
        (
            "port = 4420",
            "port = 0",
            "line 38: port in [[referral]] is 0, but must be a whole number from 1 to 65535",
        ),
    ]);
}

#[test]
fn a_limit_that_cannot_be_is_named_with_those_that_can() {
    check(&[
        (
            "connections = 100",
            "connections = 0",
            "line 7: connections in [limits] is 0, but must be a whole number from 1 to 65536",
        ),
        (
            "associations = 9",
            "associations = 4097",
            "line 8: associations in [limits] is 4097, but must be a whole number from 1 to 4096",
        ),
        (
            "io_queues = 8",
            "io_queues = \"8\"",
            "line 9: io_queues in [limits] is \"8\", but must be a whole number from 1 to 1024",
        ),
        (
            "queue_entries = 64",
            "queue_entries = 31",
            "line 10: queue_entries in [limits] is 31, but must be a whole number from 32 to 1024",
        ),
        (
            "\"4MiB\"",
            "\"2047KiB\"",
            "line 11: connection_memory in [limits] is \"2047KiB\", but must be a size from 2.0 \
             MiB (what the largest command moves) to 1.00 GiB, as \"2MiB\"",
        ),
        (
            "\"64KiB\"",
            "\"3MiB\"",
            "line 12: value_size in [limits] is \"3MiB\", but must be a size from 1 B to 2.0 \
             MiB, as \"2MiB\"",
        ),
        (
            "\"64KiB\"",
            "65536",
            "line 12: value_size in [limits] is 65536, but must be a size from 1 B to 2.0 \
             MiB, as \"2MiB\"",
        ),
    ]);
}

#[test]
fn a_door_for_redis_clients_that_cannot_be_is_named() {
    let files = "resp_tls_cert = \"a.crt\"\nresp_tls_key = \"a.key\"";
    let over_tls = format!("resp_tls = \":6380\"\n{files}");
    let elsewhere = over_tls.replace(":6380", "0.0.0.0:6380");
    check(&[
        ("seed = 7", files, "line 17: it has no effect without resp_tls"),
        ("seed = 7", "resp_users = \"u\"", "line 17: it has no effect without resp or resp_tls"),
        (
            "seed = 7",
            "resp_tls = \":6380\"",
            "line 14: the key \"resp_tls_cert\" is missing in [[device]]",
        ),
        (
            "seed = 7",
            &over_tls,
            "line 17: a.crt cannot be read: No such file or directory (os error 2)",
        ),
        (
            "seed = 7",
            &elsewhere,
            "line 17: \"0.0.0.0:6380\" is for other machines too, and there are no users: give \
             --resp-users a file in which each user has a password, or --resp-tls-clients the CA \
             of their certificates, or use :6380 for this machine only",
        ),
        (
            "seed = 7",
            "resp = \":6379\"\nresp_users = \"none\"",
            "line 18: the users of none: No such file or directory (os error 2)",
        ),
    ]);
}

#[test]
fn a_device_that_cannot_be_served_is_named() {
    check(&[
        (
            "\"mem:1GiB\"",
            "\"mem:1MiB\"",
            "line 16: a drive in memory is mem:SIZE, from 8.0 MiB on, as mem:512MiB or \
             mem:4GiB?kind=block, and not mem:1MiB",
        ),
        (
            "\"ideal\"",
            "\"idea\"",
            "line 21: there is no profile \"idea\"; built in are \"moke\", \"ideal\", \
             \"pm983-kv\", \"lightstore\", \"cnex-oc\", \"970pro\" and \"zn540\", and the path of \
             a file contains a / or ends in .toml",
        ),
        (
            "\"ideal\"",
            "\"none.toml\"",
            "line 21: none.toml cannot be read: No such file or directory (os error 2)",
        ),
        (
            "seed = 7",
            "state = \"fast.state\"",
            "line 17: only an emulated device can have a state: serve a profile, or leave the \
             state out",
        ),
        (
            "seed = 7",
            "durability = \"group\"",
            "line 17: durability, checkpoint, scrub and cache are of a drive on a file or a block \
             device: name the path of one",
        ),
        (
            "\"mem:1GiB\"\nseed = 7",
            "\"./a.kv\"\ndurability = \"often\"",
            "line 17: durability must be one of group, everysec, capacitor, not \"often\"",
        ),
        (
            "\"mem:1GiB\"\nseed = 7",
            "\"./a.kv\"\nstate = \"a.state\"",
            "line 17: only an emulated device can have a state: serve a profile, or leave the \
             state out",
        ),
        (
            "\"mem:1GiB\"\nseed = 7",
            "\"moke\"\nstate = \"slow.state\"",
            "line 22: another [[device]] has this state file",
        ),
        ("name = \"slow\"", "name = \"fast\"", "line 20: another [[device]] has the name \"fast\""),
        (
            "[[subsystem]]\ndevice = \"slow\"\n",
            "",
            "line 19: the device \"slow\" has neither a [[subsystem]] nor resp, so no client can \
             use it",
        ),
    ]);
}

#[test]
fn subsystems_have_names_of_their_own() {
    check(&[
        (
            "device = \"slow\"",
            "device = \"slo\"",
            "line 31: device in [[subsystem]] is \"slo\", but must be the name of a [[device]]: \
             \"fast\" or \"slow\"",
        ),
        (
            "nqn = \"nqn.2026-11.com.example:fast\"",
            "nqn = \"fast\"",
            "line 25: \"fast\" is no NVMe Qualified Name of a subsystem: use \
             nqn.YYYY-MM.REVERSE.DOMAIN:NAME, as in nqn.2026-11.com.example:disk1, of at most 223 \
             bytes, and not the name of discovery",
        ),
        (
            "device = \"slow\"",
            "device = \"slow\"\nnqn = \"nqn.2026-11.com.example:fast\"",
            "line 30: another [[subsystem]] is called nqn.2026-11.com.example:fast: give each an \
             nqn",
        ),
        (
            "device = \"slow\"",
            "device = \"slow\"\nserial = \"KV-1\"",
            "line 30: another [[subsystem]] has the serial KV-1: give each one",
        ),
        (
            "\"KV-1\"",
            "\"a serial number\"",
            "line 27: serial in [[subsystem]] is \"a serial number\", but must be 1 to 20 \
             printable ASCII characters without a space",
        ),
        (
            "[\"nqn.2026-11.com.example:host-a\"]",
            "[\"nqn.2014-08.org.nvmexpress:uuid:a\"]",
            "line 28: hosts in [[subsystem]] is \"nqn.2014-08.org.nvmexpress:uuid:a\", but must be \
             the NQN of a host, as in /etc/nvme/hostnqn: nqn.YYYY-MM.REVERSE.DOMAIN:NAME or \
             nqn.2014-08.org.nvmexpress:uuid:UUID, of at most 223 bytes",
        ),
        (
            "[\"nqn.2026-11.com.example:host-a\"]",
            "\"any\"",
            "line 28: hosts in [[subsystem]] is \"any\", but must be a list of the NQNs of hosts",
        ),
    ]);
    let no_hosts = FULL.replace("[\"nqn.2026-11.com.example:host-a\"]", "[]");
    let rules = parse(&no_hosts).unwrap().rules();
    assert_eq!(
        rules.hosts["nqn.2026-11.com.example:fast"].len(),
        0,
        "an empty list admits no host"
    );
}

#[test]
fn paths_begin_in_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let profile = crate::Profile::text("ideal").unwrap();
    std::fs::write(folder.path().join("mine.toml"), profile.as_bytes()).unwrap();
    let path = folder.path().join("s.toml");
    std::fs::write(&path, FULL.replace("\"ideal\"", "\"mine.toml\"")).unwrap();
    let config = Config::load(&path).unwrap();
    // The names do not depend on where the folder is.
    assert_eq!(config.subsystems[1].served.nqn, default_nqn("mine.toml", 1));
    assert_eq!(config.devices[1].state, Some(folder.path().join("slow.state")));
    let missing = Config::load(&folder.path().join("t.toml")).unwrap_err().to_string();
    assert!(missing.ends_with("t.toml cannot be read: No such file or directory (os error 2)"));
}

/// What of a subsystem needs a restart.
const OF_SUBSYSTEM: &str = "the nqn, device, serial, vfio_user or doorbells of a [[subsystem]]";

#[test]
fn what_a_running_server_can_change_is_hosts_limits_and_referrals() {
    let old = parse(FULL).unwrap();
    for (from, to, difference) in [
        ("cores = 3", "cores = 2", Some("[server]")),
        ("\"none\"", "\"real\"", Some("[server]")),
        ("[::1]:4420", "[::1]:4421", Some("[server]")),
        ("1GiB", "2GiB", Some("a [[device]]")),
        ("seed = 7", "seed = 8", Some("a [[device]]")),
        ("slow.state", "other.state", Some("a [[device]]")),
        ("example:fast", "example:new", Some(OF_SUBSYSTEM)),
        ("KV-1", "KV-2", Some(OF_SUBSYSTEM)),
        ("serial", "vfio_user = [\"vm.sock\"]\nserial", Some(OF_SUBSYSTEM)),
        ("host-a", "host-b", None),
        ("hosts = [\"nqn.2026-11.com.example:host-a\"]", "", None),
        ("connections = 100", "connections = 101", None),
        ("io_queues = 8", "", None),
        ("cores = 3", "cores = 3\nhttp = \":0\"", Some("[server]")),
        ("4MiB", "2MiB", None),
        ("64KiB", "1MiB", None),
        ("192.0.2.4", "192.0.2.5", None),
    ] {
        let new = parse(&FULL.replacen(from, to, 1)).unwrap();
        assert_eq!(old.difference(&new), difference, "{from} -> {to}");
        assert!(difference.is_some() || old != new);
    }
}

#[test]
fn sockets_of_virtual_machines_are_of_a_subsystem() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = "serial = \"KV-1\"\nvfio_user = [\"vm1.sock\", \"/run/vm2.sock\"]";
    let text = FULL.replace("serial = \"KV-1\"", sockets);
    let config = Config::parse("s.toml", &text, folder.path()).unwrap();
    let expected = [folder.path().join("vm1.sock"), "/run/vm2.sock".into()];
    assert_eq!(config.subsystems[0].served.vfio_user, expected);
    assert_eq!(config.server().subsystems[0].vfio_user, expected);
    assert!(config.subsystems[1].served.vfio_user.is_empty());
    let doorbells = |text: &str| parse(text).unwrap().subsystems[0].served.doorbells;
    assert_eq!(doorbells(&text), Doorbells::Trapped);
    for how in Doorbells::ALL {
        let key = format!("vfio_user = [\"vm1.sock\"]\ndoorbells = \"{}\"\n", how.name());
        let text = FULL.replace("serial = \"KV-1\"", &key);
        assert_eq!(doorbells(&text), how);
    }
    // It needs no other listener.
    let alone = "device = [{ name = \"a\", device = \"ideal\" }]\n\
                 subsystem = [{ device = \"a\", vfio_user = [\"/run/vm1.sock\"] }]\nserver = {}\n";
    assert!(parse(alone).unwrap().nvme_tcp.is_empty());
}

#[test]
fn doorbells_that_cannot_be_are_named() {
    check(&[
        (
            "serial = \"KV-1\"",
            "doorbells = \"mapped\"",
            "line 27: doorbells is for virtual machines: give this [[subsystem]] vfio_user too",
        ),
        (
            "serial = \"KV-1\"",
            "vfio_user = [\"vm1.sock\"]\ndoorbells = \"polled\"",
            "line 28: doorbells in [[subsystem]] is \"polled\", but must be \"trapped\" or \
             \"mapped\"",
        ),
    ]);
}

#[test]
fn a_socket_that_cannot_be_is_named() {
    let given = |value: &str| format!("serial = \"KV-1\"\nvfio_user = {value}");
    let long = format!("/run/{}", "v".repeat(103));
    let sentence = format!(
        "line 28: {long}: the path of a socket has at most 107 bytes, and this one has 108: use a \
         shorter path, for example in /run"
    );
    let twice = "/run/a: this socket is given twice: each needs a path of its own";
    let in_two = "device = \"slow\"\nvfio_user = [\"/run/a\"]\n\n[[subsystem]]\ndevice = \"slow\"\n\
                  nqn = \"nqn.2026-11.com.example:b\"\nserial = \"B\"\nvfio_user = [\"/run/a\"]";
    let list = "but must be a list of paths, as [\"/run/kvasir/vm1.sock\"]";
    check(&[
        ("serial = \"KV-1\"", &given(&format!("[{long:?}]")), &sentence),
        ("serial = \"KV-1\"", &given("[\"/run/a\", \"/run/a\"]"), &format!("line 28: {twice}")),
        ("device = \"slow\"", in_two, &format!("line 38: {twice}")),
        (
            "serial = \"KV-1\"",
            &given("\"/run/a\""),
            &format!("line 28: vfio_user in [[subsystem]] is \"/run/a\", {list}"),
        ),
        (
            "serial = \"KV-1\"",
            &given("[]"),
            &format!("line 28: vfio_user in [[subsystem]] is an array, {list}"),
        ),
    ]);
}

#[test]
fn what_clients_of_redis_may_have_is_of_a_door() {
    let with = |lines: &str| {
        let text = FULL.replacen("seed = 7", &format!("seed = 7\n{lines}"), 1);
        parse(&text).map(|config| config.devices[0].resp.clone().map(|resp| resp.limits))
    };
    let all = "resp = \":0\"\nresp_clients = 9\nresp_query = \"2MiB\"\nresp_output = \"1GiB\"\n\
               resp_timeout = \"300s\"";
    let limits = with(all).unwrap().expect("there is a door");
    let read = (limits.clients, limits.query_bytes, limits.output_bytes, limits.timeout_seconds);
    assert_eq!(read, (9, 2 << 20, 1 << 30, 300));
    assert_eq!(with("resp = \":0\"").unwrap(), Some(crate::server::CLIENT_LIMITS));
    for (lines, sentence) in [
        ("resp_clients = 9", "it has no effect without resp"),
        ("resp = \":0\"\nresp_clients = 0", "a whole number from 1 to 65536"),
        ("resp = \":0\"\nresp_query = \"1KiB\"", "the size must be from 1.0 MiB to 4.00 GiB"),
        ("resp = \":0\"\nresp_output = \"x\"", "or say off"),
        ("resp = \":0\"\nresp_timeout = \"300\"", "as 300s, or off, not \"300\""),
    ] {
        let error = with(lines).expect_err(lines).to_string();
        assert!(error.contains(sentence), "{error}");
    }
    // A server that runs is told by CONFIG SET.
    let (old, new) =
        (parse(FULL).unwrap(), FULL.replacen("seed = 7", "seed = 7\nresp = \":0\"", 1));
    assert_eq!(old.difference(&parse(&new).unwrap()), Some("a [[device]]"));
}

/// Each key has a row in a table of the guide, which names it in the first column.
#[test]
fn the_guide_has_every_key_of_a_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/server.md");
    let page = std::fs::read_to_string(path).unwrap();
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let words = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let words: std::collections::BTreeSet<_> = words.collect();
    for schema in
        [listen::SCHEMA, limits::SCHEMA, device::SCHEMA, subsystem::SCHEMA, referral::SCHEMA]
            .into_iter()
            .chain([balance::SCHEMA, tenant::SCHEMA])
    {
        for key in schema.keys {
            assert!(words.contains(key), "docs/guide/server.md lacks {key} in {}", schema.title);
        }
    }
}

#[test]
fn a_small_size_without_a_unit_is_refused() {
    for (from, to, sentence) in [
        ("\"4MiB\"", "\"4\"", "line 11: connection_memory in [limits]: 4 has no unit: write 4MiB"),
        ("device = \"mem:1GiB\"", "device = \"mem:1\"", "mem:SIZE, is wrong: 1 has no unit"),
    ] {
        assert!(FULL.contains(from), "{from}");
        let error = parse(&FULL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
    // Of a value a few bytes are a sensible length.
    let config = parse(&FULL.replacen("\"64KiB\"", "\"64\"", 1)).unwrap();
    assert_eq!(config.limits.value_bytes, 64);
}

/// A drive that two cores share, and how these are balanced.
const BALANCED: &str = "\
[server]
cores = 2
nvme_tcp = [\"127.0.0.1:4420\"]

[balance]
policy = \"ps\"
overload = 0.5
spread = 0.25
movable = 0.125
window_ms = 20
release = 0.5

[[device]]
name = \"fast\"
device = \"mem:1GiB\"

[[subsystem]]
device = \"fast\"
";

#[test]
fn the_cores_of_drives_can_be_balanced() {
    let config = parse(BALANCED).unwrap();
    let expected = BalanceConfig {
        policy: ::balance::Policy::ProportionalShare,
        settings: ::balance::Settings {
            overload: 0.5,
            spread: 0.25,
            movable: 0.125,
            window: base::Nanos::from_millis(20),
            memory: ::balance::Memory::On { release: 0.5 },
        },
    };
    assert_eq!((config.balance, config.server().balance), (Some(expected), Some(expected)));
    assert_eq!(parse(FULL).unwrap().balance, None);
    let settings =
        "overload = 0.5\nspread = 0.25\nmovable = 0.125\nwindow_ms = 20\nrelease = 0.5\n";
    let defaults = parse(&BALANCED.replace(settings, "")).unwrap().balance.unwrap();
    assert_eq!(defaults.settings, ::balance::Settings::default());
    let off = parse(&BALANCED.replace("release = 0.5", "memory = false")).unwrap();
    assert_eq!(off.balance.unwrap().settings.memory, ::balance::Memory::Off);
    assert_eq!(config.difference(&off), None);
    let without = BALANCED.replace("[balance]\npolicy = \"ps\"\n", "").replace(settings, "");
    let [with, without] = [config, parse(&without).unwrap()];
    assert_eq!(with.difference(&without), Some("[balance]"));
    assert_eq!(without.difference(&with), Some("[balance]"));
}

#[test]
fn new_connections_are_placed_also_where_commands_cannot_move() {
    let emulated = BALANCED.replace("mem:1GiB", "ideal").replace("\"ps\"", "\"conn\"");
    let error = parse(&emulated).unwrap_err().to_string();
    let sentence = "1 of 2 cores has devices, so one core is left for connections and cannot be \
                    balanced: set cores to 3 or more";
    assert!(error.contains(sentence), "{error}");
    for policy in [Policy::Connections, Policy::Auto, Policy::None] {
        let name = policy.name();
        let text = emulated.replace("cores = 2", "cores = 3").replace("conn", name);
        assert_eq!(parse(&text).unwrap().balance.unwrap().policy, policy);
    }
}

#[test]
fn what_cannot_be_balanced_is_refused() {
    for (from, to, sentence) in [
        (
            "\"ps\"",
            "\"best\"",
            "line 6: policy in [balance] is \"best\", but must be \"none\", \"rr\", \"ps\", \
             \"conn\" or \"auto\"",
        ),
        ("policy = \"ps\"", "", "the key \"policy\" is missing in [balance]"),
        ("0.25", "1.5", "line 8: spread in [balance] is 1.5, but must be"),
        ("= 20", "= 0", "line 10: window_ms in [balance] is 0, but must be"),
        ("release = 0.5", "release = 0.5\nmemory = false", "only with memory = true"),
        ("cores = 2", "cores = 1", "one core cannot be balanced: set cores to 2 or more"),
        ("mem:1GiB", "ideal", "commands on an emulated device stay on its core"),
        (
            "cores = 2\nnvme_tcp = [\"127.0.0.1:4420\"]",
            "cores = 3\nnvme_tcp = [\":0\"]\n\
             [[device]]\nname = \"more\"\ndevice = \"mem:64MiB\"\nresp = \":0\"",
            "2 of 3 cores have devices, so one core is left for connections",
        ),
    ] {
        assert!(BALANCED.contains(from), "{from}");
        let error = parse(&BALANCED.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(sentence), "{error}");
    }
}
