//! Where the data of a command lies in host memory: PRP entries and SGLs (Base 2.1, Physical Region
//! Page Entry and List, Scatter Gather List).

use crate::bus::{HostMemory, OutsideMemory};
use smallvec::SmallVec;
use spec::{Command, DataPointerKind, SglDescriptor, Status};
use zerocopy::FromBytes;

/// Bytes of a memory page: CC.MPS and CAP.MPSMAX are 0.
pub(crate) const PAGE: u64 = PAGE_BYTES as u64;

pub(crate) const PAGE_BYTES: usize = 4_096;

/// Bytes of a PRP entry.
const PRP_BYTES: usize = 8;

/// Bytes of an SGL descriptor.
const DESCRIPTOR_BYTES: usize = 16;

/// Maximum descriptors of an SGL: two for each page of the longest transfer.
const DESCRIPTORS_MAX: u64 = 1_024;

/// Parts of host memory, in the order of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segments {
    parts: SmallVec<[Segment; 2]>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    address: u64,
    bytes: u64,
}

impl Segments {
    /// Finds the data of a command that moves `bytes`. Of a longer SGL only the first part is data.
    pub(crate) fn of(
        command: &Command,
        bytes: u64,
        memory: &dyn HostMemory,
    ) -> Result<Self, Status> {
        let mut segments = Self::default();
        match command.data_pointer_kind() {
            DataPointerKind::Reserved => return Err(Status::INVALID_FIELD),
            DataPointerKind::Prp => segments.follow_prp(command.prp(), bytes, memory)?,
            DataPointerKind::Sgl => segments.follow_sgl(command.sgl(), bytes, memory)?,
        }
        Ok(segments)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the bytes of memory that the list itself takes.
    pub(crate) fn list_bytes(&self) -> u64 {
        (self.parts.len() * size_of::<Segment>()) as u64
    }

    /// Copies the data from host memory.
    pub(crate) fn gather(
        &self,
        memory: &dyn HostMemory,
        mut into: &mut [u8],
    ) -> Result<(), OutsideMemory> {
        for segment in &self.parts {
            let (part, rest) = into.split_at_mut(segment.len().min(into.len()));
            memory.read(segment.address, part)?;
            into = rest;
        }
        Ok(())
    }

    /// Copies `data` to host memory.
    pub(crate) fn scatter(
        &self,
        memory: &dyn HostMemory,
        mut data: &[u8],
    ) -> Result<(), OutsideMemory> {
        for segment in &self.parts {
            let (part, rest) = data.split_at(segment.len().min(data.len()));
            memory.write(segment.address, part)?;
            data = rest;
        }
        assert!(data.is_empty(), "the controller returns no more than the host has room for");
        Ok(())
    }

    fn follow_prp(
        &mut self,
        [first, second]: [u64; 2],
        bytes: u64,
        memory: &dyn HostMemory,
    ) -> Result<(), Status> {
        if bytes == 0 {
            return Ok(());
        }
        if !first.is_multiple_of(4) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        let in_first = (PAGE - first % PAGE).min(bytes);
        self.add(first, in_first)?;
        match bytes - in_first {
            0 => Ok(()),
            rest if rest <= PAGE => self.add_page(second, rest),
            rest => self.follow_prp_list(second, rest, memory),
        }
    }

    /// Adds the pages of a PRP list. The last entry of a page of the list points to the next one,
    /// if more than one entry is left.
    fn follow_prp_list(
        &mut self,
        mut list: u64,
        mut rest: u64,
        memory: &dyn HostMemory,
    ) -> Result<(), Status> {
        // A list that begins at the last entry of its page has a pointer only.
        let mut empty_lists = 0;
        while rest > 0 {
            if !list.is_multiple_of(PRP_BYTES as u64) || empty_lists > 1 {
                return Err(Status::PRP_OFFSET_INVALID);
            }
            let in_page = to_usize(PAGE - list % PAGE) / PRP_BYTES;
            let needed = to_usize(rest.div_ceil(PAGE));
            let count = in_page.min(needed);
            let mut bytes = [0; PAGE_BYTES];
            let bytes = &mut bytes[..count * PRP_BYTES];
            memory.read(list, bytes).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
            let (entries, _) = bytes.as_chunks::<PRP_BYTES>();
            let (pages, pointer) = match entries.split_last() {
                Some((pointer, pages)) if needed > count => (pages, Some(pointer)),
                _ => (entries, None),
            };
            empty_lists = if pages.is_empty() { empty_lists + 1 } else { 0 };
            for page in pages {
                let part = rest.min(PAGE);
                self.add_page(u64::from_le_bytes(*page), part)?;
                rest -= part;
            }
            if let Some(pointer) = pointer {
                list = u64::from_le_bytes(*pointer);
            }
        }
        Ok(())
    }

    fn add_page(&mut self, address: u64, bytes: u64) -> Result<(), Status> {
        if !address.is_multiple_of(PAGE) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        self.add(address, bytes)
    }

    fn follow_sgl(
        &mut self,
        descriptor: SglDescriptor,
        most: u64,
        memory: &dyn HostMemory,
    ) -> Result<(), Status> {
        let mut left = DESCRIPTORS_MAX;
        let mut next = Some(descriptor);
        while let Some(descriptor) = next.take() {
            match descriptor.identifier {
                SglDescriptor::DATA_BLOCK => self.add_block(descriptor, most)?,
                SglDescriptor::SEGMENT | SglDescriptor::LAST_SEGMENT => {
                    next = self.add_descriptors(descriptor, (&mut left, most), memory)?;
                }
                _ => return Err(Status::SGL_TYPE_INVALID),
            }
        }
        Ok(())
    }

    /// Adds the data of a segment of descriptors. Returns the pointer to the next segment: the last
    /// descriptor of every segment but the last one.
    fn add_descriptors(
        &mut self,
        segment: SglDescriptor,
        (left, most): (&mut u64, u64),
        memory: &dyn HostMemory,
    ) -> Result<Option<SglDescriptor>, Status> {
        let bytes = u64::from(segment.len.get());
        if bytes == 0 || !bytes.is_multiple_of(DESCRIPTOR_BYTES as u64) {
            return Err(Status::INVALID_SGL_SEGMENT);
        }
        let count = bytes / DESCRIPTOR_BYTES as u64;
        *left = left.checked_sub(count).ok_or(Status::INVALID_SGL_COUNT)?;
        for place in 0..count {
            let mut bytes = [0; DESCRIPTOR_BYTES];
            let address = segment.address.get().checked_add(place * DESCRIPTOR_BYTES as u64);
            let address = address.ok_or(Status::DATA_TRANSFER_ERROR)?;
            memory.read(address, &mut bytes).map_err(|_| Status::DATA_TRANSFER_ERROR)?;
            let descriptor = SglDescriptor::read_from_bytes(&bytes).expect("it has 16 bytes");
            match descriptor.identifier {
                SglDescriptor::DATA_BLOCK => self.add_block(descriptor, most)?,
                SglDescriptor::SEGMENT | SglDescriptor::LAST_SEGMENT => {
                    let may_follow =
                        place == count - 1 && segment.identifier == SglDescriptor::SEGMENT;
                    let next = may_follow.then_some(descriptor);
                    return next.map(Some).ok_or(Status::INVALID_SGL_SEGMENT);
                }
                _ => return Err(Status::SGL_TYPE_INVALID),
            }
        }
        // A segment that is not the last one ends with a pointer.
        let is_last = segment.identifier == SglDescriptor::LAST_SEGMENT;
        if is_last { Ok(None) } else { Err(Status::INVALID_SGL_SEGMENT) }
    }

    /// Adds a data block, as far as there are fewer than `most` bytes.
    fn add_block(&mut self, block: SglDescriptor, most: u64) -> Result<(), Status> {
        let bytes = u64::from(block.len.get()).min(most - self.bytes);
        if bytes == 0 { Ok(()) } else { self.add(block.address.get(), bytes) }
    }

    /// Adds a part, which may continue the previous one.
    fn add(&mut self, address: u64, bytes: u64) -> Result<(), Status> {
        if address.checked_add(bytes).is_none() {
            return Err(Status::DATA_TRANSFER_ERROR);
        }
        self.bytes += bytes;
        match self.parts.last_mut() {
            Some(last) if last.address + last.bytes == address => last.bytes += bytes,
            _ => self.parts.push(Segment { address, bytes }),
        }
        Ok(())
    }
}

impl Segment {
    fn len(&self) -> usize {
        to_usize(self.bytes)
    }
}

/// A number of bytes in memory, which fits.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostRam;

    fn parts(entries: [u64; 2], bytes: u64, ram: &HostRam) -> Vec<(u64, u64)> {
        let command = Command::default().with_prp(entries);
        let segments = Segments::of(&command, bytes, ram).expect("the entries are valid");
        assert_eq!(segments.bytes(), bytes);
        segments.parts.iter().map(|part| (part.address, part.bytes)).collect()
    }

    #[test]
    fn pages_that_follow_each_other_are_one_part() {
        let ram = HostRam::default();
        assert_eq!(parts([0x5004, 0x6000], 8_188, &ram), [(0x5004, 8_188)]);
        assert_eq!(parts([0x5000, 0x7000], 8_192, &ram), [(0x5000, 4_096), (0x7000, 4_096)]);
        assert_eq!(parts([0x5000, 0x5000], 5_000, &ram), [(0x5000, 4_096), (0x5000, 904)]);
        let list = ram.allocate(1);
        let pages = [0x6000_u64, 0x7000, 0x9000];
        ram.put(list, &pages.map(u64::to_le_bytes).concat());
        assert_eq!(parts([0x5000, list], 16_000, &ram), [(0x5000, 12_288), (0x9000, 3_712)]);
    }

    #[test]
    fn parts_that_overlap_by_a_byte_stay_apart() {
        let ram = HostRam::default();
        let list = ram.allocate(1);
        let blocks = [(0x5000, 16), (0x500f, 16), (0x501f, 1)];
        let blocks = blocks
            .map(|(address, len)| SglDescriptor::new(SglDescriptor::DATA_BLOCK, address, len));
        ram.put(list, zerocopy::IntoBytes::as_bytes(&blocks));
        let last = SglDescriptor::new(SglDescriptor::LAST_SEGMENT, list, 48);
        let segments = Segments::of(&Command::default().with_sgl(last), 33, &ram);
        let segments = segments.expect("the descriptors are valid");
        let parts: Vec<_> = segments.parts.iter().map(|part| (part.address, part.bytes)).collect();
        assert_eq!(parts, [(0x5000, 16), (0x500f, 17)]);
    }
}
