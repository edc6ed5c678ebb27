use crate::rig::{EXTENTS, UNIT, append, assert_holds, formatted, label, on, page, units};
use base::Rng;
use clock::{Class, join_all};
use drive::{Durability, Medium};
use media::{
    Blocks, BlocksShape, Error, ExtentId, ExtentInfo, Label, Media, MemoryBlocks, OnDisk, PageId,
    Span,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an extent holds.
#[derive(Clone, Debug)]
struct Expected {
    label: Label,
    /// Number and content of each page.
    pages: Vec<(u32, u64)>,
    end: u32,
    summary: Option<u32>,
    /// Nothing is appended to it any more.
    is_over: bool,
}

type Model = BTreeMap<ExtentId, Expected>;

fn infos(model: &Model) -> Vec<ExtentInfo> {
    let info = |(id, expected): (&ExtentId, &Expected)| ExtentInfo {
        id: *id,
        label: expected.label,
        pages: expected.end,
        holes: Vec::new(),
        summary: expected.summary,
    };
    model.iter().map(info).collect()
}

async fn assert_is(drive: &Medium, model: &Model) {
    assert_eq!(Media::extents(drive), infos(model));
    let used = u32::try_from(model.len()).expect("a small number");
    assert_eq!(drive.free_extents(), EXTENTS - used);
    for (extent, expected) in model {
        let numbers: Vec<u32> = expected.pages.iter().map(|(number, _)| *number).collect();
        assert_eq!(drive.pages(*extent).await, Ok(numbers));
        for (number, content) in &expected.pages {
            assert_holds(drive, PageId { extent: *extent, page: *number }, *content).await;
        }
    }
}

async fn step(drive: &Arc<Medium>, model: &mut Model, rng: &mut Rng, next: &mut u64) {
    *next += 100;
    let picked = rng.below((model.len() as u64).max(1));
    let picked = model.keys().nth(usize::try_from(picked).expect("a small number")).copied();
    match (rng.below(12), picked) {
        (0 | 1, _) | (_, None) => match Media::open(&**drive, label(*next)) {
            Ok(extent) => {
                let label = label(*next);
                let new =
                    Expected { label, pages: Vec::new(), end: 0, summary: None, is_over: false };
                assert!(model.insert(extent, new).is_none(), "it was free");
            }
            Err(error) => {
                assert_eq!((error, model.len()), (Error::NoFreeExtent, EXTENTS as usize));
            }
        },
        (2, Some(extent)) => {
            drive.reset(extent, Class::Gc).await.expect("nothing fails");
            model.remove(&extent);
        }
        (3, Some(extent)) => {
            let expected = model.get_mut(&extent).expect("it is there");
            if !expected.is_over && expected.end > 0 {
                let summary = expected.pages[expected.pages.len() / 2].0;
                drive.seal(extent, summary).await.expect("nothing fails");
                (expected.summary, expected.is_over) = (Some(summary), true);
            }
        }
        (4, _) => drive.flush().await.expect("nothing fails"),
        (_, Some(extent)) => {
            let expected = model.get_mut(&extent).expect("it is there");
            if expected.is_over {
                return;
            }
            let shape = drive.shape();
            let mut end = expected.end;
            let contents: Vec<u64> = (*next..*next + rng.below(8))
                .take_while(|content| {
                    end = shape.frames.expect("pages are frames").aligned(end);
                    end += units(&page(*content, &shape), &shape);
                    end <= shape.pages_per_extent
                })
                .collect();
            let (numbers, end) = append(drive, extent, expected.end, &contents).await;
            expected.pages.extend(numbers.into_iter().zip(contents));
            expected.end = end;
        }
    }
}

#[test]
fn random_use_over_restarts_is_as_the_model() {
    let all = [Durability::Group, Durability::EverySecond, Durability::Capacitor];
    for (seed, durability) in (0..9).zip(all.into_iter().cycle()) {
        let memory = formatted(if seed % 2 == 0 { 512 } else { 4_096 }, EXTENTS);
        let (mut model, mut rng, mut next) = (Model::new(), Rng::new(seed), 0);
        for _ in 0..6 {
            on(memory.clone(), durability, async |drive| {
                assert_is(&drive, &model).await;
                for _ in 0..60 {
                    step(&drive, &mut model, &mut rng, &mut next).await;
                }
                assert_is(&drive, &model).await;
            });
            model.retain(|_, expected| expected.end > 0);
            for expected in model.values_mut() {
                expected.is_over = true;
            }
        }
    }
}

/// What blocks hold, as blocks of another size.
fn moved(from: &MemoryBlocks, block_bytes: u32) -> Arc<MemoryBlocks> {
    let shape = from.shape();
    let bytes = shape.blocks * u64::from(shape.block_bytes);
    let blocks = bytes / u64::from(block_bytes);
    let to = Arc::new(MemoryBlocks::new(BlocksShape { block_bytes, blocks, ..shape }));
    let [of_from, of_to] = [shape.block_bytes, block_bytes].map(|bytes| 4_096 / bytes);
    reactor::Reactor::new(None).run(async {
        for part in 0..bytes / 4_096 {
            let first = part * u64::from(of_from);
            let content = from.read(first, of_from, Class::HostRead).await.expect("nothing fails");
            let first = part * u64::from(of_to);
            to.write(first, content, Class::HostWrite).await.expect("nothing fails");
        }
    });
    to
}

#[test]
fn a_drive_moves_to_larger_and_to_smaller_blocks() {
    let sizes = [512, 4_096, 512, 1_024, 4_096];
    let (mut memory, mut known) = (formatted(sizes[0], EXTENTS), Vec::new());
    for (time, block_bytes) in (0..).zip(sizes) {
        // The few blocks behind the last 4 KiB are nothing to it.
        memory = moved(&memory, block_bytes);
        on(memory.clone(), Durability::Group, async |drive| {
            assert_eq!((drive.info().unit_bytes, drive.info().mounts), (512, time + 1));
            let extent = Media::open(&*drive, label(2)).unwrap();
            let mut next = 0;
            for content in [1, 2, 3].map(|content| content + 10 * u64::from(time)) {
                let (numbers, end) = append(&drive, extent, next, &[content]).await;
                known.push((PageId { extent, page: numbers[0] }, content));
                next = end;
            }
            for (at, content) in &known {
                assert_holds(&drive, *at, *content).await;
            }
        });
    }
}

#[test]
fn a_span_bounds_what_is_read_of_the_data() {
    for block_bytes in [512, 4_096] {
        on(formatted(block_bytes, 2), Durability::Group, async |drive| {
            let value: Vec<u8> = (0..10_000_u32).map(|at| at.to_le_bytes()[0]).collect();
            for spare_len in [0, 7, 448, 449, 4_032] {
                let page =
                    media::Page::new(&vec![9; spare_len as usize], [base::Buf::copy_from(&value)]);
                let extent = Media::open(&*drive, label(0)).unwrap();
                let at = PageId { extent, page: 0 };
                drive.append(at, page.clone(), Class::HostWrite).await.unwrap();
                let head = drive.shape().frames.unwrap().head_units(spare_len);
                for units in 0..head + 30 {
                    let span = Span { at, units };
                    let found = drive.read(span, &|_| 0, Class::HostRead).await.unwrap();
                    assert_eq!(found.spare(), page.spare());
                    let len = (units.saturating_sub(head) * UNIT).min(10_000) as usize;
                    assert_eq!(crate::rig::data(&found), value[..len], "{units} units");
                }
                drive.reset(extent, Class::Gc).await.unwrap();
            }
        });
    }
}

#[test]
fn the_extent_that_was_least_often_opened_comes_next() {
    on(formatted(512, 3), Durability::Group, async |drive| {
        let mut opened = Vec::new();
        for round in 0..7 {
            let extent = Media::open(&*drive, label(round)).unwrap();
            append(&drive, extent, 0, &[round]).await;
            drive.reset(extent, Class::Gc).await.unwrap();
            opened.push(extent.0);
        }
        assert_eq!(opened, [0, 1, 2, 0, 1, 2, 0]);
    });
}

#[test]
fn many_reads_go_on_beside_appends() {
    on(formatted(512, 2), Durability::Group, async |drive| {
        let extent = Media::open(&*drive, label(0)).unwrap();
        let (first, end) = append(&drive, extent, 0, &[1, 2, 5]).await;
        let reads = first.into_iter().zip([1, 2, 5]).map(|(page, content)| {
            let drive = drive.clone();
            async move { assert_holds(&drive, PageId { extent, page }, content).await }
        });
        let reads = join_all(reads.collect());
        append(&drive, extent, end, &[6]).await;
        reads.await;
    });
}
