use crate::number::{grouped, percent};
use crate::table;
use drive::DriveInfo;
use engine::ExtentFacts;
use media::Stream;
use serde::Serialize;

/// Percent per row of the table of live shares.
const STEP: u64 = 10;

/// How extents are used.
#[derive(Debug, Serialize)]
pub(super) struct Shares {
    free_extents: u64,
    streams: Vec<OfStream>,
    /// Extents of records by their live share: up to 10 %, up to 20 % and so on.
    #[serde(rename = "extents_by_live_share")]
    by_live: Vec<u64>,
}

/// Extents of a stream.
#[derive(Debug, Serialize)]
struct OfStream {
    stream: &'static str,
    extents: u64,
    /// Of these, those that end with a summary.
    full_extents: u64,
    used_bytes: u64,
    live_bytes: u64,
    #[serde(skip)]
    all_bytes: u64,
}

/// Returns the name of a stream.
pub(super) const fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Host => "hosts",
        Stream::Gc => "cleaner",
        Stream::Index => "index",
    }
}

impl Shares {
    pub(super) fn new(info: &DriveInfo, extents: &[ExtentFacts]) -> Self {
        let streams = [Stream::Host, Stream::Gc, Stream::Index];
        let mut by_live = vec![0; usize::try_from(100 / STEP).expect("a few")];
        for extent in extents.iter().filter(|extent| extent.label.stream != Stream::Index) {
            let share = extent.values.bytes * 100 / info.extent_bytes;
            let at = usize::try_from(share / STEP).unwrap_or(usize::MAX);
            let last = by_live.len() - 1;
            by_live[at.min(last)] += 1;
        }
        Self {
            free_extents: u64::from(info.extents) - extents.len() as u64,
            streams: streams.map(|stream| OfStream::new(info, extents, stream)).into(),
            by_live,
        }
    }

    pub(super) fn text(&self) -> String {
        let rows = self.streams.iter().map(|of| {
            let share = |bytes: u64| share(bytes, of.all_bytes);
            vec![
                of.stream.to_owned(),
                grouped(of.extents),
                grouped(of.full_extents),
                share(of.used_bytes),
                if of.stream == name(Stream::Index) { "-".into() } else { share(of.live_bytes) },
            ]
        });
        let free = vec!["free".to_owned(), grouped(self.free_extents)];
        let free = free.into_iter().chain(["-", "-", "-"].map(str::to_owned)).collect();
        let streams = table::numbers(
            &["extents of", "in use", "full", "written", "live"],
            rows.chain([free]),
        );
        let bounds = (STEP..=100).step_by(usize::try_from(STEP).expect("a few"));
        let live = bounds.zip(&self.by_live).filter(|(_, extents)| **extents > 0);
        let live = live.map(|(bound, extents)| {
            vec![format!("{} to {bound} %", bound - STEP), grouped(*extents)]
        });
        let live = table::numbers(&["live share", "extents"], live);
        format!("{streams}\n{live}")
    }
}

#[expect(clippy::cast_precision_loss, reason = "for reports, where 53 bits are plenty")]
fn share(part: u64, whole: u64) -> String {
    percent(part as f64, whole as f64)
}

impl OfStream {
    fn new(info: &DriveInfo, extents: &[ExtentFacts], stream: Stream) -> Self {
        let of = || extents.iter().filter(|extent| extent.label.stream == stream);
        let count = of().count() as u64;
        let unit = u64::from(info.unit_bytes);
        Self {
            stream: name(stream),
            extents: count,
            full_extents: of().filter(|extent| extent.has_summary).count() as u64,
            used_bytes: of().map(|extent| u64::from(extent.pages) * unit).sum(),
            live_bytes: of().map(|extent| extent.values.bytes).sum(),
            all_bytes: count * info.extent_bytes,
        }
    }
}
