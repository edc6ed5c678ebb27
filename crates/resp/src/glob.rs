//! Patterns of keys and names.

/// Whether all of `text` is like `pattern`: `?` stands for any byte, `*` for any run of them,
/// `[a-c]` and `[^a]` for one of some, and a backslash takes the next byte as it is.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where to go on when what followed the last star does not fit: one byte later.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, seen));
            at += 1;
            continue;
        }
        if at == pattern.len() && seen == text.len() {
            return true;
        }
        let next = text.get(seen).and_then(|byte| one(&pattern[at..], *byte));
        match (next, star) {
            (Some(len), _) => (at, seen) = (at + len, seen + 1),
            (None, Some((after, from))) if from < text.len() => {
                star = Some((after, from + 1));
                (at, seen) = (after, from + 1);
            }
            (None, _) => return false,
        }
    }
}

/// How long the part of `pattern` is that stands for one byte, if `byte` is like it.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ref rest @ ..] => {
            let (is_in, len) = class(rest, byte);
            is_in.then_some(1 + len)
        }
        [b'\\', next, ..] => (next == byte).then_some(2),
        [first, ..] => (first == byte).then_some(1),
    }
}

/// Whether `byte` is of the class that `rest` begins with, behind its bracket, and how long that
/// is.
fn class(rest: &[u8], byte: u8) -> (bool, usize) {
    let is_not = rest.first() == Some(&b'^');
    let (mut at, mut is_in) = (usize::from(is_not), false);
    loop {
        match rest[at.min(rest.len())..] {
            [] => break,
            [b'\\', next, ..] => {
                is_in |= next == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                is_in |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [first, ..] => {
                is_in |= first == byte;
                at += 1;
            }
        }
    }
    (is_in != is_not, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_they_say() {
        let all = [
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hallo", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("*a*b*", "xaxxbx", true),
            ("*a*b", "xaxxbx", false),
            ("h[ae]llo", "hello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("[\\]]", "]", true),
            ("a[", "a", false),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, text, expected) in all {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_more_than_some_time() {
        let text = vec![b'a'; 10_000];
        assert!(!matches(&b"*a".repeat(50).iter().chain(b"b").copied().collect::<Vec<_>>(), &text));
    }
}
