use crate::number::parse_time;
use base::Nanos;

const TOP_HELP: &str = "\
Asks a server that was started with --http. q or Ctrl-C quits. Where the output
is no terminal, each interval is printed below the one before.

Examples:
  kvasir top
  kvasir top 192.0.2.7:8420 --interval 5
  kvasir top --once --json";

/// Show what a server is doing: hosts, Redis clients, rates, devices and cores
#[derive(Debug, clap::Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopArgs {
    /// Where the server answers: HOST:PORT, HOST or :PORT
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:8420")]
    pub(crate) address: String,
    /// How long to count for each rate: seconds, or as 500ms, from 200ms on
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_interval)]
    pub(crate) interval: Nanos,
    /// Count for one interval, print that, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON: an object on a line for each interval
    #[arg(long)]
    pub(crate) json: bool,
}

/// A server says the same for a tenth of a second, in which nothing could be counted.
const INTERVAL_MIN: Nanos = Nanos::from_millis(200);

fn parse_interval(text: &str) -> Result<Nanos, String> {
    let interval = parse_time(text)?;
    let is_long = interval >= INTERVAL_MIN;
    is_long.then_some(interval).ok_or_else(|| format!("an interval has {INTERVAL_MIN} or more"))
}
