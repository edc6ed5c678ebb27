use super::*;

/// A drive with Redis users, and tenants.
const TENANTS: &str = "\
[server]
cores = 1
nvme_tcp = [\"127.0.0.1:4420\"]

[[device]]
name = \"fast\"
device = \"mem:1GiB\"
resp = \"127.0.0.1:6379\"

[[subsystem]]
device = \"fast\"

[[tenant]]
name = \"gold\"
host_nqns = [\"nqn.2026-11.com.example:a\", \"nqn.2026-11.com.example:b\"]
weight = 4

[[tenant]]
name = \"bronze\"
resp_users = [\"default\"]
requests_per_second = 1000
bytes_per_second = 50000000
";

#[test]
fn tenants_have_members_and_terms() {
    let config = parse(TENANTS).unwrap();
    let [gold, bronze] = &config.tenants[..] else { panic!("there are two tenants") };
    let hosts = ["nqn.2026-11.com.example:a", "nqn.2026-11.com.example:b"];
    assert_eq!((&gold.name[..], &gold.host_nqns[..]), ("gold", &hosts.map(str::to_owned)[..]));
    assert_eq!((gold.terms.weight.get(), gold.terms.requests_per_second), (4, None));
    assert_eq!(bronze.resp_users, ["default"]);
    assert_eq!(bronze.terms.weight.get(), 1);
    assert_eq!(bronze.terms.requests_per_second.map(NonZero::get), Some(1_000));
    assert_eq!(bronze.terms.bytes_per_second.map(NonZero::get), Some(50_000_000));
    assert_eq!(config.server().tenants, config.tenants);
    assert_eq!(parse(FULL).unwrap().tenants, []);
}

#[test]
fn wrong_tenants_are_refused() {
    for (old, new, expected) in [
        ("bronze", "gold", "another [[tenant]] has the name \"gold\""),
        (
            "[\"default\"]",
            "[\"carol\"]",
            "no Redis service has the user \"carol\": add it to \
             the file of resp_users in [[device]]",
        ),
        ("nqn.2026-11.com.example:b", "b", "must be the NQN of a host"),
        ("weight = 4", "weight = 0", "weight in [[tenant]]"),
        (
            "resp_users = [\"default\"]\n",
            "",
            "the tenant \"bronze\" has neither host_nqns nor resp_users, so no connection \
             belongs to it",
        ),
        (
            "resp_users = [\"default\"]",
            "resp_users = [\"default\", \"default\"]",
            "the user \"default\" is named twice",
        ),
        (
            "resp_users = [\"default\"]",
            "host_nqns = [\"nqn.2026-11.com.example:b\"]",
            "another [[tenant]] has the host nqn.2026-11.com.example:b",
        ),
        (
            "resp = \"127.0.0.1:6379\"\n",
            "",
            "resp_users has no effect without a resp in [[device]]",
        ),
    ] {
        assert!(TENANTS.contains(old), "{old}");
        let error = parse(&TENANTS.replacen(old, new, 1)).expect_err(new).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn only_the_terms_of_a_tenant_change_without_a_restart() {
    let config = parse(TENANTS).unwrap();
    let difference = |old, new| {
        assert!(TENANTS.contains(old), "{old}");
        config.difference(&parse(&TENANTS.replace(old, new)).unwrap())
    };
    assert_eq!(difference("weight = 4", "weight = 5"), None);
    assert_eq!(difference("requests_per_second = 1000", ""), None);
    let members = Some("the name, host_nqns or resp_users of a [[tenant]]");
    assert_eq!(difference("gold", "silver"), members);
    assert_eq!(difference("example:b", "example:c"), members);
}
