//! The busy time of a reactor, by stage.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use base::{Buf, BufPool, Nanos};
use clock::{BusyStage, Notify, Stage, enter_busy_stage, set_busy_stage, switch_busy_stage};
use reactor::{File, Load, Reactor, Remote};
use smallvec::smallvec;
use std::rc::Rc;
use std::time::{Duration, Instant};

const BURST: Duration = Duration::from_millis(20);

fn burn(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {}
}

async fn pause() {
    clock::sleep(Nanos::from_millis(1), Stage::Queue).await;
}

/// Returns the load of a reactor that is served for `root`.
fn load(root: impl Future<Output = ()>) -> Load {
    let remote = Remote::new().unwrap();
    Reactor::new(None).serve(&remote, root).unwrap();
    remote.load()
}

/// Checks that the times of all stages add up to the busy time.
#[track_caller]
fn check_sum(load: &Load) {
    assert_eq!(load.busy_times.total(), load.busy, "{load:?}");
}

#[test]
fn each_stage_has_the_time_of_its_tasks_and_scopes() {
    let load = load(async {
        let done = Rc::new(Notify::new());
        let notify = done.clone();
        clock::spawn(async move {
            set_busy_stage(BusyStage::Receive);
            burn(BURST);
            pause().await;
            burn(BURST);
            {
                let _kv = enter_busy_stage(BusyStage::Kv);
                burn(BURST);
            }
            switch_busy_stage(BusyStage::Complete);
            pause().await;
            burn(4 * BURST);
            notify.notify();
        });
        done.wait().await;
        burn(8 * BURST);
    });
    check_sum(&load);
    let of = |stage| load.busy_times.of(stage).0 / 1_000_000;
    // A thread that does not run is late, so no stage has an upper bound.
    let [receive, kv, _, complete, background] = BusyStage::ALL.map(of);
    assert!(receive >= 40 && kv >= 20 && complete >= 80 && background >= 160, "{load:?}");
}

#[test]
fn writing_a_file_is_busy_in_submit_and_complete() {
    let file = File::new(tempfile::tempfile().unwrap().into(), BufPool::new(1 << 20));
    let load = load(async {
        let file = &file;
        for at in 0..100 {
            file.write(at * 4_096, smallvec![Buf::copy_from(&[1; 4_096])]).await.unwrap();
        }
        file.sync().await.unwrap();
    });
    check_sum(&load);
    let of = |stage| load.busy_times.of(stage);
    assert!(of(BusyStage::Submit) > Nanos::ZERO && of(BusyStage::Complete) > Nanos::ZERO);
    assert_eq!(of(BusyStage::Receive) + of(BusyStage::Kv), Nanos::ZERO, "{load:?}");
}
