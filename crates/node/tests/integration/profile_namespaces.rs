//! Each kind of mistake in namespaces and in what flash can do is one sentence that names the line.

use node::Profile;

const FULL: &str = include_str!("full.toml");

/// The number of the line of `full.toml` where `old` begins, and the sentence about the file with
/// `new` in place of `old`.
fn refused(old: &str, new: &str) -> (usize, String) {
    let at = FULL.find(old).unwrap_or_else(|| panic!("{old:?} is not in the profile"));
    let line = FULL[..at].lines().count() + 1;
    let text = FULL.replacen(old, new, 1);
    let error = Profile::parse("my.toml", &text).map(|_| ());
    (line, error.expect_err(new).to_string())
}

/// Each of `cases` is a piece of `full.toml`, what it is replaced with, how many lines below the
/// piece's first the mistake is, and what is said of it.
fn check(cases: &[(&str, &str, usize, &str)]) {
    for &(old, new, below, problem) in cases {
        let (line, error) = refused(old, new);
        let expected = format!("my.toml line {}: {problem}", line + below);
        assert_eq!(error, expected, "{old:?} -> {new:?}");
    }
}

#[test]
fn a_key_of_another_kind_of_namespace_is_refused() {
    check(&[
        (
            "kind = \"kv\"\n",
            "kind = \"kv\"\nwear_gap = 1\nack = \"program\"\n",
            1,
            "wear_gap is a key of namespaces of kind \"block\", but this one is of kind \"kv\"; \
             for keys and values it may be in [log]",
        ),
        (
            "kind = \"block\"\n",
            "kind = \"block\"\nmax_open = 1\n",
            1,
            "max_open is a key of namespaces of kind \"zoned\", but this one is of kind \"block\"",
        ),
        (
            "stripe = \"channel\"\n",
            "stripe = \"channel\"\nack = \"program\"\n",
            1,
            "ack is a key of namespaces of kind \"block\", but this one is of kind \"zoned\"",
        ),
        (
            "kind = \"zoned\"",
            "kind = \"zones\"",
            0,
            "kind in [[namespace]] is \"zones\", but must be \"kv\", \"block\" or \"zoned\"",
        ),
    ]);
}

#[test]
fn each_of_several_namespaces_says_its_size_and_its_over_provisioning() {
    check(&[
        (
            "[[namespace]]\nkind = \"kv\"\nsize_gb = 0.18\n",
            "[[namespace]]\nkind = \"kv\"\n",
            0,
            "size_gb, which each of several namespaces needs, is missing in [[namespace]]",
        ),
        (
            "[[namespace]]\nkind = \"block\"\nsize_gb = 0.2\nover_provisioning = 0.25\n",
            "[[namespace]]\nkind = \"block\"\nsize_gb = 0.2\n",
            0,
            "over_provisioning, which each of several namespaces needs, is missing in \
             [[namespace]]",
        ),
        (
            "size_gb = 0.1\n",
            "size_gb = 0\n",
            0,
            "size_gb in [[namespace]] is 0, but must be more than 0",
        ),
        (
            "over_provisioning = 0.25",
            "over_provisioning = 0.01",
            0,
            "over_provisioning in [[namespace]] is 0.01, but must be a number from 0.02 to 10",
        ),
    ]);
    // Zones are not cleaned, so they can do without.
    Profile::parse("my.toml", &FULL.replace("= 0.1\nstripe", "= 0\nstripe")).unwrap();
}

/// A row, one block of every plane, has 8 MiB. 32 and 30 of the 128 are taken before the last.
#[test]
fn namespaces_that_do_not_fit_the_flash_together_are_refused() {
    check(&[(
        "size_gb = 0.1\nover_provisioning = 0.1\n",
        "size_gb = 0.5\nover_provisioning = 0.12\n",
        0,
        "the namespaces up to this one take 129 blocks of every plane, each 8.0 MiB over all \
         planes, but there are 128 (blocks_per_plane)",
    )]);
    let most = FULL.replace(
        "size_gb = 0.1\nover_provisioning = 0.1\n",
        "size_gb = 0.5\nover_provisioning = 0.1\n",
    );
    Profile::parse("my.toml", &most).unwrap();
}

#[test]
fn a_namespace_that_does_not_fit_its_own_part_is_refused() {
    check(&[(
        "size_gb = 0.1\n",
        "size_gb = 0.001\n",
        0,
        "a zone has 2097152 bytes with this stripe, but the namespace only 1000000; size_gb of at \
         least 0.003 fits",
    )]);
    let bad = FULL.replace("factory_bad_ppm = 500", "factory_bad_ppm = 100_000");
    let bad = bad.replace("over_provisioning = 0.25", "over_provisioning = 0.1");
    let error = Profile::parse("my.toml", &bad).unwrap_err().to_string();
    assert!(error.contains("with factory_bad_ppm = 100000 only "), "{error}");
}

#[test]
fn a_log_and_an_index_are_there_exactly_with_keys_and_values() {
    let (log, namespace) = (FULL.find("[log]").unwrap(), FULL.find("[[namespace]]").unwrap());
    let without = format!("{}{}", &FULL[..log], &FULL[namespace..]);
    let error = Profile::parse("my.toml", &without).unwrap_err().to_string();
    assert_eq!(error, "my.toml line 1: the section [log] is missing");
    let block = FULL.find("[[namespace]]\nkind = \"block\"").unwrap();
    let of_keys = "t_delete_us = 1e1\nt_exist_us = 0x2\n\
                   t_update_us = 3\nt_write_kib_us = 0.5\nt_read_kib_us = 0.25\n";
    let only_more = of_keys.find("t_update_us").unwrap();
    for (end, problem) in [
        (namespace, "[log] is given, but there is no [[namespace]] of kind \"kv\""),
        (log, "t_delete_us is of keys, but there is no [[namespace]] of kind \"kv\""),
    ] {
        let text = format!("{}{}", &FULL[..end], &FULL[block..]);
        let error = Profile::parse("my.toml", &text).unwrap_err().to_string();
        assert!(error.ends_with(problem), "{error}");
    }
    let text = format!("{}{}", &FULL[..log], &FULL[block..]);
    for (key, line) in [("t_update_us", 0), ("t_write_kib_us", 1), ("t_read_kib_us", 2)] {
        let line = of_keys[only_more..].lines().nth(line).unwrap();
        let error = Profile::parse("my.toml", &text.replacen(of_keys, &format!("{line}\n"), 1));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&format!("{key} is of keys, but there is no")), "{error}");
    }
    let index = FULL.replacen(of_keys, "", 1);
    let start = index.find("[log]").unwrap();
    let rest = index.find("[[namespace]]\nkind = \"block\"").unwrap();
    let only = format!("{}{}", &index[..start], &index[rest..]);
    let profile = Profile::parse("my.toml", &only).unwrap();
    assert_eq!((profile.kv_bytes(), profile.log, profile.index), (0, None, None));
    let with_index = format!("{}[index]\nkind = \"hash\"\n{}", &index[..start], &index[rest..]);
    let error = Profile::parse("my.toml", &with_index).unwrap_err().to_string();
    assert!(error.ends_with("[index] is given, but there is no [[namespace]] of kind \"kv\""));
}

#[test]
fn logical_blocks_fit_into_pages() {
    let small = FULL.replace("page_bytes = 4096", "page_bytes = 2048");
    let small = small.replace("pages_per_block = 128", "pages_per_block = 256");
    let error = Profile::parse("my.toml", &small).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "a namespace of kind \"block\" has logical blocks of 4096 bytes, but page_bytes is 2048"
        ),
        "{error}"
    );
}

#[test]
fn zones_that_are_open_are_active() {
    check(&[(
        "max_open = 4",
        "max_open = 9",
        0,
        "max_open is 9, but only 8 zones can be active (max_active in line 91), and an open zone \
         is active",
    )]);
}

#[test]
fn a_buffer_of_a_block_namespace_is_given_exactly_when_it_is_used() {
    check(&[
        (
            "ack = \"buffer\"\nbuffer_kib = 1024",
            "ack = \"program\"\nbuffer_kib = 1024",
            1,
            "buffer_kib is given, but ack is not \"buffer\"",
        ),
        (
            "ack = \"buffer\"\nbuffer_kib = 1024",
            "ack = \"buffer\"",
            0,
            "ack is \"buffer\", but buffer_kib is not given",
        ),
    ]);
}

#[test]
fn levels_agree_with_each_other_and_with_the_pages() {
    check(&[
        (
            "program_us = [660, 1_800]",
            "program_us = 660",
            0,
            "program_us has 1 levels, but read_us in line 11 has 2; give both the same",
        ),
        (
            "read_us = [45.5, 60]",
            "read_us = []",
            0,
            "read_us in [nand] is an array, but must be a number or a list of 1 to 4",
        ),
        (
            "read_us = [45.5, 60]",
            "read_us = [1, 2, 3, 4, 5]",
            0,
            "read_us in [nand] is an array, but must be a number or a list of 1 to 4",
        ),
        (
            "read_us = [45.5, 60]",
            "read_us = [1, \"2\"]",
            0,
            "read_us in [nand] is \"2\", but must be a number from 0 to 60000000",
        ),
        (
            "page_map = \"0(01)\"",
            "page_map = \"0(012)\"",
            0,
            "page_map names level 2, but read_us has 2, counted from 0",
        ),
        (
            "page_map = \"0(01)\"",
            "page_map = \"1(1)\"",
            0,
            "of the 2 levels of read_us, counted from 0, none of the 128 pages of a block has \
             level 0",
        ),
        (
            "page_map = \"0(01)\"",
            "page_map = \"001\"",
            0,
            "a page map is at most 64 digits from 0 to 3, of which those at the end that repeat \
             stand in parentheses, as 0001(0011)",
        ),
    ]);
    let one = FULL.replace("read_us = [45.5, 60]", "read_us = 45.5");
    let one = one.replace("program_us = [660, 1_800]", "program_us = [660]");
    let error = Profile::parse("my.toml", &one).unwrap_err().to_string();
    assert!(error.ends_with("page_map is given, but read_us has only one level"), "{error}");
    let few = FULL.replace("pages_per_block = 128", "pages_per_block = 1").replace("page_map", "#");
    let error = Profile::parse("my.toml", &few).unwrap_err().to_string();
    assert!(error.contains("line 11: of the 2 levels"), "{error}");
}

#[test]
fn without_a_page_map_pages_take_the_levels_in_turn() {
    for (levels, map) in
        [("[1]", "(0)"), ("[1, 2]", "(01)"), ("[1, 2, 3]", "(012)"), ("[1, 2, 3, 4]", "(0123)")]
    {
        let text = FULL.replace("page_map = \"0(01)\"\n", "");
        let text = text.replace("[45.5, 60]", levels).replace("[660, 1_800]", levels);
        assert_eq!(Profile::parse("my.toml", &text).unwrap().nand.levels.page_map, map);
    }
}

#[test]
fn what_belongs_together_is_given_together() {
    check(&[
        ("registers = 2", "registers = 1", 6, "cache_busy_us is given, but registers is 1"),
        (
            "read_retries = [0.001, 1.5]\nendurance_cycles = 3_000\n",
            "read_retries = [0.001, 1.5]\n",
            0,
            "read_retries is given, but endurance_cycles is not",
        ),
        (
            "read_retries = [0.001, 1.5]\n",
            "",
            0,
            "endurance_cycles is given, but read_retries is not",
        ),
        (
            "read_retries = [0.001, 1.5]",
            "read_retries = [1]",
            0,
            "read_retries in [nand] is an array, but must be two numbers: [fresh, worn out]",
        ),
        (
            "program_suspend_us = 20\nerase_suspend_us = 30.5\n",
            "",
            0,
            "resume_us is given, but neither program_suspend_us nor erase_suspend_us is",
        ),
        (
            "planes_per_die = 2\nblocks_per_plane = 128",
            "planes_per_die = 1\nblocks_per_plane = 256",
            15,
            "multi_plane is given, but planes_per_die is 1",
        ),
    ]);
}

#[test]
fn the_scalar_model_refuses_what_it_does_not_know() {
    let scalar = FULL.replace("\"staged\"", "\"scalar\"").replace("= true", "= false");
    let knobs =
        ["cache_busy_us", "multi_plane", "program_suspend_us", "erase_suspend_us", "read_priority"];
    let without = |text: &str, keys: &[&str]| -> String {
        let is_kept = |line: &&str| !keys.iter().any(|key| line.starts_with(key));
        text.lines().filter(is_kept).collect::<Vec<_>>().join("\n") + "\n"
    };
    let plain = without(&scalar, &[&knobs[..], &["resume_us"]].concat());
    Profile::parse("my.toml", &plain).unwrap();
    for (at, knob) in knobs.iter().enumerate() {
        let mut others = knobs.to_vec();
        others.remove(at);
        if !knob.ends_with("suspend_us") {
            others.push("resume_us");
        }
        let error = Profile::parse("my.toml", &without(&scalar, &others)).unwrap_err().to_string();
        let expected = format!(
            "{knob} is something that model = \"scalar\" does not know; use \"staged\", or leave \
             {knob} out"
        );
        assert!(error.ends_with(&expected), "{error}");
    }
    // What they are without being given may be given.
    let off = plain
        .replace("transfer_bytes", "multi_plane = \"none\"\nread_priority = true\ntransfer_bytes");
    Profile::parse("my.toml", &off).unwrap();
}

#[test]
fn a_number_out_of_range_is_refused_on_both_sides() {
    let cases: &[(&str, &[&str])] = &[
        ("transfer_bytes = 2048", &["0", "4097", "1.5"]),
        ("cache_busy_us = 3", &["-1", "6.1e7", "true"]),
        ("program_suspend_us = 20", &["-1", "nan"]),
        ("erase_suspend_us = 30.5", &["-1", "[1]"]),
        ("resume_us = 5", &["-1", "\"5\""]),
        ("multi_plane = \"together\"", &["\"both\"", "2"]),
        ("read_priority = true", &["1", "\"true\""]),
        ("variability_percent = 2.5", &["-0.1", "90.1"]),
        ("read_retries = [0.001, 1.5]", &["[-1, 0]", "[0, 101]", "1", "[0, 1, 2]", "[0, true]"]),
        ("endurance_cycles = 3_000", &["0", "1000001"]),
        ("worn_cycles = 1_000", &["-1", "1000001", "1.5"]),
        ("page_map = \"0(01)\"", &["1", "[1]"]),
        ("ftl = \"append\"", &["\"zns\"", "1"]),
        ("buffer_kib = 1024", &["3", "16777217"]),
        ("gc_victims = \"cost-benefit\"", &["\"none\""]),
        ("gc_blocking = \"plane\"", &["\"die\"", "1"]),
        ("gc_frontier = \"shared\"", &["\"both\""]),
        ("gc_free_blocks = 3", &["0", "1025"]),
        ("wear_gap = 20", &["-1", "1000001"]),
        ("stripe = \"channel\"", &["\"plane\""]),
        ("max_open = 4", &["0", "65537"]),
        ("max_active = 8", &["0", "65537"]),
        ("buffer_kib = 512", &["-1", "16777217"]),
    ];
    for &(old, values) in cases {
        let key = old.split_once(" = ").expect("a key and its value").0;
        for value in values {
            let (line, error) = refused(old, &format!("{key} = {value}"));
            assert!(error.starts_with(&format!("my.toml line {line}: {key} ")), "{value}: {error}");
            assert!(error.contains(", but must be "), "{value}: {error}");
        }
    }
}

#[test]
fn a_page_mapped_layer_has_room_for_cleaning_and_for_its_notes() {
    // 30 rows for 27 of data, and 2 of them for cleaning: 127 pages of 128 are left of 28.
    let rows = |size: &str, spare: &str| {
        let from = "size_gb = 0.2\nover_provisioning = 0.25\nack";
        FULL.replace(from, &format!("size_gb = {size}\nover_provisioning = {spare}\nack"))
    };
    let error = Profile::parse("my.toml", &rows("0.24", "0.02")).unwrap_err().to_string();
    assert_eq!(
        error,
        "my.toml line 75: of 30 blocks of every plane cleaning keeps 2, and of each other one a \
         page, which leaves 222.2 MiB for 228.9 MiB; over_provisioning of 0.05 fits"
    );
    Profile::parse("my.toml", &rows("0.23", "0.07")).unwrap();
    // 52 bytes for a page and 12 for its logical block.
    for (spare, is_right) in [(63, false), (64, true)] {
        let text = FULL.replace("spare_bytes = 128", &format!("spare_bytes = {spare}"));
        assert_eq!(Profile::parse("my.toml", &text).is_ok(), is_right, "{spare} spare bytes");
    }
}

/// Half of what is beyond the size is the layer's, and an eighth of what is left lies beside pages.
#[test]
fn a_log_on_blocks_has_no_stripe_and_less_room() {
    let text = |size: &str, spare: &str| {
        let text = FULL.replace("stripe = \"all\"\nack", "ack").replace("\"append\"", "\"page\"");
        let of_kv = format!("kv\"\nsize_gb = {size}\nover_provisioning = {spare}");
        text.replace("kv\"\nsize_gb = 0.18\nover_provisioning = 0.491", &of_kv)
    };
    let profile = Profile::parse("my.toml", &text("0.15", "0.78")).unwrap();
    let row = 16 * 128 * 4_096;
    let raw = u64::from(profile.regions()[0].count) * row;
    let layer = 150_000_000 + (raw - 150_000_000) / 2;
    assert_eq!(profile.log_layer_bytes(), Some(layer / 4_096 * 4_096));
    assert_eq!(profile.log.unwrap().stripe(), None);
    let error = Profile::parse("my.toml", &text("0.2", "0.342")).unwrap_err().to_string();
    assert!(error.contains("line 69: of the page-mapped layer's "), "{error}");
    let striped = text("0.15", "0.78").replace("\"page\"", "\"page\"\nstripe = \"all\"");
    let error = Profile::parse("my.toml", &striped).unwrap_err().to_string();
    assert_eq!(error, "my.toml line 60: stripe is given, but ftl is \"page\"");
}

/// Namespaces of which a size is replaced by SIZE and an over-provisioning by SPARE.
const SEVERAL: &str = r#"
description = "small zones"
[nand]
channels = 2
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 300
pages_per_block = 64
page_bytes = 16384
read_us = 40
program_us = 300
erase_us = 3000
registers = 1
model = "staged"
channel_mb_per_s = 800
[link]
mb_per_s = 3200
transfer_us = 1
[firmware]
handlers = "unlimited"
t_read_us = 2
t_write_us = 2
t_delete_us = 2
t_exist_us = 2
[log]
stripe = "all"
ack = "program"
gc_victims = "greedy"
[index]
kind = "hash"
[[namespace]]
kind = "kv"
size_gb = KV
over_provisioning = OF_KV
[[namespace]]
kind = "block"
size_gb = BLOCK
over_provisioning = OF_BLOCK
ack = "program"
gc_victims = "greedy"
[[namespace]]
kind = "zoned"
size_gb = ZONED
over_provisioning = OF_ZONED
stripe = "all"
max_open = 3
max_active = 5
buffer_kib = 256
"#;

/// Sizes and over-provisionings of the three namespaces of [`SEVERAL`].
type Sizes = [(f64, f64); 3];

fn several(sizes: Sizes) -> Result<(), String> {
    let names = [("KV", "OF_KV"), ("BLOCK", "OF_BLOCK"), ("ZONED", "OF_ZONED")];
    let mut text = SEVERAL.to_owned();
    for ((size, spare), (name, of_name)) in sizes.into_iter().zip(names) {
        text = text.replace(&format!("= {name}\n"), &format!("= {size}\n"));
        text = text.replace(&format!("= {of_name}\n"), &format!("= {spare}\n"));
    }
    Profile::parse("several.toml", &text).map(|_| ()).map_err(|error| error.to_string())
}

/// The number behind `words` in `sentence`.
fn proposed(sentence: &str, words: &str) -> Option<f64> {
    let rest = sentence.split_once(words)?.1;
    rest.split(' ').next()?.parse().ok()
}

#[test]
fn an_error_of_one_of_several_namespaces_proposes_sizes_that_fit() {
    const STEP: f64 = 0.001;
    let good: Sizes = [(0.13, 0.3), (0.2, 0.1), (0.2, 0.2)];
    several(good).unwrap();
    let bad = [
        (0, [(0.05, 0.3), (0.08, 0.3), (0.08, 0.1)]),
        (0, [(0.05, 0.3), good[1], good[2]]),
        (1, [good[0], (0.1, 0.05), good[2]]),
        (2, [good[0], good[1], (0.001, 0.2)]),
    ];
    for (at, sizes) in bad {
        let with = |size: f64, spare: f64| {
            let mut changed = sizes;
            changed[at] = (size, spare);
            several(changed)
        };
        let error = several(sizes).unwrap_err();
        let (size, spare) = sizes[at];
        let least = proposed(&error, "size_gb of at least ").expect(&error);
        assert!(least > size, "{error}");
        with(least, spare).unwrap();
        with(least - STEP, spare).expect_err("it is the smallest");
        if let Some(most) = proposed(&error, "size_gb of at most ") {
            assert!(most < size, "{error}");
            with(most, spare).unwrap();
            with(most + STEP, spare).expect_err("it is the largest");
        }
        // Nothing but its size makes a namespace as large as a zone.
        assert_eq!(error.contains("over_provisioning of "), at < 2, "{error}");
        if let Some(more) = proposed(&error, "over_provisioning of ") {
            assert!(more > spare, "{error}");
            with(size, more).unwrap();
            with(size, more - 0.01).expect_err("it is the smallest");
        }
    }
}
