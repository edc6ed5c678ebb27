//! Eventfds of vectors.

use crate::device::RAISE;
use crate::raw_client::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

const NONE: u32 = 0x01;
const BOOL: u32 = 0x02;
const EVENTFD: u32 = 0x04;
const MASK: u32 = 0x08;
const UNMASK: u32 = 0x10;
const TRIGGER: u32 = 0x20;

fn eventfds(count: usize) -> Vec<OwnedFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    (0..count).map(|_| eventfd(0, flags).unwrap()).collect()
}

/// Returns how often an eventfd was raised since the last call.
fn count(eventfd: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    match rustix::io::read(eventfd, &mut bytes) {
        Ok(_) => u64::from_ne_bytes(bytes),
        Err(Errno::AGAIN) => 0,
        Err(error) => panic!("{error}"),
    }
}

fn counts(eventfds: &[OwnedFd]) -> Vec<u64> {
    eventfds.iter().map(count).collect()
}

impl RawClient {
    fn set_irqs(
        &mut self,
        flags: u32,
        (index, start, count): (u32, u32, u32),
        fds: &[OwnedFd],
    ) -> Reply {
        let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
        self.call(SET_IRQS, &payload!(20_u32, flags, index, start, count), &fds)
    }

    fn set_bools(&mut self, (index, start, count): (u32, u32, u32), bools: &[u8]) -> Reply {
        let argsz = 20 + u32::try_from(bools.len()).unwrap();
        let fixed = payload!(argsz, BOOL | TRIGGER, index, start, count);
        self.call(SET_IRQS, &[&fixed[..], bools].concat(), &[])
    }

    fn raise(&mut self, vector: u32) {
        self.set(RAISE, &vector.to_le_bytes());
    }
}

#[test]
fn vectors_are_set_one_by_one_and_in_ranges() {
    let eventfds = eventfds(20);
    let (_server, mut client) = RawClient::start();
    for (start, end) in [(0, 1), (1, 2), (2, 18), (18, 20)] {
        let fds = &eventfds[start as usize..end as usize];
        assert_eq!(client.set_irqs(EVENTFD | TRIGGER, (2, start, end - start), fds), Ok(vec![]));
    }
    for vector in 0..20 {
        client.raise(vector);
        client.raise(vector);
        let expected: Vec<u64> = (0..20).map(|other| if other == vector { 2 } else { 0 }).collect();
        assert_eq!(counts(&eventfds), expected);
    }
    client.raise(20);
    client.raise(65_535);
    assert_eq!(counts(&eventfds), [0; 20]);
}

#[test]
fn vectors_without_eventfds_are_not_raised() {
    let eventfds = eventfds(4);
    let (_server, mut client) = RawClient::start();
    client.raise(0);
    assert!(client.set_irqs(EVENTFD | TRIGGER, (2, 0, 4), &eventfds).is_ok());
    assert!(client.set_irqs(EVENTFD | TRIGGER, (2, 1, 2), &[]).is_ok());
    (0..4).for_each(|vector| client.raise(vector));
    assert_eq!(counts(&eventfds), [1, 0, 0, 1]);
    assert!(client.set_irqs(EVENTFD | TRIGGER, (2, 3, 1), &eventfds[..1]).is_ok());
    (0..4).for_each(|vector| client.raise(vector));
    assert_eq!(counts(&eventfds), [2, 0, 0, 0], "vector 3 has another eventfd");
    assert!(client.set_irqs(NONE | TRIGGER, (2, 0, 0), &[]).is_ok());
    (0..4).for_each(|vector| client.raise(vector));
    assert_eq!(counts(&eventfds), [0; 4]);
}

#[test]
fn the_client_triggers_interrupts_itself() {
    let eventfds = eventfds(4);
    let (_server, mut client) = RawClient::start();
    assert!(client.set_irqs(EVENTFD | TRIGGER, (2, 4, 4), &eventfds).is_ok());
    assert!(client.set_irqs(NONE | TRIGGER, (2, 3, 3), &[]).is_ok());
    assert_eq!(counts(&eventfds), [1, 1, 0, 0]);
    assert!(client.set_bools((2, 4, 4), &[0, 1, 0, 9]).is_ok());
    assert_eq!(counts(&eventfds), [0, 1, 0, 1]);
}

#[test]
fn eventfds_of_errors_and_requests_are_kept() {
    let eventfds = eventfds(2);
    let (_server, mut client) = RawClient::start();
    for index in [3, 4] {
        assert!(client.set_irqs(EVENTFD | TRIGGER, (index, 0, 1), &eventfds[..1]).is_ok());
        assert_eq!(client.set_irqs(EVENTFD | TRIGGER, (index, 0, 2), &eventfds), Err(Errno::INVAL));
        assert!(client.set_irqs(NONE | TRIGGER, (index, 0, 0), &[]).is_ok());
    }
    (0..20).for_each(|vector| client.raise(vector));
    assert_eq!(counts(&eventfds), [0; 2]);
}

#[test]
fn other_settings_are_refused() {
    let eventfds = eventfds(1);
    let (_server, mut client) = RawClient::start();
    assert!(client.set_irqs(EVENTFD | TRIGGER, (2, 0, 1), &eventfds).is_ok());
    for (flags, range) in [
        (NONE | MASK, (2, 0, 1)),
        (NONE | UNMASK, (2, 0, 1)),
        (NONE, (2, 0, 1)),
        (NONE, (2, 0, 0)),
        (TRIGGER, (2, 0, 1)),
        (NONE | EVENTFD | TRIGGER, (2, 0, 1)),
        (NONE | TRIGGER | MASK, (2, 0, 0)),
        (NONE | TRIGGER | 0x40, (2, 0, 1)),
        (NONE | TRIGGER, (2, 0, 21)),
        (NONE | TRIGGER, (2, 20, 1)),
        (NONE | TRIGGER, (2, 1, u32::MAX)),
        (NONE | TRIGGER, (2, u32::MAX, 1)),
        (NONE | TRIGGER, (2, 3, 0)),
        (NONE | TRIGGER, (0, 0, 1)),
        (NONE | TRIGGER, (1, 0, 1)),
        (EVENTFD | TRIGGER, (2, 0, 0)),
        (EVENTFD | TRIGGER, (0, 0, 1)),
        (EVENTFD | MASK, (2, 0, 1)),
    ] {
        assert_eq!(client.set_irqs(flags, range, &[]), Err(Errno::INVAL), "{flags:#x} {range:?}");
    }
    assert_eq!(client.set_irqs(NONE | TRIGGER, (2, 0, 1), &eventfds), Err(Errno::INVAL));
    assert_eq!(client.set_irqs(EVENTFD | TRIGGER, (1, 0, 1), &eventfds), Err(Errno::INVAL));
    for (range, bools) in [((2, 0, 2), &[1][..]), ((2, 0, 1), &[1, 1]), ((2, 19, 2), &[1, 1])] {
        assert_eq!(client.set_bools(range, bools), Err(Errno::INVAL));
    }
    for index in [0, 1, 2] {
        for action in [TRIGGER, MASK, UNMASK] {
            if (index, action) != (2, TRIGGER) {
                assert_eq!(client.set_irqs(NONE | action, (index, 0, 0), &[]), Ok(vec![]));
            }
        }
    }
    client.raise(0);
    assert_eq!(counts(&eventfds), [1], "what was set before stays");
}

#[test]
fn a_full_eventfd_does_not_stop_the_server() {
    let eventfd = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    rustix::io::write(&eventfd, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    let (_server, mut client) = RawClient::start();
    assert!(client.set_irqs(EVENTFD | TRIGGER, (2, 0, 1), &[eventfd]).is_ok());
    client.raise(0);
    client.check_in_step();
}
