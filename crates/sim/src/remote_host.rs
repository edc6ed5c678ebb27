use crate::client::{Asked, Client, keys_of};
use crate::history::Open;
use crate::remote_plan::{HOT_KEYS, Plan, pick};
use crate::remote_target::{ADDRESS, NQN};
use crate::trace;
use base::{Buf, Nanos, Rng};
use client::{Association, Error, Host, IoQueue, Reads, Settings};
use clock::Stage;
use controller::{Completion, Queue, Submission};
use net::{End, Network};
use node::Device;
use nvme_tcp::framing::DataDigest;
use nvme_tcp::pdu::Digests;
use spec::{Command, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Operations of a host.
const OPERATIONS: u64 = 60;

/// Room for all keys.
const LIST_BYTES: u32 = 64 << 10;

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

/// What was asked by a command that is outstanding.
enum Pending {
    Pair(Asked),
    /// Which of the hot keys there are.
    Which {
        asked: Vec<(usize, Open)>,
        is_every: bool,
    },
}

/// What a host has while it is connected.
struct Session {
    association: Association<End>,
    queue: IoQueue<End>,
    pending: BTreeMap<u64, Pending>,
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
        let (pending, submission) = if self.rng.below(30) == 0 {
            self.ask_which()
        } else {
            let (subject, request) = self.plan.request(&mut self.rng);
            let (asked, submission) = self.client.ask(subject, request);
            (Pending::Pair(asked), submission)
        };
        let before = session.pending.insert(session.queue.submit(submission), pending);
        assert!(before.is_none(), "a queue numbers its commands");
    }

    /// Asks for all keys, or as many as fit a short buffer from any one on.
    fn ask_which(&mut self) -> (Pending, Submission) {
        let keys = &self.client.keys;
        let start = &keys[pick(keys.len() as u64, &mut self.rng)];
        let is_every = self.rng.below(2) == 0;
        let start = if is_every { &[][..] } else { start.as_bytes() };
        let room = if is_every { LIST_BYTES } else { 300 };
        let command = Command::list(Device::NAMESPACE, start, room);
        let asked = self.client.ask_which(0..HOT_KEYS);
        let data = Buf::phantom(0, 0);
        (Pending::Which { asked, is_every }, Submission { command, long_key: None, data })
    }

    fn note(&self, session: &Session, pending: Pending, completion: &Completion) {
        if completion.status == Status::HOST_PATHING_ERROR {
            let failure = session.failure().expect("only what is cut ends so");
            self.expect_cut(&failure);
            return;
        }
        match pending {
            Pending::Pair(asked) => self.client.note(asked, completion),
            Pending::Which { asked, is_every } => {
                let keys = keys_of(completion);
                let listed: BTreeSet<Vec<u8>> = keys.iter().cloned().collect();
                assert_eq!(listed.len(), keys.len(), "a key is listed twice: {keys:?}");
                self.client.note_which(&asked, &listed, is_every);
            }
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
