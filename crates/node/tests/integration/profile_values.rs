//! What a profile's text says is what the profile holds.

use base::Nanos;
use node::profile::{
    Ack, Block, Cores, Firmware, GcBlocking, GcFrontier, GcVictims, Handlers, Levels, Link, Log,
    LogFtl, Model, MultiPlane, Namespace, NamespaceKind, Nand, Power, ReadRetries, Stripe, Suspend,
    Wear, Zoned, builtin_names,
};
use node::{Profile, ProfileError};

const SINGLE: &str = include_str!("single.toml");
const FULL: &str = include_str!("full.toml");

fn parsed(text: &str) -> Profile {
    Profile::parse("test", text).expect("a valid profile")
}

#[test]
fn every_key_arrives_in_the_unit_of_its_field() {
    let profile = parsed(SINGLE);
    assert_eq!(profile.name, "test");
    assert_eq!(profile.description, "A device with one namespace, of keys and values");
    let nand = Nand {
        channels: 4,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 64,
        pages_per_block: 128,
        page_bytes: 4096,
        spare_bytes: 128,
        levels: Levels::uniform(Nanos(45_500), Nanos(660_000)),
        erase: Nanos(3_500_000),
        registers: 2,
        model: Model::Scalar,
        channel_bytes_per_second: 1_200_500_000,
        factory_bad_ppm: 500,
        transfer_bytes: 1,
        cache_busy: Nanos::ZERO,
        multi_plane: MultiPlane::None,
        suspend: Suspend { program: None, erase: None, resume: Nanos::ZERO },
        read_priority: true,
        wear: Wear { variability_ppm: 0, read_retries: None, worn_cycles: 0 },
    };
    assert_eq!(profile.nand, nand);
    assert_eq!(profile.link, Link { bytes_per_second: 0, transfer: Nanos(0) });
    let firmware = Firmware {
        handlers: Handlers::Count(8),
        t_read: Nanos(4_200),
        t_write: Nanos(4_400),
        t_delete: Nanos(10_000),
        t_exist: Nanos(2_000),
        t_update: Nanos::ZERO,
        t_write_kib: Nanos::ZERO,
        t_read_kib: Nanos::ZERO,
    };
    assert_eq!(profile.firmware, firmware);
    let Firmware { t_update, t_write_kib, t_read_kib, .. } = parsed(FULL).firmware;
    assert_eq!([t_update, t_write_kib, t_read_kib], [3_000, 500, 250].map(Nanos));
    let core = Cores { count: 2, parse: Nanos(100), probe: Nanos(51), complete: Nanos(1) };
    assert_eq!(profile.core, core);
    let ack = Ack::Buffer { bytes: 4096 * 1024 };
    let (ftl, gc_victims) = (LogFtl::Append { stripe: Stripe::All }, GcVictims::DChoices);
    assert_eq!(profile.log, Some(Log { ftl, ack, gc_victims, checkpoint_bytes: 0 }));
    let text = SINGLE.replace("gc_victims =", "checkpoint_mib = 16\ngc_victims =");
    assert_eq!(parsed(&text).log.unwrap().checkpoint_bytes, 16 << 20);
    assert_eq!(profile.index.unwrap().kind, "hash");
    // 4 x 2 dies x 2 x 64 blocks x 128 pages x 4096 bytes are 2^29 bytes.
    let over_provisioning = (536_870_912.0 - 4e8) / 4e8;
    let kind = NamespaceKind::Kv;
    let namespace = Namespace { kind, size_bytes: 400_000_000, over_provisioning };
    assert_eq!(profile.namespaces, [namespace]);
    assert_eq!(profile.kv_bytes(), 400_000_000);
    assert_eq!(profile.assumptions(), []);
}

/// Of every page: to sense, to program, and to erase its block.
fn times_of(nand: &Nand) -> (Nanos, Nanos, Nanos) {
    let Levels { read, program, .. } = &nand.levels;
    assert_eq!((read.len(), program.len()), (1, 1), "all pages are alike");
    (read[0], program[0], nand.erase)
}

#[test]
fn several_namespaces_and_every_knob_arrive_in_their_units() {
    let profile = parsed(FULL);
    let Nand { levels, suspend, wear, .. } = &profile.nand;
    let micros = |each: [u64; 2]| each.map(Nanos::from_micros).to_vec();
    assert_eq!(levels.read, [Nanos(45_500), Nanos(60_000)]);
    assert_eq!(levels.program, micros([660, 1_800]));
    assert_eq!(levels.page_map, "0(01)");
    assert_eq!(profile.nand.transfer_bytes, 2_048);
    assert_eq!(profile.nand.cache_busy, Nanos::from_micros(3));
    assert_eq!(profile.nand.multi_plane, MultiPlane::Together);
    let (program, erase) = (Some(Nanos::from_micros(20)), Some(Nanos(30_500)));
    assert_eq!(*suspend, Suspend { program, erase, resume: Nanos::from_micros(5) });
    let retries = ReadRetries { fresh_ppm: 1_000, worn_ppm: 1_500_000, endurance_cycles: 3_000 };
    let read_retries = Some(retries);
    assert_eq!(*wear, Wear { variability_ppm: 25_000, read_retries, worn_cycles: 1_000 });
    let kinds = profile.namespaces.iter().map(|namespace| &namespace.kind);
    let block = Block {
        ack: Ack::Buffer { bytes: 1 << 20 },
        gc_victims: GcVictims::CostBenefit,
        gc_blocking: GcBlocking::Plane,
        gc_frontier: GcFrontier::Shared,
        gc_free_blocks: 3,
        wear_gap: 20,
    };
    let stripe = Stripe::Channel;
    let zoned = Zoned { stripe, max_open: 4, max_active: 8, buffer_bytes: 512 << 10 };
    let expected = [NamespaceKind::Kv, NamespaceKind::Block(block), NamespaceKind::Zoned(zoned)];
    assert!(kinds.eq(&expected));
    let sizes = profile.namespaces.iter().map(|one| (one.size_bytes, one.over_provisioning));
    assert!(sizes.eq([(180_000_000, 0.491), (200_000_000, 0.25), (100_000_000, 0.1)]));
    assert_eq!(profile.kv_bytes(), 180_000_000);
    let power = Power { capacitor_nj: 12_500_000, program_nj: 50_000 };
    assert_eq!((profile.power, power.pages()), (Some(power), 250));
    assert_eq!(parsed(SINGLE).power, None);
}

/// A row, one block of every plane, has 16 x 128 x 4096 bytes, or 8.39 MB: 268.4 MB and 250 MB and
/// 110 MB are 32, 30 and 14 of them, and of the 128 rows 52 are left.
#[test]
fn namespaces_lie_one_after_the_other_and_the_last_has_what_is_left() {
    let regions = |text: &str| -> Vec<(u32, u32)> {
        parsed(text).regions().iter().map(|region| (region.first, region.count)).collect()
    };
    assert_eq!(regions(FULL), [(0, 32), (32, 30), (62, 66)]);
    assert_eq!(regions(SINGLE), [(0, 64)]);
    // Keys and values have one region together, where the first of them stands.
    let more = "\n[[namespace]]\nkind = \"kv\"\nsize_gb = 0.05\nover_provisioning = 0.1\n";
    let regions = regions(&format!("{FULL}{more}"));
    assert_eq!(regions, [(0, 84), (84, 30), (114, 14), (0, 84)]);
}

#[test]
fn what_is_left_out_has_its_default() {
    let mut text = String::new();
    for line in SINGLE.lines() {
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
    let by_size = parsed(&SINGLE.replace("over_provisioning = 0.342\n", ""));
    assert_eq!(by_size.namespaces, parsed(SINGLE).namespaces);
    let by_spare = parsed(
        &SINGLE
            .replace("size_gb = 0.4\nover_provisioning = 0.342\n", "")
            .replace("kind = \"kv\"\n", "kind = \"kv\"\nover_provisioning = 0.25\n"),
    );
    // Four fifths of 2^29, rounded: 0.25 more than that is all of it.
    assert_eq!(by_spare.namespaces[0].size_bytes, 429_496_730);
    assert!((by_spare.namespaces[0].over_provisioning - 0.25).abs() < 1e-8);
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
            let text = SINGLE.replace(old, &format!("{key}\"{word}\""));
            let json = serde_json::to_value(parsed(&text)).unwrap();
            assert_eq!(json.pointer(pointer).unwrap(), word);
        }
    }
    let wide = SINGLE.replace("pages_per_block = 128", "pages_per_block = 1024");
    for (word, units, extents) in [("die", 2, 64 * 8), ("channel", 4, 64 * 4), ("all", 16, 64)] {
        let text = wide.replace("\"all\"", &format!("\"{word}\"")).replace("= 0.4\n", "= 3.8\n");
        let text = text.replace("over_provisioning = 0.342\n", "");
        let Profile { nand, log, .. } = parsed(&text);
        let log = log.unwrap();
        let stripe = log.stripe().unwrap();
        assert_eq!(stripe.units(&nand), units);
        assert_eq!(stripe.extents(&nand, nand.blocks_per_plane), extents);
        assert_eq!(stripe.extents(&nand, 1), extents / 64);
        assert_eq!(stripe.extent_bytes(&nand), u64::from(units) * 1024 * 4096);
        assert_eq!(serde_json::to_value(log).unwrap()["stripe"], word);
    }
}

#[test]
fn json_has_the_checked_values_under_names_with_their_units() {
    let text = SINGLE.replace("ack = \"buffer\"\nbuffer_kib = 4096", "ack = \"program\"");
    let text = text.replace("handlers = 8", "handlers = \"unlimited\" # assumption: a guess");
    let json = serde_json::to_value(parsed(&text)).unwrap();
    assert_eq!(json["nand"]["read_ns"], 45_500);
    assert_eq!(json["link"], serde_json::json!({"bytes_per_second": 0, "transfer_ns": 0}));
    assert_eq!(json["firmware"]["handlers"], "unlimited");
    assert_eq!(json["core"]["probe_ns"], 51);
    let log = serde_json::json!({
        "stripe": "all", "ack": "program", "gc_victims": "d-choices", "ftl": "append",
        "checkpoint_bytes": 0
    });
    assert_eq!(json["log"], log);
    assert_eq!(json["index"], serde_json::json!({"kind": "hash"}));
    assert_eq!(json["namespaces"][0]["kind"], "kv");
    let assumption = serde_json::json!([{"key": "firmware.handlers", "sentence": "a guess"}]);
    assert_eq!(json["assumptions"], assumption);
    let buffered = serde_json::to_value(parsed(SINGLE)).unwrap();
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
    assert_eq!(times_of(nand), times);
    assert_eq!((nand.registers, nand.model), (1, Model::Staged));
    assert_eq!(nand.raw_bytes(), 64 << 30);
    assert_eq!(moke.namespaces[0].size_bytes, 64_000_000_000);
    assert_eq!((nand.spare_bytes, nand.channel_bytes_per_second), (1024, 800_000_000));
    let link = Link { bytes_per_second: 3_200_000_000, transfer: Nanos(1_000) };
    assert_eq!(moke.link, link);
    let firmware = Firmware {
        handlers: Handlers::Count(1),
        t_read: Nanos(4_200),
        t_write: Nanos(4_400),
        t_delete: Nanos(4_400),
        t_exist: Nanos(4_200),
        t_update: Nanos::ZERO,
        t_write_kib: Nanos::ZERO,
        t_read_kib: Nanos::ZERO,
    };
    assert_eq!(moke.firmware, firmware);
    let gc_victims = GcVictims::Greedy;
    let ftl = LogFtl::Append { stripe: Stripe::All };
    assert_eq!(moke.log, Some(Log { ftl, ack: Ack::Program, gc_victims, checkpoint_bytes: 0 }));
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
        "not in the paper; of the order of a DMA's round trip over PCIe. Each value takes \
         one transfer, and so does each key that does not fit into the command. Queue entries cost \
         nothing."
    );
}

#[test]
fn ideal_takes_no_time_at_all() {
    let Profile { nand, link, firmware, core, .. } = Profile::load("ideal").unwrap();
    assert_eq!(times_of(&nand), (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO));
    assert_eq!(nand.channel_bytes_per_second, 0);
    assert_eq!(link, Link { bytes_per_second: 0, transfer: Nanos::ZERO });
    assert_eq!(firmware.handlers, Handlers::Unlimited);
    let Firmware { t_read, t_write, t_delete, t_exist, .. } = firmware;
    assert_eq!([t_read, t_write, t_delete, t_exist], [Nanos::ZERO; 4]);
    let Firmware { t_update, t_write_kib, t_read_kib, .. } = firmware;
    assert_eq!([t_update, t_write_kib, t_read_kib], [Nanos::ZERO; 3]);
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
        assert!(assumed + sourced >= 24, "{name} has {assumed} + {sourced} keys");
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
    assert_eq!(log.unwrap().ack, Ack::Program);
    // 512 GiB of chips, rounded up to whole blocks of 2 MiB in each of 48 planes.
    let raw = nand.raw_bytes();
    assert!((512 << 30..(512 << 30) + 48 * (2 << 20)).contains(&raw), "{raw}");
}

#[test]
fn lightstore_says_that_its_index_is_not_that_of_the_paper() {
    let lightstore = Profile::load("lightstore").unwrap();
    assert_eq!(lightstore.index.unwrap().kind, "hash");
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
    let Profile { nand, firmware, log, namespaces, .. } = Profile::load("pm983-kv").unwrap();
    assert_eq!(namespaces[0].size_bytes, 3_840_000_000_000);
    // Rounded up to whole blocks of 12 MiB in each of 128 planes.
    let raw = nand.raw_bytes();
    assert!((4 << 40..(4 << 40) + 128 * (12 << 20)).contains(&raw), "{raw}");
    // MoKE's flash, of the same maker.
    assert_eq!((nand.levels.read[0], nand.erase), (Nanos::from_micros(45), Nanos(3_500_000)));
    assert!(matches!(firmware.handlers, Handlers::Count(2..)), "several request handlers");
    assert!(matches!(log.unwrap().ack, Ack::Buffer { .. }));
}

#[test]
fn every_builtin_device_of_pairs_or_blocks_keeps_flash_beyond_its_size_as_drives_do() {
    for name in builtin_names() {
        let Profile { nand, log, namespaces, .. } = Profile::load(name).unwrap();
        let [namespace] = &namespaces[..] else { panic!("{name} has one namespace") };
        let is_zoned = matches!(namespace.kind, NamespaceKind::Zoned(_));
        let least = if is_zoned { 0.0 } else { 0.07 };
        assert!((least..0.15).contains(&namespace.over_provisioning), "{name}: {namespace:?}");
        if let Some(stripe) = log.and_then(|log| log.stripe()) {
            let extents = stripe.extents(&nand, nand.blocks_per_plane) * stripe.extent_bytes(&nand);
            assert_eq!(extents, nand.raw_bytes(), "{name}: every block is in an extent");
        }
    }
}

/// FEMU section 3.2.3 as numbers of its own: 48/64 and 900/2400 us, 512 pages, of which 0 to 6, 8
/// and 9 are lower, 7 and 10 upper, and the rest repeats `LLuu`; its table: 52.433 us a page.
#[test]
fn cnex_oc_is_the_drive_of_the_femu_paper() {
    let Profile { nand, log, namespaces, .. } = Profile::load("cnex-oc").unwrap();
    assert_eq!((nand.channels, nand.registers, nand.pages_per_block), (16, 2, 512));
    let micros = |lower, upper| vec![Nanos::from_micros(lower), Nanos::from_micros(upper)];
    assert_eq!(nand.levels.read, micros(48, 64));
    assert_eq!(nand.levels.program, micros(900, 2_400));
    assert_eq!(nand.erase, Nanos::from_millis(3));
    let page = u64::from(nand.page_bytes) * 1_000_000_000;
    assert_eq!(page.div_ceil(nand.channel_bytes_per_second), 52_433);
    assert_eq!(nand.transfer_bytes, nand.page_bytes, "whole pages cross the channel");
    let map: nand::PageMap = nand.levels.page_map.parse().unwrap();
    for page in 0..512 {
        let is_upper = match page {
            7 | 10 => true,
            0..=10 => false,
            _ => (page - 11) % 4 >= 2,
        };
        assert_eq!(map.level(page), usize::from(is_upper), "page {page}");
    }
    assert_eq!(log, None);
    // Every block of the flash is a zone, but for one of 65 that is kept for a loss of power.
    assert_eq!(namespaces[0].size_bytes / 64, nand.raw_bytes() / 65);
    let NamespaceKind::Zoned(zoned) = &namespaces[0].kind else { panic!("it is zoned") };
    assert_eq!(zoned.stripe.extent_bytes(&nand), nand.block_bytes());
    assert_eq!(u64::from(zoned.max_open), namespaces[0].size_bytes / nand.block_bytes());
}

/// NVMeVirt's preset as numbers of its own: 8 x 2 dies of 8192 blocks, 512 GB and 7 % beside, reads
/// of 4 KiB within 6 us of 35.76, 185 us, 1 MiB of write buffer.
#[test]
fn the_970_pro_has_the_numbers_of_its_preset() {
    let Profile { nand, namespaces, firmware, .. } = Profile::load("970pro").unwrap();
    assert_eq!((nand.dies(), nand.blocks_per_die()), (16, 8_192));
    let [lower, upper] = nand.levels.read[..] else { panic!("two levels") };
    assert_eq!((lower + upper, upper - lower), (Nanos(2 * 35_760), Nanos(12_000)));
    assert_eq!(nand.levels.program, [Nanos::from_micros(185); 2]);
    assert_eq!((firmware.t_read, firmware.t_write), (Nanos(21_500), Nanos(4_460)));
    assert_eq!(namespaces[0].size_bytes, 512_000_000_000);
    let NamespaceKind::Block(block) = &namespaces[0].kind else { panic!("it is of blocks") };
    let dies_twice = u64::from(2 * nand.dies() * nand.page_bytes);
    assert_eq!(block.ack, Ack::Buffer { bytes: dies_twice });
}

/// What a drive reports: 904 zones of 1077 MiB in 2048 MiB of addresses, 14 open and active.
#[test]
fn the_zones_of_zn540_are_those_that_the_drive_reports() {
    let Profile { nand, namespaces, .. } = Profile::load("zn540").unwrap();
    let NamespaceKind::Zoned(zoned) = &namespaces[0].kind else { panic!("it is zoned") };
    let capacity = zoned.stripe.extent_bytes(&nand);
    assert_eq!(capacity, 1_077 << 20);
    assert_eq!(capacity.next_power_of_two(), 2_048 << 20);
    assert_eq!(namespaces[0].size_bytes, 904 * capacity);
    assert_eq!((zoned.max_open, zoned.max_active), (14, 14));
    assert_eq!(nand.levels.program, [Nanos::from_micros(561 / 3)]);
}

#[test]
fn an_assumption_may_stand_above_its_key_or_behind_the_value() {
    let text = SINGLE
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
fn an_assumption_of_a_list_and_of_one_of_several_namespaces_is_found() {
    let text = FULL
        .replace("[45.5, 60]", "[45.5, 60] # assumption: both")
        .replace("wear_gap = 20", "wear_gap = 20 # assumption: some");
    let profile = parsed(&text);
    let found: Vec<_> =
        profile.assumptions().iter().map(|one| (one.key.as_str(), one.sentence.as_str())).collect();
    assert_eq!(found, [("nand.read_us", "both"), ("namespace[2].wear_gap", "some")]);
}

#[test]
fn a_name_that_is_not_built_in_is_answered_with_those_that_are() {
    let error = Profile::load("mokee").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no profile \"mokee\"; built in are \"moke\", \"ideal\", \"pm983-kv\", \
         \"lightstore\", \"cnex-oc\", \"970pro\" and \"zn540\", and the path of a file contains a \
         / or ends in .toml"
    );
    assert_eq!(error, ProfileError::UnknownName { name: "mokee".to_owned() });
    let names = ["moke", "ideal", "pm983-kv", "lightstore", "cnex-oc", "970pro", "zn540"];
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
