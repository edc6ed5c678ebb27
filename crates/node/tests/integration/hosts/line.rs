use crate::hosts::answer::Answer;
use crate::hosts::entry::Entry;
use crate::hosts::pdu::{
    C2H_DATA, CAPSULE_CMD, CAPSULE_RESP, Came, Digests, H2C_DATA, IC_REQ, IC_RESP, LAST, R2T,
    SUCCESS, encode,
};
use crate::hosts::tape::Taped;
use crate::hosts::world::World;
use net::Stream;
use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};

/// Data that a command carries at most where IOCCSZ says nothing: on admin queues (TCP 1.1).
pub(crate) const IN_CAPSULE_MAX: usize = 8_192;

/// How a host makes command ids.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ids {
    /// Linux: a tag, and in bits 15:12 how often it was used.
    Generations,
    /// SPDK: the number of a free request.
    Slots,
}

/// A host's connection of a queue. It takes from the target what the hosts take, and nothing else.
pub(crate) struct Line {
    stream: Taped,
    host: &'static str,
    digests: Digests,
    h2c_data_max: usize,
    /// Longer data is sent when an R2T asks for it.
    pub(crate) in_capsule_max: usize,
    came: Vec<u8>,
    room: Box<[u8]>,
    ids: Ids,
    generations: BTreeMap<u16, u16>,
    waiting: BTreeMap<u16, Waiting>,
    done: BTreeMap<u16, Answer>,
}

/// A command that is not answered.
#[derive(Debug)]
struct Waiting {
    answer: Answer,
    /// What an R2T may ask for, and how much of that is sent.
    value: Vec<u8>,
    sent: usize,
    /// Whether the data that came last was the last.
    has_all: bool,
}

impl Line {
    /// Connects, and agrees on terms: PFV 0, HPDA 0 (any dword), and one R2T for a command at a
    /// time, as all hosts here ask for.
    pub(crate) async fn open(
        world: &World,
        host: &'static str,
        ids: Ids,
        digests: Digests,
    ) -> Self {
        let mut line = Self {
            stream: world.connect().await,
            host,
            digests: Digests::NONE,
            h2c_data_max: 0,
            in_capsule_max: IN_CAPSULE_MAX,
            came: Vec::new(),
            room: vec![0; 65_536].into_boxed_slice(),
            ids,
            generations: BTreeMap::new(),
            waiting: BTreeMap::new(),
            done: BTreeMap::new(),
        };
        let mut rest = [0; 120];
        rest[3] = digests.bits();
        line.say(&encode(IC_REQ, 0, &rest, &[], Digests::NONE)).await;
        let response = line.pdu().await.expect("an ICResp comes");
        assert_eq!(response[..8], [IC_RESP, 0, 128, 0, 128, 0, 0, 0], "{host}: ICResp");
        assert_eq!(response[8..10], [0, 0], "{host}: PFV, or it closes the connection");
        assert_eq!(response[10], 0, "{host}: CPDA, or Linux closes the connection");
        assert_eq!(response[11], digests.bits(), "{host}: digests, or it closes the connection");
        let max = u32::from_le_bytes(response[12..16].try_into().expect("there are 4"));
        assert!(
            max >= 4_096 && max.is_multiple_of(4),
            "{host}: MAXH2CDATA, or it closes the connection"
        );
        (line.h2c_data_max, line.digests) = (max as usize, digests);
        line
    }

    /// Sends a command without data and waits for its result.
    pub(crate) async fn ask(&mut self, step: &str, entry: Entry) -> Answer {
        let id = self.start(step, entry, &[]).await;
        self.finish(id).await
    }

    /// Sends a command with `value` and waits for its result.
    pub(crate) async fn give(&mut self, step: &str, entry: Entry, value: &[u8]) -> Answer {
        let id = self.start(step, entry, value).await;
        self.finish(id).await
    }

    /// Sends a command, which gets an id, and its data if that fits the capsule.
    pub(crate) async fn start(&mut self, step: &str, entry: Entry, value: &[u8]) -> u16 {
        let id = self.free_id();
        self.start_as(id, step, entry, value).await;
        id
    }

    /// The same, with an id that the host has chosen.
    pub(crate) async fn start_as(&mut self, id: u16, step: &str, entry: Entry, value: &[u8]) {
        let entry = entry.id(id);
        let fits = !value.is_empty() && value.len() <= self.in_capsule_max;
        let entry = if fits { entry.in_capsule() } else { entry };
        let answer = Answer {
            step: format!("{}, {step}", self.host),
            asked: entry,
            status: 0,
            result: 0,
            data: Vec::new(),
            asked_for: 0,
            pieces: 0,
            is_elided: false,
        };
        let (inside, later) = if fits { (value, &[][..]) } else { (&[][..], value) };
        let capsule = encode(CAPSULE_CMD, 0, entry.bytes(), inside, self.digests);
        let waiting = Waiting { answer, value: later.to_vec(), sent: 0, has_all: true };
        let before = self.waiting.insert(id, waiting);
        assert!(before.is_none(), "a host uses an id once at a time");
        self.say(&capsule).await;
    }

    /// Waits for the result of a command.
    pub(crate) async fn finish(&mut self, id: u16) -> Answer {
        loop {
            if let Some(answer) = self.done.remove(&id) {
                return answer;
            }
            let waiting = self.waiting.get(&id).expect("the command was sent");
            let step = waiting.answer.step.clone();
            let Some(pdu) = self.pdu().await else {
                panic!("{step}: the target ended the connection")
            };
            self.take(&pdu).await;
        }
    }

    /// Whether the command is not answered.
    pub(crate) fn waits(&self, id: u16) -> bool {
        self.waiting.contains_key(&id)
    }

    /// Returns when the target has ended the connection, and nothing came before.
    pub(crate) async fn ended(&mut self) {
        assert!(self.pdu().await.is_none(), "{}: nothing more comes", self.host);
    }

    fn free_id(&mut self) -> u16 {
        let is_free = |tag: &u16| !self.waiting.keys().any(|id| id & 0xfff == *tag);
        let tag = (0..1_024).find(is_free).expect("a queue has 1,024 entries at most");
        match self.ids {
            Ids::Slots => tag,
            Ids::Generations => {
                let generation = self.generations.entry(tag).or_default();
                *generation = (*generation + 1) % 16;
                *generation << 12 | tag
            }
        }
    }

    async fn take(&mut self, pdu: &[u8]) {
        let came = Came::read(pdu, self.digests);
        let id = came.id();
        let host = self.host;
        let Some(waiting) = self.waiting.get_mut(&id) else {
            panic!("{host}: no command expects {came:02x?}, so it resets the controller")
        };
        match came.kind {
            C2H_DATA => {
                waiting.receive(&came);
                if waiting.answer.is_elided {
                    self.complete(id);
                }
            }
            R2T => {
                let (tag, start, len) = waiting.asked_for(&came);
                self.send_data(id, tag, start, len).await;
            }
            CAPSULE_RESP => {
                assert!(waiting.has_all, "{host}: a response before the data that is LAST");
                waiting.answer.result = came.u64(8);
                waiting.answer.status = came.u16(22) >> 1;
                self.complete(id);
            }
            other => panic!("{host}: {other} is no PDU that it takes, so it resets the controller"),
        }
    }

    fn complete(&mut self, id: u16) {
        let waiting = self.waiting.remove(&id).expect("it waits");
        self.done.insert(id, waiting.answer);
    }

    /// Sends what an R2T asks for, in PDUs as long as may be.
    async fn send_data(&mut self, id: u16, tag: u16, start: usize, len: usize) {
        let value = &self.waiting[&id].value[start..start + len];
        let mut pdus = Vec::new();
        let mut offset = start;
        for part in value.chunks(self.h2c_data_max) {
            let (ends, size) = (offset + part.len() == start + len, part.len());
            let dword = |number: usize| u32::try_from(number).expect("2 MiB at most").to_le_bytes();
            let rest =
                [id.to_le_bytes(), tag.to_le_bytes()].concat().into_iter().chain(dword(offset));
            let rest: Vec<u8> = rest.chain(dword(size)).chain([0; 4]).collect();
            pdus.push(encode(H2C_DATA, if ends { LAST } else { 0 }, &rest, part, self.digests));
            offset += size;
        }
        for pdu in pdus {
            self.say(&pdu).await;
        }
    }

    /// Sends bytes as they are.
    pub(crate) async fn say(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.stream.try_write(&[IoSlice::new(bytes)]) {
                Ok(Some(sent)) => bytes = &bytes[sent..],
                Ok(None) => self.stream.writable().await,
                Err(error) => panic!("{}: {error}", self.host),
            }
        }
    }

    /// The bytes of the next PDU; `None` if the connection has ended.
    pub(crate) async fn pdu(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(len) = self.came.get(4..8) {
                let len = u32::from_le_bytes(len.try_into().expect("there are 4")) as usize;
                if self.came.len() >= len {
                    return Some(self.came.drain(..len).collect());
                }
            }
            match self.stream.try_read(&mut [IoSliceMut::new(&mut self.room)]) {
                Ok(Some(0)) | Err(_) => {
                    assert!(self.came.is_empty(), "{}: a PDU is cut off", self.host);
                    return None;
                }
                Ok(Some(len)) => self.came.extend_from_slice(&self.room[..len]),
                Ok(None) => self.stream.readable().await,
            }
        }
    }
}

impl Waiting {
    /// Data comes in order, for a command that reads, and no more than it has room for; otherwise
    /// Linux and SPDK end the connection.
    fn receive(&mut self, came: &Came<'_>) {
        let answer = &mut self.answer;
        let (offset, len) = (came.u32(12), came.u32(16));
        let step = &answer.step;
        assert!(answer.asked.reads(), "{step}: data for a command that does not read");
        assert_eq!(offset as usize, answer.data.len(), "{step}: DATAO");
        assert_eq!(len as usize, came.data.len(), "{step}: DATAL");
        assert!(offset + len <= answer.asked.len(), "{step}: more data than was asked for");
        answer.data.extend_from_slice(came.data);
        answer.pieces += 1;
        answer.is_elided = came.flags & SUCCESS != 0;
        self.has_all = came.flags & LAST != 0;
        assert!(self.has_all || !answer.is_elided, "{step}: SUCCESS without LAST");
    }

    /// Returns the tag, offset and length of an R2T. Checks that it starts where the last one ended
    /// and that its length is not 0; otherwise Linux and SPDK end the connection.
    fn asked_for(&mut self, came: &Came<'_>) -> (u16, usize, usize) {
        let (tag, offset, len) = (came.u16(10), came.u32(12) as usize, came.u32(16) as usize);
        let step = &self.answer.step;
        assert_eq!(offset, self.sent, "{step}: R2TO");
        assert!(len > 0 && offset + len <= self.value.len(), "{step}: R2TL {len}");
        self.sent += len;
        self.answer.asked_for += 1;
        (tag, offset, len)
    }
}
