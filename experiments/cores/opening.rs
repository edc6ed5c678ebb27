//! Opening a drive on a file after a crash.

use crate::load::{key, put_all};
use base::{Buf, Rng};
use disk::{Access, File, create};
use drive::{Durability, Format};
use engine::WorkPool;
use experiments::fio::Job;
use node::{DiskDrive, DiskOptions};
use reactor::{Peer, Reactor, Remote, peers, stopped};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

const KEYS: u64 = 262_144;
const VALUE_BYTES: usize = 64;

/// Each key is stored twice on the average.
const STORES: u64 = 2 * KEYS;

/// Stores that are awaited together, so that their pages are full.
const TOGETHER: u64 = 1_024;

/// Much more than the log takes: nothing is cleaned, and the headers of all pairs fit in memory.
const DRIVE_BYTES: u64 = 8 << 30;

/// Bytes of each of fio's reads.
const READ_BYTES: u32 = 1 << 20;

/// The file of a drive that was not closed. Dropping this removes it.
pub(crate) struct Crashed(PathBuf);

/// What an opening took.
struct Opened {
    records: u64,
    seconds: f64,
    read_bytes: u64,
}

impl Crashed {
    pub(crate) fn name() -> String {
        format!("open {VALUE_BYTES} B, {KEYS} keys stored twice, file")
    }

    /// Stores the keys on a new drive, and drops the reactor without closing the drive.
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("kvasir-cores-{}.kv", std::process::id()));
        create(&path, DRIVE_BYTES).expect("the folder for temporary files has room");
        let crashed = Self(path);
        let file = crashed.file();
        let stored = Reactor::new(None).serve(&remote(), async {
            let format = Format { id: [1; 16], secret: [2; 16], extent_bytes: None };
            DiskDrive::format(file.clone(), format).await.expect("the blocks are many enough");
            let drive = DiskDrive::open(file, options(1)).await.expect("the drive is new");
            let (mut rng, value) = (Rng::new(1), Buf::copy_from(&[7; VALUE_BYTES]));
            for _ in 0..STORES / TOGETHER {
                let stores = (0..TOGETHER).map(|_| {
                    let (store, value) = (drive.store().clone(), value.clone());
                    let key = key(rng.below(KEYS));
                    async move { put_all(&store, &[key], &value).await }
                });
                clock::join_all(stores.collect()).await;
            }
        });
        stored.expect("the kernel has io_uring");
        crashed
    }

    fn file(&self) -> Arc<File> {
        Arc::new(File::open(&self.0, Access::Write, None).expect("no other process has it"))
    }

    /// Returns how many thousands of records a second so many reactors find.
    #[expect(clippy::cast_precision_loss, reason = "for a report")]
    pub(crate) fn rate(&self, reactors: usize) -> f64 {
        let Opened { records, seconds, .. } = self.open(reactors);
        records as f64 / seconds / 1_000.0
    }

    /// Prints what opening reads, and fio's time for as many bytes in order.
    #[expect(clippy::cast_precision_loss, reason = "for a report")]
    pub(crate) fn print_reads(&self) -> Result<(), String> {
        let Opened { records, seconds, read_bytes } = self.open(1);
        let (mode, time) = ("read", Duration::from_secs(3));
        // The beginning of the file, which the drive has written.
        let more = vec![format!("--size={read_bytes}")];
        let job = Job { file: &self.0, mode, bytes: READ_BYTES, depth: 8, time, more };
        let theirs = read_bytes as f64 / (job.run()?.rate * f64::from(READ_BYTES));
        let (mib, ours) = (read_bytes as f64 / f64::from(1 << 20), seconds * 1e3);
        println!("    {records} records; reads {mib:.1} MiB of the file; one reactor {ours:.0} ms");
        println!("    fio reads as many bytes in order in {:.0} ms", theirs * 1e3);
        Ok(())
    }

    fn open(&self, reactors: usize) -> Opened {
        let remotes: Vec<Remote> = (0..reactors).map(|_| remote()).collect();
        let (mut places, pool) = (peers(&remotes).into_iter(), Arc::<WorkPool>::default());
        let first = places.next().expect("there is one");
        let others = places.zip(&remotes[1..]).map(|(peer, remote)| help(peer, remote, &pool));
        let others: Vec<_> = others.collect();
        let file = self.file();
        let lead = async {
            while pool.tasks() < reactors {
                clock::give_way().await;
            }
            let start = Instant::now();
            let drive = DiskDrive::open_among(pool.clone(), file.clone(), options(reactors)).await;
            let seconds = start.elapsed().as_secs_f64();
            let records = drive.expect("the drive is whole").recovery().records;
            Opened { records, seconds, read_bytes: file.counters().read_bytes }
        };
        let opened = Reactor::among(first, None).serve(&remotes[0], lead);
        remotes.iter().for_each(Remote::stop);
        for thread in others {
            thread.join().expect("it does not panic");
        }
        let (opened, _) = opened.expect("the kernel has io_uring");
        assert!(opened.records >= STORES, "all records are there, as after a crash");
        opened
    }
}

impl Drop for Crashed {
    fn drop(&mut self) {
        // What is left of it is in the folder for temporary files.
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs a reactor that does pieces of work, on a thread of its own.
fn help(peer: Peer, remote: &Remote, pool: &Arc<WorkPool>) -> JoinHandle<()> {
    let (remote, pool) = (remote.clone(), pool.clone());
    spawn(move || {
        let served = Reactor::among(peer, None).serve(&remote, async {
            let _worker = pool.join();
            stopped().await;
        });
        served.expect("the kernel has io_uring");
    })
}

fn remote() -> Remote {
    Remote::new().expect("a file descriptor is free")
}

fn options(reactors: usize) -> DiskOptions {
    let (durability, reactors) = (Durability::Capacitor, u32::try_from(reactors).expect("a few"));
    DiskOptions { durability, reactors, ..DiskOptions::default() }
}
