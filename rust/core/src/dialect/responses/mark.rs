//! Marks of texts: equal texts have equal marks, and others do not, but for a chance that nobody needs to reckon with.
//!
//! Not against somebody who looks for two texts of one mark: who writes the stream can write it twice as well.

use std::hash::{DefaultHasher, Hash, Hasher};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd6e8_feb8_6659_fd93;

/// The mark of one text; quick, since every event that has a number is marked.
pub(super) fn mark(bytes: &[u8]) -> u64 {
    // Four words at a time, of which two do not wait for the others.
    let (mut first, mut second) = (SEED, STEP);
    let mut rest = bytes;
    while let Some((block, tail)) = rest.split_first_chunk() {
        (first, second) = take(block, first, second);
        rest = tail;
    }
    let (first, second) = match bytes.last_chunk() {
        // Some of them a second time, which is quicker than to see how many are left.
        Some(last) => take(last, first, second),
        None => {
            let mut last = [0; 32];
            for (to, from) in last.iter_mut().zip(bytes) {
                *to = *from;
            }
            take(&last, first, second)
        }
    };
    let state = fold(first, STEP) ^ second;
    // A short text was filled up: how long it is tells it from others.
    fold(state ^ bytes.len() as u64, SEED)
}

#[inline(always)]
fn take(block: &[u8; 32], first: u64, second: u64) -> (u64, u64) {
    let [a, b] = words(block.first_chunk());
    let [c, d] = words(block.last_chunk());
    (fold(first ^ a, STEP ^ b), fold(second ^ c, SEED ^ d))
}

#[inline(always)]
fn words(pair: Option<&[u8; 16]>) -> [u64; 2] {
    let pair = pair.map_or(0, |pair| u128::from_le_bytes(*pair));
    [pair as u64, (pair >> 64) as u64]
}

/// The mark of something that has several texts.
pub(super) fn mark_of(texts: (&str, &str, &str)) -> u64 {
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    hasher.finish()
}

fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn other_texts_have_other_marks() {
        let mut marks = HashSet::new();
        let zeros = [0; 100];
        for length in 0..100 {
            assert!(marks.insert(mark(&zeros[..length])));
        }
        for place in 0..100 {
            for bit in 0..8 {
                let mut bytes = zeros;
                bytes[place] = 1 << bit;
                assert!(marks.insert(mark(&bytes)));
            }
        }
        assert_ne!(mark_of(("a", "b", "")), mark_of(("a", "", "b")));
    }
}
