use crate::drive::life::{page_of, whole_span};
use clock::Class;
use drive::Medium;
use media::{ExtentId, Media, OnDisk, PageId};
use std::collections::{BTreeMap, BTreeSet};

/// What was asked of a drive, and what it answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// By the epoch of their label.
    pub(crate) openings: BTreeMap<u64, Opening>,
    /// Contents that must be somewhere whatever happens.
    pub(crate) lasting: BTreeSet<u64>,
    next: u64,
}

/// One opening of an extent.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) extent: ExtentId,
    /// Number and content of each page that was appended.
    pub(crate) pages: Vec<(u32, u64)>,
    /// How many of them were answered.
    pub(crate) answered: usize,
    /// How many of them must be there.
    pub(crate) lasting: usize,
    /// No more pages are appended.
    pub(crate) is_over: bool,
    pub(crate) summary: Step<u32>,
    pub(crate) reset: Step<()>,
}

/// How far something has come that is asked for once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<T> {
    Not,
    Begun(T),
    Done(T),
}

/// What a reopening found, for the tally of a test.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub(crate) lives: u32,
    pub(crate) pages: u32,
    /// Pages that were appended and are not there.
    pub(crate) gone: u32,
    /// Pages that were not answered and are there.
    pub(crate) unasked: u32,
    pub(crate) summaries: u32,
    /// Extents whose reset was cut: all there, nothing there.
    pub(crate) kept: u32,
    pub(crate) freed: u32,
}

impl Ledger {
    /// A number that was never used.
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn open(&mut self, epoch: u64, extent: ExtentId) {
        let opening = Opening {
            extent,
            pages: Vec::new(),
            answered: 0,
            lasting: 0,
            is_over: false,
            summary: Step::Not,
            reset: Step::Not,
        };
        assert!(self.openings.insert(epoch, opening).is_none(), "each epoch is new");
    }

    /// Compares the drive with the ledger. What is there must stay, and what is missing must not
    /// come back.
    pub(crate) async fn check(&mut self, drive: &Medium, found: &mut Found) {
        found.lives += 1;
        // No loss of power leaves what looks like an old copy.
        assert!(drive.outdated().is_empty(), "{:?} are outdated", drive.outdated());
        assert_eq!(drive.damage().await, Ok(Vec::new()));
        let (mut there, mut contents) = (BTreeMap::new(), BTreeSet::new());
        for info in drive.extents() {
            let epoch = info.label.epoch;
            let opening = self.openings.get(&epoch);
            let opening = opening.unwrap_or_else(|| panic!("{info:?} was never opened"));
            assert_eq!(info.id, opening.extent, "opening {epoch}");
            assert_ne!(opening.reset, Step::Done(()), "{info:?} was reset");
            let numbers = drive.pages(info.id).await.expect("nothing fails");
            let appended: Vec<u32> = opening.pages.iter().map(|(number, _)| *number).collect();
            assert!(appended.starts_with(&numbers), "{info:?}: {numbers:?} of {appended:?}");
            assert!(numbers.len() >= opening.lasting, "{info:?} lacks pages: {opening:?}");
            match (info.summary, opening.summary) {
                (None, _) => {}
                (Some(page), Step::Begun(summary) | Step::Done(summary)) => {
                    assert_eq!((page, numbers.len()), (summary, appended.len()), "{info:?}");
                    found.summaries += 1;
                }
                (Some(_), Step::Not) => panic!("{info:?} was never sealed"),
            }
            for (number, content) in &opening.pages[..numbers.len()] {
                assert_page(drive, PageId { extent: info.id, page: *number }, *content).await;
                contents.insert(*content);
            }
            found.pages += u32::try_from(numbers.len()).expect("a small number");
            found.unasked += u32::try_from(numbers.len() - opening.lasting).expect("it is small");
            there.insert(epoch, numbers.len());
        }
        let used = u32::try_from(there.len()).expect("a small number");
        assert_eq!(drive.free_extents() + used, drive.shape().extents);
        assert!(self.lasting.is_subset(&contents), "lost: {:?}", &self.lasting - &contents);
        self.settle(&there, found);
        self.lasting = contents;
    }

    /// Keeps the openings that are there, with as many pages as each has.
    fn settle(&mut self, there: &BTreeMap<u64, usize>, found: &mut Found) {
        self.openings.retain(|epoch, opening| {
            let Some(pages) = there.get(epoch) else {
                assert!(opening.lasting == 0 || opening.reset != Step::Not, "{opening:?} is gone");
                found.freed += u32::from(opening.reset == Step::Begun(()));
                return false;
            };
            found.kept += u32::from(opening.reset == Step::Begun(()));
            found.gone += u32::try_from(opening.pages.len() - pages).expect("a small number");
            opening.pages.truncate(*pages);
            (opening.answered, opening.lasting) = (*pages, *pages);
            (opening.is_over, opening.reset) = (true, Step::Not);
            true
        });
    }
}

/// The page is there as it was appended.
async fn assert_page(drive: &Medium, at: PageId, content: u64) {
    let expected = page_of(content, &drive.shape());
    let read = drive.read(whole_span(drive, at, &expected), &|_| 0, Class::HostRead).await;
    let page = read.unwrap_or_else(|error| panic!("{at}: {error}"));
    let bytes = |page: &media::Page| -> Vec<u8> {
        page.segments().iter().flat_map(|part| part.bytes().expect("real").to_vec()).collect()
    };
    assert!(page.spare() == expected.spare(), "{at} has the spare bytes of {content}");
    assert!(bytes(&page) == bytes(&expected), "{at} has the data of {content}");
}
