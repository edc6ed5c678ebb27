use base::{Buf, Rng};
use pcie::HostRam;
use spec::{Command, SglDescriptor};

const PAGE: u64 = 4_096;

/// Where the data of a command is in a host's memory.
pub(crate) struct PcieData {
    /// The address of the first byte.
    address: u64,
    /// Its pages, and those of a PRP list.
    pages: Vec<(u64, u64)>,
}

impl PcieData {
    /// No data.
    pub(crate) fn none() -> Self {
        Self { address: 0, pages: Vec::new() }
    }

    /// Places bytes in new memory. Returns the command with a pointer to them: PRP entries, or an
    /// SGL.
    pub(crate) fn place(
        ram: &HostRam,
        command: Command,
        bytes: &[u8],
        rng: &mut Rng,
    ) -> (Command, Self) {
        let is_sgl = rng.below(3) == 0;
        // PRP entries point to dwords.
        let offset = if is_sgl { rng.below(PAGE) } else { rng.below(PAGE / 4) * 4 };
        let count = (offset + bytes.len() as u64).div_ceil(PAGE).max(1);
        let first = ram.allocate(count);
        let (address, mut pages) = (first + offset, vec![(first, count)]);
        ram.put(address, bytes);
        let command = if is_sgl {
            let len = u32::try_from(bytes.len()).expect("a value is short");
            command.with_sgl(SglDescriptor::new(SglDescriptor::DATA_BLOCK, address, len))
        } else {
            let second = match count {
                1 => 0,
                2 => first + PAGE,
                _ => {
                    let list = ram.allocate(1);
                    assert!(count <= PAGE / 8, "one page has the list");
                    let entries = (1..count).flat_map(|at| (first + at * PAGE).to_le_bytes());
                    ram.put(list, &entries.collect::<Vec<u8>>());
                    pages.push((list, 1));
                    list
                }
            };
            command.with_prp([address, second])
        };
        (command, Self { address, pages })
    }

    /// Returns what the device has left there.
    pub(crate) fn read(&self, ram: &HostRam, len: usize) -> Buf {
        Buf::copy_from(&ram.get(self.address, len))
    }

    /// Gives its memory back.
    pub(crate) fn free(&self, ram: &HostRam) {
        self.pages.iter().for_each(|&(address, pages)| ram.unmap(address, pages));
    }
}
