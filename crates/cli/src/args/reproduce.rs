use std::path::PathBuf;

const REPRODUCE_HELP: &str = "\
Each experiment uses the device that its paper states. Values that the paper
does not state are listed as assumptions.

Exit status:
  0  Every experiment holds
  1  An experiment fails that is not a known failure
  2  The command line is wrong
  3  Only known failures fail; the output gives the reason of each
     (known-failures in experiments/criteria.toml)

Examples:
  kvasir reproduce --list
  kvasir reproduce MoKE-1a MoKE-1d --plot figures";

/// Rerun published experiments and compare the results
#[derive(Debug, clap::Args)]
#[command(after_help = REPRODUCE_HELP)]
pub(crate) struct ReproduceArgs {
    /// Experiments, as --list names them [default: all]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// List all experiments, and which can be rerun
    #[arg(long, conflicts_with_all = ["ids", "plot", "control"])]
    pub(crate) list: bool,
    /// Switch off the paper's mechanism: the criterion must fail
    #[arg(long)]
    pub(crate) control: bool,
    /// Draw each experiment as an SVG file in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Print JSON: an object, or an array for several experiments
    #[arg(long)]
    pub(crate) json: bool,
}
