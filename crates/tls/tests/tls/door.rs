//! The door for clients of the Redis protocol, over TLS.

use crate::authority::Authority;
use crate::line::{LIMIT, client, network};
use base::{Buf, BufPool, Nanos};
use clock::Group;
use engine::{Ack, Config, HashIndex, IndexConfig, KeySpaceId, Store};
use media::{Memory, Shape, Victims};
use reactor::Reactor;
use resp::{Door, Users, serve};
use resp_client::{Connection, Reply, Settings};
use std::rc::Rc;
use std::sync::Arc;
use tls::TlsStream;

const SHAPE: Shape = Shape {
    page_bytes: 16 << 10,
    spare_bytes: 1 << 10,
    pages_per_extent: 256,
    extents: 24,
    parallelism: 4,
    frames: None,
};

async fn door() -> Arc<Door> {
    let config = Config {
        capacity_bytes: 32 << 20,
        ack: Ack::Buffer { bytes: 8 << 20 },
        victims: Victims::Greedy,
        index: |_, lanes| Box::new(HashIndex::new(lanes)),
        index_config: IndexConfig::default(),
        checkpoint_bytes: 0,
        headers_bytes: 0,
        cache_bytes: 0,
        saves_buffer: true,
        reactors: 1,
        group: Group::new(),
        seed: 1,
    };
    let store = Store::format(Arc::new(Memory::new(SHAPE)), config);
    store.create_key_space(KeySpaceId(1)).await.expect("there is room");
    Arc::new(Door::new(store, Users::default(), resp::Settings::default(), BufPool::new(1 << 22)))
}

#[test]
fn values_of_2_mib_are_stored_and_read_over_tls() {
    let authority = Authority::new();
    let (server, trusting) = (authority.server(true), authority.client(Some(&authority)));
    Reactor::new(None).run(async {
        let door = door().await;
        let (near, far) = network(1, 1 << 16, 1 << 17).pair();
        let far = Rc::new(TlsStream::of_server(far, &server));
        let served = door.clone();
        clock::spawn(async move {
            far.handshake(LIMIT).await.expect("it shows its certificate");
            serve(far, served).await;
        });
        let near = client(near, &trusting);
        near.handshake(LIMIT).await.expect("they trust each other");
        let near = Rc::into_inner(near).expect("this is the only handle");
        let settings =
            Settings { user: None, password: None, database: 0, timeout: Nanos::from_secs(30) };
        let connection = Connection::open(near, &settings).await.expect("it answers");
        for (len, seed) in [(2_usize << 20, 3), (1, 5), (16 << 10, 7), (511, 9), (1 << 20, 11)] {
            let value: Vec<u8> =
                (0..len).map(|at| u8::try_from(at * seed % 251).expect("a byte")).collect();
            let value = Buf::copy_from(&value);
            let set = connection.ask(&["SET".into(), "key".into(), (&value).into()]).await;
            assert!(matches!(set, Ok(Reply::Status(_))), "{len}: {set:?}");
            // Several at a time, so that answers wait for each other.
            let get = ["GET".into(), "key".into()];
            let got = connection.ask_all([&get[..]; 9]).await.expect("they are answered");
            for reply in got {
                assert!(reply.bytes() == value.bytes(), "{len}");
            }
        }
    });
}
