use crate::output::Failure;
use base::Key;
use base::limits::KEY_BYTES_INLINE;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Notation of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// As text; characters that are not printable are escaped.
    Text,
    /// Two digits for each byte.
    Hex,
}

impl Spelling {
    pub(super) fn of(is_hex: bool) -> Self {
        if is_hex { Self::Hex } else { Self::Text }
    }

    /// Parses a key.
    pub(super) fn parse(self, text: &OsStr) -> Result<Key, Failure> {
        let bytes = match self {
            Self::Text => text.as_bytes().to_vec(),
            Self::Hex => bytes(text.as_bytes()).ok_or_else(|| {
                let text = text.as_bytes().escape_ascii();
                Failure::Refused(format!(
                    "a hexadecimal key must have two digits per byte, as 6b6579, not \"{text}\""
                ))
            })?,
        };
        Key::new(&bytes).ok().filter(|key| !key.is_long()).ok_or_else(|| {
            Failure::Refused(format!(
                "a key of an NVMe namespace must have 1 to {KEY_BYTES_INLINE} bytes, not {}",
                bytes.len()
            ))
        })
    }

    /// Returns `key` for a line of its own.
    pub(super) fn line(self, key: &Key) -> String {
        let bytes = key.as_bytes();
        let text = match self {
            Self::Hex => bytes.iter().copied().map(hex).collect(),
            Self::Text => shown(bytes),
        };
        text + "\n"
    }
}

fn bytes(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |&[high, low]: &[u8; 2]| Some(digit(high)? << 4 | digit(low)?);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

/// Returns `bytes` as text; different bytes give different text. A printable character stands for
/// itself.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' {
                text.push_str("\\\\");
            } else if character.is_control() {
                push_escaped(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(character);
            }
        }
        push_escaped(&mut text, chunk.invalid());
    }
    text
}

fn push_escaped(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push_str("\\x");
        text.push_str(&hex(*byte));
    }
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}")
}

/// Returns `key` for use in a sentence.
pub(super) fn quoted(key: &Key) -> String {
    format!("\"{}\"", shown(key.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(spelling: Spelling, text: &[u8]) -> String {
        match spelling.parse(OsStr::from_bytes(text)) {
            Err(Failure::Refused(sentence)) => sentence,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_are_bytes_or_their_digits() {
        let text = Spelling::Text.parse(OsStr::from_bytes(b"k\xff y")).unwrap();
        assert_eq!(text.as_bytes(), b"k\xff y");
        let hex = Spelling::Hex.parse(OsStr::new("00fFa9")).unwrap();
        assert_eq!(hex.as_bytes(), [0, 0xff, 0xa9]);
        assert_eq!(Spelling::Hex.line(&hex), "00ffa9\n");
    }

    #[test]
    fn wrong_keys_are_refused() {
        assert!(refusal(Spelling::Text, b"").contains("1 to 16 bytes, not 0"));
        assert!(refusal(Spelling::Text, &[b'k'; 17]).contains("1 to 16 bytes, not 17"));
        assert!(refusal(Spelling::Text, &[b'k'; 300]).contains("1 to 16 bytes, not 300"));
        assert!(refusal(Spelling::Hex, &[b'0'; 34]).contains("1 to 16 bytes, not 17"));
        for text in ["0", "0g", "0x00", "k"] {
            assert!(refusal(Spelling::Hex, text.as_bytes()).contains("two digits per byte"));
        }
    }

    #[test]
    fn a_line_tells_any_key_from_others() {
        let line = |bytes: &[u8]| Spelling::Text.line(&Key::new(bytes).unwrap());
        assert_eq!(line("user \u{e9}".as_bytes()), "user \u{e9}\n");
        assert_eq!(line(b"a\nb\\n\x00\xff"), "a\\x0ab\\\\n\\x00\\xff\n");
        assert_eq!(line("\u{85}".as_bytes()), "\\xc2\\x85\n");
    }
}
