//! Counts what one operation executes in user space, by Callgrind: instructions, and of them the
//! locked ones and divisions; calls that allocate, copy and compute a CRC.
//!
//! `cargo run --profile dist -p experiments --bin instructions` counts all paths, and compares them
//! with the table in the checkout. With `--write` it writes the table. `PATH...` are the paths to
//! count, and `--functions PATH` lists the functions of one. It needs the Debian packages valgrind
//! and binutils, and a processor with AVX2.
//!
//! A path runs twice in virtual time, with N and 2N operations: the difference has neither the
//! preparation nor the end of a run. The load, the network and the disk are not counted. So equal
//! sources and tools give equal counts on any machine.

mod aside;
mod callgrind;
mod code;
mod commands;
mod counts;
mod disk;
mod drives;
mod fabric;
mod paths;
mod redis;
mod table;
mod tape;

use crate::callgrind::Profile;
use crate::code::Code;
use crate::paths::Path;
use crate::table::Table;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fs};

const HELP: &str = "\
Usage: instructions [--write] [PATH...]
       instructions --functions PATH

Counts the instructions of one operation of each PATH, and compares the counts
with experiments/instructions/counts.txt. Ends with status 1 if one differs from
the table by more than 2 %.

  --write           write the table: commit it with the change that explains it
  --functions PATH  list the functions of PATH by their instructions

Example: instructions --functions tcp-store";

/// Functions that `--functions` lists.
const FUNCTIONS: usize = 60;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--help" | "-h"] => {
            println!("{HELP}");
            Ok(true)
        }
        ["run", path, operations] => run(path, operations).map(|()| true),
        ["--functions", path] => named(path).and_then(functions).map(|()| true),
        ["--write", names @ ..] => all(names).and_then(|paths| count(&paths, true)),
        names => all(names).and_then(|paths| count(&paths, false)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(sentence) => {
            eprintln!("instructions: {sentence}");
            ExitCode::from(2)
        }
    }
}

fn named(name: &str) -> Result<Path, String> {
    Path::named(name).ok_or_else(|| {
        let names = Path::ALL.map(Path::name).join(", ");
        format!("there is no path {name:?}; the paths are {names}")
    })
}

/// Returns the paths of these names, or all paths if there is no name.
fn all(names: &[&str]) -> Result<Vec<Path>, String> {
    match names {
        [] => Ok(Path::ALL.to_vec()),
        names => names.iter().map(|name| named(name)).collect(),
    }
}

/// Runs a path in this process, for Callgrind.
fn run(path: &str, operations: &str) -> Result<(), String> {
    let path = named(path)?;
    path.run(operations.parse().map_err(|_| format!("{operations:?} is no number"))?);
    Ok(())
}

/// Prints the counts of `paths`, and writes them to the table or compares them with it. Returns
/// false if they differ.
fn count(paths: &[Path], writes: bool) -> Result<bool, String> {
    let tools = table::tools()?;
    let read = fs::read_to_string(table::FILE).map_err(|error| error.to_string());
    let table = read.and_then(|text| Table::parse(&text));
    let mut table = match (table, writes) {
        (Ok(table), _) => table,
        (Err(_), true) => Table { tools: tools.clone(), rows: BTreeMap::new() },
        (Err(error), false) => return Err(format!("{error}; make the table with --write")),
    };
    if table.tools != tools && !writes {
        let listed = &table.tools;
        return Err(format!(
            "the table is of {listed}, and this is {tools}: use those, or --write"
        ));
    }
    table.tools = tools;
    let code = code()?;
    let mut differences = Vec::new();
    println!("{}", table::heading());
    for &path in paths {
        let means = profile(path, &code)?.counts.means(path.operations());
        println!("{}", table::row(path, &means));
        differences.extend(table.differences(path, &means));
        table.rows.insert(path.name(), means);
    }
    for difference in &differences {
        println!("{difference}");
    }
    if writes {
        fs::write(table::FILE, table.text()).map_err(|error| error.to_string())?;
    } else if !differences.is_empty() {
        println!("if this is right, write the table with --write and say why in the commit");
    }
    Ok(writes || differences.is_empty())
}

/// Prints the functions of `path` that execute the most instructions.
fn functions(path: Path) -> Result<(), String> {
    let profile = profile(path, &code()?)?;
    let mut functions: Vec<_> = profile.functions.into_iter().collect();
    functions.sort_by_key(|(_, executed)| -executed);
    #[expect(clippy::cast_precision_loss, reason = "for a report")]
    let mean = |executed: i64| executed as f64 / path.operations() as f64;
    println!("{:>9.1}  {}", mean(profile.counts.instructions), path.name());
    for (function, executed) in functions.into_iter().take(FUNCTIONS) {
        println!("{:>9.1}  {function}", mean(executed));
    }
    Ok(())
}

fn code() -> Result<Code, String> {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !flags.contains(" avx2 ") {
        return Err("this processor has no AVX2, so it executes other code".to_owned());
    }
    Code::of(&env::current_exe().map_err(|error| error.to_string())?)
}

/// Returns what `path` costs, in the number of operations that it has.
fn profile(path: Path, code: &Code) -> Result<Profile, String> {
    let operations = path.operations();
    let fewer = Profile::of(path, operations, code)?;
    Ok(Profile::of(path, 2 * operations, code)?.without(&fewer))
}
