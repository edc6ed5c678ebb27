//! Chores of this repository: `cargo xtask --help` lists them.

mod cargo;
mod fuzz;
mod layers;
mod soak;
mod source;
mod tally;
mod test;
mod tidy;
mod tokens;
mod tool;
mod tree;

use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  test              everything that CI checks, cheap first, to the first failure
  lint              the checks of the source among these: format, tidy, layers, clippy
  tidy              the style guide, over every file that git does not ignore
  layers            the dependencies between crates, and circles between their files
  soak [--seeds N]  sweeps of the simulation and of hand-offs over N seeds (default 5000), in dist
  fuzz [TARGET] [--seconds N]
                    looks for inputs that fail, N seconds for each target (default 60)
  --help            this list";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // The folder at run time, not at build time: checkouts may share a target folder.
    let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        return misused("Cargo says where the checkout is: run it as cargo xtask");
    };
    let root = Path::new(&manifest).parent().expect("xtask lies in the checkout");
    match words.as_slice() {
        [] | ["--help" | "-h" | "help"] => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        ["test"] => test::run(root),
        ["lint"] => report(test::lint(root)),
        ["tidy"] => report(tidy::run(root)),
        ["layers"] => report(layers::run(root)),
        ["soak", flags @ ..] => match soak::seeds(flags) {
            Ok(seeds) => report(soak::run(root, seeds)),
            Err(sentence) => misused(&sentence),
        },
        ["fuzz", arguments @ ..] => match fuzz::wish(arguments) {
            Ok(wish) => report(fuzz::run(root, &wish)),
            Err(sentence) => misused(&sentence),
        },
        [command @ ("test" | "lint" | "tidy" | "layers"), extra, ..] => {
            misused(&format!("`{command}` takes no argument, and was given `{extra}`"))
        }
        [unknown, ..] => {
            misused(&format!("there is no command `{unknown}`; `cargo xtask --help` lists them"))
        }
    }
}

fn report(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn misused(sentence: &str) -> ExitCode {
    eprintln!("xtask: {sentence}");
    ExitCode::from(2)
}
