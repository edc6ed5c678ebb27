//! Each kind of mistake in a profile is one sentence that names file and line.

use node::{Profile, ProfileError};

const SINGLE: &str = include_str!("single.toml");

/// The sentence about `single.toml` with `old` replaced by `new`.
fn sentence(old: &str, new: &str) -> String {
    assert!(SINGLE.contains(old), "{old:?} is not in the profile");
    let text = SINGLE.replacen(old, new, 1);
    Profile::parse("my.toml", &text).expect_err(new).to_string()
}

fn check(cases: &[(&str, &str, &str)]) {
    for &(old, new, expected) in cases {
        assert_eq!(sentence(old, new), expected, "{old:?} -> {new:?}");
    }
}

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_meant() {
    check(&[
        (
            "read_us = 45.5",
            "reed_us = 45.5",
            "my.toml line 11: unknown key \"reed_us\" in [nand]; did you mean \"read_us\"?",
        ),
        (
            "mb_per_s = 0",
            "mb_per_s = 0\nwidth = 4",
            "my.toml line 21: unknown key \"width\" in [link]; known there are \"mb_per_s\" and \
             \"transfer_us\"",
        ),
        (
            "size_gb = 0.4",
            "size_gib = 0.4",
            "my.toml line 47: unknown key \"size_gib\" in [[namespace]]; did you mean \"size_gb\"?",
        ),
        (
            "[firmware]",
            "[firmwear]",
            "my.toml line 23: unknown section \"firmwear\" at the top; did you mean \"firmware\"?",
        ),
        (
            "[nand]",
            "size_gb = 4\n[nand]",
            "my.toml line 3: unknown key \"size_gb\" at the top; known there are \"description\", \
             \"nand\", \"link\", \"firmware\", \"core\", \"power\", \"log\", \"index\", \
             \"namespace\" and \"fitted\"",
        ),
        (
            "model",
            "\"a\\nb\"",
            "my.toml line 15: unknown key \"a\\nb\" in [nand]; known there are \"channels\", \
             \"dies_per_channel\", \"planes_per_die\", \"blocks_per_plane\", \"pages_per_block\", \
             \"page_bytes\", \"spare_bytes\", \"read_us\", \"program_us\", \"erase_us\", \
             \"registers\", \"model\", \"channel_mb_per_s\", \"factory_bad_ppm\", \"page_map\", \
             \"transfer_bytes\", \"cache_busy_us\", \"multi_plane\", \"program_suspend_us\", \
             \"erase_suspend_us\", \"resume_us\", \"read_priority\", \"variability_percent\", \
             \"read_retries\", \"endurance_cycles\" and \"worn_cycles\"",
        ),
    ]);
}

#[test]
fn of_two_unknown_keys_the_first_in_the_file_is_named() {
    let error = sentence("channels = 4\n", "zz = 1\naa = 1\nchannels = 4\n");
    assert!(error.starts_with("my.toml line 4: unknown key \"zz\""), "{error}");
}

#[test]
fn what_is_missing_is_named_with_the_line_of_its_section() {
    check(&[
        ("read_us = 45.5\n", "", "my.toml line 3: the key \"read_us\" is missing in [nand]"),
        (
            "gc_victims = \"d-choices\"",
            "",
            "my.toml line 36: the key \"gc_victims\" is missing in [log]",
        ),
        ("kind = \"kv\"\n", "", "my.toml line 45: the key \"kind\" is missing in [[namespace]]"),
        ("[index]\nkind = \"hash\"", "", "my.toml line 1: the section [index] is missing"),
        (
            "[[namespace]]\nkind = \"kv\"\nsize_gb = 0.4\nover_provisioning = 0.342",
            "",
            "my.toml line 1: the section [[namespace]] is missing",
        ),
        (
            "size_gb = 0.4\nover_provisioning = 0.342\n",
            "",
            "my.toml line 45: size_gb or over_provisioning is missing in [[namespace]]",
        ),
        (
            "description = \"A device with one namespace, of keys and values\"",
            "",
            "my.toml line 1: the key \"description\" is missing at the top",
        ),
    ]);
}

#[test]
fn a_value_of_a_wrong_type_is_shown_with_what_it_must_be() {
    check(&[
        (
            "channels = 4",
            "channels = \"4\"",
            "my.toml line 4: channels in [nand] is \"4\", but must be a whole number from 1 to 128",
        ),
        (
            "channels = 4",
            "channels = 4.0",
            "my.toml line 4: channels in [nand] is 4.0, but must be a whole number from 1 to 128",
        ),
        (
            "read_us = 45.5",
            "read_us = true",
            "my.toml line 11: read_us in [nand] is true, but must be a number from 0 to 60000000",
        ),
        (
            "t_read_us = 4.2",
            "t_read_us = 1979-05-27",
            "my.toml line 25: t_read_us in [firmware] is a date or time, but must be a number from \
            0 to 60000000",
        ),
        (
            "handlers = 8",
            "handlers = \"many\"",
            "my.toml line 24: handlers in [firmware] is \"many\", but must be a whole number from \
            1 to 65536 or \"unlimited\"",
        ),
        (
            "stripe = \"all\"",
            "stripe = [\n1\n]",
            "my.toml line 37: stripe in [log] is an array, but must be \"die\", \"channel\" or \
            \"all\"",
        ),
        (
            "[index]\nkind = \"hash\"",
            "[[index]]\nkind = \"hash\"",
            "my.toml line 42: index at the top is an array, but must be a section, written [index]",
        ),
        (
            "[[namespace]]",
            "[namespace]",
            "my.toml line 45: namespace at the top is a table, but must be a section, written \
             [[namespace]]",
        ),
        (
            "description = \"A device",
            "description = \"A\\ndevice",
            "my.toml line 1: description at the top is \"A\\ndevice with one namespace, of keys \
            and\"..., but must be text in one line",
        ),
    ]);
    let inline =
        SINGLE.split("[[namespace]]").next().unwrap().replacen('\n', "\nnamespace = [1]\n", 1);
    assert_eq!(
        Profile::parse("my.toml", &inline).unwrap_err().to_string(),
        "my.toml line 2: namespace at the top is an array, but must be a section, written \
         [[namespace]]"
    );
}

#[test]
fn a_number_out_of_range_is_refused_on_both_sides() {
    let cases: &[(&str, &[&str], &str)] = &[
        ("channels = 4", &["0", "129", "-4", "99999999999999999999"], "line 4: channels"),
        ("dies_per_channel = 2", &["0", "129"], "line 5: dies_per_channel"),
        ("planes_per_die = 2", &["0", "17"], "line 6: planes_per_die"),
        ("blocks_per_plane = 64", &["0", "65537"], "line 7: blocks_per_plane"),
        ("pages_per_block = 128", &["0", "16385"], "line 8: pages_per_block"),
        ("page_bytes = 4096", &["0", "256", "4095", "131072"], "line 9: page_bytes"),
        ("spare_bytes = 128", &["-1", "0", "23", "4097"], "line 10: spare_bytes"),
        ("read_us = 45.5", &["-0.1", "nan", "inf", "-inf", "6.1e7", "1e999"], "line 11: read_us"),
        ("registers = 2", &["0", "3"], "line 14: registers"),
        ("1_200.5", &["-1", "1e7", "1e-4", "nan"], "line 16: channel_mb_per_s"),
        ("factory_bad_ppm = 500", &["-1", "100001"], "line 17: factory_bad_ppm"),
        ("transfer_us = 0.0004", &["-1", "nan"], "line 21: transfer_us"),
        ("handlers = 8", &["0", "65537", "-1"], "line 24: handlers"),
        ("count = 2", &["0", "1025"], "line 31: count"),
        ("probe_ns = 50.6", &["-1", "6.1e10"], "line 33: probe_ns"),
        ("buffer_kib = 4096", &["2111", "16777217"], "line 39: buffer_kib"),
        ("size_gb = 0.4", &["0", "-1", "nan", "1e-12"], "line 47: size_gb"),
        ("over_provisioning = 0.342", &["0.019", "10.1", "nan"], "line 48: over_provisioning"),
    ];
    for &(old, values, place) in cases {
        for value in values {
            let key = old.split_once(" = ").map_or(String::new(), |(key, _)| format!("{key} = "));
            let error = sentence(old, &format!("{key}{value}"));
            assert!(error.starts_with(&format!("my.toml {place} ")), "{value}: {error}");
            assert!(error.contains(", but must be "), "{value}: {error}");
        }
    }
}

#[test]
fn the_ends_of_a_range_are_in_it() {
    for (old, new) in [
        ("read_us = 45.5", "read_us = 6e7"),
        ("read_us = 45.5", "read_us = -0.0"),
        ("spare_bytes = 128", "spare_bytes = 24"),
        ("spare_bytes = 128", "spare_bytes = 4096"),
        ("1_200.5", "0.001"),
        ("handlers = 8", "handlers = 65_536"),
        ("buffer_kib = 4096", "buffer_kib = 2112"),
        ("factory_bad_ppm = 500", "factory_bad_ppm = 100_000"),
    ] {
        let text = SINGLE.replacen(old, new, 1);
        assert_ne!(text, SINGLE);
        Profile::parse("my.toml", &text).unwrap();
    }
}

#[test]
fn too_many_blocks_are_refused() {
    check(&[
        (
            "planes_per_die = 2\nblocks_per_plane = 64",
            "planes_per_die = 2\nblocks_per_plane = 32_769",
            "my.toml line 7: a die has 65538 blocks (planes_per_die x blocks_per_plane), but at \
            most 65536 are possible",
        ),
        (
            "channels = 4\ndies_per_channel = 2\nplanes_per_die = 2\nblocks_per_plane = 64",
            "channels = 128\ndies_per_channel = 128\nplanes_per_die = 1\nblocks_per_plane = 1025",
            "my.toml line 7: the device has 16793600 blocks, but at most 16777216 are possible",
        ),
    ]);
}

#[test]
fn a_stripe_that_leaves_too_few_or_too_small_extents_is_refused() {
    check(&[(
        "stripe = \"all\"",
        "stripe = \"channel\"",
        "my.toml line 37: with this stripe an extent has 2097152 bytes, but a largest value needs \
         2134016; choose a wider stripe or more pages_per_block",
    )]);
    let few = SINGLE.replace("blocks_per_plane = 64", "blocks_per_plane = 7");
    let few = few.replace("size_gb = 0.4\nover_provisioning = 0.342", "size_gb = 0.04");
    assert_eq!(
        Profile::parse("my.toml", &few).unwrap_err().to_string(),
        "my.toml line 37: with this stripe the NAND makes 7 extents, but a log needs at least 8; \
         choose a narrower stripe or more blocks_per_plane"
    );
}

#[test]
fn a_buffer_is_given_exactly_when_it_is_used() {
    check(&[
        (
            "ack = \"buffer\"",
            "ack = \"program\"",
            "my.toml line 39: buffer_kib is given, but ack is not \"buffer\"",
        ),
        (
            "buffer_kib = 4096\n",
            "",
            "my.toml line 38: ack is \"buffer\", but buffer_kib is not given",
        ),
    ]);
}

#[test]
fn a_size_that_does_not_fit_the_flash_is_refused() {
    check(&[
        (
            "size_gb = 0.4\nover_provisioning = 0.342",
            "size_gb = 0.6",
            "my.toml line 47: the namespace has 600000000 bytes, but the NAND only 536870912",
        ),
        (
            "size_gb = 0.4\nover_provisioning = 0.342",
            "size_gb = 0.53",
            "my.toml line 47: of the NAND's 536870912 bytes this leaves an over-provisioning of \
             0.0130, but it must be from 0.02 to 10",
        ),
        (
            "size_gb = 0.4\nover_provisioning = 0.342",
            "size_gb = 0.04",
            "my.toml line 47: of the NAND's 536870912 bytes this leaves an over-provisioning of \
             12.4218, but it must be from 0.02 to 10",
        ),
        (
            "over_provisioning = 0.342",
            "over_provisioning = 0.35",
            "my.toml line 48: over_provisioning is 0.35, but size_gb in line 47 makes it 0.3422; \
            give one of the two",
        ),
    ]);
    let bad = SINGLE.replace("factory_bad_ppm = 500", "factory_bad_ppm = 30_000");
    let bad = bad.replace("size_gb = 0.4\nover_provisioning = 0.342", "over_provisioning = 0.05");
    assert_eq!(
        Profile::parse("my.toml", &bad).unwrap_err().to_string(),
        "my.toml line 47: with factory_bad_ppm = 30000 only 520764785 bytes of the NAND are good, \
        too few for a namespace of 511305630 bytes and an over-provisioning of 0.02; size_gb of at \
        most 0.486 or over_provisioning of at least 0.1047 fits"
    );
}

#[test]
fn an_index_that_does_not_exist_is_refused() {
    check(&[(
        "kind = \"hash\"",
        "kind = \"keytable\"",
        "my.toml line 43: kind in [index] is \"keytable\", but must be \"hash\", \"cached-hash\" \
        or \"btree\"",
    )]);
}

/// The directory of 100,000 keys in half full leaves of 362 is of 617 leaves, 64 of them for tables
/// with few keys: 11 bytes each, and 48 for each 128. Beside it are 16 frames of 4 KiB.
#[test]
fn an_index_with_a_budget_that_is_too_small_is_refused() {
    check(&[
        (
            "kind = \"hash\"",
            "kind = \"hash\"\ndram_kib = 1024",
            "my.toml line 44: dram_kib is a key of indexes with a budget, but \"hash\" takes the \
            memory that it needs",
        ),
        (
            "kind = \"hash\"",
            "kind = \"cached-hash\"\nkeys_max = 100_000\ndram_kib = 70",
            "my.toml line 45: an index of kind \"cached-hash\" for 100000 keys needs at least 71 \
            KiB of memory, but has 70.0 KiB",
        ),
        (
            "kind = \"hash\"",
            "kind = \"cached-hash\"\nkeys_max = 0",
            "my.toml line 44: keys_max in [index] is 0, but must be a whole number from 1 to \
            4294967295",
        ),
    ]);
}

#[test]
fn an_index_whose_table_does_not_fit_the_flash_is_refused() {
    let text = SINGLE.replace("kind = \"hash\"", "kind = \"cached-hash\"\nkeys_max = 5_000_000");
    let refusal = Profile::parse("my.toml", &text).unwrap_err().to_string();
    // Three times sixteen bytes for each key, and three extents.
    assert!(refusal.contains("for the table of its index, which leaves"), "{refusal}");
    let text = text.replace("5_000_000", "1_000");
    let profile = Profile::parse("my.toml", &text).unwrap();
    let config = profile.index.unwrap().config(profile.kv_bytes());
    assert_eq!((config.keys_max, config.dram_bytes), (1_000, profile.kv_bytes() / 1_024));
}

#[test]
fn what_is_not_toml_is_named_with_its_line() {
    check(&[
        (
            "registers = 2",
            "registers = 2\nregisters = 1",
            "my.toml line 15: this is not TOML: duplicate key, at \"registers\"",
        ),
        ("[link]", "[nand]", "my.toml line 19: this is not TOML: duplicate key, at \"nand\""),
    ]);
    for (old, new, line) in [
        ("read_us = 45.5", "read_us =", 11),
        ("read_us = 45.5", "read_us 45.5", 11),
        ("[log]", "[log", 36),
        ("stripe = \"all\"", "stripe = \"all", 37),
        ("kind = \"hash\"", "kind = 'hash", 43),
        ("[core]", "\u{1}", 30),
        ("read_us = 45.5\nprogram_us = 660", "read_us = 1_\nprogram_us = = 1", 11),
    ] {
        let error = sentence(old, new);
        assert!(error.starts_with(&format!("my.toml line {line}: this is not TOML: ")), "{error}");
    }
}

#[test]
fn lines_are_counted_alike_with_dos_line_ends() {
    let text = SINGLE.replace('\n', "\r\n").replace("registers = 2", "registers = 3");
    let error = Profile::parse("my.toml", &text).unwrap_err();
    assert!(matches!(error, ProfileError::Invalid { line: 14, .. }), "{error}");
}

#[test]
fn long_and_strange_text_is_shown_cut_and_in_one_line() {
    let long = format!("model = '{}'", "x".repeat(10_000));
    let error = sentence("model = \"scalar\"", &long);
    assert!(error.contains(&format!("is \"{}\"..., but must", "x".repeat(40))), "{error}");
    let digits = format!("registers = {}", "9".repeat(10_000));
    let error = sentence("registers = 2", &digits);
    assert!(error.contains("registers in [nand] is a very long number, but must"), "{error}");
    let error = Profile::parse("a\nb.toml", "").unwrap_err().to_string();
    assert_eq!(error, "a\\nb.toml line 1: the section [nand] is missing");
}

#[test]
fn a_size_that_leaves_too_few_extents_for_the_log_is_refused() {
    let text = Profile::text("moke").unwrap().replace("size_gb = 64", "size_gb = 67.3");
    let line = text.lines().position(|line| line.starts_with("size_gb")).unwrap() + 1;
    // 256 extents of 256 MiB, of which 6 are kept: 62.5 GiB, or 67.1 GB.
    let expected = format!(
        "big.toml line {line}: of the NAND's 256 extents of 256.0 MiB the log keeps 6 beside the \
         namespace, which leaves 62.50 GiB for its 62.68 GiB, a narrower stripe keeps less; \
         size_gb of at most 67.108 or over_provisioning of at least 0.0241 fits"
    );
    assert_eq!(Profile::parse("big.toml", &text).unwrap_err().to_string(), expected);
    let text = text.replace("size_gb = 67.3", "size_gb = 67.1");
    assert!(Profile::parse("big.toml", &text).is_ok());
}
