//! Collects the text that needs no examination, until the text before a possible marker must be read.
//!
//! Most text is never read again. Appending a short piece here takes a few instructions, without a call.

use crate::text_calls::byte_set::ByteSet;

/// Maximum length in bytes of a piece that `push_without` accepts.
const SHORT: usize = 16;
/// Minimum size of the buffer in bytes.
const ROOM: usize = 512;
/// Maximum number of bytes to collect.
const MOST: usize = 1 << 14;

#[derive(Debug, Default)]
pub(crate) struct PlainText {
    /// The collected bytes, followed by unused bytes.
    bytes: Vec<u8>,
    length: usize,
}

impl PlainText {
    /// Returns the number of collected bytes.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Appends a piece that contains none of the bytes in the set. Returns false and changes nothing if the piece
    /// contains a byte of the set, is empty or long, or may need a larger buffer.
    #[inline(always)]
    pub fn push_without(&mut self, piece: &[u8], set: &ByteSet) -> bool {
        let is_added = match piece.len() {
            4..8 => self.put_without::<4>(piece, set),
            2..4 => self.put_without::<2>(piece, set),
            8..=SHORT => self.put_without::<8>(piece, set),
            1 => self.put_without::<1>(piece, set),
            _ => false,
        };
        if is_added {
            self.length += piece.len();
        }
        is_added
    }

    /// Writes a piece of `N` to `2 * N` bytes after the collected bytes, unless it contains a byte of the set. Returns
    /// true if it was written.
    #[inline(always)]
    fn put_without<const N: usize>(&mut self, piece: &[u8], set: &ByteSet) -> bool {
        let (Some(first), Some(last)) = (piece.first_chunk::<N>(), piece.last_chunk::<N>()) else {
            return false;
        };
        if set.has_one_of(first, last) {
            return false;
        }
        let free = self.bytes.get_mut(self.length..);
        let Some(free) = free.and_then(|free| free.first_chunk_mut::<SHORT>()) else {
            return false;
        };
        if let Some(start) = free.first_chunk_mut() {
            *start = *first;
        }
        let end = free.get_mut(piece.len() - N..);
        if let Some(end) = end.and_then(|end| end.first_chunk_mut()) {
            *end = *last;
        }
        true
    }

    /// Appends a piece. Returns false and changes nothing if the collected text must be taken first.
    pub fn push(&mut self, piece: &str) -> bool {
        let end = self.length + piece.len();
        if end > MOST {
            return false;
        }
        if self.bytes.len() < end + SHORT {
            let size = (end + SHORT).next_power_of_two().max(ROOM);
            self.bytes.resize(size, 0);
        }
        if let Some(free) = self.bytes.get_mut(self.length..end) {
            free.copy_from_slice(piece.as_bytes());
        }
        self.length = end;
        true
    }

    /// Moves the collected text to the end of `text`.
    pub fn move_to(&mut self, text: &mut String) {
        let collected = self.bytes.get(..self.length).unwrap_or_default();
        text.push_str(std::str::from_utf8(collected).unwrap_or_default());
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_all_lengths_are_collected() {
        let set = ByteSet::new(b"<\n".to_vec());
        let (mut plain, mut text, mut expected) =
            (PlainText::default(), String::new(), String::new());
        assert!(!plain.push_without(b"x", &set));
        for length in (0..40).chain([600, 3]).cycle().take(2000) {
            let piece: String = "0123456789äöü".chars().cycle().take(length).collect();
            let piece = piece.as_str();
            let before = plain.length();
            let is_short = (1..=SHORT).contains(&piece.len());
            if plain.push_without(piece.as_bytes(), &set) {
                assert!(is_short);
            } else if !plain.push(piece) {
                plain.move_to(&mut text);
                assert!(plain.push(piece));
                assert_eq!(plain.length(), piece.len());
                expected.push_str(piece);
                continue;
            }
            assert_eq!(plain.length(), before + piece.len());
            expected.push_str(piece);
        }
        plain.move_to(&mut text);
        assert_eq!(text, expected);
        assert_eq!(plain.length(), 0);
    }

    #[test]
    fn a_piece_with_a_byte_of_the_set_is_not_appended() {
        let set = ByteSet::new(b"<\n".to_vec());
        let (mut plain, mut text) = (PlainText::default(), String::new());
        assert!(plain.push("x"));
        for length in 1..=SHORT {
            plain.move_to(&mut text);
            for at in 0..length {
                let mut piece = vec![b'x'; length];
                piece[at] = b'<';
                assert!(!plain.push_without(&piece, &set));
                piece[at] = b'y';
                assert!(plain.push_without(&piece, &set));
            }
        }
        plain.move_to(&mut text);
        assert_eq!(text.bytes().filter(|byte| *byte == b'y').count(), 136);
    }
}
