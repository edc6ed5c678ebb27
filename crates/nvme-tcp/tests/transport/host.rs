use crate::port::{Door, Shelf};
use base::{Buf, BufMut, BufPool, Nanos};
use net::{Conditions, End, MoveRequest, Network, Stream};
use nvme_tcp::framing::{Arrival, Counters, Inbox, Outbox, Read, Terms, Written};
use nvme_tcp::pdu::{CapsuleCmd, Digests, H2cData, Header, IcReq, IcResp, Side, TermReq};
use nvme_tcp::target::{Budget, Config, Ended, Left, serve_until_moved};
use spec::{Command, Completion, DataPointer, Opcode, StoreOptions};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use zerocopy::IntoBytes;

/// A PDU or an end that a host received.
#[derive(Debug)]
pub(crate) enum Came {
    Accepted(Box<IcResp>),
    Response(Completion),
    /// CCCID, DATAO, whether it was the last, whether it stands for the response; the data.
    Data {
        id: u16,
        offset: u32,
        is_last: bool,
        is_success: bool,
        data: Buf,
    },
    /// CCCID, TTAG, R2TO, R2TL.
    Ready {
        id: u16,
        tag: u16,
        offset: u32,
        len: u32,
    },
    /// With the header that it repeats.
    Terminated(TermReq, Vec<u8>),
    /// The connection is over.
    End,
}

/// A target on one end of a simulated connection, and a host on the other that says what the test
/// wants.
pub(crate) struct Host {
    pub(crate) stream: Rc<End>,
    pub(crate) inbox: Inbox,
    pub(crate) outbox: Outbox,
    pub(crate) shelf: Rc<Shelf>,
    pub(crate) counters: Rc<Counters>,
    /// Asks the target's end to move. It stays, because no other reactor takes it.
    pub(crate) moves: Rc<MoveRequest>,
    /// Why the target's end is over, and since when.
    pub(crate) ended: Rc<Cell<Option<(Ended, Nanos)>>>,
    started: Option<Came>,
}

/// No delay, pieces of any length, and room for 64 KiB.
pub(crate) const QUICK: Conditions = Conditions {
    delay: (Nanos::ZERO, Nanos::ZERO),
    piece_max: 1 << 20,
    capacity: 1 << 16,
    life: None,
};

/// Some delay, and pieces of up to `piece_max` bytes.
pub(crate) const fn rough(piece_max: usize) -> Conditions {
    Conditions {
        delay: (Nanos(100), Nanos::from_micros(9)),
        piece_max,
        capacity: 100_000,
        life: None,
    }
}

impl Host {
    /// Connects, and says nothing yet.
    pub(crate) fn connect(seed: u64, conditions: Conditions) -> Self {
        Self::connect_with(Rc::default(), seed, conditions)
    }

    /// The same, within a budget.
    pub(crate) fn connect_with(budget: Rc<Budget>, seed: u64, conditions: Conditions) -> Self {
        let (near, far) = Network::new(seed, conditions).pair();
        let shelf = Rc::new(Shelf::default());
        let counters = Rc::new(Counters::default());
        let config = Config { pool: BufPool::new(1 << 22), counters: counters.clone() };
        let ended = Rc::new(Cell::new(None));
        let (door, over) = (Rc::new(Door(shelf.clone())), ended.clone());
        let moves = Rc::<MoveRequest>::default();
        let shared = (budget, moves.clone());
        clock::spawn(async move {
            let left = serve_until_moved(Rc::new(far), door, config, shared, None).await;
            let Left::Ended(ended) = left else { panic!("its queue does not move") };
            over.set(Some((ended, clock::now())));
        });
        Self {
            stream: Rc::new(near),
            inbox: Inbox::new(Side::Host, Rc::default()),
            outbox: Outbox::new(Side::Host, Rc::default()),
            shelf,
            counters,
            moves,
            ended,
            started: None,
        }
    }

    /// Connects and agrees on terms.
    pub(crate) async fn open(
        seed: u64,
        conditions: Conditions,
        digests: Digests,
        alignment: u8,
    ) -> Self {
        Self::connect(seed, conditions).opened(digests, alignment).await
    }

    /// Agrees on terms.
    pub(crate) async fn opened(mut self, digests: Digests, alignment: u8) -> Self {
        let host = &mut self;
        let request = IcReq::new(alignment, digests, 1);
        host.outbox.push(&request);
        host.flush().await;
        let Came::Accepted(response) = host.next().await else { panic!("no ICResp") };
        host.agree(Terms::of(&request, &response).expect("alignments are in range"));
        self
    }

    /// Opens a connection on which a command has succeeded, so that the connect timeout is over.
    pub(crate) async fn connected(conditions: Conditions) -> Self {
        let mut host = Self::open(1, conditions, Digests::NONE, 4).await;
        host.outbox.push(&CapsuleCmd::new(exist(0)));
        host.flush().await;
        host.collect(1, &BTreeMap::new()).await;
        host.shelf.came.borrow_mut().clear();
        host
    }

    pub(crate) fn agree(&mut self, terms: Terms) {
        self.inbox.agree(terms);
        self.outbox.agree(terms);
    }

    /// Sends what is queued; stops when the connection is over.
    pub(crate) async fn flush(&mut self) {
        loop {
            match self.outbox.write(&*self.stream) {
                Ok(Written::Full) => self.stream.writable().await,
                Ok(Written::All) | Err(_) => return,
            }
        }
    }

    /// Sends bytes as they are.
    pub(crate) async fn say(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.stream.try_write(&[std::io::IoSlice::new(bytes)]) {
                Ok(Some(sent)) => bytes = &bytes[sent..],
                Ok(None) => self.stream.writable().await,
                Err(_) => return,
            }
        }
    }

    /// The next PDU, with its data.
    pub(crate) async fn next(&mut self) -> Came {
        loop {
            while let Some(arrival) = self.inbox.next().expect("the target keeps the protocol") {
                let (came, len) = match arrival {
                    Arrival::Header(header, len) => (came(header), len),
                    Arrival::Kept(data, is_intact) => {
                        assert!(is_intact);
                        return match self.started.take().expect("data follows a header") {
                            Came::Data { id, offset, is_last, is_success, .. } => {
                                Came::Data { id, offset, is_last, is_success, data }
                            }
                            Came::Terminated(request, _) => {
                                Came::Terminated(request, bytes(&data).to_vec())
                            }
                            other => panic!("{other:?} has no data"),
                        };
                    }
                    Arrival::Filled(..) => panic!("all data is kept"),
                    Arrival::Capsule(..) => panic!("a target sends no command"),
                };
                if len == 0 {
                    return came;
                }
                self.inbox.keep();
                self.started = Some(came);
            }
            match self.inbox.read(&*self.stream) {
                Ok(Read::End) | Err(_) => return Came::End,
                Ok(Read::Nothing) => self.stream.readable().await,
                Ok(_) => {}
            }
        }
    }

    /// Queues a Store, with its data in the capsule if that fits.
    pub(crate) fn store(&mut self, id: u16, value: &Buf) {
        let command = store(id, value.len());
        if value.len() > 0 && value.len() <= 8192 {
            let inside = DataPointer::InCapsule { offset: 0, len: value.len() };
            let capsule = CapsuleCmd::new(command.with_data_pointer(inside));
            self.outbox.push_with_data(&capsule, value.clone());
        } else {
            self.outbox.push(&CapsuleCmd::new(command));
        }
    }

    /// Queues what an R2T asks for, in PDUs of `len_max` bytes.
    pub(crate) fn give(&mut self, id: u16, tag: u16, value: &Buf, len_max: u32) {
        let mut offset = 0;
        while offset < value.len() {
            let end = value.len().min(offset + len_max);
            let header = H2cData::new(id, tag, offset, end - offset, end == value.len());
            self.outbox.push_with_data(&header, value.slice(offset..end));
            offset = end;
        }
    }

    /// Queues a Retrieve that has room for `len` bytes.
    pub(crate) fn retrieve(&mut self, id: u16, len: u32) {
        self.outbox.push(&CapsuleCmd::new(retrieve(id, len)));
    }
}

/// Returns the bytes of received data.
fn bytes(data: &Buf) -> &[u8] {
    data.bytes().expect("data from a stream is no phantom")
}

/// A Store that waits to be asked for its data.
pub(crate) fn store(id: u16, len: u32) -> Command {
    Command::store(1, b"key", len, StoreOptions::NONE)
        .with_command_id(id)
        .with_data_pointer(DataPointer::Transport { len })
}

pub(crate) fn retrieve(id: u16, len: u32) -> Command {
    Command::retrieve(1, b"key", len)
        .with_command_id(id)
        .with_data_pointer(DataPointer::Transport { len })
}

pub(crate) fn exist(id: u16) -> Command {
    let command = Command::exist(1, b"key").with_command_id(id);
    assert_eq!(command.opcode(), Opcode::EXIST);
    command.with_data_pointer(DataPointer::Transport { len: 0 })
}

fn came(header: Header<'_>) -> Came {
    match header {
        Header::IcResp(response) => Came::Accepted(Box::new(*response)),
        Header::CapsuleResp(capsule) => Came::Response(*capsule.entry()),
        Header::C2hData(data) => Came::Data {
            id: data.command_id(),
            offset: data.offset(),
            is_last: data.is_last(),
            is_success: data.is_success(),
            data: Buf::phantom(0, 0),
        },
        Header::R2t(ready) => Came::Ready {
            id: ready.command_id(),
            tag: ready.tag(),
            offset: ready.offset(),
            len: ready.len(),
        },
        Header::TermReq(request) => Came::Terminated(*request, Vec::new()),
        other => panic!("{other:?} is not from a controller"),
    }
}

/// Completion entries and data by command id.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) done: BTreeMap<u16, Option<Completion>>,
    pub(crate) data: BTreeMap<u16, Vec<u8>>,
}

impl Host {
    /// Receives until `count` commands are done, and gives the values that it is asked for.
    pub(crate) async fn collect(&mut self, count: usize, values: &BTreeMap<u16, Buf>) -> Results {
        let mut results = Results::default();
        while results.done.len() < count {
            match self.next().await {
                Came::Ready { id, tag, offset, len } => {
                    let value = &values[&id];
                    assert_eq!((offset, len), (0, value.len()), "all is asked for at once");
                    self.give(id, tag, value, 100_000);
                    self.flush().await;
                }
                Came::Data { id, offset, is_last, is_success, data } => {
                    let all = results.data.entry(id).or_default();
                    assert_eq!(all.len(), offset as usize, "data comes in order");
                    all.extend_from_slice(bytes(&data));
                    assert!(is_last || !is_success);
                    if is_success {
                        assert!(results.done.insert(id, None).is_none());
                    }
                }
                Came::Response(entry) => {
                    assert!(results.done.insert(entry.command_id(), Some(entry)).is_none());
                }
                other => panic!("{other:?}"),
            }
        }
        results
    }
}

/// Runs `test` in virtual time.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    reactor::Reactor::new(None).run(test)
}

/// The bytes of a header without digests.
pub(crate) fn raw(header: &(impl IntoBytes + zerocopy::Immutable)) -> Vec<u8> {
    header.as_bytes().to_vec()
}

/// A buffer of generated bytes.
pub(crate) fn value(len: u32, seed: u64) -> Buf {
    let mut buf = BufMut::unpooled(len as usize);
    buf.as_mut().copy_from_slice(&crate::framing::bytes(len as usize, seed));
    buf.freeze()
}
