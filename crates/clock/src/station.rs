use crate::class::Class;
use crate::park::assert_not_waiting;
use crate::queue::Group;
use crate::rank::Rank;
use crate::resource::Resource;
use crate::schedule::with;
use crate::stage::Stage;
use crate::station_state::{Announced, StationState, Suspension, Together, Work};
use base::Nanos;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A resource of one unit whose work others may join and reads of hosts may interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Station {
    resource: Resource,
    /// Its place among the stations of the schedule.
    index: u32,
}

impl Group {
    /// Returns a free station. `name` appears in reports.
    pub fn station(self, name: &'static str, rank: Rank) -> Station {
        let resource = self.resource(name, rank, 1);
        let index = with(|schedule| {
            schedule.stations.push(StationState::new(resource.index()));
            u32::try_from(schedule.stations.len() - 1).expect("few stations")
        });
        Station { resource, index }
    }
}

impl Station {
    /// As [`Resource::serve`]. Returns how often the work was suspended.
    #[inline]
    pub fn serve(self, class: Class, stage: Stage, duration: Nanos) -> Operate {
        let (together, unloads, suspension) = (None, None, None);
        let work = Work { class, stage, duration, together, unloads, suspension };
        Operate { station: self, work, name: stage.name(), waiting: false }
    }

    /// Announces work that comes [`Operate::together`] as soon as its data has moved in. Work of
    /// the same kind on other planes waits for it, unless that work is more urgent.
    pub fn announce(self, class: Class, kind: u8, plane: u32) {
        let announced = Announced { class, together: Together { kind, plane } };
        with(|schedule| schedule.announce(self.index, announced));
    }

    /// As [`Self::announce`], for a plane with one register. First waits until no work of this kind
    /// holds the station: the array cannot work while its only register loads.
    pub fn load(self, class: Class, kind: u8, plane: u32) -> Load {
        let announced = Announced { class, together: Together { kind, plane } };
        Load { station: self, announced, waiting: false }
    }

    /// Ends the move of data that began when work with [`Operate::unloads`] was done.
    pub fn end_unload(self, class: Class, kind: u8, plane: u32) {
        let announced = Announced { class, together: Together { kind, plane } };
        with(|schedule| schedule.end_unload(self.index, announced));
    }

    /// Returns the time for which the station was held, or its work suspended, so far.
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
    /// Names the work `name` in place of the stage's name, in a [`Span`](crate::Span).
    #[inline]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Lets reads of hosts interrupt this, unless it is one: the station goes to them after
    /// `enter`, and this resumes `resume` after the last of them. `enter` and `resume` go to the
    /// stage, the time between them to [`Stage::Queue`]. It is suspended at most `SUSPENDS_MAX`
    /// times and for at most `BYPASS_MAX` reads in all, and not at all in order of arrival.
    #[inline]
    pub fn suspendable(mut self, suspension: Suspension) -> Self {
        self.work.suspension = Some(suspension);
        self
    }

    /// Lets this work share the station with work of the same `kind` on other planes. It joins work
    /// that begins while it waits or at the instant of its arrival. The station is free when the
    /// last is done. A suspension affects all of them.
    #[inline]
    pub fn together(mut self, kind: u8, plane: u32) -> Self {
        self.work.together = Some(Together { kind, plane });
        self
    }

    /// Moves data out of one of the `registers` of the plane after the work, until
    /// [`Station::end_unload`]. Registers of all planes change together. Work of the same kind
    /// waits while data of `registers` groups moves, unless it is more urgent.
    #[inline]
    pub fn unloads(mut self, registers: u32) -> Self {
        self.work.unloads = Some(registers);
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
            schedule.request_station(self.station.index, self.work);
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

/// See [`Station::load`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Load {
    station: Station,
    announced: Announced,
    waiting: bool,
}

impl Future for Load {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        with(|schedule| {
            if self.waiting {
                let current = schedule.current;
                if !schedule.task(current).end_wait() {
                    return Poll::Pending;
                }
                self.waiting = false;
                return Poll::Ready(());
            }
            if schedule.request_load(self.station.index, self.announced) {
                return Poll::Ready(());
            }
            self.waiting = true;
            Poll::Pending
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        assert_not_waiting(self.waiting);
    }
}
