//! Moves open connections from a reactor to less busy ones.

use super::arrivals::MovedConnection;
use super::balance::end_of_window;
use super::movable_connections::{MovableConnection, MovableConnections};
use super::placed_connections::{DealtReactors, PlacedConnections};
use balance::{ConnectionMove, ConnectionMover};
use base::Nanos;
use clock::BusyStage;
use reactor::{Outbox, ReceiveEnd, Remote, SendEnd, mailbox};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Capacity of an inbox for connections that move: a reactor gives one away in a window.
const CONNECTIONS: usize = 16;

/// The links of a balanced reactor to the others, for connections.
pub(super) struct MoverLinks {
    /// All balanced reactors.
    reactors: DealtReactors,
    /// The index of this one.
    place: usize,
    /// To each reactor; `None` to itself.
    to: Vec<Option<SendEnd<MovedConnection>>>,
    /// From each of the others.
    from: Vec<ReceiveEnd<MovedConnection>>,
}

/// Links the reactors under `remotes`, which are those of `placed` from number `first` on. Returns
/// the links of each.
pub(super) fn link_movers(
    placed: &Arc<PlacedConnections>,
    remotes: &[Remote],
    first: usize,
) -> Vec<MoverLinks> {
    let unlinked = |place| MoverLinks {
        reactors: placed.among((first..first + remotes.len()).collect()),
        place,
        to: Vec::new(),
        from: Vec::new(),
    };
    let mut links: Vec<MoverLinks> = (0..remotes.len()).map(unlinked).collect();
    for (from, sender) in remotes.iter().enumerate() {
        for (to, receiver) in remotes.iter().enumerate() {
            let ends = (from != to).then(|| mailbox(CONNECTIONS, sender, receiver));
            let (send, receive) = ends.unzip();
            links[from].to.push(send);
            links[to].from.extend(receive);
        }
    }
    links
}

impl MoverLinks {
    /// Opens the links in their reactor, whose `connections` then move as the policy of the server
    /// says. `serve` takes those of others.
    pub(super) fn open(
        self,
        connections: &MovableConnections,
        serve: impl Fn(MovedConnection) + 'static,
    ) {
        let Self { reactors, place, to, from } = self;
        let serve = Rc::new(serve);
        for end in from {
            let (inbox, serve) = (end.open(), serve.clone());
            clock::spawn(async move {
                clock::name_task("moved connections");
                while let Some(moved) = inbox.receive().await {
                    serve(moved);
                }
            });
        }
        let to = to.into_iter().map(|end| end.map(SendEnd::open)).collect();
        let links = Rc::new(Links { reactors, to });
        let leaving = links.clone();
        connections.leave_by(move |to, moved| leaving.send(to, moved));
        clock::spawn(links.end_windows(place, connections.clone()));
    }
}

/// The open links.
struct Links {
    reactors: DealtReactors,
    to: Vec<Option<Outbox<MovedConnection>>>,
}

impl Links {
    /// Sends a connection to the reactor with index `to`, in which it counts from now on.
    fn send(&self, to: usize, mut moved: MovedConnection) {
        moved.permit().move_to(self.reactors.place(to));
        let outbox = self.to[to].as_ref().expect("a connection moves to another reactor");
        outbox.send(moved);
    }

    /// Ends a window of the mover again and again while the policy places connections. The next
    /// policy may do so.
    async fn end_windows(self: Rc<Self>, place: usize, connections: MovableConnections) {
        clock::name_task("connection mover");
        clock::set_busy_stage(BusyStage::Background);
        let mut mover = ConnectionMover::new(place);
        let (mut began, mut before) = (clock::host_now(), self.reactors.busy());
        let (mut arrived, mut asked) = (0, AskedConnections::default());
        loop {
            let length = || self.reactors.config().settings.window;
            let now = end_of_window(began, length).await;
            let busy = self.reactors.busy();
            let grown = busy.iter().zip(&before).map(|(&now, &before)| now - before);
            let grown: Vec<Nanos> = grown.collect();
            let config = self.reactors.config();
            if connections.migrations().arrived > arrived {
                arrived = connections.migrations().arrived;
                mover.connection_arrived();
            }
            asked.take_stayed().into_iter().for_each(|number| mover.connection_stayed(number));
            if !config.policy.places_connections() {
                mover = ConnectionMover::new(place);
            } else if let Some(due) =
                mover.end_window(now - began, &grown, || connections.work(), &config.settings)
            {
                asked.ask(&connections, due);
            }
            (began, before) = (now, busy);
        }
    }
}

/// Connections that were asked to move, and may still do so.
#[derive(Default)]
struct AskedConnections(Vec<Weak<MovableConnection>>);

impl AskedConnections {
    fn ask(&mut self, connections: &MovableConnections, due: ConnectionMove) {
        self.0.push(connections.ask_to_move(due.number, due.to));
    }

    /// Takes requests back that the connections have not noticed. Returns the numbers of the
    /// connections that stay. One that has begun to leave may take several windows, and stay after
    /// all.
    fn take_stayed(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        self.0.retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            let stayed = connection.withdraw_move();
            numbers.extend(stayed);
            stayed.is_none()
        });
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reactor::TcpStream;
    use std::net::TcpListener;

    #[test]
    fn each_connection_that_was_asked_is_followed_until_it_stays_or_leaves() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = MovableConnections::default();
        let mut open: Vec<Option<Rc<MovableConnection>>> = Vec::new();
        for number in 0..5 {
            let socket = std::net::TcpStream::connect(address).unwrap();
            let stream = Rc::new(TcpStream::new(socket.into()).unwrap());
            open.push(Some(connections.open(number, stream, || 0, false)));
        }
        let mut asked = AskedConnections::default();
        // The last one has ended before.
        (0..6).for_each(|number| asked.ask(&connections, ConnectionMove { number, to: 1 }));
        let moves = |open: &[Option<Rc<MovableConnection>>], number: usize| {
            open[number].as_ref().unwrap().moves()
        };
        let close = |open: &mut [Option<Rc<MovableConnection>>], number: usize| {
            connections.close(number as u64);
            open[number].take();
        };
        // 0 and 4 have not noticed the request. 1 to 3 begin to leave.
        (1..4).for_each(|number| moves(&open, number).begin());
        assert_eq!(asked.take_stayed(), [0, 4]);
        assert!(!moves(&open, 0).is_made(), "its request is withdrawn");
        assert!((1..4).all(|number| moves(&open, number).is_leaving()), "they may still leave");
        assert_eq!(asked.take_stayed(), [] as [u64; 0]);
        moves(&open, 2).clear();
        close(&mut open, 1);
        assert_eq!(asked.take_stayed(), [2]);
        moves(&open, 3).clear();
        assert_eq!(asked.take_stayed(), [3]);
        assert_eq!(asked.take_stayed(), [] as [u64; 0]);
        assert!(asked.0.is_empty());
    }
}
