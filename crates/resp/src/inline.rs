//! Inline requests: a line of words with spaces between them, and quotes.

/// The words of `line`, appended to `bytes`, as ranges there. `None`: a quote has no end, or
/// something follows it at once.
pub(crate) fn words(line: &[u8], bytes: &mut Vec<u8>) -> Option<Vec<(usize, usize)>> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let blank = rest.iter().take_while(|byte| is_space(byte)).count();
        rest = &rest[blank..];
        if rest.first().is_none_or(|byte| *byte == 0) {
            return Some(words);
        }
        let start = bytes.len();
        loop {
            match *rest {
                [b'"', ref quoted @ ..] => {
                    rest = double_quoted(quoted, bytes)?;
                    if rest.first().is_some_and(|byte| !is_space(byte)) {
                        return None;
                    }
                    break;
                }
                [b'\'', ref quoted @ ..] => {
                    rest = single_quoted(quoted, bytes)?;
                    if rest.first().is_some_and(|byte| !is_space(byte)) {
                        return None;
                    }
                    break;
                }
                [] | [0 | b' ' | b'\t' | b'\r' | b'\n', ..] => break,
                [byte, ref more @ ..] => {
                    bytes.push(byte);
                    rest = more;
                }
            }
        }
        words.push((start, bytes.len()));
    }
}

/// What follows the closing quote.
fn double_quoted<'a>(mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    loop {
        let (byte, more) = match *rest {
            [b'\\', b'x', high, low, ref more @ ..]
                if digit(high).is_some() && digit(low).is_some() =>
            {
                (digit(high)? * 16 + digit(low)?, more)
            }
            [b'\\', escaped, ref more @ ..] => (meaning(escaped), more),
            [b'"', ref more @ ..] => return Some(more),
            [byte, ref more @ ..] => (byte, more),
            [] => return None,
        };
        bytes.push(byte);
        rest = more;
    }
}

const fn meaning(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, more) = match *rest {
            [b'\\', b'\'', ref more @ ..] => (b'\'', more),
            [b'\'', ref more @ ..] => return Some(more),
            [byte, ref more @ ..] => (byte, more),
            [] => return None,
        };
        bytes.push(byte);
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut bytes = Vec::new();
        let words = words(line, &mut bytes)?;
        Some(words.into_iter().map(|(start, end)| bytes[start..end].to_vec()).collect())
    }

    #[test]
    fn lines_are_split_at_spaces_outside_quotes() {
        let expect = |line: &[u8], words: &[&[u8]]| {
            assert_eq!(split(line).unwrap(), words, "{}", line.escape_ascii());
        };
        expect(b"", &[]);
        expect(b"  PING \t", &[b"PING"]);
        expect(b"SET a \"b c\"", &[b"SET", b"a", b"b c"]);
        expect(b"x \"\\x41\\n\\q\\\"\"", &[b"x", b"A\nq\""]);
        expect(b"x 'it\\'s' ''", &[b"x", b"it's", b""]);
        expect(b"x a\"b\"", &[b"x", b"ab"]);
        for unbalanced in [&b"\"a"[..], b"'a", b"\"a\"b", b"'a'b", b"\"a\\"] {
            assert_eq!(split(unbalanced), None, "{}", unbalanced.escape_ascii());
        }
    }
}
