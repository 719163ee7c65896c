//! Payloads one by one: what each is good for, and where it goes.
//!
//! Behind the framer, before the decoder. Every fault gets its place here.

use std::borrow::Cow;
use std::mem;
use std::sync::LazyLock;

use serde_json::Value;

use crate::assemble::Assembler;
use crate::dialect::chat::read::{self, Document};
use crate::dialect::chat::{Chat, Ending, Payload, Wire, is_body, is_complaint, is_note, unknown};
use crate::dialect::{Dialect, detect};
use crate::fault::{Extra, Fault};
use crate::json::{Problem, ScanError};
use crate::ladder::{Found, MARKER, climb, position, trim};
use crate::limits::LimitName;
use crate::out::Out;
use crate::policy::Base;
use crate::spec::{self, Code};
use crate::sse::{Item, Receiver, decode_utf8};

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

/// What lies behind the framer.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) dialect: Option<Dialect>,
    pub(crate) chat: Chat,
    pub(crate) assembler: Assembler,
    /// The first bytes of the body, until there is a payload.
    pub(crate) head: Vec<u8>,
    /// A payload that is more than a heartbeat was seen.
    pub(crate) seen: bool,
    /// The terminal marker was seen.
    pub(crate) done: bool,
    /// Data after the marker was reported.
    pub(crate) late: bool,
    /// The payload before, where equal ones are to be dropped.
    pub(crate) last: Option<Option<Vec<u8>>>,
    /// Payloads may be matched with known envelopes.
    pub(crate) swift: bool,
}

/// A frame or a stray payload, or what the end of the input left of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) event: &'a [u8],
    pub(crate) data: &'a [u8],
    pub(crate) offset: u64,
    pub(crate) ordinal: u64,
    pub(crate) stray: bool,
}

/// A stage with its way out: takes what the framer hands out.
pub(crate) struct Gate<'g, 'o> {
    pub(crate) stage: &'g mut Stage,
    pub(crate) out: Out<'o>,
}

impl Receiver for Gate<'_, '_> {
    #[inline]
    fn item(&mut self, item: Item<'_>) -> Step {
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
        self.stage
            .arrival(&mut self.out, arrival)
            .map_err(|fault| arrival.place(fault))
    }

    #[inline]
    fn whole(&mut self, rest: &[u8], offset: u64, ordinal: u64) -> Result<usize, Fault> {
        let Some(payload) = rest.strip_prefix(b"data: ").filter(|_| self.stage.swift) else {
            return Ok(0);
        };
        if self
            .out
            .config
            .limits
            .max_events
            .is_some_and(|limit| ordinal >= limit)
        {
            return Ok(0);
        }
        self.out.at(offset, ordinal);
        let mut wire = Wire {
            assembler: &mut self.stage.assembler,
            out: &mut self.out,
        };
        match self.stage.chat.known(&mut wire, payload, Ending::BlankLine) {
            Ok(0) => Ok(0),
            Ok(length) => Ok(rest.len() - payload.len() + length),
            Err(fault) => {
                let data = payload
                    .split(|byte| matches!(byte, b'\n' | b'\r'))
                    .next()
                    .unwrap_or_default();
                Err(Arrival {
                    event: b"",
                    data,
                    offset,
                    ordinal,
                    stray: false,
                }
                .place(fault))
            }
        }
    }
}

impl Stage {
    #[inline]
    pub(crate) fn arrival(&mut self, out: &mut Out<'_>, arrival: Arrival<'_>) -> Step {
        out.at(arrival.offset, arrival.ordinal);
        let limit = out.config.limits.max_events;
        if let Some(limit) = limit.filter(|limit| arrival.ordinal >= *limit) {
            return Err(Fault::limit(LimitName::max_events, limit));
        }
        if self.swift && !arrival.stray && matches!(arrival.event, b"" | b"message") {
            let mut wire = Wire {
                assembler: &mut self.assembler,
                out,
            };
            if self.chat.known(&mut wire, arrival.data, Ending::Here)? > 0 {
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
        let complaint = stray == Some(true) && is_complaint(document);
        let event = payload.event.or(complaint.then_some("error"));
        let payload = Payload { event, ..payload };
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
    pub(crate) fn no_event_stream(&mut self, out: &Out<'_>) -> Fault {
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
}

impl<'a> Arrival<'a> {
    pub(crate) fn place(&self, fault: Fault) -> Fault {
        if matches!(fault.extra, Extra::NotAnEventStream { .. }) {
            return fault;
        }
        let mut fault = fault.at(self.offset, self.ordinal).with_raw(self.data);
        fault.event_type = self.event_name().map(Cow::into_owned);
        fault
    }

    /// The name of the event, unless it is the usual one.
    pub(crate) fn event_name(&self) -> Option<Cow<'a, str>> {
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

pub(crate) fn is_keep_alive(event: &str) -> bool {
    KEEP_ALIVE.contains(&event)
}
