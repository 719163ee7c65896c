//! Finds the literals that change the meaning of text: reasoning tags, quoting elements, messages and code marks.

use crate::text_calls::byte_set::ByteSet;
use crate::text_calls::fences::FENCE;
use crate::text_calls::marker_tree::Beginning;
use crate::text_calls::marker_tree::Kinds;
use crate::text_calls::marker_tree::MarkerTree;
use crate::text_calls::marks::Marks;
use crate::text_calls::open::Element;
use crate::text_calls::open::Following;
use crate::text_calls::open::Open;
use crate::text_calls::open::Turn;
use crate::text_calls::open::begins;
use crate::text_calls::open::begins_element;
use crate::text_calls::open::continues_name;
use crate::text_calls::open::is_element;
use crate::text_calls::open::starts_with_ignoring_case;
use crate::text_calls::reading::is_blank;

/// A lower-case literal that changes the meaning of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub text: String,
    kind: TagKind,
}

/// What a tag opens or ends. Each `closer` is in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TagKind {
    Reasoning {
        closer: String,
    },
    ReasoningCloser,
    /// `complete`: the texts after the opener that also close the section, because the end of the opener is the
    /// beginning of the closer. In HTML, `<!-->` and `<!--->` are comments
    /// (<https://html.spec.whatwg.org/multipage/parsing.html#comment-start-state>).
    Section {
        complete: Vec<String>,
        closer: String,
    },
    /// `<name`, which matches only if the name of the tag ends there.
    Element {
        closer: String,
    },
    /// The opener of a message, which matches unless the role of the model follows. `own`: the role of the model. If
    /// it is `None`, the opener itself names another role.
    Message {
        own: Option<String>,
        closer: String,
    },
}

impl Tag {
    /// Returns what the tag opens, or `None` if the tag ends reasoning.
    pub fn opens(&self) -> Option<Open> {
        match &self.kind {
            TagKind::Reasoning { closer } => Some(Open::Reasoning {
                closer: closer.clone(),
            }),
            TagKind::ReasoningCloser => None,
            TagKind::Section { closer, .. } => Some(Open::Section {
                closer: closer.clone(),
            }),
            TagKind::Element { closer } => Some(Open::Element(Element::new(
                self.text.clone(),
                closer.clone(),
            ))),
            TagKind::Message { closer, .. } => Some(Open::Turn(Turn::new(closer.clone()))),
        }
    }

    /// Returns true if the tag begins or ends reasoning.
    pub fn is_reasoning(&self) -> bool {
        matches!(
            self.kind,
            TagKind::Reasoning { .. } | TagKind::ReasoningCloser
        )
    }

    pub fn is_opener(&self) -> bool {
        self.kind != TagKind::ReasoningCloser
    }

    /// Returns the texts after the opener that make it no opener.
    fn exceptions(&self) -> &[String] {
        match &self.kind {
            TagKind::Message { own, .. } => own.as_slice(),
            TagKind::Section { complete, .. } => complete,
            _ => &[],
        }
    }

    /// Number of bytes needed to determine whether a text begins with the tag.
    fn longest(&self) -> usize {
        let after = self.exceptions().iter().map(String::len).max();
        self.text.len() + after.unwrap_or(0) + 1
    }

    /// Returns true if the text may turn out to begin with the tag, because more text follows.
    fn may_begin(&self, text: &str) -> bool {
        match &self.kind {
            TagKind::Element { .. } => begins_element(&self.text, text),
            TagKind::Message { own: Some(own), .. } => {
                let role = strip_prefix_ignoring_case(text, &self.text);
                let begins_role = |role: &str| starts_with_ignoring_case(own, role);
                begins(&self.text, text) || role.is_some_and(begins_role)
            }
            TagKind::Section { complete, .. } => {
                let after = strip_prefix_ignoring_case(text, &self.text);
                let may_close = |after: &str| complete.iter().any(|rest| begins(rest, after));
                begins(&self.text, text) || after.is_some_and(may_close)
            }
            _ => begins(&self.text, text),
        }
    }

    /// Returns true if the text, which begins with the literal of the tag, has the meaning of the tag.
    fn matches(&self, text: &str, following: Following) -> bool {
        match &self.kind {
            TagKind::Element { .. } => is_element(&self.text, text, following),
            TagKind::Message { own: Some(own), .. } => {
                let role = text.get(self.text.len()..).unwrap_or_default();
                let after = strip_prefix_ignoring_case(role, own);
                // A longer name is another role.
                let is_own = |after: &str| {
                    let next = after.chars().next().or(following.character());
                    !next.is_some_and(continues_name)
                };
                !after.is_some_and(is_own)
            }
            TagKind::Section { complete, .. } => {
                let after = text.get(self.text.len()..).unwrap_or_default();
                !complete.iter().any(|rest| after.starts_with(rest.as_str()))
            }
            _ => true,
        }
    }
}

fn strip_prefix_ignoring_case<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let is_start = starts_with_ignoring_case(text, word);
    text.get(word.len()..).filter(|_| is_start)
}

/// Returns each text that completes the closer after an end of the opener.
fn completing(opener: &str, closer: &str) -> Vec<String> {
    let splits = closer.char_indices().skip(1);
    let rest = |(at, _)| {
        let (start, rest) = closer.split_at(at);
        opener.ends_with(start).then(|| rest.to_owned())
    };
    splits.filter_map(rest).collect()
}

/// The tokens around a message of another role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub opener: String,
    /// The role of the model: if it follows the opener, the message is the model's. `None`: the opener itself names
    /// another role.
    pub role: Option<String>,
    pub closer: String,
}

/// The lists of the table that describe quoted text.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    /// The openers and closers of reasoning in text.
    pub reasoning: Vec<[String; 2]>,
    pub messages: Vec<Message>,
    /// The names of quoting elements.
    pub quoting: Vec<String>,
    /// The openers and closers of sections.
    pub sections: Vec<[String; 2]>,
    pub marks: Marks,
}

/// Literals and marks that change the meaning of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The tags, longest first.
    tags: Vec<Tag>,
    /// For each byte value, the tags whose second byte has this value, as indexes into `tags`. Most tags have the same
    /// first byte.
    by_second: Vec<Vec<usize>>,
    /// First bytes of the tags, and the bytes that have a meaning in Markdown.
    firsts: ByteSet,
    pub longest: usize,
    pub marks: Marks,
    /// The literals of the tags. Most text that begins like a tag differs from all of them within a few bytes.
    tag_tree: MarkerTree,
    /// Call markers, except those of markerless families.
    markers: MarkerTree,
    /// The same markers, read backwards.
    reversed_markers: MarkerTree,
    /// First bytes of the markers.
    marker_firsts: ByteSet,
}

impl Words {
    /// Creates the tables. `markers`: the markers of calls.
    pub fn new(lists: Lists, markers: &[String]) -> Words {
        let mut tags = Vec::new();
        let mut add = |text: &str, kind: TagKind| {
            let text = text.to_ascii_lowercase();
            if !tags.iter().any(|tag: &Tag| tag.text == text) {
                tags.push(Tag { text, kind });
            }
        };
        for [open, close] in &lists.reasoning {
            let closer = close.to_ascii_lowercase();
            add(open, TagKind::Reasoning { closer });
        }
        for [_, close] in &lists.reasoning {
            add(close, TagKind::ReasoningCloser);
        }
        for message in &lists.messages {
            let own = message.role.as_deref().map(str::to_ascii_lowercase);
            let closer = message.closer.to_ascii_lowercase();
            add(&message.opener, TagKind::Message { own, closer });
        }
        for name in &lists.quoting {
            let closer = format!("</{name}>").to_ascii_lowercase();
            add(&format!("<{name}"), TagKind::Element { closer });
        }
        for [open, close] in &lists.sections {
            let closer = close.to_ascii_lowercase();
            let complete = completing(&open.to_ascii_lowercase(), &closer);
            add(open, TagKind::Section { complete, closer });
        }
        tags.sort_by(|one, other| {
            let by_length = other.text.len().cmp(&one.text.len());
            by_length.then_with(|| one.text.cmp(&other.text))
        });
        let mut firsts: Vec<u8> = b"`~".to_vec();
        let table = lists.marks.table.iter();
        firsts.extend(table.filter_map(|mark| mark.to_string().bytes().next()));
        firsts.extend(tags.iter().filter_map(|tag| tag.text.bytes().next()));
        let mut by_second = vec![Vec::new(); usize::from(u8::MAX) + 1];
        for (position, tag) in tags.iter().enumerate() {
            let second = tag.text.as_bytes().get(1).copied();
            let such = second.and_then(|second| by_second.get_mut(usize::from(second)));
            such.into_iter().for_each(|such| such.push(position));
        }
        let mut tag_tree = MarkerTree::default();
        for tag in &tags {
            tag_tree.insert(tag.text.bytes(), Kinds::default());
        }
        let (mut forward, mut reversed_markers) = (MarkerTree::default(), MarkerTree::default());
        for marker in markers {
            forward.insert(marker.bytes(), Kinds::default());
            reversed_markers.insert(marker.bytes().rev(), Kinds::default());
        }
        let marker_firsts = markers.iter().filter_map(|marker| marker.bytes().next());
        Words {
            tag_tree,
            by_second,
            longest: tags.iter().map(Tag::longest).max().unwrap_or(0),
            tags,
            firsts: ByteSet::new(firsts),
            marker_firsts: ByteSet::new(marker_firsts.collect()),
            markers: forward,
            reversed_markers,
            marks: lists.marks,
        }
    }

    /// Returns true if the line ends with a call marker, optionally followed by whitespace.
    pub fn ends_in_marker(&self, line: &str) -> bool {
        let line = line.trim_end_matches(is_blank);
        self.reversed_markers.read(line.bytes().rev()) == Beginning::Marker
    }

    /// Returns true if the text contains a call marker.
    pub fn has_marker(&self, text: &str) -> bool {
        let is_marker = |at: usize| {
            let remaining = text.as_bytes().get(at..).unwrap_or_default();
            self.markers.read(remaining.iter().copied()) == Beginning::Marker
        };
        let found = self.marker_firsts.find(text.as_bytes(), is_marker);
        found.is_some()
    }

    /// Returns the tags whose second byte is this one, ignoring ASCII case.
    fn with_second(&self, second: u8) -> impl Iterator<Item = &Tag> {
        let such = self.by_second.get(usize::from(second.to_ascii_lowercase()));
        such.into_iter()
            .flatten()
            .filter_map(|position| self.tags.get(*position))
    }

    /// Compares the beginning of the text with the literals of the tags, ignoring ASCII case.
    fn beginning(&self, text: &str) -> Beginning {
        let bytes = text.bytes().map(|byte| byte.to_ascii_lowercase());
        self.tag_tree.read(bytes)
    }

    /// Returns the tag at the beginning of the text, if there is one. `following`: what follows the text.
    pub fn tag(&self, text: &str, following: Following) -> Option<&Tag> {
        let second = *text.as_bytes().get(1)?;
        if self.beginning(text) != Beginning::Marker {
            return None;
        }
        self.with_second(second)
            .find(|tag| starts_with_ignoring_case(text, &tag.text) && tag.matches(text, following))
    }

    /// Returns true if the text may turn out to begin with a tag, because more text follows.
    pub fn may_begin(&self, text: &str) -> bool {
        match self.beginning(text) {
            Beginning::Other => false,
            Beginning::Prefix(_) => !self.tags.is_empty(),
            Beginning::Marker => {
                let second = text.as_bytes().get(1).copied().unwrap_or_default();
                self.with_second(second).any(|tag| tag.may_begin(text))
            }
        }
    }

    /// Returns true if the text is the beginning of an opener, but not an entire one.
    pub fn begins_opener(&self, text: &str) -> bool {
        let mut tags = self.tags.iter();
        tags.any(|tag| tag.is_opener() && begins(&tag.text, text))
    }

    /// Returns true if the text is an opener, and the character after the text may continue what makes it no opener:
    /// the role of the model, or the end of a section.
    pub fn may_continue(&self, text: &str, next: char) -> bool {
        let continues = |after: &str, word: &str| {
            let rest = strip_prefix_ignoring_case(word, after);
            rest.is_some_and(|rest| rest.starts_with(next.to_ascii_lowercase()))
        };
        self.tags.iter().any(|tag| {
            let after = strip_prefix_ignoring_case(text, &tag.text);
            after.is_some_and(|after| tag.exceptions().iter().any(|word| continues(after, word)))
        })
    }

    /// Returns true if the text is an opener that the text after it can make no opener, possibly with the beginning of
    /// that text.
    pub fn is_held_opener(&self, text: &str) -> bool {
        let mut tags = self.tags.iter();
        tags.any(|tag| !tag.exceptions().is_empty() && starts_with_ignoring_case(text, &tag.text))
    }

    /// Returns the offset from which the rest of the text may turn out to be a tag, a run of backticks, or `|>`.
    /// Returns the text's length if no end of the text may be one.
    pub fn settled(&self, text: &str, following: Following) -> usize {
        if following != Following::Unknown {
            return text.len();
        }
        let from = (text.len() + 1).saturating_sub(self.longest);
        let bytes = text.as_bytes();
        let may_begin = |position: &usize| {
            let byte = bytes.get(*position).map(u8::to_ascii_lowercase);
            let remaining = text.get(*position..).unwrap_or_default();
            byte.is_some_and(|byte| self.firsts.has(byte)) && self.may_begin(remaining)
        };
        let run = || match text.strip_suffix(|last| self.marks.table.contains(&last)) {
            Some(before) => before.len(),
            None => text.trim_end_matches(['`', '~']).len(),
        };
        (from..text.len()).find(may_begin).unwrap_or_else(run)
    }

    /// Returns the next literal with a meaning (`Mark`) that begins before `end`, and its offset.
    pub fn next_mark<'w>(
        &'w self,
        piece: &str,
        end: usize,
        following: Following,
    ) -> Option<(usize, Mark<'w>)> {
        let bytes = piece.as_bytes().get(..end)?;
        let mut at = 0;
        loop {
            let remaining = bytes.get(at..)?;
            at += remaining.iter().position(|byte| self.firsts.has(*byte))?;
            let run = |mark: u8| {
                let remaining = bytes.get(at..).unwrap_or_default();
                remaining.iter().take_while(|byte| **byte == mark).count()
            };
            match bytes.get(at)? {
                b'`' => return Some((at, Mark::Ticks(run(b'`')))),
                b'~' => match run(b'~') {
                    length if length >= FENCE => return Some((at, Mark::Tildes(length))),
                    length => at += length,
                },
                _ => {
                    // Text after `end` may show that a name continues.
                    let remaining = piece.get(at..).unwrap_or_default();
                    if let Some(tag) = self.tag(remaining, following) {
                        return Some((at, Mark::Tag(tag)));
                    }
                    let next = remaining.chars().next().unwrap_or_default();
                    let after = at + next.len_utf8();
                    // The bar in a special token does not separate columns.
                    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
                    let is_in_token = before == Some(&b'<') || bytes.get(after) == Some(&b'>');
                    if self.marks.table.contains(&next) && !is_in_token {
                        return Some((at, Mark::Table(next.len_utf8())));
                    }
                    at = after;
                }
            }
        }
    }
}

/// A character or literal within a line that changes the meaning of text.
pub(crate) enum Mark<'w> {
    Ticks(usize),
    Tildes(usize),
    /// A mark between the cells of a table row, with its number of bytes.
    Table(usize),
    Tag(&'w Tag),
}

impl Mark<'_> {
    pub fn length(&self) -> usize {
        match self {
            Mark::Ticks(length) | Mark::Tildes(length) | Mark::Table(length) => *length,
            Mark::Tag(tag) => tag.text.len(),
        }
    }
}
