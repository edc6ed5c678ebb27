use crate::call::Call;
use crate::check::check;
use crate::command::{Command, WRITE};
use crate::dispatch::run;
use crate::door::Door;
use crate::failure::Failure;
use crate::key_queues::{QueueKey, is_of_one_command, keys_of};
use crate::numbering::CommandNumber;
use crate::reply::Reply;
use crate::request::{KeptRequest, Request};
use crate::session::Session;
use crate::transaction::Transaction;
use crate::watcher::since;
use base::Nanos;

/// Commands that are kept at most, and their bytes.
const COMMANDS_MAX: usize = 16;
const BYTES_MAX: usize = 64 << 10;

/// A command that is kept.
struct Kept {
    request: KeptRequest,
    number: CommandNumber,
    command: &'static Command,
}

/// Commands of one connection that follow each other and change the same key. They execute as one
/// step, and so share a batch.
#[derive(Default)]
pub(crate) struct PipelinedWrites {
    key: Option<QueueKey>,
    commands: Vec<Kept>,
    bytes: usize,
}

impl PipelinedWrites {
    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Keeps `request` if it changes the same key as those before it. The first one is kept only if
    /// more has come behind it.
    pub(crate) fn take(&mut self, door: &Door, session: &Session, request: Request<'_>) -> bool {
        if session.queue.is_some()
            || self.commands.len() == COMMANDS_MAX
            || self.is_empty() && request.is_last
        {
            return false;
        }
        let Ok((number, command)) = check(door, session, request) else { return false };
        let mut keys = keys_of(session.space(), command, request).filter(|_| command.is(WRITE));
        let (Some(key), None) = (keys.next(), keys.next()) else { return false };
        let bytes = self.bytes + request.bytes_len();
        if self.key.as_ref().is_some_and(|before| *before != key) || bytes > BYTES_MAX {
            return false;
        }
        (self.key, self.bytes) = (Some(key), bytes);
        self.commands.push(Kept { request: request.keep(), number, command });
        true
    }

    /// Executes the commands, and returns their replies in order.
    pub(crate) async fn finish(&mut self, door: &Door, session: &mut Session) -> Vec<Reply> {
        let Self { key, commands, .. } = std::mem::take(self);
        let (Some(key), Some(last)) = (key, commands.last()) else { return Vec::new() };
        door.counters().count_commands(commands.len());
        session.wire.count_commands(commands.len());
        session.wire.show(last.number);
        let began = clock::host_now();
        let replies = match step(door, session, &key, &commands).await {
            // The store may take each of them alone.
            Err(Failure::Store(error)) if is_of_one_command(error) => {
                let mut replies = Vec::with_capacity(commands.len());
                for one in commands.chunks(1) {
                    let done = step(door, session, &key, one).await;
                    replies.extend(done.unwrap_or_else(|failure| vec![failure.reply()]));
                }
                replies
            }
            done => done.unwrap_or_else(|failure| vec![failure.reply(); commands.len()]),
        };
        // The time of each command in INFO and SLOWLOG is its share: one step executes all of them.
        let took = Nanos(since(began).0 / replies.len() as u64);
        for (kept, reply) in commands.iter().zip(&replies) {
            let request = door.request(&kept.request);
            door.watch(session.id, kept.number, took, reply, || request.rest(0));
        }
        replies
    }
}

/// Executes commands that change `key` as one step.
async fn step(
    door: &Door,
    session: &mut Session,
    key: &QueueKey,
    commands: &[Kept],
) -> Result<Vec<Reply>, Failure> {
    let execute = async |transaction: &mut Transaction| {
        let mut replies = Vec::with_capacity(commands.len());
        for Kept { request, command, .. } in commands {
            transaction.renew_reads();
            let request = door.request(request);
            let call = Call { command, request, transaction, session, door };
            replies.push(match run(call).await {
                Err(Failure::Overtaken) => return Err(Failure::Overtaken),
                done => done.unwrap_or_else(Failure::reply),
            });
        }
        Ok(replies)
    };
    door.in_turn(vec![key.clone()], false, execute).await
}
