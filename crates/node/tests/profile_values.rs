//! What a profile's text says is what the profile holds.

use base::Nanos;
use node::profile::{
    Ack, Cores, Firmware, GcVictims, Handlers, Link, Log, Model, Namespace, NamespaceKind, Nand,
    Stripe, builtin_names,
};
use node::{Profile, ProfileError};

const FULL: &str = include_str!("full.toml");

fn parsed(text: &str) -> Profile {
    Profile::parse("test", text).expect("a valid profile")
}

#[test]
fn every_key_arrives_in_the_unit_of_its_field() {
    let profile = parsed(FULL);
    assert_eq!(profile.name, "test");
    assert_eq!(profile.description, "A device whose profile has every key");
    let nand = Nand {
        channels: 4,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 64,
        pages_per_block: 128,
        page_bytes: 4096,
        spare_bytes: 128,
        read: Nanos(45_500),
        program: Nanos(660_000),
        erase: Nanos(3_500_000),
        registers: 2,
        model: Model::Scalar,
        channel_bytes_per_second: 1_200_500_000,
        factory_bad_ppm: 500,
    };
    assert_eq!(profile.nand, nand);
    assert_eq!(profile.link, Link { bytes_per_second: 0, transfer: Nanos(0) });
    let firmware = Firmware {
        handlers: Handlers::Count(8),
        t_read: Nanos(4_200),
        t_write: Nanos(4_400),
        t_delete: Nanos(10_000),
        t_exist: Nanos(2_000),
    };
    assert_eq!(profile.firmware, firmware);
    let core = Cores { count: 2, parse: Nanos(100), probe: Nanos(51), complete: Nanos(1) };
    assert_eq!(profile.core, core);
    let ack = Ack::Buffer { bytes: 4096 * 1024 };
    assert_eq!(profile.log, Log { stripe: Stripe::All, ack, gc_victims: GcVictims::DChoices });
    assert_eq!(profile.index.kind, "hash");
    // 4 x 2 dies x 2 x 64 blocks x 128 pages x 4096 bytes are 2^29 bytes.
    let over_provisioning = (536_870_912.0 - 4e8) / 4e8;
    let kind = NamespaceKind::Kv;
    let namespace = Namespace { kind, size_bytes: 400_000_000, over_provisioning };
    assert_eq!(profile.namespace, namespace);
    assert_eq!(profile.assumptions(), []);
}

#[test]
fn what_is_left_out_has_its_default() {
    let mut text = String::new();
    for line in FULL.lines() {
        let key = line.split(' ').next().unwrap();
        let optional = ["spare_bytes", "factory_bad_ppm", "[core]", "count", "parse_ns"];
        if !optional.contains(&key) && !["probe_ns", "complete_ns"].contains(&key) {
            text.extend([line, "\n"]);
        }
    }
    let profile = parsed(&text);
    assert_eq!(profile.nand.spare_bytes, 4096 / 16);
    assert_eq!(profile.nand.factory_bad_ppm, 0);
    let zero = Nanos::ZERO;
    assert_eq!(profile.core, Cores { count: 1, parse: zero, probe: zero, complete: zero });
}

#[test]
fn size_and_over_provisioning_follow_from_each_other() {
    let by_size = parsed(&FULL.replace("over_provisioning = 0.342\n", ""));
    assert_eq!(by_size.namespace, parsed(FULL).namespace);
    let by_spare = parsed(
        &FULL
            .replace("size_gb = 0.4\nover_provisioning = 0.342\n", "")
            .replace("kind = \"kv\"\n", "kind = \"kv\"\nover_provisioning = 0.25\n"),
    );
    // Four fifths of 2^29, rounded: 0.25 more than that is all of it.
    assert_eq!(by_spare.namespace.size_bytes, 429_496_730);
    assert!((by_spare.namespace.over_provisioning - 0.25).abs() < 1e-8);
}

#[test]
fn each_word_of_a_choice_means_itself() {
    let choices = [
        ("stripe = \"all\"", "/log/stripe", vec!["all"]),
        ("\"d-choices\"", "/log/gc_victims", vec!["greedy", "cost-benefit", "random", "fifo"]),
        ("\"scalar\"", "/nand/model", vec!["staged"]),
        ("\"d-choices\"", "/log/gc_victims", vec!["d-choices"]),
    ];
    for (old, pointer, words) in choices {
        for word in words {
            let key = old.split_once('"').unwrap().0;
            let text = FULL.replace(old, &format!("{key}\"{word}\""));
            let json = serde_json::to_value(parsed(&text)).unwrap();
            assert_eq!(json.pointer(pointer).unwrap(), word);
        }
    }
    let wide = FULL.replace("pages_per_block = 128", "pages_per_block = 1024");
    for (word, dies, extents) in [("die", 1, 128 * 8), ("channel", 2, 128 * 4), ("all", 8, 128)] {
        let text = wide.replace("\"all\"", &format!("\"{word}\"")).replace("= 0.4\n", "= 4\n");
        let text = text.replace("over_provisioning = 0.342\n", "");
        let Profile { nand, log, .. } = parsed(&text);
        assert_eq!(log.stripe.dies(&nand), dies);
        assert_eq!(log.stripe.extents(&nand), extents);
        assert_eq!(log.stripe.extent_bytes(&nand), u64::from(dies) * 1024 * 4096);
        assert_eq!(serde_json::to_value(log).unwrap()["stripe"], word);
    }
}

#[test]
fn json_has_the_checked_values_under_names_with_their_units() {
    let text = FULL.replace("ack = \"buffer\"\nbuffer_kib = 4096", "ack = \"program\"");
    let text = text.replace("handlers = 8", "handlers = \"unlimited\" # assumption: a guess");
    let json = serde_json::to_value(parsed(&text)).unwrap();
    assert_eq!(json["nand"]["read_ns"], 45_500);
    assert_eq!(json["link"], serde_json::json!({"bytes_per_second": 0, "transfer_ns": 0}));
    assert_eq!(json["firmware"]["handlers"], "unlimited");
    assert_eq!(json["core"]["probe_ns"], 51);
    let log = serde_json::json!({"stripe": "all", "ack": "program", "gc_victims": "d-choices"});
    assert_eq!(json["log"], log);
    assert_eq!(json["index"], serde_json::json!({"kind": "hash"}));
    assert_eq!(json["namespace"]["kind"], "kv");
    let assumption = serde_json::json!([{"key": "firmware.handlers", "sentence": "a guess"}]);
    assert_eq!(json["assumptions"], assumption);
    let buffered = serde_json::to_value(parsed(FULL)).unwrap();
    assert_eq!(buffered["log"]["ack"], "buffer");
    assert_eq!(buffered["log"]["buffer_bytes"], 4_194_304);
    assert_eq!(buffered["firmware"]["handlers"], 8);
}

#[test]
fn a_copy_of_a_builtin_profile_in_a_file_is_the_same_device() {
    let folder = tempfile::tempdir().unwrap();
    for name in builtin_names() {
        let path = folder.path().join(format!("{name}.toml"));
        let path = path.to_str().unwrap();
        std::fs::write(path, Profile::text(name).unwrap().as_bytes()).unwrap();
        assert_eq!(Profile::text(path).unwrap(), Profile::text(name).unwrap());
        let mut copy = Profile::load(path).unwrap();
        assert_eq!(copy.name, path);
        name.clone_into(&mut copy.name);
        assert_eq!(copy, Profile::load(name).unwrap());
    }
}

#[test]
fn moke_is_the_device_of_the_paper() {
    let moke = Profile::load("moke").unwrap();
    let nand = &moke.nand;
    assert_eq!((nand.channels, nand.dies_per_channel, nand.page_bytes), (8, 8, 16 << 10));
    let times = (Nanos::from_micros(45), Nanos::from_micros(660), Nanos(3_500_000));
    assert_eq!((nand.read, nand.program, nand.erase), times);
    assert_eq!((nand.registers, nand.model), (1, Model::Staged));
    assert_eq!(nand.raw_bytes(), 64 << 30);
    assert_eq!(moke.namespace.size_bytes, 64_000_000_000);
    assert_eq!((nand.spare_bytes, nand.channel_bytes_per_second), (1024, 800_000_000));
    let link = Link { bytes_per_second: 3_200_000_000, transfer: Nanos(1_000) };
    assert_eq!(moke.link, link);
    let firmware = Firmware {
        handlers: Handlers::Count(1),
        t_read: Nanos(4_200),
        t_write: Nanos(4_400),
        t_delete: Nanos(4_400),
        t_exist: Nanos(4_200),
    };
    assert_eq!(moke.firmware, firmware);
    let (stripe, gc_victims) = (Stripe::All, GcVictims::Greedy);
    assert_eq!(moke.log, Log { stripe, ack: Ack::Program, gc_victims });
}

#[test]
fn only_the_numbers_that_the_paper_lacks_are_assumptions_of_moke() {
    let moke = Profile::load("moke").unwrap();
    let keys: Vec<&str> = moke.assumptions().iter().map(|one| one.key.as_str()).collect();
    for key in ["nand.read_us", "nand.channels", "firmware.t_read_us", "namespace.size_gb"] {
        assert!(!keys.contains(&key), "{key} is in the paper");
    }
    for key in ["link.mb_per_s", "firmware.t_delete_us", "log.gc_victims", "nand.spare_bytes"] {
        assert!(keys.contains(&key), "{key} is not in the paper");
    }
    let transfer = moke.assumptions().iter().find(|one| one.key == "link.transfer_us").unwrap();
    assert_eq!(
        transfer.sentence,
        "not in the paper; of the order of a DMA's round trip over PCIe. Counted as transfers are \
         values and keys too long for the command, not submission and completion entries."
    );
}

#[test]
fn ideal_takes_no_time_at_all() {
    let Profile { nand, link, firmware, core, .. } = Profile::load("ideal").unwrap();
    assert_eq!([nand.read, nand.program, nand.erase], [Nanos::ZERO; 3]);
    assert_eq!(nand.channel_bytes_per_second, 0);
    assert_eq!(link, Link { bytes_per_second: 0, transfer: Nanos::ZERO });
    assert_eq!(firmware.handlers, Handlers::Unlimited);
    let Firmware { t_read, t_write, t_delete, t_exist, .. } = firmware;
    assert_eq!([t_read, t_write, t_delete, t_exist], [Nanos::ZERO; 4]);
    assert_eq!([core.parse, core.probe, core.complete], [Nanos::ZERO; 3]);
}

#[test]
fn every_key_line_of_a_builtin_profile_says_where_its_value_is_from() {
    for name in builtin_names() {
        let text = Profile::text(name).unwrap();
        let assumptions = Profile::load(name).unwrap().assumptions().len();
        let (mut comment, mut sourced, mut assumed) = (String::new(), 0, 0);
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') {
                comment += line;
                continue;
            }
            if line.contains(" = ") {
                let source = comment.contains("MoKE section") || comment.contains("Source: ");
                let guess = comment.contains("# assumption: ");
                assert!(source || guess, "{name} line {}: without a source", number + 1);
                let meaning = comment.split(". MoKE").next().unwrap();
                let meaning = meaning.split("Source: ").next().unwrap();
                let meaning = meaning.split("# assumption: ").next().unwrap();
                assert!(meaning.len() > 10, "{name} line {}: without a meaning", number + 1);
                assumed += usize::from(guess);
                sourced += usize::from(source && !guess);
            }
            comment.clear();
        }
        assert_eq!(assumed, assumptions, "of {name}");
        assert!(assumed + sourced >= 30, "{name} has {assumed} + {sourced} keys");
    }
}

/// What the sources state, as numbers of their own: 8 buses, pages of 8192 bytes in blocks of 256,
/// 1.2 GB/s over all buses, 4 cycles at 200 MHz.
#[test]
fn lightstore_has_what_its_paper_and_code_state() {
    let Profile { nand, firmware, log, .. } = Profile::load("lightstore").unwrap();
    assert_eq!((nand.channels, nand.pages_per_block, nand.page_bytes), (8, 256, 8192));
    assert_eq!(nand.planes_per_die, 2);
    assert_eq!(u64::from(nand.channels) * nand.channel_bytes_per_second, 1_200_000_000);
    assert_eq!((firmware.t_read, firmware.t_write), (Nanos(4 * 5), Nanos(4 * 5)));
    assert_eq!(log.ack, Ack::Program);
    // 512 GiB of chips, rounded up to whole blocks of 2 MiB in each of 48 planes.
    let raw = nand.raw_bytes();
    assert!((512 << 30..(512 << 30) + 48 * (2 << 20)).contains(&raw), "{raw}");
}

#[test]
fn lightstore_says_that_its_index_is_not_that_of_the_paper() {
    let lightstore = Profile::load("lightstore").unwrap();
    assert_eq!(lightstore.index.kind, "hash");
    assert!(lightstore.description.contains("hash index, no LSM tree"));
    let index = lightstore.assumptions().iter().find(|one| one.key == "index.kind").unwrap();
    for words in ["keytable", "does not exist yet", "no compaction", "LSM tree"] {
        assert!(index.sentence.contains(words), "{words}: {}", index.sentence);
    }
    let json = serde_json::to_value(&lightstore).unwrap();
    let assumptions = json["assumptions"].as_array().unwrap();
    let index = assumptions.iter().find(|one| one["key"] == "index.kind").unwrap();
    assert!(index["sentence"].as_str().unwrap().contains("keytable"));
}

#[test]
fn pm983_kv_is_a_drive_of_4_tib_with_a_buffer() {
    let Profile { nand, firmware, log, namespace, .. } = Profile::load("pm983-kv").unwrap();
    assert_eq!(namespace.size_bytes, 3_840_000_000_000);
    // Rounded up to whole blocks of 12 MiB in each of 128 planes.
    let raw = nand.raw_bytes();
    assert!((4 << 40..(4 << 40) + 128 * (12 << 20)).contains(&raw), "{raw}");
    // MoKE's flash, of the same maker.
    assert_eq!((nand.read, nand.erase), (Nanos::from_micros(45), Nanos(3_500_000)));
    assert!(matches!(firmware.handlers, Handlers::Count(2..)), "several request handlers");
    assert!(matches!(log.ack, Ack::Buffer { .. }));
}

#[test]
fn every_builtin_device_keeps_flash_beyond_its_size_as_drives_do() {
    for name in builtin_names() {
        let Profile { nand, log, namespace, .. } = Profile::load(name).unwrap();
        assert!((0.07..0.15).contains(&namespace.over_provisioning), "{name}: {namespace:?}");
        let extents = log.stripe.extents(&nand) * log.stripe.extent_bytes(&nand);
        assert_eq!(extents, nand.raw_bytes(), "{name}: every block is in an extent");
    }
}

#[test]
fn an_assumption_may_stand_above_its_key_or_behind_the_value() {
    let text = FULL
        .replace("[nand]\n", "# assumption: not of a key\n\n[nand] # assumption: nor this\n")
        .replace(
            "read_us = 45.5",
            "# Of a page.\n# assumption: it is\n#   so\nread_us = 45.5 # yes",
        )
        .replace("\"scalar\"", "\"scalar\"  # assumption: a '#' # is a mark")
        .replace("has every key\"", "has # assumption: no\"")
        .replace("kind = \"kv\"", "\n# stray\n\nkind = \"kv\" # assumption: last");
    let profile = parsed(&text);
    let found: Vec<_> =
        profile.assumptions().iter().map(|one| (one.key.as_str(), one.sentence.as_str())).collect();
    let expected = [
        ("nand.read_us", "it is so yes"),
        ("nand.model", "a '#' # is a mark"),
        ("namespace.kind", "last"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_name_that_is_not_built_in_is_answered_with_those_that_are() {
    let error = Profile::load("mokee").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no profile \"mokee\"; built in are \"moke\", \"ideal\", \"pm983-kv\" and \
         \"lightstore\", and the path of a file contains a / or ends in .toml"
    );
    assert_eq!(error, ProfileError::UnknownName { name: "mokee".to_owned() });
    let names = ["moke", "ideal", "pm983-kv", "lightstore"];
    assert_eq!(builtin_names().collect::<Vec<_>>(), names);
}

#[test]
fn a_file_that_cannot_be_a_profile_is_an_error_and_not_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let absent = Profile::load(&path("absent.toml")).unwrap_err().to_string();
    assert!(absent.contains("absent.toml cannot be read: No such file"), "{absent}");
    let is_folder = Profile::load(&path("")).unwrap_err().to_string();
    assert!(is_folder.contains("cannot be read: Is a directory"), "{is_folder}");
    let endless = Profile::load("/dev/zero").unwrap_err().to_string();
    assert_eq!(endless, "/dev/zero cannot be read: a profile has at most 1048576 bytes");
    std::fs::write(path("latin1"), b"description = \"x\"\n\n# \xfcber\n").unwrap();
    let latin1 = Profile::load(&path("latin1")).unwrap_err().to_string();
    assert!(latin1.ends_with("latin1 line 3: this is not text in UTF-8"), "{latin1}");
}
