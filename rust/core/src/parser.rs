//! The pipeline of one stream: bytes, frames, payloads, wire deltas, events.
//!
//! Holds what the stages share (the place of the payload at hand, the policy, what was seen so far) and decides what a
//! payload is good for. Every fault gets its place here; after a fault or the end nothing is taken any more.

use std::mem;

use crate::assemble::Assembler;
use crate::config::Config;
use crate::delta::{Completeness, Rest};
use crate::dialect::chat::read::{self, Document};
use crate::dialect::chat::{Chat, Payload, Wire, complain_in_text, is_body};
use crate::dialect::{Dialect, detect};
use crate::event::Sink;
use crate::fault::Fault;
use crate::json::{Kind, Problem, ScanError};
use crate::ladder::{Found, MARKER, climb, trim};
use crate::limits::LimitName;
use crate::out::{Diagnostic, Ledger, Out};
use crate::policy::{Action, Base, DuplicatePayload};
use crate::spec::Code;
use crate::sse::{Framer, Item, Pending, decode_utf8};

/// How much of a body is kept until its first payload.
const HEAD: usize = 512;

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
    /// The whole answer came as one JSON body.
    body: bool,
    /// The payload before, where equal ones are to be dropped.
    last: Option<Vec<u8>>,
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
                body: false,
                last: drops.then(Vec::new),
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
        let mut result = framer.feed(taken, &mut |item| stage.item(&mut out, item));
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

    pub fn completeness(&self) -> Completeness {
        self.stage.assembler.completeness()
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
        if self.swift && arrival.event.is_empty() {
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
        let (text, replaced) = decode_utf8(arrival.data);
        let text = trim(&text);
        let event = String::from_utf8_lossy(arrival.event);
        if text.is_empty() || matches!(event.as_ref(), "ping" | "keepalive") {
            return Ok(());
        }
        if self.done {
            if !self.late && text != MARKER && !text.starts_with(':') {
                self.late = true;
                out.diagnose(Code::DATA_AFTER_DONE, None, "")?;
            }
            return Ok(());
        }
        if replaced {
            out.diagnose(Code::INVALID_UTF8, None, "")?;
        }
        if arrival.stray && !self.seen && text.starts_with('<') {
            return Err(self.no_event_stream(out));
        }
        let event = (!event.is_empty()).then_some(event.as_ref());
        let lenient = out.config.policy.base != Base::Strict;
        let depth = out.config.limits.max_json_depth;
        let found = climb(text, depth, lenient);
        if arrival.stray {
            self.stray(out, &found)?;
        }
        let payload = Payload {
            text,
            event,
            tail: false,
        };
        match found {
            Found::Blank => Ok(()),
            Found::Comment => out.diagnose(Code::COMMENT_AS_DATA, None, ""),
            Found::Null => out.diagnose(Code::NULL_PAYLOAD, None, ""),
            Found::Marker => self.marker(out),
            Found::Document(document) => {
                if self.repeats(out, text)? {
                    return Ok(());
                }
                self.document(out, &document, payload)
            }
            Found::Lines(lines, documents) => {
                out.diagnose(Code::JSON_LINES, None, &documents.to_string())?;
                for line in lines {
                    if line == MARKER {
                        self.marker(out)?;
                    } else if let Ok(document) = read::document(line, depth) {
                        self.document(
                            out,
                            &document,
                            Payload {
                                text: line,
                                ..payload
                            },
                        )?;
                    }
                }
                Ok(())
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
                    ),
                    Err(fault) => self.broken(out, fault),
                }
            }
            Found::Tail(tails) => {
                out.diagnose(Code::RECOVERED_TAIL, None, "")?;
                for tail in tails {
                    if let Ok(document) = read::document(tail, depth) {
                        self.document(
                            out,
                            &document,
                            Payload {
                                text: tail,
                                tail: true,
                                ..payload
                            },
                        )?;
                    }
                }
                Ok(())
            }
            Found::Text => self.text(out, payload),
            Found::Broken(_) if event == Some("error") => self.text(out, payload),
            Found::Broken(fault) => self.broken(out, fault),
        }
    }

    /// What is said of a payload outside of any field.
    fn stray(&mut self, out: &mut Out<'_>, found: &Found<'_>) -> Step {
        if let Found::Document(document) = found {
            if !self.seen && is_body(document) {
                self.body = true;
                return out.diagnose(Code::BODY_NOT_STREAMED, None, "");
            }
        }
        out.diagnose(Code::STRAY_PAYLOAD, None, "")
    }

    /// Whether the payload is the one before again, and is to be dropped.
    fn repeats(&mut self, out: &mut Out<'_>, text: &str) -> Result<bool, Fault> {
        let Some(last) = &mut self.last else {
            return Ok(false);
        };
        if last == text.as_bytes() {
            return out
                .diagnose(Code::DUPLICATE_PAYLOAD, None, "")
                .map(|()| true);
        }
        last.clear();
        last.extend_from_slice(text.as_bytes());
        Ok(false)
    }

    fn saw_a_payload(&mut self) {
        if !self.seen {
            self.seen = true;
            self.head = Vec::new();
        }
    }

    fn marker(&mut self, out: &mut Out<'_>) -> Step {
        self.saw_a_payload();
        if mem::replace(&mut self.done, true) {
            return Ok(());
        }
        self.swift = false;
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.finish(&mut wire)?;
        self.assembler.done(out)
    }

    fn document(
        &mut self,
        out: &mut Out<'_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> Step {
        self.saw_a_payload();
        if self.dialect.is_none() {
            self.dialect = Some(detect(document).map_err(Fault::unknown_dialect)?);
        }
        self.swift = !self.done && self.last.is_none();
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.document(&mut wire, document, payload)
    }

    /// A text instead of a document.
    fn text(&mut self, out: &mut Out<'_>, payload: Payload<'_>) -> Step {
        self.saw_a_payload();
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.finish(&mut wire)?;
        complain_in_text(&mut wire, payload)
    }

    fn broken(&mut self, out: &mut Out<'_>, error: ScanError) -> Step {
        self.saw_a_payload();
        if error.problem == Problem::TooDeep {
            let limit = out
                .config
                .limits
                .max_json_depth
                .unwrap_or(u64::from(crate::json::MAX_DEPTH));
            return Err(Fault::limit(LimitName::max_json_depth, limit));
        }
        match out.config.policy.action(Code::MALFORMED_JSON) {
            Action::Raise => Err(Fault::chunk(error.pos)),
            Action::Diagnose | Action::Skip => out.diagnose(Code::MALFORMED_JSON, None, ""),
        }
    }

    fn no_event_stream(&mut self, out: &Out<'_>) -> Fault {
        Fault::not_an_event_stream(mem::take(&mut self.head), out.config.content_type.clone())
    }

    fn close(&mut self, out: &mut Out<'_>, pending: &Pending<'_>) -> Step {
        let mut ordinal = pending.ordinal;
        let mut rest = Rest::Nothing;
        if !self.done {
            let data = pending.data.map(|data| Arrival {
                event: pending.event,
                data,
                offset: pending.data_offset,
                ordinal,
                stray: false,
            });
            let stray = pending.stray.map(|data| Arrival {
                event: b"",
                data,
                offset: pending.stray_offset,
                ordinal,
                stray: true,
            });
            let mut used = false;
            for arrival in [data, stray].into_iter().flatten() {
                let arrival = Arrival { ordinal, ..arrival };
                if self
                    .last_one(out, arrival)
                    .map_err(|fault| arrival.place(fault))?
                {
                    used = true;
                    ordinal += 1;
                }
            }
            if pending.open && !used {
                rest = if pending.mid_utf8 {
                    Rest::MidUtf8
                } else {
                    Rest::MidEvent
                };
            }
        }
        out.at(pending.offset, ordinal);
        let result = self.end(out, pending, rest);
        result.map_err(|fault| fault.at(pending.offset, ordinal))
    }

    /// Uses an event that the input did not finish, if it is whole all the same.
    fn last_one(&mut self, out: &mut Out<'_>, arrival: Arrival<'_>) -> Result<bool, Fault> {
        let (text, _) = decode_utf8(arrival.data);
        let text = trim(&text);
        if arrival.event == b"ping" || arrival.event == b"keepalive" {
            return Ok(false);
        }
        let lenient = out.config.policy.base != Base::Strict;
        let whole = match climb(text, out.config.limits.max_json_depth, lenient) {
            Found::Marker | Found::Lines(..) => true,
            Found::Document(Document::Object(_)) => true,
            Found::Document(Document::Other(raw)) => raw.kind == Kind::Array,
            _ => false,
        };
        if whole {
            out.at(arrival.offset, arrival.ordinal);
            if !arrival.stray {
                out.diagnose(Code::UNTERMINATED_EVENT, None, "")?;
            }
            self.arrival(out, arrival)?;
        }
        Ok(whole)
    }

    fn end(&mut self, out: &mut Out<'_>, pending: &Pending<'_>, mut rest: Rest) -> Step {
        if !self.seen {
            let cut = rest != Rest::Nothing && pending.stray.is_none_or(may_be_json);
            if !cut {
                if is_foreign(&self.head) {
                    return Err(self.no_event_stream(out));
                }
                rest = Rest::Empty;
            }
        }
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        self.chat.finish(&mut wire)?;
        if self.body && rest == Rest::Nothing && !self.done {
            self.assembler.done(out)?;
        }
        self.assembler.end(out, rest)
    }
}

impl Arrival<'_> {
    fn place(&self, fault: Fault) -> Fault {
        let mut fault = fault.at(self.offset, self.ordinal).with_raw(self.data);
        fault.event_type =
            (!self.event.is_empty()).then(|| String::from_utf8_lossy(self.event).into_owned());
        fault
    }
}

/// Whether the text may still become a JSON document.
fn may_be_json(text: &[u8]) -> bool {
    let mut automaton = crate::json::Automaton::new();
    automaton.feed(text) == crate::json::Status::Prefix
}

/// Whether the beginning of a body has a line that no event stream has.
fn is_foreign(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r'));
    let last = lines.next_back().unwrap_or_default();
    let fields: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];
    let is_field = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        line.is_empty() || line.first() == Some(&b':') || fields.contains(&name)
    };
    lines.any(|line| !is_field(line) && !line.trim_ascii().is_empty())
        || !(is_field(last)
            || fields.iter().any(|name| name.starts_with(last))
            || last.trim_ascii().is_empty())
}
