//! Our own host, the crate `client`: its PDUs are of the codec.

use crate::hosts::attach::settle;
use crate::hosts::passthrough::value;
use crate::hosts::pdu;
use crate::hosts::world::{NQN, NSID, World};
use base::{Buf, BufMut, Key};
use client::{Association, Host, Pairs, Reads, Settings};
use nvme_tcp::pdu::Digests;
use spec::StoreOptions;

/// Connects two queues, and moves values of all kinds.
pub(crate) async fn session(world: &World, digests: pdu::Digests) {
    let digests = Digests { header: digests.header, data: digests.data };
    let settings = Settings { digests, ..Settings::new(Host::of_uuid([7; 16]), NQN) };
    let association = Association::connect(settings, world.connect().await).await;
    let association = association.expect("the target takes it");
    association.kv_namespace(NSID).await.expect("it is of pairs");
    let streams = vec![world.connect().await, world.connect().await];
    let queue = association.io_queue(streams, Reads::Pairs).await.expect("there are queues");
    let pairs = Pairs::new(queue.clone(), NSID);
    for (seed, len) in [(1, 0), (2, 100), (3, 8_192), (4, 8_193), (5, 300_000), (6, 2 << 20)] {
        let key = Key::new(format!("key {seed}").as_bytes()).expect("a key of a few bytes");
        let value = value(len, seed);
        let mut buf = BufMut::unpooled(len);
        buf.as_mut().copy_from_slice(&value);
        pairs.store(&key, buf.freeze(), StoreOptions::NONE).await.expect("it is stored");
        let back: Buf = pairs.retrieve(&key).await.expect("it is there");
        assert!(back.bytes().unwrap_or_default() == value, "a value of {len} bytes");
        assert_eq!(pairs.exist(&key).await, Ok(true));
        pairs.delete(&key).await.expect("it is there");
        assert_eq!(pairs.exist(&key).await, Ok(false));
    }
    queue.close();
    association.shut_down().await.expect("the controller shuts down");
    drop((pairs, queue));
    settle(world).await;
}
