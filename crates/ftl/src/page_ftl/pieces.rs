use base::Buf;
use base::limits::BLOCK_BYTES;
use media::Segments;

/// The data of a write, split by logical blocks.
pub(crate) struct Pieces {
    segments: Segments,
    /// The current segment and the offset in it.
    at: usize,
    gone: u32,
}

impl Pieces {
    pub(crate) const fn new(segments: Segments) -> Self {
        Self { segments, at: 0, gone: 0 }
    }

    /// Moves the next logical block to the end of `data`.
    #[inline]
    pub(crate) fn next_to(&mut self, data: &mut Segments) {
        let mut missing = BLOCK_BYTES;
        while missing > 0 {
            let segment = &mut self.segments[self.at];
            let left = segment.len() - self.gone;
            let part = left.min(missing);
            if part == segment.len() {
                data.push(std::mem::replace(segment, Buf::phantom(0, 0)));
            } else if part > 0 {
                data.push(segment.slice(self.gone..self.gone + part));
            }
            missing -= part;
            self.gone += part;
            if part == left {
                self.at += 1;
                self.gone = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_cut_out_of_segments_of_any_length() {
        let bytes: Vec<u8> = (0..BLOCK_BYTES * 3).map(|at| (at % 251) as u8).collect();
        let whole = Buf::copy_from(&bytes);
        let cuts = [0, 1, 1, 4_096, 5_000, 8_192, 12_288];
        let segments = cuts.windows(2).map(|cut| whole.slice(cut[0]..cut[1])).collect();
        let mut pieces = Pieces::new(segments);
        for expected in bytes.chunks(BLOCK_BYTES as usize) {
            let mut data = Segments::new();
            pieces.next_to(&mut data);
            let data: Vec<u8> =
                data.iter().flat_map(|part| part.bytes().unwrap().to_vec()).collect();
            assert!(data == expected);
        }
    }
}
