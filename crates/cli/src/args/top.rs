use crate::number::parse_time;
use base::Nanos;

const TOP_HELP: &str = "\
The server must run with --http. q or Ctrl-C quits. Without a terminal each
interval is printed below the one before. Operations are commands of NVMe hosts
and Redis clients.

Examples:
  kvasir top
  kvasir top 192.0.2.7:8420 --interval 5
  kvasir top --once --json";

/// Show a server's hosts, Redis clients, devices and cores
#[derive(Debug, clap::Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopArgs {
    /// HTTP address of the server: HOST:PORT, HOST or :PORT
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:8420")]
    pub(crate) address: String,
    /// Interval of each rate: seconds or 500ms, at least 200ms
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_interval)]
    pub(crate) interval: Nanos,
    /// Print one interval and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON: one object on a line for each interval
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shortest interval: a server caches its answer for a tenth of a second.
const INTERVAL_MIN: Nanos = Nanos::from_millis(200);

fn parse_interval(text: &str) -> Result<Nanos, String> {
    let interval = parse_time(text)?;
    let is_long = interval >= INTERVAL_MIN;
    is_long
        .then_some(interval)
        .ok_or_else(|| format!("an interval must be at least {INTERVAL_MIN}"))
}
