use super::*;
use base::Rng;
use std::collections::BTreeMap;
use std::fmt::Write;

fn parse(text: impl AsRef<[u8]>) -> Result<Trace, String> {
    Trace::parse("t.csv", text.as_ref(), None, |_| ()).map_err(|error| error.to_string())
}

fn replay(text: &str) -> Replay {
    Replay::new(Arc::new(parse(text).unwrap()), Pace::Recorded)
}

/// Due time in nanoseconds, kind and key of each operation.
fn steps(mut replay: Replay) -> Vec<(u64, Kind, String)> {
    let mut steps = Vec::new();
    while let Some(step) = replay.next() {
        let key = replay.key(step.key).as_bytes().escape_ascii().to_string();
        steps.push((step.due.unwrap().0, step.kind, key));
    }
    assert_eq!((replay.next(), steps.len() as u64), (None, replay.operations()));
    steps
}

/// The sizes of all versions of each key.
fn versions(trace: &Trace) -> Vec<Vec<Option<u32>>> {
    let of = |key| (0..trace.versions(key)).map(move |version| trace.value_bytes(key, version));
    (0..trace.keys()).map(|key| of(key).collect()).collect()
}

const EVERY_FEATURE: &str = "\u{feff}# made by hand\r
\r
Time, operation,KEY,size\r
100.5,store,a,10\r
100.5,put,b,0\r
# between\r
100.500000001, retrieve ,a, 10 \r
101,get,c,\r
102,exist,d,7\r
102.25,set,\"e,\"\"f\"\"\",2\r
103,delete,a,\r
104,del,g,300\r
105.999999999,retrieve,  h,40";

#[test]
fn a_trace_with_every_feature_of_csv_is_read_exactly() {
    use Kind::{Delete, Exist, Retrieve, Store};
    let replay = replay(EVERY_FEATURE);
    let second = 1_000_000_000;
    let expected = [
        (0, Store, "a"),
        (0, Store, "b"),
        (1, Retrieve, "a"),
        (second / 2, Retrieve, "c"),
        (second * 3 / 2, Exist, "d"),
        (second * 7 / 4, Store, "e,\\\"f\\\""),
        (second * 5 / 2, Delete, "a"),
        (second * 7 / 2, Delete, "g"),
        (second * 5 + 499_999_999, Retrieve, "  h"),
    ];
    let trace = &replay.trace;
    assert_eq!((trace.format(), trace.operations(), trace.keys()), (Format::Csv, 9, 7));
    assert_eq!(trace.duration(), Nanos(5_499_999_999));
    let counts = KINDS.map(|kind| trace.count(kind));
    assert_eq!(counts, [3, 3, 2, 1]);
    assert_eq!((trace.keys_shortened(), trace.values_cut()), (0, 0));
    assert_eq!(
        versions(trace),
        [
            vec![None, Some(10), None],
            vec![None, Some(0)],
            vec![None],
            vec![Some(7)],
            vec![None, Some(2)],
            vec![Some(300), None],
            vec![Some(40)],
        ]
    );
    // Only the retrieve of c finds nothing; most is there when e,"f" was stored.
    assert_eq!((trace.misses(), trace.live_bytes_max()), (1, 11 + 1 + 8 + 7 + 301 + 43));
    assert_eq!(steps(replay), expected.map(|(due, kind, key)| (due, kind, key.to_owned())));
}

#[test]
fn the_operations_of_a_second_of_twitters_are_spread_over_it() {
    use Kind::{Delete, Retrieve, Store};
    let text = "\
1000,n:a,3,5,1,get,0
1000,n:b,3,6,1,gets,0
1000,n,\"c,5,7,1,set,3600
1003,n:d,3,8,2,add,60
1004,n:a,3,0,2,delete,0
1004,n:b,3,9,2,incr,60
";
    let replay = replay(text);
    assert_eq!((replay.trace.format(), replay.keys()), (Format::Twitter, 4));
    assert_eq!(
        versions(&replay.trace),
        [vec![Some(5), None], vec![Some(6), Some(9)], vec![None, Some(7)], vec![None, Some(8)]]
    );
    let expected = [
        (0, Retrieve, "n:a"),
        (333_333_333, Retrieve, "n:b"),
        (666_666_666, Store, "n,\\\"c"),
        (3_000_000_000, Store, "n:d"),
        (4_000_000_000, Delete, "n:a"),
        (4_500_000_000, Store, "n:b"),
    ];
    assert_eq!(replay.trace.duration(), Nanos(4_500_000_000));
    assert_eq!(steps(replay), expected.map(|(due, kind, key)| (due, kind, key.to_owned())));
}

#[test]
fn spreading_rounds_no_more_than_down_to_the_nanosecond() {
    let replay = replay(&"5,k,1,2,3,get,0\n".repeat(7));
    let dues: Vec<u64> = steps(replay).iter().map(|(due, _, _)| *due).collect();
    let sevenths = [0, 142_857_142, 285_714_285, 428_571_428, 571_428_571, 714_285_714];
    assert_eq!(dues, [&sevenths[..], &[857_142_857]].concat());
}

#[test]
fn a_key_of_twitters_with_commas_does_not_hide_the_format() {
    let replay = replay("5,a,b,c,3,2,1,get,0\n");
    assert_eq!(steps(replay), [(0, Kind::Retrieve, "a,b,c".to_owned())]);
}

#[test]
fn twitters_operations_are_those_of_a_drive() {
    for (kind, names) in [
        (Kind::Retrieve, &["get", "gets"][..]),
        (Kind::Delete, &["delete"]),
        (Kind::Store, &["set", "add", "replace", "cas", "append", "prepend", "incr", "decr"]),
    ] {
        for name in names {
            let trace = parse(format!("5,k,1,2,3,{name},0\n")).unwrap();
            assert_eq!(trace.count(kind), 1, "{name}");
        }
    }
}

#[test]
fn what_is_too_long_is_shortened_cut_and_counted() {
    let (long, longer) = ("k".repeat(256), "k".repeat(1_000));
    let text = format!(
        "0,store,{long},2097152\n0,store,{longer},2097153\n\
         1,store,{longer},99999999999999999999999\n1,get,{long},2097153\n\
         2,get,m,9999999999\n2,exist,m,9999999999\n"
    );
    let trace = parse(text).unwrap();
    assert_eq!((trace.keys(), trace.keys_shortened(), trace.values_cut()), (3, 2, 3));
    let max = Some(2 << 20);
    assert_eq!(versions(&trace), [vec![None, max], vec![None, max, max], vec![max]]);
    assert_ne!(trace.key(0), trace.key(1));
    assert!([0, 1].iter().all(|&key| trace.key(key).as_bytes().len() == 255));
}

#[test]
fn what_was_there_before_is_what_is_found_before_the_first_change() {
    for (operations, before) in [
        (&[("get", "5"), ("store", "6")][..], Some(5)),
        (&[("get", ""), ("store", "6")], None),
        (&[("get", "0"), ("exist", "7"), ("get", "8")], Some(7)),
        (&[("store", "6"), ("get", "5")], None),
        (&[("delete", "9"), ("get", "5")], Some(9)),
        (&[("delete", ""), ("get", "5"), ("delete", "5")], None),
        (&[("exist", ""), ("delete", "4")], Some(4)),
    ] {
        let lines: Vec<String> =
            operations.iter().map(|(name, size)| format!("1,{name},k,{size}\n")).collect();
        let replay = replay(&lines.concat());
        assert_eq!(replay.value_bytes(0, 0), before, "{lines:?}");
    }
}

#[test]
fn malformed_lines_are_named_with_what_is_wrong_and_what_would_be_right() {
    let csv = "csv has 4 (time,operation,key,size), \
        twitter 7 (timestamp,key,key size,value size,client,operation,TTL)";
    let long = "x".repeat(50);
    for (text, sentence) in [
        ("1,get,k\n", format!("1: 3 columns are no format of traces; {csv}")),
        ("1,get,k,0,5\n", format!("1: 5 columns are no format of traces; {csv}")),
        ("# c\n\n1,get,k,0\n2,get,k,0,5\n",
         "4: 5 columns where the format csv has time,operation,key,size".into()),
        ("1,get,k,0\n\n2,get,\"k,0\n3,get,k,0\n",
         "3: a quote is not closed; a key in quotes ends on its line, with each quote in it doubled"
            .into()),
        ("1,get,\"k,0\n",
         "1: a quote is not closed; a key in quotes ends on its line, with each quote in it doubled"
            .into()),
        ("time,operation,key,size\nnow,get,k,0\n",
         "2: the time \"now\" is not seconds such as 12.5, below 18446744073".into()),
        ("1583280000000000,get,k,0\n",
         "1: the time \"1583280000000000\" is not seconds such as 12.5, below 18446744073".into()),
        ("time,operation,key,size\n1,get,k,0\ntime,operation,key,size\n",
         "3: the operation \"operation\" is none of store, retrieve, delete and exist".into()),
        ("1,get,k,0\n1.5,get,k,0\n1.25,get,k,0\n",
         "3: the time 1.25 is before 1.5, that of the line before; sort the trace by time".into()),
        ("1,get,k,0\n157680002,get,k,0\n",
         "2: the time 157680002 is more than 1825 days after 1, the first; times are in seconds"
            .into()),
        ("1,get,k,0\n1,fetch,k,0\n",
         "2: the operation \"fetch\" is none of store, retrieve, delete and exist".into()),
        (&format!("1,{long},k,0\n"),
         format!("1: the operation \"{}...\" is none of store, retrieve, delete and exist",
            &long[..40])),
        ("1,get,,0\n", "1: the key is empty; a key has 1 to 255 bytes".into()),
        ("1,get,k,12k\n", "1: the size \"12k\" is not a whole number of bytes".into()),
        ("1,get,k,\x1b[2J\n",
         "1: the size \"\\x1b[2J\" is not a whole number of bytes".into()),
        ("1,store,k,\n", "1: the size is missing; a store has that of its value".into()),
        ("1,k,1,2,3,get,0\n1,k,1,2,get,0\n",
         "2: 6 columns where the format twitter has \
          timestamp,key,key size,value size,client,operation,TTL".into()),
        ("1.5,k,1,2,3,get,0\n",
         "1: the timestamp \"1.5\" is not a whole number of seconds, below 18446744073".into()),
        ("1,k,1,2,3,exist,0\n",
         "1: the operation \"exist\" is none of \
          get, gets, set, add, replace, cas, append, prepend, delete, incr and decr".into()),
        ("1,k,,2,3,get,0\n", "1: the key size \"\" is not a whole number of bytes".into()),
        ("1,k,1,-,3,get,0\n", "1: the value size \"-\" is not a whole number of bytes".into()),
        ("1,,1,2,3,get,0\n", "1: the key is empty; a key has 1 to 255 bytes".into()),
        ("9,k,1,2,3,get,0\n8,k,1,2,3,get,0\n",
         "2: the time 8 is before 9, that of the line before; sort the trace by time".into()),
    ] {
        assert_eq!(parse(text).unwrap_err(), format!("t.csv:{sentence}"));
    }
}

#[test]
fn the_longest_line_and_the_longest_trace_are_read_and_no_longer_ones() {
    let line = |bytes: usize| format!("1,get,{},0\n", "k".repeat(bytes - 9));
    assert_eq!(parse(line(64 << 10)).unwrap().keys_shortened(), 1);
    let sentence = "t.csv:1: the line has more than 64 KiB; an operation has less";
    assert_eq!(parse(line((64 << 10) + 1)).unwrap_err(), sentence);
    let endless = std::io::BufReader::new(std::io::repeat(b'7'));
    let error = Trace::parse("t.csv", endless, None, |_| ()).unwrap_err();
    assert_eq!(error.to_string(), sentence);
    let trace = parse("1,get,k,0\n157680001,get,k,0\n").unwrap();
    assert_eq!(trace.duration(), trace::DURATION_MAX);
}

#[test]
fn files_that_are_no_traces_are_refused_without_a_line() {
    let gzip = b"\x1f\x8b\x08\x00\n";
    let zstd = b"\x28\xb5\x2f\xfd\x04";
    let decompress = "the trace is compressed; decompress it first, with";
    for (bytes, sentence) in [
        (&gzip[..], format!("{decompress} gzip -d")),
        (zstd, format!("{decompress} zstd -d")),
        (b"", "there is no operation in the trace".into()),
        (b"# nothing\n\n \n", "there is no operation in the trace".into()),
        (b"time,operation,key,size\n", "there is no operation in the trace".into()),
    ] {
        assert_eq!(parse(bytes).unwrap_err(), format!("t.csv: {sentence}"));
    }
}

struct Broken;

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("it is on fire"))
    }
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let source = std::io::BufReader::new(Broken);
    let error = Trace::parse("t.csv", source, None, |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "t.csv: the trace cannot be read: it is on fire");
}

#[test]
fn a_format_that_is_given_is_not_guessed() {
    let text = b"1,get,\"k,1,2,3\",0\n";
    let given = |format| Trace::parse("t", &text[..], format, |_| ());
    assert_eq!(given(None).unwrap().format(), Format::Csv);
    assert_eq!(given(Some(Format::Csv)).unwrap().keys(), 1);
    let error = given(Some(Format::Twitter)).unwrap_err().to_string();
    assert!(error.starts_with("t:1: the operation \"3\\\"\" is none of get"), "{error}");
    for format in [Format::Csv, Format::Twitter] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "Csv".parse::<Format>().unwrap_err();
    assert_eq!(error.to_string(), "the format of a trace is csv or twitter");
}

#[test]
fn progress_rises_to_the_bytes_of_the_trace() {
    let text = format!("# {}\n", "c".repeat(60_000)).repeat(300) + "1,get,k,0\n";
    let mut told = Vec::new();
    Trace::parse("t", text.as_bytes(), None, |bytes| told.push(bytes)).unwrap();
    assert!(told.len() > 3 && told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    assert_eq!(told.last(), Some(&(text.len() as u64)));
}

#[test]
fn a_pace_sets_when_operations_are_due() {
    let trace = Arc::new(parse("1,get,k,0\n1.3,get,k,0\n8,get,k,0\n").unwrap());
    for (pace, dues) in [
        ("recorded", [Some(0), Some(300_000_000), Some(7_000_000_000)]),
        ("7x", [Some(0), Some(42_857_142), Some(1_000_000_000)]),
        ("0.5x", [Some(0), Some(600_000_000), Some(14_000_000_000)]),
        ("full", [None, None, None]),
    ] {
        let mut replay = Replay::new(Arc::clone(&trace), pace.parse().unwrap());
        assert_eq!(dues.map(|_| replay.next().unwrap().due), dues.map(|due| due.map(Nanos)));
    }
}

/// What an operation of a trace may be.
const KINDS: [Kind; 4] = [Kind::Store, Kind::Retrieve, Kind::Delete, Kind::Exist];

/// One operation as a model sees it.
#[derive(Clone, Debug)]
struct Operation {
    time: u64,
    kind: Kind,
    key: Vec<u8>,
    size: u32,
}

/// A trace of a few hundred operations on a few keys, of bytes that need quotes or are no text.
fn random(rng: &mut Rng) -> Vec<Operation> {
    let mut time = rng.below(2_000_000_000_000_000_000);
    (0..=rng.below(300))
        .map(|_| {
            time += rng.below(3) * (rng.below(1 << 30) >> rng.below(30));
            let kind = KINDS[usize::try_from(rng.below(4)).unwrap()];
            let letters = b"ab,\" \xff\r#";
            let letter = |rng: &mut Rng| letters[usize::try_from(rng.below(8)).unwrap()];
            let key = (0..=rng.below(2)).map(|_| letter(rng)).collect();
            Operation { time, kind, key, size: u32::try_from(rng.below(3) * 50).unwrap() }
        })
        .collect()
}

fn written(operations: &[Operation], rng: &mut Rng) -> Vec<u8> {
    let mut text = Vec::new();
    for Operation { time, kind, key, size } in operations {
        let needs_quotes = key.contains(&b',') || key.contains(&b'"') || rng.below(2) == 0;
        let mut line = String::new();
        write!(line, "{}.{:09},", time / 1_000_000_000, time % 1_000_000_000).unwrap();
        let names = [&["store", "put", "set"][..], &["retrieve", "get"], &["delete"], &["exist"]];
        let names = names[*kind as usize];
        line += names[usize::try_from(rng.below(names.len() as u64)).unwrap()];
        text.extend_from_slice(line.as_bytes());
        text.push(b',');
        let quote = if needs_quotes { &b"\""[..] } else { b"" };
        text.extend_from_slice(quote);
        for &byte in key {
            text.push(byte);
            text.extend((needs_quotes && byte == b'"').then_some(b'"'));
        }
        text.extend_from_slice(quote);
        text.extend_from_slice(format!(",{size}\n").as_bytes());
    }
    text
}

/// The sizes of all versions by key.
type Versions = BTreeMap<Vec<u8>, Vec<Option<u32>>>;

/// Every version of each key, by the definition; then misses and the most live bytes.
fn model(operations: &[Operation]) -> (Versions, u64, u64) {
    let mut versions = BTreeMap::new();
    for Operation { key, .. } in operations {
        let of_key = || operations.iter().filter(|operation| operation.key == *key);
        let is_change = |kind| kind == Kind::Store || kind == Kind::Delete;
        let untouched = of_key().take_while(|operation| !is_change(operation.kind)).count();
        let deleted = of_key().skip(untouched).take(1).filter(|it| it.kind == Kind::Delete);
        let found = of_key().take(untouched).chain(deleted).find(|it| it.size > 0);
        let changes = of_key().filter(|operation| is_change(operation.kind));
        let after = changes.map(|change| (change.kind == Kind::Store).then_some(change.size));
        let all = std::iter::once(found.map(|operation| operation.size)).chain(after);
        versions.insert(key.clone(), all.collect::<Vec<_>>());
    }
    let mut there: BTreeMap<&[u8], u32> = BTreeMap::new();
    there.extend(versions.iter().filter_map(|(key, all)| Some((&key[..], all[0]?))));
    let bytes = |there: &BTreeMap<&[u8], u32>| {
        there.iter().map(|(key, &size)| key.len() as u64 + u64::from(size)).sum()
    };
    let (mut misses, mut most): (u64, u64) = (0, bytes(&there));
    for Operation { kind, key, size, .. } in operations {
        let asks = matches!(kind, Kind::Retrieve | Kind::Exist);
        misses += u64::from(asks && !there.contains_key(&key[..]));
        match kind {
            Kind::Store => drop(there.insert(key, *size)),
            Kind::Delete => drop(there.remove(&key[..])),
            _ => (),
        }
        most = most.max(bytes(&there));
    }
    (versions, misses, most)
}

#[test]
fn a_trace_that_is_written_and_read_back_is_the_same() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let operations = random(&mut rng);
        let trace = Arc::new(parse(written(&operations, &mut rng)).unwrap());
        let mut replay = Replay::new(Arc::clone(&trace), Pace::Recorded);
        for operation in &operations {
            let step = replay.next().unwrap();
            let due = Some(Nanos(operation.time - operations[0].time));
            assert_eq!((step.kind, step.due), (operation.kind, due), "seed {seed}");
            assert_eq!(replay.key(step.key).as_bytes(), operation.key, "seed {seed}");
        }
        assert_eq!(replay.next(), None);
        for kind in KINDS {
            let count = operations.iter().filter(|operation| operation.kind == kind).count();
            assert_eq!(trace.count(kind), count as u64);
        }
    }
}

#[test]
fn versions_misses_and_live_bytes_are_those_of_a_map() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let operations = random(&mut rng);
        let trace = parse(written(&operations, &mut rng)).unwrap();
        let (expected, misses, most) = model(&operations);
        let keys = (0..trace.keys()).map(|key| trace.key(key).as_bytes().to_vec());
        let found: Versions = keys.zip(versions(&trace)).collect();
        assert_eq!(found, expected, "seed {seed}");
        assert_eq!((trace.misses(), trace.live_bytes_max()), (misses, most), "seed {seed}");
    }
}

#[test]
fn random_bytes_and_damaged_traces_are_read_or_refused_in_one_line() {
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = if rng.below(3) == 0 {
            let mut bytes = vec![0; usize::try_from(rng.below(200)).unwrap()];
            rng.fill(&mut bytes);
            bytes
        } else {
            let twitter = "5,k,1,2,3,get,0\n6,l,1,2,3,set,0\n";
            let text = [EVERY_FEATURE, twitter][usize::try_from(rng.below(2)).unwrap()];
            text.as_bytes().to_vec()
        };
        for _ in 0..rng.below(6) {
            let at = usize::try_from(rng.below(bytes.len() as u64 + 1)).unwrap();
            let letters = b"0123456789,.\"\n\r# getstoredelete\xff\0";
            let letter = letters[usize::try_from(rng.below(letters.len() as u64)).unwrap()];
            match rng.below(3) {
                0 => bytes.insert(at, letter),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = letter),
            }
        }
        let format = [None, Some(Format::Csv), Some(Format::Twitter)];
        let format = format[usize::try_from(rng.below(3)).unwrap()];
        match Trace::parse("t", &bytes[..], format, |_| ()) {
            Ok(trace) => assert!(trace.operations() > 0 && trace.keys() > 0),
            Err(error) => {
                let sentence = error.to_string();
                assert!(sentence.is_ascii() && !sentence.contains('\n'), "seed {seed}: {sentence}");
                assert!(sentence.starts_with("t:") && sentence.len() < 250, "{sentence}");
            }
        }
    }
}

#[test]
fn the_samples_miss_where_they_say_so() {
    for (text, format, operations) in [
        (include_str!("../../../../examples/traces/sample.csv"), Format::Csv, 2_000),
        (include_str!("../../../../examples/traces/sample-twitter.csv"), Format::Twitter, 200),
    ] {
        let trace = parse(text).unwrap();
        assert_eq!((trace.format(), trace.operations()), (format, operations));
        // Both formats have the size in the fourth column.
        let is_miss =
            |line: &&str| line.split(',').nth(3) == Some("0") && !line.contains(",delete,");
        assert_eq!(trace.misses(), text.lines().filter(is_miss).count() as u64);
        assert!(trace.misses() > 0 && KINDS[..3].iter().all(|&kind| trace.count(kind) > 0));
    }
}
