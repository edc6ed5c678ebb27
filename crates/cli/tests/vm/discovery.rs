use crate::guest::Guest;
use crate::on_each_kernel;
use crate::target::Target;

on_each_kernel! {
    a_discovery_names_the_subsystem_and_its_port
    a_subsystem_that_is_not_there_is_refused
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
