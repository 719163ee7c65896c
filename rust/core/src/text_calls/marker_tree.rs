//! Stores markers as a tree, which determines with one step per byte whether a text begins with a marker.

/// Kinds of the families whose markers are below a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// True if one of the families is a `token`, whose calls may follow prose.
    pub token: bool,
    /// True if one of these markers contains another marker.
    pub nesting: bool,
}

impl Kinds {
    fn add(&mut self, other: Kinds) {
        self.token |= other.token;
        self.nesting |= other.nesting;
    }

    /// Returns true if one of the markers may follow prose, or contains a marker, which must not open a block.
    pub fn may_follow_prose(self) -> bool {
        self.token || self.nesting
    }
}

/// How a text begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// No marker begins with the text, and the text begins with no marker.
    Other,
    /// The entire text is the beginning of markers of these kinds.
    Prefix(Kinds),
    /// The text begins with a marker.
    Marker,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    next: Vec<(u8, usize)>,
    /// The bytes of `next`, one bit for each byte value.
    next_bytes: [u64; 4],
    is_marker: bool,
    /// Kinds of the markers below this node.
    below: Kinds,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkerTree {
    nodes: Vec<Node>,
}

impl Default for MarkerTree {
    fn default() -> MarkerTree {
        MarkerTree {
            nodes: vec![Node::default()],
        }
    }
}

impl Node {
    /// Returns the position of the node for the next byte, if a marker continues with it.
    fn after(&self, byte: u8) -> Option<usize> {
        let word = self.next_bytes.get(usize::from(byte >> 6))?;
        if word >> (byte & 63) & 1 == 0 {
            return None;
        }
        let next = self.next.iter().find(|(known, _)| *known == byte);
        next.map(|(_, next)| *next)
    }
}

impl MarkerTree {
    pub fn insert(&mut self, marker: impl IntoIterator<Item = u8>, kinds: Kinds) {
        let mut at = 0;
        for byte in marker {
            let added = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else {
                return;
            };
            node.below.add(kinds);
            at = match node.after(byte) {
                Some(next) => next,
                None => {
                    node.next.push((byte, added));
                    if let Some(word) = node.next_bytes.get_mut(usize::from(byte >> 6)) {
                        *word |= 1 << (byte & 63);
                    }
                    self.nodes.push(Node::default());
                    added
                }
            };
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.is_marker = true;
        }
    }

    pub fn read(&self, text: impl IntoIterator<Item = u8>) -> Beginning {
        let Some(mut node) = self.nodes.first() else {
            return Beginning::Other;
        };
        for byte in text {
            let Some(next) = node.after(byte).and_then(|next| self.nodes.get(next)) else {
                return Beginning::Other;
            };
            if next.is_marker {
                return Beginning::Marker;
            }
            node = next;
        }
        Beginning::Prefix(node.below)
    }

    /// Returns the kinds of all markers that are longer than the text and begin with it, or `None` if there are none.
    pub fn continuations(&self, text: &[u8]) -> Option<Kinds> {
        let mut node = self.nodes.first()?;
        for byte in text {
            node = self.nodes.get(node.after(*byte)?)?;
        }
        (!node.next.is_empty()).then_some(node.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_up_to_the_end_of_the_shorter_one() {
        let (token, tag) = (
            Kinds {
                token: true,
                ..Kinds::default()
            },
            Kinds::default(),
        );
        let mut tree = MarkerTree::default();
        tree.insert("<|call|>".bytes(), token);
        tree.insert("<call>".bytes(), tag);
        tree.insert("<calls>".bytes(), tag);
        let read = |text: &str| tree.read(text.bytes());
        assert_eq!(read("<"), Beginning::Prefix(token));
        assert_eq!(read("<call"), Beginning::Prefix(tag));
        assert_eq!(read("<|cal"), Beginning::Prefix(token));
        assert_eq!(read("<call>"), Beginning::Marker);
        assert_eq!(read("<calls> x"), Beginning::Marker);
        assert_eq!(read("<cart>"), Beginning::Other);
        assert_eq!(read("x"), Beginning::Other);
    }

    #[test]
    fn a_marker_may_continue_another_marker() {
        let token = Kinds {
            token: true,
            ..Kinds::default()
        };
        let mut tree = MarkerTree::default();
        tree.insert("[CALLS]".bytes(), token);
        tree.insert("[CALLS] [".bytes(), token);
        let continuations = |text: &str| tree.continuations(text.as_bytes());
        assert_eq!(continuations("[CA"), Some(token));
        assert_eq!(continuations("[CALLS]"), Some(token));
        assert_eq!(continuations("[CALLS] ["), None);
        assert_eq!(continuations("[CALLS] x"), None);
    }
}
