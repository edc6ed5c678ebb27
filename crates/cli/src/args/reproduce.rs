use std::path::PathBuf;

const REPRODUCE_HELP: &str = "\
The device of an experiment is the one that its paper states; what it does not
state is listed as an assumption. The exit status is 0 only if every experiment
holds.

Examples:
  kvasir reproduce --list
  kvasir reproduce MoKE-1a MoKE-1d --plot figures";

/// Rerun experiments of the published systems, theirs beside ours
#[derive(Debug, clap::Args)]
#[command(after_help = REPRODUCE_HELP)]
pub(crate) struct ReproduceArgs {
    /// Experiments, as --list names them [default: all that can be rerun]
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// List all experiments of the papers, and which can be rerun
    #[arg(long, conflicts_with_all = ["ids", "plot", "control"])]
    pub(crate) list: bool,
    /// Switch off what the paper credits, to see that the criterion then fails
    #[arg(long)]
    pub(crate) control: bool,
    /// Draw a figure of each as an SVG file in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Print JSON: an object for one experiment, an array for several
    #[arg(long)]
    pub(crate) json: bool,
}
