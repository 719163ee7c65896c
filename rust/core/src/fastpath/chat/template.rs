//! Stores the bytes around the varying members of a Chat chunk, and checks whether a payload matches them.
//!
//! An id or name is usually the same as in the previous chunk, so it is compared first and validated only if it
//! differs.

use crate::dialect::chat::calls::not_blank;
use crate::dialect::chat::calls::usable_id;
use crate::dialect::decode_context::DATA;
use crate::dialect::decode_context::Ending;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::members;
use crate::json::token::string_end;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;

/// The line endings between two events.
const BETWEEN: &[u8] = b"\n\n";

/// Returns true if the number is small enough for an index hole or a count hole.
///
/// A larger number becomes part of the template's fixed bytes.
pub(crate) fn is_small(raw: Raw<'_>) -> bool {
    raw.kind == Kind::Number && digits(raw.text.as_bytes()) == raw.text.len()
}

/// A position in a payload, as the number of fixed bytes and the number of holes before the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    fixed: usize,
    holes: usize,
}

#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) what: ChunkKind,
    pub(crate) choice: i32,
    /// Metadata below the chunk level that every chunk matching this template contains.
    pub(crate) metadata: Option<String>,
    /// The bytes after each hole, then the separator between two events, then the bytes before the first hole. In this
    /// order, the bytes between the texts of two events are contiguous, so that one comparison covers them.
    pub(crate) fixed: Box<[u8]>,
    /// Offset of the bytes before the first hole.
    head: usize,
    /// The holes, each with the number of fixed bytes that follow it.
    pub(crate) holes: Box<[(Hole, usize)]>,
    /// Start and end of the `reasoning_details` value and of the `usage` value, if they contain holes.
    details: Option<Box<[Mark; 2]>>,
    usage: Option<Box<[Mark; 2]>>,
    /// True if the template contains no line ending, so that it can match before the input is split into lines.
    one_line: bool,
    /// True for a one-line template without metadata whose only hole is a text.
    pub(crate) plain: bool,
    memos: LazyBox<Memos>,
}

/// The last value of an id hole or name hole, and whether the decoder accepts that value. The value is unused if the
/// template has no hole of this kind.
#[derive(Debug, Default)]
struct Memo {
    text: String,
    good: bool,
}

impl Memo {
    /// Returns the input after the leading string, if that string equals the last value.
    #[inline]
    fn same<'p>(&self, bytes: &'p [u8]) -> Option<&'p [u8]> {
        let after = bytes.strip_prefix(self.text.as_bytes())?;
        after.starts_with(b"\"").then_some(after)
    }

    #[inline]
    fn renew(&mut self, other: Option<&str>, good: fn(&str) -> bool) {
        if let Some(text) = other {
            self.good = good(text);
            text.clone_into(&mut self.text);
        }
    }

    #[inline]
    fn get(&self) -> Option<&str> {
        self.good.then_some(self.text.as_str())
    }
}

/// The last values of the id hole and of the name hole.
#[derive(Debug, Default)]
struct Memos {
    id: Memo,
    name: Memo,
}

blank!(Memos);

/// Returns the byte range of a member in the payload.
fn range(payload: &str, raw: Raw<'_>) -> Option<(usize, usize)> {
    let start = (raw.text.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let end = start + raw.text.len();
    payload.get(start..end).map(|_| (start, end))
}

/// Builds a template by splitting a payload at its holes. Returns `None` if the payload cannot be split.
pub(crate) fn build_template(
    payload: &str,
    choice: i32,
    learnable: LearnableChunk<'_>,
) -> Option<Template> {
    let mut holes = Vec::with_capacity(learnable.holes.len());
    for (hole, raw) in &learnable.holes {
        let (start, end) = range(payload, *raw)?;
        holes.push(match hole {
            Hole::Index | Hole::Count => (*hole, start, end),
            // The quotes are part of the template's fixed bytes.
            _ => (*hole, start + 1, end.checked_sub(1)?),
        });
    }
    holes.sort_by_key(|(_, start, _)| *start);
    let mark = |position: usize| {
        let before = holes.iter().take_while(|(_, _, end)| *end <= position);
        let (count, length) = before.fold((0, 0), |(count, length), (_, start, end)| {
            (count + 1, length + end - start)
        });
        Mark {
            fixed: position - length,
            holes: count,
        }
    };
    let marks = |raw: Option<Raw<'_>>| -> Option<Option<Box<[Mark; 2]>>> {
        let Some(raw) = raw else { return Some(None) };
        range(payload, raw).map(|(start, end)| Some(Box::new([mark(start), mark(end)])))
    };
    let (details, usage) = (marks(learnable.details)?, marks(learnable.usage)?);
    let ends = holes
        .iter()
        .skip(1)
        .map(|(_, start, _)| *start)
        .chain([payload.len()]);
    let mut fixed = Vec::with_capacity(payload.len() + BETWEEN.len() + DATA.len());
    let mut template_holes = Vec::with_capacity(holes.len());
    for ((hole, _, end), next) in holes.iter().zip(ends) {
        let bytes = payload.as_bytes().get(*end..next)?;
        fixed.extend_from_slice(bytes);
        template_holes.push((*hole, bytes.len()));
    }
    fixed.extend_from_slice(BETWEEN);
    fixed.extend_from_slice(DATA.as_bytes());
    let head = fixed.len();
    fixed.extend_from_slice(payload.as_bytes().get(..holes.first()?.1)?);
    let one_line = !payload.contains('\n');
    Some(Template {
        one_line,
        plain: one_line
            && matches!(template_holes.as_slice(), [(Hole::Text, _)])
            && learnable.what == ChunkKind::Text
            && learnable.metadata.is_none()
            && details.is_none()
            && usage.is_none(),
        memos: LazyBox::default(),
        what: learnable.what,
        choice,
        metadata: learnable.metadata,
        fixed: fixed.into_boxed_slice(),
        head,
        holes: template_holes.into_boxed_slice(),
        details,
        usage,
    })
}

impl Template {
    /// Returns the bytes before the first hole.
    #[inline]
    fn head(&self) -> &[u8] {
        self.fixed.get(self.head..).unwrap_or_default()
    }

    /// Returns the length of a complete event without its text, for a plain template.
    #[inline]
    pub(crate) fn event_length(&self) -> usize {
        self.fixed.len()
    }

    /// Returns the bytes before and after the text of an event, for a plain template.
    pub(crate) fn around(&self) -> (&[u8], &[u8]) {
        let (after, before) = self
            .fixed
            .split_at_checked(self.head - DATA.len())
            .unwrap_or_default();
        (before, after)
    }

    /// Stores the id and the name from `found`, if they are set, and then sets both fields of `found` to the stored
    /// values. A field is set to `None` if the decoder would reject the stored value.
    #[inline]
    pub(crate) fn recall<'t>(&'t mut self, found: &mut VaryingMembers<'t>) -> &'t Template {
        if found.id.is_some() || found.name.is_some() {
            let memos = &mut *self.memos;
            memos.id.renew(found.id, usable_id);
            memos.name.renew(found.name, not_blank);
        }
        let memos = &*self.memos;
        (found.id, found.name) = (memos.id.get(), memos.name.get());
        self
    }

    /// Matches a payload against a plain template, if the text has no escapes. Returns the text and the matched length.
    ///
    /// This method is faster than `fit`, and covers most chunks.
    #[inline]
    pub(crate) fn fit_plainly<'p>(
        &self,
        input: &'p [u8],
        ending: Ending,
    ) -> Option<(&'p str, usize)> {
        if !self.plain {
            return None;
        }
        let unmatched = input.strip_prefix(self.head())?;
        let (length, escaped) = string_end(unmatched, 0)?;
        let (text, after) = unmatched.split_at_checked(length)?;
        let tail_length = self.head - DATA.len() - BETWEEN.len();
        let after = after.strip_prefix(self.fixed.get(..tail_length)?)?;
        let end = ending.length(after).filter(|_| !escaped)?;
        let text = std::str::from_utf8(text).ok()?;
        Some((text, input.len() - after.len() + end))
    }

    /// Matches a payload, and returns the payload's length including the `ending`.
    ///
    /// Stores the contents of the holes in `found`. An id or name is stored only if it differs from the last value.
    #[inline]
    pub(crate) fn fit<'p>(
        &self,
        input: &'p [u8],
        ending: Ending,
        found: &mut VaryingMembers<'p>,
    ) -> Option<usize> {
        let mut unmatched = input.strip_prefix(self.head())?;
        let mut fixed = &*self.fixed;
        let mut same: Option<&[u8]> = None;
        for (hole, fixed_length) in &*self.holes {
            let after = match hole {
                Hole::Text => {
                    let (value, escaped, after) = string(unmatched)?;
                    found.text = std::str::from_utf8(value).ok()?;
                    found.escaped = escaped;
                    after
                }
                Hole::Same => {
                    let (value, _, after) = string(unmatched)?;
                    if same.replace(value).is_some_and(|same| same != value) {
                        return None;
                    }
                    after
                }
                Hole::Index => {
                    let (value, after) = unmatched.split_at_checked(digits(unmatched))?;
                    found.index = Some(number(value)?);
                    after
                }
                Hole::Count => {
                    let (value, after) = unmatched.split_at_checked(digits(unmatched))?;
                    (!value.is_empty()).then_some(after)?
                }
                Hole::Id => self
                    .memos
                    .id
                    .same(unmatched)
                    .or_else(|| plain(unmatched, &mut found.id))?,
                Hole::Name => self
                    .memos
                    .name
                    .same(unmatched)
                    .or_else(|| plain(unmatched, &mut found.name))?,
                Hole::Padding => {
                    let (value, _, after) = string(unmatched)?;
                    std::str::from_utf8(value).ok()?;
                    after
                }
            };
            let (expected, others) = fixed.split_at_checked(*fixed_length)?;
            (unmatched, fixed) = (after.strip_prefix(expected)?, others);
        }
        if same.is_some_and(|same| same != found.text.as_bytes()) {
            return None;
        }
        let end = ending
            .length(unmatched)
            .filter(|_| ending == Ending::Here || self.one_line)?;
        if self.details.is_some() || self.usage.is_some() {
            self.parts(input, found)?;
        }
        Some(input.len() - unmatched.len() + end)
    }

    /// Stores the `details` and `usage` of a matching payload, if they contain holes in this template.
    fn parts<'p>(&self, payload: &'p [u8], found: &mut VaryingMembers<'p>) -> Option<()> {
        let mut lengths = [0; HOLES];
        let mut at = self.head().len();
        for ((hole, fixed_length), slot) in self.holes.iter().zip(&mut lengths) {
            let unmatched = payload.get(at..)?;
            *slot = match hole {
                Hole::Index | Hole::Count => digits(unmatched),
                _ => string_end(unmatched, 0)?.0,
            };
            at += *slot + *fixed_length;
        }
        let part = |[start, end]: &[Mark; 2]| {
            let position = |mark: Mark| mark.fixed + lengths.iter().take(mark.holes).sum::<usize>();
            std::str::from_utf8(payload.get(position(*start)..position(*end))?).ok()
        };
        if let Some(marks) = &self.details {
            found.details = Some(part(marks)?);
        }
        if let Some(marks) = &self.usage {
            found.usage = Some(part(marks)?);
        }
        Some(())
    }
}

/// Returns the string at the start of the input, whether it has escapes, and the bytes after it.
#[inline(always)]
fn string(bytes: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let (length, escaped) = string_end(bytes, 0)?;
    let (value, after) = bytes.split_at_checked(length)?;
    Some((value, escaped, after))
}

/// Stores the string at the start of the input and returns the bytes after it. Returns `None` if the string has
/// escapes.
fn plain<'p>(bytes: &'p [u8], kept: &mut Option<&'p str>) -> Option<&'p [u8]> {
    let (value, escaped, after) = string(bytes)?;
    *kept = Some(std::str::from_utf8(value).ok().filter(|_| !escaped)?);
    Some(after)
}

/// Returns the value of the digits, or `None` if there are none.
#[inline]
fn number(digits: &[u8]) -> Option<u32> {
    let value = |value: u32, digit: &u8| value * 10 + u32::from(digit - b'0');
    (!digits.is_empty()).then(|| digits.iter().fold(0, value))
}

/// Returns the length of the small number at the start of the input, without a sign or leading zero, or 0 if there is
/// none.
fn digits(bytes: &[u8]) -> usize {
    match bytes {
        [b'0', ..] => 1,
        _ => bytes
            .iter()
            .take(9)
            .take_while(|byte| byte.is_ascii_digit())
            .count(),
    }
}

/// Varying members of one payload. Strings have no quotes, the index is a number, and objects are JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VaryingMembers<'p> {
    pub(crate) text: &'p str,
    /// True if `text` has escapes.
    pub(crate) escaped: bool,
    pub(crate) index: Option<u32>,
    pub(crate) id: Option<&'p str>,
    pub(crate) name: Option<&'p str>,
    /// The reasoning details, as the text of a JSON array.
    pub(crate) details: Option<&'p str>,
    /// The usage, as the text of a JSON object.
    pub(crate) usage: Option<&'p str>,
}
/// Maximum number of varying members of one chunk.
pub(crate) const HOLES: usize = 16;
/// Kind of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// The text, the reasoning or the arguments.
    Text,
    /// A member that repeats the text, byte for byte.
    Same,
    Index,
    Id,
    Name,
    /// A small number, such as a token count, in an object that the decoder parses as a whole.
    Count,
    /// A padding string, which is ignored.
    Padding,
}
/// A chunk with a single effect, and its varying members.
#[derive(Debug)]
pub(crate) struct LearnableChunk<'a> {
    pub(crate) what: ChunkKind,
    pub(crate) holes: Vec<(Hole, Raw<'a>)>,
    pub(crate) metadata: Option<String>,
    pub(crate) details: Option<Raw<'a>>,
    pub(crate) usage: Option<Raw<'a>>,
}
impl<'a> LearnableChunk<'a> {
    pub(crate) fn new(what: ChunkKind, text: Raw<'a>) -> LearnableChunk<'a> {
        LearnableChunk {
            what,
            holes: vec![(Hole::Text, text)],
            metadata: None,
            details: None,
            usage: None,
        }
    }

    /// Adds a padding string as a hole.
    pub(crate) fn padding(&mut self, slot: Option<Raw<'a>>) {
        if let Some(raw) = slot.filter(|raw| raw.kind == Kind::String) {
            self.holes.push((Hole::Padding, raw));
        }
    }

    /// Adds the counts of a usage object as holes.
    pub(crate) fn counts(&mut self, usage: Raw<'a>) {
        self.usage = Some(usage);
        let mut objects = vec![usage];
        while let Some(object) = objects.pop() {
            for member in members(object) {
                match member.raw.kind {
                    Kind::Number if is_small(member.raw) => {
                        self.holes.push((Hole::Count, member.raw))
                    }
                    Kind::Object => objects.push(member.raw),
                    _ => {}
                }
            }
        }
    }
}
/// The effect of a matching chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    Text,
    Reasoning,
    Call { has_index_key: bool, custom: bool },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Scanner;

    #[test]
    fn strings_end_where_json_says() {
        assert_eq!(string_end(br#"abc","x""#, 0), Some((3, false)));
        assert_eq!(string_end(br#"","x""#, 0), Some((0, false)));
        assert_eq!(
            string_end(br#"a long text with \"quotes\" and \u00e9 in it""#, 0),
            Some((44, true))
        );
        assert_eq!(
            string_end("größer als früher, viel größer\"".as_bytes(), 0),
            Some((35, false))
        );
        for broken in [
            &b"abc"[..],
            b"a\nb\"",
            b"\\x\"",
            b"\\u12g4\"",
            b"\\",
            b"\\u12",
            b"",
        ] {
            assert_eq!(string_end(broken, 0), None, "{broken:?}");
        }
    }

    #[test]
    fn every_length_and_place_of_a_special_byte() {
        for length in 0..40 {
            for byte in 0..=255u8 {
                let mut text = vec![b'a'; length];
                text.push(byte);
                text.extend(b"aaaaaaaaaaaaaaaaa\"");
                let quoted = [b"\"", text.as_slice()].concat();
                let valid = std::str::from_utf8(&quoted).ok().is_some_and(|text| {
                    let mut scanner = Scanner::new(text, None);
                    scanner.skip().is_ok()
                });
                let found = string_end(&text, 0)
                    .filter(|(end, _)| std::str::from_utf8(text.get(..*end).unwrap()).is_ok());
                assert_eq!(found.is_some(), valid, "{byte} at {length}");
            }
        }
    }
}
