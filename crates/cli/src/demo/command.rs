//! Commands of the demo: how many are in flight, and what the run's digest has of each.

use base::checksum::Digest;
use controller::{Completion, Submission};
use node::Device;

/// Commands in flight.
pub(super) const QUEUE_DEPTH: usize = 32;

/// Submits `count` commands, at most [`QUEUE_DEPTH`] at a time, and passes on each completion with
/// its command's index.
pub(super) async fn each(
    device: &Device,
    count: usize,
    submission: impl Fn(usize) -> Submission,
    mut complete: impl FnMut(usize, &Completion),
) {
    let queue = device.controller().queue_pair();
    let mut submitted = 0;
    for completed in 0..count {
        while submitted < count && submitted - completed < QUEUE_DEPTH {
            queue.submit(submission(submitted));
            submitted += 1;
        }
        let completion = queue.next().await;
        let place = usize::try_from(completion.id).expect("as many as there are commands");
        complete(place, &completion);
    }
}

/// Adds the input of a run's digest: see `workload::Outcome::digest`.
#[expect(clippy::cast_possible_truncation, reason = "both halves are added")]
pub(super) fn add_to_digest(digest: &mut Digest, completion: &Completion, checksum: u128) {
    let Completion { id, opcode, status, completed, .. } = completion;
    let (high, low) = ((checksum >> 64) as u64, checksum as u64);
    digest.add(&[*id, opcode.0.into(), status.0.into(), completed.0, low, high]);
}
