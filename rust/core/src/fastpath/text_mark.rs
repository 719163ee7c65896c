//! Computes hashes of texts, which are called marks. Equal texts have equal marks, and different texts almost certainly
//! have different marks.
//!
//! Marks are not collision-resistant against an attacker. An attacker gains nothing from a collision, because a
//! collision only has the effect of a repeated text, which the sender of a stream can send anyway.

use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd6e8_feb8_6659_fd93;

/// Returns the mark (hash) of one text.
pub(crate) fn mark(bytes: &[u8]) -> u64 {
    // Hash four words at a time, in two chains that do not depend on each other.
    let (mut first, mut second) = (SEED, STEP);
    let mut rest = bytes;
    while let Some((block, tail)) = rest.split_first_chunk() {
        (first, second) = take(block, first, second);
        rest = tail;
    }
    let (first, second) = match bytes.last_chunk() {
        // The last window may overlap the previous one, because hashing some bytes twice is faster than handling the
        // exact remainder.
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
    // Short texts are padded with zeros, so the length is also hashed to distinguish them.
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

/// Returns the combined mark (hash) of several texts.
pub(crate) fn mark_of(texts: (&str, &str, &str)) -> u64 {
    let mut hasher = DefaultHasher::new();
    texts.hash(&mut hasher);
    hasher.finish()
}

#[inline(always)]
pub(crate) fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Pieces shorter than this are hashed in one step.
const WINDOW: usize = 16;

/// Returns the mark of the first `length` bytes.
///
/// The function is optimized for short pieces, because the mark of every numbered event is computed from the event's
/// pieces.
#[inline(always)]
pub(crate) fn mark_of_piece(bytes: &[u8], length: usize) -> u64 {
    match bytes.first_chunk() {
        Some(window) if length < WINDOW => mark_in_window(window, length),
        _ => mark_of_other(bytes.get(..length).unwrap_or_default()),
    }
}

/// Masks that keep the first n bytes of a window.
const WITHIN: [[u64; 2]; WINDOW] = [
    within(0),
    within(1),
    within(2),
    within(3),
    within(4),
    within(5),
    within(6),
    within(7),
    within(8),
    within(9),
    within(10),
    within(11),
    within(12),
    within(13),
    within(14),
    within(15),
];

const fn within(length: u32) -> [u64; 2] {
    let mask = (1_u128 << (8 * length)) - 1;
    [mask as u64, (mask >> 64) as u64]
}

/// Hashes a piece that is shorter than the window. The length is stored in the last byte of the window, which a short
/// piece does not use.
#[inline(always)]
fn mark_in_window(window: &[u8; WINDOW], length: usize) -> u64 {
    let [first, second] = WITHIN.get(length).copied().unwrap_or_default();
    let [low, high] = words(Some(window));
    let high = high & second | (length as u64) << 56;
    fold(SEED ^ low & first, STEP ^ high)
}

/// Hashes a long piece, or a short piece at the end of the input.
#[inline(never)]
fn mark_of_other(piece: &[u8]) -> u64 {
    if piece.len() >= WINDOW {
        return mark(piece);
    }
    let mut window = [0; WINDOW];
    for (to, from) in window.iter_mut().zip(piece) {
        *to = *from;
    }
    mark_in_window(&window, piece.len())
}

/// Combines two marks into one mark, which depends on their order.
#[inline(always)]
pub(crate) fn join(one: u64, next: u64) -> u64 {
    fold(one ^ SEED, next ^ STEP)
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
        for position in 0..100 {
            for bit in 0..8 {
                let mut bytes = zeros;
                bytes[position] = 1 << bit;
                assert!(marks.insert(mark(&bytes)));
            }
        }
        assert_ne!(mark_of(("a", "b", "")), mark_of(("a", "", "b")));
    }

    /// The mark of a piece does not depend on the bytes that follow the piece, or on how many bytes follow.
    #[test]
    fn the_mark_of_a_piece_depends_only_on_its_bytes() {
        let mut marks = HashSet::new();
        for length in 0..40 {
            for filler in [0, b'x'] {
                let piece = [vec![b'a'; length / 2], vec![filler; length - length / 2]].concat();
                let alone = mark_of_piece(&piece, length);
                for following in [&b"\"}"[..], &[0; 40]] {
                    let more = [&piece, following].concat();
                    assert_eq!(mark_of_piece(&more, length), alone, "{length}");
                }
                assert!(marks.insert(alone) || length == 0, "{length}");
            }
        }
        assert_ne!(join(join(1, 2), 3), join(join(1, 3), 2));
    }
}
