use std::fmt;
use std::str::FromStr;

/// The level of each page of a block.
///
/// Written as digits, one for each page from the first; those in parentheses at the end repeat for
/// the rest of the block. `(01)` alternates between two levels, `00000001001(0011)` is the map of
/// the drive that FEMU was checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMap {
    digits: [u8; Self::DIGITS_MAX],
    /// The number of digits, and of those before the parenthesis.
    len: u8,
    head: u8,
}

/// Error of text that is no [`PageMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMapError;

impl fmt::Display for PageMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a page map is at most 64 digits from 0 to 3, of which those at the end that repeat \
             stand in parentheses, as 0001(0011)",
        )
    }
}

impl std::error::Error for PageMapError {}

impl PageMap {
    /// Most levels: a cell of four bits has as many pages.
    pub const LEVELS_MAX: usize = 4;
    /// Most digits.
    const DIGITS_MAX: usize = 64;

    /// Returns a map in which consecutive pages cycle through `levels` levels.
    pub const fn interleaved(levels: u8) -> Self {
        assert!(1 <= levels && levels as usize <= Self::LEVELS_MAX, "there are 1 to 4 levels");
        let mut digits = [0; Self::DIGITS_MAX];
        let mut level = 0;
        while level < levels {
            digits[level as usize] = level;
            level += 1;
        }
        Self { digits, len: levels, head: 0 }
    }

    /// Returns the level of page `page`, from 0.
    pub const fn level(&self, page: u32) -> usize {
        let (head, len) = (self.head as u32, self.len as u32);
        let at = if page < head { page } else { head + (page - head) % (len - head) };
        self.digits[at as usize] as usize
    }

    /// Returns one more than the highest level of a page.
    pub fn levels(&self) -> usize {
        let used = &self.digits[..usize::from(self.len)];
        used.iter().max().map_or(0, |level| usize::from(*level) + 1)
    }
}

impl FromStr for PageMap {
    type Err = PageMapError;

    fn from_str(text: &str) -> Result<Self, PageMapError> {
        let (head, rest) = text.split_once('(').ok_or(PageMapError)?;
        let repeated = rest.strip_suffix(')').ok_or(PageMapError)?;
        let len = head.len() + repeated.len();
        if repeated.is_empty() || len > Self::DIGITS_MAX {
            return Err(PageMapError);
        }
        let mut digits = [0; Self::DIGITS_MAX];
        for (digit, byte) in digits.iter_mut().zip(head.bytes().chain(repeated.bytes())) {
            if !(b'0'..=b'3').contains(&byte) {
                return Err(PageMapError);
            }
            *digit = byte - b'0';
        }
        let count = |digits| u8::try_from(digits).map_err(|_| PageMapError);
        Ok(Self { digits, len: count(len)?, head: count(head.len())? })
    }
}
