//! Programs of this checkout as users of the guest's kernel, beside nvme-cli.

use crate::guest::Guest;
use crate::kv::{self, KEY_DOES_NOT_EXIST};
use crate::on_each_kernel;
use crate::target::Target;

on_each_kernel! {
    kvasir_kv_and_nvme_cli_share_pairs
    kvasir_kv_says_what_the_namespace_is
    kvasir_kv_speaks_nvme_over_tcp_by_itself
    the_example_in_c_stores_and_retrieves
}

/// In the capsule, by R2T, and the longest; odd lengths on both sides.
const SIZES: [u32; 4] = [1, 8_192, 20_001, 2 << 20];

/// Runs `kvasir kv` with `words`, on the namespace that the kernel has.
fn kvasir(guest: &mut Guest, words: &str) -> String {
    guest.succeed(&format!("kvasir kv {words} --target /dev/ng*n1"))
}

fn kvasir_kv_and_nvme_cli_share_pairs(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    for size in SIZES {
        guest.make("/tmp/in", size);
        assert_eq!(kvasir(guest, "store ours /tmp/in"), "");
        assert_eq!(kv::retrieve(guest, "ours", "/tmp/out", size), Ok(size), "{size} bytes");
        guest.succeed("cmp /tmp/in /tmp/out");

        guest.make("/tmp/in", size);
        assert_eq!(kv::store(guest, "theirs", "/tmp/in", size), Ok(0), "{size} bytes");
        assert_eq!(kvasir(guest, "retrieve theirs --output /tmp/out"), "");
        guest.succeed("cmp /tmp/in /tmp/out");
    }
    let mut keys: Vec<_> = kvasir(guest, "list").lines().map(str::to_owned).collect();
    keys.sort();
    assert_eq!(keys, ["ours", "theirs"]);
    kvasir(guest, "delete theirs");
    assert_eq!(kv::exist(guest, "theirs"), Err(KEY_DOES_NOT_EXIST));
    assert_eq!(kv::delete(guest, "ours"), Ok(0));
    let gone = guest.run("kvasir kv exist ours --target /dev/ng*n1");
    assert_eq!(gone.status, 1, "{}", gone.output);
}

fn kvasir_kv_says_what_the_namespace_is(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    let shown = kvasir(guest, "info");
    assert!(shown.contains("/dev/ng0n1"), "{shown}");
    let refused = guest.run("kvasir kv info --target /dev/ng9n9");
    let sentence = "kvasir: /dev/ng9n9 cannot be opened: ";
    assert!(refused.status != 0 && refused.output.starts_with(sentence), "{}", refused.output);
}

fn kvasir_kv_speaks_nvme_over_tcp_by_itself(guest: &mut Guest, target: &mut Target) {
    let place = format!("nvme-tcp://10.0.2.2:{}/{}", target.port, target.name);
    guest.make("/tmp/in", 20_001);
    guest.succeed(&format!("kvasir kv store key /tmp/in --target {place}"));
    // What went beside the kernel is there for it.
    target.connect(guest, "");
    assert_eq!(kv::retrieve(guest, "key", "/tmp/out", 20_001), Ok(20_001));
    guest.succeed("cmp /tmp/in /tmp/out");
}

fn the_example_in_c_stores_and_retrieves(guest: &mut Guest, target: &mut Target) {
    target.connect(guest, "");
    let printed = guest.succeed("passthrough /dev/ng*n1 greeting hello");
    assert_eq!(printed, "greeting: hello (5 bytes)\n");
    kvasir(guest, "retrieve greeting --output /tmp/out");
    guest.succeed("printf hello | cmp - /tmp/out");
    // A key that needs all four dwords, and a value of two words.
    let printed = guest.succeed("passthrough /dev/ng*n1 0123456789abcdef 'a longer value'");
    assert_eq!(printed, "0123456789abcdef: a longer value (14 bytes)\n");
    assert_eq!(kv::retrieve(guest, "0123456789abcdef", "/tmp/out", 14), Ok(14));
    guest.succeed("printf 'a longer value' | cmp - /tmp/out");
    let refused = guest.run("passthrough /dev/null greeting hello");
    assert_eq!(refused.status, 2, "{}", refused.output);
    assert!(refused.output.starts_with("the command cannot be sent: "), "{}", refused.output);
}
