use rustix::process::{Resource, getrlimit, setrlimit};

/// Open files that a server has beside a socket for each connection: listeners, rings, a disk.
const OTHERS: u64 = 64;

/// Has the system let this process have as many open files as it may, each connection being one.
/// A sentence, if these are too few for so many `connections`.
pub(super) fn raise_limit(connections: u32) -> Option<String> {
    let mut limit = getrlimit(Resource::Nofile);
    let needed = u64::from(connections) + OTHERS;
    if limit.current.is_none_or(|current| current >= needed) {
        return None;
    }
    limit.current = limit.maximum;
    // What is not granted shows in what there is then.
    let _granted = setrlimit(Resource::Nofile, limit);
    let files = getrlimit(Resource::Nofile).current.filter(|&files| files < needed)?;
    Some(format!(
        "the limit of {files} open files is too low for {connections} connections, so some will \
         wait: raise it (ulimit -n) to {needed}"
    ))
}
