use base::Buf;
use base::checksum::crc32c;

/// Returns the checksum of a logical block, whose bytes are the concatenation of `pieces`.
///
/// The sum depends on where phantoms begin and end, not on how the block is cut. A run is a maximal
/// stretch of one phantom, or of bytes. One run: its CRC-32C. Several runs: CRC-32C of the length
/// and CRC-32C of each.
#[inline]
pub(crate) fn block_sum(pieces: &[Buf]) -> u32 {
    match pieces {
        [whole] => whole.crc32c(),
        _ => sum_of_runs(pieces),
    }
}

fn sum_of_runs(pieces: &[Buf]) -> u32 {
    let mut runs: Vec<Buf> = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.len() > 0) {
        let longer = runs.last().and_then(|run| Buf::join(&[run.clone(), piece.clone()]));
        match (longer, runs.last_mut()) {
            (Some(longer), Some(run)) => *run = longer,
            _ => runs.push(piece.clone()),
        }
    }
    if let [whole] = &*runs {
        return whole.crc32c();
    }
    let words = runs.iter().flat_map(|run| [run.len().to_le_bytes(), run.crc32c().to_le_bytes()]);
    crc32c(words.collect::<Vec<_>>().as_flattened())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts `data` into pieces of `len` bytes.
    fn pieces(data: &[Buf], len: u32) -> Vec<Buf> {
        let all: u32 = data.iter().map(Buf::len).sum();
        let starts = (0..all).step_by(len as usize);
        let cut = |start: u32| media::cut(data, start, len.min(all - start)).unwrap();
        starts.flat_map(cut).collect()
    }

    #[test]
    fn the_sum_knows_content_and_not_how_it_is_cut() {
        let bytes: Vec<u8> = (0..100).collect();
        let mixed = [Buf::copy_from(&bytes), Buf::phantom(70, 5), Buf::phantom(30, 6)];
        for data in [&mixed[..], &mixed[..1], &mixed[1..2]] {
            let sum = block_sum(data);
            for len in 1..120 {
                assert_eq!(block_sum(&pieces(data, len)), sum, "pieces of {len}");
            }
            for segment in 0..data.len() {
                let mut damaged = data.to_vec();
                damaged[segment] = data[segment].with_flipped_bit(7);
                assert_ne!(block_sum(&damaged), sum);
            }
        }
        assert_eq!(block_sum(&mixed[..1]), crc32c(&bytes));
        assert_ne!(block_sum(&mixed), block_sum(&mixed[..2]));
    }
}
