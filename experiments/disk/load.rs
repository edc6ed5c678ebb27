use crate::{Measured, remote};
use base::{Buf, BufMut, Rng};
use clock::Class;
use disk::{Access, File};
use media::Blocks;
use reactor::Reactor;
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The operation on the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    Read,
    Write,
}

/// Outstanding operations.
pub(crate) const DEPTH: u32 = 64;

/// Bytes of each operation.
pub(crate) const BYTES: u32 = 8 << 10;

impl Load {
    /// Returns fio's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "randread",
            Self::Write => "randwrite",
        }
    }
}

/// Returns bytes that a disk cannot compress.
pub(crate) fn random(rng: &mut Rng, bytes: u32) -> Buf {
    let mut buf = BufMut::unpooled(bytes as usize);
    rng.fill(buf.as_mut());
    buf.freeze()
}

/// Runs `load` on one reactor for `time`.
pub(crate) fn run(path: &Path, load: Load, time: Duration) -> Result<Measured, String> {
    let file = File::open(path, Access::Write, Some(base::limits::BLOCK_BYTES));
    let file = Arc::new(file.map_err(|error| error.to_string())?);
    let count = BYTES / file.shape().block_bytes;
    let places = file.shape().blocks / u64::from(count);
    let done = Rc::new(Cell::new(0_u32));
    let (started, processor) = (Instant::now(), processor());
    let workers = (0..DEPTH).map(|number| {
        let (file, done) = (file.clone(), done.clone());
        async move {
            let mut rng = Rng::new(number.into());
            let data = random(&mut rng, BYTES);
            while started.elapsed() < time {
                let first = rng.below(places) * u64::from(count);
                match load {
                    Load::Read => drop(file.read(first, count, Class::HostRead).await?),
                    Load::Write => {
                        let data = [data.clone()].into_iter().collect();
                        file.write(first, data, Class::HostWrite).await?;
                    }
                }
                done.set(done.get() + 1);
            }
            Ok::<(), media::Error>(())
        }
    });
    let (ended, _) = Reactor::new(None)
        .serve(&remote()?, async { clock::join_all(workers.collect()).await })
        .map_err(|error| error.to_string())?;
    let spent = self::processor().saturating_sub(processor);
    let rate = f64::from(done.get()) / started.elapsed().as_secs_f64();
    ended.into_iter().collect::<Result<(), _>>().map_err(|error| error.to_string())?;
    Ok(Measured { rate, processor: spent.as_secs_f64() * 1e6 / f64::from(done.get()) })
}

/// Returns the processor time of this thread.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("it counts up from zero")
}
