use crate::class::Class;
use crate::stage::Stage;
use base::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A period for which a unit of a resource was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The resource: its place in [`resources`](crate::resources).
    pub resource: u32,
    /// The unit, from 0: the lowest that was free.
    pub unit: u32,
    /// The name that the holder set, otherwise the stage's name. Tasks that began to wait before
    /// the trace also have the stage's name.
    pub work: &'static str,
    /// The class it was done for.
    pub class: Class,
    /// The label of the task: see [`label`](crate::label).
    pub label: Option<u64>,
    /// The start.
    pub from: Nanos,
    /// The end, later than `from`.
    pub to: Nanos,
}

/// Called with each span when it ends. Must call nothing of this crate.
pub type TraceSink = Box<dyn FnMut(&Span)>;

/// Follows which task holds which unit. Omits spans that began before the tracer was installed.
pub(crate) struct Tracer {
    sink: TraceSink,
    /// By resource.
    units: Vec<Units>,
    /// By task. A task that began before the trace has no entry, or an empty one.
    names: Vec<Names>,
}

/// A task's label, and the name of its next work.
#[derive(Clone, Copy, Default)]
struct Names {
    label: Option<u64>,
    work: Option<&'static str>,
}

/// The tasks that hold the units of a resource.
#[derive(Default)]
struct Units {
    /// By task: ranks are taken in order, so a task holds at most one unit of a resource.
    holders: BTreeMap<u32, Span>,
    /// Free numbers below `used`.
    free: BinaryHeap<Reverse<u32>>,
    used: u32,
}

impl Tracer {
    pub(crate) fn new(sink: TraceSink) -> Self {
        Self { sink, units: Vec::new(), names: Vec::new() }
    }

    /// Adds `task`.
    pub(crate) fn begin(&mut self, task: u32) {
        *self.names(task) = Names::default();
    }

    /// Adds `task`, which has the label of `parent`.
    pub(crate) fn begin_child(&mut self, task: u32, parent: u32) {
        let label = self.names(parent).label;
        self.names(task).label = label;
    }

    /// Labels the later spans of `task`.
    #[inline]
    pub(crate) fn label(&mut self, task: u32, label: u64) {
        self.names(task).label = Some(label);
    }

    /// Names the next work of `task`.
    pub(crate) fn name(&mut self, task: u32, work: &'static str) {
        self.names(task).work = Some(work);
    }

    fn names(&mut self, task: u32) -> &mut Names {
        let task = task as usize;
        if self.names.len() <= task {
            self.names.resize(task + 1, Names::default());
        }
        &mut self.names[task]
    }

    /// Begins a span: `task` took a unit of `resource` for `class`.
    pub(crate) fn took(
        &mut self,
        task: u32,
        resource: u32,
        stage: Stage,
        class: Class,
        now: Nanos,
    ) {
        let Names { label, work } = *self.names(task);
        let place = resource as usize;
        if self.units.len() <= place {
            self.units.resize_with(place + 1, Units::default);
        }
        let Units { holders, free, used } = &mut self.units[place];
        let unit = free.pop().map_or_else(
            || {
                *used += 1;
                *used - 1
            },
            |Reverse(unit)| unit,
        );
        let work = work.unwrap_or(stage.name());
        holders.insert(task, Span { resource, unit, work, class, label, from: now, to: now });
    }

    /// Ends the span of `task`, which gave its unit back.
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
