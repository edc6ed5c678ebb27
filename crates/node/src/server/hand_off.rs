//! Seeded schedules of the hand-off between reactors: the real links, bridges and routers, between
//! reactors in virtual time whose cores stall and whose messages arrive late. Hosts store, retrieve
//! and delete, abort commands, close their connections with commands in flight, and the policy of
//! the balancer changes. Queues move to other reactors between commands. Each command must be
//! answered once, and each Store, and each Retrieve that finds a value, be executed once: a second
//! Delete changes nothing that is counted. The order of a stop is a copy of that in `reactors`.

mod host;
mod ledger;
mod plan;
#[path = "../../../sim/src/sweep.rs"]
mod sweep;
mod world;

use plan::Plan;
use sweep::Sweep;
use world::Outcome;

#[test]
fn each_command_is_executed_once_and_answered_once() {
    let sweep =
        Sweep { name: "hand-off", program: "-p kvasir-node --lib", count: 2_000, sharing: 1 };
    let (ran, sum) = sweep.run(|seed| world::run(Plan::draw(seed)));
    if ran >= 100 {
        let Outcome { commands, diverted, aborted, unanswered, far, moved, far_moved, .. } = sum;
        assert!(commands > 50 * ran && far > ran, "{sum}");
        assert!(diverted > commands / 50, "{sum}");
        assert!(aborted > ran / 10 && unanswered > ran && moved > ran / 2, "{sum}");
        assert!(far_moved > ran / 2, "{sum}");
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let digests = || (0..20).map(|seed| world::run(Plan::draw(seed)).digest).collect::<Vec<_>>();
    let first = digests();
    assert_eq!(digests(), first);
    assert!(first.iter().any(|digest| *digest != first[0]), "seeds make a difference");
}
