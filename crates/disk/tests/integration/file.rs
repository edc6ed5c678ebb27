//! A disk on a real file: writes reach it, errors name the other user, and one drive owns it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::{Buf, BufMut, Rng};
use clock::{Class, Notify};
use disk::{Access, CreateError, File, Loss, OpenError, Usage, create, resize};
use media::{Blocks, Error, Segments};
use reactor::{Reactor, Remote};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use tempfile::TempDir;

fn serve<T>(root: impl Future<Output = T>) -> T {
    Reactor::new(None).serve(&Remote::new().unwrap(), root).unwrap().0
}

/// Creates a folder on a disk: the system's temporary folder is often in memory.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn made(folder: &TempDir, bytes: u64) -> PathBuf {
    let path = folder.path().join("disk");
    create(&path, bytes).unwrap();
    path
}

/// Returns the content of a block: the number of the write that wrote it, repeated.
fn content(write: u32, block: u64, block_bytes: u32) -> Vec<u8> {
    let words = (0..block_bytes / 16).flat_map(|_| [u64::from(write), block]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// Returns the content of `count` blocks, cut anywhere and with any alignment.
fn scattered(rng: &mut Rng, bytes: &[u8]) -> Segments {
    let mut data = Segments::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = match rng.below(3) {
            0 => rest.len(),
            1 => rest.len().min(512),
            _ => usize::try_from(rng.below(rest.len() as u64 + 1)).unwrap(),
        };
        let (part, after) = rest.split_at(len);
        let start = [0, 512, 100][usize::try_from(rng.below(3)).unwrap()];
        let mut memory = BufMut::unpooled(start + len);
        memory.as_mut()[start..].copy_from_slice(part);
        let end = u32::try_from(start + len).unwrap();
        data.push(memory.freeze().slice(u32::try_from(start).unwrap()..end));
        rest = after;
    }
    data
}

/// The possible contents of a block: the numbers of the writes; 0 means zeros.
type Candidates = BTreeSet<u32>;

/// Runs several writes and trims concurrently at any places, overlapping ones too.
fn act(rng: &mut Rng, disk: &Arc<File>, model: &mut [Candidates], writes: &mut u32) {
    let shape = disk.shape();
    let mut touched = vec![Candidates::new(); model.len()];
    let mut futures = Vec::new();
    for _ in 0..=rng.below(40) {
        let first = rng.below(shape.blocks);
        let count = 1 + rng.below((shape.blocks - first).min(24));
        let blocks = first..first + count;
        let is_trim = rng.below(8) == 0;
        *writes += 1;
        for block in blocks.clone() {
            let held = if is_trim { 0 } else { *writes };
            touched[usize::try_from(block).unwrap()].insert(held);
        }
        let contents = blocks.map(|block| content(*writes, block, shape.block_bytes));
        let data = scattered(rng, &contents.collect::<Vec<_>>().concat());
        let disk = disk.clone();
        futures.push(async move {
            if is_trim {
                disk.trim(first, count, Class::HostWrite).await
            } else {
                disk.write(first, data, Class::HostWrite).await
            }
        });
    }
    serve(async {
        let results = clock::join_all(futures).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}: {:?}", disk.failure());
        disk.flush().await.unwrap();
    });
    for (held, touched) in model.iter_mut().zip(touched) {
        if !touched.is_empty() {
            *held = touched;
        }
    }
}

/// Reads all blocks concurrently by the disk, and by std, which decides between the candidates.
fn check(path: &Path, disk: &Arc<File>, model: &mut [Candidates]) {
    let shape = disk.shape();
    let block_bytes = shape.block_bytes as usize;
    let by_std = std::fs::read(path).unwrap();
    let read = serve(async {
        let reads = (0..shape.blocks).step_by(7).map(|first| {
            let disk = disk.clone();
            let count = u32::try_from((shape.blocks - first).min(7)).unwrap();
            async move { disk.read(first, count, Class::HostRead).await.unwrap() }
        });
        clock::join_all(reads.collect()).await
    });
    let read: Vec<u8> =
        read.iter().flatten().flat_map(|part| part.bytes().unwrap().to_vec()).collect();
    assert!(read == by_std[..read.len()], "the file has what the disk has");
    assert_eq!(read.len(), model.len() * block_bytes);
    for ((block, held), bytes) in (0..).zip(model).zip(read.chunks(block_bytes)) {
        let is = |write: &&u32| match **write {
            0 => bytes.iter().all(|byte| *byte == 0),
            write => bytes == content(write, block, shape.block_bytes),
        };
        let which = held.iter().find(is).copied();
        let which = which.unwrap_or_else(|| panic!("block {block} is of none of {held:?}"));
        *held = Candidates::from([which]);
    }
}

fn agrees_with_its_model(block_bytes: u32, seed: u64) {
    let folder = folder();
    let blocks = 300;
    // The file ends with a part of a block.
    let path = made(&folder, blocks * u64::from(block_bytes) + u64::from(block_bytes) / 2);
    let mut rng = Rng::new(seed);
    let mut model = vec![Candidates::from([0]); usize::try_from(blocks).unwrap()];
    let mut writes = 0;
    for _ in 0..4 {
        let disk = Arc::new(File::open(&path, Access::Write, Some(block_bytes)).unwrap());
        assert_eq!((disk.shape().blocks, disk.shape().block_bytes), (blocks, block_bytes));
        for _ in 0..5 {
            act(&mut rng, &disk, &mut model, &mut writes);
            check(&path, &disk, &mut model);
        }
        let counters = disk.counters();
        assert!(counters.copied_bytes > 0 && counters.copied_bytes < counters.written_bytes);
        assert_eq!((counters.flushes, counters.failures), (5, 0));
    }
}

#[test]
fn blocks_of_4096_bytes_hold_what_was_written_last() {
    (0..3).for_each(|seed| agrees_with_its_model(4_096, seed));
}

#[test]
fn blocks_that_the_disk_is_best_written_in_hold_what_was_written_last() {
    let folder = folder();
    let path = made(&folder, 1 << 20);
    let best = File::open(&path, Access::Read, None).unwrap().shape().block_bytes;
    (3..6).for_each(|seed| agrees_with_its_model(best, seed));
}

#[test]
fn blocks_as_small_as_the_disk_takes_hold_what_was_written_last() {
    let folder = folder();
    let path = made(&folder, 1 << 20);
    if File::open(&path, Access::Read, Some(512)).is_ok() {
        (6..9).for_each(|seed| agrees_with_its_model(512, seed));
    }
}

#[test]
fn aligned_memory_is_not_copied() {
    let folder = folder();
    let path = made(&folder, 1 << 20);
    let disk = File::open(&path, Access::Write, Some(4_096)).unwrap();
    let mut whole = BufMut::unpooled(5 * 4_096);
    Rng::new(7).fill(whole.as_mut());
    let whole = whole.freeze();
    serve(async {
        let data = [whole.slice(8_192..20_480), whole.slice(0..4_096)].into_iter().collect();
        disk.write(9, data, Class::HostWrite).await.unwrap();
        let read = disk.read(11, 2, Class::HostRead).await.unwrap();
        let read = Buf::join(&read).unwrap();
        assert_eq!(read.bytes().unwrap()[..4_096], whole.bytes().unwrap()[16_384..]);
        assert_eq!(read.bytes().unwrap()[4_096..], whole.bytes().unwrap()[..4_096]);
    });
    let counters = disk.counters();
    assert_eq!((counters.writes, counters.written_bytes, counters.copied_bytes), (1, 16_384, 0));
    assert_eq!((counters.reads, counters.read_bytes), (1, 8_192));
}

#[test]
fn a_reactor_that_goes_leaves_whole_blocks_and_a_disk_that_can_be_opened() {
    const BLOCKS: u64 = 400;
    let folder = folder();
    let path = made(&folder, BLOCKS * 4_096);
    let disk = Arc::new(File::open(&path, Access::Write, Some(4_096)).unwrap());
    let mut reactor = Reactor::new(None);
    let is_written = Rc::new(Notify::new());
    let root = async {
        for block in 0..BLOCKS {
            let (disk, is_written) = (disk.clone(), is_written.clone());
            clock::spawn(async move {
                let data = [Buf::copy_from(&content(5, block, 4_096))].into_iter().collect();
                disk.write(block, data, Class::HostWrite).await.unwrap();
                is_written.notify();
                disk.read(block, 1, Class::HostRead).await.unwrap();
            });
        }
        // It is woken before any block is read. A timer may end after all tasks have, because those
        // that are ready come first.
        is_written.wait().await;
    };
    reactor.serve(&Remote::new().unwrap(), root).unwrap();
    assert!(reactor.tasks() > 0, "something is under way");
    drop(reactor);
    let in_use = File::open(&path, Access::Write, None).unwrap_err();
    assert!(matches!(in_use, OpenError::InUse { .. }), "it is still ours: {in_use}");
    drop(disk);
    let disk = File::open(&path, Access::Write, None).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for (block, bytes) in (0..).zip(bytes.chunks(4_096)) {
        let is_whole = bytes == content(5, block, 4_096);
        assert!(is_whole || bytes.iter().all(|byte| *byte == 0), "block {block}");
    }
    drop(disk);
}

/// Runs flock(1), which holds the lock until its standard input ends.
fn hold(path: &Path, kind: &str) -> std::process::Child {
    let mut child = Command::new("flock")
        .args(["--no-fork", "--nonblock", kind])
        .arg(path)
        .args(["sh", "-c", "echo ready; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flock(1) of util-linux is needed");
    let mut line = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    child
}

fn can_lock(path: &Path, kind: &str) -> bool {
    let mut flock = Command::new("flock");
    flock.args(["--nonblock", kind]).arg(path).arg("true").status().unwrap().success()
}

#[test]
fn another_process_is_refused_and_named() {
    let folder = folder();
    let path = made(&folder, 1 << 20);
    let mut child = hold(&path, "--exclusive");
    for access in [Access::Read, Access::Write] {
        let error = File::open(&path, access, None).unwrap_err();
        let OpenError::InUse { usage: Some(Usage::Locked(holder)), .. } = &error else {
            panic!("{error}")
        };
        assert_eq!((holder.process, holder.program.as_deref()), (child.id(), Some("sh")));
        let expected = format!(
            "{} is in use: it is locked by process {} (sh): stop that program, or use another disk",
            path.display(),
            child.id()
        );
        assert_eq!(error.to_string(), expected);
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child.wait().unwrap();
    let disk = File::open(&path, Access::Write, None).unwrap();
    assert!(!can_lock(&path, "--exclusive") && !can_lock(&path, "--shared"));
    drop(disk);
    let reader = File::open(&path, Access::Read, None).unwrap();
    let other = File::open(&path, Access::Read, None).unwrap();
    assert!(can_lock(&path, "--shared") && !can_lock(&path, "--exclusive"));
    drop((reader, other));
    assert!(can_lock(&path, "--exclusive"));
}

#[test]
fn a_failed_write_reports_its_cause() {
    let folder = folder();
    let path = made(&folder, 1 << 20);
    let disk = File::open(&path, Access::Read, Some(4_096)).unwrap();
    let data: Segments = [Buf::copy_from(&[1; 4_096])].into_iter().collect();
    serve(async {
        let written = disk.write(3, data, Class::HostWrite).await;
        assert_eq!(written, Err(Error::UnwrittenBlock(3)));
        let failure = disk.failure().unwrap();
        assert!(failure.starts_with("blocks from 3 could not be written: Bad file"), "{failure}");
        // Another program shortens the open file.
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8_192).unwrap();
        let read = disk.read(5, 2, Class::HostRead).await;
        assert_eq!(read.unwrap_err(), Error::UnrecoveredBlock(5));
        assert!(disk.failure().unwrap().starts_with("2 blocks from 5 could not be read: "));
    });
    assert_eq!(disk.counters().failures, 2);
}

#[test]
fn a_path_that_is_no_disk_is_refused_in_a_sentence() {
    let folder = folder();
    let path = made(&folder, 400);
    let sentence = |path: &Path, block| {
        File::open(path, Access::Write, block)
            .unwrap_err()
            .to_string()
            .replace(&folder.path().display().to_string(), "F")
    };
    assert_eq!(
        sentence(&path, Some(4_096)),
        "F/disk has 400 bytes, less than one block: use a larger file or device"
    );
    assert_eq!(
        sentence(folder.path(), None),
        "F is neither a file nor a block device: name one of them"
    );
    assert_eq!(
        sentence(Path::new("/dev/null"), None),
        "/dev/null is neither a file nor a block device: name one of them"
    );
    assert_eq!(
        sentence(&folder.path().join("none"), None),
        "cannot open F/none: No such file or directory (os error 2)"
    );
    assert!(sentence(&path, Some(1_000)).contains("so its blocks cannot have 1000 bytes: ask for"));
}

#[test]
fn a_new_file_has_its_space_and_is_its_owners_alone() {
    let folder = folder();
    let path = folder.path().join("new");
    create(&path, 3 << 20).unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!((metadata.len(), metadata.mode() & 0o777), (3 << 20, 0o600));
    assert!(metadata.blocks() * 512 >= 3 << 20);
    let mut byte = [1];
    std::fs::File::open(&path).unwrap().read_exact_at(&mut byte, 9_999).unwrap();
    assert_eq!(byte, [0]);
    assert!(matches!(create(&path, 1), Err(CreateError::Exists { .. })));
    let path = folder.path().join("huge");
    let error = create(&path, 1 << 60).unwrap_err();
    assert!(matches!(error, CreateError::NoSpace { .. }), "{error}");
    assert!(!path.exists());
}

/// Returns 256 blocks of 4 KiB, of which the first is written, cut to 128.
fn cut(folder: &TempDir) -> File {
    let path = made(folder, 1 << 20);
    let disk = File::open(&path, Access::Write, Some(4_096)).unwrap();
    serve(async {
        let data = Segments::from_iter([Buf::copy_from(&[7; 4_096])]);
        disk.write(0, data, Class::HostWrite).await.unwrap();
        disk.flush().await.unwrap();
    });
    assert_eq!(disk.loss(), None);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(1 << 19).unwrap();
    disk
}

#[test]
fn a_shortened_file_takes_no_writes_and_its_rest_can_be_read() {
    let folder = folder();
    let disk = cut(&folder);
    let block = || Segments::from_iter([Buf::copy_from(&[8; 4_096])]);
    serve(async {
        assert_eq!(disk.flush().await, Err(Error::NotFlushed));
        for first in [1, 200, 255] {
            let written = disk.write(first, block(), Class::HostWrite).await;
            assert_eq!(written, Err(Error::UnwrittenBlock(first)));
        }
        assert_eq!(disk.trim(3, 1, Class::HostWrite).await, Err(Error::UnwrittenBlock(3)));
        let read = disk.read(0, 1, Class::HostRead).await.unwrap();
        assert_eq!(read[0].bytes().unwrap(), [7; 4_096]);
        let read = disk.read(200, 1, Class::HostRead).await.map(drop);
        assert_eq!(read, Err(Error::UnrecoveredBlock(200)));
    });
    assert_eq!(disk.loss(), Some(Loss::Shortened { from: 1 << 20, to: 1 << 19 }));
    let failure = disk.failure().unwrap();
    assert!(failure.contains("200"), "the last was a read: {failure}");
    assert_eq!(folder.path().join("disk").metadata().unwrap().len(), 1 << 19);
}

/// Before any flush has seen the cut, a write there would give the file its length again.
#[test]
fn a_write_of_the_last_block_does_not_hide_a_cut() {
    let folder = folder();
    let disk = cut(&folder);
    let block = Segments::from_iter([Buf::copy_from(&[8; 4_096])]);
    let written = serve(disk.write(255, block, Class::HostWrite));
    assert_eq!(written, Err(Error::UnwrittenBlock(255)));
    assert!(disk.failure().unwrap().ends_with(
        "it was cut from 1.0 MiB to 512.0 KiB while it was \
                                               in use"
    ));
}

#[test]
fn a_removed_file_is_reported_and_works() {
    let folder = folder();
    let path = made(&folder, 1 << 20);
    let disk = File::open(&path, Access::Write, Some(4_096)).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(disk.loss(), Some(Loss::Removed));
    serve(disk.flush()).unwrap();
}

#[test]
fn a_file_that_cannot_be_resized_stays_as_it_is() {
    let folder = folder();
    let path = folder.path().join("disk");
    std::fs::write(&path, [7; 10_000]).unwrap();
    let too_large = resize(&path, 1 << 62);
    assert!(matches!(too_large, Err(CreateError::NoSpace { .. })), "{too_large:?}");
    assert!(std::fs::read(&path).unwrap() == [7; 10_000]);
    for size in [1 << 20, 8_192] {
        resize(&path, size).unwrap();
        assert_eq!(path.metadata().unwrap().len(), size);
        assert!(path.metadata().unwrap().blocks() * 512 >= size, "its space is taken");
    }
    let locked = File::open(&path, Access::Write, Some(4_096)).unwrap();
    let error = resize(&path, 1 << 20).unwrap_err().to_string();
    assert!(error.contains("cannot resize"), "{error}");
    drop(locked);
}
