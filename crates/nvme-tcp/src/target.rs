//! The controller's end of a connection.

mod admission;
mod budget;
mod config;
mod connection;
mod deadline;
mod ended;
mod fused;
mod limits;
mod reader;
mod transfers;
mod writer;

pub use budget::Budget;
pub use config::Config;
pub use ended::Ended;
pub use limits::{COMMANDS_MAX, H2C_DATA_MAX, LARGE, TIMEOUT, UNANSWERED_MAX};

use connection::Connection;
use controller::Port;
use net::Stream;
use reader::Reader;
use std::rc::Rc;

/// Serves the host at the other end of `stream` from `port` until the connection is over. No other
/// connection shares its `budget`.
pub async fn serve<S: Stream>(
    stream: Rc<S>,
    port: Rc<dyn Port>,
    config: Config,
    budget: Rc<Budget>,
) -> Ended {
    let connection = Rc::new(Connection::new(stream, config, budget));
    connection.set_deadline(Some(clock::host_now() + TIMEOUT));
    clock::spawn(writer::write_all(connection.clone()));
    Reader::new(connection.clone(), port).read_all().await;
    connection.leave().await;
    connection.reason()
}
