//! A device of two reactors in virtual time: each executes whatever its connections ask.

use crate::fabrics::host::{HOST_ID, HOST_NQN, KV, Line, NQN, World, pass};
use base::Nanos;
use clock::Users;
use controller::Work;
use engine::Ack;
use reactor::{PeerGroup, Places};
use spec::{
    AsyncEvent, AsyncEvents, Command, Configuration, ConnectAttributes, ConnectData, Feature,
    Property, Status,
};
use std::cell::RefCell;
use std::rc::Rc;

const NOT_ABORTED: u64 = 1;

/// Runs work in the second reactor.
struct Other {
    places: Places,
    world: World,
    users: Users,
}

impl Other {
    /// Returns what `work` returns in the second reactor.
    async fn run<T: 'static>(&self, work: impl AsyncFnOnce(World) -> T + 'static) -> T {
        let output = Rc::new(RefCell::new(None));
        let (to, world) = (output.clone(), self.world.clone());
        self.places.spawn(1, async move {
            let done = work(world).await;
            *to.borrow_mut() = Some(done);
        });
        for _ in 0..100_000 {
            if let Some(output) = output.take() {
                return output;
            }
            pass(Nanos(100)).await;
        }
        panic!("the second reactor does not come to an end");
    }

    async fn io(&self, controller: u16, id: u16) -> Rc<Line> {
        self.run(async move |world| Rc::new(world.io(controller, id).await)).await
    }

    /// Runs `work` with a connection of the second reactor.
    async fn with<T: 'static>(
        &self,
        line: &Rc<Line>,
        work: impl AsyncFnOnce(&Line) -> T + 'static,
    ) -> T {
        let line = line.clone();
        self.run(async move |_| work(&line).await).await
    }
}

/// Runs `test` in the first of two reactors, in several orders of their tasks.
fn run(test: impl AsyncFn(World, Other)) {
    for seed in 0..20 {
        let mut reactors = PeerGroup::new(2, seed, None);
        let places = reactors.places();
        reactors.run(async {
            let (world, users) = (World::real(Ack::Program).await, Users::default());
            let other = world.in_reactor(1, users.clone());
            test(world, Other { places, world: other, users }).await;
        });
    }
}

fn exist(id: u16) -> Command {
    Command::exist(KV, b"key").with_command_id(id)
}

#[test]
fn each_reactor_executes_connects_and_commands_of_its_connections() {
    run(async |world, other| {
        let (_admin, first) = world.admin().await;
        let second = other.run(async |world| world.admin().await.1).await;
        assert_ne!(first, second);
        // Queues of both controllers in both reactors.
        for (reactor, id, controller) in [(0, 1, first), (0, 2, second)] {
            let io = world.io(controller, id).await;
            assert_eq!(io.store(&[b'k', reactor], &[1; 7]).await, Status::SUCCESS);
        }
        for (id, controller) in [(2, first), (1, second)] {
            let io = other.io(controller, id).await;
            let exists = |key: [u8; 2]| Command::exist(KV, &key);
            let status = other.with(&io, async move |io| io.status(exists([b'k', 0])).await);
            assert_eq!(status.await, Status::SUCCESS);
        }
        let stores = Work { writes: 2, bytes_written: 14, ..Work::default() };
        let others = Work { others: 2, ..Work::default() };
        assert_eq!(world.subsystems.work_by_reactor(), [(0, stores), (1, others)].into());
        let hosts = world.subsystems.census();
        let reactors: Vec<_> = hosts.iter().map(|host| (host.controller, host.reactor)).collect();
        assert_eq!(reactors, [(first, 0), (second, 1)]);
        assert!(hosts.iter().all(|host| host.queues.len() == 3));
    });
}

#[test]
fn queue_id_is_taken_in_all_reactors() {
    run(async |world, other| {
        let (_admin, id) = world.admin().await;
        let _io = world.io(id, 1).await;
        let refused = other.run(async move |world| world.line().connect(id, 1, 127).await).await;
        assert_eq!(refused.unwrap_err().status(), Status::COMMAND_SEQUENCE_ERROR);
        let entry = other.run(async |world| {
            let connect = Command::connect(1, 127, ConnectAttributes::NONE, 0);
            let data = ConnectData::new(HOST_ID, HOST_NQN, NQN, 999);
            world.line().connect_with(connect, &data).await
        });
        assert_eq!(entry.await.unwrap_err().status(), Status::CONNECT_INVALID_PARAMETERS);
    });
}

#[test]
fn abort_reaches_a_queue_in_another_reactor() {
    run(async |world, other| {
        let (admin, id) = world.admin().await;
        let io = other.io(id, 1).await;
        let held = other.with(&io, async |io| io.send_first(exist(0))).await;
        assert_eq!(admin.result(Command::abort(1, held)).await, 0);
        let aborted = other.with(&io, async |io| io.next().await.unwrap().entry).await;
        assert_eq!((aborted.command_id(), aborted.status()), (held, Status::ABORT_REQUESTED));
        assert_eq!(admin.result(Command::abort(1, held)).await, NOT_ABORTED);
        let status = other.with(&io, async |io| io.status(exist(0)).await).await;
        assert_eq!(status, Status::KEY_DOES_NOT_EXIST);
    });
}

#[test]
fn abort_is_answered_although_its_queue_ends_first() {
    run(async |world, other| {
        let (admin, id) = world.admin().await;
        let io = other.io(id, 1).await;
        let held = other.with(&io, async |io| io.send_first(exist(0))).await;
        let abort = admin.send(Command::abort(1, held), &[], 0);
        let reset = admin.send(Command::property_set(Property::CC, 0), &[], 0);
        let mut answers = [admin.next().await.unwrap(), admin.next().await.unwrap()];
        answers.sort_by_key(|answer| answer.entry.command_id());
        let ids = answers.each_ref().map(|answer| answer.entry.command_id());
        assert_eq!(ids, [abort, reset]);
        let aborted = usize::from(answers[0].entry.result() != NOT_ABORTED);
        pass(Nanos::from_millis(1)).await;
        assert_eq!((io.waiting(), io.is_ended(), admin.waiting()), (aborted, true, 0));
    });
}

#[test]
fn no_command_is_answered_after_a_reset_in_another_reactor() {
    run(async |world, other| {
        let (admin, id) = world.admin().await;
        for _ in 0..3 {
            let io = other.io(id, 1).await;
            let line = io.clone();
            other.places.spawn(1, async move {
                for _ in 0..100 {
                    line.send(exist(0), &[], 0);
                    pass(Nanos(10)).await;
                }
            });
            pass(Nanos(500)).await;
            admin.set_configuration(Configuration::default()).await;
            let answered = io.waiting();
            pass(Nanos::from_millis(1)).await;
            assert_eq!((io.waiting(), io.is_ended()), (answered, true));
            let refused = other.run(async move |world| world.line().connect(id, 1, 127).await);
            assert_eq!(refused.await.unwrap_err().status(), Status::COMMAND_SEQUENCE_ERROR);
            while io.waiting() > 0 {
                let status = other.with(&io, async |io| io.next().await.unwrap().entry.status());
                assert_eq!(status.await, Status::KEY_DOES_NOT_EXIST);
            }
            admin.set_configuration(Configuration::ENABLE_ALL_COMMAND_SETS).await;
        }
    });
}

#[test]
fn event_completes_the_request_of_a_host_in_another_reactor() {
    run(async |world, other| {
        let admin = other.run(async |world| Rc::new(world.admin().await.0)).await;
        let request = other.with(&admin, async |admin| {
            let wanted = AsyncEvents::NAMESPACES.0;
            admin.result(Command::set_features(Feature::ASYNC_EVENTS, 0, wanted)).await;
            admin.send(Command::async_event_request(), &[], 0)
        });
        let request = request.await;
        world.subsystem.namespace_changed(KV);
        let event = other.with(&admin, async |admin| admin.next().await.unwrap().entry).await;
        let expected = (request, AsyncEvent::NAMESPACES_CHANGED.0.into());
        assert_eq!((event.command_id(), event.result()), expected);
    });
}

#[test]
fn queues_of_a_reactor_are_its_users_until_they_are_closed() {
    run(async |world, other| {
        let (admin, id) = world.admin().await;
        assert!(other.users.are_none(), "the first reactor has users of its own");
        let io = other.io(id, 1).await;
        assert!(!other.users.are_none());
        let closed = other.with(&io, async |io| {
            io.send(exist(0), &[], 0);
            io.queue.close();
        });
        closed.await;
        drop(io);
        pass(Nanos::from_millis(1)).await;
        assert!(other.users.are_none());
        // The association knows it no longer.
        assert_eq!(world.subsystems.census()[0].queues.len(), 1);
        admin.queue.close();
        assert_eq!(world.subsystems.census(), []);
    });
}
