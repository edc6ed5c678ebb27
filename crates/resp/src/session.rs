use crate::door::{Client, Door};
use crate::reply::Protocol;
use crate::request::KeptRequest;
use base::Key;
use engine::{KeySpaceId, Version};

/// Which answers a client wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    #[default]
    All,
    None,
    /// None to the command that asks for this, and to the next one.
    SkipTwo,
    SkipOne,
}

/// Commands that wait for EXEC.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) requests: Vec<KeptRequest>,
    pub(crate) bytes: usize,
    /// One was refused, so EXEC will be.
    pub(crate) is_spoilt: bool,
}

/// What commands change of a connection, and what is undone when they are done once more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) database: u16,
    pub(crate) protocol: Protocol,
    pub(crate) name: String,
    pub(crate) answers: Answers,
}

/// A key of which EXEC is to know that it has not changed.
pub(crate) type Watched = (KeySpaceId, Key, Option<Version>);

/// One connection, as far as commands know of it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) manner: Manner,
    pub(crate) queue: Option<Queue>,
    pub(crate) watched: Vec<Watched>,
    /// The connection ends after this answer.
    pub(crate) is_over: bool,
}

impl Session {
    /// A connection that has said nothing, known to `door`.
    pub(crate) fn new(door: &Door) -> Self {
        let id = door.new_id();
        let session = Self {
            id,
            manner: Manner::default(),
            queue: None,
            watched: Vec::new(),
            is_over: false,
        };
        let now = clock::now();
        door.clients().insert(
            id,
            Client {
                since: now,
                last: now,
                name: String::new(),
                database: 0,
                protocol: 2,
                queued: None,
                command: "NULL",
            },
        );
        session
    }

    /// The key space of its database.
    pub(crate) const fn space(&self) -> KeySpaceId {
        Door::space(self.manner.database)
    }

    /// Lets others see what it does.
    pub(crate) fn show(&self, door: &Door, command: &'static str) {
        let mut clients = door.clients();
        let Some(client) = clients.get_mut(&self.id) else { return };
        client.last = clock::now();
        client.command = command;
        if client.name != self.manner.name {
            client.name.clone_from(&self.manner.name);
        }
        client.database = self.manner.database;
        client.protocol = if self.manner.protocol == Protocol::Two { 2 } else { 3 };
        client.queued = self.queue.as_ref().map(|queue| queue.requests.len());
    }

    /// As it was at first.
    pub(crate) fn reset(&mut self) {
        self.manner = Manner::default();
        self.queue = None;
        self.watched.clear();
    }

    /// Whether the answer to the command that was just done is sent.
    pub(crate) fn wants_answer(&mut self) -> bool {
        let (wants, next) = match self.manner.answers {
            Answers::All => (true, Answers::All),
            Answers::None => (false, Answers::None),
            Answers::SkipTwo => (false, Answers::SkipOne),
            Answers::SkipOne => (false, Answers::All),
        };
        self.manner.answers = next;
        wants
    }
}
