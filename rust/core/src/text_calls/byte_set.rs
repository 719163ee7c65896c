//! A set of bytes that is searched for in text.

/// The bytes to search for, as a list and as a table with one entry per byte value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteSet {
    bytes: Vec<u8>,
    has: [bool; 256],
}

impl Default for ByteSet {
    fn default() -> ByteSet {
        ByteSet::new(Vec::new())
    }
}

impl ByteSet {
    /// Minimum length in bytes of text that is searched with `memchr`, if the offsets of the found bytes are needed.
    const LONG: usize = 48;
    /// Minimum length in bytes of text that is searched with `memchr`, if the offsets do not matter.
    ///
    /// At this length, `memchr` begins to use vector instructions.
    const VECTOR: usize = 32;

    pub fn new(mut bytes: Vec<u8>) -> ByteSet {
        bytes.sort_unstable();
        bytes.dedup();
        let mut has = [false; 256];
        for byte in &bytes {
            if let Some(slot) = has.get_mut(usize::from(*byte)) {
                *slot = true;
            }
        }
        ByteSet { bytes, has }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub fn has(&self, byte: u8) -> bool {
        self.has.get(usize::from(byte)) == Some(&true)
    }

    /// Returns true if the text contains one of these bytes.
    #[inline(always)]
    pub fn is_in(&self, text: &[u8]) -> bool {
        match text.len() {
            0 => false,
            1 => self.is_at_ends::<1>(text),
            2..4 => self.is_at_ends::<2>(text),
            4..8 => self.is_at_ends::<4>(text),
            _ => self.is_in_longer(text),
        }
    }

    #[inline(never)]
    fn is_in_longer(&self, text: &[u8]) -> bool {
        match text.len() {
            ..16 => self.is_at_ends::<8>(text),
            16..ByteSet::VECTOR => self.is_at_ends::<16>(text),
            _ => !self.all_long(text, |_| false),
        }
    }

    /// Returns true if the first or the last `N` bytes of the text contain one of these bytes.
    ///
    /// If the text has at most `2 * N` bytes, these are all of its bytes, and no further loop is needed.
    #[inline(always)]
    fn is_at_ends<const N: usize>(&self, text: &[u8]) -> bool {
        match (text.first_chunk::<N>(), text.last_chunk::<N>()) {
            (Some(first), Some(last)) => self.has_one_of(first, last),
            _ => false,
        }
    }

    /// Returns true if one of the bytes in either chunk is in the set.
    #[inline(always)]
    pub fn has_one_of<const N: usize>(&self, first: &[u8; N], last: &[u8; N]) -> bool {
        let mut found = false;
        for at in 0..N {
            for bytes in [first, last] {
                found |= bytes.get(at).is_some_and(|byte| self.has(*byte));
            }
        }
        found
    }

    /// Returns true if `holds` returns true for the offset of every byte in the text that is in the set. The offsets
    /// are checked in no particular order.
    pub fn all(&self, text: &[u8], holds: impl Fn(usize) -> bool) -> bool {
        if text.len() >= ByteSet::LONG {
            return self.all_long(text, holds);
        }
        let mut bytes = text.iter().enumerate();
        bytes.all(|(at, byte)| !self.has(*byte) || holds(at))
    }

    fn all_long(&self, text: &[u8], holds: impl Fn(usize) -> bool) -> bool {
        self.bytes.chunks(3).all(|some| match some {
            [one, two, three] => memchr::memchr3_iter(*one, *two, *three, text).all(&holds),
            [one, two] => memchr::memchr2_iter(*one, *two, text).all(&holds),
            some => some
                .iter()
                .all(|one| memchr::memchr_iter(*one, text).all(&holds)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_finds_its_bytes_in_short_and_long_texts() {
        let set = ByteSet::new(b"<[]>\n<".to_vec());
        for length in [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 47, 48, 200] {
            let mut text = vec![b'x'; length];
            assert!(!set.is_in(&text) && set.all(&text, |_| false));
            for at in 0..length {
                text[at] = b'>';
                assert!(set.is_in(&text) && set.all(&text, |found| found == at));
                text[at] = b'x';
            }
        }
    }
}
