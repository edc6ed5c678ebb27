//! Six personalities of Filebench, as block requests of their threads.
//!
//! Source: the workload definitions of Filebench, the files `workloads/*.f` of
//! github.com/filebench/filebench. They define the steps of a thread, the sizes of files and
//! operations, and their frequencies. This module keeps the steps that move data, since a block
//! device sees only those.

use super::open_channel::{COMMAND_BLOCKS_MAX, Direction, Io, SEED};
use Direction::{Read, Write};
use base::Rng;
use base::limits::BLOCK_BYTES;

/// Sizes in KiB: the weight of a range, and the range; all sizes of a range are equally likely.
type Sizes = &'static [(u64, u64, u64)];

/// A workload of Filebench.
pub(super) struct Personality {
    pub(super) name: &'static str,
    /// Description of its threads.
    pub(super) does: &'static str,
    /// Sizes of its files; none if all operations are anywhere in the space.
    files: Sizes,
    /// Steps of the first thread, and of all others.
    scripts: [Script; 2],
    /// Whether `fsync` follows each write, or the file is opened with `dsync`.
    pub(super) flushes: bool,
}

/// The steps of a thread.
#[derive(Clone, Copy)]
enum Script {
    /// In order, repeated.
    InTurn(&'static [Flowop]),
    /// At random, with these weights.
    Drawn(&'static [(u64, Flowop)]),
}

/// A step that moves data.
#[derive(Clone, Copy)]
enum Flowop {
    /// A file from its start to its end, in operations of a size that is drawn per file.
    Whole(Direction, Sizes),
    /// An append of up to a size that is drawn.
    Append(Sizes),
    /// This many KiB, at any multiple of them.
    Anywhere(Direction, u64),
    /// This many KiB, after those of the step before: of a video that is read, or of one that is
    /// written.
    Onward(Direction, u64),
}

use Flowop::{Anywhere, Append, Onward, Whole};
use Script::{Drawn, InTurn};

/// `iosize` of most: 1 MiB.
const MEBIBYTE: Sizes = &[(1, 1_024, 1_024)];

/// `meanappendsize` and `meaniosize`: 16 KiB.
const APPEND: Sizes = &[(1, 16, 16)];

/// `cvar-gamma` with a mean of 128 KiB and a gamma of 1.5: the means of its tenths.
const FILES_OF_128: Sizes = &[
    (1, 14, 14),
    (1, 34, 34),
    (1, 52, 52),
    (1, 70, 70),
    (1, 90, 90),
    (1, 113, 113),
    (1, 140, 140),
    (1, 176, 176),
    (1, 229, 229),
    (1, 362, 362),
];

/// The same with a mean of 16 KiB.
const FILES_OF_16: Sizes = &[
    (1, 2, 2),
    (1, 4, 4),
    (1, 6, 6),
    (1, 9, 9),
    (1, 11, 11),
    (1, 14, 14),
    (1, 18, 18),
    (1, 22, 22),
    (1, 29, 29),
    (1, 45, 45),
];

/// `filesize` of networkfs.f.
const NETWORK_FILES: Sizes = &[
    (33, 1, 1),
    (21, 1, 3),
    (13, 3, 5),
    (10, 5, 11),
    (8, 11, 21),
    (5, 21, 43),
    (4, 43, 85),
    (3, 85, 171),
    (2, 171, 341),
    (1, 341, 1_707),
];

/// `rdiosize` of networkfs.f.
const NETWORK_READS: Sizes = &[(85, 8, 8), (8, 17, 23), (4, 33, 39), (2, 65, 71), (1, 129, 135)];

/// `wrtiosize` of networkfs.f.
const NETWORK_WRITES: Sizes =
    &[(50, 9, 15), (14, 17, 23), (14, 33, 39), (12, 65, 71), (10, 129, 135)];

const FILE_SERVER: Script =
    InTurn(&[Whole(Write, MEBIBYTE), Append(APPEND), Whole(Read, MEBIBYTE)]);

const NETWORK_READ: Flowop = Whole(Read, NETWORK_READS);
const NETWORK_WRITE: Flowop = Whole(Write, NETWORK_WRITES);
const NETWORK_APPEND: Flowop = Append(NETWORK_WRITES);

/// Once "launch", six times "rmw", three times "appnd".
const NETWORK_FS: Script = InTurn(&[
    NETWORK_READ,
    NETWORK_READ,
    NETWORK_READ,
    NETWORK_READ,
    NETWORK_WRITE,
    NETWORK_READ,
    NETWORK_WRITE,
    NETWORK_READ,
    NETWORK_WRITE,
    NETWORK_READ,
    NETWORK_WRITE,
    NETWORK_READ,
    NETWORK_WRITE,
    NETWORK_READ,
    NETWORK_WRITE,
    NETWORK_APPEND,
    NETWORK_APPEND,
    NETWORK_APPEND,
]);

/// A read posts one unit to the log writer, which takes 3200 for each write, and one to the
/// database writers, which take 1000 for each 100 writes.
const OLTP: Script =
    Drawn(&[(3_200, Anywhere(Read, 2)), (320, Anywhere(Write, 2)), (1, Anywhere(Write, 256))]);

const VAR_MAIL: Script =
    InTurn(&[Append(APPEND), Whole(Read, MEBIBYTE), Append(APPEND), Whole(Read, MEBIBYTE)]);

const WEB_PROXY: Script = InTurn(&[
    Append(APPEND),
    Whole(Read, MEBIBYTE),
    Whole(Read, MEBIBYTE),
    Whole(Read, MEBIBYTE),
    Whole(Read, MEBIBYTE),
    Whole(Read, MEBIBYTE),
]);

/// `numactivevids` and `numpassivevids` of videoserver.f: videos that are read, and others, one of
/// which is written at a time.
const VIDEOS: (u64, u64) = (32, 194);

/// The personalities of FEMU, figure 5a.
pub(super) static PERSONALITIES: [Personality; 6] = [
    Personality {
        name: "fileserver",
        does: "a file written, up to 16 KiB appended to one, a file read, in turn; files of 128 \
               KiB in the mean",
        files: FILES_OF_128,
        scripts: [FILE_SERVER; 2],
        flushes: false,
    },
    Personality {
        name: "networkfs",
        does: "three files read, then six times one read and one written, then three times up to \
               an operation appended; files of 1 to 1707 KiB, more than half below 4; operations \
               of 8 to 135 KiB for reads, 9 to 135 KiB for writes",
        files: NETWORK_FILES,
        scripts: [NETWORK_FS; 2],
        flushes: false,
    },
    Personality {
        name: "oltp",
        does: "reads of 2 KiB, writes of 2 KiB and writes of 256 KiB, all at random, 3200 to 320 \
               to 1; each write is on the flash when it is answered (dsync)",
        files: &[],
        scripts: [OLTP; 2],
        flushes: true,
    },
    Personality {
        name: "varmail",
        does: "up to 16 KiB appended to a file and flushed (fsync), a file read, in turn; files of \
               16 KiB in the mean",
        files: FILES_OF_16,
        scripts: [VAR_MAIL; 2],
        flushes: true,
    },
    Personality {
        name: "videoserver",
        does: "one thread writes in order, 1 MiB at a time; each of the others reads in order, 256 \
               KiB at a time; 32 of 226 videos are read and the others written",
        files: &[],
        scripts: [InTurn(&[Onward(Write, 1_024)]), InTurn(&[Onward(Read, 256)])],
        flushes: false,
    },
    Personality {
        name: "webproxy",
        does: "up to 16 KiB appended to a file, then five files read; files of 16 KiB in the mean",
        files: FILES_OF_16,
        scripts: [WEB_PROXY; 2],
        flushes: false,
    },
];

/// The threads of a personality at work on a space of logical blocks.
pub(super) struct Host {
    threads: Vec<Thread>,
    files: Vec<File>,
    blocks: u64,
}

/// A file, with space after it for appends.
#[derive(Clone, Copy)]
struct File {
    first: u64,
    blocks: u64,
}

struct Thread {
    script: Script,
    /// Flowops started.
    begun: usize,
    rng: Rng,
    /// Remaining blocks of the current flowop.
    left: Span,
    /// Start of the next [`Onward`] step.
    onward: u64,
}

/// Blocks to move, and the blocks of each operation.
#[derive(Clone, Copy)]
struct Span {
    direction: Direction,
    first: u64,
    blocks: u64,
    step: u64,
}

impl Host {
    /// Returns `threads` threads of `personality` on `blocks` logical blocks.
    pub(super) fn new(personality: &Personality, threads: usize, blocks: u64) -> Self {
        let [first, others] = personality.scripts;
        let thread = |at: usize| {
            let mut rng = Rng::fork(SEED, at as u64);
            let onward = rng.below(blocks);
            let left = Span { direction: Read, first: 0, blocks: 0, step: 1 };
            Thread { script: if at == 0 { first } else { others }, begun: 0, rng, left, onward }
        };
        let files = lay_out(personality, blocks);
        Self { threads: (0..threads).map(thread).collect(), files, blocks }
    }

    /// Returns the next operation of `thread`.
    pub(super) fn next(&mut self, thread: usize) -> Io {
        let thread = &mut self.threads[thread];
        while thread.left.blocks == 0 {
            thread.left = thread.begin(&self.files, self.blocks);
        }
        thread.left.take()
    }
}

/// Returns files with the sizes of `personality`, one after the other, until `blocks` are full.
fn lay_out(personality: &Personality, blocks: u64) -> Vec<File> {
    let Some(&(_, _, largest)) = personality.files.last() else { return Vec::new() };
    let appends = personality.scripts.iter().flat_map(|script| match script {
        InTurn(flowops) => flowops.iter(),
        Drawn(_) => [].iter(),
    });
    let appends = appends.filter_map(|flowop| match flowop {
        Append(sizes) => sizes.last().map(|&(_, _, most)| in_blocks(most)),
        _ => None,
    });
    let room = appends.max().unwrap_or(0);
    let mut rng = Rng::fork(SEED, u64::MAX);
    let (mut files, mut first) = (Vec::new(), 0);
    while first + in_blocks(largest) + room <= blocks {
        let file = File { first, blocks: in_blocks(draw(personality.files, &mut rng)) };
        first += file.blocks + room;
        files.push(file);
    }
    files
}

impl Thread {
    /// Draws the blocks of the next flowop.
    fn begin(&mut self, files: &[File], blocks: u64) -> Span {
        let flowop = match self.script {
            InTurn(flowops) => flowops[self.begun % flowops.len()],
            Drawn(flowops) => drawn(flowops, &mut self.rng),
        };
        self.begun += 1;
        match flowop {
            Whole(direction, sizes) => {
                let File { first, blocks } = self.any(files);
                let step = in_blocks(draw(sizes, &mut self.rng));
                Span { direction, first, blocks, step }
            }
            Append(sizes) => {
                let File { first, blocks } = self.any(files);
                let most = draw(sizes, &mut self.rng);
                let appended = in_blocks(1 + self.rng.below(most));
                Span { direction: Write, first: first + blocks, blocks: appended, step: appended }
            }
            Anywhere(direction, kib) => {
                let size = in_blocks(kib);
                let first = self.rng.below(blocks / size) * size;
                Span { direction, first, blocks: size, step: size }
            }
            Onward(direction, kib) => {
                let size = in_blocks(kib);
                let (from, blocks) = videos(direction, blocks);
                let at = self.onward % (blocks / size);
                self.onward = at + 1;
                Span { direction, first: from + at * size, blocks: size, step: size }
            }
        }
    }

    fn any(&mut self, files: &[File]) -> File {
        files[usize::try_from(self.rng.below(files.len() as u64)).expect("an index")]
    }
}

impl Span {
    /// Returns its next operation, small enough for a command.
    fn take(&mut self) -> Io {
        let blocks = self.blocks.min(self.step).min(COMMAND_BLOCKS_MAX.into());
        let Self { direction, first, .. } = *self;
        self.first += blocks;
        self.blocks -= blocks;
        Io { direction, first, blocks: u32::try_from(blocks).expect("at most a command's") }
    }
}

/// Returns the first block and the number of blocks of the videos to read or write, of `blocks`.
fn videos(direction: Direction, blocks: u64) -> (u64, u64) {
    let (read, written) = VIDEOS;
    let end = blocks * read / (read + written);
    match direction {
        Read => (0, end),
        Write => (end, blocks - end),
    }
}

fn draw(sizes: Sizes, rng: &mut Rng) -> u64 {
    let &(_, from, to) = weighted(sizes, |&(weight, ..)| weight, rng);
    from + rng.below(to - from + 1)
}

fn drawn(flowops: &[(u64, Flowop)], rng: &mut Rng) -> Flowop {
    weighted(flowops, |&(weight, _)| weight, rng).1
}

/// Returns one of `choices`, drawn by weight.
fn weighted<'c, T>(choices: &'c [T], weight: impl Fn(&T) -> u64, rng: &mut Rng) -> &'c T {
    let mut left = rng.below(choices.iter().map(&weight).sum());
    let found = choices.iter().find(|choice| match left.checked_sub(weight(choice)) {
        None => true,
        Some(rest) => {
            left = rest;
            false
        }
    });
    found.expect("what is drawn is below the sum")
}

/// Returns the logical blocks of `kib` KiB, rounded up.
fn in_blocks(kib: u64) -> u64 {
    (kib * 1_024).div_ceil(u64::from(BLOCK_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 32_768;
    const OPERATIONS: usize = 100_000;

    fn personality(name: &str) -> &'static Personality {
        PERSONALITIES.iter().find(|personality| personality.name == name).unwrap()
    }

    /// Returns the operations of 16 threads in turn.
    fn operations(name: &str) -> Vec<Io> {
        let mut host = Host::new(personality(name), 16, BLOCKS);
        (0..OPERATIONS).map(|at| host.next(at % 16)).collect()
    }

    /// Returns the share of writes among operations, and the mean blocks of a read and of a write.
    fn mix(ios: &[Io]) -> (f64, f64, f64) {
        let of = |direction| {
            let blocks: Vec<u32> =
                ios.iter().filter(|io| io.direction == direction).map(|io| io.blocks).collect();
            let count = u32::try_from(blocks.len()).unwrap();
            (f64::from(count), f64::from(blocks.iter().sum::<u32>()))
        };
        let ((reads, read), (writes, written)) = (of(Read), of(Write));
        (writes / (reads + writes), read / reads, written / writes)
    }

    #[test]
    fn every_operation_is_in_the_space_and_fits_a_command() {
        for Personality { name, .. } in &PERSONALITIES {
            for Io { first, blocks, .. } in operations(name) {
                assert!((1..=COMMAND_BLOCKS_MAX).contains(&blocks), "{name}: {blocks}");
                assert!(first + u64::from(blocks) <= BLOCKS, "{name}: {first}");
            }
        }
    }

    #[track_caller]
    fn assert_mix(name: &str, expected: (f64, f64, f64)) {
        let (writes, read, written) = mix(&operations(name));
        let near = |ours: f64, expected: f64| (ours / expected - 1.0).abs() < 0.03;
        let is_near =
            near(writes, expected.0) && near(read, expected.1) && near(written, expected.2);
        assert!(is_near, "{name}: {writes} {read} {written}, not {expected:?}");
    }

    #[test]
    fn the_mixes_are_those_that_the_definitions_make() {
        // Files of 2 to 45 KiB have 1 1 2 3 3 4 5 6 8 12 blocks, up to 16 KiB appended 2.5.
        assert_mix("varmail", (0.5, 4.5, 2.5));
        assert_mix("webproxy", (1.0 / 6.0, 4.5, 2.5));
        // Of 14 to 362 KiB: 4 9 13 18 23 29 35 44 58 91, the last in two commands.
        assert_mix("fileserver", (2.1 / 3.2, 32.4 / 1.1, (32.4 + 2.5) / 2.1));
        assert_mix("oltp", (321.0 / 3_521.0, 1.0, (320.0 + 64.0) / 321.0));
        assert_mix("videoserver", (1.0 / 16.0, 64.0, 64.0));
    }

    #[test]
    fn sizes_are_drawn_as_often_as_the_tables_say() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..OPERATIONS).map(|_| draw(NETWORK_WRITES, &mut rng)).collect();
        for (percent, from, to) in [(50, 9, 15), (14, 17, 23), (14, 33, 39), (12, 65, 71)] {
            let within = drawn.iter().filter(|size| (from..=to).contains(*size)).count();
            let expected = OPERATIONS * percent / 100;
            assert!(within.abs_diff(expected) < expected / 20, "{from}: {within}");
        }
        assert!(drawn.iter().all(|size| (9..=135).contains(size)));
        // Half of 12, 14 % of 20 and of 36, 12 % of 68, 10 % of 132.
        let sum = 35_200 * OPERATIONS as u64 / 1_000;
        assert!(drawn.iter().sum::<u64>().abs_diff(sum) < sum / 50);
        for sizes in [NETWORK_FILES, NETWORK_READS, NETWORK_WRITES] {
            assert_eq!(sizes.iter().map(|&(percent, ..)| percent).sum::<u64>(), 100);
        }
    }

    #[test]
    fn streams_go_on_where_they_were_and_no_reader_meets_the_writer() {
        let mut host = Host::new(personality("videoserver"), 2, BLOCKS);
        // Of 32,768 blocks the first 4,639, of which operations of 64 fill 4,608; of the 28,129
        // behind them operations of 256 fill 27,904.
        for (thread, direction, videos) in [(0, Write, 4_639..32_543), (1, Read, 0..4_608)] {
            let mut last = host.next(thread);
            for _ in 0..2_000 {
                let io = host.next(thread);
                assert_eq!(io.direction, direction);
                let end = last.first + u64::from(last.blocks);
                assert_eq!(io.first, if end == videos.end { videos.start } else { end });
                assert!(videos.contains(&io.first));
                last = io;
            }
        }
    }
}
