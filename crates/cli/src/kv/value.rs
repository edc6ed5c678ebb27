use crate::output::Failure;
use crate::path::shown;
use base::limits::VALUE_BYTES_MAX;
use base::{Buf, human_bytes};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

/// Reads a value from the file `path`, or from standard input for -.
pub(super) fn read(path: &Path) -> Result<Buf, Failure> {
    if path == Path::new("-") {
        return whole(io::stdin().lock(), "standard input");
    }
    let name = shown(path);
    let file = File::open(path)
        .map_err(|error| Failure::Refused(format!("{name} cannot be read: {error}")))?;
    whole(file, &name)
}

fn whole(source: impl Read, name: &str) -> Result<Buf, Failure> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the value is too long.
    let read = source.take(u64::from(VALUE_BYTES_MAX) + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::Refused(format!("{name} cannot be read: {error}")))?;
    if bytes.len() > VALUE_BYTES_MAX as usize {
        return Err(Failure::Refused(format!(
            "{name} has more than the {} of the longest value",
            human_bytes(VALUE_BYTES_MAX.into())
        )));
    }
    Ok(Buf::copy_from(&bytes))
}

/// Writes `value` to the file `path`, or to standard output.
pub(super) fn write(value: &Buf, path: Option<&Path>) -> Result<(), Failure> {
    let bytes = value.bytes().unwrap_or_default();
    match path {
        Some(path) => fs::write(path, bytes).map_err(|error| {
            Failure::Broken(format!("{} cannot be written: {error}", shown(path)))
        }),
        None => print(bytes).map(drop),
    }
}

/// Prints `bytes`. Returns false if standard output is a closed pipe.
pub(super) fn print(bytes: &[u8]) -> Result<bool, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Broken(format!("cannot write the output: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_all_bytes_up_to_the_longest() {
        for len in [0, 1, 5_000, VALUE_BYTES_MAX as usize] {
            let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
            assert_eq!(whole(&bytes[..], "it").unwrap().bytes(), Some(&bytes[..]));
        }
        for more in [1, 9_999] {
            let source = io::repeat(7).take(u64::from(VALUE_BYTES_MAX) + more);
            match whole(source, "it") {
                Err(Failure::Refused(sentence)) => {
                    assert_eq!(sentence, "it has more than the 2.0 MiB of the longest value");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
