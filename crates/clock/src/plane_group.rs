use crate::class::Class;
use crate::schedule::Schedule;
use crate::stage::Stage;
use crate::station_state::{
    Announced, Loader, Member, Outgoing, StationState, Suspension, Together, Waiter, Work,
};
use crate::task_state::{Task, Wait};
use crate::timer::Timer;
use base::Nanos;
use base::limits::{BYPASS_MAX, SUSPENDS_MAX};

impl Schedule {
    /// Announces work of the current task if its data may move now. Otherwise starts a wait until
    /// it may and returns false.
    pub(crate) fn request_load(&mut self, station: u32, announced: Announced) -> bool {
        let (now, current) = (self.now, self.current);
        self.at_station(station, |state, schedule| {
            if state.may_load(announced.together, now) {
                state.incoming.push(announced);
                return true;
            }
            state.start_wait(announced.class, schedule);
            state.loaders.push(Loader { task: current, announced });
            false
        })
    }

    /// Removes work whose data has left its register, and starts work that waited for the register.
    pub(crate) fn end_unload(&mut self, station: u32, announced: Announced) {
        self.at_station(station, |state, schedule| {
            let at = state.outgoing.iter().position(|outgoing| outgoing.work == announced);
            state.outgoing.remove(at.expect("work that unloads is noted when it is done"));
            let may_begin = state.begin_if_free(station, schedule);
            let suspends = |waiter: &Waiter| state.may_suspend(&waiter.work, schedule);
            if !may_begin && state.waiters.iter().any(suspends) {
                state.suspend(station, schedule);
            }
        });
    }

    /// Adds work whose data moves into a register now.
    pub(crate) fn announce(&mut self, station: u32, announced: Announced) {
        self.stations[station as usize].incoming.push(announced);
    }

    /// Starts the current task's wait for a station, and its work if it need not wait.
    pub(crate) fn request_station(&mut self, station: u32, work: Work) {
        let current = self.current;
        self.at_station(station, |state, schedule| {
            state.start_wait(work.class, schedule);
            let task = schedule.task(current);
            (task.stage, task.suspends) = (work.stage, 0);
            state.request(station, Waiter { task: current, work }, schedule);
        });
    }

    /// Handles a timer of a station. Returns whether it ends the work of its task.
    pub(crate) fn fire_station(&mut self, timer: &Timer) -> bool {
        let station = timer.resource - Timer::STATION;
        self.at_station(station, |state, schedule| {
            if state.entering == Some(timer.tie) {
                state.stand_still(station, schedule);
                return false;
            }
            let of_timer = |member: &Member| (member.task, member.tie) == (timer.task, timer.tie);
            let Some(at) = state.group.iter().position(of_timer) else { return false };
            let member = state.group.remove(at);
            state.leave(&member, schedule);
            state.note_unload(&member.work);
            if state.group.is_empty() {
                state.hand_on(station, schedule);
            }
            true
        })
    }

    /// Calls `f` with the station lifted out of the schedule.
    fn at_station<T>(
        &mut self,
        station: u32,
        f: impl FnOnce(&mut StationState, &mut Self) -> T,
    ) -> T {
        let mut state = std::mem::take(&mut self.stations[station as usize]);
        let result = f(&mut state, self);
        self.stations[station as usize] = state;
        result
    }
}

impl StationState {
    /// Starts a wait of the current task in this station's queue.
    fn start_wait(&self, class: Class, schedule: &mut Schedule) {
        let (now, current) = (schedule.now, schedule.current);
        let queue = &schedule.queues[self.queue];
        let (rank, gc_mark) = (queue.rank, queue.gc_time(now));
        let task = schedule.task(current);
        task.start_wait(Wait::Serve(self.index()), rank);
        (task.class, task.wait_stage) = (class, Stage::Queue);
        (task.since, task.gc_mark) = (now, gc_mark);
    }

    fn request(&mut self, station: u32, waiter: Waiter, schedule: &mut Schedule) {
        self.arrived(&waiter.work);
        if self.began == Some(schedule.now) && self.may_join(&waiter.work) {
            self.start(station, waiter, schedule);
            return;
        }
        self.waiters.push(waiter);
        if !self.begin_if_free(station, schedule) && self.may_suspend(&waiter.work, schedule) {
            self.suspend(station, schedule);
        }
    }

    /// Begins work that waits, if the station is free. Returns whether it is.
    fn begin_if_free(&mut self, station: u32, schedule: &mut Schedule) -> bool {
        let is_free = self.group.is_empty() && self.suspended.is_empty();
        if is_free && let Some(at) = self.next(schedule) {
            schedule.queues[self.queue].occupy(schedule.now);
            let waiter = self.waiters.remove(at);
            self.begin(station, waiter, schedule);
        }
        is_free
    }

    /// True when data of `work` may move into the only register of its plane: no work of its kind
    /// holds the station, or such work began at this instant and `work` can still join it.
    fn may_load(&self, work: Together, now: Nanos) -> bool {
        let is_alike =
            |member: &Member| member.work.together.is_some_and(|its| its.kind == work.kind);
        let is_busy = self.group.iter().chain(&self.suspended).any(is_alike);
        !is_busy || (self.began == Some(now) && self.suspended.is_empty() && self.is_beside(work))
    }

    /// Has all loaders move their data. Announces them at once, so that work waiting for the
    /// station waits for them too.
    fn release_loaders(&mut self, schedule: &mut Schedule) {
        let now = schedule.now;
        let gc_time = schedule.queues[self.queue].gc_time(now);
        for Loader { task, announced } in self.loaders.drain(..) {
            self.incoming.push(announced);
            schedule.task(task).end_queueing(now, gc_time);
            schedule.task(task).fired = true;
            schedule.make_ready(task);
        }
    }

    /// Notes that data of `work`, which is done, moves out of its register.
    fn note_unload(&mut self, work: &Work) {
        if let Some(together) = work.together.filter(|_| work.unloads.is_some()) {
            let work = Announced { class: work.class, together };
            self.outgoing.push(Outgoing { work, group: self.groups });
        }
    }

    /// Removes `work` from the announced work.
    fn arrived(&mut self, work: &Work) {
        let Some(together) = work.together else { return };
        let announced = Announced { class: work.class, together };
        if let Some(at) = self.incoming.iter().position(|incoming| *incoming == announced) {
            self.incoming.swap_remove(at);
        }
    }

    /// True when `work` waits for data of its kind that is no less urgent: data that moves in for a
    /// plane that has no work here yet, or data that moves out. Each wait for data that moves in
    /// adds a plane, so it ends.
    fn awaits_others(&self, work: &Work) -> bool {
        let Some(Together { kind, .. }) = work.together else { return false };
        let is_here = |together| self.waiters.iter().any(|w| w.work.together == Some(together));
        let counts = |other: &Announced| other.together.kind == kind && other.class <= work.class;
        let mut incoming = self.incoming.iter();
        incoming.any(|other| counts(other) && !is_here(other.together))
            || work.unloads.is_some_and(|registers| self.unload_groups(counts, registers))
    }

    /// True when data of at least `registers` groups moves out, counting only work for which
    /// `counts` is true.
    fn unload_groups(&self, counts: impl Fn(&Announced) -> bool, registers: u32) -> bool {
        let outgoing = self.outgoing.iter().filter(|outgoing| counts(&outgoing.work));
        // Groups end in the order of their numbers.
        let (mut groups, mut last) = (0, None);
        for Outgoing { group, .. } in outgoing {
            groups += u32::from(last != Some(group));
            last = Some(group);
        }
        groups >= registers
    }

    /// Gives the station to the next work, or frees it.
    fn hand_on(&mut self, station: u32, schedule: &mut Schedule) {
        let suspended = !self.suspended.is_empty();
        if !suspended {
            self.release_loaders(schedule);
        }
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

    /// Returns the most urgent waiter that awaits no other work, or the oldest after `BYPASS_MAX`
    /// bypasses.
    fn next(&mut self, schedule: &Schedule) -> Option<usize> {
        let is_set = |work: &Work| !self.awaits_others(work);
        let first = self.most_urgent(schedule, is_set)?;
        let oldest = self.waiters.iter().position(|waiter| is_set(&waiter.work))?;
        let passes = first != oldest && self.bypassed < BYPASS_MAX;
        self.bypassed = if passes { self.bypassed + 1 } else { 0 };
        Some(if passes { first } else { oldest })
    }

    /// Returns the oldest read of a host that awaits no other work. `None` when enough reads have
    /// passed other waiters or the suspended work.
    fn next_read(&mut self) -> Option<usize> {
        let is_read = |waiter: &Waiter| {
            waiter.work.class == Class::HostRead && !self.awaits_others(&waiter.work)
        };
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

    /// Starts a group of `waiter` and of all waiting work that can join it.
    fn begin(&mut self, station: u32, waiter: Waiter, schedule: &mut Schedule) {
        self.began = Some(schedule.now);
        self.groups += 1;
        if self.suspended.is_empty() {
            (self.suspends, self.passed) = (0, 0);
        }
        self.start(station, waiter, schedule);
        while let Some(at) = self.most_urgent(schedule, |work| self.may_join(work)) {
            let waiter = self.waiters.remove(at);
            self.start(station, waiter, schedule);
        }
    }

    /// True when `work` can join the group. While work is suspended only reads of hosts can.
    fn may_join(&self, work: &Work) -> bool {
        let may = self.suspended.is_empty() || work.class == Class::HostRead;
        may && work.together.is_some_and(|together| self.is_beside(together))
    }

    /// True when all of the group is of this kind, on other planes.
    fn is_beside(&self, Together { kind, plane }: Together) -> bool {
        let beside = |other: &Member| {
            other.work.together.is_some_and(|its| its.kind == kind && its.plane != plane)
        };
        !self.group.is_empty() && self.group.iter().all(beside)
    }

    fn start(&mut self, station: u32, Waiter { task, work }: Waiter, schedule: &mut Schedule) {
        let now = schedule.now;
        let gc_time = schedule.queues[self.queue].gc_time(now);
        schedule.task(task).end_queueing(now, gc_time);
        schedule.task(task).stages.add(work.stage, work.duration);
        self.take(station, Member { task, work, end: now + work.duration, tie: 0 }, schedule);
    }

    /// Gives the station to `member` until its end.
    fn take(&mut self, station: u32, mut member: Member, schedule: &mut Schedule) {
        let now = schedule.now;
        schedule.queues[self.queue].begin_work(member.work.class, now);
        schedule.trace_taken(self.index(), member.task);
        member.tie = schedule.set_timer(member.end, member.task, Timer::STATION + station);
        self.group.push(member);
    }

    fn leave(&self, member: &Member, schedule: &mut Schedule) {
        let now = schedule.now;
        schedule.queues[self.queue].end_work(member.work.class, now);
        if let Some(tracer) = &mut schedule.tracer {
            tracer.gave_back(self.index(), member.task, now);
        }
    }

    /// True when the waiting `work` suspends the group.
    fn may_suspend(&self, work: &Work, schedule: &Schedule) -> bool {
        let yields = |member: &Member| {
            member.work.class != Class::HostRead && member.work.suspension.is_some()
        };
        let passes = self.waiters.len() > 1;
        work.class == Class::HostRead
            && !self.awaits_others(work)
            && !schedule.queues[self.queue].by_arrival
            && self.suspended.is_empty()
            && self.suspends < SUSPENDS_MAX
            && self.passed < BYPASS_MAX
            && !(passes && self.bypassed == BYPASS_MAX)
            && self.group.iter().all(yields)
            && self.group.iter().any(|member| member.end > schedule.now)
    }

    fn suspend(&mut self, station: u32, schedule: &mut Schedule) {
        let enter = longest(&self.group, |suspension| suspension.enter);
        self.suspends += 1;
        self.suspended.append(&mut self.group);
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

    /// Puts the suspension into effect.
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
