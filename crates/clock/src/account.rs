use crate::schedule::with;
use crate::stage::Stage;
use crate::task::{now, stages};

/// Does `work` and adds all the time that it takes to `stage`, in place of the stages that `work`
/// itself names. For work that one part of the device does on behalf of another.
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
