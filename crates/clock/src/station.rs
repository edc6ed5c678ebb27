use crate::class::Class;
use crate::park::assert_not_waiting;
use crate::party::{Announced, Place, Together, Work};
use crate::rank::Rank;
use crate::resource::{Group, Resource};
use crate::schedule::with;
use crate::stage::Stage;
use base::Nanos;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A resource of one unit whose work others may join and reads of hosts may interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    resource: Resource,
    /// Its place among the stations of the schedule.
    place: u32,
}

/// How long work takes to stand still, and to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// From when a read comes until it may begin.
    pub enter: Nanos,
    /// From when the last read is done until the work goes on.
    pub resume: Nanos,
}

impl Group {
    /// A free station. `name` is for people.
    pub fn station(self, name: &'static str, rank: Rank) -> Station {
        let resource = self.resource(name, rank, 1);
        let place = with(|schedule| {
            schedule.stations.push(Place::new(resource));
            u32::try_from(schedule.stations.len() - 1).expect("few stations")
        });
        Station { resource, place }
    }
}

impl Station {
    /// As [`Resource::serve`]. Returns how often it was suspended.
    #[inline]
    pub fn serve(self, class: Class, stage: Stage, duration: Nanos) -> Operate {
        let work = Work { class, stage, duration, together: None, suspension: None };
        Operate { station: self, work, name: stage.name(), waiting: false }
    }

    /// Says that work of `kind` and `seat` is on its way, which comes [`Operate::together`]. Work
    /// that it goes with and that comes before it waits for it, unless that is more urgent.
    pub fn announce(self, class: Class, kind: u8, seat: u32) {
        let announced = Announced { class, together: Together { kind, seat } };
        with(|schedule| schedule.announce(self.place, announced));
    }

    /// Time that the station was held up to now, or its work suspended.
    pub fn busy(self) -> Nanos {
        self.resource.busy()
    }
}

/// See [`Station::serve`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Operate {
    station: Station,
    work: Work,
    name: &'static str,
    waiting: bool,
}

impl Operate {
    /// Calls what is done meanwhile `name` in place of the stage's name, in a
    /// [`Span`](crate::Span).
    #[inline]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Lets reads of hosts interrupt this, unless it is one: the station goes to them after
    /// `enter`, and this goes on `resume` after none waits any more. `enter` and `resume` go to the
    /// stage, the time between them to [`Stage::Queue`]. It is suspended at most `SUSPENDS_MAX`
    /// times and for at most `BYPASS_MAX` reads in all, and not at all in order of arrival.
    #[inline]
    pub fn suspendable(mut self, suspension: Suspension) -> Self {
        self.work.suspension = Some(suspension);
        self
    }

    /// When other work of this `kind` begins, this goes with it if it waits by then or comes at the
    /// same instant, and if nothing else of its `seat` does. The station is free when the last is
    /// done; all are suspended together.
    #[inline]
    pub fn together(mut self, kind: u8, seat: u32) -> Self {
        self.work.together = Some(Together { kind, seat });
        self
    }
}

impl Future for Operate {
    type Output = u32;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u32> {
        with(|schedule| {
            let current = schedule.current;
            if self.waiting {
                let task = schedule.task(current);
                if task.end_wait() {
                    let suspends = task.suspends;
                    self.waiting = false;
                    return Poll::Ready(suspends);
                }
                return Poll::Pending;
            }
            if let Some(tracer) = &mut schedule.tracer {
                tracer.name(current, self.name);
            }
            schedule.request_station(self.station.place, self.work);
            self.waiting = true;
            Poll::Pending
        })
    }
}

impl Drop for Operate {
    fn drop(&mut self) {
        assert_not_waiting(self.waiting);
    }
}
