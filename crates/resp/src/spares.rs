use std::sync::{Mutex, PoisonError};

/// Buffers that are kept, and the longest of them: 16 MiB at most.
const SPARES_MAX: usize = 128;
const SPARE_BYTES_MAX: usize = 128 << 10;

/// Long buffers that connections leave to each other while they wait for their clients.
///
/// A client may do nothing for days, so it keeps none; and to have the allocator take and give one
/// for each wait of a client that works would cost it a quarter of its speed, to fill them with
/// zeros most of that.
#[derive(Debug, Default)]
pub(crate) struct Spares(Mutex<Vec<Vec<u8>>>);

impl Spares {
    /// The buffer that was left last, which is of any length and content; a new one if there is
    /// none.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Leaves a buffer to others, or to the allocator.
    pub(crate) fn leave(&self, buffer: Vec<u8>) {
        let mut spares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buffer.capacity() <= SPARE_BYTES_MAX && spares.len() < SPARES_MAX {
            spares.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_goes_from_one_to_the_next_unless_it_is_too_long() {
        let spares = Spares::default();
        spares.leave(vec![7; 1_000]);
        assert_eq!(spares.take(), [7; 1_000]);
        spares.leave(vec![0; SPARE_BYTES_MAX + 1]);
        assert_eq!(spares.take().capacity(), 0);
        (0..2 * SPARES_MAX).for_each(|_| spares.leave(vec![1]));
        let kept = (0..2 * SPARES_MAX).filter(|_| spares.take().capacity() > 0).count();
        assert_eq!(kept, SPARES_MAX);
    }
}
