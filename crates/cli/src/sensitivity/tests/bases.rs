//! Profiles on which the cases are based.

use super::Edits;

/// One die, no link and no firmware: only the flash takes time.
pub(super) const BLOCK: &str = r#"
description = "one die of blocks"
[nand]
channels = 1
dies_per_channel = 1
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 32
page_bytes = 4096
spare_bytes = 128
read_us = 50
program_us = 500
erase_us = 2000
registers = 1
model = "staged"
channel_mb_per_s = 0
factory_bad_ppm = 0
[link]
mb_per_s = 0
transfer_us = 0
[firmware]
handlers = "unlimited"
t_read_us = 0
t_write_us = 0
[[namespace]]
kind = "block"
over_provisioning = 0.5
ack = "program"
gc_victims = "greedy"
"#;

pub(super) const ZONED: &str = r#"
description = "four dies of zones"
[nand]
channels = 2
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 32
pages_per_block = 32
page_bytes = 4096
spare_bytes = 128
read_us = 50
program_us = 500
erase_us = 2000
registers = 1
model = "staged"
channel_mb_per_s = 0
factory_bad_ppm = 0
[link]
mb_per_s = 0
transfer_us = 0
[firmware]
handlers = "unlimited"
t_read_us = 0
t_write_us = 0
[[namespace]]
kind = "zoned"
over_provisioning = 0.06666
stripe = "die"
max_open = 8
max_active = 16
buffer_kib = 64
"#;

pub(super) const PAIRS: &str = r#"
description = "four dies of keys and values"
[nand]
channels = 2
dies_per_channel = 2
planes_per_die = 1
blocks_per_plane = 24
pages_per_block = 160
page_bytes = 16384
spare_bytes = 1024
read_us = 50
program_us = 500
erase_us = 2000
registers = 1
model = "staged"
channel_mb_per_s = 0
factory_bad_ppm = 0
[link]
mb_per_s = 0
transfer_us = 0
[firmware]
handlers = "unlimited"
t_read_us = 0
t_write_us = 0
t_delete_us = 0
t_exist_us = 0
[log]
stripe = "all"
ack = "program"
gc_victims = "greedy"
[index]
kind = "hash"
[[namespace]]
kind = "kv"
over_provisioning = 0.5
"#;

/// A long buffer, and energy for 20 of its pages.
pub(super) const CAPACITORS: Edits = &[
    ("log.ack", r#""buffer""#),
    ("log.buffer_kib", "4096"),
    ("power.capacitor_mj", "1"),
    ("power.program_uj", "50"),
];

/// An index on flash, with 31 leaves in memory.
pub(super) const CACHED: Edits = &[
    ("namespace.1.over_provisioning", "0.9"),
    ("index.kind", r#""cached-hash""#),
    ("index.keys_max", "40000"),
    ("index.dram_kib", "128"),
];

/// A page crosses a channel in 500 us, during which the plane senses another page.
pub(super) const CHANNEL_BOUND: Edits =
    &[("nand.channel_mb_per_s", "8.192"), ("nand.registers", "2")];

/// Many blocks of one plane; cleaning takes the block with the fewest live pages.
pub(super) const GREEDY: Edits = &[
    ("nand.blocks_per_plane", "128"),
    ("namespace.1.over_provisioning", "0.2"),
    ("namespace.1.gc_free_blocks", "1"),
];

/// The same; cleaning takes the oldest block.
pub(super) const FIFO: Edits = &[
    ("nand.blocks_per_plane", "128"),
    ("namespace.1.over_provisioning", "0.2"),
    ("namespace.1.gc_free_blocks", "1"),
    ("namespace.1.gc_victims", "\"fifo\""),
    ("namespace.1.gc_frontier", "\"shared\""),
];

/// Four dies on two slow channels, which cleaning occupies too.
pub(super) const CLEANED: Edits = &[
    ("nand.channels", "2"),
    ("nand.dies_per_channel", "2"),
    ("nand.channel_mb_per_s", "40.96"),
    ("namespace.1.over_provisioning", "0.2"),
];

pub(super) const RETRIES: Edits = &[
    ("nand.read_retries", "[0, 2]"),
    ("nand.endurance_cycles", "1000"),
    ("nand.worn_cycles", "1000"),
];
