use arbitrary::Unstructured;

/// The bytes of a run, read as choices; each choice consumes some. After the last byte every choice
/// is its first, and every number zero.
pub(crate) struct Input<'a>(Unstructured<'a>);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// True when all bytes are consumed.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0.int_in_range(0..=end - 1).unwrap_or(0)
    }

    /// True in one of `cases` cases, and never after the last byte.
    pub(crate) fn one_in(&mut self, cases: u32) -> bool {
        self.below(cases) + 1 == cases
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *self.0.choose(from).unwrap_or(&from[0])
    }

    /// Returns a number of a kind that fields have: small, of all bits, or next to a power of two.
    pub(crate) fn number(&mut self) -> u32 {
        match self.below(8) {
            0 | 1 => self.below(4),
            2 | 3 => self.byte().into(),
            4 => self.0.arbitrary::<u16>().unwrap_or(0).into(),
            5 => self.0.arbitrary().unwrap_or(0),
            6 => (1_u32 << self.below(32)).wrapping_add(self.below(3)).wrapping_sub(1),
            _ => u32::MAX - self.below(4),
        }
    }

    /// Returns a number as [`Self::number`], of 16 bits.
    pub(crate) fn half(&mut self) -> u16 {
        let [low, high, ..] = self.number().to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// Returns up to `max` bytes of the input.
    pub(crate) fn bytes(&mut self, max: u32) -> Vec<u8> {
        let len = self.below(max + 1) as usize;
        let len = len.min(self.0.len());
        self.0.bytes(len).unwrap_or_default().to_vec()
    }

    /// Returns an array of bytes of the input, with zeros after the last one.
    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let len = N.min(self.0.len());
        bytes[..len].copy_from_slice(self.0.bytes(len).unwrap_or_default());
        bytes
    }

    /// Returns `len` bytes: some of the input, repeated.
    pub(crate) fn filling(&mut self, len: u32) -> Vec<u8> {
        let mut pattern = self.bytes(32);
        if pattern.is_empty() {
            pattern.push(7);
        }
        pattern.into_iter().cycle().take(len as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_chooses_the_first_of_everything() {
        let mut input = Input::new(&[]);
        assert!(input.is_over());
        assert_eq!((input.byte(), input.below(9), input.number()), (0, 0, 0));
        assert_eq!((input.one_in(2), input.pick(&[5, 6])), (false, 5));
        assert_eq!((input.bytes(9).len(), input.array::<2>()), (0, [0, 0]));
        assert_eq!(input.filling(3), [7, 7, 7]);
    }

    #[test]
    fn a_choice_uses_bytes_up() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut input = Input::new(&bytes);
        let mut numbers = Vec::new();
        while !input.is_over() {
            numbers.push(input.number());
        }
        assert!(numbers.len() > 30 && numbers.iter().any(|number| *number > 1 << 16));
    }
}
