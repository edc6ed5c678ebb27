//! The name of the processor.

use std::fs::read_to_string;

/// Returns its name, if the kernel reports it.
pub(super) fn name() -> Option<String> {
    named_in(&read_to_string("/proc/cpuinfo").ok()?)
}

fn named_in(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn the_name_is_that_of_the_first_core() {
        let text = "processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nprocessor\t: 1\n\
                    model name\t: Other\n";
        assert_eq!(named_in(text).unwrap(), "Some CPU @ 2 GHz");
        assert_eq!(named_in("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
    }
}
