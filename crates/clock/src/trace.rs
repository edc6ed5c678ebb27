use crate::class::Class;
use crate::rank::Rank;
use crate::resource::Queue;
use crate::schedule::with;
use base::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A unit of a resource at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which resource: its place in [`resources`].
    pub resource: u32,
    /// Which of its units, from 0; the lowest that was free.
    pub unit: u32,
    /// What it did: what the holder called it, else the name of the stage.
    pub work: &'static str,
    /// For whom.
    pub class: Class,
    /// What the task was labelled with: see [`label`].
    pub label: Option<u64>,
    /// Since when.
    pub from: Nanos,
    /// Until when; later than `from`.
    pub to: Nanos,
}

/// A resource, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceInfo {
    /// What it was called when it was made.
    pub name: &'static str,
    /// Its place in the order of waiting.
    pub rank: Rank,
}

/// Called with each span when it ends. It may call nothing of this crate.
pub type TraceSink = Box<dyn FnMut(&Span)>;

/// Follows who holds which unit. Spans that began before the tracer was installed are not told.
pub(crate) struct Tracer {
    sink: TraceSink,
    /// By resource.
    units: Vec<Units>,
}

/// Who holds the units of a resource.
#[derive(Default)]
struct Units {
    /// By task: as ranks are taken in order, a task holds at most one unit of a resource.
    holders: BTreeMap<u32, Span>,
    /// Numbers that were given back, of those below `used`.
    free: BinaryHeap<Reverse<u32>>,
    used: u32,
}

impl Tracer {
    pub(crate) fn new(sink: TraceSink) -> Self {
        Self { sink, units: Vec::new() }
    }

    /// `task` took a unit, whose number is filled in here.
    pub(crate) fn took(&mut self, task: u32, mut span: Span) {
        let resource = span.resource as usize;
        if self.units.len() <= resource {
            self.units.resize_with(resource + 1, Units::default);
        }
        let Units { holders, free, used } = &mut self.units[resource];
        span.unit = free.pop().map_or_else(
            || {
                *used += 1;
                *used - 1
            },
            |Reverse(unit)| unit,
        );
        holders.insert(task, span);
    }

    /// `task` gave its unit back.
    pub(crate) fn gave_back(&mut self, resource: u32, task: u32, now: Nanos) {
        let Some(units) = self.units.get_mut(resource as usize) else { return };
        let Some(taken) = units.holders.remove(&task) else { return };
        units.free.push(Reverse(taken.unit));
        let span = Span { to: now, ..taken };
        if span.from < span.to {
            (self.sink)(&span);
        }
    }
}

/// Calls the current task `label` in the spans of what it holds from here on.
#[inline]
pub fn label(label: u64) {
    with(|schedule| {
        let current = schedule.current;
        schedule.task(current).label = Some(label);
    });
}

/// All resources, in the order in which they were made.
pub fn resources() -> Vec<ResourceInfo> {
    with(|schedule| schedule.queues.iter().map(Queue::info).collect())
}
