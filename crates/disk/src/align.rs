use crate::sectors::Sectors;
use base::{Buf, BufPool};
use media::Segments;

/// Returns the same bytes in parts that the disk accepts, and how many bytes it copied. Aligned
/// parts are used as they are, split where that saves a copy. Bytes between them are copied to
/// buffers of `pool`.
///
/// Together they are whole sectors.
pub(crate) fn align(data: Segments, sectors: Sectors, pool: &BufPool) -> (Segments, u64) {
    if data.iter().all(|part| sectors.take(part)) {
        return (data, 0);
    }
    let mut aligned = Aligned { data: Segments::new(), copied: 0, run: Run::default() };
    for part in data {
        let mut rest = part;
        while rest.len() > 0 {
            rest = aligned.push(&rest, sectors, pool);
        }
    }
    aligned.end_run(pool);
    (aligned.data, aligned.copied)
}

impl Sectors {
    fn take(self, part: &Buf) -> bool {
        part.len() == 0 || (part.len().is_multiple_of(self.bytes) && self.take_start(part, 0))
    }

    /// True when the memory of `part` from `start` on is aligned for a write.
    fn take_start(self, part: &Buf, start: u32) -> bool {
        let bytes = part.bytes().expect("a disk takes bytes, and a phantom has none");
        bytes[start as usize..].as_ptr().addr().is_multiple_of(self.memory as usize)
    }
}

struct Aligned {
    data: Segments,
    copied: u64,
    run: Run,
}

/// Consecutive bytes to copy into one buffer.
#[derive(Default)]
struct Run {
    parts: Segments,
    len: u32,
}

impl Aligned {
    /// Takes the front of `part`, or all of it, and returns the rest.
    fn push(&mut self, part: &Buf, sectors: Sectors, pool: &BufPool) -> Buf {
        let past = self.run.len % sectors.bytes;
        let whole = part.len() - part.len() % sectors.bytes;
        if past == 0 && whole > 0 && sectors.take_start(part, 0) {
            self.end_run(pool);
            self.data.push(part.slice(0..whole));
            return part.slice(whole..part.len());
        }
        // The bytes missing to a whole sector, if the rest is aligned after them.
        let missing = (sectors.bytes - past) % sectors.bytes;
        let is_cut = missing > 0
            && part.len() >= missing + sectors.bytes
            && sectors.take_start(part, missing);
        let len = if is_cut { missing } else { part.len() };
        self.run.parts.push(part.slice(0..len));
        self.run.len += len;
        part.slice(len..part.len())
    }

    fn end_run(&mut self, pool: &BufPool) {
        let Run { parts, len } = std::mem::take(&mut self.run);
        if len == 0 {
            return;
        }
        let mut copy = pool.take(len as usize);
        let mut rest = copy.as_mut();
        for part in &parts {
            let bytes = part.bytes().expect("it was looked at");
            let (front, back) = rest.split_at_mut(bytes.len());
            front.copy_from_slice(bytes);
            rest = back;
        }
        self.copied += u64::from(len);
        self.data.push(copy.freeze());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BufMut, Rng};

    const SECTORS: Sectors = Sectors { bytes: 512, memory: 512 };

    fn random(rng: &mut Rng, len: u32) -> Buf {
        let mut buf = BufMut::unpooled(len as usize);
        rng.fill(buf.as_mut());
        buf.freeze()
    }

    fn bytes(of: &Segments) -> Vec<u8> {
        of.iter().flat_map(|part| part.bytes().unwrap().to_vec()).collect()
    }

    /// Returns the lengths of the parts, and how many bytes were copied.
    fn shape(of: &[Buf], sectors: Sectors) -> (Vec<u32>, u64) {
        let data: Segments = of.iter().cloned().collect();
        let expected = bytes(&data);
        let (aligned, copied) = align(data, sectors, &BufPool::new(1 << 20));
        assert!(aligned.iter().all(|part| sectors.take(part)), "{of:?}");
        assert_eq!(bytes(&aligned), expected);
        (aligned.iter().map(Buf::len).collect(), copied)
    }

    #[test]
    fn aligned_parts_are_used_as_they_are() {
        let whole = random(&mut Rng::new(1), 8_192);
        let parts = [whole.slice(0..512), whole.slice(1_024..8_192), whole.slice(0..0)];
        let (aligned, copied) =
            align(parts.iter().cloned().collect(), SECTORS, &BufPool::new(1 << 20));
        assert_eq!(copied, 0);
        assert_eq!(aligned[1].bytes().unwrap().as_ptr(), parts[1].bytes().unwrap().as_ptr());
    }

    /// Only the sectors in which two parts meet are copied.
    #[test]
    fn no_more_is_copied_than_the_sectors_where_parts_meet() {
        let whole = random(&mut Rng::new(2), 16_384);
        // 5000 = 9 * 512 + 392, and 392 + 3704 = 8 * 512.
        let (front, tail) = (whole.slice(0..5_000), whole.slice(8_192..8_192 + 3_704));
        assert_eq!(shape(&[front.clone(), tail], SECTORS), (vec![4_608, 4_096], 4_096));
        // The next 392 bytes, from byte 120 of a sector, complete a sector; the rest is aligned.
        let rest = whole.slice(8_192 + 392..8_192 + 392 + 120 + 1_024);
        assert_eq!(shape(&[front, rest], SECTORS), (vec![4_608, 512, 1_024], 512));
    }

    #[test]
    fn any_parts_come_out_whole() {
        let mut rng = Rng::new(3);
        for round in 0..2_000 {
            let sectors =
                [SECTORS, Sectors { bytes: 4_096, memory: 4 }, Sectors { bytes: 512, memory: 4 }]
                    [usize::try_from(rng.below(3)).unwrap()];
            let mut parts = Vec::new();
            let mut len = 0;
            for _ in 0..=rng.below(6) {
                let whole = random(&mut rng, 20_000);
                let start =
                    [0, 512, 4_096, rng.below(5_000)][usize::try_from(rng.below(4)).unwrap()];
                let count = [512, 4_096, rng.below(9_000)][usize::try_from(rng.below(3)).unwrap()];
                let (start, end) =
                    (u32::try_from(start).unwrap(), u32::try_from(start + count).unwrap());
                parts.push(whole.slice(start..end));
                len += end - start;
            }
            parts.push(Buf::copy_from(&vec![
                9;
                (len.next_multiple_of(sectors.bytes) - len) as usize
            ]));
            let (_, copied) = shape(&parts, sectors);
            assert!(copied <= u64::from(len.next_multiple_of(sectors.bytes)), "round {round}");
        }
    }
}
