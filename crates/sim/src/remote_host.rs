use crate::client::Client;
use crate::host_command::HostCommand;
use crate::remote_plan::{Plan, pick};
use crate::remote_target::{ADDRESS, NQN};
use crate::trace;
use base::{Nanos, Rng};
use client::{Association, Error, Host, IoQueue, Reads, Settings};
use clock::Stage;
use controller::{Completion, Queue};
use net::{End, Network};
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::Status;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Operations of a host.
const OPERATIONS: u64 = 60;

/// How long a host waits at most before it connects again.
const PAUSE: Nanos = Nanos::from_millis(1);

/// How long the slowest network may take for an answer.
const TIMEOUT: Nanos = Nanos::from_secs(600);

/// A host at the other end of the network. When its connections end it makes others.
pub(crate) struct RemoteHost {
    number: u8,
    plan: Rc<Plan>,
    client: Rc<Client>,
    network: Network,
    rng: Rng,
    settings: Settings,
    /// Connections of its I/O queue.
    connections: usize,
    /// Commands that it keeps outstanding.
    outstanding: usize,
}

/// What a host has while it is connected.
struct Session {
    association: Association<End>,
    queue: IoQueue<End>,
    pending: BTreeMap<u64, HostCommand>,
}

impl RemoteHost {
    pub(crate) fn new(
        number: u8,
        plan: &Rc<Plan>,
        client: &Rc<Client>,
        network: &Network,
        mut rng: Rng,
    ) -> Self {
        let mut may = || rng.below(3) == 0;
        let digests = Digests { header: may(), data: may() };
        // As the target computes them, as the specification says, and as SPDK does.
        let data_digest = [None, Some(DataDigest::Exact), Some(DataDigest::Padded)];
        let data_digest = data_digest[usize::from(number) % 3];
        let flow_control = may();
        let queue_entries = [2, 5, 17, 128][pick(4, &mut rng)];
        let settings = Settings {
            digests,
            data_digest,
            flow_control,
            queue_entries,
            timeout: TIMEOUT,
            ..Settings::new(Host::of_uuid([number; 16]), NQN)
        };
        let connections = 1 + pick(3, &mut rng);
        let outstanding =
            1 + if rng.below(8) == 0 { pick(32, &mut rng) } else { pick(8, &mut rng) };
        let (plan, client, network) = (plan.clone(), client.clone(), network.clone());
        Self { number, plan, client, network, rng, settings, connections, outstanding }
    }

    /// Does all its operations, and leaves. Returns how often it had to connect again, or wanted
    /// to.
    pub(crate) async fn work(mut self) -> u64 {
        let (mut left, mut sessions) = (OPERATIONS, 0);
        while left > 0 {
            clock::sleep(Nanos(self.rng.below(PAUSE.0)), Stage::Queue).await;
            if let Some(session) = self.connect().await {
                sessions += 1;
                left = self.talk(session, left).await;
            }
        }
        sessions - 1
    }

    /// Returns `None` if a connection was cut.
    async fn connect(&self) -> Option<Session> {
        let association = Association::connect(self.settings.clone(), self.stream().await).await;
        let association = association.map_err(|error| self.expect_cut(&error)).ok()?;
        let mut streams = Vec::new();
        for _ in 0..self.connections {
            streams.push(self.stream().await);
        }
        match association.io_queue(streams, Reads::Pairs).await {
            Ok(queue) => Some(Session { association, queue, pending: BTreeMap::new() }),
            Err(error) => {
                // An I/O queue is refused where the association has ended.
                self.expect_cut(&association.failure().unwrap_or(error));
                None
            }
        }
    }

    async fn stream(&self) -> End {
        self.network.connect(ADDRESS).await.expect("the target listens")
    }

    fn expect_cut(&self, error: &Error) {
        let is_cut = matches!(error, Error::Broken | Error::Ended | Error::Closed);
        assert!(is_cut, "host {}: {error}", self.number);
        trace::event(format_args!("host {}: {error}", self.number));
    }

    /// Does some of the operations that are `left` and returns how many are then: until something
    /// is cut, or it wants to leave. What is outstanding then is never answered.
    async fn talk(&mut self, mut session: Session, left: u64) -> u64 {
        let here = left.min(1 + self.rng.below(2 * OPERATIONS));
        let (mut done, leaves_abruptly) = (0, self.rng.below(4) == 0);
        loop {
            while done < here && session.is_up() && session.pending.len() < self.outstanding {
                self.submit(&mut session);
                done += 1;
            }
            if session.pending.is_empty() || (done == here && leaves_abruptly) {
                break;
            }
            let completion = session.queue.next().await;
            let pending = session.pending.remove(&completion.id);
            self.note(&session, pending.expect("a command is completed once"), &completion);
        }
        session.queue.close();
        if session.is_up()
            && !leaves_abruptly
            && let Err(error) = session.association.shut_down().await
        {
            self.expect_cut(&error);
        }
        left - done
    }

    fn submit(&mut self, session: &mut Session) {
        let (command, submission) = HostCommand::draw(&self.plan, &self.client, &mut self.rng);
        let before = session.pending.insert(session.queue.submit(submission), command);
        assert!(before.is_none(), "a queue numbers its commands");
    }

    fn note(&self, session: &Session, command: HostCommand, completion: &Completion) {
        if completion.status == Status::HOST_PATHING_ERROR {
            let failure = session.failure().expect("only what is cut ends so");
            self.expect_cut(&failure);
        } else {
            command.note(&self.client, completion);
        }
    }
}

impl Session {
    fn failure(&self) -> Option<Error> {
        self.queue.failure().or(self.association.failure())
    }

    fn is_up(&self) -> bool {
        self.failure().is_none()
    }
}
