//! Formats paths as text; paths may be any bytes.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns `path` in one line, with characters escaped that are not printable.
pub(crate) fn shown(path: &Path) -> String {
    match path.to_str() {
        None => path.as_os_str().as_bytes().escape_ascii().to_string(),
        Some(text) => text.chars().flat_map(escaped).collect(),
    }
}

/// Returns [`shown`], cut at the front to `columns`.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    let kept = text.chars().skip(count + 3 - columns);
    "...".chars().chain(kept).collect()
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let (plain, escape) = if character.is_control() {
        (None, Some(character.escape_default()))
    } else {
        (Some(character), None)
    };
    plain.into_iter().chain(escape.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_path_of_any_bytes_is_one_line_of_text() {
        for (bytes, text) in [
            (&b"a/b c"[..], "a/b c"),
            (b"a\nb", "a\\nb"),
            ("\u{e9}".as_bytes(), "\u{e9}"),
            (b"a\xffb", "a\\xffb"),
        ] {
            assert_eq!(shown(Path::new(OsStr::from_bytes(bytes))), text);
        }
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefghi", 8), "...efghi");
    }
}
