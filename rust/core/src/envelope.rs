//! Envelopes of items: consecutive deltas of one item are the same bytes but for their text, so that is all that is read.
//!
//! A decoder that read a payload in full, and found nothing in it but one piece of text for one item, tells so: a lesson.
//! It keeps the bytes around what varies. A later payload with the same bytes, and any valid JSON strings and small
//! numbers in between, leaves a JSON parser in the same states, so it says the same with another text. What depends on
//! anything but the payload is the decoder's to ask. Knows no dialect.

use std::ops::Range;

use crate::assemble::Trail;
use crate::delta::{Address, Channel, ItemKind, PartAt};
use crate::json::{Kind, Raw, Text, string_end};
use crate::wire::{DATA, EVENT, Ending, Incoming, Step, Wire};

/// How many are kept: as many items as may take turns.
const KEPT: usize = 4;

/// After so many in a row that never fitted, only every so often another one is learned.
const FRUITLESS: u32 = 16;
const PAUSE: u32 = 64;

/// A number that a hole for one takes; any other is part of the envelope, or has to be read.
pub(crate) fn is_small(raw: Raw<'_>) -> bool {
    raw.kind == Kind::Number && digits(raw.text.as_bytes()) == raw.text.len()
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
}

/// Whom a text is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    Part(PartAt<'a>),
    Call(Address<'a>),
}

/// A payload that brought one piece of text and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lesson<'a> {
    pub(crate) target: Target<'a>,
    pub(crate) text: Raw<'a>,
    pub(crate) padding: Option<Raw<'a>>,
    pub(crate) number: Option<Raw<'a>>,
}

/// What a payload brings that fits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found<'p> {
    text: &'p str,
    escaped: bool,
    pub(crate) number: Option<u32>,
    /// The whole payload.
    pub(crate) payload: &'p [u8],
    /// What of its event stands before its data line.
    pub(crate) before: usize,
    /// With its lines, where they came.
    pub(crate) length: usize,
}

/// From where to where in the bytes of an envelope.
type Span = (u32, u32);

/// An address, its ids being places in the bytes of the envelope.
#[derive(Debug)]
struct Whom {
    item_id: Option<Span>,
    call_id: Option<Span>,
    index: Option<i64>,
    sub: Option<i64>,
}

/// How many holes there can be: one of each kind.
const HOLES: usize = 4;

/// A part of an item, but for its address.
#[derive(Clone, Copy, Debug)]
struct Part {
    choice: i32,
    kind: ItemKind,
    channel: Channel,
    reasoning_kind: &'static str,
}

#[derive(Debug)]
struct Envelope {
    /// All that is fixed, in one piece: the lines of the event up to the first hole (its name, if it has one, then its
    /// data), what stands behind each, and ids that stand nowhere in it as they are.
    fixed: Box<str>,
    /// Where the payload begins in it, and where the first hole is.
    head: u32,
    lead: u32,
    /// Each hole, and how many bytes stand behind it. An absent one comes last.
    holes: [Option<(Hole, u32)>; HOLES],
    /// No line end stands in it, so that it can be known before it is cut out of its line.
    one_line: bool,
    whom: Whom,
    /// `None`: a call.
    part: Option<Part>,
    /// Where its last piece went.
    trail: Trail,
    /// What followed it the last time: items that take turns do so in order.
    next: usize,
}

/// Those of one stream.
#[derive(Debug, Default)]
pub(crate) struct Envelopes {
    known: Vec<Envelope>,
    last: usize,
    /// Where the next one goes once all places are taken.
    next: usize,
    fruitless: u32,
}

impl Envelopes {
    /// What a payload brings that is as one before it.
    #[inline]
    pub(crate) fn find<'p>(&mut self, incoming: Incoming<'p>) -> Option<Found<'p>> {
        let likely = self.known.get(self.last)?.next;
        let found = match self.known.get(likely).and_then(|it| it.fit(incoming)) {
            Some(found) => {
                self.last = likely;
                found
            }
            None => self.find_other(incoming, likely)?,
        };
        self.fruitless = 0;
        Some(found)
    }

    fn find_other<'p>(&mut self, incoming: Incoming<'p>, unlike: usize) -> Option<Found<'p>> {
        let mut places = (0..self.known.len()).filter(|place| *place != unlike);
        let fit = |place: usize| Some((place, self.known.get(place)?.fit(incoming)?));
        let (place, found) = places.find_map(fit)?;
        if let Some(before) = self.known.get_mut(self.last) {
            before.next = place;
        }
        self.last = place;
        Some(found)
    }

    /// Does what the payload says that was found last.
    #[inline]
    pub(crate) fn act(&mut self, wire: &mut Wire<'_, '_>, found: &Found<'_>) -> Step {
        let Some(envelope) = self.known.get_mut(self.last) else {
            return Ok(());
        };
        let text = if found.escaped {
            Text::unescape(found.text)
        } else {
            Text::plain(found.text)
        };
        let (fixed, whom, trail) = (&envelope.fixed, &envelope.whom, &mut envelope.trail);
        let id = |span: Option<Span>| span.and_then(|(from, to)| slice(fixed, from, to));
        let address = Address {
            item_id: id(whom.item_id),
            call_id: id(whom.call_id),
            index: whom.index,
            sub: whom.sub,
            public_id: None,
        };
        let Wire { assembler, out } = wire;
        match envelope.part {
            Some(part) => {
                let at = PartAt {
                    choice: part.choice,
                    kind: part.kind,
                    address,
                    channel: part.channel,
                    reasoning_kind: part.reasoning_kind,
                };
                assembler.go_on_with_part(out, at, text, trail)
            }
            None => assembler.go_on_with_call(out, 0, address, text, trail),
        }
    }

    /// Whether another one is learned now.
    #[inline]
    pub(crate) fn wants(&mut self) -> bool {
        self.fruitless = self.fruitless.saturating_add(1);
        self.fruitless <= FRUITLESS || self.fruitless % PAUSE == 0
    }

    /// Learns from a payload that was read in full.
    pub(crate) fn learn(&mut self, event: Option<&str>, payload: &str, lesson: Lesson<'_>) {
        let Some(mut envelope) = cut(event, payload, lesson) else {
            return;
        };
        let key = |of: &Envelope| (of.head, of.lead, of.holes);
        let same = |known: &Envelope| key(known) == key(&envelope) && known.fixed == envelope.fixed;
        if self.known.iter().any(same) {
            return;
        }
        if self.known.len() < KEPT {
            self.last = self.known.len();
            envelope.next = self.last;
            self.known.reserve_exact(usize::from(self.last == 0));
            self.known.push(envelope);
        } else if let Some(place) = self.known.get_mut(self.next) {
            envelope.next = self.next;
            *place = envelope;
            self.last = self.next;
            self.next = (self.next + 1) % KEPT;
        }
    }
}

#[inline]
fn slice(text: &str, from: u32, to: u32) -> Option<&str> {
    text.get(from as usize..to as usize)
}

/// Where a value stands in its payload.
fn range(payload: &str, raw: Raw<'_>) -> Option<Range<usize>> {
    let start = (raw.text.as_ptr() as usize).checked_sub(payload.as_ptr() as usize)?;
    let range = start..start + raw.text.len();
    payload.get(range.clone()).map(|_| range)
}

/// Cuts a payload at its holes.
fn cut(event: Option<&str>, payload: &str, lesson: Lesson<'_>) -> Option<Envelope> {
    let string = |raw: Raw<'_>| {
        let range = range(payload, raw).filter(|_| raw.kind == Kind::String)?;
        // The quotes belong to the envelope.
        Some(range.start + 1..range.end.checked_sub(1)?)
    };
    let body = payload.strip_suffix('}')?;
    let mut holes = vec![
        (Hole::Text, string(lesson.text)?),
        (Hole::Blanks, body.trim_end_matches(' ').len()..body.len()),
    ];
    if let Some(padding) = lesson.padding {
        holes.push((Hole::Padding, string(padding)?));
    }
    if let Some(number) = lesson.number {
        let small = Some(number).filter(|raw| is_small(*raw))?;
        holes.push((Hole::Number, range(payload, small)?));
    }
    holes.sort_by_key(|(_, range)| (range.start, range.end));
    let ends = holes.iter().skip(1).map(|(_, range)| range.start);
    let mut fixed = String::new();
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
            Some(Part {
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
        let at = fixed.find(id).unwrap_or_else(|| {
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
        one_line: !payload.contains('\n'),
        whom,
        part,
        trail: Trail::default(),
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

    #[inline]
    fn fit<'p>(&self, incoming: Incoming<'p>) -> Option<Found<'p>> {
        let (head, mut found) = (self.head as usize, Found::default());
        let (lead, mut behind) = self.fixed.as_bytes().split_at_checked(self.lead as usize)?;
        let (input, mut rest, ending) = match incoming {
            Incoming::Lines(lines) => {
                let rest = lines.strip_prefix(lead)?;
                found.before = head - DATA.len();
                (lines.get(head..)?, rest, Ending::BlankLine)
            }
            Incoming::Payload { event, data } => {
                if event != self.event() {
                    return None;
                }
                let rest = data.strip_prefix(lead.get(head..)?)?;
                (data, rest, Ending::Here)
            }
        };
        for hole in &self.holes {
            let Some((hole, length)) = hole else {
                break;
            };
            let after = match hole {
                Hole::Text => {
                    let (end, escaped) = string_end(rest, 0)?;
                    let (value, after) = rest.split_at_checked(end)?;
                    (found.text, found.escaped) = (std::str::from_utf8(value).ok()?, escaped);
                    after
                }
                Hole::Padding => {
                    let (value, after) = rest.split_at_checked(string_end(rest, 0)?.0)?;
                    let text = value.is_ascii() || std::str::from_utf8(value).is_ok();
                    text.then_some(after)?
                }
                Hole::Number => {
                    let (value, after) = rest.split_at_checked(digits(rest))?;
                    found.number = Some(value_of(value)?);
                    after
                }
                Hole::Blanks => {
                    let blank = rest.iter().take_while(|byte| **byte == b' ').count();
                    rest.get(blank..)?
                }
            };
            let (fixed, others) = behind.split_at_checked(*length as usize)?;
            (rest, behind) = (after.strip_prefix(fixed)?, others);
        }
        let end = ending.length(rest)?;
        if found.text.is_empty() || !(ending == Ending::Here || self.one_line) {
            return None;
        }
        let length = input.len() - rest.len();
        found.payload = input.get(..length)?;
        found.length = match ending {
            Ending::Here => length,
            Ending::BlankLine => head + length + end,
        };
        Some(found)
    }
}

/// The value of so few digits that it fits; `None` without any.
#[inline]
fn value_of(digits: &[u8]) -> Option<u32> {
    let add = |value: u32, digit: &u8| value * 10 + u32::from(digit & 15);
    (!digits.is_empty()).then(|| digits.iter().fold(0, add))
}

/// The length of a small number without a sign or a leading zero; 0 where there is none.
#[inline]
fn digits(bytes: &[u8]) -> usize {
    match bytes {
        [b'0', ..] => 1,
        _ => {
            let digits = bytes.iter().take(9);
            digits.take_while(|byte| byte.is_ascii_digit()).count()
        }
    }
}
