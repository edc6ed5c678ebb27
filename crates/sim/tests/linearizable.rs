//! Seeded runs of whole devices: every key's history has an order that explains it.

use base::{Buf, Key};
use controller::Submission;
use node::{Device, Profile};
use reactor::Reactor;
use sim::{run, sweep};
use spec::{Command, Status, StoreOptions};

#[test]
fn every_history_is_linearizable() {
    let sum = sweep("linearizable", 1_000, run);
    // A single seed may be one that does not.
    let cleans = sum.victims > sum.reopenings || sum.reopenings < 20;
    assert!(cleans, "hardly anything was cleaned: {sum}");
}

#[test]
fn of_64_stores_that_must_create_a_key_one_wins() {
    Reactor::new(None).run(async {
        let profile = Profile::load("moke").unwrap();
        let cells = Device::manufacture(&profile, 0);
        let device = Device::format(&profile, cells, 0).await.unwrap();
        let queue = device.controller().queue_pair();
        let key = Key::new(b"key").unwrap();
        let value = |tag| Buf::phantom(4_096, tag);
        for tag in 0..64 {
            let options = StoreOptions::MUST_NOT_EXIST;
            let command = Command::store(Device::NAMESPACE, key.as_bytes(), 4_096, options);
            queue.submit(Submission::with_data(command, &key, value(tag)));
        }
        let mut winners = Vec::new();
        for _ in 0..64 {
            let completion = queue.next().await;
            match completion.status {
                Status::SUCCESS => winners.push(completion.id),
                status => assert_eq!(status, Status::KEY_EXISTS),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        let retrieve = Command::retrieve(Device::NAMESPACE, key.as_bytes(), 4_096);
        queue.submit(Submission::new(retrieve, &key));
        assert_eq!(queue.next().await.data.checksum(), value(winners[0]).checksum());
    });
}
