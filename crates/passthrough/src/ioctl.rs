//! What the kernel's UAPI has (`linux/nvme_ioctl.h`), and the only unsafe code.
#![expect(unsafe_code, reason = "an ioctl is given addresses of memory")]

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use spec::{Command, Transfer};
use std::ffi::c_void;
use std::ptr;
use zerocopy::IntoBytes;

const GROUP: u8 = b'N';

/// `NVME_IOCTL_ID`.
const ID: Opcode = opcode::none(GROUP, 0x40);
/// `NVME_IOCTL_ADMIN64_CMD`.
const ADMIN: Opcode = opcode::read_write::<Passed>(GROUP, 0x47);
/// `NVME_IOCTL_IO64_CMD`.
const IO: Opcode = opcode::read_write::<Passed>(GROUP, 0x48);

/// The queue of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Admin,
    Io,
}

/// Memory for the data of a command.
pub(crate) enum Memory<'a> {
    None,
    /// Bytes that the kernel reads.
    Sent(&'a [u8]),
    /// A buffer that the kernel fills.
    Filled(&'a mut [u8]),
}

/// `struct nvme_passthru_cmd64`: up to byte 64 a submission queue entry, with the address and the
/// length of the data in place of the data pointer.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Passed {
    opcode: u8,
    /// The kernel accepts only 0.
    flags: u8,
    reserved: u16,
    nsid: u32,
    dwords_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_len: u32,
    data_len: u32,
    dwords_10_15: [u32; 6],
    /// In milliseconds; 0 for the kernel's own timeout.
    timeout: u32,
    reserved_2: u32,
    result: u64,
}

impl Passed {
    fn new(command: &Command) -> Self {
        let entry = command.as_bytes();
        let dword = |at: usize| {
            let bytes = entry[4 * at..].first_chunk().expect("an entry has 16 dwords");
            u32::from_le_bytes(*bytes)
        };
        Self {
            opcode: entry[0],
            nsid: dword(1),
            dwords_2_3: [dword(2), dword(3)],
            dwords_10_15: std::array::from_fn(|at| dword(10 + at)),
            ..Self::default()
        }
    }
}

/// Executes `command`, and returns the result of the ioctl and that of the command. The direction
/// in the opcode must be that of `memory`.
pub(crate) fn execute(
    file: impl AsFd,
    kind: Kind,
    command: &Command,
    memory: Memory<'_>,
) -> Result<(i32, u64), Errno> {
    let mut passed = Passed::new(command);
    let way = command.transfer();
    let (address, len) = match memory {
        Memory::None => (ptr::null(), 0),
        Memory::Sent(data) => {
            assert!(way == Transfer::ToController, "the kernel would write to what is to be sent");
            (data.as_ptr(), data.len())
        }
        Memory::Filled(data) => {
            assert!(way == Transfer::ToHost, "the kernel would send what is to be filled");
            (data.as_mut_ptr().cast_const(), data.len())
        }
    };
    passed.data_len = u32::try_from(len).expect("a buffer is far smaller than 4 GiB");
    passed.address = address.expose_provenance() as u64;
    let opcode = match kind {
        Kind::Admin => ADMIN,
        Kind::Io => IO,
    };
    // SAFETY: both opcodes take a `nvme_passthru_cmd64`, whose layout `Passed` has (tested against
    // the UAPI), and which is borrowed for the call. Beside it the kernel touches the `data_len`
    // bytes at `address` only, until the call returns: it reads them if bit 0 of the opcode (of the
    // type, for a fabrics command) is set, and writes to them otherwise. `memory` borrows as many
    // for that long, shared in the first case and exclusively in the second: asserted by the bits
    // that the kernel goes by. Nothing is at `metadata`, of no bytes. A file that is no NVMe device
    // knows neither opcode, whose group `N` and size are of NVMe alone.
    let returned = unsafe { ioctl(file, Exchange { opcode, passed: &mut passed })? };
    Ok((returned, passed.result))
}

/// Returns the id of the namespace `file`.
pub(crate) fn namespace_id(file: impl AsFd) -> Result<u32, Errno> {
    // SAFETY: the opcode takes no argument and moves no data.
    let id = unsafe { ioctl(file, Asked)? };
    u32::try_from(id).map_err(|_| Errno::INVAL)
}

/// An ioctl that changes `passed` and returns a number.
struct Exchange<'a> {
    opcode: Opcode,
    passed: &'a mut Passed,
}

// SAFETY: the pointer is that of a `Passed`, which the opcodes that `execute` gives take, and no
// output is read through it: it is looked at when the borrow is back.
unsafe impl Ioctl for Exchange<'_> {
    type Output = i32;

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        ptr::from_mut(self.passed).cast()
    }

    unsafe fn output_from_ptr(returned: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(returned)
    }
}

/// `NVME_IOCTL_ID`.
struct Asked;

// SAFETY: the opcode ignores its argument, and returns a number.
unsafe impl Ioctl for Asked {
    type Output = i32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        ID
    }

    fn as_ptr(&mut self) -> *mut c_void {
        ptr::null_mut()
    }

    unsafe fn output_from_ptr(returned: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(returned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::StoreOptions;
    use std::mem::offset_of;

    #[test]
    fn a_passed_command_lies_as_the_kernel_has_it() {
        // linux/nvme_ioctl.h, struct nvme_passthru_cmd64.
        assert_eq!((size_of::<Passed>(), align_of::<Passed>()), (80, 8));
        for (offset, specified) in [
            (offset_of!(Passed, opcode), 0),
            (offset_of!(Passed, flags), 1),
            (offset_of!(Passed, reserved), 2),
            (offset_of!(Passed, nsid), 4),
            (offset_of!(Passed, dwords_2_3), 8),
            (offset_of!(Passed, metadata), 16),
            (offset_of!(Passed, address), 24),
            (offset_of!(Passed, metadata_len), 32),
            (offset_of!(Passed, data_len), 36),
            (offset_of!(Passed, dwords_10_15), 40),
            (offset_of!(Passed, timeout), 64),
            (offset_of!(Passed, reserved_2), 68),
            (offset_of!(Passed, result), 72),
        ] {
            assert_eq!(offset, specified);
        }
    }

    #[test]
    fn ioctls_have_the_kernels_numbers() {
        // _IO('N', 0x40), and _IOWR('N', 0x47 and 0x48, struct nvme_passthru_cmd64): direction in
        // bits 31:30, size in 29:16, group in 15:8.
        assert_eq!(ID, 0x4e40);
        assert_eq!(ADMIN, 0xc050_4e47);
        assert_eq!(IO, 0xc050_4e48);
    }

    #[test]
    fn a_store_is_passed_field_by_field() {
        // KV 1.0d, Store command: the key in CDW2, 3, 14 and 15.
        let options = StoreOptions::MUST_NOT_EXIST;
        let command = Command::store(7, b"0123456789abcdef", 0x1234, options).with_command_id(9);
        let passed = Passed::new(&command);
        assert_eq!((passed.opcode, passed.flags, passed.reserved, passed.nsid), (1, 0, 0, 7));
        assert_eq!(passed.dwords_2_3, [0x3332_3130, 0x3736_3534]);
        assert_eq!(passed.dwords_10_15, [0x1234, 0x0210, 0, 0, 0x6261_3938, 0x6665_6463]);
        assert_eq!((passed.metadata, passed.metadata_len, passed.timeout), (0, 0, 0));
    }
}
