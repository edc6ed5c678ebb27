//! The bytes of a node of a tree: how many entries there are, and each after the other. Numbers are
//! little endian.
//!
//! | | |
//! |---|---|
//! | height (1), entries (4) | 0 is a leaf |
//! | of a leaf: bytes of the key (2), of the value (4), key, value | in the order of keys |
//! | else: bytes of the first key (2), number of the node (8), entries below it (8), first key | |

use base::{Buf, BufMut};

const HEAD_BYTES: usize = 5;
const ENTRY_BYTES: usize = 6;
const CHILD_BYTES: usize = 18;

/// A key with its value, in a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Buf,
    pub(crate) value: Buf,
}

/// A node below another one.
#[derive(Clone, Debug)]
pub(super) struct Child {
    /// No key below it is less, unless it is the first child.
    pub(super) first: Buf,
    pub(super) id: u64,
    /// Entries in the leaves below it.
    pub(super) count: u64,
}

/// A node of a tree.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Vec<Entry>),
    Inner { height: u8, children: Vec<Child> },
}

/// The bytes of a key or a value.
pub(super) fn bytes(buf: &Buf) -> &[u8] {
    buf.bytes().unwrap_or_default()
}

impl Entry {
    pub(crate) fn len(&self) -> usize {
        ENTRY_BYTES + self.key.len() as usize + self.value.len() as usize
    }
}

impl Child {
    fn len(&self) -> usize {
        CHILD_BYTES + self.first.len() as usize
    }
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Vec::new())
    }
}

impl Node {
    /// 0 of a leaf.
    pub(super) const fn height(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner { height, .. } => *height,
        }
    }

    /// Entries in it, or in the leaves below it.
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Leaf(entries) => entries.len() as u64,
            Self::Inner { children, .. } => children.iter().map(|child| child.count).sum(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(entries) => entries.is_empty(),
            Self::Inner { children, .. } => children.is_empty(),
        }
    }

    /// The least key that is known to be in it.
    pub(super) fn first(&self) -> Buf {
        let first = match self {
            Self::Leaf(entries) => entries.first().map(|entry| &entry.key),
            Self::Inner { children, .. } => children.first().map(|child| &child.first),
        };
        first.cloned().unwrap_or_else(|| Buf::copy_from(&[]))
    }

    /// Of an inner node, the nodes below it.
    pub(super) fn children(&self) -> &[Child] {
        match self {
            Self::Leaf(_) => &[],
            Self::Inner { children, .. } => children,
        }
    }

    /// Bytes of it when it is written.
    pub(super) fn len(&self) -> usize {
        let entries: usize = match self {
            Self::Leaf(entries) => entries.iter().map(Entry::len).sum(),
            Self::Inner { children, .. } => children.iter().map(Child::len).sum(),
        };
        HEAD_BYTES + entries
    }

    /// Keeps about half of it, and returns the rest, until nothing has more than `max` bytes that
    /// has more than one entry.
    pub(super) fn split(&mut self, max: usize) -> Vec<Self> {
        if self.len() <= max {
            return Vec::new();
        }
        let half = self.len() / 2;
        let upper = match self {
            Self::Leaf(entries) => match middle(entries.iter().map(Entry::len), half) {
                Some(middle) => Self::Leaf(entries.split_off(middle)),
                None => return Vec::new(),
            },
            Self::Inner { height, children } => {
                match middle(children.iter().map(Child::len), half) {
                    Some(middle) => {
                        Self::Inner { height: *height, children: children.split_off(middle) }
                    }
                    None => return Vec::new(),
                }
            }
        };
        let mut parts = self.split(max);
        parts.push(upper);
        let last = parts.len() - 1;
        let more = parts[last].split(max);
        parts.extend(more);
        parts
    }

    /// Takes all that `before`, whose keys are less, has.
    pub(super) fn prepend(&mut self, before: Self) {
        match (self, before) {
            (Self::Leaf(entries), Self::Leaf(before)) => drop(entries.splice(..0, before)),
            (Self::Inner { children, .. }, Self::Inner { children: before, .. }) => {
                drop(children.splice(..0, before));
            }
            _ => unreachable!("neighbours have one height"),
        }
    }

    /// Writes it to the first bytes of `out`, and returns those left.
    pub(super) fn write<'a>(&self, out: &'a mut [u8]) -> &'a mut [u8] {
        let out = put(out, &[self.height()]);
        match self {
            Self::Leaf(entries) => {
                let out = put(out, &length(entries.len()).to_le_bytes());
                entries.iter().fold(out, |out, Entry { key, value }| {
                    let out = put(out, &key_length(key).to_le_bytes());
                    let out = put(out, &value.len().to_le_bytes());
                    put(put(out, bytes(key)), bytes(value))
                })
            }
            Self::Inner { children, .. } => {
                let out = put(out, &length(children.len()).to_le_bytes());
                children.iter().fold(out, |out, Child { first, id, count }| {
                    let out = put(out, &key_length(first).to_le_bytes());
                    put(put(put(out, &id.to_le_bytes()), &count.to_le_bytes()), bytes(first))
                })
            }
        }
    }

    /// A value of its bytes alone.
    pub(super) fn value(&self) -> Buf {
        let mut value = BufMut::unpooled(self.len());
        self.write(value.as_mut());
        value.freeze()
    }

    /// Reads what [`Self::write`] wrote; `None` when it is no such thing.
    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let [height] = from.array()?;
        let entries = u32::from_le_bytes(from.array()?);
        if height > 0 {
            let children = (0..entries).map(|_| {
                let len = u16::from_le_bytes(from.array()?);
                let (id, count) = (from.number()?, from.number()?);
                Some(Child { first: from.part(len.into())?, id, count })
            });
            return Some(Self::Inner { height, children: children.collect::<Option<_>>()? });
        }
        let entries = (0..entries).map(|_| {
            let len = u16::from_le_bytes(from.array()?);
            let value_len = u32::from_le_bytes(from.array()?);
            Some(Entry { key: from.part(len.into())?, value: from.part(value_len)? })
        });
        Some(Self::Leaf(entries.collect::<Option<_>>()?))
    }
}

/// Where the second half begins of what has these lengths, if it has two parts.
fn middle(lengths: impl ExactSizeIterator<Item = usize>, half: usize) -> Option<usize> {
    let last = lengths.len().checked_sub(1).filter(|last| *last > 0)?;
    let mut sum = 0;
    let before = lengths.take_while(|len| {
        sum += len;
        sum <= half
    });
    Some(before.count().clamp(1, last))
}

fn length(count: usize) -> u32 {
    u32::try_from(count).expect("a node has few entries")
}

fn key_length(key: &Buf) -> u16 {
    u16::try_from(key.len()).expect("keys of trees are short")
}

fn put<'a>(out: &'a mut [u8], bytes: &[u8]) -> &'a mut [u8] {
    let (here, left) = out.split_at_mut(bytes.len());
    here.copy_from_slice(bytes);
    left
}

/// Reads a value from its start to its end.
pub(super) struct Reader<'a> {
    value: &'a Buf,
    at: u32,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(value: &'a Buf) -> Self {
        Self { value, at: 0 }
    }

    /// The next `len` bytes, without a copy.
    pub(super) fn part(&mut self, len: u32) -> Option<Buf> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.value.len())?;
        let part = self.value.slice(self.at..end);
        self.at = end;
        Some(part)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = *bytes(self.value).get(self.at as usize..)?.first_chunk()?;
        self.at += u32::try_from(N).expect("a few bytes");
        Some(array)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}
