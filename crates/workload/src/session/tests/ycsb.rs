use super::*;
use crate::ycsb::Ycsb;
use std::collections::BTreeSet;

const OPERATIONS: u64 = 20_000;

fn plan(ycsb: Ycsb) -> Plan {
    Plan {
        operation: Operation::Ycsb(ycsb),
        distribution: ycsb.distribution(),
        until: Until::Operations(OPERATIONS),
        keys: 1_000,
        ..PLAN
    }
}

/// Runs `plan` on a model, calling `seen` with each submission after the fill.
fn run_seen(plan: Plan, mut seen: impl FnMut(&Submission)) -> Outcome {
    let mut model = Model::new(5);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    let start = Nanos(model.now);
    drive(&mut model, Session::new(&plan, start), 13, |submission| seen(submission))
}

fn share(outcome: &Outcome, kind: Kind) -> u64 {
    outcome.tally(kind).map_or(0, Tally::count)
}

#[test]
fn each_workload_has_the_shares_of_its_definition() {
    use Kind::{ReadModifyWrite, Retrieve, Scan, Store};
    for (ycsb, expected) in [
        (Ycsb::A, [(Retrieve, 50), (Store, 50)]),
        (Ycsb::B, [(Retrieve, 95), (Store, 5)]),
        (Ycsb::C, [(Retrieve, 100), (Store, 0)]),
        (Ycsb::D, [(Retrieve, 95), (Store, 5)]),
        (Ycsb::E, [(Scan, 95), (Store, 5)]),
        (Ycsb::F, [(Retrieve, 50), (ReadModifyWrite, 50)]),
    ] {
        let outcome = run_seen(plan(ycsb), |_| ());
        assert_eq!((outcome.operations(), outcome.errors()), (OPERATIONS, 0), "{ycsb:?}");
        assert_eq!(expected.map(|(kind, _)| share(&outcome, kind)).iter().sum::<u64>(), OPERATIONS);
        for (kind, percent) in expected {
            // Four deviations of a fair draw of 20,000 are at most 283, and none at 0 and 100 %.
            let slack = if percent % 100 == 0 { 0 } else { 283 };
            let found = share(&outcome, kind);
            assert!(found.abs_diff(percent * OPERATIONS / 100) <= slack, "{ycsb:?}: {found}");
        }
    }
}

#[test]
fn only_new_keys_are_inserted_and_only_old_ones_overwritten() {
    for ycsb in Ycsb::ALL {
        let plan = plan(ycsb);
        let mut stored = Vec::new();
        run_seen(plan, |submission| {
            if submission.command.opcode() == Opcode::STORE {
                stored.push(key_of(submission));
            }
        });
        let first: BTreeSet<Vec<u8>> = {
            let mut model = Model::new(1);
            drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
            model.pairs.into_keys().collect()
        };
        let new: BTreeSet<&Vec<u8>> = stored.iter().filter(|key| !first.contains(*key)).collect();
        let expected = if matches!(ycsb, Ycsb::D | Ycsb::E) { stored.len() } else { 0 };
        assert_eq!(new.len(), expected, "{ycsb:?}");
    }
}

#[test]
fn scans_are_of_1_to_100_keys_all_as_often() {
    let mut asked = vec![0_u32; 101];
    let outcome = run_seen(plan(Ycsb::E), |submission| {
        if submission.command.opcode() == Opcode::LIST {
            // 4 bytes of count; an entry of a 16-byte key is its length in 2, the key, 2 of zeros.
            let count = (submission.command.size() - 4) / 20;
            assert_eq!(submission.command.size(), 4 + 20 * count);
            asked[count as usize] += 1;
        }
    });
    let scans = u32::try_from(share(&outcome, Kind::Scan)).unwrap();
    assert_eq!((asked[0], asked.iter().sum::<u32>()), (0, scans));
    let expected = f64::from(scans) / 100.0;
    let chi_square: f64 =
        asked[1..].iter().map(|&seen| (f64::from(seen) - expected).powi(2) / expected).sum();
    // 99 degrees of freedom: 99 +- 4 sqrt(2 * 99).
    assert!((43.0..156.0).contains(&chi_square), "{chi_square}");
}

/// The commands of one scan of a device in order, from the submission of its list on.
fn scan(keys: u64, key_bytes: usize) -> (Outcome, u32, Vec<Vec<u8>>) {
    let plan = Plan { keys, key_bytes, until: Until::Operations(1), ..plan(Ycsb::E) };
    let (mut asked, mut retrieved) = (0, Vec::new());
    let outcome = run_seen(plan, |submission| match submission.command.opcode() {
        Opcode::LIST => asked = submission.command.size(),
        Opcode::RETRIEVE => retrieved.push(key_of(submission)),
        _ => panic!("an insert came first: another seed is needed"),
    });
    (outcome, asked, retrieved)
}

#[test]
fn a_scan_retrieves_what_its_list_returned_which_is_as_much_as_fits() {
    for key_bytes in [1, 2, 3, 6, 8, 16, 17, 40] {
        let keys = if key_bytes == 1 { 200 } else { 1_000 };
        let (outcome, room, retrieved) = scan(keys, key_bytes);
        assert_eq!((outcome.operations(), outcome.errors()), (1, 0));
        // An entry is a length in 2 bytes, the key, and zeros to a multiple of 4.
        let entry = (2 + key_bytes).div_ceil(4) * 4;
        let count = (room as usize - 4) / entry;
        assert_eq!(room as usize, 4 + count * entry);
        let mut model = Model::new(1);
        let filling = Session::filling(&Plan { key_bytes, keys, ..PLAN }, Nanos(0));
        drive(&mut model, filling, 64, |_| ());
        let from_first: Vec<&Vec<u8>> =
            model.pairs.range(retrieved[0].clone()..).map(|(key, _)| key).take(count).collect();
        assert_eq!(retrieved.iter().collect::<Vec<_>>(), from_first, "{key_bytes} bytes");
    }
}

#[test]
fn a_list_that_is_not_what_was_asked_for_is_an_error() {
    /// The list with its entries of 16-byte keys changed.
    fn changed(completion: &mut Completion, change: fn(&mut Vec<[u8; 20]>)) {
        if completion.opcode != Opcode::LIST {
            return;
        }
        let bytes = completion.data.bytes().unwrap();
        let mut entries = bytes[4..].as_chunks::<20>().0.to_vec();
        change(&mut entries);
        let count = u32::try_from(entries.len()).unwrap().to_le_bytes();
        completion.data = Buf::copy_from(&[&count[..], entries.as_flattened()].concat());
    }
    /// Appends all other keys of the run.
    fn add_all(entries: &mut Vec<[u8; 20]>) {
        let keys = crate::keys::Keys::new(16, 1_000).unwrap();
        for number in 0..1_000 {
            let mut entry = [0; 20];
            entry[0] = 16;
            entry[2..18].copy_from_slice(keys.key(number).as_bytes());
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
    }
    let faults: [fn(&mut Completion); 7] = [
        |completion| changed(completion, add_all),
        |completion| changed(completion, Vec::clear),
        |completion| changed(completion, |keys| *keys = keys.split_off(1)),
        |completion| changed(completion, |keys| keys.push(keys[0])),
        |completion| changed(completion, |keys| keys.resize(101, keys[0])),
        |completion| changed(completion, |keys| keys[0][9] ^= 1),
        |completion| {
            if completion.opcode == Opcode::LIST {
                completion.data = completion.data.slice(0..completion.data.len() - 1);
            }
        },
    ];
    for fault in faults {
        let plan = plan(Ycsb::E);
        let mut model = Model::new(1);
        drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
        model.fault = fault;
        let outcome = drive(&mut model, Session::new(&plan, Nanos(0)), 4, |_| ());
        let wrong = outcome.errors_by_status().remove("Wrong Value").unwrap();
        let stores = share(&outcome, Kind::Store);
        assert_eq!((wrong + stores, outcome.errors()), (OPERATIONS, wrong));
    }
}

#[test]
fn a_wrong_value_makes_a_scan_one_error_however_many_are_wrong() {
    let plan = plan(Ycsb::E);
    let mut model = Model::new(1);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    model.fault = |completion| {
        if completion.opcode == Opcode::RETRIEVE {
            completion.data = ValueGenerator::new(1, Payload::Full).value(99_999, 9, 100);
        }
    };
    let outcome = drive(&mut model, Session::new(&plan, Nanos(0)), 4, |_| ());
    let scans = OPERATIONS - share(&outcome, Kind::Store);
    let expected = BTreeMap::from([("Wrong Value".to_owned(), scans)]);
    assert_eq!((outcome.operations(), outcome.errors_by_status()), (OPERATIONS, expected));
}

#[test]
fn a_queue_depth_counts_operations_and_not_their_commands() {
    let plan = plan(Ycsb::E);
    let mut model = Model::new(1);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    let mut session = Session::new(&plan, Nanos(model.now));
    let mut most = 0;
    while session.has_more(Nanos(model.now)) || session.outstanding() > 0 {
        while session.has_more(Nanos(model.now)) && session.outstanding() < 3 {
            session.submit(Nanos(model.now), |submission| model.submit(submission));
        }
        most = most.max(model.outstanding.len());
        let completion = model.next();
        session.complete(&completion, completion.completed, |next| model.submit(next));
    }
    assert_eq!(session.into_outcome().operations(), OPERATIONS);
    assert!((150..=300).contains(&most), "{most} commands of 3 scans of up to 100 keys");
}

#[test]
fn a_read_modify_write_retrieves_then_stores_the_next_version_of_the_same_key() {
    let plan = Plan { until: Until::Operations(40), keys: 1, ..plan(Ycsb::F) };
    let mut model = Model::new(1);
    drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
    let mut stored = Vec::new();
    let start = Nanos(model.now);
    let outcome = drive(&mut model, Session::new(&plan, start), 1, |submission| {
        if submission.command.opcode() == Opcode::STORE {
            stored.push(checksum_of(&submission.data).unwrap());
        }
    });
    let count = u32::try_from(share(&outcome, Kind::ReadModifyWrite)).unwrap();
    let values = ValueGenerator::new(plan.seed, plan.payload);
    let versions: Vec<u64> = (1..=count).map(|version| values.tag(0, version, 100)).collect();
    assert_eq!(stored, versions);
    assert_eq!(outcome.operations(), 40);
    // One after the other, so that all the time is theirs.
    let mean = |kind| outcome.tally(kind).unwrap().mean_ns();
    let total = mean(Kind::Retrieve) * f64::from(40 - count)
        + mean(Kind::ReadModifyWrite) * f64::from(count);
    let elapsed = f64::from(u32::try_from(outcome.elapsed().0).unwrap());
    assert!((total - elapsed).abs() < 1e-6, "{total} of {elapsed}");
}

#[test]
fn a_value_that_cannot_be_read_is_not_written() {
    let plan = plan(Ycsb::F);
    let mut stores = 0;
    let outcome = drive(&mut Model::new(1), Session::new(&plan, Nanos(0)), 4, |submission| {
        stores += u64::from(submission.command.opcode() == Opcode::STORE);
    });
    let expected = BTreeMap::from([("KV Key Does Not Exist".to_owned(), OPERATIONS)]);
    assert_eq!((outcome.errors_by_status(), stores), (expected, 0));
}

#[test]
fn new_keys_are_read_only_when_all_up_to_them_are_acknowledged() {
    for distribution in [Distribution::Latest, Distribution::Uniform, Distribution::Zipfian] {
        let plan = Plan { distribution, ..plan(Ycsb::D) };
        let mut model = Model::new(2);
        drive(&mut model, Session::filling(&plan, Nanos(0)), 64, |_| ());
        let known = |model: &Model| model.pairs.len() as u64;
        let start = known(&model);
        let mut session = Session::new(&plan, Nanos(model.now));
        let (mut acknowledged, mut order) = (BTreeSet::new(), Vec::new());
        let mut newest_reads = 0;
        while session.has_more(Nanos(model.now)) {
            while session.outstanding() < 30 {
                let mut asked = None;
                session.submit(Nanos(model.now), |submission| {
                    asked = Some((submission.command.opcode(), key_of(&submission)));
                    model.submit(submission)
                });
                let (opcode, key) = asked.unwrap();
                if opcode == Opcode::STORE {
                    order.push(key);
                } else if let Some(place) = order.iter().position(|inserted| *inserted == key) {
                    assert!(order[..=place].iter().all(|key| acknowledged.contains(key)));
                    newest_reads += 1;
                }
            }
            let waiting: Vec<Vec<u8>> =
                model.outstanding.iter().map(|(submission, ..)| key_of(submission)).collect();
            let completion = model.next();
            let left: Vec<Vec<u8>> =
                model.outstanding.iter().map(|(submission, ..)| key_of(submission)).collect();
            if completion.opcode == Opcode::STORE {
                acknowledged.extend(waiting.into_iter().filter(|key| !left.contains(key)));
            }
            session.complete(&completion, completion.completed, |_| unreachable!());
        }
        assert!(known(&model) > start + 800, "a thousand were inserted");
        assert!(
            newest_reads > 3_000,
            "{distribution:?}: {newest_reads} of 19,000 were of new keys"
        );
    }
}

#[test]
fn workload_d_reads_mostly_the_newest_keys() {
    let plan = plan(Ycsb::D);
    let mut keys: Vec<Vec<u8>> = {
        let keys = crate::keys::Keys::new(plan.key_bytes, 1_000).unwrap();
        (0..1_000).map(|number| keys.key(number).as_bytes().to_vec()).collect()
    };
    let mut ages = vec![0_u32; 4_000];
    run_seen(plan, |submission| {
        let key = key_of(submission);
        if submission.command.opcode() == Opcode::STORE {
            keys.push(key);
        } else {
            ages[keys.iter().rev().position(|newer| *newer == key).unwrap()] += 1;
        }
    });
    let reads: u32 = ages.iter().sum();
    // Of n keys the newest h have zeta(h) / zeta(n) of Zipf's law; 13 outstanding operations, of
    // which 5 % insert, make the newest at most a few places older.
    let zeta = |count: u32| (1..=count).map(|k| f64::from(k).powf(-0.99)).sum::<f64>();
    for newest in [100_u32, 500] {
        let found = f64::from(ages[..newest as usize].iter().sum::<u32>()) / f64::from(reads);
        let (most, least) = (zeta(newest) / zeta(1_000), zeta(newest) / zeta(2_100));
        assert!((least - 0.02..most + 0.02).contains(&found), "{newest}: {found}");
    }
    assert!(ages[0] > ages[10] && ages[10] > ages[200]);
}

#[test]
fn a_run_for_a_time_ends_when_new_keys_run_out() {
    let until = Until::Time(Nanos::from_secs(1_000));
    let plan = Plan { until, keys: 200, key_bytes: 1, ..plan(Ycsb::D) };
    let outcome = run_seen(plan, |_| ());
    assert_eq!((outcome.errors(), share(&outcome, Kind::Store)), (0, 56));
}

#[test]
fn digests_of_each_workload_are_those_of_the_seed() {
    for ycsb in Ycsb::ALL {
        let plan = Plan { until: Until::Operations(2_000), ..plan(ycsb) };
        let digest = |seed, payload| run_seen(Plan { seed, payload, ..plan }, |_| ()).digest(&[]);
        let known = digest(1, Payload::None);
        assert_eq!(known, digest(1, Payload::Full), "{ycsb:?}");
        assert_ne!(known, digest(2, Payload::None), "{ycsb:?}");
    }
}
