//! The controller's end of a connection.

mod admission;
mod budget;
mod config;
mod connection;
mod deadline;
mod ended;
mod fused;
mod leaving;
mod limits;
mod parked;
mod reader;
mod transfers;
mod writer;

pub use budget::Budget;
pub use config::Config;
pub use ended::Ended;
pub use limits::{COMMANDS_MAX, H2C_DATA_MAX, LARGE, LEAVE_MAX, TIMEOUT, UNANSWERED_MAX};
pub use parked::{Left, ParkedConnection};

use connection::Connection;
use controller::Port;
use net::{MoveRequest, Stream};
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
    match serve_until_moved(stream, port, config, (budget, Rc::default()), None).await {
        Left::Ended(ended) => ended,
        Left::Moved(_) => panic!("the connection was not asked to move"),
    }
}

/// As [`serve`], or until the connection has left as `moves` asks it to. One that cannot leave
/// within [`LEAVE_MAX`] clears the request and stays. Continues `parked`, which another reactor has
/// left with; `port` has to be of the same subsystems.
pub async fn serve_until_moved<S: Stream>(
    stream: Rc<S>,
    port: Rc<dyn Port>,
    config: Config,
    (budget, moves): (Rc<Budget>, Rc<MoveRequest>),
    parked: Option<ParkedConnection>,
) -> Left {
    let connection = Rc::new(Connection::new(stream, config, budget, moves));
    let reader = match parked {
        None => {
            connection.set_deadline(Some(clock::host_now() + TIMEOUT));
            Reader::new(connection.clone(), port)
        }
        Some(parked) => Reader::resumed(connection.clone(), port, parked),
    };
    clock::spawn(writer::write_all(connection.clone()));
    if let Some(parked) = reader.read_all().await {
        return Left::Moved(parked);
    }
    connection.leave().await;
    Left::Ended(connection.reason())
}
