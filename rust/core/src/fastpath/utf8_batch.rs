//! Collects a few dozen short texts so that one UTF-8 check covers all of them.

/// Maximum number of texts in a batch.
pub(crate) const AT_ONCE: usize = 32;

/// Maximum length of a text with its closing quote. This many bytes are copied for every text, because a copy of a
/// fixed size is faster.
pub(crate) const LONGEST: usize = 32;

/// Texts that were collected but not delivered yet.
pub(crate) struct Utf8Batch {
    bytes: [u8; AT_ONCE * LONGEST],
    ends: [usize; AT_ONCE],
    count: usize,
    length: usize,
}

impl Utf8Batch {
    #[inline]
    pub(crate) fn new() -> Utf8Batch {
        Utf8Batch {
            bytes: [0; AT_ONCE * LONGEST],
            ends: [0; AT_ONCE],
            count: 0,
            length: 0,
        }
    }

    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a text of the given length. `text` contains the text and the bytes after it. The batch has room for
    /// `AT_ONCE` texts.
    #[inline]
    pub(crate) fn add(&mut self, text: &[u8; LONGEST], length: usize) {
        let free = self.bytes.get_mut(self.length..);
        let position = free.and_then(|free| free.first_chunk_mut());
        let (Some(position), Some(end)) = (position, self.ends.get_mut(self.count)) else {
            return;
        };
        *position = *text;
        self.length += length;
        *end = self.length;
        self.count += 1;
    }

    /// Returns the texts before the first text that is not UTF-8, with the end offset of each text.
    pub(crate) fn valid(&self) -> (&str, &[usize]) {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        let text = std::str::from_utf8(bytes).unwrap_or_else(|error| {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        });
        let ends = self.ends.get(..self.count).unwrap_or_default();
        // A text that ends inside a character is invalid, even if the next text begins with the rest of the character.
        let whole = ends.iter().take_while(|end| text.is_char_boundary(**end));
        let ends = ends.get(..whole.count()).unwrap_or_default();
        let length = ends.last().copied().unwrap_or_default();
        (text.get(..length).unwrap_or_default(), ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_before_the_first_invalid_one() {
        let valid = |given: &[&[u8]]| {
            let mut texts = Utf8Batch::new();
            for text in given {
                let mut window = [b'"'; LONGEST];
                window.get_mut(..text.len()).unwrap().copy_from_slice(text);
                texts.add(&window, text.len());
            }
            let (text, ends) = texts.valid();
            (text.to_owned(), ends.to_vec())
        };
        let (half, other) = "é".as_bytes().split_at(1);
        assert_eq!(
            valid(&[b"a", "é".as_bytes()]),
            ("aé".to_owned(), vec![1, 3])
        );
        assert_eq!(valid(&[b"a", half, other]), ("a".to_owned(), vec![1]));
        assert_eq!(valid(&[b"a", b"\xFFb", b"c"]), ("a".to_owned(), vec![1]));
        assert_eq!(valid(&[half]), (String::new(), vec![]));
        let long = [b'x'; LONGEST - 1];
        let (text, ends) = valid(&[&long[..]; AT_ONCE]);
        assert_eq!((text.len(), ends.len()), (AT_ONCE * long.len(), AT_ONCE));
    }
}
