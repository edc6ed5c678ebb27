//! Files: bytes arrive where they belong, many operations run at once, failures are reported, and
//! no operation outlives its reactor.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::{Buf, BufMut, BufPool, Nanos, Rng};
use clock::Stage;
use reactor::{File, Reactor, Remote};
use rustix::fs::{Mode, OFlags};
use std::cell::Cell;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn serve<T>(root: impl Future<Output = T>) -> T {
    Reactor::new(None).serve(&Remote::new().unwrap(), root).unwrap().0
}

fn file(of: impl Into<OwnedFd>) -> File {
    File::new(of.into(), BufPool::new(1 << 20))
}

/// An unlinked file: it disappears when its last handle closes.
fn fresh() -> (std::fs::File, File) {
    let plain = tempfile::tempfile().unwrap();
    let same = file(plain.try_clone().unwrap());
    (plain, same)
}

fn content(of: &std::fs::File) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; usize::try_from(of.metadata().unwrap().len()).unwrap()];
    of.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

#[test]
fn what_is_written_in_parts_is_there_and_is_read() {
    let (plain, file) = fresh();
    let bytes = random(&mut Rng::new(1), 40_000);
    let whole = Buf::copy_from(&bytes);
    let parts = [0..10, 10..5_000, 5_000..5_000, 7_000..20_000, 5_000..7_000, 20_000..40_000];
    let expected: Vec<u8> = parts.iter().flat_map(|part| bytes[part.clone()].to_vec()).collect();
    serve(async {
        let parts = parts.iter().map(|part| {
            let range = u32::try_from(part.start).unwrap()..u32::try_from(part.end).unwrap();
            whole.slice(range)
        });
        file.write(100, parts.collect()).await.unwrap();
        file.sync().await.unwrap();
        file.write(50, [].into_iter().collect()).await.unwrap();
        assert_eq!(file.read(100, 40_000).await.unwrap().bytes().unwrap(), expected);
        assert_eq!(file.read(1_100, 10).await.unwrap().bytes().unwrap(), &expected[1_000..1_010]);
        assert_eq!(file.read(9, 0).await.unwrap().len(), 0);
    });
    assert_eq!(content(&plain)[100..], expected);
    assert_eq!(content(&plain)[..100], [0; 100]);
}

#[test]
fn more_parts_than_the_kernel_takes_at_once_are_written_in_order() {
    let (plain, file) = fresh();
    let bytes = random(&mut Rng::new(2), 3_000);
    // Each in memory of its own, so that none are neighbours.
    let parts = bytes.iter().map(|byte| Buf::copy_from(&[*byte, !*byte])).collect();
    serve(async { file.write(7, parts).await.unwrap() });
    let expected: Vec<u8> = bytes.iter().flat_map(|byte| [*byte, !*byte]).collect();
    assert_eq!(content(&plain)[7..], expected);
}

#[test]
fn hundreds_of_operations_go_on_at_once() {
    const OPERATIONS: u64 = 900;
    const BYTES: u64 = 512;
    let (plain, file) = fresh();
    let file = Arc::new(file);
    let mut rng = Rng::new(3);
    let expected = random(&mut rng, usize::try_from(OPERATIONS * BYTES).unwrap());
    let at = |number: u64| usize::try_from(number * BYTES).unwrap();
    serve(async {
        let write = |number| {
            let file = file.clone();
            let data = Buf::copy_from(&expected[at(number)..at(number + 1)]);
            async move { file.write(number * BYTES, [data].into_iter().collect()).await }
        };
        let ended = clock::join_all((0..OPERATIONS).map(write).collect()).await;
        assert!(ended.into_iter().all(|result| result.is_ok()));
        let read = |number| {
            let file = file.clone();
            async move { file.read(number * BYTES, 512).await.unwrap() }
        };
        let read = clock::join_all((0..OPERATIONS).map(read).collect()).await;
        for (number, bytes) in (0..).zip(read) {
            assert_eq!(bytes.bytes().unwrap(), &expected[at(number)..at(number + 1)]);
        }
    });
    assert_eq!(content(&plain), expected);
}

#[test]
fn a_hole_reads_as_zeros_and_takes_no_space() {
    use std::os::unix::fs::MetadataExt;
    let (plain, file) = fresh();
    (&plain).write_all(&vec![7; 1 << 20]).unwrap();
    plain.sync_all().unwrap();
    let before = plain.metadata().unwrap().blocks();
    serve(async { file.punch(4_096, (1 << 20) - 8_192).await.unwrap() });
    let mut expected = vec![0; 1 << 20];
    expected[..4_096].fill(7);
    expected[(1 << 20) - 4_096..].fill(7);
    assert_eq!(content(&plain), expected);
    plain.sync_all().unwrap();
    assert!(plain.metadata().unwrap().blocks() < before / 8);
}

#[test]
fn what_fails_says_why() {
    let (plain, short) = fresh();
    (&plain).write_all(b"12345").unwrap();
    let only_read = rustix::fs::open("/dev/zero", OFlags::RDONLY, Mode::empty()).unwrap();
    let full = rustix::fs::open("/dev/full", OFlags::RDWR, Mode::empty()).unwrap();
    let (only_read, full) = (file(only_read), file(full));
    let data = || [Buf::copy_from(b"data")].into_iter().collect();
    serve(async {
        assert_eq!(short.read(0, 5).await.unwrap().bytes().unwrap(), b"12345");
        let error = short.read(3, 5).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        // EBADF and ENOSPC of errno(3).
        assert_eq!(only_read.write(0, data()).await.unwrap_err().raw_os_error(), Some(9));
        assert_eq!(full.write(0, data()).await.unwrap_err().raw_os_error(), Some(28));
        assert_eq!(full.sync().await.unwrap_err().raw_os_error(), Some(22));
    });
}

/// A pipe gives what it has: a read of more is continued until all has come.
#[test]
fn what_the_kernel_does_in_part_is_continued() {
    let (from, to) = io::pipe().unwrap();
    let (from, to) = (file(from), Arc::new(file(to)));
    // More than a pipe holds.
    let bytes = random(&mut Rng::new(4), 200_000);
    let data = Buf::copy_from(&bytes);
    serve(async {
        let writer = to.clone();
        clock::spawn(async move {
            for part in [0..3, 3..100, 100..200_000] {
                clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
                let parts = [data.slice(part.clone())].into_iter().collect();
                writer.write(0, parts).await.unwrap();
            }
        });
        assert_eq!(from.read(0, 200_000).await.unwrap().bytes().unwrap(), bytes);
    });
}

#[test]
fn the_wait_for_a_file_is_time_of_the_array_and_the_reactor_is_idle() {
    const PAUSE: Duration = Duration::from_millis(30);
    let (from, mut to) = io::pipe().unwrap();
    let from = file(from);
    let remote = Remote::new().unwrap();
    let root = async {
        let writer = std::thread::spawn(move || {
            std::thread::sleep(PAUSE);
            to.write_all(b"1234").unwrap();
        });
        from.read(0, 4).await.unwrap();
        writer.join().unwrap();
        clock::stages()
    };
    let (stages, _) = Reactor::new(None).serve(&remote, root).unwrap();
    let pause = Nanos(u64::try_from(PAUSE.as_nanos()).unwrap());
    assert!(stages[Stage::Array] >= Nanos(pause.0 - 1_000_000), "{stages:?}");
    assert_eq!(stages.total(), stages[Stage::Array]);
    let load = remote.load();
    assert!(load.idle >= Nanos(pause.0 - 5_000_000) && load.sleeps >= 1, "{load:?}");
}

/// An operation that ends when another thread lets it: the memory must be there until then.
#[test]
fn a_reactor_that_is_dropped_waits_for_what_it_has_asked_for() {
    const PAUSE: Duration = Duration::from_millis(50);
    let (from, mut to) = io::pipe().unwrap();
    let from = Arc::new(file(from));
    let mut reactor = Reactor::new(None);
    let root = async {
        for _ in 0..2 {
            let from = from.clone();
            clock::spawn(async move {
                from.read(0, 4).await.unwrap();
            });
        }
        clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
    };
    reactor.serve(&Remote::new().unwrap(), root).unwrap();
    let asked = Instant::now();
    let writer = std::thread::spawn(move || {
        std::thread::sleep(PAUSE);
        to.write_all(b"12345678").unwrap();
    });
    drop(reactor);
    assert!(asked.elapsed() >= PAUSE);
    assert_eq!(Arc::strong_count(&from), 1);
    writer.join().unwrap();
}

#[test]
fn a_reactor_that_is_dropped_lets_the_kernel_end_first() {
    const BLOCK: u32 = 64 << 10;
    const BLOCKS: u32 = 300;
    let (plain, file) = fresh();
    plain.set_len(u64::from(BLOCK * BLOCKS)).unwrap();
    let file = Arc::new(file);
    let ended = Rc::new(Cell::new(0));
    let mut reactor = Reactor::new(None);
    let remote = Remote::new().unwrap();
    let root = async {
        for number in 0..BLOCKS {
            let (file, ended) = (file.clone(), ended.clone());
            clock::spawn(async move {
                let mut data = BufMut::unpooled(BLOCK as usize);
                data.as_mut().fill(u8::try_from(number % 255).unwrap() + 1);
                let parts = [data.freeze()].into_iter().collect();
                file.write(u64::from(number * BLOCK), parts).await.unwrap();
                file.read(u64::from(number * BLOCK), BLOCK).await.unwrap();
                ended.set(ended.get() + 1);
            });
        }
        clock::sleep(Nanos::from_micros(1), Stage::Queue).await;
    };
    reactor.serve(&remote, root).unwrap();
    let left = reactor.tasks();
    drop(reactor);
    assert_eq!(Arc::strong_count(&file), 1, "no operation holds the file");
    assert_eq!(left + ended.get(), BLOCKS as usize);
    drop(file);
    let before = content(&plain);
    for (number, block) in (0..BLOCKS).zip(before.chunks(BLOCK as usize)) {
        let byte = u8::try_from(number % 255).unwrap() + 1;
        let is_whole = block.iter().all(|at| *at == byte);
        assert!(is_whole || block.iter().all(|at| *at == 0), "block {number} was torn");
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(content(&plain) == before, "something was written after the end");
}
