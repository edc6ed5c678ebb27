use crate::command::{Command, UNASKED};
use crate::door::{Client, Door};
use crate::failure::Failure;
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::reply::{Protocol, Reply};
use crate::request::{KeptRequest, Request};
use crate::users::User;
use crate::wire::Wire;
use base::Key;
use engine::{KeySpaceId, Version};
use std::sync::Arc;

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
    /// Who it is, once that is known.
    pub(crate) user: Option<Arc<User>>,
}

impl Manner {
    /// That of a connection that has said nothing.
    fn new(door: &Door) -> Self {
        let user = door.users().everybody();
        let database = user.as_ref().map_or(0, |user| user.first_database());
        Self { database, user, ..Self::default() }
    }
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
    pub(crate) wire: Arc<Wire>,
    /// The service, whose list of clients has an entry for this session until it is dropped.
    door: Arc<Door>,
}

impl Session {
    /// A connection that has said nothing, known to `door` until it is dropped. `None` if the door
    /// has as many clients as it may have.
    pub(crate) fn new(door: &Arc<Door>, wire: Arc<Wire>) -> Option<Self> {
        let mut clients = door.clients();
        if clients.len() >= door.parameters().clients_max() {
            return None;
        }
        let id = door.new_id();
        let session = Self {
            id,
            manner: Manner::new(door),
            queue: None,
            watched: Vec::new(),
            is_over: false,
            wire: wire.clone(),
            door: door.clone(),
        };
        let now = clock::now();
        clients.insert(
            id,
            Client {
                reactor_id: clock::reactor_id(),
                commands_before: 0,
                since: now,
                name: String::new(),
                user: session.user_name().to_owned(),
                database: session.manner.database,
                protocol: 2,
                queued: None,
                queued_bytes: 0,
                library: Default::default(),
                pace: Pace::new(now),
                wire,
            },
        );
        Some(session)
    }

    /// The key space of its database.
    pub(crate) const fn space(&self) -> KeySpaceId {
        Door::space(self.manner.database)
    }

    /// Lets others see what a command has changed of it.
    pub(crate) fn show(&self, door: &Door) {
        let mut clients = door.clients();
        let Some(client) = clients.get_mut(&self.id) else { return };
        if client.name != self.manner.name {
            client.name.clone_from(&self.manner.name);
        }
        if client.user != self.user_name() {
            self.user_name().clone_into(&mut client.user);
        }
        client.database = self.manner.database;
        client.protocol = if self.manner.protocol == Protocol::Two { 2 } else { 3 };
        client.queued = self.queue.as_ref().map(|queue| queue.requests.len());
        client.queued_bytes = self.queue.as_ref().map_or(0, |queue| queue.bytes);
    }

    /// The user's name; nothing before it is known.
    pub(crate) fn user_name(&self) -> &str {
        self.manner.user.as_ref().map_or("", |user| &user.name)
    }

    /// Whether the client has not authenticated.
    pub(crate) fn is_stranger(&self) -> bool {
        self.manner.user.is_none()
    }

    /// Makes `user` the client's user.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        if !user.may_select(self.manner.database) {
            self.manner.database = user.first_database();
        }
        self.manner.user = Some(user);
    }

    /// Whether the user may do everything with the database.
    pub(crate) fn may_do_all(&self) -> bool {
        self.manner.user.as_ref().is_some_and(|user| user.may_do_all)
    }

    /// Whether the user may have this done.
    pub(crate) fn check_rights(
        &self,
        command: &Command,
        request: Request<'_>,
    ) -> Result<(), Failure> {
        if command.is(UNASKED) || self.may_do_all() {
            return Ok(());
        }
        let Some(user) = &self.manner.user else {
            return Err(Failure::told("NOAUTH Authentication required."));
        };
        if !user.may_run(command) {
            let name = command.full_name(request);
            let text = format!("NOPERM this user has no permissions to run the '{name}' command");
            return Err(Failure::told(text));
        }
        if !user.may_use_keys_of(command, request) {
            return Err(Failure::told(
                "NOPERM this user has no permissions to access one of the keys used as arguments",
            ));
        }
        Ok(())
    }

    /// Whether the user may use a database.
    pub(crate) fn check_database(&self, database: u16) -> Result<(), Failure> {
        match &self.manner.user {
            Some(user) if user.may_select(database) => Ok(()),
            _ => {
                let text = "NOPERM this user has no permissions to use database";
                Err(Failure::told(format!("{text} {database}")))
            }
        }
    }

    /// As it was at first.
    pub(crate) fn reset(&mut self, door: &Door) {
        self.manner = Manner::new(door);
        self.queue = None;
        self.watched.clear();
    }

    /// Queues the answer to the command that was just done, if the client wants it.
    #[inline]
    pub(crate) fn answer(&mut self, reply: Reply, outbox: &mut Outbox) {
        if self.wants_answer() {
            match reply {
                Reply::Ok => outbox.push_bytes(b"+OK\r\n"),
                reply => reply.write(self.manner.protocol, outbox),
            }
        }
    }

    /// As [`Self::answer`], with a bulk.
    #[inline]
    pub(crate) fn answer_with(&mut self, value: &[u8], outbox: &mut Outbox) {
        if self.wants_answer() {
            outbox.push_copied(value);
        }
    }

    /// Returns whether the client wants an answer to the command that was just done.
    #[inline]
    fn wants_answer(&mut self) -> bool {
        let answers = self.manner.answers;
        match answers {
            Answers::All | Answers::None => {}
            Answers::SkipTwo => self.manner.answers = Answers::SkipOne,
            Answers::SkipOne => self.manner.answers = Answers::All,
        }
        answers == Answers::All
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.door.forget(self.id);
    }
}
