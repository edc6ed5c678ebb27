//! Counts what one operation executes in user space, by Callgrind: instructions, and of them the
//! locked ones and divisions; calls that allocate, copy and compute a CRC.
//!
//! `cargo run --profile dist -p experiments --bin instructions` counts all paths, and compares them
//! with the table in the checkout. With `--write` it writes the table. `PATH...` are the paths to
//! count, and `--functions PATH` lists the functions of one. It needs the Debian packages valgrind
//! and binutils, and a processor with AVX2.
//!
//! A path runs twice in virtual time, with N and 2N operations: the difference excludes the start
//! and the end of a run. The load, the network and the disk are not counted. So a build gives equal
//! counts on any machine.

mod aside;
mod callgrind;
mod code;
mod commands;
mod counts;
mod disk;
mod drives;
mod fabric;
mod opening;
mod paths;
mod pcie;
mod ratios;
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
Usage: instructions [--write | --unless-other-tools] [PATH...]
       instructions --functions PATH

Counts the instructions of one operation of each PATH, and compares the counts
with experiments/instructions/counts.txt. Ends with status 1 if one differs from
the table by more than 2 % and 0.1, or if a guest's command needs more than
1.05 times as many instructions with 64 queues as with 4. The table is of one
rustc, Valgrind and glibc: with others, the program ends with status 2.

  --write           write the table: commit it with the change that explains it
  --unless-other-tools
                    with other tools than those of the table, end with status 0
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
        ["--write", names @ ..] => all(names).and_then(|paths| write(&paths)),
        ["--unless-other-tools", names @ ..] => all(names).and_then(|paths| compare(&paths, true)),
        names => all(names).and_then(|paths| compare(&paths, false)),
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

/// Prints the counts of `paths`, and writes them to the table.
fn write(paths: &[Path]) -> Result<bool, String> {
    let tools = table::tools()?;
    let mut table = match read_table() {
        Ok(table) if table.tools == tools => table,
        Ok(table) if paths.len() < Path::ALL.len() => {
            return Err(format!("{}: write all paths", other_tools(&table, &tools)));
        }
        _ => Table { tools, rows: BTreeMap::new() },
    };
    let hold = count(paths, |path, means| {
        table.rows.insert(path.name(), means);
    })?;
    fs::write(table::FILE, table.text()).map_err(|error| error.to_string())?;
    Ok(hold)
}

/// Prints the counts of `paths` and their differences from the table. Returns false if there are
/// some.
fn compare(paths: &[Path], unless_other_tools: bool) -> Result<bool, String> {
    let (table, tools) = (read_table()?, table::tools()?);
    if table.tools != tools {
        let sentence = other_tools(&table, &tools);
        if !unless_other_tools {
            return Err(format!("{sentence}: use those"));
        }
        println!("skipped: {sentence}");
        return Ok(true);
    }
    let mut differences = Vec::new();
    let hold = count(paths, |path, means| differences.extend(table.differences(path, &means)))?;
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        println!("if this is right, write the table with --write and say why in the commit");
    }
    Ok(differences.is_empty() && hold)
}

/// Prints the counts of `paths` and their ratios, and passes each count to `take`. Returns whether
/// all ratios hold.
fn count(paths: &[Path], mut take: impl FnMut(Path, [f64; 6])) -> Result<bool, String> {
    let code = code()?;
    let mut instructions = BTreeMap::new();
    println!("{}", table::heading());
    for &path in paths {
        let means = profile(path, &code)?.counts.means(path.operations());
        println!("{}", table::row(path, &means));
        instructions.insert(path.name(), means[0]);
        take(path, means);
    }
    let (sentences, hold) = ratios::check(&instructions);
    for sentence in sentences {
        println!("{sentence}");
    }
    Ok(hold)
}

fn read_table() -> Result<Table, String> {
    let text = fs::read_to_string(table::FILE);
    let text = text.map_err(|error| format!("{}: {error}; make it with --write", table::FILE))?;
    Table::parse(&text)
}

fn other_tools(table: &Table, tools: &str) -> String {
    format!("the table is of {}, and this is {tools}", table.tools)
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
    if cfg!(target_feature = "avx2") {
        return Err("this build is for one kind of processor: leave out RUSTFLAGS".to_owned());
    }
    Code::of(&env::current_exe().map_err(|error| error.to_string())?)
}

/// Returns what [`Path::operations`] of `path` cost.
fn profile(path: Path, code: &Code) -> Result<Profile, String> {
    let operations = path.operations();
    let fewer = Profile::of(path, operations, code)?;
    Ok(Profile::of(path, 2 * operations, code)?.without(&fewer))
}
