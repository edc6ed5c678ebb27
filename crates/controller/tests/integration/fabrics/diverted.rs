//! Commands that another reactor than that of their queue executes. Here the other reactor is a
//! task that takes its time.

use crate::fabrics::host::{KV, Line, World, run_real};
use base::{Nanos, Rng};
use clock::{Stage, Users};
use controller::{Answer, DivertedCommand, DivertedOutcome, DivertedQueue, Placement, Work};
use engine::Ack;
use spec::{Command, Status};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

const BUFFER: Ack = Ack::Buffer { bytes: 1 << 20 };

/// Another reactor, which executes the commands that `diverts` selects.
struct Elsewhere {
    queue: Rc<DivertedQueue>,
    rng: RefCell<Rng>,
    /// The share of the commands that is diverted: of 4.
    quarters: u64,
    /// Commands that have been diverted and not sent.
    unsent: RefCell<Vec<(usize, DivertedCommand)>>,
    /// Commands that have been sent.
    sent: RefCell<Vec<(usize, DivertedCommand)>>,
    answers: Rc<RefCell<BTreeMap<usize, Answer>>>,
    diverted: Cell<usize>,
}

impl Elsewhere {
    fn new(seed: u64, quarters: u64) -> Rc<Self> {
        let answers = Rc::<RefCell<BTreeMap<usize, Answer>>>::default();
        let ended = answers.clone();
        let queue = DivertedQueue::new(move |number, outcome| {
            let answer = ended.borrow_mut().remove(&number).expect("a command ends once");
            // The message takes a while.
            clock::spawn(async move {
                clock::sleep(Nanos(number as u64 % 3 * 700), Stage::Queue).await;
                answer.give(outcome);
            });
        });
        Rc::new(Self {
            queue,
            rng: RefCell::new(Rng::new(seed)),
            quarters,
            unsent: RefCell::default(),
            sent: RefCell::default(),
            answers,
            diverted: Cell::new(0),
        })
    }

    /// Executes what has come, now and then, while the test runs.
    async fn serve(self: Rc<Self>) {
        loop {
            let pause = self.rng.borrow_mut().below(3_000);
            clock::sleep(Nanos(1 + pause), Stage::Queue).await;
            let mut commands = self.sent.take();
            self.queue.execute(&mut commands);
            assert!(commands.is_empty());
        }
    }
}

impl Placement for Elsewhere {
    fn prepare(&self) {}

    fn place(&self, places: &mut [Option<usize>]) -> bool {
        for place in &mut *places {
            *place = (self.rng.borrow_mut().below(4) < self.quarters).then_some(1);
        }
        places.iter().any(Option::is_some)
    }

    fn divert(&self, to: usize, command: DivertedCommand, answer: Answer) {
        assert_eq!(to, 1);
        let number = self.diverted.get();
        self.diverted.set(number + 1);
        self.answers.borrow_mut().insert(number, answer);
        self.unsent.borrow_mut().push((number, command));
    }

    fn flush(&self) {
        self.sent.borrow_mut().append(&mut self.unsent.borrow_mut());
    }

    fn executed(&self, time: Nanos, _: u64) {
        assert_eq!(time, Nanos::ZERO, "no virtual time passes in code");
    }
}

/// Runs `test` with an admin and an I/O queue, of whose commands the other reactor gets a share.
fn run_diverted(
    ack: Ack,
    seed: u64,
    quarters: u64,
    mut test: impl AsyncFnMut(World, [Line; 2], Rc<Elsewhere>),
) {
    run_real(ack, async |world: World| {
        let elsewhere = Elsewhere::new(seed, quarters);
        clock::spawn(elsewhere.clone().serve());
        let world = world.placed_by(elsewhere.clone());
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        test(world, [admin, io], elsewhere).await;
    });
}

/// What the response to a command must be.
enum Expected {
    Stored,
    Value(Option<Vec<u8>>),
}

/// A host with a model of what it has stored.
struct Host {
    io: Line,
    rng: Rng,
    model: BTreeMap<u8, Vec<u8>>,
    expected: BTreeMap<u16, Expected>,
}

impl Host {
    /// Sends commands at once, each of a key of its own, so that no order is expected.
    fn send_some(&mut self) {
        for key in 0..u8::try_from(self.rng.below(12)).expect("below 12") {
            let id = self.io.next_id();
            let expected = if self.rng.below(2) == 0 {
                let value =
                    vec![key; usize::try_from(1 + self.rng.below(9_000)).expect("below 9,001")];
                self.io.hold_store(&[key], &value);
                self.model.insert(key, value);
                Expected::Stored
            } else {
                self.io.hold_retrieve(&[key], 10_000);
                Expected::Value(self.model.get(&key).cloned())
            };
            self.expected.insert(id, expected);
        }
        self.io.queue.execute_held();
    }

    async fn await_all(&mut self) {
        while !self.expected.is_empty() {
            let response = self.io.next().await.expect("the connection is there");
            let (id, status) = (response.entry.command_id(), response.entry.status());
            match self.expected.remove(&id).expect("each command is answered once") {
                Expected::Stored => assert_eq!(status, Status::SUCCESS),
                Expected::Value(None) => assert_eq!(status, Status::KEY_DOES_NOT_EXIST),
                Expected::Value(Some(value)) => {
                    assert_eq!(status, Status::SUCCESS);
                    assert_eq!(response.data.bytes(), Some(&value[..]));
                }
            }
        }
        assert_eq!(self.io.waiting(), 0);
    }
}

#[test]
fn a_host_sees_no_difference_in_any_order_of_messages() {
    let mut diverted = 0;
    for seed in 0..60 {
        let ack = if seed % 2 == 0 { BUFFER } else { Ack::Program };
        run_diverted(ack, seed, 1 + seed % 4, async |world, [_admin, io], elsewhere| {
            let (rng, model) = (Rng::new(seed), BTreeMap::new());
            let mut host = Host { io, rng, model, expected: BTreeMap::new() };
            for _ in 0..40 {
                host.send_some();
                host.await_all().await;
            }
            diverted += elsewhere.diverted.get();
            assert!(elsewhere.answers.borrow().is_empty());
            assert_eq!(world.subsystems.census()[0].queues[1].in_flight, 0);
        });
    }
    assert!(diverted > 5_000, "{diverted}");
}

#[test]
fn diverted_commands_count_as_those_of_their_queue() {
    run_diverted(BUFFER, 1, 4, async |world, [_admin, io], elsewhere| {
        io.hold_store(b"a", b"value");
        io.queue.execute_held();
        assert_eq!(io.waiting(), 0);
        assert_eq!(world.subsystems.census()[0].queues[1].in_flight, 1);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::SUCCESS);
        io.hold_retrieve(b"a", 3);
        io.hold_retrieve(b"b", 3);
        io.queue.execute_held();
        let (part, none) = (io.next().await.unwrap(), io.next().await.unwrap());
        let mut responses = [part, none];
        responses.sort_by_key(|response| response.entry.command_id());
        let [part, none] = responses;
        assert_eq!((part.entry.result(), part.data.bytes().unwrap()), (5, &b"val"[..]));
        assert_eq!(none.entry.status(), Status::KEY_DOES_NOT_EXIST);
        assert_eq!(elsewhere.diverted.get(), 3);
        let expected = Work { reads: 1, writes: 1, bytes_read: 3, bytes_written: 5, others: 1 };
        assert_eq!(world.subsystems.work_of(&world.device), expected);
        assert_eq!(world.subsystems.census()[0].queues[1].in_flight, 0);
    });
}

#[test]
fn an_aborted_command_is_answered_once_and_still_executed() {
    run_diverted(BUFFER, 1, 4, async |_world, [admin, io], _elsewhere| {
        let id = io.next_id();
        io.hold_store(b"a", b"value");
        io.queue.execute_held();
        assert_eq!(admin.result(Command::abort(1, id)).await, 0, "it is outstanding");
        assert_eq!(io.next().await.unwrap().entry.status(), Status::ABORT_REQUESTED);
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
        assert_eq!(io.waiting(), 0, "the outcome is dropped");
        assert_eq!(io.retrieve(b"a", 9).await.data.bytes().unwrap(), b"value");
    });
}

#[test]
fn a_queue_that_closes_ends_with_its_last_diverted_command() {
    for ack in [BUFFER, Ack::Program] {
        run_real(ack, async |world: World| {
            let (elsewhere, users) = (Elsewhere::new(1, 4), Users::default());
            clock::spawn(elsewhere.clone().serve());
            let (_admin, id) = world.admin().await;
            let world = world.in_reactor(0, users.clone()).placed_by(elsewhere.clone());
            let io = world.io(id, 1).await;
            for key in 0..20 {
                io.hold_store(&[key], b"value");
            }
            io.queue.execute_held();
            io.queue.close();
            assert_eq!(elsewhere.answers.borrow().len(), 20);
            drop(io);
            users.end(Stage::Queue).await;
            assert!(elsewhere.answers.borrow().is_empty(), "all have ended");
            let io = world.io(id, 2).await;
            for key in 0..20 {
                assert_eq!(io.retrieve(&[key], 9).await.data.bytes().unwrap(), b"value");
            }
        });
    }
}

#[test]
fn a_command_is_refused_if_its_reactor_has_ended() {
    run_diverted(BUFFER, 1, 4, async |_world, [_admin, io], elsewhere| {
        io.hold_store(b"a", b"value");
        io.queue.execute_held();
        let (_, answer) = elsewhere.answers.borrow_mut().pop_first().unwrap();
        drop(elsewhere.sent.take());
        answer.give(DivertedOutcome::lost());
        assert_eq!(io.next().await.unwrap().entry.status(), Status::INTERNAL_ERROR);
        assert_eq!(io.status(Command::flush(KV)).await, Status::SUCCESS);
    });
}
