use crate::class::Class;
use crate::resource::Resource;
use crate::schedule::Schedule;
use crate::stage::Stage;
use crate::station::Suspension;
use crate::task::{Task, Wait};
use crate::timer::Timer;
use base::Nanos;
use base::limits::{BYPASS_MAX, SUSPENDS_MAX};

/// What a task wants of a station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) class: Class,
    pub(crate) stage: Stage,
    pub(crate) duration: Nanos,
    pub(crate) together: Option<Together>,
    pub(crate) suspension: Option<Suspension>,
}

/// What work goes with other work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Together {
    pub(crate) kind: u8,
    pub(crate) seat: u32,
}

/// Work that was announced and has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) class: Class,
    pub(crate) together: Together,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    task: u32,
    work: Work,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    task: u32,
    work: Work,
    /// When it is done; while suspended, how much is left.
    end: Nanos,
    /// Tells its timer from those that it had before it was suspended.
    tie: u64,
}

/// A station's waiters and who has it.
#[derive(Debug, Default)]
pub(crate) struct Place {
    queue: usize,
    /// In order of arrival.
    waiters: Vec<Waiter>,
    coming: Vec<Announced>,
    pub(crate) bypassed: u32,
    /// Who has the station.
    party: Vec<Member>,
    /// When the party began; nobody joins one that was suspended.
    began: Option<Nanos>,
    /// Who had it before and is suspended.
    suspended: Vec<Member>,
    /// The timer at which those stand still, and when they did.
    entering: Option<u64>,
    since: Nanos,
    /// How often they were suspended since they began, and for how many reads.
    suspends: u32,
    passed: u32,
}

impl Schedule {
    /// Work is on its way to a station.
    pub(crate) fn announce(&mut self, station: u32, announced: Announced) {
        self.stations[station as usize].coming.push(announced);
    }

    /// Starts the current task's wait for a station, and its work if it need not wait.
    pub(crate) fn request_station(&mut self, station: u32, work: Work) {
        let (now, current) = (self.now, self.current);
        self.at_station(station, |place, schedule| {
            let queue = &schedule.queues[place.queue];
            let (rank, gc_mark) = (queue.rank, queue.gc_time(now));
            let task = schedule.task(current);
            task.start_wait(Wait::Serve(place.index()), rank);
            (task.class, task.stage) = (work.class, work.stage);
            (task.wait_stage, task.suspends) = (Stage::Queue, 0);
            (task.since, task.gc_mark) = (now, gc_mark);
            place.request(station, Waiter { task: current, work }, schedule);
        });
    }

    /// A timer of a station fires. Returns whether it ends the work of its task.
    pub(crate) fn fire_station(&mut self, timer: &Timer) -> bool {
        let station = timer.resource - Timer::STATION;
        self.at_station(station, |place, schedule| {
            if place.entering == Some(timer.tie) {
                place.stand_still(station, schedule);
                return false;
            }
            let of_timer = |member: &Member| (member.task, member.tie) == (timer.task, timer.tie);
            let Some(at) = place.party.iter().position(of_timer) else { return false };
            let member = place.party.remove(at);
            place.leave(&member, schedule);
            if place.party.is_empty() {
                place.hand_on(station, schedule);
            }
            true
        })
    }

    /// Calls `f` with the station lifted out of the schedule.
    fn at_station<T>(&mut self, station: u32, f: impl FnOnce(&mut Place, &mut Self) -> T) -> T {
        let mut place = std::mem::take(&mut self.stations[station as usize]);
        let result = f(&mut place, self);
        self.stations[station as usize] = place;
        result
    }
}

impl Place {
    pub(crate) fn new(resource: Resource) -> Self {
        Self { queue: resource.index() as usize, ..Self::default() }
    }

    /// True when `task` waits for this station, whose queue is number `queue`.
    pub(crate) fn has_waiter(&self, queue: u32, task: u32) -> bool {
        self.queue == queue as usize && self.waiters.iter().any(|waiter| waiter.task == task)
    }

    fn index(&self) -> u32 {
        u32::try_from(self.queue).expect("few resources")
    }

    fn request(&mut self, station: u32, waiter: Waiter, schedule: &mut Schedule) {
        self.arrived(&waiter.work);
        if self.began == Some(schedule.now) && self.may_join(&waiter.work) {
            self.start(station, waiter, schedule);
            return;
        }
        self.waiters.push(waiter);
        if self.party.is_empty() && self.suspended.is_empty() {
            if let Some(at) = self.next(schedule) {
                schedule.queues[self.queue].occupy(schedule.now);
                let waiter = self.waiters.remove(at);
                self.begin(station, waiter, schedule);
            }
        } else if self.may_suspend(&waiter.work, schedule) {
            self.suspend(station, schedule);
        }
    }

    /// Strikes `work` off what is on its way.
    fn arrived(&mut self, work: &Work) {
        let Some(together) = work.together else { return };
        let announced = Announced { class: work.class, together };
        if let Some(at) = self.coming.iter().position(|coming| *coming == announced) {
            self.coming.swap_remove(at);
        }
    }

    /// True when something is on its way that `work` goes with, no less urgent than it, and of a
    /// seat that has nothing here yet. So each wait adds a seat, and all seats end it.
    fn awaits_others(&self, work: &Work) -> bool {
        let Some(Together { kind, .. }) = work.together else { return false };
        let is_here = |together| self.waiters.iter().any(|w| w.work.together == Some(together));
        self.coming.iter().any(|coming| {
            coming.together.kind == kind && coming.class <= work.class && !is_here(coming.together)
        })
    }

    /// Gives the station to whoever is next.
    fn hand_on(&mut self, station: u32, schedule: &mut Schedule) {
        let suspended = !self.suspended.is_empty();
        let next = if suspended { self.next_read() } else { self.next(schedule) };
        match next {
            Some(at) => {
                let waiter = self.waiters.remove(at);
                self.begin(station, waiter, schedule);
            }
            None if suspended => self.resume(station, schedule),
            None => schedule.queues[self.queue].vacate(schedule.now),
        }
    }

    /// The most urgent waiter that awaits nobody else, unless it would pass others too often; then
    /// the oldest.
    fn next(&mut self, schedule: &Schedule) -> Option<usize> {
        let is_set = |work: &Work| !self.awaits_others(work);
        let first = self.most_urgent(schedule, is_set)?;
        let oldest = self.waiters.iter().position(|waiter| is_set(&waiter.work))?;
        let passes = first != oldest && self.bypassed < BYPASS_MAX;
        self.bypassed = if passes { self.bypassed + 1 } else { 0 };
        Some(if passes { first } else { oldest })
    }

    /// The oldest read of a host, unless enough have passed the others who wait, or those who are
    /// suspended.
    fn next_read(&mut self) -> Option<usize> {
        let is_read = |waiter: &Waiter| waiter.work.class == Class::HostRead;
        let read = self.waiters.iter().position(is_read)?;
        if self.passed == BYPASS_MAX || (read > 0 && self.bypassed == BYPASS_MAX) {
            return None;
        }
        self.passed += 1;
        self.bypassed = if read == 0 { 0 } else { self.bypassed + 1 };
        Some(read)
    }

    fn most_urgent(&self, schedule: &Schedule, of: impl Fn(&Work) -> bool) -> Option<usize> {
        let queue = &schedule.queues[self.queue];
        let classes = schedule.groups[queue.group.index()].classes();
        let in_order = |class| classes.iter().position(|other| *other == class);
        let urgency = |class| if queue.by_arrival { None } else { in_order(class) };
        let waiters = self.waiters.iter().enumerate();
        let candidates = waiters.filter(|(_, waiter)| of(&waiter.work));
        candidates.min_by_key(|(at, waiter)| (urgency(waiter.work.class), *at)).map(|(at, _)| at)
    }

    /// Starts a party of `waiter` and of those who go with it.
    fn begin(&mut self, station: u32, waiter: Waiter, schedule: &mut Schedule) {
        self.began = Some(schedule.now);
        if self.suspended.is_empty() {
            (self.suspends, self.passed) = (0, 0);
        }
        self.start(station, waiter, schedule);
        while let Some(at) = self.most_urgent(schedule, |work| self.may_join(work)) {
            let waiter = self.waiters.remove(at);
            self.start(station, waiter, schedule);
        }
    }

    /// True when `work` can go with the party. While others are suspended only reads of hosts do.
    fn may_join(&self, work: &Work) -> bool {
        let Some(Together { kind, seat }) = work.together else { return false };
        let beside = |other: &Member| {
            other.work.together.is_some_and(|its| its.kind == kind && its.seat != seat)
        };
        let may = self.suspended.is_empty() || work.class == Class::HostRead;
        may && !self.party.is_empty() && self.party.iter().all(beside)
    }

    fn start(&mut self, station: u32, Waiter { task, work }: Waiter, schedule: &mut Schedule) {
        let now = schedule.now;
        let gc_time = schedule.queues[self.queue].gc_time(now);
        schedule.task(task).end_queueing(now, gc_time);
        schedule.task(task).stages.add(work.stage, work.duration);
        self.take(station, Member { task, work, end: now + work.duration, tie: 0 }, schedule);
    }

    /// Lets `member` work until its end.
    fn take(&mut self, station: u32, mut member: Member, schedule: &mut Schedule) {
        let now = schedule.now;
        schedule.queues[self.queue].begin_work(member.work.class, now);
        schedule.trace_taken(self.index(), member.task);
        member.tie = schedule.set_timer(member.end, member.task, Timer::STATION + station);
        self.party.push(member);
    }

    fn leave(&self, member: &Member, schedule: &mut Schedule) {
        let now = schedule.now;
        schedule.queues[self.queue].end_work(member.work.class, now);
        if let Some(tracer) = &mut schedule.tracer {
            tracer.gave_back(self.index(), member.task, now);
        }
    }

    /// True when what goes on is to be interrupted for `work`, which waits.
    fn may_suspend(&self, work: &Work, schedule: &Schedule) -> bool {
        let yields = |member: &Member| {
            member.work.class != Class::HostRead && member.work.suspension.is_some()
        };
        let passes = self.waiters.len() > 1;
        work.class == Class::HostRead
            && !schedule.queues[self.queue].by_arrival
            && self.suspended.is_empty()
            && self.suspends < SUSPENDS_MAX
            && self.passed < BYPASS_MAX
            && !(passes && self.bypassed == BYPASS_MAX)
            && self.party.iter().all(yields)
            && self.party.iter().any(|member| member.end > schedule.now)
    }

    fn suspend(&mut self, station: u32, schedule: &mut Schedule) {
        let enter = longest(&self.party, |suspension| suspension.enter);
        self.suspends += 1;
        self.suspended.append(&mut self.party);
        for Member { task, work, end, .. } in &mut self.suspended {
            *end -= schedule.now;
            let Task { stages, suspends, .. } = schedule.task(*task);
            stages.add(work.stage, enter);
            *suspends += 1;
        }
        let task = self.suspended[0].task;
        let at = schedule.now + enter;
        self.entering = Some(schedule.set_timer(at, task, Timer::STATION + station));
    }

    /// Those who were interrupted stand still.
    fn stand_still(&mut self, station: u32, schedule: &mut Schedule) {
        (self.entering, self.since) = (None, schedule.now);
        self.suspended.iter().for_each(|member| self.leave(member, schedule));
        self.hand_on(station, schedule);
    }

    fn resume(&mut self, station: u32, schedule: &mut Schedule) {
        let now = schedule.now;
        let resume = longest(&self.suspended, |suspension| suspension.resume);
        self.began = None;
        for member in std::mem::take(&mut self.suspended) {
            let task = schedule.task(member.task);
            task.stages.add(task.wait_stage, now - self.since);
            task.stages.add(member.work.stage, resume);
            self.take(station, Member { end: now + resume + member.end, ..member }, schedule);
        }
    }
}

fn longest(members: &[Member], time: impl Fn(Suspension) -> Nanos) -> Nanos {
    let suspensions = members.iter().filter_map(|member| member.work.suspension);
    suspensions.map(time).max().unwrap_or(Nanos::ZERO)
}
