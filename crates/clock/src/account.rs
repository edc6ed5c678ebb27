use crate::schedule::with;
use crate::stage::Stage;
use crate::task::{now, stages};

/// Does `work`, and accounts all the time that it takes to `stage`, wherever in it that was spent:
/// for work on behalf of one part of the device that goes through others.
pub async fn account_to<T>(stage: Stage, work: impl Future<Output = T>) -> T {
    let (mut spent, start) = (stages(), now());
    let done = work.await;
    with(|schedule| {
        let current = schedule.current;
        spent.add(stage, schedule.now - start);
        schedule.task(current).stages = spent;
    });
    done
}
