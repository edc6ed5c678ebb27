use crate::guest::Guest;
use crate::on_each_kernel;
use crate::target::Target;

on_each_kernel! {
    a_discovery_names_the_subsystem_and_its_port
    a_subsystem_that_is_not_there_is_refused
    a_referral_is_told
    a_host_that_is_removed_from_the_list_stays_connected_and_cannot_reconnect
}

/// A host with a fixed NQN and id.
const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:8d1b2c3e-0000-4000-8000-000000000001";
const HOST_ID: &str = "8d1b2c3e-0000-4000-8000-000000000001";

/// A server for this host alone, with a referral.
fn configuration(host: &str) -> String {
    format!(
        "[server]\nnvme_tcp = ['127.0.0.1:0']\n\
         [[device]]\nname = 'a'\ndevice = 'mem:64MiB?kind=block'\n\
         [[subsystem]]\nnqn = 'nqn.2026-11.com.example:a'\ndevice = 'a'\nhosts = ['{host}']\n\
         [[referral]]\naddress = '192.0.2.4'\nport = 8010\n"
    )
}

fn a_discovery_names_the_subsystem_and_its_port(guest: &mut Guest, target: &mut Target) {
    let found = guest.succeed(&format!("nvme discover {}", target.address()));
    let field = |name: &str| {
        let fields = found.lines().filter_map(|line| line.split_once(':'));
        fields.filter(|(field, _)| field.trim() == name).map(|(_, value)| value.trim()).collect()
    };
    let values: [Vec<&str>; 4] = ["trtype", "subtype", "subnqn", "trsvcid"].map(field);
    let port = target.port.to_string();
    let subsystem = values[2].iter().position(|name| *name == target.name);
    let subsystem = subsystem.unwrap_or_else(|| panic!("{} is not among\n{found}", target.name));
    assert_eq!((values[0][subsystem], values[1][subsystem]), ("tcp", "nvme subsystem"));
    assert_eq!(values[3][subsystem], port, "{found}");
}

fn a_subsystem_that_is_not_there_is_refused(guest: &mut Guest, target: &mut Target) {
    guest.succeed("dmesg -c");
    let address = target.address();
    let refused =
        guest.run(&format!("nvme connect {address} --nqn=nqn.2014-08.org.nvmexpress:none"));
    assert_ne!(refused.status, 0, "{}", refused.output);
    let log = guest.succeed("dmesg");
    assert!(log.contains("Connect Invalid Data Parameter, subsysnqn"), "{log}");
    target.connect(guest, "");
}

fn as_host() -> String {
    format!("--hostnqn={HOST} --hostid={HOST_ID}")
}

fn a_referral_is_told(guest: &mut Guest, target: &mut Target) {
    target.become_server(&configuration(HOST));
    let found = guest.succeed(&format!("nvme discover {} {}", target.address(), as_host()));
    let mut entries = found.split("=====Discovery Log Entry");
    let referral = entries.find(|entry| entry.contains("192.0.2.4"));
    let referral = referral.unwrap_or_else(|| panic!("it is not among\n{found}"));
    assert!(referral.contains("8010") && referral.contains("discovery"), "{referral}");
}

fn a_host_that_is_removed_from_the_list_stays_connected_and_cannot_reconnect(
    guest: &mut Guest,
    target: &mut Target,
) {
    target.become_server(&configuration(HOST));
    target.connect(guest, &as_host());
    guest.wait_for("[ -b /dev/nvme*n1 ]");
    target.change(&configuration("nqn.2026-11.com.example:another"));
    guest.succeed("dmesg -c");
    // nvme-cli 2.3 does not ask the kernel for a second connection of a connected host.
    let again = format!(
        "echo transport=tcp,traddr=10.0.2.2,trsvcid={},nqn={},hostnqn={HOST},hostid={HOST_ID},\
         duplicate_connect > /dev/nvme-fabrics",
        target.port, target.name
    );
    // The server's reactors read the new list soon.
    guest.wait_for(&format!("! {again}"));
    let log = guest.succeed("dmesg");
    assert!(log.contains("is not allowed, hostnqn"), "{log}");
    guest.make("/tmp/in", 65_536);
    guest.succeed(
        "device=$(ls /dev/nvme*n1 | head -n 1) && dd if=/tmp/in of=$device bs=65536 oflag=direct &&
         dd if=$device of=/tmp/out bs=65536 count=1 iflag=direct && cmp /tmp/in /tmp/out &&
         grep -q live /sys/class/nvme/nvme*/state",
    );
}
