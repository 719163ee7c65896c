//! Finds the literals that change the meaning of text: reasoning tags, quoting elements, messages and code marks.

use crate::text_calls::byte_set::ByteSet;
use crate::text_calls::reading::is_blank;

/// Minimum number of backticks or tildes in a fence.
pub(crate) const FENCE: usize = 3;

/// A lower-case literal that changes the meaning of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub text: String,
    pub kind: TagKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TagKind {
    Opener(Closer),
    /// `<name`, which matches only if the name of the tag ends there.
    Element(Closer),
    /// The opener of a message, which matches unless the role of the model follows.
    Message {
        /// The tag followed by the role of the model.
        own: String,
        closer: Closer,
    },
    ReasoningCloser,
}

impl Tag {
    /// Returns the closer of what the tag opens, or `None` if the tag ends reasoning.
    pub fn closer(&self) -> Option<&Closer> {
        match &self.kind {
            TagKind::Opener(closer)
            | TagKind::Element(closer)
            | TagKind::Message { closer, .. } => Some(closer),
            TagKind::ReasoningCloser => None,
        }
    }

    /// Number of bytes needed to determine whether a text begins with the tag.
    fn longest(&self) -> usize {
        match &self.kind {
            TagKind::Message { own, .. } => own.len(),
            TagKind::Opener(_) | TagKind::Element(_) | TagKind::ReasoningCloser => {
                self.text.len() + 1
            }
        }
    }
}

/// The literal that ends reasoning, a quoting element, a message, or a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closer {
    pub text: String,
    pub is_reasoning: bool,
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

/// Literals that change the meaning of text: reasoning tags, quoting elements and comments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// The tags, longest first.
    tags: Vec<Tag>,
    /// For each byte value, the tags whose second byte has this value, as indexes into `tags`. Most tags have the same
    /// first byte.
    by_second: Vec<Vec<usize>>,
    /// First bytes of the tags, and the bytes that have a meaning in Markdown.
    firsts: ByteSet,
    longest: usize,
    /// Call markers, except those of markerless families.
    markers: Vec<String>,
    /// First bytes of the markers.
    marker_firsts: ByteSet,
    /// Last bytes of the markers.
    marker_lasts: ByteSet,
}

impl Words {
    /// Creates the tables. `reasoning`: the openers and closers of reasoning in text. `quoting`: the names of quoting
    /// elements. `markers`: the markers of calls.
    pub fn new(
        reasoning: &[[String; 2]],
        messages: &[Message],
        quoting: &[String],
        markers: Vec<String>,
    ) -> Words {
        let closer = |text: &str, is_reasoning| Closer {
            text: text.to_ascii_lowercase(),
            is_reasoning,
        };
        let mut tags = Vec::new();
        let mut add = |text: &str, kind: TagKind| {
            let text = text.to_ascii_lowercase();
            if !tags.iter().any(|tag: &Tag| tag.text == text) {
                tags.push(Tag { text, kind });
            }
        };
        for [open, close] in reasoning {
            add(open, TagKind::Opener(closer(close, true)));
        }
        for [_, close] in reasoning {
            add(close, TagKind::ReasoningCloser);
        }
        for message in messages {
            let closer = closer(&message.closer, false);
            let kind = match &message.role {
                Some(role) => TagKind::Message {
                    own: format!("{}{role}", message.opener).to_ascii_lowercase(),
                    closer,
                },
                None => TagKind::Opener(closer),
            };
            add(&message.opener, kind);
        }
        for name in quoting {
            let close = closer(&format!("</{name}>"), false);
            add(&format!("<{name}"), TagKind::Element(close));
        }
        add("<!--", TagKind::Opener(closer("-->", false)));
        tags.sort_by(|one, other| {
            let by_length = other.text.len().cmp(&one.text.len());
            by_length.then_with(|| one.text.cmp(&other.text))
        });
        let mut firsts: Vec<u8> = b"`~|".to_vec();
        firsts.extend(tags.iter().filter_map(|tag| tag.text.bytes().next()));
        let mut by_second = vec![Vec::new(); usize::from(u8::MAX) + 1];
        for (position, tag) in tags.iter().enumerate() {
            let second = tag.text.as_bytes().get(1).copied();
            let such = second.and_then(|second| by_second.get_mut(usize::from(second)));
            such.into_iter().for_each(|such| such.push(position));
        }
        Words {
            by_second,
            longest: tags.iter().map(Tag::longest).max().unwrap_or(0),
            tags,
            firsts: ByteSet::new(firsts),
            marker_firsts: ByteSet::new(
                markers
                    .iter()
                    .filter_map(|text| text.bytes().next())
                    .collect(),
            ),
            marker_lasts: ByteSet::new(
                markers
                    .iter()
                    .filter_map(|text| text.bytes().last())
                    .collect(),
            ),
            markers,
        }
    }

    /// Returns true if the line ends with a call marker, optionally followed by whitespace.
    pub fn ends_in_marker(&self, line: &str) -> bool {
        let line = line.trim_end_matches(is_blank);
        let is_last = line
            .bytes()
            .last()
            .is_some_and(|byte| self.marker_lasts.has(byte));
        is_last
            && self
                .markers
                .iter()
                .any(|marker| line.ends_with(marker.as_str()))
    }

    /// Returns true if the text contains a call marker.
    pub fn has_marker(&self, text: &str) -> bool {
        let is_none = |at: usize| {
            let remaining = text.as_bytes().get(at..).unwrap_or_default();
            let mut markers = self.markers.iter();
            !markers.any(|marker| remaining.starts_with(marker.as_bytes()))
        };
        !self.marker_firsts.all(text.as_bytes(), is_none)
    }

    /// Returns the tags whose second byte is this one, ignoring ASCII case.
    fn with_second(&self, second: u8) -> impl Iterator<Item = &Tag> {
        let such = self.by_second.get(usize::from(second.to_ascii_lowercase()));
        such.into_iter()
            .flatten()
            .filter_map(|position| self.tags.get(*position))
    }

    /// Returns the tag at the beginning of the text, if there is one.
    fn tag(&self, text: &str) -> Option<&Tag> {
        self.with_second(*text.as_bytes().get(1)?).find(|tag| {
            let Some((head, tail)) = text.split_at_checked(tag.text.len()) else {
                return false;
            };
            let ends = |c: char| matches!(c, ' ' | '\t' | '\r' | '/' | '>');
            head.eq_ignore_ascii_case(&tag.text)
                && match &tag.kind {
                    TagKind::Element(_) => tail.chars().next().is_none_or(ends),
                    TagKind::Message { own, .. } => {
                        let start = text.get(..own.len());
                        !start.is_some_and(|start| start.eq_ignore_ascii_case(own))
                    }
                    TagKind::Opener(_) | TagKind::ReasoningCloser => true,
                }
        })
    }

    /// Returns the offset from which the rest of the text may turn out to be a tag, a run of backticks, or `|>`.
    ///
    /// Returns the text's length if there is no such offset.
    pub fn settled(&self, text: &str, at: usize, closer: Option<&Closer>) -> usize {
        let longest = closer.map_or(self.longest, |closer| closer.text.len());
        let from = (text.len() + 1).saturating_sub(longest).max(at);
        let bytes = text.as_bytes();
        let is_first = |byte: u8| match closer {
            Some(closer) => closer.text.bytes().next() == Some(byte.to_ascii_lowercase()),
            None => self.firsts.has(byte.to_ascii_lowercase()),
        };
        let may_go_on = |position: &usize| {
            if !bytes.get(*position).copied().is_some_and(is_first) {
                return false;
            }
            let remaining = text.get(*position..).unwrap_or_default();
            let begins = |word: &str| {
                let head = word
                    .get(..remaining.len())
                    .filter(|_| remaining.len() < word.len());
                head.is_some_and(|head| head.eq_ignore_ascii_case(remaining))
            };
            let is_name = |tag: &Tag| match &tag.kind {
                TagKind::Element(_) => remaining.eq_ignore_ascii_case(&tag.text),
                TagKind::Message { own, .. } => begins(own),
                TagKind::Opener(_) | TagKind::ReasoningCloser => false,
            };
            match closer {
                Some(closer) => begins(&closer.text),
                None => match remaining.as_bytes().get(1) {
                    Some(second) => self
                        .with_second(*second)
                        .any(|tag| begins(&tag.text) || is_name(tag)),
                    None => self
                        .tags
                        .iter()
                        .any(|tag| begins(&tag.text) || is_name(tag)),
                },
            }
        };
        let run = || {
            let before = match text.strip_suffix('|') {
                Some(before) => before,
                None => text.trim_end_matches(['`', '~']),
            };
            before.len().max(at)
        };
        let whole = || closer.map_or_else(run, |_| text.len());
        (from..text.len()).find(may_go_on).unwrap_or_else(whole)
    }

    /// Returns true if the next character decides how the unread text at the end (`tail`) must be read.
    pub fn is_settled_by(&self, tail: &str, next: char) -> bool {
        if tail.bytes().all(|byte| byte == b'`') {
            return next != '`';
        }
        self.tags.iter().any(|tag| match &tag.kind {
            TagKind::Message { own, .. } if tail.eq_ignore_ascii_case(&tag.text) => {
                let role = own.get(tag.text.len()..).unwrap_or_default();
                !role.starts_with(next.to_ascii_lowercase())
            }
            _ => false,
        })
    }

    /// Returns the next literal with a meaning (`Mark`) that begins in the range, and its offset.
    pub fn next_mark<'w>(
        &'w self,
        piece: &str,
        at: usize,
        end: usize,
    ) -> Option<(usize, Mark<'w>)> {
        let bytes = piece.as_bytes().get(..end)?;
        let mut at = at;
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
                // The bar in a special token does not separate columns.
                b'|' => {
                    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
                    if before != Some(&b'<') && bytes.get(at + 1) != Some(&b'>') {
                        return Some((at, Mark::Pipe));
                    }
                    at += 1;
                }
                _ => {
                    // Text after `end` may show that a name continues.
                    let remaining = piece.get(at..).unwrap_or_default();
                    if let Some(tag) = self.tag(remaining) {
                        return Some((at, Mark::Tag(tag)));
                    }
                    at += 1;
                }
            }
        }
    }
}

/// A character or literal within a line that changes the meaning of text.
pub(crate) enum Mark<'w> {
    Ticks(usize),
    Tildes(usize),
    Pipe,
    Tag(&'w Tag),
}

impl Mark<'_> {
    pub fn length(&self) -> usize {
        match self {
            Mark::Ticks(length) | Mark::Tildes(length) => *length,
            Mark::Pipe => 1,
            Mark::Tag(tag) => tag.text.len(),
        }
    }
}

/// Returns the offset of a lower-case word in the text, ignoring ASCII case.
pub(crate) fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    let first = word.bytes().next()?;
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text.as_bytes()).find(|at| {
        let here = text.as_bytes().get(*at..*at + word.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
    })
}
