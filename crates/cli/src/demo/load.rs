use super::command::{QUEUE_DEPTH, add_to_digest, each};
use super::fault::Faults;
use super::key::pair_key;
use super::pair::Pair;
use super::phase::Phase;
use super::source::Source;
use super::treatment::{Treatment, Treatments};
use super::walk::{Found, Root, Walked};
use crate::progress::{Progress, Unit};
use base::Buf;
use base::checksum::Digest;
use base::limits::BUF_ALIGN;
use controller::{Completion, QueuePair, Submission};
use node::Device;
use spec::{Command, Status, StoreOptions};
use std::collections::BTreeMap;
use std::io;

/// Longest value: 1 MiB. A longer file is split.
const CHUNK_BYTES: u32 = 1 << 20;

/// Memory of a pair beside its value, measured: alignment of the buffer, and its entries here, in
/// the index and on the emulated flash.
const PAIR_MEMORY_BYTES: u64 = 4_096 + 500;

/// Contents of the device after loading.
pub(super) struct Loaded {
    /// Namespace of the pairs.
    pub(super) nsid: u32,
    pub(super) files: Vec<Found>,
    pub(super) pairs: Vec<Pair>,
    pub(super) treatments: Treatments,
    pub(super) faults: Faults,
    pub(super) digest: Digest,
    pub(super) phase: Phase,
}

impl Loaded {
    /// Files on the device.
    pub(super) fn file_count(&self) -> u64 {
        self.pairs.iter().filter(|pair| pair.chunk.is_none_or(|chunk| chunk == 0)).count() as u64
    }

    /// Bytes of all keys.
    pub(super) fn key_bytes(&self) -> u64 {
        let key = |pair: &Pair| pair_key(&self.files[pair.file].path, pair.chunk).key;
        self.pairs.iter().map(|pair| key(pair).as_bytes().len() as u64).sum()
    }

    /// Bytes of all values.
    pub(super) fn value_bytes(&self) -> u64 {
        self.pairs.iter().map(|pair| u64::from(pair.bytes)).sum()
    }
}

/// Stores files.
pub(super) struct Loader<'a> {
    root: &'a Root,
    device: &'a Device,
    queue: QueuePair,
    outstanding: usize,
    chunk_bytes: u32,
    memory_left: u64,
    loaded: Loaded,
    /// Files to delete again, each with a treatment and a reason.
    spoiled: BTreeMap<usize, (Treatment, String)>,
    /// Treatments of files that are stored.
    notes: Vec<(usize, Treatment)>,
    /// Why loading stopped early.
    stopped: Option<Treatment>,
}

impl<'a> Loader<'a> {
    /// Prepares to store the files found below `root` in namespace `nsid` of `device`, with values
    /// in at most `memory_bytes` of memory.
    pub(super) fn new(
        device: &'a Device,
        nsid: u32,
        root: &'a Root,
        walked: Walked,
        memory_bytes: Option<u64>,
    ) -> Self {
        let Walked { files, treatments } = walked;
        Self {
            root,
            device,
            queue: device.controller().queue_pair(),
            outstanding: 0,
            chunk_bytes: CHUNK_BYTES.min(device.store().value_bytes_max()),
            memory_left: memory_bytes.unwrap_or(u64::MAX),
            loaded: Loaded {
                nsid,
                files,
                pairs: Vec::new(),
                treatments,
                faults: Faults::default(),
                digest: Digest::default(),
                phase: Phase::default(),
            },
            spoiled: BTreeMap::new(),
            notes: Vec::new(),
            stopped: None,
        }
    }

    /// Stores all files that fit.
    pub(super) async fn load(mut self, progress: Progress) -> Loaded {
        let mut bar = progress.bar("storing", Unit::Bytes);
        let total = self.loaded.files.iter().map(|file| file.bytes).sum();
        let (started, mut done) = (clock::now(), 0);
        for file in 0..self.loaded.files.len() {
            match self.stopped {
                Some(reason) => self.spoil(file, reason, ""),
                None => self.store_file(file).await,
            }
            done += self.loaded.files[file].bytes;
            bar.set(done, total);
        }
        while self.outstanding > 0 {
            self.complete().await;
        }
        self.loaded.phase.elapsed = clock::now() - started;
        self.remove_spoiled().await;
        self.into_loaded()
    }

    async fn store_file(&mut self, file: usize) {
        let path = self.root.join(&self.loaded.files[file].path);
        let source = match Source::open(&path, self.chunk_bytes) {
            Ok(Some(source)) => source,
            Ok(None) => return self.spoil(file, Treatment::OtherKind, ""),
            Err(error) => {
                return self.spoil(file, Treatment::UnreadableFile, &error.to_string());
            }
        };
        if source.announced_bytes() > 0 && !self.takes(source.announced_bytes()) {
            self.stopped = Some(Treatment::MemoryFull);
            return self.spoil(file, Treatment::MemoryFull, "");
        }
        self.note_kind(file, &source);
        if let Err(error) = self.store_chunks(file, source).await {
            self.spoil(file, Treatment::UnreadableFile, &error.to_string());
        }
    }

    async fn store_chunks(&mut self, file: usize, mut source: Source) -> io::Result<()> {
        let is_long = source.is_long();
        let mut chunk = 0;
        while let Some(value) = source.next_chunk()? {
            while self.outstanding >= QUEUE_DEPTH {
                self.complete().await;
            }
            // The size of such a file is known only after reading it.
            if source.announced_bytes() == 0 && !self.takes(value.len().into()) {
                self.stopped = Some(Treatment::MemoryFull);
            }
            if let Some(reason) = self.stopped {
                self.spoil(file, reason, "");
                return Ok(());
            }
            self.submit(file, is_long.then_some(chunk), value);
            chunk += 1;
        }
        if source.has_changed()? {
            self.notes.push((file, Treatment::Changed));
        }
        Ok(())
    }

    /// Reserves memory for a file of `bytes`; returns false if there is too little.
    fn takes(&mut self, bytes: u64) -> bool {
        let pairs = bytes.div_ceil(self.chunk_bytes.into()).max(1);
        let memory = bytes.next_multiple_of(BUF_ALIGN as u64) + pairs * PAIR_MEMORY_BYTES;
        let left = self.memory_left.checked_sub(memory);
        self.memory_left = left.unwrap_or(self.memory_left);
        left.is_some()
    }

    fn note_kind(&mut self, file: usize, source: &Source) {
        let path = &self.loaded.files[file].path;
        let is_long = source.is_long();
        let kinds = [
            (source.is_empty(), Treatment::Empty),
            (source.names() > 1, Treatment::HardLinked),
            (path.to_str().is_none(), Treatment::NotUtf8),
            (pair_key(path, is_long.then_some(0)).is_shortened, Treatment::LongPath),
        ];
        let kinds = kinds.into_iter().filter(|(is_so, _)| *is_so);
        self.notes.extend(kinds.map(|(_, treatment)| (file, treatment)));
    }

    /// Marks `file` for deletion; only its first reason counts.
    fn spoil(&mut self, file: usize, treatment: Treatment, reason: &str) {
        self.spoiled.entry(file).or_insert_with(|| (treatment, reason.to_owned()));
    }

    fn submit(&mut self, file: usize, chunk: Option<u32>, value: Buf) {
        let key = pair_key(&self.loaded.files[file].path, chunk).key;
        // Otherwise a key that is shortened, or looks shortened, could replace another.
        let options = StoreOptions::MUST_NOT_EXIST;
        let command = Command::store(self.loaded.nsid, key.as_bytes(), value.len(), options);
        let bytes = value.bytes().expect("what was read from a file is no phantom");
        self.loaded.pairs.push(Pair::new(file, chunk, bytes));
        self.outstanding += 1;
        let id = self.queue.submit(Submission::with_data(command, &key, value));
        assert_eq!(id + 1, self.loaded.pairs.len() as u64, "a store's number is its pair's");
    }

    async fn complete(&mut self) {
        let completion = self.queue.next().await;
        self.outstanding -= 1;
        let place = usize::try_from(completion.id).expect("as many as there are pairs");
        let pair = &mut self.loaded.pairs[place];
        add_to_digest(&mut self.loaded.digest, &completion, pair.checksum);
        let file = pair.file;
        match completion.status {
            Status::SUCCESS => {
                pair.is_stored = true;
                self.loaded.phase.record(&completion);
            }
            Status::CAPACITY_EXCEEDED => {
                self.stopped = Some(Treatment::DeviceFull);
                self.spoil(file, Treatment::DeviceFull, "");
            }
            Status::KEY_EXISTS => self.spoil(file, Treatment::KeyTaken, ""),
            status => {
                let path = &self.loaded.files[file].path;
                self.loaded.faults.add(path, pair, format!("the store ended with {status}"));
                self.spoil(file, Treatment::Failed, &status.to_string());
            }
        }
    }

    /// Deletes the stored pairs of files that are marked for deletion.
    async fn remove_spoiled(&mut self) {
        let Loaded { nsid, files, pairs, faults, digest, .. } = &mut self.loaded;
        let is_doomed = |pair: &&Pair| pair.is_stored && self.spoiled.contains_key(&pair.file);
        let doomed: Vec<&Pair> = pairs.iter().filter(is_doomed).collect();
        let delete = |place: usize| {
            let pair: &Pair = doomed[place];
            let key = pair_key(&files[pair.file].path, pair.chunk).key;
            Submission::new(Command::delete(*nsid, key.as_bytes()), &key)
        };
        let deleted = |place: usize, completion: &Completion| {
            let pair: &Pair = doomed[place];
            add_to_digest(digest, completion, pair.checksum);
            if !completion.status.is_success() {
                let problem = format!("the delete ended with {}", completion.status);
                faults.add(&files[pair.file].path, pair, problem);
            }
        };
        each(self.device, doomed.len(), delete, deleted).await;
    }

    fn into_loaded(self) -> Loaded {
        let Self { mut loaded, spoiled, notes, .. } = self;
        loaded.pairs.retain(|pair| pair.is_stored && !spoiled.contains_key(&pair.file));
        let Loaded { files, treatments, .. } = &mut loaded;
        for (file, (treatment, reason)) in &spoiled {
            treatments.add_because(*treatment, &files[*file].path, reason);
        }
        for (file, treatment) in notes.iter().filter(|(file, _)| !spoiled.contains_key(file)) {
            treatments.add(*treatment, &files[*file].path);
        }
        loaded
    }
}
