//! The bytes around the varying members of a chunk, and whether a payload has them.
//!
//! An id or name mostly is that of the chunk before: it is compared first, and looked at only where it is another one.

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

/// The line ends between two events.
const BETWEEN: &[u8] = b"\n\n";

/// Whether a number is what `digits` takes: anything else is part of the template.
pub(crate) fn is_small(raw: Raw<'_>) -> bool {
    raw.kind == Kind::Number && digits(raw.text.as_bytes()) == raw.text.len()
}

/// A place in a payload, told by the fixed bytes and the number of holes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    fixed: usize,
    holes: usize,
}

#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) what: ChunkKind,
    pub(crate) choice: i32,
    /// Metadata below the chunk level, which every such chunk carries.
    pub(crate) metadata: Option<String>,
    /// The bytes behind each hole, then what stands between two events, then the bytes before the first hole: in this
    /// order as from the text of one event to the text of the next, which makes it one comparison.
    pub(crate) fixed: Box<[u8]>,
    /// Where the bytes before the first hole begin.
    head: usize,
    /// Each hole with the number of bytes behind it.
    pub(crate) holes: Box<[(Hole, usize)]>,
    /// Parts with holes in them.
    details: Option<Box<[Mark; 2]>>,
    usage: Option<Box<[Mark; 2]>>,
    /// No line end stands in it, so that it can be known before it is cut out of its line.
    one_line: bool,
    /// It is a text with nothing to it, on one line.
    pub(crate) plain: bool,
    memos: LazyBox<Memos>,
}

/// ChunkKind stood in a hole the last time, and whether it was of use. Without such a hole it never is.
#[derive(Debug, Default)]
struct Memo {
    text: String,
    good: bool,
}

impl Memo {
    /// ChunkKind follows the string that begins here, if it is the same.
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

/// Of chunks that carry them.
#[derive(Debug, Default)]
struct Memos {
    id: Memo,
    name: Memo,
}

blank!(Memos);

/// Where a part of the payload begins and ends.
fn range(payload: &str, raw: Raw<'_>) -> Option<(usize, usize)> {
    let start = (raw.text.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let end = start + raw.text.len();
    payload.get(start..end).map(|_| (start, end))
}

/// Cuts a payload at its holes.
pub(crate) fn cut(payload: &str, choice: i32, lesson: LearnableChunk<'_>) -> Option<Template> {
    let mut holes = Vec::with_capacity(lesson.holes.len());
    for (hole, raw) in &lesson.holes {
        let (start, end) = range(payload, *raw)?;
        holes.push(match hole {
            Hole::Index | Hole::Count => (*hole, start, end),
            // The quotes belong to the template.
            _ => (*hole, start + 1, end.checked_sub(1)?),
        });
    }
    holes.sort_by_key(|(_, start, _)| *start);
    let mark = |place: usize| {
        let before = holes.iter().take_while(|(_, _, end)| *end <= place);
        let (count, length) = before.fold((0, 0), |(count, length), (_, start, end)| {
            (count + 1, length + end - start)
        });
        Mark {
            fixed: place - length,
            holes: count,
        }
    };
    let marks = |raw: Option<Raw<'_>>| -> Option<Option<Box<[Mark; 2]>>> {
        let Some(raw) = raw else { return Some(None) };
        range(payload, raw).map(|(start, end)| Some(Box::new([mark(start), mark(end)])))
    };
    let (details, usage) = (marks(lesson.details)?, marks(lesson.usage)?);
    let ends = holes
        .iter()
        .skip(1)
        .map(|(_, start, _)| *start)
        .chain([payload.len()]);
    let mut fixed = Vec::with_capacity(payload.len() + BETWEEN.len() + DATA.len());
    let mut behind = Vec::with_capacity(holes.len());
    for ((hole, _, end), next) in holes.iter().zip(ends) {
        let bytes = payload.as_bytes().get(*end..next)?;
        fixed.extend_from_slice(bytes);
        behind.push((*hole, bytes.len()));
    }
    fixed.extend_from_slice(BETWEEN);
    fixed.extend_from_slice(DATA.as_bytes());
    let head = fixed.len();
    fixed.extend_from_slice(payload.as_bytes().get(..holes.first()?.1)?);
    let one_line = !payload.contains('\n');
    Some(Template {
        one_line,
        plain: one_line
            && matches!(behind.as_slice(), [(Hole::Text, _)])
            && lesson.what == ChunkKind::Text
            && lesson.metadata.is_none()
            && details.is_none()
            && usage.is_none(),
        memos: LazyBox::default(),
        what: lesson.what,
        choice,
        metadata: lesson.metadata,
        fixed: fixed.into_boxed_slice(),
        head,
        holes: behind.into_boxed_slice(),
        details,
        usage,
    })
}

impl Template {
    /// The bytes before the first hole.
    #[inline]
    fn head(&self) -> &[u8] {
        self.fixed.get(self.head..).unwrap_or_default()
    }

    /// Of a plain one: a whole event without its text is that long.
    #[inline]
    pub(crate) fn event_length(&self) -> usize {
        self.fixed.len()
    }

    /// Of a plain one: what stands before the text of an event, and after it.
    pub(crate) fn around(&self) -> (&[u8], &[u8]) {
        let (after, before) = self
            .fixed
            .split_at_checked(self.head - DATA.len())
            .unwrap_or_default();
        (before, after)
    }

    /// Remembers the ids and names that were found, and leaves those that are of use.
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

    /// `fit` where all that varies and matters is one text without escapes, as in most chunks of most streams.
    #[inline]
    pub(crate) fn fit_plainly<'p>(
        &self,
        input: &'p [u8],
        ending: Ending,
    ) -> Option<(&'p str, usize)> {
        if !self.plain {
            return None;
        }
        let rest = input.strip_prefix(self.head())?;
        let (length, escaped) = string_end(rest, 0)?;
        let (text, after) = rest.split_at_checked(length)?;
        let behind = self.head - DATA.len() - BETWEEN.len();
        let after = after.strip_prefix(self.fixed.get(..behind)?)?;
        let end = ending.length(after).filter(|_| !escaped)?;
        let text = std::str::from_utf8(text).ok()?;
        Some((text, input.len() - after.len() + end))
    }

    /// ChunkKind stands in the holes of a payload with these bytes (an id or name only if it is another one than the last), and
    /// how long it is with its `ending`.
    #[inline]
    pub(crate) fn fit<'p>(
        &self,
        input: &'p [u8],
        ending: Ending,
        found: &mut VaryingMembers<'p>,
    ) -> Option<usize> {
        let mut rest = input.strip_prefix(self.head())?;
        let mut fixed = &*self.fixed;
        let mut same: Option<&[u8]> = None;
        for (hole, behind) in &*self.holes {
            let after = match hole {
                Hole::Text => {
                    let (value, escaped, after) = string(rest)?;
                    found.text = std::str::from_utf8(value).ok()?;
                    found.escaped = escaped;
                    after
                }
                Hole::Same => {
                    let (value, _, after) = string(rest)?;
                    if same.replace(value).is_some_and(|same| same != value) {
                        return None;
                    }
                    after
                }
                Hole::Index => {
                    let (value, after) = rest.split_at_checked(digits(rest))?;
                    found.index = Some(number(value)?);
                    after
                }
                Hole::Count => {
                    let (value, after) = rest.split_at_checked(digits(rest))?;
                    (!value.is_empty()).then_some(after)?
                }
                Hole::Id => self
                    .memos
                    .id
                    .same(rest)
                    .or_else(|| plain(rest, &mut found.id))?,
                Hole::Name => self
                    .memos
                    .name
                    .same(rest)
                    .or_else(|| plain(rest, &mut found.name))?,
                Hole::Padding => {
                    let (value, _, after) = string(rest)?;
                    std::str::from_utf8(value).ok()?;
                    after
                }
            };
            let (behind, others) = fixed.split_at_checked(*behind)?;
            (rest, fixed) = (after.strip_prefix(behind)?, others);
        }
        if same.is_some_and(|same| same != found.text.as_bytes()) {
            return None;
        }
        let end = ending
            .length(rest)
            .filter(|_| ending == Ending::Here || self.one_line)?;
        if self.details.is_some() || self.usage.is_some() {
            self.parts(input, found)?;
        }
        Some(input.len() - rest.len() + end)
    }

    /// Stores the `details` and `usage` of a payload that fits: the spans of the template that contain holes.
    fn parts<'p>(&self, payload: &'p [u8], found: &mut VaryingMembers<'p>) -> Option<()> {
        let mut lengths = [0; HOLES];
        let mut at = self.head().len();
        for ((hole, behind), slot) in self.holes.iter().zip(&mut lengths) {
            let rest = payload.get(at..)?;
            *slot = match hole {
                Hole::Index | Hole::Count => digits(rest),
                _ => string_end(rest, 0)?.0,
            };
            at += *slot + *behind;
        }
        let part = |[start, end]: &[Mark; 2]| {
            let place = |mark: Mark| mark.fixed + lengths.iter().take(mark.holes).sum::<usize>();
            std::str::from_utf8(payload.get(place(*start)..place(*end))?).ok()
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

/// The string that begins here, whether it holds escapes, and what follows it.
#[inline(always)]
fn string(bytes: &[u8]) -> Option<(&[u8], bool, &[u8])> {
    let (length, escaped) = string_end(bytes, 0)?;
    let (value, after) = bytes.split_at_checked(length)?;
    Some((value, escaped, after))
}

/// ChunkKind follows the string that begins here, which is kept. `None` if it holds escapes.
fn plain<'p>(bytes: &'p [u8], kept: &mut Option<&'p str>) -> Option<&'p [u8]> {
    let (value, escaped, after) = string(bytes)?;
    *kept = Some(std::str::from_utf8(value).ok().filter(|_| !escaped)?);
    Some(after)
}

/// The value of digits; `None` without any.
#[inline]
fn number(digits: &[u8]) -> Option<u32> {
    let value = |value: u32, digit: &u8| value * 10 + u32::from(digit - b'0');
    (!digits.is_empty()).then(|| digits.iter().fold(0, value))
}

/// The length of a small number without a sign or a leading zero; 0 where there is none, which no number fits.
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

/// ChunkKind varies in one payload: strings as between their quotes, the index as digits, objects as their text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VaryingMembers<'p> {
    pub(crate) text: &'p str,
    /// Whether `text` holds escapes.
    pub(crate) escaped: bool,
    pub(crate) index: Option<u32>,
    pub(crate) id: Option<&'p str>,
    pub(crate) name: Option<&'p str>,
    /// The details of the reasoning: the text of an array.
    pub(crate) details: Option<&'p str>,
    /// The usage: the text of an object.
    pub(crate) usage: Option<&'p str>,
}
/// The most members that vary within one chunk.
pub(crate) const HOLES: usize = 16;
/// ChunkKind stands in a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// The text, the reasoning or the arguments.
    Text,
    /// The text again, byte for byte.
    Same,
    Index,
    Id,
    Name,
    /// A count: some small number, read with the object it stands in.
    Count,
    /// Padding that nobody reads.
    Padding,
}
/// A chunk that did one thing only, with the members that vary.
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

    /// A string of padding varies too.
    pub(crate) fn padding(&mut self, slot: Option<Raw<'a>>) {
        if let Some(raw) = slot.filter(|raw| raw.kind == Kind::String) {
            self.holes.push((Hole::Padding, raw));
        }
    }

    /// The counts of a usage object vary too.
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
/// ChunkKind a matching chunk does.
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
