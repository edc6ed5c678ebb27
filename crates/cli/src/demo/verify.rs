use super::command::{add_to_digest, each};
use super::key::pair_key;
use super::load::Loaded;
use super::pair::Pair;
use super::phase::Phase;
use crate::progress::{Progress, Unit};
use base::checksum::hash128;
use controller::{Completion, Submission};
use node::Device;
use spec::Command;
use workload::Permutation;

/// Retrieves all pairs from `device`, in an order that depends on `seed`, and compares. Adds
/// differences to the faults.
pub(super) async fn verify(
    device: &Device,
    loaded: &mut Loaded,
    seed: u64,
    progress: Progress,
) -> Phase {
    let mut bar = progress.bar("reading back", Unit::Bytes);
    let Loaded { nsid, files, pairs, faults, digest, .. } = loaded;
    let count = pairs.len();
    let order = (count > 0).then(|| Permutation::new(count as u64, seed));
    let pair_at = |place: usize| {
        let order = order.as_ref().expect("there are pairs");
        &pairs[usize::try_from(order.at(place as u64)).expect("below their number")]
    };
    let retrieve = |place: usize| {
        let pair = pair_at(place);
        let key = pair_key(&files[pair.file].path, pair.chunk).key;
        let command = Command::retrieve(*nsid, key.as_bytes(), pair.bytes);
        Submission::new(command, &key)
    };
    let mut phase = Phase::default();
    let total = pairs.iter().map(|pair| u64::from(pair.bytes)).sum();
    let (started, mut done) = (clock::now(), 0);
    let compare = |place: usize, completion: &Completion| {
        let pair = pair_at(place);
        let checksum = completion.data.bytes().map_or(0, hash128);
        add_to_digest(digest, completion, checksum);
        match difference(pair, completion) {
            None => phase.record(completion),
            Some(problem) => faults.add(&files[pair.file].path, pair, problem),
        }
        done += u64::from(pair.bytes);
        bar.set(done, total);
    };
    each(device, count, retrieve, compare).await;
    phase.elapsed = clock::now() - started;
    phase
}

/// Returns the difference between the value in `completion` and `pair`, if there is one.
fn difference(pair: &Pair, completion: &Completion) -> Option<String> {
    if !completion.status.is_success() {
        return Some(format!("the retrieve ended with {}", completion.status));
    }
    if completion.result != u64::from(pair.bytes) || completion.data.len() != pair.bytes {
        let found = completion.result;
        return Some(format!("{found} bytes were returned, not {}", pair.bytes));
    }
    let Some(bytes) = completion.data.bytes().or((pair.bytes == 0).then_some(&[])) else {
        return Some("no bytes were returned".to_owned());
    };
    (hash128(bytes) != pair.checksum).then(|| "the bytes differ".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Buf, Nanos};
    use clock::Stages;
    use spec::{Opcode, Status};

    fn completion(status: Status, result: u64, data: Buf) -> Completion {
        Completion {
            id: 0,
            opcode: Opcode::RETRIEVE,
            status,
            result,
            data,
            submitted: Nanos::ZERO,
            completed: Nanos::ZERO,
            stages: Stages::default(),
        }
    }

    #[test]
    fn a_value_is_right_only_with_its_length_and_all_its_bytes() {
        let pair = Pair::new(0, None, b"value");
        let value = Buf::copy_from(b"value");
        let difference =
            |status, result, data| difference(&pair, &completion(status, result, data));
        assert_eq!(difference(Status::SUCCESS, 5, value.clone()), None);
        for (status, result, data) in [
            (Status::UNRECOVERED_ERROR, 5, value.clone()),
            (Status::SUCCESS, 6, value.clone()),
            (Status::SUCCESS, 5, value.slice(0..4)),
            (Status::SUCCESS, 4, value.slice(0..4)),
            (Status::SUCCESS, 5, Buf::phantom(5, 0)),
        ] {
            assert!(difference(status, result, data).is_some());
        }
        for bit in 0..40 {
            let flipped = value.with_flipped_bit(bit);
            assert!(difference(Status::SUCCESS, 5, flipped).is_some(), "bit {bit}");
        }
    }

    #[test]
    fn an_empty_value_is_right_without_a_byte() {
        let pair = Pair::new(0, None, b"");
        let empty = completion(Status::SUCCESS, 0, Buf::phantom(0, 0));
        assert_eq!(difference(&pair, &empty), None);
        let longer = completion(Status::SUCCESS, 1, Buf::phantom(0, 0));
        assert!(difference(&pair, &longer).is_some());
    }
}
