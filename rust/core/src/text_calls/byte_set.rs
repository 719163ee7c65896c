//! Sets of bytes and of byte pairs to search for in text.

/// Number of bits in one word of `BytePairs`.
const BITS: usize = 64;

/// Set of bytes to search for.
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
    /// Minimum length of text that is searched with `memchr`, if the set contains only a few bytes.
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

    /// Returns true if the text contains one of these bytes.
    #[inline]
    pub fn is_in(&self, text: &[u8]) -> bool {
        if text.len() < ByteSet::LONG {
            return text.iter().fold(false, |has, byte| has | self.has(*byte));
        }
        self.is_in_long(text)
    }

    #[inline(never)]
    fn is_in_long(&self, text: &[u8]) -> bool {
        !self.all_long(text, |_| false)
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

    /// Calls `found` with the offsets of the bytes that are in the set, and returns the smallest offset that `found`
    /// returns. `found` must not return an offset before the one that it receives.
    pub fn least(&self, text: &[u8], found: impl Fn(usize) -> Option<usize>) -> Option<usize> {
        let mut least = None;
        if text.len() < ByteSet::LONG {
            let offsets = text.iter().enumerate();
            let offsets = offsets.filter(|(_, byte)| self.has(**byte));
            note_least(&mut least, offsets.map(|(at, _)| at), &found);
            return least;
        }
        for some in self.bytes.chunks(3) {
            match some {
                [one, two, three] => {
                    let offsets = memchr::memchr3_iter(*one, *two, *three, text);
                    note_least(&mut least, offsets, &found);
                }
                [one, two] => {
                    note_least(&mut least, memchr::memchr2_iter(*one, *two, text), &found);
                }
                some => {
                    for one in some {
                        note_least(&mut least, memchr::memchr_iter(*one, text), &found);
                    }
                }
            }
        }
        least
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

fn note_least(
    least: &mut Option<usize>,
    offsets: impl Iterator<Item = usize>,
    found: impl Fn(usize) -> Option<usize>,
) {
    for at in offsets {
        if least.is_some_and(|least| least <= at) {
            return;
        }
        let such = found(at);
        if such.is_some() && least.is_none_or(|least| such < Some(least)) {
            *least = such;
        }
    }
}

/// Set of byte pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BytePairs {
    words: Vec<u64>,
}

impl Default for BytePairs {
    fn default() -> BytePairs {
        BytePairs {
            words: vec![0; (1 << 16) / BITS],
        }
    }
}

impl BytePairs {
    /// Adds a pair. `None` as the second byte stands for every byte.
    pub fn insert(&mut self, first: u8, second: Option<u8>) {
        let seconds = second.map_or(0..=u8::MAX, |second| second..=second);
        for second in seconds {
            let position = position(first, second);
            if let Some(word) = self.words.get_mut(position / BITS) {
                *word |= 1 << (position % BITS);
            }
        }
    }

    #[inline]
    pub fn has(&self, first: u8, second: u8) -> bool {
        let position = position(first, second);
        let word = self.words.get(position / BITS);
        word.is_some_and(|word| word >> (position % BITS) & 1 == 1)
    }
}

fn position(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_finds_its_bytes_in_short_and_long_texts() {
        let set = ByteSet::new(b"<[]>\n<".to_vec());
        for length in [0, 1, 47, 48, 200] {
            let mut text = vec![b'x'; length];
            assert!(!set.is_in(&text) && set.all(&text, |_| false));
            for at in 0..length {
                text[at] = b'>';
                assert!(set.is_in(&text) && set.all(&text, |found| found == at));
                assert_eq!(set.least(&text, |found| Some(found + 1)), Some(at + 1));
                assert_eq!(set.least(&text, |_| None), None);
                text[at] = b'x';
            }
        }
    }

    #[test]
    fn the_least_offset_is_found_among_all_bytes() {
        let set = ByteSet::new(b"<[]>\n".to_vec());
        for length in [10, 200] {
            let mut text = vec![b'x'; length];
            (text[2], text[5], text[7]) = (b'>', b'\n', b'<');
            let after = |at: usize| match at {
                2 => None,
                5 => Some(9),
                at => Some(at),
            };
            assert_eq!(set.least(&text, after), Some(7));
        }
    }

    #[test]
    fn a_pair_without_a_second_byte_matches_every_byte() {
        let mut pairs = BytePairs::default();
        pairs.insert(b'<', Some(b't'));
        pairs.insert(b'#', None);
        assert!(pairs.has(b'<', b't') && !pairs.has(b'<', b'u') && !pairs.has(b't', b'<'));
        assert!(pairs.has(b'#', 0) && pairs.has(b'#', u8::MAX));
    }
}
