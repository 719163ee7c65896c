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
    /// Minimum length in bytes of text that is searched with `memchr`.
    const LONG: usize = 48;

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

    #[inline]
    pub fn has(&self, byte: u8) -> bool {
        self.has.get(usize::from(byte)) == Some(&true)
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

    /// Returns the first offset of a byte in the set for which `holds` returns true.
    #[inline]
    pub fn find(&self, text: &[u8], holds: impl Fn(usize) -> bool) -> Option<usize> {
        if text.len() >= ByteSet::LONG {
            return self.find_in_long(text, holds);
        }
        let mut bytes = text.iter().enumerate();
        let found = bytes.find(|(at, byte)| self.has(**byte) && holds(*at));
        found.map(|(at, _)| at)
    }

    fn find_in_long(&self, text: &[u8], holds: impl Fn(usize) -> bool) -> Option<usize> {
        let holds = |at: &usize| holds(*at);
        self.bytes.chunks(3).fold(None, |found, some| {
            let text = text.get(..found.unwrap_or(text.len())).unwrap_or_default();
            let earlier = match some {
                [one, two, three] => memchr::memchr3_iter(*one, *two, *three, text).find(holds),
                [one, two] => memchr::memchr2_iter(*one, *two, text).find(holds),
                [one] => memchr::memchr_iter(*one, text).find(holds),
                _ => None,
            };
            earlier.or(found)
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
            assert_eq!(set.find(&text, |_| true), None);
            for at in 0..length {
                text[at] = b'>';
                assert_eq!(set.find(&text, |_| true), Some(at));
                assert_eq!(set.find(&text, |found| found != at), None);
                text[at] = b'x';
            }
        }
    }

    #[test]
    fn the_first_byte_of_all_groups_is_found() {
        let set = ByteSet::new(b"abcdefgh".to_vec());
        for length in [8, 100] {
            let mut text = vec![b'x'; length];
            for (at, byte) in (2..).zip(b"hbegc") {
                text[at] = *byte;
            }
            assert_eq!(set.find(&text, |_| true), Some(2));
            assert_eq!(set.find(&text, |at| at > 2), Some(3));
            assert_eq!(set.find(&text, |at| at > 4), Some(5));
            assert_eq!(set.find(&text, |at| at > 6), None);
        }
    }
}
