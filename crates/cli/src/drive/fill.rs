use base::{Buf, BufMut};
use clock::Class;
use disk::File;
use media::{Blocks, Error};
use smallvec::smallvec;
use std::sync::Arc;

/// Bytes of each write, and writes in flight: enough to keep any flash drive busy.
const PART_BYTES: u32 = 1 << 20;
const WRITERS: u64 = 8;

/// Writes zeros once to all of `file`. Calls `tell` with the bytes written so far and the bytes of
/// the file.
///
/// The first write to a block is slower than an overwrite: a file system must mark the block as
/// written, and a flash drive must map it.
pub(super) async fn fill(file: &Arc<File>, mut tell: impl FnMut(u64, u64)) -> Result<(), Error> {
    let shape = file.shape();
    let block_bytes = u64::from(shape.block_bytes);
    let zeros = BufMut::unpooled(PART_BYTES as usize).freeze();
    let part_blocks = u64::from(PART_BYTES) / block_bytes;
    for first in (0..shape.blocks).step_by(usize_of(WRITERS * part_blocks)) {
        let end = shape.blocks.min(first + WRITERS * part_blocks);
        let parts = (first..end).step_by(usize_of(part_blocks)).map(|at| {
            let bytes = part_blocks.min(end - at) * block_bytes;
            let bytes = u32::try_from(bytes).expect("a part is no longer");
            write(file.clone(), at, zeros.slice(0..bytes))
        });
        let written = clock::join_all(parts.collect()).await;
        written.into_iter().collect::<Result<(), Error>>()?;
        tell(end * block_bytes, shape.blocks * block_bytes);
    }
    file.flush().await
}

async fn write(file: Arc<File>, first: u64, data: Buf) -> Result<(), Error> {
    file.write(first, smallvec![data], Class::HostWrite).await
}

fn usize_of(blocks: u64) -> usize {
    usize::try_from(blocks).expect("some MiB fit memory")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::serve;
    use disk::Access;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn all_blocks_are_written_and_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive");
        let bytes = 13 * u64::from(PART_BYTES) + 8_192;
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, &[7; 4_096], 5 << 20).unwrap();
        let mut told = Vec::new();
        serve(async {
            let file = Arc::new(File::open(&path, Access::Write, None).unwrap());
            fill(&file, |done, all| told.push((done, all))).await.unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(told, [(8 << 20, bytes), (bytes, bytes)]);
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
        assert!(path.metadata().unwrap().blocks() * 512 >= bytes, "there are holes in it");
    }
}
