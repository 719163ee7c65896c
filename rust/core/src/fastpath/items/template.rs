//! One template: the bytes of a payload around what varies, and whether another payload has them too.

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

/// A number that a hole for one takes; any other is part of the template, or has to be read.
pub(crate) fn is_small(raw: Raw<'_>) -> bool {
    let small = number(raw.text.as_bytes()).map(|(_, length)| length);
    raw.kind == Kind::Number && small == Some(raw.text.len())
}

/// What varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Text,
    /// A string that nobody reads.
    Padding,
    /// A number that the decoder looks at.
    Number,
    /// Before the last brace.
    Blanks,
    /// A small object that the decoder reads.
    Object,
}

/// What a payload brings that fits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TemplateMatch<'p> {
    /// The text, once it is known to be one.
    pub(crate) text: &'p str,
    /// Its bytes and what follows them, and how many they are, which is not 0.
    pub(crate) bytes: &'p [u8],
    pub(crate) text_length: usize,
    pub(crate) escaped: bool,
    pub(crate) number: Option<u32>,
    pub(crate) object: Option<&'p str>,
    /// The marks of its template and of its padding, and how many blanks it has.
    frame: u64,
    padding: u64,
    blanks: usize,
    /// What of its event stands before its data line.
    pub(crate) before: usize,
    /// With its lines, where they came.
    pub(crate) length: usize,
}

impl TemplateMatch<'_> {
    /// As `Varying::mark` of the whole payload.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        let text = mark_of_piece(self.bytes, self.text_length);
        join(join(self.frame ^ self.blanks as u64, text), self.padding)
    }

    /// `None` where the text is no UTF-8.
    #[inline]
    pub(crate) fn as_text(self) -> Option<Self> {
        let text = self.bytes.get(..self.text_length)?;
        let text = std::str::from_utf8(text).ok()?;
        Some(TemplateMatch { text, ..self })
    }
}

/// From where to where in the bytes of a template.
type Span = (u32, u32);

/// An address, its ids being places in the bytes of the template.
#[derive(Debug)]
pub(crate) struct Whom {
    item_id: Option<Span>,
    call_id: Option<Span>,
    index: Option<i64>,
    pub(crate) sub: Option<i64>,
}

/// How many holes there can be, each of another kind. No dialect has all of them.
const HOLES: usize = 4;

/// The longest object that fits a hole for one, and how many levels it may have.
const OBJECT: usize = 1024;
pub(crate) const OBJECT_DEPTH: u64 = 8;

/// A part of an item, but for its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TemplatePart {
    pub(crate) choice: i32,
    pub(crate) kind: ItemKind,
    pub(crate) channel: Channel,
    pub(crate) reasoning_kind: &'static str,
}

#[derive(Debug)]
pub(crate) struct Envelope {
    /// All that is fixed, in one piece: the lines of the event up to the first hole (its name, if it has one, then its
    /// data), what stands behind each, and ids that stand nowhere in it as they are.
    fixed: Box<str>,
    /// Where the payload begins in it, and where the first hole is.
    head: u32,
    lead: u32,
    /// Each hole, and how many bytes stand behind it. An absent one comes last.
    holes: [Option<(Hole, u32)>; HOLES],
    /// The mark of what is fixed.
    frame: u64,
    /// No line end stands in it, so that it can be known before it is cut out of its line.
    one_line: bool,
    pub(crate) whom: Whom,
    /// `None`: a call.
    pub(crate) part: Option<TemplatePart>,
    /// Where its last piece went.
    pub(crate) trail: RouteCache,
    /// What followed it the last time: items that take turns do so in order.
    pub(crate) next: usize,
}

/// Where a piece of a payload stands in it.
fn range(payload: &str, piece: &str) -> Option<Range<usize>> {
    let start = (piece.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let range = start..start + piece.len();
    payload.get(range.clone()).map(|_| range)
}

/// What varies in a payload, in order.
fn holes(payload: &str, varying: Varying<'_>) -> Option<Vec<(Hole, Range<usize>)>> {
    let string = |raw: Raw<'_>| {
        let range = range(payload, raw.text).filter(|_| raw.kind == Kind::String)?;
        // The quotes belong to the template.
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

/// The mark of what is fixed, piece by piece.
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
    /// The mark of a payload; equal payloads with the same number have the same, whoever marks them. `None` where it can
    /// fit no template.
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

/// The mark of a padding that is not there.
const NO_PADDING: u64 = 0;

/// Cuts a payload at its holes.
pub(crate) fn cut(
    event: Option<&str>,
    payload: &str,
    lesson: LearnableDelta<'_>,
) -> Option<Envelope> {
    let holes = holes(payload, lesson.varying)?;
    let ends = holes.iter().skip(1).map(|(_, range)| range.start);
    let names = event.map_or(0, |name| EVENT.len() + name.len() + 1);
    // Too much by what varies; cut to size in the end.
    let mut fixed = String::with_capacity(names + DATA.len() + payload.len());
    if let Some(name) = event.filter(|name| !name.is_empty()) {
        fixed.extend([EVENT, name, "\n"]);
    }
    fixed.push_str(DATA);
    let head = u32::try_from(fixed.len()).ok()?;
    fixed.push_str(payload.get(..holes.first()?.1.start)?);
    let lead = u32::try_from(fixed.len()).ok()?;
    let mut cut = [None; HOLES];
    let behind = holes.iter().zip(ends.chain([payload.len()]));
    for (place, ((hole, range), end)) in cut.iter_mut().zip(behind) {
        let text = payload.get(range.end..end)?;
        fixed.push_str(text);
        *place = Some((*hole, u32::try_from(text.len()).ok()?));
    }
    let (address, part) = match lesson.target {
        Target::Call(address) => (address, None),
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
    let mut place = |id: Option<&str>| {
        let Some(id) = id else {
            return Some(None);
        };
        let known = range(payload, id).map(|at| {
            let cut = holes.iter().filter(|(_, hole)| hole.end <= at.start);
            head as usize + at.start - cut.map(|(_, hole)| hole.len()).sum::<usize>()
        });
        // One that stands there with escapes has a text of its own.
        let at = known.unwrap_or_else(|| {
            fixed.push_str(id);
            fixed.len() - id.len()
        });
        let span = (u32::try_from(at), u32::try_from(at + id.len()));
        Some(Some((span.0.ok()?, span.1.ok()?)))
    };
    let whom = Whom {
        item_id: place(address.item_id)?,
        call_id: place(address.call_id)?,
        index: address.index,
        sub: address.sub,
    };
    Some(Envelope {
        fixed: fixed.into(),
        head,
        lead,
        holes: cut,
        frame: frame(payload, &holes),
        one_line: !payload.contains('\n'),
        whom,
        part,
        trail: RouteCache::default(),
        next: 0,
    })
}

impl Envelope {
    /// The name of the frame.
    fn event(&self) -> &[u8] {
        let end = (self.head as usize).checked_sub(1 + DATA.len());
        end.and_then(|end| self.fixed.as_bytes().get(EVENT.len()..end))
            .unwrap_or_default()
    }

    /// The same but for whom it is for, and where its last piece went.
    pub(crate) fn is_same(&self, other: &Envelope) -> bool {
        let key = |of: &Envelope| (of.head, of.lead, of.holes);
        key(self) == key(other) && self.fixed == other.fixed
    }

    /// The least that an event of it has.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.fixed.len()
    }

    /// Whom it is for.
    pub(crate) fn address(&self) -> Address<'_> {
        let id = |span: Option<Span>| {
            let (from, to) = span?;
            self.fixed.get(from as usize..to as usize)
        };
        Address {
            item_id: id(self.whom.item_id),
            call_id: id(self.whom.call_id),
            index: self.whom.index,
            sub: self.whom.sub,
            public_id: None,
        }
    }

    /// What the beginning of an input brings, if that is a payload with the same bytes. The text is not known to be UTF-8.
    #[inline(always)]
    pub(crate) fn fit<'p>(&self, incoming: Incoming<'p>) -> Option<TemplateMatch<'p>> {
        self.fit_with(incoming, number)
    }

    /// The same with a number that is read in that way: it and its length. What follows is no digit in any template.
    #[inline(always)]
    pub(crate) fn fit_with<'p>(
        &self,
        incoming: Incoming<'p>,
        number: impl Fn(&[u8]) -> Option<(u32, usize)>,
    ) -> Option<TemplateMatch<'p>> {
        let head = self.head as usize;
        let (lead, behind) = self.fixed.as_bytes().split_at_checked(self.lead as usize)?;
        let (input, lead, ending) = match incoming {
            Incoming::Lines(lines) => (lines, lead, Ending::BlankLine),
            Incoming::Payload { event, data } if event == self.event() => {
                (data, lead.get(head..)?, Ending::Here)
            }
            Incoming::Payload { .. } => return None,
        };
        let mut reading = Reading {
            rest: input.strip_prefix(lead)?,
            behind,
            found: TemplateMatch {
                frame: self.frame,
                padding: NO_PADDING,
                ..TemplateMatch::default()
            },
        };
        // No loop: a processor that has seen one event knows at each of them what the next one has there.
        let [first, second, third, fourth] = self.holes;
        reading.pass(first, &number)?;
        reading.pass(second, &number)?;
        reading.pass(third, &number)?;
        reading.pass(fourth, &number)?;
        let Reading {
            rest, mut found, ..
        } = reading;
        let end = ending.length(rest)?;
        let length = input.len() - rest.len();
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

/// A payload while it is matched with a template.
struct Reading<'p, 'e> {
    rest: &'p [u8],
    /// What of the template is to come.
    behind: &'e [u8],
    found: TemplateMatch<'p>,
}

impl Reading<'_, '_> {
    /// What stands in a hole, and as many bytes of the template as stand behind it.
    #[inline(always)]
    fn pass(
        &mut self,
        hole: Option<(Hole, u32)>,
        number: &impl Fn(&[u8]) -> Option<(u32, usize)>,
    ) -> Option<()> {
        let Some((hole, behind)) = hole else {
            return Some(());
        };
        let (rest, found) = (self.rest, &mut self.found);
        let length = match hole {
            Hole::Text => {
                let end = match plain_end(rest) {
                    Some(end) => end,
                    None => {
                        let (end, escaped) = string_end(rest, 0)?;
                        found.escaped = escaped;
                        end
                    }
                };
                (found.bytes, found.text_length) = (rest, end);
                end
            }
            Hole::Padding => {
                let end = plain_end(rest).or_else(|| padding_end(rest))?;
                found.padding = mark_of_piece(rest, end);
                end
            }
            Hole::Number => {
                let (value, length) = number(rest)?;
                found.number = Some(value);
                length
            }
            Hole::Object => {
                let object = small_object(rest)?;
                found.object = Some(object);
                object.len()
            }
            // Most have none.
            Hole::Blanks if rest.first() != Some(&b' ') => 0,
            Hole::Blanks => {
                found.blanks = blanks(rest);
                found.blanks
            }
        };
        let rest = rest.get(length..)?;
        let (fixed, others) = self.behind.split_at_checked(behind as usize)?;
        self.behind = others;
        self.rest = match fixed {
            [] => rest,
            [brace] => rest.split_first().filter(|(byte, _)| *byte == brace)?.1,
            _ => rest.strip_prefix(fixed)?,
        };
        Some(())
    }
}

/// The end of a string that is more than plain ASCII.
#[inline(never)]
fn padding_end(rest: &[u8]) -> Option<usize> {
    let (end, _) = string_end(rest, 0)?;
    std::str::from_utf8(rest.get(..end)?).ok().map(|_| end)
}

/// The object that comes first, if it is a small one.
#[inline(never)]
fn small_object(rest: &[u8]) -> Option<&str> {
    let near = rest.get(..OBJECT).unwrap_or(rest);
    // Where it may end; whether it is JSON is checked then.
    let end = container_end(near, 0)?;
    let text = std::str::from_utf8(near.get(..end)?).ok()?;
    let mut scanner = Scanner::new(text, Some(OBJECT_DEPTH));
    let is_object = scanner.kind() == Ok(Kind::Object) && scanner.skip().is_ok();
    (is_object && scanner.finish().is_ok() && !scanner.wide_integer()).then_some(text)
}

/// How many blanks come first.
#[inline]
fn blanks(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        let others = u64::from_le_bytes(*word) ^ u64::from_le_bytes([b' '; 8]);
        if others != 0 {
            return bytes.len() - rest.len() + (others.trailing_zeros() / 8) as usize;
        }
        rest = tail;
    }
    bytes.len() - rest.len() + rest.iter().take_while(|byte| **byte == b' ').count()
}

/// A payload that brought one piece of text and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LearnableDelta<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) varying: Varying<'a>,
}
/// Whom a text is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Part(PartAt<'a>),
    Call(Address<'a>),
}
/// What of it is not part of the template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Varying<'a> {
    pub(crate) text: Raw<'a>,
    pub(crate) padding: Option<Raw<'a>>,
    pub(crate) number: Option<Raw<'a>>,
    pub(crate) object: Option<Raw<'a>>,
    /// Blanks before the last brace.
    pub(crate) blanks: bool,
}
