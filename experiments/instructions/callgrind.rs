//! Runs a path under Callgrind, and reads its profile.

use crate::code::{Code, Costly};
use crate::counts::Counts;
use crate::paths::Path;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::{env, fs, process};

/// Sources of the load: what they have inlined is not counted.
const LOAD: &str = "experiments/instructions/";

const ALLOCATIONS: [&str; 6] =
    ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"];

/// The costs of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) counts: Counts,
    /// Instructions of each function, without those that it calls.
    pub(crate) functions: BTreeMap<String, i64>,
}

/// What the lines of a profile are about, until another line says otherwise.
#[derive(Debug, Default)]
struct Place {
    object: String,
    file: String,
    function: String,
    called_object: Option<String>,
    called: String,
    /// The next line has the inclusive cost of a call, which is left out.
    is_after_calls: bool,
}

impl Profile {
    /// Runs `operations` of `path` in a process of its own.
    pub(crate) fn of(path: Path, operations: u64, code: &Code) -> Result<Self, String> {
        let program = env::current_exe().map_err(|error| error.to_string())?.display().to_string();
        let output = env::temp_dir().join(format!("kvasir-instructions-{}", process::id()));
        let failed = |error| format!("valgrind (Debian package valgrind) does not run: {error}");
        let ran = Command::new("valgrind")
            .args(["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no"])
            .args(["--compress-strings=no", "--toggle-collect=*instructions*aside*"])
            .arg("--collect-atstart=yes")
            .arg(format!("--callgrind-out-file={}", output.display()))
            .arg(&program)
            .args(["run", path.name(), &operations.to_string()])
            // The same for all users, but for where they have installed Valgrind.
            .env_clear()
            .envs(env::var_os("PATH").map(|path| ("PATH", path)))
            .stdout(Stdio::null())
            .output()
            .map_err(failed)?;
        let profile = if ran.status.success() {
            let file = fs::File::open(&output).map_err(|error| error.to_string());
            file.and_then(|file| Self::read(BufReader::new(file), &program, code))
        } else {
            Err(String::from_utf8_lossy(&ran.stderr).into_owned())
        };
        // It does not exist if Callgrind has failed.
        let _ = fs::remove_file(&output);
        profile.map_err(|error| format!("{}: {error}", path.name()))
    }

    /// Reads a profile with uncompressed names and positions of instructions and lines, by the
    /// manual of Valgrind, Callgrind format specification. Instructions of `program` are in `code`.
    fn read(lines: impl BufRead, program: &str, code: &Code) -> Result<Self, String> {
        let mut profile = Self::default();
        let mut place = Place::default();
        for line in lines.lines() {
            let line = line.map_err(|error| error.to_string())?;
            profile
                .add(&line, &mut place, program, code)
                .ok_or_else(|| format!("Callgrind has written {line:?}"))?;
        }
        Ok(profile)
    }

    /// Adds a line. `None`: it has another form.
    fn add(&mut self, line: &str, place: &mut Place, program: &str, code: &Code) -> Option<()> {
        if line.starts_with("0x") {
            if std::mem::take(&mut place.is_after_calls) || place.is_of_load() {
                return Some(());
            }
            return self.add_cost(line, place, program, code);
        }
        let Some((key, value)) = line.split_once('=') else { return Some(()) };
        match key {
            "ob" => value.clone_into(&mut place.object),
            "fl" | "fi" | "fe" => value.clone_into(&mut place.file),
            "fn" => value.clone_into(&mut place.function),
            "cob" => place.called_object = Some(value.to_owned()),
            "cfn" => value.clone_into(&mut place.called),
            "calls" => {
                self.add_calls(value.split(' ').next()?.parse().ok()?, place);
                place.called_object = None;
                place.is_after_calls = true;
            }
            _ => {}
        }
        Some(())
    }

    /// Adds what one instruction cost: its address, its line and how often it was executed.
    fn add_cost(&mut self, line: &str, place: &Place, program: &str, code: &Code) -> Option<()> {
        let mut words = line.split(' ');
        let address = u64::from_str_radix(&words.next()?[2..], 16).ok()?;
        let executed: i64 = words.nth(1)?.parse().ok()?;
        self.counts.instructions += executed;
        *self.functions.entry(place.function.clone()).or_default() += executed;
        if place.object == program {
            match code.get(address) {
                Some(Costly::Locked) => self.counts.locked += executed,
                Some(Costly::Division) => self.counts.divisions += executed,
                None => {}
            }
        }
        Some(())
    }

    fn add_calls(&mut self, count: i64, place: &Place) {
        let is_within = place.called_object.as_ref().is_none_or(|called| *called == place.object);
        let is_of_libc = place.object.contains("/libc.");
        if place.is_of_load() || (is_within && is_of_libc) {
            return;
        }
        let called = &place.called;
        if ALLOCATIONS.contains(&called.as_str()) {
            self.counts.allocations += count;
        } else if called.contains("memcpy") || called.contains("memmove") {
            self.counts.copies += count;
        } else if called.contains("crc_fast") && !place.function.contains("crc_fast") {
            self.counts.checksums += count;
        }
    }

    /// Returns the difference to a run with fewer operations.
    pub(crate) fn without(mut self, fewer: &Self) -> Self {
        self.counts = self.counts - fewer.counts;
        for (function, executed) in &fewer.functions {
            *self.functions.entry(function.clone()).or_default() -= executed;
        }
        self
    }
}

impl Place {
    fn is_of_load(&self) -> bool {
        self.file.contains(LOAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile of two functions of the program, one of them with inlined work of the load.
    const PROFILE: &str = "\
events: Ir
ob=/bin/program
fl=crates/engine/src/put.rs
fn=engine::put
0x10 7 3
0x20 8 5
fi=/src/experiments/instructions/tape.rs
0x30 1 1000
cob=/lib/libc.so.6
cfn=memcpy
calls=9 0x1 0
0x30 1 900
fe=crates/engine/src/put.rs
0x28 9 7
cob=/lib/libc.so.6
cfn=malloc
calls=2 0x2 0
0x28 9 600
cfn=crc_fast::update
calls=4 0x3 0
0x28 9 80
ob=/lib/libc.so.6
fl=malloc.c
fn=malloc
0x20 5 40
cfn=memalign
calls=2 0x4 0
0x20 5 30
";

    #[test]
    fn costs_of_the_load_and_of_calls_are_left_out() {
        let code: Code = [(0x20, Costly::Locked), (0x28, Costly::Division)].into_iter().collect();
        let profile = Profile::read(PROFILE.as_bytes(), "/bin/program", &code).unwrap();
        let counts = Counts {
            instructions: 3 + 5 + 7 + 40,
            locked: 5,
            divisions: 7,
            allocations: 2,
            copies: 0,
            checksums: 4,
        };
        assert_eq!(profile.counts, counts);
        let functions = [("engine::put", 15), ("malloc", 40)];
        let functions = functions.map(|(name, executed)| (name.to_owned(), executed));
        assert_eq!(profile.functions, functions.into());
        for wrong in ["0x10 7", "0x10 7 x", "calls=x 0x1 0"] {
            assert!(Profile::read(wrong.as_bytes(), "/bin/program", &code).is_err(), "{wrong}");
        }
    }
}
