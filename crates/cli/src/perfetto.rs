//! Writes a timeline of a device's parts as JSON of Chrome's trace events, which Perfetto
//! (<https://ui.perfetto.dev>) opens.
//!
//! Each die, channel, direction of the link, handler and core is a track. The tracks of one kind
//! are one process of the viewer, so that they can be collapsed together. A span has the name of
//! its work, the class of the work as its category and, if a command did the work itself, the
//! command's number.

use base::Nanos;
use clock::{Class, Rank, ResourceInfo, Span, TraceSink};
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

/// A timeline that is being written.
#[derive(Debug)]
pub(crate) struct Timeline(Rc<RefCell<Writer>>);

#[derive(Debug)]
struct Writer {
    file: BufWriter<File>,
    /// By resource; resources without a track are absent.
    tracks: Vec<Option<Track>>,
    /// Tracks that have a name already.
    named: BTreeSet<(u32, u32)>,
    start: Nanos,
    is_empty: bool,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

/// Where the viewer shows a resource's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Track {
    /// The group of tracks.
    group: u32,
    group_name: &'static str,
    /// Name of a unit, before its number.
    name: &'static str,
    /// Track of the resource's first unit.
    number: u32,
}

impl Track {
    /// Class of the work in a span. Handlers serve commands in order and give all of them one
    /// class.
    fn class_of(self, span: &Span) -> Class {
        match (self.group, span.work) {
            (HANDLERS, "store" | "delete") => Class::HostWrite,
            _ => span.class,
        }
    }
}

/// The group of the request handlers.
const HANDLERS: u32 = 2;

impl Timeline {
    /// Creates a timeline in a new file at `path` for `resources`, starting at `start`.
    pub(crate) fn create(
        path: &Path,
        resources: &[ResourceInfo],
        start: Nanos,
    ) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        file.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        let (tracks, named) = (tracks(resources), BTreeSet::new());
        let writer = Writer { file, tracks, named, start, is_empty: true, error: None };
        Ok(Self(Rc::new(RefCell::new(writer))))
    }

    /// Returns the function that writes each span.
    pub(crate) fn sink(&self) -> TraceSink {
        let writer = self.0.clone();
        Box::new(move |span| writer.borrow_mut().write(span))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> io::Result<()> {
        let mut writer = self.0.borrow_mut();
        if let Some(error) = writer.error.take() {
            return Err(error);
        }
        writer.file.write_all(b"\n]}\n")?;
        writer.file.flush()
    }
}

impl Writer {
    fn write(&mut self, span: &Span) {
        if self.error.is_none() {
            self.error = self.try_write(span).err();
        }
    }

    fn try_write(&mut self, span: &Span) -> io::Result<()> {
        let Some(Some(track)) = self.tracks.get(span.resource as usize).copied() else {
            return Ok(());
        };
        let (pid, tid) = (track.group, track.number + span.unit);
        if self.named.insert((pid, tid)) {
            self.name_track(track, tid)?;
        }
        let (from, lasts) = (micros(span.from - self.start), micros(span.to - span.from));
        let Span { work, .. } = span;
        let class = class_name(track.class_of(span));
        self.separate()?;
        write!(
            self.file,
            "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{from},\"dur\":{lasts},\
             \"name\":\"{work}\",\"cat\":\"{class}\""
        )?;
        match span.label {
            Some(command) => write!(self.file, ",\"args\":{{\"command\":{command}}}}}"),
            None => write!(self.file, "}}"),
        }
    }

    fn separate(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_empty, false) {
            Ok(())
        } else {
            self.file.write_all(b",\n")
        }
    }

    fn name_track(&mut self, track: Track, tid: u32) -> io::Result<()> {
        let Track { group: pid, group_name, name, .. } = track;
        let name = if name.ends_with(' ') { format!("{name}{tid}") } else { name.to_owned() };
        for (what, args) in [
            ("process_name", json!({"name": group_name})),
            ("process_sort_index", json!({"sort_index": pid})),
            ("thread_name", json!({"name": name})),
            ("thread_sort_index", json!({"sort_index": tid})),
        ] {
            self.separate()?;
            let event = json!({"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args});
            write!(self.file, "{event}")?;
        }
        Ok(())
    }
}

/// Returns the track of each resource, numbered within its kind in the order of creation.
fn tracks(resources: &[ResourceInfo]) -> Vec<Option<Track>> {
    let mut counts = [0; 6];
    let mut track = |resource: &ResourceInfo| {
        let (group, group_name, name) = match resource.rank {
            Rank::Link => (1, "link", resource.name),
            Rank::Handler => (HANDLERS, "request handlers", "handler "),
            Rank::Core => (3, "cores", "core "),
            Rank::Channel => (4, "channels", "channel "),
            Rank::Array => (5, "dies", "die "),
            // A register is busy whenever its die or channel works, so it has no track.
            _ => return None,
        };
        let count: &mut u32 = &mut counts[group as usize];
        *count += 1;
        Some(Track { group, group_name, name, number: *count - 1 })
    };
    resources.iter().map(&mut track).collect()
}

/// Trace events have microseconds with a fraction.
fn micros(nanos: Nanos) -> String {
    format!("{}.{:03}", nanos.0 / 1_000, nanos.0 % 1_000)
}

const fn class_name(class: Class) -> &'static str {
    match class {
        Class::HostRead => "host read",
        Class::HostWrite => "host write",
        Class::Index => "index",
        Class::Gc => "gc",
        Class::Wear => "wear",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use tempfile::tempdir;

    const RESOURCES: [ResourceInfo; 6] = [
        ResourceInfo { name: "a page register of a die", rank: Rank::Register },
        ResourceInfo { name: "the array of a die", rank: Rank::Array },
        ResourceInfo { name: "a page register of a die", rank: Rank::Register },
        ResourceInfo { name: "the array of a die", rank: Rank::Array },
        ResourceInfo { name: "the link to the host", rank: Rank::Link },
        ResourceInfo { name: "a request handler", rank: Rank::Handler },
    ];

    const SPAN: Span = Span {
        resource: 3,
        unit: 0,
        work: "read",
        class: Class::HostRead,
        label: Some(17),
        from: Nanos(1_001_500),
        to: Nanos(1_046_501),
    };

    fn written(spans: &[Span]) -> Value {
        let folder = tempdir().unwrap();
        let path = folder.path().join("timeline");
        let timeline = Timeline::create(&path, &RESOURCES, Nanos(1_000_000)).unwrap();
        let mut sink = timeline.sink();
        spans.iter().for_each(&mut sink);
        timeline.finish().unwrap();
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    fn events<'a>(timeline: &'a Value, phase: &str) -> Vec<&'a Value> {
        let events = timeline["traceEvents"].as_array().unwrap();
        events.iter().filter(|event| event["ph"] == phase).collect()
    }

    #[test]
    fn a_span_is_an_event_on_the_track_of_its_unit() {
        let handler = Span { resource: 5, unit: 2, work: "store", label: None, ..SPAN };
        let timeline = written(&[SPAN, handler]);
        let expected = [
            json!({"ph": "X", "pid": 5, "tid": 1, "ts": 1.5, "dur": 45.001, "name": "read",
                   "cat": "host read", "args": {"command": 17}}),
            json!({"ph": "X", "pid": 2, "tid": 2, "ts": 1.5, "dur": 45.001, "name": "store",
                   "cat": "host write"}),
        ];
        assert_eq!(events(&timeline, "X"), expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_span_has_the_class_of_its_work() {
        let classes = [Class::HostRead, Class::HostWrite, Class::Index, Class::Gc, Class::Wear];
        let spans = classes.map(|class| Span { class, ..SPAN });
        let timeline = written(&spans);
        let shown: Vec<&Value> =
            events(&timeline, "X").into_iter().map(|event| &event["cat"]).collect();
        assert_eq!(shown, ["host read", "host write", "index", "gc", "wear"]);
    }

    #[test]
    fn each_track_is_named_once() {
        let link = Span { resource: 4, ..SPAN };
        let timeline = written(&[SPAN, SPAN, link, SPAN]);
        let names = |what: &str| -> Vec<String> {
            let named = events(&timeline, "M").into_iter().filter(|event| event["name"] == what);
            named.map(|event| event["args"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("thread_name"), ["die 1", "the link to the host"]);
        assert_eq!(names("process_name"), ["dies", "link"]);
    }

    #[test]
    fn registers_are_on_no_track_and_no_span_at_all_is_a_timeline_too() {
        let register = Span { resource: 0, ..SPAN };
        assert!(events(&written(&[register]), "X").is_empty());
        assert!(events(&written(&[]), "X").is_empty());
    }
}
