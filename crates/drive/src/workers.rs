use media::ExtentId;
use std::cell::Cell;
use std::rc::Rc;

/// How much is under way together while a drive is formatted or opened: disks are at their rate.
const WORKERS: u32 = 64;

/// What `work` makes of each extent, in order.
pub(crate) async fn each<T, F>(
    extents: u32,
    work: impl Fn(ExtentId) -> F + Clone + 'static,
) -> Vec<T>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    let next = Rc::new(Cell::new(0));
    let workers = (0..WORKERS.min(extents)).map(|_| {
        let (next, work) = (next.clone(), work.clone());
        async move {
            let mut done = Vec::new();
            while next.get() < extents {
                let extent = next.replace(next.get() + 1);
                done.push((extent, work(ExtentId(extent)).await));
            }
            done
        }
    });
    let shares = clock::join_all(workers.collect()).await;
    let mut all: Vec<_> = shares.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(extent, _)| *extent);
    all.into_iter().map(|(_, result)| result).collect()
}
