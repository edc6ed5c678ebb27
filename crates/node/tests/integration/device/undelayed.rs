//! Devices without their delays.

use crate::device::host::{Host, key, retrieve, store};
use crate::device::machine::on;
use base::{Buf, Nanos};
use node::Profile;
use node::profile::builtin_names;
use spec::Status;

/// Enough to fill pages, and to overwrite.
const STORES: u64 = 2_000;

#[test]
fn nothing_takes_time_on_a_device_without_its_delays() {
    let profiles = builtin_names().map(|name| Profile::load(name).expect("a built-in profile"));
    let mut devices = 0;
    for profile in profiles.filter(|profile| profile.namespaces[0].kind.is_kv()) {
        devices += 1;
        on(&profile.clone().without_delays(), async |device| {
            let host = Host::new(device);
            let value = |number: u64| Buf::phantom(4_096, number);
            let stores = (0..STORES).map(|number| store(&key(number % 500, 16), &value(number)));
            for stored in host.each(stores).await {
                assert_eq!((stored.status, stored.latency()), (Status::SUCCESS, Nanos::ZERO));
            }
            let retrieves = (0..500).map(|number| retrieve(&key(number, 16), 4_096));
            for (number, got) in (0..).zip(host.each(retrieves).await) {
                assert_eq!((got.status, got.latency()), (Status::SUCCESS, Nanos::ZERO));
                assert_eq!(got.data.checksum(), STORES - 500 + number, "{}", profile.name);
            }
            assert_eq!(clock::now(), Nanos::ZERO);
        });
    }
    assert!(devices >= 3, "most built-in profiles are of keys and values");
}
