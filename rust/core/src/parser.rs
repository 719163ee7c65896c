//! The pipeline of one stream: bytes, frames, payloads, wire deltas, events.
//!
//! Holds what the stages share (the place of the payload at hand, the policy, what was seen so far) and decides what a
//! payload is good for. Every fault gets its place here; after a fault or the end nothing is taken any more.

use std::borrow::Cow;
use std::mem;
use std::sync::LazyLock;

use serde_json::Value;

use crate::assemble::Assembler;
use crate::config::Config;
use crate::delta::{Completeness, Rest};
use crate::dialect::chat::read::{self, Document};
use crate::dialect::chat::{Chat, Payload, Wire, is_body, is_note, unknown};
use crate::dialect::{Dialect, detect};
use crate::event::Sink;
use crate::fault::{Extra, Fault};
use crate::json::{Problem, ScanError};
use crate::ladder::{Found, MARKER, climb, trim, trim_start};
use crate::limits::LimitName;
use crate::out::{Diagnostic, Ledger, Out};
use crate::policy::{Base, DuplicatePayload};
use crate::spec::{self, Code};
use crate::sse::{Framer, Item, Pending, decode_utf8};

/// How much of a body is kept until its first payload.
const HEAD: usize = 512;

/// The fields of an event stream.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

/// Events that say that there is nothing to say.
static KEEP_ALIVE: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let names = spec::dialects()
        .get("chat")
        .and_then(|chat| chat.get("keepalive_events"));
    names
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
});

type Step = Result<(), Fault>;

/// Reads one stream.
#[derive(Debug)]
pub struct Parser {
    config: Config,
    ledger: Ledger,
    framer: Framer,
    stage: Stage,
    over: bool,
}

/// What lies behind the framer.
#[derive(Debug)]
struct Stage {
    dialect: Option<Dialect>,
    chat: Chat,
    assembler: Assembler,
    /// The first bytes of the body, until there is a payload.
    head: Vec<u8>,
    /// A payload that is more than a heartbeat was seen.
    seen: bool,
    /// The terminal marker was seen.
    done: bool,
    /// Data after the marker was reported.
    late: bool,
    /// The payload before, where equal ones are to be dropped.
    last: Option<Option<Vec<u8>>>,
    /// Payloads may be matched with known envelopes.
    swift: bool,
}

/// A frame or a stray payload, or what the end of the input left of one.
#[derive(Clone, Copy, Debug)]
struct Arrival<'a> {
    event: &'a [u8],
    data: &'a [u8],
    offset: u64,
    ordinal: u64,
    stray: bool,
}

impl Parser {
    /// `None` detects the dialect.
    pub fn new(dialect: Option<Dialect>, config: Config) -> Parser {
        Parser::with_caching(dialect, config, true)
    }

    /// Without caching every payload is read in full; the result is the same.
    #[doc(hidden)]
    pub fn with_caching(dialect: Option<Dialect>, config: Config, caching: bool) -> Parser {
        let drops = config.policy.switches.duplicate_payload == DuplicatePayload::Drop;
        Parser {
            framer: Framer::new(&config.limits, true),
            ledger: Ledger::default(),
            stage: Stage {
                dialect,
                chat: Chat::new(&config, caching),
                assembler: Assembler::new(&config),
                head: Vec::new(),
                seen: false,
                done: false,
                late: false,
                last: drops.then_some(None),
                swift: false,
            },
            config,
            over: false,
        }
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, input: &[u8], sink: &mut dyn Sink) -> Step {
        if self.over {
            return Ok(());
        }
        let Parser {
            config,
            ledger,
            framer,
            stage,
            ..
        } = self;
        let total = framer.offset();
        let limit = config.limits.max_stream_bytes;
        let room = limit.map_or(usize::MAX, |limit| {
            usize::try_from(limit.saturating_sub(total)).unwrap_or(usize::MAX)
        });
        let taken = input.get(..room).unwrap_or(input);
        if !stage.seen && stage.head.len() < HEAD {
            stage
                .head
                .extend(taken.iter().take(HEAD - stage.head.len()));
        }
        let mut out = Out::new(config, ledger, sink);
        let mut result = framer.feed(taken, &mut |item: Item<'_>| stage.item(&mut out, item));
        if let Some(limit) = limit.filter(|_| result.is_ok() && taken.len() < input.len()) {
            result =
                Err(Fault::limit(LimitName::max_stream_bytes, limit).at(limit, framer.ordinal()));
        }
        self.over = result.is_err();
        result
    }

    /// The end of the input: says what is open, and whether all of it came.
    pub fn close(&mut self, sink: &mut dyn Sink) -> Step {
        if mem::replace(&mut self.over, true) {
            return Ok(());
        }
        let Parser {
            config,
            ledger,
            framer,
            stage,
            ..
        } = self;
        let mut out = Out::new(config, ledger, sink);
        stage.close(&mut out, &framer.finish())
    }

    /// After a fault or `close` nothing is taken any more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The dialect, as soon as it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.stage.dialect
    }

    /// The diagnostics that were kept.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.ledger.diagnostics()
    }

    /// How many diagnostics were not kept.
    pub fn diagnostics_dropped(&self) -> u64 {
        self.ledger.dropped()
    }

    /// How far the answer can be trusted to be all of it; open until the end or a fault.
    pub fn completeness(&self) -> Completeness {
        match self.stage.assembler.completeness() {
            _ if !self.over => Completeness::Open,
            Completeness::Open => Completeness::Truncated,
            known => known,
        }
    }

    /// The close events that rebuild the answer, with what is open as far as it came.
    pub fn snapshot(&self, sink: &mut dyn Sink) {
        self.stage.assembler.snapshot(sink);
    }
}

impl Stage {
    #[inline]
    fn item(&mut self, out: &mut Out<'_>, item: Item<'_>) -> Step {
        let arrival = match item {
            Item::Frame(frame) => Arrival {
                event: frame.event,
                data: frame.data,
                offset: frame.offset,
                ordinal: frame.ordinal,
                stray: false,
            },
            Item::Stray(stray) => Arrival {
                event: b"",
                data: stray.data,
                offset: stray.offset,
                ordinal: stray.ordinal,
                stray: true,
            },
        };
        self.arrival(out, arrival)
            .map_err(|fault| arrival.place(fault))
    }

    #[inline]
    fn arrival(&mut self, out: &mut Out<'_>, arrival: Arrival<'_>) -> Step {
        out.at(arrival.offset, arrival.ordinal);
        if let Some(limit) = out
            .config
            .limits
            .max_events
            .filter(|limit| arrival.ordinal >= *limit)
        {
            return Err(Fault::limit(LimitName::max_events, limit));
        }
        if self.swift && !arrival.stray && matches!(arrival.event, b"" | b"message") {
            let mut wire = Wire {
                assembler: &mut self.assembler,
                out,
            };
            if self.chat.known(&mut wire, arrival.data)? {
                return Ok(());
            }
        }
        self.read(out, arrival)
    }

    fn read(&mut self, out: &mut Out<'_>, arrival: Arrival<'_>) -> Step {
        let event = arrival.event_name();
        let event = event.as_deref();
        if event.is_some_and(is_keep_alive) {
            return Ok(());
        }
        let (text, replaced) = decode_utf8(arrival.data);
        let text = trim(&text);
        if text.is_empty() {
            return Ok(());
        }
        let payload = Payload {
            text,
            event,
            tail: false,
        };
        if self.done {
            return self.after_done(out, payload);
        }
        if arrival.stray && !self.seen && text.starts_with('<') {
            // Not what else the read brought.
            let end = arrival.offset.saturating_add(arrival.data.len() as u64);
            self.head
                .truncate(usize::try_from(end).unwrap_or(usize::MAX));
            return Err(self.no_event_stream(out));
        }
        if let Some(last) = self.last.as_mut().filter(|_| text != MARKER) {
            if last.as_deref() == Some(arrival.data) {
                return out.diagnose(Code::DUPLICATE_PAYLOAD, None, "");
            }
            *last = Some(arrival.data.to_vec());
        }
        let lenient = out.config.policy.base != Base::Strict;
        let found = climb(
            arrival.data,
            text,
            out.config.limits.max_json_depth,
            lenient,
        );
        if replaced {
            out.diagnose(Code::INVALID_UTF8, None, "")?;
        }
        let bare = matches!(found, Found::Blank | Found::Comment | Found::Null);
        let first = !self.seen;
        self.seen |= !bare;
        match found {
            Found::Broken(error) if event == Some("error") && too_deep(out, error).is_none() => {
                self.text(out, payload)
            }
            Found::Broken(error) => self.broken(out, error, arrival),
            Found::Marker => {
                if arrival.stray {
                    out.diagnose(Code::STRAY_PAYLOAD, None, "")?;
                }
                self.marker(out)
            }
            Found::Document(document) => {
                self.document(out, &document, payload, arrival.stray.then_some(first))
            }
            found => {
                if arrival.stray && !bare {
                    out.diagnose(Code::STRAY_PAYLOAD, None, "")?;
                }
                self.climbed(out, found, payload)
            }
        }
    }

    fn climbed(&mut self, out: &mut Out<'_>, found: Found<'_>, payload: Payload<'_>) -> Step {
        let depth = out.config.limits.max_json_depth;
        match found {
            Found::Comment => out.diagnose(Code::COMMENT_AS_DATA, None, ""),
            Found::Null => out.diagnose(Code::NULL_PAYLOAD, None, ""),
            Found::Lines(lines, documents) => {
                out.diagnose(Code::JSON_LINES, None, &documents.to_string())?;
                lines.into_iter().try_for_each(|line| {
                    self.line(
                        out,
                        Payload {
                            text: line,
                            ..payload
                        },
                    )
                })
            }
            Found::Joined(joined) => {
                out.diagnose(Code::LINES_JOINED, None, "")?;
                match read::document(&joined, depth) {
                    Ok(document) => self.document(
                        out,
                        &document,
                        Payload {
                            text: &joined,
                            ..payload
                        },
                        None,
                    ),
                    Err(_) => Ok(()),
                }
            }
            Found::Tail(tails) => {
                out.diagnose(Code::RECOVERED_TAIL, None, "")?;
                for text in tails {
                    if let Ok(document) = read::document(text, depth) {
                        self.document(
                            out,
                            &document,
                            Payload {
                                text,
                                tail: true,
                                ..payload
                            },
                            None,
                        )?;
                    }
                }
                Ok(())
            }
            Found::Text => self.text(out, payload),
            Found::Blank | Found::Marker | Found::Document(_) | Found::Broken(_) => Ok(()),
        }
    }

    /// An error in plain words.
    fn text(&mut self, out: &mut Out<'_>, payload: Payload<'_>) -> Step {
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.text(&mut wire, payload)
    }

    /// One line of several that are documents of their own.
    fn line(&mut self, out: &mut Out<'_>, payload: Payload<'_>) -> Step {
        if self.done {
            return self.after_done(out, payload);
        }
        match payload.text {
            MARKER => self.marker(out),
            "null" => out.diagnose(Code::NULL_PAYLOAD, None, ""),
            text => match read::document(text, out.config.limits.max_json_depth) {
                Ok(document) => self.document(out, &document, payload, None),
                Err(_) => Ok(()),
            },
        }
    }

    fn marker(&mut self, out: &mut Out<'_>) -> Step {
        self.done = true;
        self.seen = true;
        self.swift = false;
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.flush(&mut wire)?;
        self.assembler.done(out)
    }

    /// What comes behind the terminal marker is not processed. A note without any choice is no anomaly.
    fn after_done(&mut self, out: &mut Out<'_>, payload: Payload<'_>) -> Step {
        if payload.text == MARKER || payload.text.starts_with(':') {
            return Ok(());
        }
        let note = payload.text.starts_with('{')
            && read::document(payload.text, out.config.limits.max_json_depth)
                .is_ok_and(|document| is_note(&document));
        if note {
            return unknown(
                &mut Wire {
                    assembler: &mut self.assembler,
                    out,
                },
                payload,
            );
        }
        if mem::replace(&mut self.late, true) {
            Ok(())
        } else {
            out.diagnose(Code::DATA_AFTER_DONE, None, "")
        }
    }

    /// One document, to its dialect's decoder. `stray` says that it stood outside of any field: as the first payload?
    fn document(
        &mut self,
        out: &mut Out<'_>,
        document: &Document<'_>,
        payload: Payload<'_>,
        stray: Option<bool>,
    ) -> Step {
        if self.dialect.is_none() {
            self.dialect = Some(detect(document, payload.event).map_err(|strange| {
                let mut fault = Fault::unknown_dialect(strange.seen);
                strange.dialect.clone_into(&mut fault.detail);
                fault
            })?);
        }
        let body = stray == Some(true) && is_body(document);
        if stray.is_some() {
            out.diagnose(
                if body {
                    Code::BODY_NOT_STREAMED
                } else {
                    Code::STRAY_PAYLOAD
                },
                None,
                "",
            )?;
        }
        self.swift = !self.done && self.last.is_none();
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.document(&mut wire, document, payload)?;
        if body && !self.done {
            return self.marker(out);
        }
        Ok(())
    }

    fn broken(&mut self, out: &mut Out<'_>, error: ScanError, arrival: Arrival<'_>) -> Step {
        if let Some(limit) = too_deep(out, error) {
            return Err(Fault::limit(LimitName::max_json_depth, limit));
        }
        if out.config.policy.raises(Code::MALFORMED_JSON) {
            return Err(Fault::chunk(position(arrival.data, error.pos)));
        }
        out.diagnose(Code::MALFORMED_JSON, None, "")
    }

    /// There is a body, but it is something else; it is told from its beginning.
    fn no_event_stream(&mut self, out: &Out<'_>) -> Fault {
        let head = mem::take(&mut self.head);
        let fault = Fault::not_an_event_stream(Vec::new(), None)
            .at(0, 0)
            .with_raw(&head);
        let mut placed = fault;
        placed.extra = Extra::NotAnEventStream {
            body_head: head,
            content_type: out.config.content_type.clone(),
        };
        placed
    }

    fn close(&mut self, out: &mut Out<'_>, pending: &Pending<'_>) -> Step {
        let data = pending
            .data
            .filter(|data| !data.is_empty())
            .map(|data| Arrival {
                event: pending.event,
                data,
                offset: pending.data_offset,
                ordinal: pending.ordinal,
                stray: false,
            });
        let stray = pending
            .stray
            .filter(|data| !data.is_empty())
            .map(|data| Arrival {
                event: b"",
                data,
                offset: pending.stray_offset,
                ordinal: pending.ordinal,
                stray: true,
            });
        let begun = data.is_some() || stray.is_some();
        let mut cut = pending.open && !begun;
        let mut ordinal = pending.ordinal;
        for arrival in [data, stray].into_iter().flatten() {
            let arrival = Arrival { ordinal, ..arrival };
            match self
                .last_one(out, arrival)
                .map_err(|fault| arrival.place(fault))?
            {
                Last::Used => ordinal += 1,
                Last::Nothing => {}
                Last::Cut => cut = true,
            }
        }
        out.at(pending.offset, ordinal);
        self.end(out, pending, begun, cut)
            .map_err(|fault| match fault.extra {
                Extra::NotAnEventStream { .. } => fault,
                _ => fault.at(pending.offset, ordinal),
            })
    }

    /// Uses an event that the input did not finish, if it is whole all the same.
    fn last_one(&mut self, out: &mut Out<'_>, arrival: Arrival<'_>) -> Result<Last, Fault> {
        let (text, _) = decode_utf8(arrival.data);
        let text = trim(&text);
        let event = arrival.event_name();
        let heartbeat = event.as_deref().is_some_and(is_keep_alive);
        if text.is_empty() || text.starts_with(':') || heartbeat {
            return Ok(Last::Nothing);
        }
        if arrival.stray && !self.seen && text.starts_with('<') {
            return Err(self.no_event_stream(out));
        }
        if text != MARKER && !self.done && !is_whole(out, arrival.data, text) {
            return Ok(Last::Cut);
        }
        if !arrival.stray && !self.done {
            out.at(arrival.offset, arrival.ordinal);
            out.diagnose(Code::UNTERMINATED_EVENT, None, "")?;
        }
        self.arrival(out, arrival)?;
        Ok(Last::Used)
    }

    fn end(&mut self, out: &mut Out<'_>, pending: &Pending<'_>, begun: bool, cut: bool) -> Step {
        if !self.seen && !begun && is_foreign(&self.head) {
            return Err(self.no_event_stream(out));
        }
        let rest = match (cut, pending.mid_utf8) {
            (true, true) => Rest::MidUtf8,
            (true, false) => Rest::MidEvent,
            (false, _) if !self.seen => Rest::Empty,
            (false, _) => Rest::Nothing,
        };
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.flush(&mut wire)?;
        self.assembler.end(out, rest)
    }
}

/// What an unfinished event came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Used,
    /// It says nothing.
    Nothing,
    Cut,
}

impl<'a> Arrival<'a> {
    fn place(&self, fault: Fault) -> Fault {
        if matches!(fault.extra, Extra::NotAnEventStream { .. }) {
            return fault;
        }
        let mut fault = fault.at(self.offset, self.ordinal).with_raw(self.data);
        fault.event_type = self.event_name().map(Cow::into_owned);
        fault
    }

    /// The name of the event, unless it is the usual one.
    fn event_name(&self) -> Option<Cow<'a, str>> {
        match self.event {
            b"" | b"message" => None,
            name => Some(decode_utf8(name).0),
        }
    }
}

/// The cap of nesting that was passed.
fn too_deep(out: &Out<'_>, error: ScanError) -> Option<u64> {
    out.config
        .limits
        .max_json_depth
        .filter(|_| error.problem == Problem::TooDeep)
}

/// Where a position in the trimmed text of a payload is in its bytes, of which broken ones were replaced.
fn position(data: &[u8], pos: usize) -> usize {
    let (text, replaced) = decode_utf8(data);
    let pos = text.len() - trim_start(&text).len() + pos;
    if !replaced {
        return pos;
    }
    let (mut raw, mut shown) = (0, 0);
    for chunk in data.utf8_chunks() {
        let plain = chunk.valid().len();
        if pos <= shown + plain {
            return raw + (pos - shown);
        }
        (raw, shown) = (raw + plain, shown + plain);
        if !chunk.invalid().is_empty() {
            raw += chunk.invalid().len();
            shown += char::REPLACEMENT_CHARACTER.len_utf8();
        }
    }
    raw
}

fn is_keep_alive(event: &str) -> bool {
    KEEP_ALIVE.contains(&event)
}

/// Whether an unfinished event can be read as it is; a broken one is a cut one.
fn is_whole(out: &Out<'_>, data: &[u8], text: &str) -> bool {
    let lenient = out.config.policy.base != Base::Strict;
    let depth = out.config.limits.max_json_depth;
    text.starts_with(['{', '['])
        && match climb(data, text, depth, lenient) {
            // Too deep is too deep, whole or not.
            Found::Broken(error) => error.problem == Problem::TooDeep,
            Found::Text => false,
            _ => true,
        }
}

/// Whether the beginning of a body has a line that no event stream has.
fn is_foreign(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r')).peekable();
    while let Some(line) = lines.next() {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let blank = line
            .iter()
            .all(|byte| byte.is_ascii_whitespace() || *byte == 0x0b);
        if blank || line.first() == Some(&b':') || FIELDS.contains(&name) {
            continue;
        }
        // The last line may be cut inside its field name.
        let cut = lines.peek().is_none() && name.len() == line.len();
        if !(cut && FIELDS.iter().any(|field| field.starts_with(name))) {
            return true;
        }
    }
    false
}
