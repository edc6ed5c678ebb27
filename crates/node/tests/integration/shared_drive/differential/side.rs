use super::client::{Client, RedisClient};
use super::request::{Reply, Request, Round};
use crate::shared_drive::peer::Peer;
use crate::shared_drive::scene::Scene;
use node::server::BalanceConfig;
use std::sync::Barrier;
use std::thread;

/// Redis clients of a server: clients 0 to 4. A server of four reactors has at least one in each.
pub(crate) const REDIS_CLIENTS: usize = 5;
/// I/O queues of NVMe hosts of a server: clients 5 to 11. The server deals them and the admin queue
/// to each of four reactors twice.
pub(crate) const HOSTS: usize = 7;
pub(crate) const CLIENTS: usize = REDIS_CLIENTS + HOSTS;

/// A server and its clients.
pub(crate) struct Side {
    scene: Scene,
    clients: Vec<Client>,
    _admin: Peer,
    /// The NVMe connections and the Redis clients of each reactor, once all have connected.
    spread: [Vec<u64>; 2],
}

impl Side {
    /// Connects clients to all reactors of the server.
    pub(crate) fn of(scene: Scene) -> Self {
        let redis = scene.server.resp_address(0).unwrap();
        let redis = (0..REDIS_CLIENTS).map(|_| Client::Redis(RedisClient::connect(redis)));
        let (admin, controller) = Peer::admin(scene.address(), 0);
        let queues = 1..=u16::try_from(HOSTS).unwrap();
        let hosts = queues.map(|id| Client::Host(Peer::io(scene.address(), controller, id)));
        let clients = redis.chain(hosts).collect();
        let spread = spread(&scene);
        let side = Self { scene, clients, _admin: admin, spread };
        side.check_spread();
        side
    }

    /// Checks that each reactor has Redis clients and hosts.
    fn check_spread(&self) {
        let [hosts, redis] = &self.spread;
        assert!(redis.iter().all(|count| *count > 0), "Redis clients of each reactor: {redis:?}");
        assert!(hosts.iter().all(|count| *count > 0), "connections of each reactor: {hosts:?}");
        assert_eq!(redis.iter().sum::<u64>(), REDIS_CLIENTS as u64);
    }

    /// Checks that each reactor has executed commands of hosts.
    pub(crate) fn check_commands(&self) {
        let reactors = self.scene.status().reactors;
        let commands: Vec<u64> = reactors.iter().map(|reactor| reactor.commands).collect();
        assert!(commands.iter().all(|count| *count > 0), "commands of each: {commands:?}");
    }

    /// Balances the reactors by `config`. Connected clients stay where they are until they move.
    pub(crate) fn set_balance(&self, config: BalanceConfig) {
        self.scene.server.ruler().set_balance(config);
    }

    /// Returns the number of commands that reactors had others execute.
    pub(crate) fn diverted(&self) -> u64 {
        self.scene.status().reactors.iter().map(|reactor| reactor.commands_diverted).sum()
    }

    /// Returns whether connections of hosts are on other reactors than at the start, and whether
    /// Redis clients are. None connects or ends, so some have moved.
    pub(crate) fn is_spread_anew(&self) -> [bool; 2] {
        let now = spread(&self.scene);
        [0, 1].map(|kind| now[kind] != self.spread[kind])
    }

    pub(crate) fn ask(&mut self, client: usize, requests: &[Request]) -> Vec<Reply> {
        self.clients[client].ask(requests)
    }

    /// Lets each client send its pipelines of a round from a thread of its own, and returns their
    /// replies.
    pub(crate) fn at_once(&mut self, round: &Round) -> Vec<Vec<Reply>> {
        let begin = &Barrier::new(CLIENTS);
        thread::scope(|scope| {
            let threads = self.clients.iter_mut().zip(round).map(|(client, pipelines)| {
                scope.spawn(move || {
                    begin.wait();
                    pipelines.iter().flat_map(|pipeline| client.ask(pipeline)).collect()
                })
            });
            let threads: Vec<_> = threads.collect();
            threads.into_iter().map(|thread| thread.join().expect("its client works")).collect()
        })
    }

    pub(crate) fn stop(self) {
        let Self { scene, clients, .. } = self;
        drop(clients);
        scene.server.stop().unwrap();
    }
}

/// Returns the NVMe connections and the Redis clients of each reactor.
fn spread(scene: &Scene) -> [Vec<u64>; 2] {
    let reactors = scene.status().reactors;
    let hosts = reactors.iter().map(|reactor| reactor.connections).collect();
    [hosts, reactors.iter().map(|reactor| reactor.redis_clients).collect()]
}
