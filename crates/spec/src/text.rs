use crate::is_qualified_name;
use core::fmt;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// ASCII text in a field of `N` bytes, followed by spaces (Base 2.1, ASCII strings).
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// The field that says `text`: printable ASCII that fits it.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(bytes.len() <= N, "a text of {} bytes fits no field of {N}", bytes.len());
        let printable = bytes.iter().all(|byte| (0x20..=0x7e).contains(byte));
        assert!(printable, "a text field is printable ASCII");
        let mut field = [b' '; N];
        field[..bytes.len()].copy_from_slice(bytes);
        Self(field)
    }

    /// What it says, without the spaces or zeros behind it; `None` if that is not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        let end = self.0.iter().rposition(|&byte| byte != b' ' && byte != 0).map_or(0, |at| at + 1);
        str::from_utf8(&self.0[..end]).ok()
    }
}

impl<const N: usize> Default for Text<N> {
    /// A field of zeros, as in a structure that was not filled in.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.trim_ascii_end().escape_ascii())
    }
}

/// The longest NVMe Qualified Name in bytes (Base 2.1, NVMe Qualified Names).
pub const QUALIFIED_NAME_BYTES_MAX: usize = 223;

const QUALIFIED_NAME_FIELD: usize = 256;

/// The name of a host or of a subsystem, as structures have it: UTF-8 in 256 bytes, ended by a zero
/// (Base 2.1, NVMe Qualified Names).
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct QualifiedName([u8; QUALIFIED_NAME_FIELD]);

impl QualifiedName {
    /// The well-known name of every discovery subsystem.
    pub const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";

    /// The field with this name, of at most [`QUALIFIED_NAME_BYTES_MAX`] bytes and no zero.
    pub fn new(name: &str) -> Self {
        assert!(
            name.len() <= QUALIFIED_NAME_BYTES_MAX,
            "a qualified name has at most {QUALIFIED_NAME_BYTES_MAX} bytes"
        );
        assert!(!name.contains('\0'), "a qualified name has no zero in it");
        let mut field = [0; QUALIFIED_NAME_FIELD];
        field[..name.len()].copy_from_slice(name.as_bytes());
        Self(field)
    }

    /// The name; `None` if there is none of 1 to [`QUALIFIED_NAME_BYTES_MAX`] bytes before the
    /// first zero, or if it is not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        if !(1..=QUALIFIED_NAME_BYTES_MAX).contains(&end) {
            return None;
        }
        str::from_utf8(&self.0[..end]).ok()
    }

    /// The name if it has [the format of one](crate::is_qualified_name).
    pub fn valid(&self) -> Option<&str> {
        self.as_str().filter(|name| is_qualified_name(name))
    }

    /// True when there is no name: the field begins with its zero.
    pub const fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl Default for QualifiedName {
    /// No name.
    fn default() -> Self {
        Self::new_zeroed()
    }
}

impl fmt::Debug for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        write!(f, "\"{}\"", self.0[..end].escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn text_is_followed_by_spaces() {
        assert_eq!(Text::<8>::new("1.2").as_bytes(), b"1.2     ");
        assert_eq!(Text::<3>::new("abc").as_bytes(), b"abc");
        for text in ["", "a", " a b", "abcdefgh"] {
            assert_eq!(Text::<8>::new(text).as_str(), Some(text));
        }
    }

    #[test]
    fn text_of_other_makers_ends_with_zeros_or_says_nothing() {
        assert_eq!(Text(*b"4420\0\0\0\0").as_str(), Some("4420"));
        assert_eq!(Text(*b"4420 \0 \0").as_str(), Some("4420"));
        assert_eq!(Text([0; 8]).as_str(), Some(""));
        assert_eq!(Text([0xff; 8]).as_str(), None);
        assert_eq!(format!("{:?}", Text(*b"a\xff  ")), r#""a\xff""#);
    }

    #[test]
    #[should_panic(expected = "a text of 9 bytes fits no field of 8")]
    fn text_that_is_too_long_is_refused() {
        let _ = Text::<8>::new("123456789");
    }

    #[test]
    #[should_panic(expected = "a text field is printable ASCII")]
    fn text_that_is_not_printable_is_refused() {
        let _ = Text::<8>::new("a\nb");
    }

    #[test]
    fn a_name_is_ended_by_a_zero() {
        let mut expected = [0; 256];
        expected[..36].copy_from_slice(b"nqn.2014-08.org.nvmexpress.discovery");
        let name = QualifiedName::new(QualifiedName::DISCOVERY);
        assert_eq!(name.as_bytes(), expected);
        assert_eq!(name.as_str(), Some(QualifiedName::DISCOVERY));
        assert_eq!(format!("{name:?}"), format!("{:?}", QualifiedName::DISCOVERY));
    }

    #[test]
    fn a_field_without_a_name_has_none() {
        let mut field = [b'n'; 256];
        assert_eq!(QualifiedName(field).as_str(), None, "no zero");
        field[224] = 0;
        assert_eq!(QualifiedName(field).as_str(), None, "224 bytes");
        field[223] = 0;
        assert_eq!(QualifiedName(field).as_str().map(str::len), Some(223));
        field[0] = 0xff;
        assert_eq!(QualifiedName(field).as_str(), None, "not UTF-8");
        field[0] = 0;
        assert_eq!(QualifiedName(field).as_str(), None, "no bytes");
    }

    #[test]
    fn only_a_name_of_the_format_is_valid() {
        let name = QualifiedName::new(QualifiedName::DISCOVERY);
        assert_eq!((name.valid(), name.is_empty()), (Some(QualifiedName::DISCOVERY), false));
        let name = QualifiedName::new("foo");
        assert_eq!((name.valid(), name.is_empty()), (None, false));
        let mut field = [0; 256];
        assert_eq!((QualifiedName(field).valid(), QualifiedName(field).is_empty()), (None, true));
        field[..36].copy_from_slice(QualifiedName::DISCOVERY.as_bytes());
        field[35] = 0xff;
        assert_eq!(QualifiedName(field).valid(), None, "not UTF-8");
        let mut field = [b'n'; 256];
        field[..36].copy_from_slice(QualifiedName::DISCOVERY.as_bytes());
        assert_eq!(QualifiedName(field).valid(), None, "no zero");
        assert!(!QualifiedName(field).is_empty());
    }

    #[test]
    #[should_panic(expected = "a qualified name has at most 223 bytes")]
    fn a_name_that_is_too_long_is_refused() {
        let _ = QualifiedName::new(str::from_utf8(&[b'n'; 224]).unwrap());
    }
}
