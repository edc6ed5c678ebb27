//! I/O queues that move from one reactor to another. Here both are entrances of one reactor.

use crate::fabrics::host::{self, KV, Line, NQN, World, pass, run, run_real};
use base::{Nanos, Rng};
use clock::{Stage, Users};
use controller::Response;
use engine::Ack;
use spec::{Command, Configuration, ConnectAttributes, Status, StoreOptions};

const BUFFER: Ack = Ack::Buffer { bytes: 1 << 20 };
const NOT_ABORTED: u64 = 1;

/// The parts of a response that a host sees: command id, status, result, queue head and data.
type Seen = (u16, Status, u64, u16, Option<Vec<u8>>);

fn seen(response: &Response) -> Seen {
    let entry = response.entry;
    let data = response.data.bytes().map(<[u8]>::to_vec);
    (entry.command_id(), entry.status(), entry.result(), entry.queue_head(), data)
}

/// Executes 400 commands on an I/O queue, and returns what the host sees. The queue moves between
/// two reactors after each `every` commands, except for 0.
async fn replies(world: &World, every: u64, attributes: ConnectAttributes) -> Vec<Seen> {
    let reactors = [3, 4].map(|number| world.in_reactor(number, Users::default()));
    let (_admin, id) = reactors[0].admin().await;
    let mut io = reactors[0].io_of(id, 1, attributes).await;
    let (mut rng, mut replies) = (Rng::new(7), Vec::new());
    for at in 1..=400 {
        let key = rng.below(20).to_le_bytes();
        let value = vec![key[0]; 45 * usize::from(rng.below(200).to_le_bytes()[0])];
        let len = host::len(&value);
        let (command, data) = match rng.below(4) {
            0 => (Command::store(KV, &key, len, StoreOptions::NONE), &value[..]),
            1 => (Command::retrieve(KV, &key, 9_000), &[][..]),
            2 => (Command::exist(KV, &key), &[][..]),
            _ => (Command::delete(KV, &key), &[][..]),
        };
        replies.push(seen(&io.answer(command, data, 9_000).await));
        if every > 0 && at % every == 0 {
            io = io.moved_to(&reactors[usize::from((at / every) % 2 == 1)]);
        }
    }
    replies
}

#[test]
fn queue_that_moves_gives_the_same_replies() {
    for attributes in [ConnectAttributes::NONE, ConnectAttributes::NO_FLOW_CONTROL] {
        let mut all = Vec::new();
        for every in [0, 1, 3, 128] {
            run_real(BUFFER, async |world| {
                all.push(replies(&world, every, attributes).await);
                let by = world.subsystems.work_by_reactor();
                let moved: u64 = by.get(&4).map_or(0, |it| it.reads + it.writes + it.others);
                assert_eq!(moved > 0, every > 0, "the other reactor counts what it executes");
            });
        }
        assert!(all.iter().all(|replies| *replies == all[0]));
    }
}

#[test]
fn queue_leaves_the_users_of_its_reactor() {
    run_real(BUFFER, async |world| {
        let users = [Users::default(), Users::default()];
        let [here, there] = [0, 1].map(|at| world.in_reactor(3 + at, users[at as usize].clone()));
        let (_admin, id) = world.admin().await;
        let io = here.io(id, 1).await;
        assert_eq!(io.store(b"key", b"value").await, Status::SUCCESS);
        // A task executes this one, and then waits for the next.
        assert_eq!(io.status(Command::exist(KV, b"key")).await, Status::SUCCESS);
        let io = io.moved_to(&there);
        // Returns when the reactor has no queue.
        users[0].end(Stage::Queue).await;
        assert_eq!(io.retrieve(b"key", 9).await.data.bytes(), Some(&b"value"[..]));
        io.queue.close();
        drop(io);
        users[1].end(Stage::Queue).await;
    });
}

#[test]
fn queue_with_a_command_in_flight_stays() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        assert!(io.queue.may_move());
        let closed = world.gate.close();
        let store = io.send(Command::store(KV, b"key", 5, StoreOptions::NONE), b"value", 0);
        assert!(io.queue.detach().is_none());
        // An aborted command is answered, and is in flight until it ends.
        assert_eq!(admin.result(Command::abort(1, store)).await, 0);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::ABORT_REQUESTED);
        assert!(io.queue.detach().is_none());
        drop(closed);
        pass(Nanos::from_millis(1)).await;
        let io = io.moved_to(&world);
        assert_eq!(io.retrieve(b"key", 9).await.data.bytes(), Some(&b"value"[..]));
    });
}

#[test]
fn only_an_io_queue_moves() {
    run(async |world| {
        let unbound = world.line();
        assert!(!unbound.queue.may_move() && unbound.queue.detach().is_none());
        let (admin, _) = world.admin().await;
        assert!(!admin.queue.may_move() && admin.queue.detach().is_none());
    });
}

#[test]
fn abort_reaches_a_queue_that_moves() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let queue = io.queue.detach().unwrap();
        assert_eq!(queue.subsystem(), NQN);
        let abort = admin.send(Command::abort(1, 7), &[], 0);
        pass(Nanos::from_millis(1)).await;
        assert_eq!(admin.waiting(), 0, "no reactor has the queue");
        let io = io.adopted_by(&world, queue);
        let answer = admin.next().await.unwrap().entry;
        assert_eq!((answer.command_id(), answer.result()), (abort, NOT_ABORTED));
        // And a command of the queue that has arrived.
        let closed = world.gate.close();
        let store = io.send(Command::store(KV, b"key", 5, StoreOptions::NONE), b"value", 0);
        assert_eq!(admin.result(Command::abort(1, store)).await, 0);
        assert_eq!(io.next().await.unwrap().entry.status(), Status::ABORT_REQUESTED);
        drop(closed);
    });
}

/// Ends of an association.
#[derive(Clone, Copy, Debug)]
enum End {
    Reset,
    AdminQueue,
    KeepAlive,
}

impl End {
    async fn happen(self, admin: &Line) {
        match self {
            Self::Reset => admin.set_configuration(Configuration(0)).await,
            Self::AdminQueue => admin.queue.close(),
            Self::KeepAlive => pass(Nanos::from_secs(3)).await,
        }
    }
}

#[test]
fn end_of_the_association_reaches_a_queue_that_moves() {
    for end in [End::Reset, End::AdminQueue, End::KeepAlive] {
        run(async |world| {
            let (admin, id) = world.admin_of(NQN, 1_000).await;
            let io = world.io(id, 1).await;
            let queue = io.queue.detach().unwrap();
            end.happen(&admin).await;
            assert!(!io.is_ended(), "{end:?}");
            let io = io.adopted_by(&world, queue);
            assert!(io.next().await.is_none(), "{end:?}");
            io.queue.close();
        });
    }
}

#[test]
fn queue_that_has_ended_stays() {
    for end in [End::Reset, End::AdminQueue, End::KeepAlive] {
        run(async |world| {
            let (admin, id) = world.admin_of(NQN, 1_000).await;
            let io = world.io(id, 1).await;
            end.happen(&admin).await;
            assert!(io.queue.detach().is_none(), "{end:?}");
            assert!(io.next().await.is_none(), "{end:?}");
        });
    }
}

#[test]
fn dropped_queue_is_closed_and_refuses_its_requests() {
    run(async |world| {
        let (admin, id) = world.admin().await;
        let io = world.io(id, 1).await;
        let queue = io.queue.detach().unwrap();
        let abort = admin.send(Command::abort(1, 7), &[], 0);
        pass(Nanos::from_millis(1)).await;
        drop(queue);
        let answer = admin.next().await.unwrap().entry;
        assert_eq!((answer.command_id(), answer.result()), (abort, NOT_ABORTED));
        // Its identifier is free.
        let again = world.io(id, 1).await;
        assert_eq!(again.store(b"key", b"value").await, Status::SUCCESS);
    });
}
