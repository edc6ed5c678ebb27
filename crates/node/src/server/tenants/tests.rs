//! Readers of simulated connections, in virtual time. Each byte that they read takes 10 ns of CPU
//! time.

use super::{Gate, Member, TenantConfig, TenantStream, Tenants, metered};
use base::Nanos;
use net::{Broken, Conditions, End, Network, Stream};
use reactor::Reactor;
use std::cell::{Cell, RefCell};
use std::io::{IoSlice, IoSliceMut};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes that each connection has received before its first turn.
const RECEIVED: usize = 400_000;

/// The most that a turn can read.
const TURN_MAX: usize = 128 << 10;

/// Bytes of a request.
const REQUEST: usize = 72;

thread_local! {
    static CPU_TIME: Cell<Nanos> = const { Cell::new(Nanos::ZERO) };
}

/// A gate with connections of two tenants, `a` and `b`.
struct Scene {
    tenants: Arc<Tenants>,
    gate: Rc<Gate>,
    network: Network,
    /// The tenant and the bytes of each read.
    reads: Rc<RefCell<Vec<(usize, usize)>>>,
    readers: Rc<Cell<usize>>,
    peers: Vec<End>,
}

impl Scene {
    fn new(configs: &[TenantConfig]) -> Self {
        let conditions = Conditions {
            delay: (Nanos::ZERO, Nanos::ZERO),
            piece_max: RECEIVED,
            capacity: RECEIVED,
            life: None,
        };
        let tenants = Arc::new(Tenants::new(configs));
        Self {
            gate: Gate::open_by(&tenants, || CPU_TIME.get()),
            tenants,
            network: Network::new(1, conditions),
            reads: Rc::default(),
            readers: Rc::default(),
            peers: Vec::new(),
        }
    }

    /// Opens a connection of this tenant, which has received [`RECEIVED`] bytes.
    fn open(&mut self, tenant: usize) -> Rc<TenantStream<End>> {
        let (near, far) = self.network.pair();
        let mut sent = 0;
        while sent < RECEIVED {
            sent += far.try_write(&[IoSlice::new(&vec![0; RECEIVED - sent])]).unwrap().unwrap();
        }
        self.peers.push(far);
        let member = Member::new(&self.gate, None);
        member.assign(tenant);
        let stream = Rc::new(TenantStream::new(Rc::new(near), member.clone()));
        let (reads, readers) = (self.reads.clone(), self.readers.clone());
        readers.set(readers.get() + 1);
        let reading = read_all(stream.clone(), member.clone(), move |bytes| {
            reads.borrow_mut().push((tenant, bytes));
            CPU_TIME.set(CPU_TIME.get() + Nanos(bytes as u64 * 10));
        });
        clock::spawn(metered(member, async move {
            reading.await;
            readers.set(readers.get() - 1);
        }));
        stream
    }

    /// Returns how many bytes the tenants had read when the first had read `bytes`.
    fn read_by_both_when_first_had(&self, first: usize, bytes: usize) -> [usize; 2] {
        let mut sums = [0; 2];
        for &(tenant, len) in &*self.reads.borrow() {
            sums[tenant] += len;
            if sums[first] >= bytes {
                return sums;
            }
        }
        panic!("{sums:?} are all that was read")
    }

    fn all_read(&self) -> usize {
        self.reads.borrow().iter().map(|(_, len)| len).sum()
    }
}

async fn read_all(stream: Rc<TenantStream<End>>, member: Rc<Member>, note: impl Fn(usize)) {
    let (mut buf, mut rest) = (vec![0; 8 << 10], 0);
    loop {
        match stream.try_read(&mut [IoSliceMut::new(&mut buf)]) {
            Ok(None) => stream.readable().await,
            Ok(Some(0)) | Err(_) => return,
            Ok(Some(bytes)) => {
                note(bytes);
                rest += bytes;
                member.count_requests((rest / REQUEST) as u64);
                rest %= REQUEST;
            }
        }
    }
}

/// The tenants `a` and `b`, with these weights.
fn weighted(weights: [u32; 2]) -> Vec<TenantConfig> {
    let names = ["a", "b"].into_iter().zip(weights);
    let each = names.map(|(name, weight)| {
        let mut config = TenantConfig::new(name);
        config.host_nqns = vec![format!("nqn.2026-11.com.example:{name}")];
        config.terms.weight = NonZero::new(weight).unwrap();
        config
    });
    each.collect()
}

fn run(work: impl AsyncFnOnce()) {
    Reactor::new(None).run(work());
}

#[test]
fn tenants_share_by_weight_whatever_their_number_of_connections() {
    for (weights, expected) in [([1, 1], 400_000), ([3, 1], 1_200_000), ([1, 2], 200_000)] {
        run(async || {
            let mut scene = Scene::new(&weighted(weights));
            let _many: Vec<_> = (0..8).map(|_| scene.open(0)).collect();
            let _one = scene.open(1);
            clock::sleep(Nanos::from_secs(1), clock::Stage::Queue).await;
            let [many, one] = scene.read_by_both_when_first_had(1, RECEIVED);
            assert_eq!(one, RECEIVED);
            assert!(many.abs_diff(expected) <= TURN_MAX, "{weights:?}: {many} bytes");
            assert_eq!(scene.all_read(), 9 * RECEIVED, "all is read in the end");
        });
    }
}

#[test]
fn limit_delays_what_is_above_it_and_no_other_tenant() {
    run(async || {
        let mut configs = weighted([1, 1]);
        configs[0].terms.bytes_per_second = NonZero::new(1_000_000);
        let mut scene = Scene::new(&configs);
        let _many: Vec<_> = (0..8).map(|_| scene.open(0)).collect();
        let _one = scene.open(1);
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        let [_, other] = scene.read_by_both_when_first_had(1, RECEIVED);
        assert_eq!(other, RECEIVED, "it did not wait");
        let seconds = Nanos::from_secs(2) - Nanos::from_millis(1);
        clock::sleep(seconds, clock::Stage::Queue).await;
        let limited = scene.all_read() - RECEIVED;
        // The rate of two seconds, the burst of 100 ms and a turn of 512 bytes.
        assert!((2_000_000..=2_100_512).contains(&limited), "{limited} bytes");
        let usage = scene.tenants.usage().swap_remove(0);
        assert_eq!(usage.bytes, limited as u64);
        // Eight connections, one of which is being served.
        assert!(usage.waited_limit >= Nanos::from_secs(13), "{usage:?}");
        assert!(usage.waited_share < Nanos::from_secs(1), "{usage:?}");
    });
}

#[test]
fn limit_of_requests_is_exact_to_a_turn() {
    run(async || {
        let mut configs = weighted([1, 1]);
        configs[0].terms.requests_per_second = NonZero::new(1_000);
        let mut scene = Scene::new(&configs);
        let _streams: Vec<_> = (0..8).map(|_| scene.open(0)).collect();
        clock::sleep(Nanos::from_secs(2), clock::Stage::Queue).await;
        let requests = scene.tenants.usage().swap_remove(0).requests;
        // The rate of two seconds, the burst of 100 ms and a turn of 512 bytes.
        assert!((2_000..=2_108).contains(&requests), "{requests} requests");
        // A limit that grows lets all be read within a second.
        scene.tenants.set(&weighted([1, 1]));
        clock::sleep(Nanos::from_secs(2), clock::Stage::Queue).await;
        assert_eq!(scene.all_read(), 8 * RECEIVED);
    });
}

#[test]
fn connection_that_ends_while_it_waits_leaks_no_turn() {
    run(async || {
        let mut configs = weighted([1, 1]);
        configs[0].terms.requests_per_second = NonZero::new(1);
        let mut scene = Scene::new(&configs);
        let limited: Vec<_> = (0..4).map(|_| scene.open(0)).collect();
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        let read = scene.all_read();
        assert!(read < RECEIVED, "it waits for its limit");
        for stream in &limited {
            stream.shut_down();
        }
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        assert_eq!(scene.readers.get(), 0, "all readers have ended at once");
        assert_eq!(scene.all_read(), read, "and have read nothing more");
        let _other = scene.open(1);
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        assert_eq!(scene.all_read(), read + RECEIVED);
    });
}

#[test]
fn connection_without_a_tenant_needs_no_turn() {
    run(async || {
        let mut configs = weighted([1, 1]);
        configs[0].terms.requests_per_second = NonZero::new(1);
        let scene = Scene::new(&configs);
        let (near, far) = scene.network.pair();
        let member = Member::new(&scene.gate, None);
        let stream = TenantStream::new(Rc::new(near), member.clone());
        far.try_write(&[IoSlice::new(&[0; 100])]).unwrap();
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        let mut buf = [0; 100];
        assert_eq!(stream.try_read(&mut [IoSliceMut::new(&mut buf)]), Ok(Some(100)));
        member.assign(0);
        far.try_write(&[IoSlice::new(&[0; 100])]).unwrap();
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        assert_eq!(stream.try_read(&mut [IoSliceMut::new(&mut buf)]), Ok(None));
    });
}

/// A stream that a reactor tries again and again, and that has something at the fifth try.
#[derive(Default)]
struct Tried(Cell<u32>);

impl Stream for Tried {
    fn try_read(&self, _: &mut [IoSliceMut<'_>]) -> Result<Option<usize>, Broken> {
        unreachable!("the test only waits")
    }

    fn try_write(&self, _: &[IoSlice<'_>]) -> Result<Option<usize>, Broken> {
        unreachable!("the test only waits")
    }

    async fn readable(&self) {
        self.0.set(self.0.get() + 1);
        clock::sleep(Nanos(1), clock::Stage::Queue).await;
    }

    fn may_read(&self) -> bool {
        self.0.get() >= 5
    }

    async fn writable(&self) {}

    fn shut_down(&self) {}
}

#[test]
fn connection_waits_for_requests_before_it_waits_for_a_turn() {
    run(async || {
        let scene = Scene::new(&weighted([1, 1]));
        let (member, tried) = (Member::new(&scene.gate, Some(0)), Rc::<Tried>::default());
        let stream = TenantStream::new(tried.clone(), member.clone());
        let is_granted = Rc::new(Cell::new(false));
        let granted = is_granted.clone();
        clock::spawn(metered(member, async move {
            stream.readable().await;
            assert_eq!(tried.0.get(), 5);
            granted.set(true);
        }));
        clock::sleep(Nanos::from_millis(1), clock::Stage::Queue).await;
        assert!(is_granted.get(), "it gets a turn when there is something");
    });
}
