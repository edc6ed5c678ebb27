use crate::conditions::Conditions;
use crate::end::End;
use crate::wire::Wire;
use base::Rng;
use clock::{Notify, Stage};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

/// A simulated network on the clock that is installed: equal seeds give equal delays, pieces and
/// cuts. Clones are handles of the same network.
#[derive(Clone, Debug)]
pub struct Network(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    conditions: Conditions,
    rng: Rng,
    made: u64,
    wires: Vec<Weak<Wire>>,
    listeners: BTreeMap<String, Weak<Arrivals>>,
}

/// Connections that wait to be accepted.
#[derive(Debug, Default)]
struct Arrivals {
    state: RefCell<Option<VecDeque<End>>>,
    notify: Notify,
}

/// Where a target accepts connections. Dropping it gives the address back.
#[derive(Debug)]
pub struct Listener(Rc<Arrivals>);

/// The address has no listener.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address}: connection refused, no listener")]
pub struct Refused {
    /// What was connected to.
    pub address: String,
}

impl Network {
    /// Returns a network without listeners.
    pub fn new(seed: u64, conditions: Conditions) -> Self {
        conditions.check();
        Self(Rc::new(RefCell::new(State {
            conditions,
            rng: Rng::new(seed),
            made: 0,
            wires: Vec::new(),
            listeners: BTreeMap::new(),
        })))
    }

    /// Sets the conditions of all later connections.
    pub fn set_conditions(&self, conditions: Conditions) {
        conditions.check();
        self.0.borrow_mut().conditions = conditions;
    }

    /// Both ends of a new connection.
    pub fn pair(&self) -> (End, End) {
        let mut state = self.0.borrow_mut();
        let wire = state.make();
        let conditions = state.conditions;
        let life = conditions.draw_life(&mut state.rng);
        if let Some(life) = life {
            let wire = Rc::downgrade(&wire);
            clock::spawn_at(clock::now() + life, async move || {
                if let Some(wire) = wire.upgrade() {
                    wire.cut();
                }
            });
        }
        End::both(&wire)
    }

    /// Listens at `address`, whose form means nothing here.
    ///
    /// # Panics
    /// When the address has a listener already.
    pub fn listen(&self, address: &str) -> Listener {
        let arrivals =
            Rc::new(Arrivals { state: RefCell::new(Some(VecDeque::new())), notify: Notify::new() });
        let mut state = self.0.borrow_mut();
        let before = state.listeners.insert(address.to_owned(), Rc::downgrade(&arrivals));
        let is_free = before.is_none_or(|before| {
            before.upgrade().is_none_or(|before| before.state.borrow().is_none())
        });
        assert!(is_free, "{address} has a listener already");
        Listener(arrivals)
    }

    /// Connects to the listener that `address` has when the request arrives, and returns when the
    /// answer is back. Bytes sent before the listener accepts wait in the connection.
    pub async fn connect(&self, address: &str) -> Result<End, Refused> {
        self.travel().await;
        let listener = self.0.borrow().listeners.get(address).and_then(Weak::upgrade);
        let end = listener.and_then(|listener| {
            let is_open = listener.state.borrow().is_some();
            is_open.then(|| {
                let (near, far) = self.pair();
                listener.state.borrow_mut().as_mut()?.push_back(far);
                listener.notify.notify();
                Some(near)
            })?
        });
        self.travel().await;
        end.ok_or_else(|| Refused { address: address.to_owned() })
    }

    /// The numbers of the connections whose both ends are there.
    pub fn open(&self) -> Vec<u64> {
        let state = self.0.borrow();
        let wires = state.wires.iter().filter_map(Weak::upgrade);
        wires.filter(|wire| wire.is_open()).map(|wire| wire.number).collect()
    }

    /// Cuts the connection of this number, if it is there: what was on the way is lost, and both
    /// ends break at this instant.
    pub fn cut(&self, number: u64) {
        let wires = self.0.borrow().wires.clone();
        let wire = wires.iter().filter_map(Weak::upgrade).find(|wire| wire.number == number);
        if let Some(wire) = wire {
            wire.cut();
        }
    }

    async fn travel(&self) {
        let delay = {
            let mut state = self.0.borrow_mut();
            let conditions = state.conditions;
            conditions.draw_delay(&mut state.rng)
        };
        clock::sleep(delay, Stage::Link).await;
    }
}

impl State {
    fn make(&mut self) -> Rc<Wire> {
        let wire = Wire::new(self.made, self.conditions, &mut self.rng);
        self.made += 1;
        self.wires.retain(|wire| wire.strong_count() > 0);
        self.wires.push(Rc::downgrade(&wire));
        wire
    }
}

impl Listener {
    /// The next connection, in the order in which they arrived. `None` after [`Self::close`].
    pub async fn accept(&self) -> Option<End> {
        loop {
            let next = self.0.state.borrow_mut().as_mut().map(VecDeque::pop_front);
            match next {
                None => return None,
                Some(Some(end)) => return Some(end),
                Some(None) => self.0.notify.wait().await,
            }
        }
    }

    /// Stops listening. Ends connections that were not accepted, and wakes the accepting task.
    pub fn close(&self) {
        let unaccepted = self.0.state.borrow_mut().take();
        drop(unaccepted);
        self.0.notify.notify();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.close();
        }
    }
}
