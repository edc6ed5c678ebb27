use std::io::{ErrorKind, IoSlice, Write};
use std::net::TcpStream;

/// Sends all of `parts`, spinning while there is no room. Calls `called` after each system call,
/// with true if it sent something.
pub(super) fn write_all(
    mut stream: &TcpStream,
    mut parts: &mut [IoSlice<'_>],
    mut called: impl FnMut(bool),
) {
    while !parts.is_empty() {
        let batch = parts.len().min(1_024);
        match stream.write_vectored(&parts[..batch]) {
            Ok(count) => {
                IoSlice::advance_slices(&mut parts, count);
                called(true);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::hint::spin_loop();
                called(false);
            }
            Err(_) => return,
        }
    }
}
