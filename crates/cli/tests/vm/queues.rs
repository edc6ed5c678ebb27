use crate::guest::Guest;
use crate::kv;
use crate::on_each_kernel;
use crate::target::Target;
use std::fmt::Write;

on_each_kernel! {
    each_processor_has_a_queue_of_its_own
    commands_of_many_processes_keep_their_values_apart
}

fn each_processor_has_a_queue_of_its_own(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "--nr-io-queues=2");
    assert_eq!(guest.succeed("cat /sys/class/nvme/nvme*/queue_count"), "3\n");
    assert_eq!(target.connections(), 3, "the admin queue's and those of two I/O queues");
    guest.make("/tmp/in", 20_001);
    // What runs scripts keeps to one processor, and so does what it runs.
    for (processors, key) in [(0b01, "first"), (0b10, "second")] {
        guest.succeed(&format!("taskset -p {processors} 1"));
        assert_eq!(kv::store(guest, key, "/tmp/in", 20_001), Ok(0), "{key}");
    }
    for (processors, key) in [(0b01, "second"), (0b10, "first")] {
        guest.succeed(&format!("taskset -p {processors} 1"));
        assert_eq!(kv::retrieve(guest, key, "/tmp/out", 20_001), Ok(20_001), "{key}");
        guest.succeed("cmp /tmp/in /tmp/out");
    }
    guest.succeed("taskset -p 3 1");
}

fn commands_of_many_processes_keep_their_values_apart(guest: &mut Guest, target: &mut Target) {
    target
        .connect(guest, "--nr-io-queues=2 --nr-write-queues=2 --nr-poll-queues=2 --queue-size=16");
    assert_eq!(guest.succeed("cat /sys/class/nvme/nvme*/queue_count"), "7\n");
    let mut script = String::from("processes=\n");
    for process in 0..8 {
        let size = [100, 20_001, 131_072, 8_192][process % 4];
        let (own, back) = (format!("/tmp/in{process}"), format!("/tmp/out{process}"));
        guest.make(&own, size);
        let key = format!("process {process}");
        let store = kv::storing(&key, &own, size, 0);
        let retrieve = kv::retrieving(&key, &back, size);
        let rounds =
            format!("for i in 1 2; do {store} && {retrieve} && cmp {own} {back} || exit; done");
        writeln!(script, "({rounds}) &\nprocesses=\"$processes $!\"").unwrap();
    }
    script += "for process in $processes; do wait $process || exit; done";
    guest.succeed(&script);
}
