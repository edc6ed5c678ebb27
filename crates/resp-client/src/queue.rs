use crate::arg::Arg;
use crate::connection::Connection;
use crate::error::Error;
use crate::reply::Reply;
use base::{Buf, Nanos};
use controller::{Completion, Completions, Queue, Submission};
use net::Stream;
use smallvec::SmallVec;
use spec::{Command, Opcode, Status, StoreOptions};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A submission and a completion queue over a Redis server. Commands of the Key Value command set
/// become requests: Store is SET, Retrieve GET, Delete DEL and Exist EXISTS. Other commands fail as
/// invalid opcodes. Connections take turns. Clones share the queue.
///
/// A host sees no stages between submission and completion: all of that time is the link's.
pub struct RespQueue<S: Stream>(Rc<Shared<S>>);

struct Shared<S: Stream> {
    connections: Vec<Connection<S>>,
    turn: Cell<usize>,
    completions: Completions,
    /// The server's first error message or unexpected answer.
    refusal: RefCell<Option<String>>,
}

impl<S: Stream> RespQueue<S> {
    /// Returns a queue on `connections`, at least one.
    pub fn new(connections: Vec<Connection<S>>) -> Self {
        assert!(!connections.is_empty(), "a queue is on one connection at least");
        Self(Rc::new(Shared {
            connections,
            turn: Cell::new(0),
            completions: Completions::default(),
            refusal: RefCell::default(),
        }))
    }

    /// Returns why a connection ended, if one did. Commands submitted to it later complete with
    /// [`Status::HOST_PATHING_ERROR`].
    pub fn failure(&self) -> Option<Error> {
        self.0.connections.iter().find_map(Connection::failure)
    }

    /// Returns the server's first error message or unexpected answer, if any. The command that gets
    /// it completes with [`Status::INTERNAL_ERROR`].
    pub fn refusal(&self) -> Option<String> {
        self.0.refusal.borrow().clone()
    }

    /// Ends the connections.
    pub fn close(&self) {
        self.0.connections.iter().for_each(Connection::close);
    }
}

/// An outstanding command.
struct Asked {
    number: u64,
    command: Command,
    submitted: Nanos,
}

impl<S: Stream> Queue for RespQueue<S> {
    fn submit(&self, submission: Submission) -> u64 {
        let shared = &*self.0;
        let Submission { command, long_key, data } = submission;
        let number = shared.completions.number();
        let asked = Asked { number, command, submitted: clock::host_now() };
        let inline = command.inline_key();
        let key = match &long_key {
            Some(key) => key.as_bytes(),
            None => inline.get(..command.key_length().into()).unwrap_or_default(),
        };
        let key = Arg::Bytes(key);
        let name = |name: &'static str| Arg::from(name);
        let args = match command.opcode() {
            Opcode::STORE => {
                [Some(name("SET")), Some(key), Some(Arg::Value(&data)), condition(&command)]
            }
            Opcode::RETRIEVE => [Some(name("GET")), Some(key), None, None],
            Opcode::DELETE => [Some(name("DEL")), Some(key), None, None],
            Opcode::EXIST => [Some(name("EXISTS")), Some(key), None, None],
            _ => {
                shared.end(&asked, (Status::INVALID_OPCODE, 0, Buf::phantom(0, 0)));
                return number;
            }
        };
        let args: SmallVec<[Arg<'_>; 4]> = args.into_iter().flatten().collect();
        let turn = shared.turn.get();
        shared.turn.set((turn + 1) % shared.connections.len());
        let handle = self.clone();
        shared.connections[turn].begin(&args, move |answer| {
            let ended = handle.0.outcome(&asked.command, answer);
            handle.0.end(&asked, ended);
        });
        number
    }

    async fn next(&self) -> Completion {
        self.0.completions.next().await
    }
}

impl<S: Stream> Shared<S> {
    fn end(&self, asked: &Asked, ended: (Status, u64, Buf)) {
        let Asked { number, command, submitted } = asked;
        self.completions.post(Completion::over_link(*number, command.opcode(), *submitted, ended));
    }

    /// Returns the status, result and data that `answer` gives `command`.
    fn outcome(&self, command: &Command, answer: Result<Reply, Error>) -> (Status, u64, Buf) {
        let status = match (command.opcode(), answer) {
            (_, Err(_)) => Status::HOST_PATHING_ERROR,
            (Opcode::STORE, Ok(Reply::Status(_)))
            | (Opcode::DELETE | Opcode::EXIST, Ok(Reply::Integer(1))) => Status::SUCCESS,
            (Opcode::STORE, Ok(Reply::Null)) => {
                let must_exist = options(command).contains(StoreOptions::MUST_EXIST);
                if must_exist { Status::KEY_DOES_NOT_EXIST } else { Status::KEY_EXISTS }
            }
            (Opcode::RETRIEVE, Ok(Reply::Bulk(value))) => {
                let len = value.len();
                let data = value.slice(0..len.min(command.size()));
                return (Status::SUCCESS, len.into(), data);
            }
            (Opcode::RETRIEVE, Ok(Reply::Null))
            | (Opcode::DELETE | Opcode::EXIST, Ok(Reply::Integer(0))) => Status::KEY_DOES_NOT_EXIST,
            (_, Ok(other)) => {
                let said = match other {
                    Reply::Error(said) => said,
                    other => format!("an answer that this request does not have: {other:?}"),
                };
                self.refusal.borrow_mut().get_or_insert(said);
                Status::INTERNAL_ERROR
            }
        };
        (status, 0, Buf::phantom(0, 0))
    }
}

fn options(command: &Command) -> StoreOptions {
    StoreOptions::from_bits(command.options()).unwrap_or(StoreOptions::NONE)
}

/// Returns the option of SET for the condition of a Store, if it has one.
fn condition(command: &Command) -> Option<Arg<'static>> {
    let options = options(command);
    let has = |option, word: &'static str| options.contains(option).then(|| Arg::from(word));
    has(StoreOptions::MUST_EXIST, "XX").or(has(StoreOptions::MUST_NOT_EXIST, "NX"))
}

impl<S: Stream> Clone for RespQueue<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: Stream> std::fmt::Debug for RespQueue<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RespQueue on {} connections", self.0.connections.len())
    }
}
