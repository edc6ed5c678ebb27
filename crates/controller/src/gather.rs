use base::checksum::Digest;
use base::{Buf, BufMut};
use media::Segments;

/// Gathers the data of a Read into one buffer for the host.
///
/// This is done here, at the end, because only the host's side needs one buffer: below, data stays
/// scattered as it was written, and a medium that joined phantoms would have to invent a tag that
/// no host wrote. Blocks that are phantoms of different tags become a phantom whose tag is a digest
/// of each block's checksum, in order, so that it does not depend on how a medium has cut them.
pub(crate) fn gathered(mut segments: Segments, block_bytes: u32) -> Buf {
    match (segments.len(), segments.pop()) {
        (1, Some(only)) => return only,
        (_, Some(last)) => segments.push(last),
        (_, None) => return Buf::phantom(0, 0),
    }
    if segments.iter().all(|segment| segment.bytes().is_some()) {
        return copied(&segments);
    }
    Buf::join(&segments).unwrap_or_else(|| digested(&segments, block_bytes))
}

fn copied(segments: &Segments) -> Buf {
    let len: u32 = segments.iter().map(Buf::len).sum();
    let mut whole = BufMut::unpooled(len as usize);
    let mut rest = whole.as_mut();
    for bytes in segments.iter().filter_map(Buf::bytes) {
        let (here, after) = rest.split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest = after;
    }
    whole.freeze()
}

fn digested(segments: &Segments, block_bytes: u32) -> Buf {
    let mut digest = Digest::default();
    // The parts of the current block, and its missing bytes.
    let (mut block, mut missing) = (Segments::new(), block_bytes);
    for segment in segments {
        let mut start = 0;
        while start < segment.len() {
            let end = segment.len().min(start + missing);
            block.push(segment.slice(start..end));
            missing -= end - start;
            start = end;
            if missing == 0 {
                add_block(&mut digest, &block);
                block.clear();
                missing = block_bytes;
            }
        }
    }
    add_block(&mut digest, &block);
    Buf::phantom(segments.iter().map(Buf::len).sum(), digest.value())
}

fn add_block(digest: &mut Digest, parts: &[Buf]) {
    match Buf::join(parts) {
        Some(block) if block.len() == 0 => {}
        Some(block) => digest.add(&[block.checksum()]),
        None => parts.iter().for_each(|part| digest.add(&[part.checksum()])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(segments: &[Buf]) -> Buf {
        gathered(segments.into(), 4)
    }

    #[test]
    fn one_segment_is_handed_on_and_several_of_bytes_are_joined() {
        let one = Buf::copy_from(b"abcdefgh");
        let same = gather(std::slice::from_ref(&one));
        assert_eq!(same.bytes().unwrap().as_ptr(), one.bytes().unwrap().as_ptr());
        let joined = gather(&[one, Buf::copy_from(b"ijkl"), Buf::copy_from(b"mnop")]);
        assert_eq!(joined.bytes().unwrap(), b"abcdefghijklmnop");
        assert_eq!(gather(&[]).len(), 0);
    }

    #[test]
    fn blocks_of_one_tag_keep_it() {
        let joined = gather(&[Buf::phantom(4, 9), Buf::phantom(8, 9)]);
        assert_eq!((joined.len(), joined.checksum()), (12, 9));
    }

    #[test]
    fn blocks_of_different_tags_have_a_digest_of_them_however_they_are_cut() {
        let cut = gather(&[Buf::phantom(4, 5), Buf::phantom(4, 5), Buf::phantom(4, 6)]);
        let uncut = gather(&[Buf::phantom(8, 5), Buf::phantom(4, 6)]);
        let mut digest = Digest::default();
        digest.add(&[5, 5, 6]);
        assert_eq!((cut.len(), cut.checksum()), (12, digest.value()));
        assert_eq!((uncut.len(), uncut.checksum()), (12, digest.value()));
        let swapped = gather(&[Buf::phantom(4, 6), Buf::phantom(8, 5)]);
        assert_ne!(swapped.checksum(), uncut.checksum());
    }

    #[test]
    fn bytes_among_phantoms_count_by_their_checksum() {
        let bytes = Buf::copy_from(b"abcdefgh");
        let mixed = gather(&[Buf::phantom(4, 5), bytes.clone()]);
        let mut digest = Digest::default();
        digest.add(&[5, bytes.slice(0..4).checksum(), bytes.slice(4..8).checksum()]);
        assert_eq!((mixed.len(), mixed.checksum()), (12, digest.value()));
        let cut =
            [Buf::phantom(4, 5), bytes.slice(0..3), Buf::copy_from(b"defg"), bytes.slice(7..8)];
        assert_eq!(gather(&cut).checksum(), digest.value(), "blocks cut anywhere");
    }
}
