use crate::world::{KV, run_real};
use pcie::DoorbellPage;
use spec::{Command, Configuration, Shutdown, Status};

#[test]
fn doorbells_in_memory_are_found_whether_the_function_waits_or_works() {
    for seed in 0..20 {
        run_real(seed, async |world| {
            let driver = world.host(8).await;
            driver.use_shadow().await;
            driver.create_queue(2, 8).await;
            let before = driver.doorbells.get();
            for number in 0..50 {
                let queue = 1 + number % 2;
                let found = driver.execute(queue, Command::exist(KV, b"k")).await;
                assert_eq!(found.status(), Status::KEY_DOES_NOT_EXIST);
            }
            let rung = driver.doorbells.get() - before;
            assert!(
                (50..=60).contains(&rung),
                "{rung}: one for each command of a waiting function"
            );
        });
    }
}

#[test]
fn a_function_with_work_needs_no_real_doorbells() {
    run_real(1, async |world| {
        let driver = world.host(64).await;
        driver.use_shadow().await;
        driver.execute(1, Command::exist(KV, b"k")).await;
        driver.function.set_polled();
        driver.settle().await;
        let before = driver.doorbells.get();
        for _ in 0..40 {
            // As a reactor does that is awake.
            driver.push(1, Command::exist(KV, b"k").with_command_id(3));
            driver.ring_tail(1);
            assert!(driver.function.look());
            assert_eq!(driver.next(1).await.status(), Status::KEY_DOES_NOT_EXIST);
            assert!(!driver.function.look());
        }
        assert!(driver.doorbells.get() - before <= 1, "the last event index may ask for one");
        // Before it sleeps it asks for one.
        driver.function.arm();
        assert!(!driver.function.look());
        let before = driver.doorbells.get();
        driver.execute(1, Command::exist(KV, b"k")).await;
        assert_eq!(driver.doorbells.get() - before, 1);
    });
}

#[test]
fn the_shadow_is_the_truth_whatever_a_real_doorbell_says() {
    run_real(2, async |world| {
        let driver = world.host(8).await;
        driver.use_shadow().await;
        // Real doorbells of I/O queues, with values that shadows do not have.
        driver.write(0x1008, 5);
        driver.write(0x100c, 7);
        driver.write(0x1008, u32::MAX);
        driver.settle().await;
        assert!(driver.status().is_ready());
        assert!(driver.try_next(1).is_none());
        driver.execute(1, Command::exist(KV, b"k")).await;
        // The admin queue has its real doorbells still.
        driver.admin(Command::keep_alive()).await;
    });
}

#[test]
fn a_shadow_out_of_range_fails_the_controller() {
    run_real(3, async |world| {
        let driver = world.host(8).await;
        let (values, indexes) = (driver.ram.allocate(1), driver.ram.allocate(1));
        driver.ram.put(values + 8, &8_u32.to_le_bytes());
        driver.admin(Command::doorbell_buffer_config(values, indexes)).await;
        driver.write(0x1008, 0);
        driver.settle().await;
        assert!(driver.status().is_fatal());
    });
}

#[test]
fn completions_that_wait_go_on_when_the_shadow_of_the_head_moves() {
    run_real(4, async |world| {
        let driver = world.host(4).await;
        driver.use_shadow().await;
        for _ in 0..3 {
            driver.submit(1, Command::exist(KV, b"k"));
        }
        driver.settle().await;
        driver.submit(1, Command::exist(KV, b"k"));
        driver.settle().await;
        let taken = std::iter::from_fn(|| driver.try_next(1)).count();
        assert_eq!(taken, 3);
        driver.ring_head(1);
        driver.settle().await;
        assert!(driver.try_next(1).is_some());
    });
}

#[test]
fn an_awake_function_interrupts_for_completions_that_waited() {
    run_real(5, async |world| {
        let driver = world.host(4).await;
        driver.use_shadow().await;
        driver.function.set_polled();
        for _ in 0..3 {
            driver.submit(1, Command::exist(KV, b"k"));
        }
        driver.function.look();
        driver.settle().await;
        driver.submit(1, Command::exist(KV, b"k"));
        driver.function.look();
        driver.settle().await;
        assert_eq!(std::iter::from_fn(|| driver.try_next(1)).count(), 3);
        let before = driver.raised.count(1);
        driver.ring_head(1);
        assert!(driver.function.look(), "there is an interrupt to raise");
        driver.settle().await;
        assert_eq!(driver.raised.count(1), before + 1);
        assert!(driver.try_next(1).is_some());
    });
}

#[test]
fn a_controller_that_was_shut_down_leaves_the_shadow_alone() {
    run_real(6, async |world| {
        let driver = world.host(8).await;
        driver.use_shadow().await;
        driver.execute(1, Command::exist(KV, b"k")).await;
        driver.settle().await;
        driver.configure(Configuration::ENABLE_ALL_COMMAND_SETS.with_shutdown(Shutdown::Normal));
        let writes = driver.ram.writes();
        driver.write(0x1008, 0);
        driver.settle().await;
        driver.function.arm();
        assert!(!driver.function.look());
        assert_eq!(driver.ram.writes(), writes);
    });
}

#[test]
fn a_shadow_without_memory_has_no_news() {
    run_real(7, async |world| {
        let driver = world.host(8).await;
        let (values, indexes) = (driver.ram.allocate(1), driver.ram.allocate(1));
        driver.admin(Command::doorbell_buffer_config(values, indexes)).await;
        driver.ram.unmap(values, 1);
        driver.ram.unmap(indexes, 1);
        driver.write(0x1008, 0);
        driver.settle().await;
        assert!(driver.status().is_ready());
        driver.ram.map(values, 1);
        driver.ram.map(indexes, 1);
        driver.push(1, Command::exist(KV, b"k").with_command_id(1));
        driver.ram.put(values + 8, &1_u32.to_le_bytes());
        driver.write(0x1008, 1);
        driver.settle().await;
        assert!(driver.try_next(1).is_some());
    });
}

#[test]
fn a_busy_queue_hides_no_other_one() {
    for is_mapped in [false, true] {
        run_real(8, async |world| {
            let driver = if is_mapped { world.attach_mapped() } else { world.attach() };
            driver.enable();
            for queue in 1..=40 {
                driver.create_queue(queue, 64).await;
            }
            let values = driver.ram.allocate(1);
            if !is_mapped {
                let config = Command::doorbell_buffer_config(values, driver.ram.allocate(1));
                assert_eq!(driver.admin(config).await.status(), Status::SUCCESS);
            }
            driver.function.set_polled();
            // Writes a doorbell, and no real one.
            let write = |offset: u64, value: u32| match &driver.mapped {
                Some(page) => page.store(offset, value),
                None => driver.ram.put(values + offset, &value.to_le_bytes()),
            };
            let mut busy = 0;
            for other in 2..=40 {
                driver.push(other, Command::exist(KV, b"k").with_command_id(1));
                write(u64::from(other) * 8, 1);
                let mut rounds = 0;
                while driver.try_next(other).is_none() {
                    assert!(rounds < 5, "queue {other} is not looked at");
                    rounds += 1;
                    driver.push(1, Command::exist(KV, b"k").with_command_id(1));
                    busy = (busy + 1) % 64;
                    write(8, busy);
                    assert!(driver.function.look(), "the busy queue has more");
                    driver.settle().await;
                    assert!(driver.try_next(1).is_some());
                    write(12, busy);
                }
            }
        });
    }
}

#[test]
fn a_function_that_sleeps_is_told_of_each_queue_that_was_busy() {
    run_real(9, async |world| {
        let driver = world.host(64).await;
        for queue in 2..=40 {
            driver.create_queue(queue, 64).await;
        }
        driver.use_shadow().await;
        driver.function.set_polled();
        for round in 0..6 {
            for queue in 1..=40 {
                for _ in 0..(queue + round) % 3 {
                    driver.submit(queue, Command::exist(KV, b"k"));
                }
                driver.function.look();
                driver.settle().await;
            }
            driver.function.arm();
            assert!(!driver.function.look());
            for queue in 1..=40 {
                let before = driver.doorbells.get();
                driver.submit(queue, Command::exist(KV, b"k"));
                assert_eq!(driver.doorbells.get(), before + 1, "queue {queue} rings");
                driver.settle().await;
                while driver.try_next(queue).is_some() {}
                driver.ring_head(queue);
                driver.function.arm();
                assert!(!driver.function.look());
            }
        }
    });
}

#[test]
fn a_queue_without_room_for_completions_hides_no_other_one() {
    run_real(9, async |world| {
        let driver = world.host(64).await;
        driver.create_queue(2, 4).await;
        driver.use_shadow().await;
        driver.function.set_polled();
        let exist = || Command::exist(KV, b"k");
        // The event index of queue 1 is not set again.
        driver.submit(1, exist());
        assert!(driver.function.look());
        driver.settle().await;
        // The host consumes nothing of queue 2, so the fourth completion waits for room.
        for commands in [3, 1] {
            (0..commands).for_each(|_| _ = driver.submit(2, exist()));
            assert!(driver.function.look());
            driver.settle().await;
        }
        driver.submit(2, exist());
        assert!(!driver.function.look(), "the commands of queue 2 have no room");
        let before = driver.doorbells.get();
        driver.submit(2, exist());
        driver.submit(1, exist());
        assert_eq!(driver.doorbells.get(), before, "the function is awake");
        driver.function.arm();
        assert!(driver.function.look(), "queue 1 has a command");
    });
}
