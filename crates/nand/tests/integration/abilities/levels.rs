use crate::abilities::rig::{PAGE, PLAIN, on, page, ppa, tag};
use base::Nanos;
use clock::{Class, now};
use nand::{Level, Levels, Model, PageMap, Timing};

const LOWER: Level = Level { read: Nanos::from_micros(48), program: Nanos::from_micros(850) };
const UPPER: Level = Level { read: Nanos::from_micros(64), program: Nanos::from_micros(2_300) };

/// FEMU's map of MLC, page by page: 0 to 6, 8 and 9 are lower, 7 and 10 upper, then two lower and
/// two upper in turn.
fn femu(page: u32) -> usize {
    match page {
        0..=6 | 8 | 9 => 0,
        7 | 10 => 1,
        later => usize::from((later - 11) % 4 >= 2),
    }
}

#[test]
fn the_map_of_femu_is_what_its_pages_say() {
    let map: PageMap = "00000001001(0011)".parse().unwrap();
    assert_eq!(map.levels(), 2);
    let lower = (0..512).filter(|page| femu(*page) == 0).count();
    assert_eq!(lower, 9 + 250 + 1, "of 11 pages, 125 times 4, and one more");
    for page in 0..512 {
        assert_eq!(map.level(page), femu(page), "page {page}");
    }
}

#[test]
fn each_page_takes_the_times_of_its_level() {
    let map = "00000001001(0011)".parse().unwrap();
    for model in [Model::Staged, Model::Scalar] {
        let timing = Timing { model, levels: Levels::new(&[LOWER, UPPER], map), ..PLAIN };
        on(timing, async |nand| {
            for number in 0..512 {
                let (at, level) = (ppa(0, number), [LOWER, UPPER][femu(number)]);
                let start = now();
                nand.program(at, page(), tag(at), Class::HostWrite).await.unwrap();
                assert_eq!(now() - start, PAGE + level.program, "page {number}");
                let start = now();
                nand.read(at, &|_| u32::MAX, Class::HostRead).await.unwrap();
                assert_eq!(now() - start, level.read + PAGE, "page {number}");
            }
        });
    }
}

#[test]
fn pages_alternate_between_the_levels_unless_a_map_says_otherwise() {
    for levels in 1..=4_u8 {
        let map = PageMap::interleaved(levels);
        assert_eq!(map.levels(), usize::from(levels));
        for page in 0..40 {
            assert_eq!(map.level(page), page as usize % usize::from(levels));
        }
    }
    assert_eq!("(0123)".parse(), Ok(PageMap::interleaved(4)));
}

#[test]
fn text_that_is_no_page_map_is_refused() {
    let long = format!("({})", "0".repeat(65));
    for text in ["", "01", "()", "0()", "(01", "01)", "(04)", "(0)1", "((0))", " (0)", &long] {
        assert!(text.parse::<PageMap>().is_err(), "{text}");
    }
    let longest = format!("{}({})", "1".repeat(32), "0".repeat(32));
    assert!(longest.parse::<PageMap>().is_ok());
}

#[test]
#[should_panic(expected = "a page map names the levels that there are")]
fn a_map_of_more_levels_than_there_are_panics() {
    let _ = Levels::new(&[LOWER, UPPER], PageMap::interleaved(3));
}
