use crate::ram::place;
use crate::world::{BLOCK, KV, run, run_real};
use spec::{AdminOpcode, Command, Feature, Fuse, Opcode, QueueCounts, Status, StoreOptions};
use std::collections::BTreeSet;

#[test]
fn more_commands_than_entries_go_through_a_queue() {
    for seed in 0..10 {
        run_real(seed, async |world| {
            let driver = world.host(8).await;
            let mut outstanding = BTreeSet::new();
            for number in 0..100_u32 {
                while outstanding.len() >= 7 {
                    let completion = driver.next(1).await;
                    assert!(outstanding.remove(&completion.command_id()));
                    assert_eq!(completion.status(), Status::SUCCESS);
                }
                let value = place(&driver.ram, 0, &number.to_le_bytes());
                let key = number.to_le_bytes();
                let store = Command::store(KV, &key, 4, StoreOptions::NONE);
                outstanding.insert(driver.submit(1, store.with_prp([value, 0])));
            }
            while !outstanding.is_empty() {
                assert!(outstanding.remove(&driver.next(1).await.command_id()));
            }
            let room = driver.ram.allocate(1);
            for number in 0..100_u32 {
                let retrieve = Command::retrieve(KV, &number.to_le_bytes(), 4_096);
                let found = driver.execute(1, retrieve.with_prp([room, 0])).await;
                assert_eq!((found.status(), found.result()), (Status::SUCCESS, 4));
                assert_eq!(driver.ram.get(room, 4), number.to_le_bytes());
            }
        });
    }
}

#[test]
fn the_head_of_the_submission_queue_is_told() {
    run(1, async |world| {
        let driver = world.host(4).await;
        let heads: Vec<u16> = {
            let mut heads = Vec::new();
            for _ in 0..6 {
                heads.push(driver.execute(1, Command::exist(KV, b"k")).await.queue_head());
            }
            heads
        };
        assert_eq!(heads, [1, 2, 3, 0, 1, 2]);
    });
}

#[test]
fn no_commands_are_fetched_for_a_host_that_takes_no_completions() {
    run_real(2, async |world| {
        let driver = world.host(8).await;
        let push = |ids: std::ops::Range<u16>| {
            ids.for_each(|id| driver.push(1, Command::exist(KV, b"k").with_command_id(id)));
        };
        // One entry of a ring stays free: 7 completions fill theirs. Those of the next commands
        // wait, and so those after them are not fetched: the host still can write others there.
        for ids in [0..7, 10..17, 20..27] {
            push(ids);
            driver.ring_tail(1);
            driver.settle().await;
        }
        driver.rewind(1, 7);
        push(30..37);
        let mut ids = BTreeSet::new();
        while ids.len() < 21 {
            let taken = std::iter::from_fn(|| driver.try_next(1)).collect::<Vec<_>>();
            assert!(!taken.is_empty() && taken.len() <= 7, "{ids:?}");
            ids.extend(taken.iter().map(spec::Completion::command_id));
            driver.ring_head(1);
            driver.settle().await;
        }
        assert_eq!(ids, (0..7).chain(10..17).chain(30..37).collect());
    });
}

#[test]
fn as_many_commands_run_as_the_queue_has_entries() {
    run(14, async |world| {
        let driver = world.host(8).await;
        let closed = world.gate.close();
        for ids in [0..7, 7..14] {
            ids.for_each(|id| driver.push(1, Command::exist(KV, b"k").with_command_id(id)));
            driver.ring_tail(1);
            driver.settle().await;
        }
        drop(closed);
        let mut ids = BTreeSet::new();
        for _ in 0..14 {
            ids.insert(driver.next(1).await.command_id());
        }
        assert_eq!(ids, (0..14).collect());
    });
}

#[test]
fn a_head_past_the_end_fails_the_controller_also_when_the_tail_is_before_it() {
    run_real(15, async |world| {
        let driver = world.host(4).await;
        for _ in 0..3 {
            driver.execute(1, Command::exist(KV, b"k")).await;
        }
        driver.submit(1, Command::exist(KV, b"k"));
        driver.submit(1, Command::exist(KV, b"k"));
        driver.settle().await;
        driver.write(0x100c, 4);
        assert!(driver.status().is_fatal());
    });
}

#[test]
fn queues_that_cannot_be_have_the_specified_status() {
    run(3, async |world| {
        let driver = world.host(16).await;
        let page = driver.ram.allocate(16);
        let entries_max = 1_024;
        let cases = [
            (Command::create_io_cq(1, 16, page, Some(1)), Status::INVALID_QUEUE_ID),
            (Command::create_io_cq(0, 16, page, Some(1)), Status::INVALID_QUEUE_ID),
            (Command::create_io_cq(65, 16, page, Some(1)), Status::INVALID_QUEUE_ID),
            (Command::create_io_cq(2, 1, page, Some(1)), Status::INVALID_QUEUE_SIZE),
            (Command::create_io_cq(2, entries_max + 1, page, None), Status::INVALID_QUEUE_SIZE),
            (Command::create_io_cq(2, 16, page, Some(65)), Status::INVALID_INTERRUPT_VECTOR),
            (Command::create_io_cq(2, 16, page + 64, Some(1)), Status::PRP_OFFSET_INVALID),
            (Command::create_io_sq(1, 16, page, 1), Status::INVALID_QUEUE_ID),
            (Command::create_io_sq(2, 16, page, 2), Status::INVALID_COMPLETION_QUEUE),
            (Command::create_io_sq(2, 16, page, 0), Status::INVALID_COMPLETION_QUEUE),
            (Command::create_io_sq(2, 1, page, 1), Status::INVALID_QUEUE_SIZE),
            (Command::create_io_sq(2, 16, page + 1, 1), Status::PRP_OFFSET_INVALID),
            (Command::delete_io_cq(1), Status::INVALID_QUEUE_DELETION),
            (Command::delete_io_cq(0), Status::INVALID_QUEUE_ID),
            (Command::delete_io_cq(9), Status::INVALID_QUEUE_ID),
            (Command::delete_io_sq(0), Status::INVALID_QUEUE_ID),
            (Command::delete_io_sq(9), Status::INVALID_QUEUE_ID),
            (Command::doorbell_buffer_config(page, page + 8), Status::PRP_OFFSET_INVALID),
            (Command::doorbell_buffer_config(page + 8, page), Status::PRP_OFFSET_INVALID),
        ];
        for (command, status) in cases {
            let completion = driver.admin(command).await;
            assert_eq!(completion.status(), status, "{command:?}");
            assert!(completion.do_not_retry());
        }
        // PC is bit 0 of CDW11, which is byte 44.
        let scattered = |command: Command| {
            let mut bytes: [u8; 64] = zerocopy::transmute!(command);
            bytes[44] &= !1;
            let command: Command = zerocopy::transmute!(bytes);
            command
        };
        for command in
            [Command::create_io_cq(2, 16, page, Some(1)), Command::create_io_sq(2, 16, page, 1)]
        {
            let completion = driver.admin(scattered(command)).await;
            assert_eq!(completion.status(), Status::INVALID_FIELD);
        }
        // Those of the largest size are there.
        driver.create_queue(2, entries_max).await;
        driver.execute(2, Command::exist(KV, b"k")).await;
        assert!(driver.status().is_ready());
    });
}

#[test]
fn several_submission_queues_share_a_completion_queue() {
    run_real(4, async |world| {
        let driver = world.host(64).await;
        let second = driver.pair(2, 16);
        let create = Command::create_io_sq(2, 16, second.submission, 1);
        assert_eq!(driver.admin(create).await.status(), Status::SUCCESS);
        driver.push(2, Command::exist(KV, b"k").with_command_id(77));
        driver.ring_tail(2);
        driver.settle().await;
        let bytes = driver.ram.get(driver.queue(1).completion, 16);
        assert_eq!(&bytes[10..14], [2, 0, 77, 0], "SQID 2, CID 77");
        assert_eq!(
            driver.admin(Command::delete_io_cq(1)).await.status(),
            Status::INVALID_QUEUE_DELETION
        );
    });
}

#[test]
fn a_deleted_queue_answers_no_more() {
    run(5, async |world| {
        let driver = world.host(16).await;
        let closed = world.gate.close();
        let room = driver.ram.allocate(1);
        driver.submit(1, Command::read(BLOCK, 0, 1).with_prp([room, 0]));
        driver.settle().await;
        assert_eq!(driver.admin(Command::delete_io_sq(1)).await.status(), Status::SUCCESS);
        drop(closed);
        driver.settle().await;
        assert!(driver.try_next(1).is_none());
        assert_eq!(driver.admin(Command::delete_io_cq(1)).await.status(), Status::SUCCESS);
        // Its doorbells are those of no queue now, and do nothing.
        driver.write(0x1008, 5);
        driver.write(0x100c, 5);
        driver.create_queue(1, 16).await;
        driver.execute(1, Command::exist(KV, b"k")).await;
    });
}

#[test]
fn a_doorbell_out_of_range_fails_the_controller_of_its_host_only() {
    for (offset, value) in [
        (0x1000, 32),
        (0x1000, u32::MAX),
        (0x1004, 1),
        (0x1008, 16),
        (0x1008, 0x1_0000),
        (0x100c, 1),
        (0x100c, u32::MAX),
    ] {
        run(6, async |world| {
            let (hostile, other) = (world.host(16).await, world.host(16).await);
            // The completions of the admin queue are all taken: head 1 is not ahead of the tail.
            let value = if offset == 0x1004 { value + 20 } else { value };
            hostile.write(offset, value);
            assert!(hostile.status().is_fatal(), "{offset:x} {value:x}");
            let writes = hostile.ram.writes();
            hostile.submit(0, Command::keep_alive());
            hostile.settle().await;
            assert_eq!(hostile.ram.writes(), writes, "it executes nothing");
            other.execute(1, Command::exist(KV, b"k")).await;
            hostile.configure(spec::Configuration(0));
            hostile.enable();
        });
    }
}

#[test]
fn memory_that_goes_while_queues_are_there_fails_the_controller() {
    for which in [0, 1] {
        run(7, async |world| {
            let driver = world.host(16).await;
            let queue = driver.queue(1);
            driver.push(1, Command::exist(KV, b"k"));
            driver.ram.unmap([queue.submission, queue.completion][which], 1);
            driver.write(0x1008, 1);
            driver.settle().await;
            assert!(driver.status().is_fatal());
            driver.configure(spec::Configuration(0));
            driver.enable();
            driver.create_queue(1, 16).await;
            driver.execute(1, Command::exist(KV, b"k")).await;
        });
    }
}

#[test]
fn commands_that_a_function_does_not_pass_on_have_the_specified_status() {
    run(8, async |world| {
        let driver = world.host(16).await;
        let fabrics = Command::property_get(spec::Property::CAP);
        assert_eq!(driver.admin(fabrics).await.status(), Status::INVALID_OPCODE);
        assert_eq!(driver.execute(1, fabrics).await.status(), Status::INVALID_OPCODE);
        let identify = Command::identify(spec::Cns::CONTROLLER, 0)
            .with_sgl(spec::SglDescriptor::new(0, driver.ram.allocate(1), 4_096));
        assert_eq!(driver.admin(identify).await.status(), Status::INVALID_FIELD, "no SGL");
        // Two commands of one id at a time.
        let closed = world.gate.close();
        driver.push(1, Command::exist(KV, b"k").with_command_id(9));
        driver.push(1, Command::exist(KV, b"k").with_command_id(9));
        driver.ring_tail(1);
        driver.settle().await;
        let conflict = driver.try_next(1).expect("the second one is refused");
        assert_eq!(conflict.status(), Status::COMMAND_ID_CONFLICT);
        drop(closed);
        driver.settle().await;
        assert_eq!(driver.next(1).await.status(), Status::KEY_DOES_NOT_EXIST);
    });
}

#[test]
fn an_abort_may_come_too_late_or_in_time() {
    run(9, async |world| {
        let driver = world.host(16).await;
        assert_eq!(driver.admin(Command::abort(1, 5)).await.result(), 1, "not aborted");
        let closed = world.gate.close();
        let id = driver.submit(1, Command::exist(KV, b"k"));
        driver.settle().await;
        assert_eq!(driver.admin(Command::abort(1, id)).await.result(), 0);
        assert_eq!(driver.next(1).await.status(), Status::ABORT_REQUESTED);
        drop(closed);
        driver.settle().await;
        assert!(driver.try_next(1).is_none(), "it is answered once");
    });
}

#[test]
fn both_commands_of_a_fused_operation_are_executed() {
    run(10, async |world| {
        let driver = world.host(16).await;
        let [old, new] = [[0; 4_096], [5; 4_096]].map(|bytes| place(&driver.ram, 0, &bytes));
        let compare = Command::compare(BLOCK, 1, 1).with_fuse(Fuse::First).with_prp([old, 0]);
        let write = Command::write(BLOCK, 1, 1).with_fuse(Fuse::Second).with_prp([new, 0]);
        for expected in [Status::SUCCESS, Status::COMPARE_FAILURE] {
            driver.submit(1, compare);
            driver.settle().await;
            assert!(driver.try_next(1).is_none(), "it waits for the second command");
            driver.submit(1, write);
            let statuses = [driver.next(1).await.status(), driver.next(1).await.status()];
            assert!(statuses.contains(&expected), "{statuses:?}");
        }
        // The first one alone is aborted where it waits.
        let id = driver.submit(1, compare);
        driver.settle().await;
        assert_eq!(driver.admin(Command::abort(1, id)).await.result(), 0);
        assert_eq!(driver.next(1).await.status(), Status::ABORT_REQUESTED);
    });
}

#[test]
fn a_host_creates_no_more_queues_than_it_asked_for() {
    run(11, async |world| {
        let driver = world.attach();
        driver.enable();
        let counts = QueueCounts { submission: 1, completion: 1 };
        let set = Command::set_features(Feature::NUMBER_OF_QUEUES, 0, counts.into());
        assert_eq!(driver.admin(set).await.result(), 0x0001_0001);
        let page = driver.ram.allocate(1);
        let create = Command::create_io_cq(3, 16, page, Some(3));
        assert_eq!(driver.admin(create).await.status(), Status::INVALID_QUEUE_ID);
        driver.create_queue(2, 16).await;
    });
}

#[test]
fn no_opcode_does_harm() {
    run(12, async |world| {
        let driver = world.host(16).await;
        let room = driver.ram.allocate(4);
        for opcode in 0..=u8::MAX {
            // One is never answered, the other moves the doorbells.
            let left_out = [AdminOpcode::ASYNC_EVENT_REQUEST, AdminOpcode::DOORBELL_BUFFER_CONFIG];
            let is_left_out = left_out.contains(&AdminOpcode(opcode));
            for queue in [0, 1] {
                if is_left_out && queue == 0 {
                    continue;
                }
                let mut bytes = [0; 64];
                bytes[0] = opcode;
                bytes[4] = 1;
                bytes[24..32].copy_from_slice(&room.to_le_bytes());
                let command: Command = zerocopy::transmute!(bytes);
                assert_eq!(command.opcode(), Opcode(opcode));
                driver.execute(queue, command).await;
            }
            assert!(!driver.status().is_fatal(), "{opcode:x}");
        }
    });
}

#[test]
fn a_completion_queue_raises_its_own_vector_or_none() {
    run_real(13, async |world| {
        let driver = world.host(16).await;
        driver.create_queue(5, 16).await;
        let counts = || [0, 1, 5].map(|vector| driver.raised.count(vector));
        let [admin, first, fifth] = counts();
        driver.execute(5, Command::exist(KV, b"k")).await;
        assert_eq!(counts(), [admin, first, fifth + 1]);
        let silent = driver.pair(6, 16);
        let create = Command::create_io_cq(6, 16, silent.completion, None);
        assert_eq!(driver.admin(create).await.status(), Status::SUCCESS);
        let create = Command::create_io_sq(6, 16, silent.submission, 6);
        assert_eq!(driver.admin(create).await.status(), Status::SUCCESS);
        let before = driver.raised.total();
        driver.submit(6, Command::exist(KV, b"k"));
        driver.settle().await;
        assert!(driver.try_next(6).is_some());
        assert_eq!(driver.raised.total(), before);
    });
}

#[test]
fn a_first_command_does_not_wait_for_a_second_one_that_is_refused() {
    run(16, async |world| {
        let driver = world.host(16).await;
        let page = driver.ram.allocate(1);
        let compare = Command::compare(BLOCK, 1, 1).with_fuse(Fuse::First).with_prp([page, 0]);
        let write = Command::write(BLOCK, 1, 1).with_fuse(Fuse::Second);
        for (second, first_status) in [
            (write.with_prp([page + 2, 0]), Status::FAILED_FUSED_COMMAND),
            (write.with_prp([0x7000_0000, 0]), Status::FAILED_FUSED_COMMAND),
            (Command::read(BLOCK, 0, 1).with_prp([page + 2, 0]), Status::MISSING_FUSED_COMMAND),
        ] {
            driver.submit(1, compare);
            driver.submit(1, second);
            assert_eq!(driver.next(1).await.status(), first_status);
            assert!(!driver.next(1).await.status().is_success());
        }
        // The next second command is of no first one.
        driver.submit(1, write.with_prp([page, 0]));
        assert_eq!(driver.next(1).await.status(), Status::MISSING_FUSED_COMMAND);
    });
}

#[test]
fn completions_of_a_deleted_queue_are_not_posted_later() {
    run_real(17, async |world| {
        let driver = world.host(4).await;
        for ids in [0..3, 10..13] {
            ids.for_each(|id| driver.push(1, Command::exist(KV, b"k").with_command_id(id)));
            driver.ring_tail(1);
            driver.settle().await;
        }
        assert_eq!(driver.admin(Command::delete_io_sq(1)).await.status(), Status::SUCCESS);
        assert_eq!(std::iter::from_fn(|| driver.try_next(1)).count(), 3);
        driver.ring_head(1);
        driver.settle().await;
        assert!(driver.try_next(1).is_none());
    });
}
