use crate::command::{Command, FAST};
use crate::door::Door;
use crate::numbering::CommandNumber;
use crate::reply::Reply;
use crate::slow_log::{SlowCommand, kept};
use base::Nanos;

impl Door {
    /// A command of `client` was done, and took so long.
    #[inline]
    pub(crate) fn watch<'a, A: ExactSizeIterator<Item = &'a [u8]>>(
        &self,
        client: u64,
        number: CommandNumber,
        took: Nanos,
        reply: &Reply,
        args: impl FnOnce() -> A,
    ) {
        let watcher = self.watcher();
        watcher.tallies.count(number, took, watcher.count_error(reply));
        if watcher.is_slow(took) {
            self.keep_slow(client, number, took, args());
        }
    }

    /// Keeps a command that [`Watcher::is_slow`].
    #[cold]
    pub(crate) fn keep_slow<'a>(
        &self,
        client: u64,
        number: CommandNumber,
        took: Nanos,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let (watcher, at) = (self.watcher(), clock::unix_now().0 / 1_000);
        let parameters = watcher.parameters();
        // EXEC is not in the log of Redis: the commands that it does are.
        let is_logged = number.name() != "exec";
        if is_logged && parameters.slower_than().is_some_and(|least| took >= least) {
            let clients = self.clients();
            let client = clients.get(&client);
            let (address, name) = client.map_or_else(Default::default, |client| {
                (client.wire.ends.peer().to_owned(), client.name.clone())
            });
            drop(clients);
            let count = args.len();
            let args = kept(args, count);
            let slow = SlowCommand { id: 0, at, took, args, address, name };
            watcher.slow().add(slow, parameters.slow_log_len());
        }
        if parameters.latency_threshold().is_some_and(|least| took >= least) {
            let event = if number.is_of_fast() { "fast-command" } else { "command" };
            watcher.latencies().add(event, at, took.0 / 1_000_000);
        }
    }
}

impl CommandNumber {
    fn is_of_fast(self) -> bool {
        let name = self.name().split('|').next().unwrap_or_default();
        Command::named(name.as_bytes()).is_some_and(|command| command.is(FAST))
    }
}
