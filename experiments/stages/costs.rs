//! The file with the costs.

use crate::processor::Processor;
use crate::stages::Stages;
use std::fmt::Write;
use std::fs;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stages/costs.toml");

/// Writes the stages of each operation, with whole nanoseconds.
pub(crate) fn write(processor: &Processor, all: &[(&str, Stages)]) -> Result<(), String> {
    fs::write(FILE, text(processor, all)).map_err(|error| format!("cannot write {FILE}: {error}"))
}

fn text(processor: &Processor, all: &[(&str, Stages)]) -> String {
    let Processor { name, mhz } = processor;
    let mut text = format!(
        "# Written by `cargo run --profile dist -p experiments --bin stages -- --write`; see\n\
         # experiments/README.md.\n\
         processor = \"{name}\"\nmhz = {mhz}\n"
    );
    for (name, stages) in all {
        writeln!(text, "\n[{name}]").expect("a string takes all");
        for (stage, time) in Stages::NAMES.into_iter().zip(stages.values()) {
            writeln!(text, "{stage}_ns = {time:.0}").expect("a string takes all");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_a_table() {
        let processor = Processor { name: "Some CPU".to_owned(), mhz: 2_100 };
        let stages = Stages { receive: 1.4, kv: 2.0, submit: 3.0, complete: 4.0, reply: 5.6 };
        let text = text(&processor, &[("get-16k", stages)]);
        let end = "processor = \"Some CPU\"\nmhz = 2100\n\n[get-16k]\nreceive_ns = 1\nkv_ns = 2\n\
                   submit_ns = 3\ncomplete_ns = 4\nreply_ns = 6\n";
        assert!(text.ends_with(end), "{text}");
    }
}
