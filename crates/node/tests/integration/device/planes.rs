//! Planes that work together, under writes of a host.

use crate::device::machine::on;
use base::{Buf, Nanos, Rng};
use controller::Submission;
use node::{Device, Profile};
use spec::Command;

/// Channels, dies on each and planes of each, with as many writes outstanding.
const CASES: [([u32; 3], usize); 6] = [
    ([8, 8, 2], 256),
    ([4, 4, 2], 512),
    ([4, 2, 2], 64),
    ([2, 2, 4], 128),
    ([1, 2, 2], 16),
    ([1, 2, 2], 8),
];

const PAGE: u32 = 8_192;

/// Blocks, page by page, on planes that have one register each.
const DEVICE: &str = r#"
description = "planes that work together"
[nand]
channels = CHANNELS
dies_per_channel = DIES
planes_per_die = PLANES
multi_plane = "together"
blocks_per_plane = 64
pages_per_block = 256
page_bytes = 8192
spare_bytes = 448
read_us = 75
program_us = 750
erase_us = 3800
registers = 1
model = "staged"
channel_mb_per_s = 333
[link]
mb_per_s = 4000
transfer_us = 0
[firmware]
handlers = "unlimited"
t_read_us = 0
t_write_us = 0
[[namespace]]
kind = "block"
over_provisioning = 0.07
ack = "program"
gc_victims = "greedy"
"#;

fn profile([channels, dies, planes]: [u32; 3]) -> Profile {
    let sizes = [("CHANNELS", channels), ("DIES", dies), ("PLANES", planes)];
    let text = sizes.iter().fold(DEVICE.to_owned(), |text, (name, size)| {
        text.replace(&format!("= {name}\n"), &format!("= {size}\n"))
    });
    Profile::parse("planes.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

/// Random writes of a page a second, with `depth` outstanding, once the pace is steady.
fn rate(profile: &Profile, depth: usize) -> f64 {
    const STEADY: u32 = 10_000;
    const COUNT: u32 = 20_000;
    on(profile, async |device| {
        let queue = device.controller().queue_pair();
        let pages = profile.namespaces[0].size_bytes / u64::from(PAGE);
        let mut rng = Rng::new(1);
        let mut began = Nanos::ZERO;
        for number in 0..STEADY + COUNT {
            while queue.outstanding() < depth {
                let command = Command::write(Device::NAMESPACE, 2 * rng.below(pages), 2);
                let data = Buf::phantom(PAGE, 7);
                queue.submit(Submission { command, long_key: None, data });
            }
            let completion = queue.next().await;
            assert!(completion.status.is_success());
            if number == STEADY {
                began = clock::now();
            }
        }
        f64::from(COUNT - 1) / (clock::now() - began).as_secs_f64()
    })
}

#[test]
fn planes_with_one_register_write_together_at_saturation() {
    for (sizes, depth) in CASES {
        let profile = profile(sizes);
        let [channels, dies, planes] = sizes.map(f64::from);
        let transfer = Nanos::for_bytes(PAGE.into(), profile.nand.channel_bytes_per_second);
        let round = profile.nand.levels.program[0].as_secs_f64() + planes * transfer.as_secs_f64();
        let formula = channels * dies * planes / round;
        let measured = rate(&profile, depth);
        println!("{sizes:?} at {depth}: {measured:.0} a second, formula {formula:.0}");
        assert!((measured / formula - 1.0).abs() < 0.01, "{sizes:?}: {measured}, not {formula}");
    }
}
