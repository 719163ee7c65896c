//! Stores the bytes around the varying members of an item's payload, and checks whether a payload matches them.

use crate::assemble::RouteCache;
use crate::dialect::decode_context::DATA;
use crate::dialect::decode_context::EVENT;
use crate::dialect::decode_context::Ending;
use crate::dialect::decode_context::Incoming;
use crate::fastpath::numeral::number;
use crate::fastpath::text_mark::join;
use crate::fastpath::text_mark::mark;
use crate::fastpath::text_mark::mark_of_piece;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scanner;
use crate::json::token::container_end;
use crate::json::token::plain_end;
use crate::json::token::string_end;
use crate::model::delta::Address;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use std::ops::Range;

/// Returns true if the number is small enough for a number hole.
///
/// A larger number becomes part of the template's fixed bytes, or must be parsed.
pub(crate) fn is_small(raw: Raw<'_>) -> bool {
    let small = number(raw.text.as_bytes()).map(|(_, length)| length);
    raw.kind == Kind::Number && small == Some(raw.text.len())
}

/// Kind of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Text,
    /// A string that is ignored.
    Padding,
    /// A number that the decoder checks, such as a sequence number.
    Number,
    /// Spaces before the closing brace.
    Blanks,
    /// A small object whose members the decoder reads.
    Object,
}

/// Varying members of a payload that matches a template.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TemplateMatch<'p> {
    /// The text, which is empty until `as_text` has checked the bytes for UTF-8.
    pub(crate) text: &'p str,
    /// The input from the start of the text, and the length of the text, which is never 0.
    pub(crate) bytes: &'p [u8],
    pub(crate) text_length: usize,
    pub(crate) escaped: bool,
    pub(crate) number: Option<u32>,
    pub(crate) object: Option<&'p str>,
    /// Hashes of the fixed bytes and of the padding, and the number of spaces.
    frame: u64,
    padding: u64,
    blanks: usize,
    /// Number of bytes of the event before its data line.
    pub(crate) before: usize,
    /// Matched length, including the line prefixes if the input still has them.
    pub(crate) length: usize,
}

impl TemplateMatch<'_> {
    /// Returns the mark (hash) of the payload. The mark equals the result of `Varying::mark` for the same payload.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        let text = mark_of_piece(self.bytes, self.text_length);
        join(join(self.frame ^ self.blanks as u64, text), self.padding)
    }

    /// Sets `text`. Returns `None` if the text is not UTF-8.
    #[inline]
    pub(crate) fn as_text(self) -> Option<Self> {
        let text = self.bytes.get(..self.text_length)?;
        let text = std::str::from_utf8(text).ok()?;
        Some(TemplateMatch { text, ..self })
    }
}

/// Start and end offsets in the bytes of a template.
type Span = (u32, u32);

/// Address of an item, with ids as spans in the bytes of the template.
#[derive(Debug)]
pub(crate) struct ItemAddress {
    item_id: Option<Span>,
    call_id: Option<Span>,
    index: Option<i64>,
    pub(crate) sub: Option<i64>,
}

/// Maximum number of holes. No two holes of a template are of the same kind, and no dialect uses every kind.
const HOLES: usize = 4;

/// Maximum length and maximum depth of an object in a hole.
const OBJECT: usize = 1024;
pub(crate) const OBJECT_DEPTH: u64 = 8;

/// The choice, item kind, channel, and reasoning kind of a text part, without the address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplatePart {
    pub(crate) choice: i32,
    pub(crate) kind: ItemKind,
    pub(crate) channel: Channel,
    pub(crate) reasoning_kind: &'static str,
}

#[derive(Debug)]
pub(crate) struct ItemTemplate {
    /// All fixed bytes in one string, in three sections. The first section contains the event name, if any, and the
    /// start of the data, up to the first hole. The second section contains the bytes after each hole. The third
    /// section contains ids that do not occur literally in the payload.
    fixed: Box<str>,
    /// Offset of the payload in `fixed`, and offset of the first hole in `fixed`.
    head: u32,
    lead: u32,
    /// The holes, each with the number of fixed bytes that follow it. Unused slots come last.
    holes: [Option<(Hole, u32)>; HOLES],
    /// Hash of the fixed bytes (see `text_mark`).
    frame: u64,
    /// True if the template contains no line ending, so that it can match before the input is split into lines.
    one_line: bool,
    pub(crate) item_address: ItemAddress,
    /// `None` for a tool call.
    pub(crate) part: Option<TemplatePart>,
    /// The tool's name, if the type of the event implies it.
    pub(crate) tool: Option<&'static str>,
    /// Cached location of the part or call that received the item's last piece.
    pub(crate) route_cache: RouteCache,
    /// Index of the template that most recently matched right after this template, because alternating items usually
    /// keep their order.
    pub(crate) next: usize,
}

/// Returns the byte range of a piece within the payload.
fn range(payload: &str, piece: &str) -> Option<Range<usize>> {
    let start = (piece.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let range = start..start + piece.len();
    payload.get(range.clone()).map(|_| range)
}

/// Returns the holes of a payload in order, or `None` if the payload cannot be split at them.
fn holes(payload: &str, varying: Varying<'_>) -> Option<Vec<(Hole, Range<usize>)>> {
    let string = |raw: Raw<'_>| {
        let range = range(payload, raw.text).filter(|_| raw.kind == Kind::String)?;
        // The quotes are part of the template's fixed bytes.
        Some(range.start + 1..range.end.checked_sub(1)?)
    };
    let mut holes = Vec::with_capacity(HOLES);
    holes.push((Hole::Text, string(varying.text)?));
    if varying.blanks {
        let body = payload.strip_suffix('}')?;
        holes.push((Hole::Blanks, body.trim_end_matches(' ').len()..body.len()));
    }
    if let Some(padding) = varying.padding {
        holes.push((Hole::Padding, string(padding)?));
    }
    if let Some(number) = varying.number {
        let small = Some(number).filter(|raw| is_small(*raw))?;
        holes.push((Hole::Number, range(payload, small.text)?));
    }
    if let Some(object) = varying.object {
        holes.push((Hole::Object, range(payload, object.text)?));
    }
    holes.sort_by_key(|(_, range)| (range.start, range.end));
    Some(holes)
}

/// Returns the mark (hash) of the fixed bytes, combined from the marks of the pieces.
fn frame(payload: &str, holes: &[(Hole, Range<usize>)]) -> u64 {
    let (mut frame, mut start) = (0, 0);
    for range in holes.iter().map(|(_, range)| range.clone()) {
        let piece = payload.get(start..range.start).unwrap_or_default();
        frame = join(frame, mark(piece.as_bytes()));
        start = range.end;
    }
    let last = payload.get(start..).unwrap_or_default();
    join(frame, mark(last.as_bytes()))
}

impl Varying<'_> {
    /// Returns the mark of a payload, or `None` if it cannot match any template.
    ///
    /// Equal payloads with equal numbers have equal marks, regardless of which code path computes the marks.
    pub(crate) fn mark(self, payload: &str) -> Option<u64> {
        let holes = holes(payload, self)?;
        let mut found = TemplateMatch {
            frame: frame(payload, &holes),
            padding: NO_PADDING,
            ..TemplateMatch::default()
        };
        for (hole, range) in &holes {
            let (bytes, length) = (payload.as_bytes().get(range.start..)?, range.len());
            match hole {
                Hole::Text => (found.bytes, found.text_length) = (bytes, length),
                Hole::Padding => found.padding = mark_of_piece(bytes, length),
                Hole::Blanks => found.blanks = length,
                Hole::Number | Hole::Object => {}
            }
        }
        Some(found.mark())
    }
}

/// Hash for a payload without padding.
const NO_PADDING: u64 = 0;

/// Builds a template by splitting a payload at its holes. Returns `None` if the payload cannot be split.
pub(crate) fn build_template(
    event: Option<&str>,
    payload: &str,
    learnable: LearnableDelta<'_>,
) -> Option<ItemTemplate> {
    let holes = holes(payload, learnable.varying)?;
    let ends = holes.iter().skip(1).map(|(_, range)| range.start);
    let names = event.map_or(0, |name| EVENT.len() + name.len() + 1);
    // The capacity also has room for the bytes of the holes, which `fixed` does not contain. The conversion to a boxed
    // string frees the unused capacity.
    let mut fixed = String::with_capacity(names + DATA.len() + payload.len());
    if let Some(name) = event.filter(|name| !name.is_empty()) {
        fixed.extend([EVENT, name, "\n"]);
    }
    fixed.push_str(DATA);
    let head = u32::try_from(fixed.len()).ok()?;
    fixed.push_str(payload.get(..holes.first()?.1.start)?);
    let lead = u32::try_from(fixed.len()).ok()?;
    let mut cut = [None; HOLES];
    let remaining = holes.iter().zip(ends.chain([payload.len()]));
    for (position, ((hole, range), end)) in cut.iter_mut().zip(remaining) {
        let text = payload.get(range.end..end)?;
        fixed.push_str(text);
        *position = Some((*hole, u32::try_from(text.len()).ok()?));
    }
    let (address, part) = match learnable.target {
        Target::Call(address, _) => (address, None),
        Target::Part(part) => (
            part.address,
            Some(TemplatePart {
                choice: part.choice,
                kind: part.kind,
                channel: part.channel,
                reasoning_kind: part.reasoning_kind,
            }),
        ),
    };
    let mut position = |id: Option<&str>| {
        let Some(id) = id else {
            return Some(None);
        };
        let known = range(payload, id).map(|at| {
            let cut = holes.iter().filter(|(_, hole)| hole.end <= at.start);
            head as usize + at.start - cut.map(|(_, hole)| hole.len()).sum::<usize>()
        });
        // An id that is escaped in the payload is stored unescaped at the end.
        let at = known.unwrap_or_else(|| {
            fixed.push_str(id);
            fixed.len() - id.len()
        });
        let span = (u32::try_from(at), u32::try_from(at + id.len()));
        Some(Some((span.0.ok()?, span.1.ok()?)))
    };
    let item_address = ItemAddress {
        item_id: position(address.item_id)?,
        call_id: position(address.call_id)?,
        index: address.index,
        sub: address.sub,
    };
    Some(ItemTemplate {
        fixed: fixed.into(),
        head,
        lead,
        holes: cut,
        frame: frame(payload, &holes),
        one_line: !payload.contains('\n'),
        item_address,
        part,
        tool: match learnable.target {
            Target::Call(_, tool) => tool,
            Target::Part(_) => None,
        },
        route_cache: RouteCache::default(),
        next: 0,
    })
}

impl ItemTemplate {
    /// Returns the event name of the frame.
    fn event(&self) -> &[u8] {
        let end = (self.head as usize).checked_sub(1 + DATA.len());
        end.and_then(|end| self.fixed.as_bytes().get(EVENT.len()..end))
            .unwrap_or_default()
    }

    /// Returns true if both templates have the same fixed bytes and holes, even if the address or the route differs.
    pub(crate) fn is_same(&self, other: &ItemTemplate) -> bool {
        let key = |of: &ItemTemplate| (of.head, of.lead, of.holes);
        key(self) == key(other) && self.fixed == other.fixed
    }

    /// Returns the minimum length of a matching event, in bytes.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.fixed.len()
    }

    /// Returns the address of the item.
    pub(crate) fn address(&self) -> Address<'_> {
        let id = |span: Option<Span>| {
            let (from, to) = span?;
            self.fixed.get(from as usize..to as usize)
        };
        Address {
            item_id: id(self.item_address.item_id),
            call_id: id(self.item_address.call_id),
            index: self.item_address.index,
            sub: self.item_address.sub,
            public_id: None,
        }
    }

    /// Matches the start of an input. The text is not checked for UTF-8.
    #[inline(always)]
    pub(crate) fn fit<'p>(&self, incoming: Incoming<'p>) -> Option<TemplateMatch<'p>> {
        self.fit_with(incoming, number)
    }

    /// Does the same as `fit`, but parses numbers with `number`, which returns a number and its length.
    ///
    /// The fixed bytes after a number hole never begin with a digit.
    #[inline(always)]
    pub(crate) fn fit_with<'p>(
        &self,
        incoming: Incoming<'p>,
        number: impl Fn(&[u8]) -> Option<(u32, usize)>,
    ) -> Option<TemplateMatch<'p>> {
        let head = self.head as usize;
        let (lead, remaining) = self.fixed.as_bytes().split_at_checked(self.lead as usize)?;
        let (input, lead, ending) = match incoming {
            Incoming::Lines(lines) => (lines, lead, Ending::BlankLine),
            Incoming::Payload { event, data } if event == self.event() => {
                (data, lead.get(head..)?, Ending::Here)
            }
            Incoming::Payload { .. } => return None,
        };
        let mut reading = Reading {
            unmatched: input.strip_prefix(lead)?,
            remaining,
            found: TemplateMatch {
                frame: self.frame,
                padding: NO_PADDING,
                ..TemplateMatch::default()
            },
        };
        // The loop is unrolled so that the branch predictor learns each hole separately.
        let [first, second, third, fourth] = self.holes;
        reading.pass(first, &number)?;
        reading.pass(second, &number)?;
        reading.pass(third, &number)?;
        reading.pass(fourth, &number)?;
        let Reading {
            unmatched,
            mut found,
            ..
        } = reading;
        let end = ending.length(unmatched)?;
        let length = input.len() - unmatched.len();
        if found.text_length == 0 {
            return None;
        }
        match ending {
            Ending::Here => found.length = length,
            Ending::BlankLine if self.one_line => {
                found.before = head - DATA.len();
                found.length = length + end;
            }
            Ending::BlankLine => return None,
        }
        Some(found)
    }
}

/// State of matching a payload against a template.
struct Reading<'p, 'e> {
    unmatched: &'p [u8],
    /// The fixed bytes still to be matched.
    remaining: &'e [u8],
    found: TemplateMatch<'p>,
}

impl Reading<'_, '_> {
    /// Consumes the content of a hole and the fixed bytes after it.
    #[inline(always)]
    fn pass(
        &mut self,
        hole: Option<(Hole, u32)>,
        number: &impl Fn(&[u8]) -> Option<(u32, usize)>,
    ) -> Option<()> {
        let Some((hole, remaining)) = hole else {
            return Some(());
        };
        let (unmatched, found) = (self.unmatched, &mut self.found);
        let length = match hole {
            Hole::Text => {
                let end = match plain_end(unmatched) {
                    Some(end) => end,
                    None => {
                        let (end, escaped) = string_end(unmatched, 0)?;
                        found.escaped = escaped;
                        end
                    }
                };
                (found.bytes, found.text_length) = (unmatched, end);
                end
            }
            Hole::Padding => {
                let end = plain_end(unmatched).or_else(|| padding_end(unmatched))?;
                found.padding = mark_of_piece(unmatched, end);
                end
            }
            Hole::Number => {
                let (value, length) = number(unmatched)?;
                found.number = Some(value);
                length
            }
            Hole::Object => {
                let object = small_object(unmatched)?;
                found.object = Some(object);
                object.len()
            }
            // Most payloads have no spaces here.
            Hole::Blanks if unmatched.first() != Some(&b' ') => 0,
            Hole::Blanks => {
                found.blanks = blanks(unmatched);
                found.blanks
            }
        };
        let unmatched = unmatched.get(length..)?;
        let (fixed, others) = self.remaining.split_at_checked(remaining as usize)?;
        self.remaining = others;
        self.unmatched = match fixed {
            [] => unmatched,
            [brace] => {
                unmatched
                    .split_first()
                    .filter(|(byte, _)| *byte == brace)?
                    .1
            }
            _ => unmatched.strip_prefix(fixed)?,
        };
        Some(())
    }
}

/// Returns the end of a padding string that is not plain ASCII, or `None` if it is malformed or not UTF-8.
#[inline(never)]
fn padding_end(unmatched: &[u8]) -> Option<usize> {
    let (end, _) = string_end(unmatched, 0)?;
    std::str::from_utf8(unmatched.get(..end)?).ok().map(|_| end)
}

/// Returns the object at the start of the input if it is small and valid JSON.
#[inline(never)]
fn small_object(unmatched: &[u8]) -> Option<&str> {
    let near = unmatched.get(..OBJECT).unwrap_or(unmatched);
    // Find the possible end first, and let the scanner check that the bytes up to there are JSON.
    let end = container_end(near, 0)?;
    let text = std::str::from_utf8(near.get(..end)?).ok()?;
    let mut scanner = Scanner::new(text, Some(OBJECT_DEPTH));
    let is_object = scanner.kind() == Ok(Kind::Object) && scanner.skip().is_ok();
    (is_object && scanner.finish().is_ok() && !scanner.wide_integer()).then_some(text)
}

/// Returns the number of leading spaces.
#[inline]
fn blanks(bytes: &[u8]) -> usize {
    let mut unmatched = bytes;
    while let Some((word, tail)) = unmatched.split_first_chunk::<8>() {
        let others = u64::from_le_bytes(*word) ^ u64::from_le_bytes([b' '; 8]);
        if others != 0 {
            return bytes.len() - unmatched.len() + (others.trailing_zeros() / 8) as usize;
        }
        unmatched = tail;
    }
    bytes.len() - unmatched.len() + unmatched.iter().take_while(|byte| **byte == b' ').count()
}

/// A payload that contains only one piece of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LearnableDelta<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) varying: Varying<'a>,
}
/// The part or call that a text belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Part(PartAt<'a>),
    /// The address of a call, and the tool's name if the type of the event implies it.
    Call(Address<'a>, Option<&'static str>),
}
/// The varying members, which are not part of the template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying<'a> {
    pub(crate) text: Raw<'a>,
    pub(crate) padding: Option<Raw<'a>>,
    pub(crate) number: Option<Raw<'a>>,
    pub(crate) object: Option<Raw<'a>>,
    /// True if there may be spaces before the closing brace.
    pub(crate) blanks: bool,
}
