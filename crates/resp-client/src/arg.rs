use base::Buf;

/// A word of a request: its name, a key, an option or a value.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Bytes to copy.
    Bytes(&'a [u8]),
    /// A value, which is not copied; a phantom is sent as zeros.
    Value(&'a Buf),
}

impl<'a> From<&'a [u8]> for Arg<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Arg<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Bytes(text.as_bytes())
    }
}

impl<'a> From<&'a Buf> for Arg<'a> {
    fn from(value: &'a Buf) -> Self {
        Self::Value(value)
    }
}
