use crate::abilities::rig::{PAGE_BYTES, PLAIN, on, page, ppa, tag};
use base::{Nanos, Rng};
use clock::{Class, Stage, now, sleep_until, stages};
use nand::{Nand, Order, Planes, Registers, Retries, Timing};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const CLASSES: [Class; 3] = [Class::HostRead, Class::HostWrite, Class::Gc];

/// Starts a random operation at a random instant and checks its account. Block `b` below 4 is
/// written, copied to block `b + 4`, erased in block `b + 8` and read in block `b + 12`.
fn start_random(nand: &Arc<Nand>, rng: &mut Rng, next: &[Rc<Cell<u32>>]) {
    let nand = nand.clone();
    let mut below =
        |bound: u32| u32::try_from(rng.below(u64::from(bound))).expect("below a number of 32 bits");
    let (plane, kind, bytes) = (below(4), below(8), below(PAGE_BYTES));
    let class = CLASSES[below(3) as usize];
    let at = Nanos(u64::from(below(400_000_000)));
    let next: Vec<Rc<Cell<u32>>> = next.to_vec();
    clock::spawn(async move {
        sleep_until(now() + at, Stage::Batch).await;
        let (start, before) = (now(), stages().total());
        let page_after = |block: u32| {
            let page = &next[block as usize];
            ppa(block, page.replace(page.get() + 1))
        };
        match kind {
            0 => nand.erase(ppa(plane + 8, 0).block, Class::Gc).await.expect("good flash"),
            1 | 2 => {
                let at = page_after(plane);
                nand.program(at, page(), tag(at), Class::HostWrite).await.expect("good flash");
            }
            3 => {
                let to = page_after(plane + 4);
                nand.copyback(ppa(plane + 12, 0), to, tag(to), Class::Gc)
                    .await
                    .expect("good flash");
            }
            _ => drop(nand.read(ppa(plane + 12, 0), &|_| bytes, class).await.expect("good flash")),
        }
        assert_eq!(stages().total() - before, now() - start);
    });
}

/// Runs a load that keeps the die busy, and returns what was done and when it ended.
fn random_load(timing: Timing) -> [u64; 9] {
    on(timing, async |nand| {
        for block in 12..16 {
            nand.program(ppa(block, 0), page(), tag(ppa(block, 0)), Class::HostWrite)
                .await
                .expect("good flash");
        }
        let next: Vec<Rc<Cell<u32>>> = (0..8).map(|_| Rc::default()).collect();
        let mut rng = Rng::new(1);
        (0..1_500).for_each(|_| start_random(&nand, &mut rng, &next));
        sleep_until(Nanos::from_secs(60), Stage::Batch).await;
        let counters = nand.counters();
        let done = counters.reads + counters.programs + counters.erases + counters.copybacks;
        assert_eq!(done, 1_500 + 4);
        counters.words()
    })
}

#[test]
fn the_stages_of_every_operation_add_up_whatever_the_array_can_do() {
    let all = Timing {
        cache_busy: Nanos(3_001),
        program_suspend: Some(Nanos(5_003)),
        erase_suspend: Some(Nanos(9_007)),
        resume: Nanos(2_011),
        variability_ppm: 100_000,
        retries: Retries { fresh_ppm: 300_000, worn_ppm: 0, endurance: 0 },
        transfer_bytes: 4_096,
        ..PLAIN
    };
    for planes in [Planes::Alone, Planes::Together, Planes::Independent] {
        for registers in [Registers::Single, Registers::Double] {
            for order in [Order::Class, Order::Arrival] {
                let timing = Timing { planes, registers, order, ..all };
                let words = random_load(timing);
                assert_eq!(random_load(timing), words, "equal runs are equal");
                assert_eq!(words[8] > 0, order == Order::Class, "{timing:?}");
            }
        }
    }
}
