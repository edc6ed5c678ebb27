use rustix::process::{Resource, getrlimit, setrlimit};

/// Open files besides the sockets of connections: listeners, rings, a disk.
const OTHERS: u64 = 64;

/// Raises the limit of open files as far as allowed: each connection needs one. Returns a sentence
/// if the limit is too small for this many `connections`.
pub(super) fn raise_limit(connections: u32) -> Option<String> {
    let mut limit = getrlimit(Resource::Nofile);
    let needed = u64::from(connections) + OTHERS;
    if limit.current.is_none_or(|current| current >= needed) {
        return None;
    }
    limit.current = limit.maximum;
    // An error shows in the limit that is read next.
    let _granted = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current.filter(|&files| files < needed)?;
    Some(format!(
        "the limit of {files} open files is too low for {connections} connections, so some will \
         wait: raise it (ulimit -n) to {needed}"
    ))
}
