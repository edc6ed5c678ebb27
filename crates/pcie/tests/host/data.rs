use crate::ram::{PAGE, PAGE_BYTES, place};
use crate::world::{BLOCK, KV, World, run, run_real};
use pcie::PciFunction;
use pcie::host::Driver;
use spec::{Command, ErrorEntry, LogPage, SglDescriptor, Status, StoreOptions};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes that differ from page to page and within pages.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 4_096 * 13).to_le_bytes()[0]).collect()
}

/// Pages in an order of their own, as a host's memory is after a while.
fn scattered(driver: &Driver, pages: usize) -> Vec<u64> {
    let mut pages: Vec<u64> = (0..pages).map(|_| driver.ram.allocate(1)).collect();
    let middle = pages.len() / 2;
    pages.rotate_left(middle);
    pages
}

/// Bytes from `offset` of a page to its end.
fn in_page(offset: u64) -> usize {
    usize::try_from(PAGE - offset).expect("it is in a page")
}

fn short(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("it is below 4 GiB")
}

/// PRP entries of `len` bytes that begin at `offset` of the first page; a list begins at `list_at`
/// of its page.
fn prp(driver: &Driver, pages: &[u64], offset: u64, list_at: u64) -> [u64; 2] {
    match pages {
        [one] => [one + offset, 0],
        [one, two] => [one + offset, *two],
        [one, rest @ ..] => [one + offset, list(driver, rest, list_at)],
        [] => [0, 0],
    }
}

/// Writes a PRP list, chained at the ends of its pages.
fn list(driver: &Driver, pages: &[u64], list_at: u64) -> u64 {
    let address = driver.ram.allocate(1) + list_at;
    let room = in_page(list_at) / 8;
    let entries: Vec<u64> = if pages.len() <= room {
        pages.to_vec()
    } else {
        let (here, later) = pages.split_at(room - 1);
        [here, &[list(driver, later, 0)]].concat()
    };
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    driver.ram.put(address, &bytes);
    address
}

fn fill(driver: &Driver, pages: &[u64], offset: u64, bytes: &[u8]) {
    let first = in_page(offset).min(bytes.len());
    driver.ram.put(pages[0] + offset, &bytes[..first]);
    for (page, part) in pages[1..].iter().zip(bytes[first..].chunks(PAGE_BYTES)) {
        driver.ram.put(*page, part);
    }
}

fn read_back(driver: &Driver, pages: &[u64], offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = driver.ram.get(pages[0] + offset, in_page(offset).min(len));
    for page in &pages[1..] {
        bytes.extend(driver.ram.get(*page, (len - bytes.len()).min(PAGE_BYTES)));
    }
    bytes
}

#[test]
fn values_of_all_lengths_come_back_through_prp_entries() {
    run_real(1, async |world| {
        let driver = world.host(16).await;
        let lists = [0, 8, PAGE - 16, PAGE - 8];
        for (number, (len, offset)) in [
            (1, 0),
            (1, 4_092),
            (4_096, 0),
            (4_096, 4),
            (8_192, 0),
            (8_193, 0),
            (12_288, 2_048),
            (20_001, 516),
            (2 << 20, 0),
            ((2 << 20) - 5, 1_024),
        ]
        .into_iter()
        .enumerate()
        {
            let pages = (PAGE_BYTES - in_page(offset) + len).div_ceil(PAGE_BYTES);
            let (value, key) = (content(len), number.to_le_bytes());
            let from = scattered(&driver, pages);
            fill(&driver, &from, offset, &value);
            let store = Command::store(KV, &key, short(len), StoreOptions::NONE);
            let store = store.with_prp(prp(&driver, &from, offset, lists[number % 4]));
            assert_eq!(driver.execute(1, store).await.status(), Status::SUCCESS, "{len}");
            let to = scattered(&driver, pages);
            let retrieve = Command::retrieve(KV, &key, short(len));
            let retrieve = retrieve.with_prp(prp(&driver, &to, offset, lists[(number + 1) % 4]));
            let found = driver.execute(1, retrieve).await;
            assert_eq!((found.status(), found.result()), (Status::SUCCESS, len as u64));
            assert!(read_back(&driver, &to, offset, len) == value, "{len} at {offset}");
        }
    });
}

#[test]
fn a_value_shorter_than_its_buffer_leaves_the_rest() {
    run_real(2, async |world| {
        let driver = world.host(16).await;
        let value = place(&driver.ram, 0, b"short");
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE).with_prp([value, 0]);
        driver.execute(1, store).await;
        let room = place(&driver.ram, 0, &[9; 4_096]);
        let retrieve = Command::retrieve(KV, b"key", 4_096).with_prp([room, 0]);
        assert_eq!(driver.execute(1, retrieve).await.result(), 5);
        assert_eq!(driver.ram.get(room, 7), b"short\t\t");
    });
}

#[test]
fn prp_entries_that_cannot_be_have_the_specified_status() {
    run_real(3, async |world| {
        let driver = world.host(16).await;
        let pages = scattered(&driver, 4);
        let list = list(&driver, &pages[1..], 0);
        let crooked = place(&driver.ram, 0, &[(pages[1] + 4).to_le_bytes(), [0; 8]].concat());
        // A list that points to itself from the last entry of its page for ever.
        let circle = driver.ram.allocate(1) + PAGE - 8;
        driver.ram.put(circle, &circle.to_le_bytes());
        let cases = [
            (1, [pages[0] + 2, 0], Status::PRP_OFFSET_INVALID),
            (2, [pages[0], pages[1] + 8], Status::PRP_OFFSET_INVALID),
            (3, [pages[0], list + 4], Status::PRP_OFFSET_INVALID),
            (3, [pages[0], crooked], Status::PRP_OFFSET_INVALID),
            (4, [pages[0], circle], Status::PRP_OFFSET_INVALID),
            (1, [0x7000_0000, 0], Status::DATA_TRANSFER_ERROR),
            (2, [pages[0], 0x7000_0000], Status::DATA_TRANSFER_ERROR),
            (3, [pages[0], 0x7000_0000], Status::DATA_TRANSFER_ERROR),
            (1, [!0xfff, 0], Status::DATA_TRANSFER_ERROR),
        ];
        for (blocks, entries, status) in cases {
            for command in [Command::write(BLOCK, 0, blocks), Command::read(BLOCK, 0, blocks)] {
                let found = driver.execute(1, command.with_prp(entries)).await;
                assert_eq!(found.status(), status, "{blocks} {entries:x?}");
            }
        }
        assert!(driver.status().is_ready());
    });
}

#[test]
fn data_at_sgls_of_all_shapes_comes_back() {
    run_real(4, async |world| {
        let driver = world.host(16).await;
        let value = content(10_000);
        // Parts of any length and alignment.
        let parts: Vec<SglDescriptor> = [1, 4_095, 3, 5_901]
            .iter()
            .scan(0, |at, &len| {
                let part = &value[*at..*at + len];
                *at += len;
                let address = place(&driver.ram, *at as u64 % 100, part);
                Some(SglDescriptor::new(SglDescriptor::DATA_BLOCK, address, short(len)))
            })
            .collect();
        let whole = place(&driver.ram, 1, &value);
        let block = SglDescriptor::new(SglDescriptor::DATA_BLOCK, whole, 10_000);
        let last = segment(&driver, SglDescriptor::LAST_SEGMENT, &parts);
        let later = segment(&driver, SglDescriptor::LAST_SEGMENT, &parts[2..]);
        let chain = [&parts[..2], &[later]].concat();
        let chained = segment(&driver, SglDescriptor::SEGMENT, &chain);
        for (key, sgl) in [(b"1", block), (b"2", last), (b"3", chained)] {
            let store = Command::store(KV, key, 10_000, StoreOptions::NONE);
            assert_eq!(driver.execute(1, store.with_sgl(sgl)).await.status(), Status::SUCCESS);
            let room = driver.ram.allocate(3);
            let retrieve = Command::retrieve(KV, key, 10_000);
            let to = SglDescriptor::new(SglDescriptor::DATA_BLOCK, room + 7, 10_000);
            let found = driver.execute(1, retrieve.with_sgl(to)).await;
            assert_eq!((found.status(), found.result()), (Status::SUCCESS, 10_000));
            assert!(driver.ram.get(room + 7, 10_000) == value);
        }
        // And back into parts.
        let retrieve = Command::retrieve(KV, b"1", 10_000).with_sgl(chained);
        for part in &parts {
            driver.ram.put(part.address.get(), &vec![0; part.len.get() as usize]);
        }
        assert_eq!(driver.execute(1, retrieve).await.status(), Status::SUCCESS);
        let back: Vec<u8> = parts
            .iter()
            .flat_map(|part| driver.ram.get(part.address.get(), part.len.get() as usize))
            .collect();
        assert!(back == value);
    });
}

fn segment(driver: &Driver, kind: u8, descriptors: &[SglDescriptor]) -> SglDescriptor {
    let address = place(&driver.ram, 0, descriptors.as_bytes());
    SglDescriptor::new(kind, address, short(descriptors.len() * 16))
}

#[test]
fn sgls_that_cannot_be_have_the_specified_status() {
    run_real(5, async |world: World| {
        let driver = world.host(16).await;
        let page = driver.ram.allocate(1);
        let block = |len| SglDescriptor::new(SglDescriptor::DATA_BLOCK, page, len);
        let of = |kind, parts: &[SglDescriptor]| segment(&driver, kind, parts);
        let (middle, last) = (SglDescriptor::SEGMENT, SglDescriptor::LAST_SEGMENT);
        let inner = of(last, &[block(4_096)]);
        let many = vec![block(1); 4_097];
        let cases = [
            (block(4_095), Status::DATA_SGL_LENGTH_INVALID),
            (SglDescriptor::new(0x10, page, 4_096), Status::SGL_TYPE_INVALID),
            (SglDescriptor::new(0x5a, page, 4_096), Status::SGL_TYPE_INVALID),
            (SglDescriptor::new(0x01, page, 4_096), Status::SGL_TYPE_INVALID),
            (SglDescriptor::new(last, page, 0), Status::INVALID_SGL_SEGMENT),
            (SglDescriptor::new(last, page, 17), Status::INVALID_SGL_SEGMENT),
            (of(last, &[inner]), Status::INVALID_SGL_SEGMENT),
            (of(middle, &[inner, block(0)]), Status::INVALID_SGL_SEGMENT),
            (of(middle, &[block(4_096)]), Status::INVALID_SGL_SEGMENT),
            (of(last, &[SglDescriptor::new(0x40, 0, 0)]), Status::SGL_TYPE_INVALID),
            (of(last, &many), Status::INVALID_SGL_COUNT),
            (SglDescriptor::new(0, 0x7000_0000, 4_096), Status::DATA_TRANSFER_ERROR),
            (SglDescriptor::new(last, 0x7000_0000, 32), Status::DATA_TRANSFER_ERROR),
            (SglDescriptor::new(0, u64::MAX - 5, 4_096), Status::DATA_TRANSFER_ERROR),
            (SglDescriptor::new(last, u64::MAX - 5, 32), Status::DATA_TRANSFER_ERROR),
            (
                of(last, &[SglDescriptor::new(0, u64::MAX - 5, 4_096), block(4_096)]),
                Status::DATA_TRANSFER_ERROR,
            ),
        ];
        for (sgl, status) in cases {
            for command in [Command::write(BLOCK, 0, 1), Command::read(BLOCK, 0, 1)] {
                let found = driver.execute(1, command.with_sgl(sgl)).await;
                assert_eq!(found.status(), status, "{sgl:?}");
            }
        }
        // A segment that points to itself ends too.
        let circle = driver.ram.allocate(1);
        let itself = SglDescriptor::new(middle, circle, 16);
        driver.ram.put(circle, itself.as_bytes());
        let write = Command::write(BLOCK, 0, 1).with_sgl(itself);
        assert_eq!(driver.execute(1, write).await.status(), Status::INVALID_SGL_COUNT);
        // Of a longer SGL the first part is data.
        for command in [Command::write(BLOCK, 9, 1), Command::read(BLOCK, 9, 1)] {
            let found = driver.execute(1, command.with_sgl(block(3 << 20))).await;
            assert_eq!(found.status(), Status::SUCCESS);
        }
        assert!(driver.status().is_ready());
    });
}

#[test]
fn a_command_that_moves_too_much_is_refused_before_its_data_is_looked_at() {
    run_real(6, async |world| {
        let driver = world.host(16).await;
        let read = Command::read(BLOCK, 0, 513).with_prp([0x7000_0000, 0x7000_1000]);
        assert_eq!(driver.execute(1, read).await.status(), Status::INVALID_FIELD);
        let store = Command::store(KV, b"key", (2 << 20) + 1, StoreOptions::NONE);
        let status = driver.execute(1, store.with_prp([0x7000_0000, 0])).await.status();
        assert_eq!(status, Status::INVALID_VALUE_SIZE);
        let value = place(&driver.ram, 0, b"value");
        let store = Command::store(KV, b"key", 5, StoreOptions::NONE).with_prp([value, 0]);
        driver.execute(1, store).await;
        for command in
            [Command::retrieve(KV, b"key", (2 << 20) + 1), Command::list(KV, b"", 4 << 20)]
        {
            let found = driver.execute(1, command.with_prp([value, 0])).await;
            assert_eq!(found.status(), Status::INVALID_FIELD, "it is more than MDTS");
        }
    });
}

#[test]
fn data_in_flight_is_bounded_and_all_of_it_arrives() {
    run_real(7, async |world| {
        // 60 writes of 2 MiB are 120 MiB; a function keeps 64 MiB.
        let driver = world.host(64).await;
        let pages = scattered(&driver, 512);
        let entries = prp(&driver, &pages, 0, 0);
        for number in 0..60 {
            driver.submit(1, Command::write(BLOCK, number % 3 * 512, 512).with_prp(entries));
        }
        for _ in 0..60 {
            assert_eq!(driver.next(1).await.status(), Status::SUCCESS);
        }
    });
}

#[test]
fn data_of_commands_that_run_on_after_a_reset_is_bounded() {
    run(8, async |world| {
        let driver = world.host(64).await;
        let pages = scattered(&driver, 512);
        let entries = prp(&driver, &pages, 0, 0);
        let write = Command::write(BLOCK, 0, 512).with_prp(entries);
        let closed = world.gate.close();
        for reset in 0..4 {
            for _ in 0..20 {
                driver.submit(1, write);
            }
            driver.settle().await;
            match reset {
                0 => driver.configure(spec::Configuration(0)),
                1 => driver.function.reset(),
                _ => {
                    let delete = Command::delete_io_sq(1);
                    assert_eq!(driver.admin(delete).await.status(), Status::SUCCESS);
                    let create = Command::delete_io_cq(1);
                    assert_eq!(driver.admin(create).await.status(), Status::SUCCESS);
                }
            }
            if reset < 2 {
                driver.enable();
            }
            driver.create_queue(1, 64).await;
        }
        // Nothing is left of the budget, so a command is not fetched until the others have ended:
        // the host still can write another one in its place.
        driver.submit(1, write);
        driver.settle().await;
        driver.rewind(1, 1);
        driver.push(1, write.with_command_id(777));
        driver.admin(Command::keep_alive()).await;
        drop(closed);
        let completion = driver.next(1).await;
        assert_eq!((completion.status(), completion.command_id()), (Status::SUCCESS, 777));
    });
}

#[test]
fn a_command_that_waits_for_the_budget_is_not_passed_by_small_ones() {
    for has_shadow in [false, true] {
        run(9, async |world| {
            let driver = world.host(64).await;
            driver.create_queue(2, 64).await;
            if has_shadow {
                driver.use_shadow().await;
            }
            let pages = scattered(&driver, 512);
            let entries = prp(&driver, &pages, 0, 0);
            let closed = world.gate.close();
            // The 32nd does not fit.
            for _ in 0..32 {
                driver.submit(1, Command::write(BLOCK, 0, 512).with_prp(entries));
            }
            driver.settle().await;
            let small = |ids: std::ops::Range<u16>| {
                let write = Command::write(BLOCK, 600, 1).with_prp([pages[0], 0]);
                ids.for_each(|id| driver.push(2, write.with_command_id(id)));
            };
            small(100..140);
            driver.ring_tail(2);
            driver.settle().await;
            // They were not fetched: the host still can write others in their place.
            driver.rewind(2, 40);
            small(200..240);
            drop(closed);
            for _ in 0..32 {
                assert_eq!(driver.next(1).await.status(), Status::SUCCESS);
            }
            for _ in 0..40 {
                let completion = driver.next(2).await;
                assert_eq!(completion.status(), Status::SUCCESS);
                assert!((200..240).contains(&completion.command_id()), "{completion:?}");
            }
        });
    }
}

#[test]
fn commands_that_the_function_refuses_are_in_the_error_log() {
    run_real(7, async |world| {
        let driver = world.host(8).await;
        let missing = 0x7000_0000;
        // Of the function itself, of the data of a command, and of the data of a response.
        let create = Command::create_io_cq(2, 8, missing + 1, None);
        let refused = driver.admin(create).await;
        let write = Command::write(BLOCK, 0, 1).with_prp([missing, 0]);
        let not_read = driver.execute(1, write).await;
        let read = Command::read(BLOCK, 0, 1).with_prp([missing, 0]);
        let not_written = driver.execute(1, read).await;
        let page = driver.ram.allocate(1);
        let log = Command::get_log_page(LogPage::ERRORS, 0, 3 * 64).with_prp([page, 0]);
        assert_eq!(driver.admin(log).await.status(), Status::SUCCESS);
        let expected = [
            (3, 1, not_written, BLOCK, read.opcode()),
            (2, 1, not_read, BLOCK, write.opcode()),
            (1, 0, refused, 0, create.opcode()),
        ];
        for (place, (count, queue, completion, nsid, opcode)) in (0..).zip(expected) {
            let bytes = driver.ram.get(page + place * 64, 64);
            let entry = ErrorEntry::read_from_bytes(&bytes).expect("it has 64 bytes");
            let status = u16::from_le_bytes(completion.as_bytes()[14..].try_into().expect("two"));
            assert!(!completion.status().is_success());
            assert_eq!(entry.count.get(), count);
            assert_eq!((entry.queue_id.get(), entry.nsid.get()), (queue, nsid));
            assert_eq!(entry.command_id.get(), completion.command_id());
            // The phase bit is not of the controller.
            assert_eq!(entry.status.get() & !1, status & !1);
            assert_eq!((entry.opcode, entry.version), (opcode.0, 1));
        }
    });
}

#[test]
fn admin_commands_are_found_in_a_mapped_page_while_data_waits_for_the_budget() {
    run(10, async |world| {
        let driver = world.attach_mapped();
        driver.enable();
        driver.create_queue(1, 64).await;
        let pages = scattered(&driver, 512);
        let entries = prp(&driver, &pages, 0, 0);
        let closed = world.gate.close();
        // The 32nd does not fit.
        for _ in 0..32 {
            driver.submit(1, Command::write(BLOCK, 0, 512).with_prp(entries));
        }
        driver.settle().await;
        assert_eq!(driver.admin(Command::keep_alive()).await.status(), Status::SUCCESS);
        assert!(!driver.function.look(), "what waits is not polled for");
        drop(closed);
        for _ in 0..32 {
            assert_eq!(driver.next(1).await.status(), Status::SUCCESS);
        }
    });
}
