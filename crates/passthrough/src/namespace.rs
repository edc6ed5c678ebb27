use crate::error::{KernelError, OpenError};
use crate::ioctl::{self, Kind, Memory};
use base::{Buf, BufMut};
use rustix::io::Errno;
use spec::{Command, Status, Transfer};
use std::fs::File;
use std::path::Path;

/// Excludes the other fields of a status: retry delay, More, Do Not Retry.
const STATUS_MASK: u16 = 0x7ff;

/// A namespace of the kernel. A program must be root to use it, or have `CAP_SYS_ADMIN`.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    id: u32,
}

/// The data of a command.
#[derive(Clone, Debug)]
pub enum Data {
    /// Bytes for the controller; a phantom is sent as zeros.
    Sent(Buf),
    /// Room in bytes for data from the controller.
    Room(u32),
}

/// The completion of a command.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Code and type of the status.
    pub status: Status,
    /// DW0 and DW1 of the completion queue entry.
    pub result: u64,
    /// The command's whole data buffer; the data that the device returned is at its front.
    pub data: Buf,
}

impl Namespace {
    /// Opens the namespace at `path`, such as /dev/ng0n1.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let name = || path.display().to_string();
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| OpenError::Open { path: name(), reason: error.to_string() })?;
        let id = ioctl::namespace_id(&file).map_err(|_| OpenError::NoNamespace { path: name() })?;
        Ok(Self { file, id })
    }

    /// Returns its id, which its commands carry.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Executes a command of its command set.
    pub fn execute(&self, command: &Command, data: Data) -> Result<Ended, KernelError> {
        self.pass(Kind::Io, command, data)
    }

    /// Executes an admin command on its controller.
    pub fn administer(&self, command: &Command, data: Data) -> Result<Ended, KernelError> {
        self.pass(Kind::Admin, command, data)
    }

    fn pass(&self, kind: Kind, command: &Command, data: Data) -> Result<Ended, KernelError> {
        let way = command.transfer();
        let (returned, data) = match data {
            Data::Sent(data) if data.len() > 0 => {
                if way != Transfer::ToController {
                    return Err(KernelError(Errno::INVAL));
                }
                let data = with_bytes(data);
                let memory = Memory::Sent(data.bytes().unwrap_or_default());
                (ioctl::execute(&self.file, kind, command, memory), Buf::phantom(0, 0))
            }
            Data::Room(len) if len > 0 => {
                if way != Transfer::ToHost {
                    return Err(KernelError(Errno::INVAL));
                }
                let mut room = BufMut::unpooled(len as usize);
                let memory = Memory::Filled(room.as_mut());
                let returned = ioctl::execute(&self.file, kind, command, memory);
                (returned, room.freeze())
            }
            _ => (ioctl::execute(&self.file, kind, command, Memory::None), Buf::phantom(0, 0)),
        };
        let (status, result) = returned.map_err(KernelError)?;
        let status = u16::try_from(status).map_err(|_| KernelError(Errno::IO))?;
        Ok(Ended { status: Status(status & STATUS_MASK), result, data })
    }
}

fn with_bytes(data: Buf) -> Buf {
    if data.bytes().is_some() { data } else { BufMut::unpooled(data.len() as usize).freeze() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::StoreOptions;

    #[test]
    fn files_that_are_no_namespace_are_refused() {
        let error = Namespace::open(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/null is no NVMe namespace"), "{error}");
        let error = Namespace::open(Path::new("/dev/ng99n99")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/ng99n99 cannot be opened: No such file"), "{error}");
    }

    impl Namespace {
        /// Returns one on a file whose driver does not know the ioctls.
        pub(crate) fn of_null() -> Self {
            let file = File::options().read(true).write(true).open("/dev/null").unwrap();
            Self { file, id: 1 }
        }
    }

    #[test]
    fn a_command_that_the_kernel_does_not_execute_is_an_error() {
        let sent = Data::Sent(Buf::copy_from(b"value"));
        for (command, data) in [
            (Command::store(1, b"key", 5, StoreOptions::NONE), sent),
            (Command::retrieve(1, b"key", 10), Data::Room(10)),
            (Command::exist(1, b"key"), Data::Room(0)),
        ] {
            assert_eq!(
                Namespace::of_null().execute(&command, data).unwrap_err(),
                KernelError(Errno::NOTTY)
            );
        }
    }

    #[test]
    fn data_that_goes_the_other_way_never_reaches_the_kernel() {
        let sent = Data::Sent(Buf::copy_from(b"value"));
        for (command, data) in [
            (Command::store(1, b"key", 5, StoreOptions::NONE), Data::Room(5)),
            (Command::retrieve(1, b"key", 10), sent.clone()),
            (Command::exist(1, b"key"), Data::Room(1)),
            (Command::delete(1, b"key"), sent),
        ] {
            assert_eq!(
                Namespace::of_null().execute(&command, data).unwrap_err(),
                KernelError(Errno::INVAL)
            );
        }
    }
}
