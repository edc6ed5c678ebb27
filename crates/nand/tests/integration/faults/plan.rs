//! Which steps a rule is about, and what is told of what happened.

use crate::faults::rig::{ERASE, array, block, cells, nth, on, ppa, program, read};
use base::{Nanos, Rng};
use clock::{Class, Stage, now, sleep_until};
use nand::{Fault, FaultKind, FaultReport, FaultRule, Model, When};
use reactor::Reactor;

const READ_FAULT: FaultKind = FaultKind::UncorrectableRead;

/// Returns the numbers of the failing reads among those of pages 0 to 3 of blocks 0 and 1 of dies 0
/// and 1, in order. Each begins at least a microsecond after the previous one.
fn failing_reads(rule: FaultRule) -> Vec<usize> {
    on(&[rule], async |nand| {
        let pages = [0, 1].map(|die| [0, 1].map(|block| [0, 1, 2, 3].map(|p| ppa(die, block, p))));
        let pages: Vec<_> = pages.into_iter().flatten().flatten().collect();
        for at in &pages {
            program(&nand, *at, 1).await.expect("as planned");
        }
        let mut failing = Vec::new();
        for (number, at) in pages.into_iter().enumerate() {
            sleep_until(Nanos(1_000_000 * (number as u64 + 1)), Stage::Batch).await;
            if read(&nand, at).await.is_err() {
                failing.push(number);
            }
        }
        failing
    })
}

#[test]
fn a_rule_is_about_the_steps_that_match_all_that_it_names() {
    let all = FaultRule::new(READ_FAULT, When::Ppm(1_000_000));
    assert_eq!(failing_reads(all), (0..16).collect::<Vec<_>>());
    assert_eq!(failing_reads(FaultRule { when: When::Ppm(0), ..all }), []);
    assert_eq!(failing_reads(FaultRule { die: Some(1), ..all }), (8..16).collect::<Vec<_>>());
    let of_block = FaultRule { block: Some(1), ..all };
    assert_eq!(failing_reads(of_block), [4, 5, 6, 7, 12, 13, 14, 15]);
    assert_eq!(failing_reads(FaultRule { page: Some(2), ..all }), [2, 6, 10, 14]);
    assert_eq!(failing_reads(FaultRule { die: Some(0), page: Some(3), ..of_block }), [7]);
    // A read ends a microsecond after it begins.
    let (from, until) = (Nanos(3_001_000), Some(Nanos(5_001_000)));
    assert_eq!(failing_reads(FaultRule { from, until, ..all }), [2, 3]);
    assert_eq!(failing_reads(FaultRule { most: Some(3), ..all }), [0, 1, 2]);
    assert_eq!(failing_reads(FaultRule { most: Some(0), ..all }), []);
}

#[test]
fn the_nth_step_is_counted_among_those_that_match() {
    let third = nth(READ_FAULT, 3);
    assert_eq!(failing_reads(third), [2]);
    assert_eq!(failing_reads(FaultRule { die: Some(1), ..third }), [10]);
    assert_eq!(failing_reads(FaultRule { page: Some(1), ..third }), [9]);
    assert_eq!(failing_reads(FaultRule { from: Nanos(5_001_000), ..third }), [6]);
    assert_eq!(failing_reads(nth(READ_FAULT, 17)), []);
    assert_eq!(failing_reads(nth(READ_FAULT, 0)), []);
}

#[test]
fn an_erase_has_no_page() {
    let rule = FaultRule { page: Some(0), ..nth(FaultKind::FailedErase, 1) };
    on(&[rule], async |nand| nand.erase(block(0, 0), Class::Gc).await.unwrap());
}

#[test]
fn rates_are_as_in_the_plan() {
    // Of 20,000 erases at 5 %: 1,000, with a standard deviation of 30.8.
    let rule = FaultRule::new(FaultKind::FailedErase, When::Ppm(50_000));
    let failed = |seed| {
        let cells = cells();
        Reactor::new(None).run(async {
            let plan = nand::FaultPlan { seed, rules: vec![rule] };
            let timing = crate::faults::rig::timing(Model::Staged);
            let nand = nand::Nand::new(cells.clone(), timing, plan, clock::Group::new());
            for _ in 0..20_000 {
                let _ = nand.erase(block(0, 0), Class::Gc).await;
            }
            let report = nand.faults();
            let times: Vec<Nanos> = report.list.iter().map(|fault| fault.at).collect();
            (report.counts.failed_erases, times)
        })
    };
    let [first, again, other] = [1, 1, 2].map(failed);
    assert!(first.0.abs_diff(1_000) < 124 && other.0.abs_diff(1_000) < 124, "four sigma");
    assert_eq!(first, again);
    assert_ne!(first.1, other.1);
    // Gaps between failures are geometric: one in e^-1 is longer than the mean.
    let gaps = first.1.windows(2).filter(|pair| pair[1] - pair[0] > Nanos(20 * ERASE.0)).count();
    assert!((280..460).contains(&gaps), "{gaps} of 1,000, not 368 with four sigma of 15");
}

#[test]
fn faults_are_listed_in_order_and_counted_beyond_the_list() {
    let slow = FaultRule::new(FaultKind::SlowDie { percent: 200 }, When::Ppm(1_000_000));
    on(&[slow, nth(FaultKind::FailedErase, 1_500)], async |nand| {
        for _ in 0..1_500 {
            let _ = nand.erase(block(0, 9), Class::Gc).await;
        }
        let FaultReport { counts, list, unlisted } = nand.faults();
        assert_eq!((counts.slow_steps, counts.failed_erases, counts.total()), (1_500, 1, 1_501));
        assert_eq!((list.len(), unlisted), (1_001, 500));
        let kind = FaultKind::SlowDie { percent: 200 };
        let nth_slow = |number: u64| Fault {
            at: Nanos(2 * ERASE.0 * (number - 1)),
            kind,
            block: block(0, 9),
            page: None,
            ordinal: number,
        };
        assert_eq!(list[..1_000], (1..=1_000).map(nth_slow).collect::<Vec<_>>());
        let at = Nanos(2 * ERASE.0 * 1_500);
        let failed = Fault { at, kind: FaultKind::FailedErase, ordinal: 1_500, ..nth_slow(1) };
        assert_eq!(list[1_000], failed);
    });
}

/// The final content of a block: unreadable pages, erases, and the rest.
type Content = (Vec<u32>, u32, Vec<u8>);

/// Runs random steps on an array with these faults. Returns the faults and the final content.
fn random_run(rules: &[FaultRule]) -> (FaultReport, Vec<Content>) {
    let cells = cells();
    let report = Reactor::new(None).run(async {
        let nand = array(&cells, Model::Staged, rules);
        let mut rng = Rng::new(3);
        let mut number = |below: u64| u32::try_from(rng.below(below)).expect("as planned");
        for _ in 0..3_000 {
            let (at, kind) = (block(number(2), number(6)), number(10));
            let programmed = cells.programmed(at);
            let page = |page| nand::Ppa { block: at, page };
            match kind {
                0 => {
                    let _ = nand.erase(at, Class::Gc).await;
                }
                1..5 if programmed < 4 => {
                    let _ = program(&nand, page(programmed), u64::from(kind)).await;
                }
                5 if programmed < 4 && at.block >= 2 => {
                    let from = nand::Ppa { block: block(at.die.0, at.block - 2), page: 0 };
                    if cells.programmed(from.block) > 0 {
                        let tag = (programmed == 0).then_some(crate::faults::rig::TAG);
                        let to = page(programmed);
                        let _ = nand.copyback(from, to, tag, Class::Gc).await;
                    }
                }
                _ if programmed > 0 => {
                    let at = page(number(u64::from(programmed)));
                    let _ = nand.read(at, &|_| 7, Class::HostRead).await;
                }
                _ => {}
            }
        }
        assert!(now() > Nanos::ZERO);
        nand.faults()
    });
    let mut all = Vec::new();
    for at in (0..2).flat_map(|die| (0..6).map(move |number| block(die, number))) {
        let contents = Reactor::new(None).run(async {
            let nand = array(&cells, Model::Staged, &[]);
            let mut contents = Vec::new();
            for page in 0..cells.programmed(at) {
                let at = nand::Ppa { block: at, page };
                let page = nand.read(at, &|_| 0, Class::HostRead).await;
                let sum = |page: &media::Page| page.segments()[0].crc32c().to_le_bytes();
                contents.extend(page.iter().flat_map(|page| [page.spare(), &sum(page)].concat()));
            }
            contents
        });
        all.push((cells.unreadable(at), cells.erase_count(at), contents));
    }
    (report, all)
}

#[test]
fn the_rules_of_the_faults_that_happened_make_the_same_run() {
    let ppm = |kind, chance| FaultRule::new(kind, When::Ppm(chance));
    let (report, cells) = random_run(&[
        ppm(FaultKind::UncorrectableRead, 10_000),
        ppm(FaultKind::FlippedBit, 10_000),
        ppm(FaultKind::FailedProgram, 20_000),
        ppm(FaultKind::FailedErase, 50_000),
        ppm(FaultKind::BadBlock, 2_000),
        ppm(FaultKind::SlowDie { percent: 300 }, 5_000),
    ]);
    let counts = report.counts;
    assert!(counts.uncorrectable_reads > 3 && counts.flipped_bits > 3 && counts.bad_blocks > 0);
    assert!(counts.failed_programs > 3 && counts.failed_erases > 3 && counts.slow_steps > 3);
    let rules: Vec<FaultRule> = report.list.iter().map(Fault::rule).collect();
    assert_eq!(random_run(&rules), (report, cells));
}

#[test]
fn a_rule_draws_the_same_whatever_follows_it() {
    let rule = FaultRule::new(READ_FAULT, When::Ppm(30_000));
    let (alone, _) = random_run(&[rule]);
    let never = FaultRule { most: Some(0), ..FaultRule::new(READ_FAULT, When::Ppm(500_000)) };
    let (with_another, _) = random_run(&[rule, never]);
    assert_eq!(alone, with_another);
    assert!(alone.counts.uncorrectable_reads > 10);
}
