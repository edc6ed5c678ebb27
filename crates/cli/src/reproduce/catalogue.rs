//! Lists the experiments of the papers, and which of them can be rerun.

use super::finding::Finding;
use super::run::Run;
use super::{
    flash_delay, gc_blocking, grid, handlers, index_cost, key_size, models, octokv, page_move,
    registers, scalability,
};
use crate::output::{Failure, Output};
use crate::table;
use serde::Serialize;

/// An experiment of a paper.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: &'static str,
    /// The published system.
    system: &'static str,
    /// What it shows.
    pub(super) what: &'static str,
    /// How to rerun it, if that is possible.
    pub(super) experiment: Option<Experiment>,
}

/// How to rerun an experiment.
#[derive(Debug)]
pub(super) struct Experiment {
    /// Its place in the paper.
    pub(super) source: &'static str,
    pub(super) run: fn(Run) -> Result<Finding, Failure>,
}

/// All experiments, system by system.
pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        id: "FEMU-2a",
        system: FEMU,
        what: "read latency, 1 to 64 threads, no flash delay",
        experiment: Some(Experiment {
            source: "FEMU, section 3.1 and figure 2a",
            run: scalability::run_floor,
        }),
    },
    Entry {
        id: "FEMU-2b",
        system: FEMU,
        what: "the same with a fixed delay of 50 us",
        experiment: Some(Experiment {
            source: "FEMU, section 3.2.1 and figure 2b",
            run: scalability::run_fixed,
        }),
    },
    Entry {
        id: "FEMU-2c",
        system: FEMU,
        what: "that delay through the advanced model's code",
        experiment: Some(Experiment {
            source: "FEMU, section 3.2.3 and figure 2b",
            run: scalability::run_staged,
        }),
    },
    Entry {
        id: "FEMU-3",
        system: FEMU,
        what: "two reads of a plane, one and two registers",
        experiment: Some(Experiment {
            source: "FEMU, section 3.2.3 and figure 3",
            run: registers::run,
        }),
    },
    Entry {
        id: "FEMU-4",
        system: FEMU,
        what: "16 threads of reads over channels x planes",
        experiment: Some(Experiment { source: "FEMU, section 3.2.3 and figure 4", run: grid::run }),
    },
    Entry {
        id: "FEMU-5",
        system: FEMU,
        what: "filebench, basic and advanced model, real drive",
        experiment: Some(Experiment {
            source: "FEMU, section 3.2.3 and figure 5a",
            run: models::run_personalities,
        }),
    },
    Entry {
        id: "FEMU-5b",
        system: FEMU,
        what: "varmail over threads and planes",
        experiment: Some(Experiment {
            source: "FEMU, section 3.2.3 and figure 5b",
            run: models::run_sizes,
        }),
    },
    Entry {
        id: "FEMU-6a",
        system: FEMU,
        what: "read tail while GC blocks more or less",
        experiment: Some(Experiment {
            source: "FEMU, section 3.3 and figure 6a",
            run: gc_blocking::run,
        }),
    },
    later("FEMU-6b", FEMU, "a distributed word count under GC"),
    Entry {
        id: "FEMU-g",
        system: FEMU,
        what: "pages moved inside the device, not by the host",
        experiment: Some(Experiment { source: "FEMU, section 3.3", run: page_move::run }),
    },
    Entry {
        id: "MoKE-1a",
        system: MOKE,
        what: "operations a second against key size",
        experiment: Some(Experiment {
            source: "MoKE, section II.A and figure 1a",
            run: key_size::run,
        }),
    },
    Entry {
        id: "MoKE-1b",
        system: MOKE,
        what: "read latency with and without flash delays",
        experiment: Some(Experiment {
            source: "MoKE, section III and figure 1b",
            run: flash_delay::run_retrieves,
        }),
    },
    Entry {
        id: "MoKE-1c",
        system: MOKE,
        what: "write latency with and without flash delays",
        experiment: Some(Experiment {
            source: "MoKE, section III and figure 1c",
            run: flash_delay::run_stores,
        }),
    },
    Entry {
        id: "MoKE-1d",
        system: MOKE,
        what: "read latency against queue depth",
        experiment: Some(Experiment {
            source: "MoKE, section III and figure 1d",
            run: handlers::run,
        }),
    },
    Entry {
        id: "MoKE-idx",
        system: MOKE,
        what: "what the index costs each kind of request",
        experiment: Some(Experiment { source: "MoKE, section II.B", run: index_cost::run }),
    },
    later("LS-T1", LIGHTSTORE, "power and rack space against a flash array"),
    later("LS-4", LIGHTSTORE, "RocksDB on embedded and server cores"),
    later("LS-9", LIGHTSTORE, "throughput, local and over the network"),
    later("LS-10", LIGHTSTORE, "where latency goes: NAND, store, network"),
    later("LS-11", LIGHTSTORE, "random reads over 1 to 4 nodes"),
    later("LS-T4", LIGHTSTORE, "operations for each joule"),
    later("LS-12", LIGHTSTORE, "each optimisation switched off"),
    later("LS-13", LIGHTSTORE, "hardware, light and page-mapped FTL"),
    later("LS-14", LIGHTSTORE, "YCSB against ARDB"),
    later("LS-15", LIGHTSTORE, "block store against Ceph, 1 to 4 nodes"),
    later("LS-16", LIGHTSTORE, "file store against Ceph, 1 to 4 nodes"),
    Entry {
        id: "OCT-qd",
        system: OCTOKV,
        what: "queue depth of each core without balancing",
        experiment: Some(Experiment {
            source: "OctoKV, section 'Core Load Imbalance' of the slides",
            run: |run| Ok(octokv::queue_depth::run(run)),
        }),
    },
    Entry {
        id: "OCT-util",
        system: OCTOKV,
        what: "core utilisation against I/O latency",
        experiment: Some(Experiment {
            source: "OctoKV, section 'Core Load Imbalance' of the slides",
            run: |run| Ok(octokv::core_load::run(run)),
        }),
    },
    Entry {
        id: "OCT-rt",
        system: OCTOKV,
        what: "response time: host store, OctoKV, balanced",
        experiment: Some(Experiment {
            source: "OctoKV, section 'Evaluation' of the slides",
            run: |run| Ok(octokv::speed::run_response(run)),
        }),
    },
    Entry {
        id: "OCT-tp",
        system: OCTOKV,
        what: "throughput: host store, OctoKV, balanced",
        experiment: Some(Experiment {
            source: "OctoKV, section 'Evaluation' of the slides",
            run: |run| Ok(octokv::speed::run_throughput(run)),
        }),
    },
    Entry {
        id: "OCT-lb",
        system: OCTOKV,
        what: "core utilisation with balancing",
        experiment: Some(Experiment {
            source: "OctoKV, section 'Evaluation' of the slides",
            run: |run| Ok(octokv::balanced::run(run)),
        }),
    },
    Entry {
        id: "OCT-auto",
        system: OCTOKV,
        what: "Kvasir's balancer against those of the slides",
        experiment: Some(Experiment {
            source: "Kvasir, decision 58; the target is that of OctoKV",
            run: |run| Ok(octokv::automatic::run(run)),
        }),
    },
    later("CR-5", CRAIL, "NameNode memory against capacity and block size"),
    later("CR-6", CRAIL, "random puts and gets of 4 KB, KV against block"),
    later("CR-7", CRAIL, "objects of 28 KB against block size"),
    later("CR-8", CRAIL, "RPCs and space wasted against block size"),
    later("CR-9", CRAIL, "two clients with small and large objects"),
    later("CR-10", CRAIL, "1, 2 and 4 clients and DataNodes"),
    later("CR-11", CRAIL, "one client, 1, 2 and 4 DataNodes"),
];

const FEMU: &str = "FEMU";
const MOKE: &str = "MoKE";
const LIGHTSTORE: &str = "LightStore";
const OCTOKV: &str = "OctoKV";
const CRAIL: &str = "Crail-KV";

/// An experiment that cannot be rerun yet.
const fn later(id: &'static str, system: &'static str, what: &'static str) -> Entry {
    Entry { id, system, what, experiment: None }
}

/// An experiment in a list.
#[derive(Debug, Serialize)]
struct Listed {
    id: &'static str,
    system: &'static str,
    what: &'static str,
    /// Whether it can be rerun.
    done: bool,
}

/// Returns all experiments.
pub(super) fn list(is_json: bool) -> Output {
    let listed = ENTRIES.iter().map(|entry| {
        let &Entry { id, system, what, ref experiment } = entry;
        Listed { id, system, what, done: experiment.is_some() }
    });
    if is_json {
        return Output::json(&listed.collect::<Vec<_>>());
    }
    let rows = listed.map(|entry| {
        let done = if entry.done { "done" } else { "not yet" };
        [entry.id, entry.system, done, entry.what].map(str::to_owned).to_vec()
    });
    Output::new(table::list(&["experiment", "system", "", "what it shows"], rows))
}
