//! Polls that took more than 100 us of CPU time.

use base::Nanos;
use node::server::LongPollStatus;
use reactor::Remote;

/// Returns the long polls of all reactors, by the names of their tasks.
pub(super) fn of(remotes: &[Remote]) -> Vec<LongPollStatus> {
    let mut all: Vec<LongPollStatus> = Vec::new();
    for it in remotes.iter().flat_map(Remote::long_polls).map(LongPollStatus::from) {
        match all.iter_mut().find(|known| known.name == it.name) {
            Some(known) => {
                known.count += it.count;
                known.longest_ns = known.longest_ns.max(it.longest_ns);
                known.total_ns += it.total_ns;
            }
            None => all.push(it),
        }
    }
    all
}

/// Returns them in words, for a table.
pub(super) fn facts(all: &[LongPollStatus]) -> impl Iterator<Item = (&'static str, String)> {
    all.iter().map(|it| {
        let [longest, total] = [it.longest_ns, it.total_ns].map(Nanos);
        ("long polls", format!("{}: {}, {longest} at most, {total} in all", it.name, it.count))
    })
}
