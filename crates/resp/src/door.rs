use crate::counters::Counters;
use crate::hidden::DATABASES_MAX;
use crate::inbox::Inbox;
use crate::key_queues::KeyQueues;
use crate::limits::Limits;
use crate::outbox::Outbox;
use crate::pace::Pace;
use crate::parameters::Parameters;
use crate::rates::Rates;
use crate::request::{KeptRequest, Request};
use crate::settings::{Process, Settings};
use crate::spares::Spares;
use crate::transaction::Transaction;
use crate::upkeep::Upkeep;
use crate::users::Users;
use crate::watcher::Watcher;
use crate::wire::Wire;
use base::{BufPool, Nanos, Rng};
use engine::{KeySpaceId, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What others can see of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// The reactor that executes its commands.
    pub(crate) reactor_id: u32,
    /// Commands that other reactors executed before.
    pub(crate) commands_before: u64,
    pub(crate) since: Nanos,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) database: u16,
    pub(crate) protocol: u8,
    pub(crate) queued: Option<usize>,
    /// Bytes of commands that wait for EXEC.
    pub(crate) queued_bytes: usize,
    /// The name and the version of what it is made with.
    pub(crate) library: [String; 2],
    pub(crate) pace: Pace,
    pub(crate) wire: Arc<Wire>,
}

impl Client {
    /// Commands that its reactor has executed.
    fn commands_here(&self) -> u64 {
        self.wire.commands() - self.commands_before
    }

    /// Bytes of memory that it takes, but for what is the same of all.
    pub(crate) fn held_bytes(&self) -> usize {
        let (query, output) = (&self.wire.query_memory, &self.wire.output_bytes);
        query.load(Ordering::Relaxed) + output.load(Ordering::Relaxed) + self.queued_bytes
    }
}

/// What all connections share: the store, and each other's names.
#[derive(Debug)]
pub struct Door {
    store: Arc<Store>,
    settings: Settings,
    users: Users,
    counters: Arc<Counters>,
    watcher: Watcher,
    rates: Mutex<Rates>,
    upkeep: Arc<Upkeep>,
    key_queues: KeyQueues,
    pool: BufPool,
    /// For requests, and for answers.
    spares: [Arc<Spares>; 2],
    started: Nanos,
    ids: AtomicU64,
    clients: Mutex<BTreeMap<u64, Client>>,
    /// By reactor: commands of clients that have left it. It is locked after `clients`.
    commands_before: Mutex<BTreeMap<u32, u64>>,
    rng: Mutex<Rng>,
    /// Whether clients had limits in time when it was last looked at them.
    pub(crate) was_limited: AtomicBool,
    pub(crate) is_closed: AtomicBool,
    /// Whether what the door does beside commands is being done.
    pub(crate) tending: clock::Users,
}

impl Door {
    /// A door to `store`, for `users`. Values that come get their buffers from `pool`.
    ///
    /// # Panics
    /// When there are more databases than can be.
    pub fn new(store: Arc<Store>, users: Users, settings: Settings, pool: BufPool) -> Self {
        assert!(settings.databases <= DATABASES_MAX, "that many databases cannot be");
        Self {
            store,
            settings,
            users,
            counters: Arc::default(),
            watcher: Watcher::new(Parameters::new(settings.clients)),
            rates: Mutex::default(),
            upkeep: Arc::default(),
            key_queues: KeyQueues::default(),
            pool,
            spares: Default::default(),
            started: clock::now(),
            ids: AtomicU64::new(1),
            clients: Mutex::default(),
            commands_before: Mutex::default(),
            rng: Mutex::new(Rng::new(settings.seed)),
            was_limited: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            tending: clock::Users::default(),
        }
    }

    /// What it has done.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    pub(crate) const fn watcher(&self) -> &Watcher {
        &self.watcher
    }

    pub(crate) const fn parameters(&self) -> &Parameters {
        self.watcher.parameters()
    }

    pub(crate) fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn process(&self) -> Option<Process> {
        self.settings.process.and_then(|read| read())
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    pub(crate) fn upkeep(&self) -> &Arc<Upkeep> {
        &self.upkeep
    }

    pub(crate) const fn key_queues(&self) -> &KeyQueues {
        &self.key_queues
    }

    /// A transaction that has touched nothing.
    pub(crate) fn transaction(&self) -> Transaction {
        let (store, upkeep) = (self.store.clone(), self.upkeep.clone());
        Transaction::new(store, upkeep, self.settings.read_bytes_max)
    }

    pub(crate) fn pool(&self) -> &BufPool {
        &self.pool
    }

    /// A request that was kept.
    pub(crate) fn request<'a>(&'a self, kept: &'a KeptRequest) -> Request<'a> {
        kept.request(&self.counters, &self.pool)
    }

    /// An inbox of a connection.
    pub(crate) fn inbox(&self) -> Inbox {
        let (pool, counters) = (self.pool().clone(), self.counters.clone());
        let (value, request) = (self.store.value_bytes_max(), self.parameters().query_bytes_max());
        let limits = Limits { value_bytes_max: value, request_bytes_max: request };
        Inbox::new(limits, pool, counters).sharing(self.spares[0].clone())
    }

    /// An outbox of one.
    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::new(self.counters.clone()).sharing(self.spares[1].clone())
    }

    pub(crate) fn started(&self) -> Nanos {
        self.started
    }

    pub(crate) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn clients(&self) -> MutexGuard<'_, BTreeMap<u64, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a client that has left.
    pub(crate) fn forget(&self, id: u64) {
        let mut clients = self.clients();
        if let Some(client) = clients.remove(&id) {
            *self.commands_before().entry(client.reactor_id).or_default() += client.commands_here();
        }
    }

    /// Has the calling reactor execute the commands of a client from now on.
    pub(crate) fn move_here(&self, id: u64) {
        if let Some(client) = self.clients().get_mut(&id) {
            let commands = client.commands_here();
            *self.commands_before().entry(client.reactor_id).or_default() += commands;
            client.commands_before += commands;
            client.reactor_id = clock::reactor_id();
        }
    }

    /// Commands that each reactor has executed, by its number. Their sum is
    /// [`Totals::commands`](crate::Totals).
    pub fn commands_by_reactor(&self) -> BTreeMap<u32, u64> {
        let clients = self.clients();
        let mut all = self.commands_before().clone();
        for client in clients.values() {
            *all.entry(client.reactor_id).or_default() += client.commands_here();
        }
        all
    }

    fn commands_before(&self) -> MutexGuard<'_, BTreeMap<u32, u64>> {
        self.commands_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn random(&self) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// The key space of a database.
    pub(crate) const fn space(database: u16) -> KeySpaceId {
        KeySpaceId(database + 1)
    }
}
