//! Classifies payloads one at a time and passes each to the decoder. Runs after the framer and before the decoder.
//!
//! Adds the byte offset and event ordinal to every fault.

use crate::assemble::Assembler;
use crate::dialect::Dialect;
use crate::dialect::Read;
use crate::dialect::Reader;
use crate::dialect::chat::Chat;
use crate::dialect::decode_context::DATA;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Ending;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::one_line_of_data;
use crate::dialect::decoder::Decoder;
use crate::dialect::payload::DocumentContext;
use crate::dialect::payload::HeldPayload;
use crate::dialect::payload::LocatedPayload;
use crate::json::MAX_DEPTH;
use crate::json::Problem;
use crate::json::ScanError;
use crate::json::members;
use crate::model::fault::Extra;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::limits::LimitName;
use crate::model::limits::Limits;
use crate::model::output::Output;
use crate::model::policy::Base;
use crate::model::spec::Code;
use crate::pipeline::nested_event::NestedEvent;
use crate::pipeline::nested_event::nested_event;
use crate::pipeline::salvage::MARKER;
use crate::pipeline::salvage::MOST_JOINS;
use crate::pipeline::salvage::Salvaged;
use crate::pipeline::salvage::classify;
use crate::pipeline::salvage::has_joined_lines;
use crate::pipeline::salvage::position;
use crate::pipeline::salvage::split_joined_line;
use crate::pipeline::salvage::trim;
use crate::pipeline::salvage::trim_start;
use crate::pipeline::undetected::DialectWatch;
use crate::pipeline::undetected::UndetectedPayloads;
use crate::sse::decode_utf8;
use memchr::memchr;
use std::mem;

/// Number of body bytes that are kept until the first payload. The number is this large because a gateway may send many
/// comments first.
pub(crate) const HEAD: usize = 4096;

/// Number of body bytes that a fault shows if the body is not an event stream.
pub(crate) const BODY_HEAD: usize = 512;

/// State of a stream between the framer and the decoder.
#[derive(Debug)]
pub(crate) struct PayloadPipeline {
    pub(crate) dialect: Option<Dialect>,
    /// Chat decoder, created when the first Chat payload arrives.
    pub(crate) chat: Option<Box<Chat>>,
    /// The decoder of any dialect except Chat.
    pub(crate) other: Option<Box<dyn Decoder>>,
    /// Event names of keep-alives, that is, of events without content.
    pub(crate) keep_alive: &'static [&'static str],
    /// Prefixes of event names that make clients wrap the data in another object.
    pub(crate) wrapped: &'static [&'static str],
    pub(crate) assembler: Assembler,
    /// The first bytes of the body, kept until the first payload.
    pub(crate) head: Vec<u8>,
    /// True once a payload other than a keep-alive was seen.
    pub(crate) seen: bool,
    /// True once the terminal marker was seen.
    pub(crate) done: bool,
    /// True once data after the marker has been reported.
    pub(crate) late: bool,
    /// The previous payload, if the policy drops consecutive duplicates.
    pub(crate) last: Option<Option<Vec<u8>>>,
    /// True if template matching is enabled for this parser.
    pub(crate) caching: bool,
    /// True if template matching may be used for the next payload.
    pub(crate) fast_path: bool,
    /// Payloads that arrived before the dialect was detected.
    pub(crate) waiting: LazyBox<UndetectedPayloads>,
    /// Checks whether the stream has a dialect other than the one that the caller specified.
    pub(crate) watch: Option<Box<DialectWatch>>,
    /// A lone document that may be the complete response or the first of several lines.
    pub(crate) undecided: Option<Box<HeldPayload>>,
    /// The last payload, if it contains only a message text. Such a payload is an error if the response ends with it.
    pub(crate) last_message: Option<Box<HeldPayload>>,
    /// True if each document is on a separate line (JSON Lines).
    pub(crate) lines: bool,
    /// True if any data arrived in a `data:` line.
    pub(crate) framed: bool,
    /// True if the body is one JSON array.
    pub(crate) array: bool,
}

impl PayloadPipeline {
    #[inline]
    pub(crate) fn arrival(
        &mut self,
        out: &mut Output<'_>,
        arrival: LocatedPayload<'_>,
    ) -> ParseResult {
        let locate = |fault| arrival.locate(fault);
        out.at(arrival.offset, arrival.ordinal);
        let limit = out.config.limits.max_events;
        if let Some(limit) = limit.filter(|limit| arrival.ordinal >= *limit) {
            arrival.show(out);
            return Err(locate(Fault::limit(LimitName::max_events, limit)));
        }
        self.framed |= !(arrival.stray || self.array);
        if self.fast_path && !(arrival.stray || self.array || self.done) {
            let LocatedPayload { event, data, .. } = arrival;
            let known = self.match_template(out, Incoming::Payload { event, data });
            if out.taken(known).map_err(locate)? > 0 {
                return Ok(());
            }
        }
        if !(arrival.stray || self.array)
            && let Some(nested) = nested_event(arrival.data)
        {
            return self.nested(out, arrival, nested);
        }
        self.detect_or_read(out, arrival)
    }

    fn detect_or_read(&mut self, out: &mut Output<'_>, arrival: LocatedPayload<'_>) -> ParseResult {
        if self.dialect.is_none() && self.consumed_by_detection(out, arrival)? {
            return Ok(());
        }
        self.read(out, arrival)
            .map_err(|fault| arrival.locate(fault))
    }

    /// Handles data that is itself an event.
    #[cold]
    fn nested(
        &mut self,
        out: &mut Output<'_>,
        arrival: LocatedPayload<'_>,
        nested: NestedEvent<'_>,
    ) -> ParseResult {
        let code = match nested.data {
            Some(_) => Code::FIELDS_IN_DATA,
            None => Code::COMMENT_AS_DATA,
        };
        let reported = out.diagnose(code, None, "");
        out.taken(reported).map_err(|fault| arrival.locate(fault))?;
        let Some(data) = nested.data else {
            arrival.show(out);
            return Ok(());
        };
        let event = nested.event.unwrap_or(arrival.event);
        let inner = LocatedPayload {
            event,
            data: &data,
            ..arrival
        };
        self.detect_or_read(out, inner)
    }

    /// Matches a payload against the known templates. Returns the length of the matched input, or 0 if the payload must
    /// be parsed.
    ///
    /// The length includes line prefixes, if the input still contains them.
    #[inline]
    pub(crate) fn match_template(
        &mut self,
        out: &mut Output<'_>,
        incoming: Incoming<'_>,
    ) -> Result<usize, Fault> {
        let mut wire = DecodeContext {
            assembler: &mut self.assembler,
            out,
        };
        if let Some(decoder) = &mut self.other {
            return decoder.match_template(&mut wire, incoming);
        }
        let Some(chat) = &mut self.chat else {
            return Ok(0);
        };
        let (event, input, before, ending) = match incoming {
            Incoming::Payload { event, data } => (event, data, 0, Ending::Here),
            Incoming::Lines(lines) => {
                let Some((event, payload)) = one_line_of_data(lines) else {
                    return Ok(0);
                };
                let before = lines.len() - payload.len();
                // The offset of a frame is the offset of its data.
                wire.out.advance_offset(before - DATA.len());
                (event, payload, before, Ending::BlankLine)
            }
        };
        if !matches!(event, b"" | b"message") {
            return Ok(0);
        }
        let length = chat.match_template(&mut wire, input, ending)?;
        Ok(if length > 0 { before + length } else { 0 })
    }

    pub(crate) fn read(
        &mut self,
        out: &mut Output<'_>,
        arrival: LocatedPayload<'_>,
    ) -> ParseResult {
        arrival.show(out);
        let result = self.take(out, arrival);
        let given = out.report_left_out();
        out.taken(given.and(result))
    }

    fn take(&mut self, out: &mut Output<'_>, arrival: LocatedPayload<'_>) -> ParseResult {
        let event = arrival.event_name();
        let event = event.as_deref();
        let (text, replaced) = decode_utf8(arrival.data);
        let text = trim(&text);
        if self.is_ignored(out, text, event) {
            return Ok(());
        }
        let payload = Payload {
            text,
            event,
            tail: false,
            start: 0,
            joins: 0,
            first: !self.seen,
            arrival,
        };
        if let Some(first) = self.undecided.take() {
            self.report_json_lines(out, &first)?;
        }
        if text == MARKER {
            // Repair removes a marker that clients would parse as JSON.
            match self.dialect.and_then(Dialect::marker_is_json) {
                Some("always") => out.leave_out("done_marker"),
                Some("named") if event.is_some() => out.mark_misread("done_marker"),
                _ => {}
            }
        }
        if self.done {
            return self.after_done(out, payload);
        }
        if arrival.stray && !self.seen && text.starts_with('<') {
            // The error shows only this payload, so drop the later bytes of the same read.
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
        let found = classify(arrival.data, text, self.reader(out), lenient);
        if replaced {
            out.diagnose(Code::INVALID_UTF8, None, "")?;
        }
        let bare = matches!(found, Salvaged::Blank | Salvaged::Comment | Salvaged::Null);
        self.seen |= !bare;
        if self.seen {
            self.head = Vec::new();
        }
        match found {
            Salvaged::Broken(error) if event == Some("error") && capped(out, error).is_none() => {
                self.text(out, payload)
            }
            Salvaged::Broken(error) => self.broken(out, error, arrival),
            Salvaged::Marker => {
                if arrival.stray && !self.in_lines() {
                    out.diagnose(Code::STRAY_PAYLOAD, None, "")?;
                }
                self.marker(out)
            }
            Salvaged::Document(document) => {
                let stray = arrival.stray;
                let document_context = DocumentContext {
                    stray,
                    first: payload.first,
                    // This field is read only if `first` and `stray` are both true.
                    one_line: payload.first && stray && memchr(b'\n', arrival.data).is_none(),
                };
                let alone = payload.first
                    && document_context.stray
                    && document_context.one_line
                    && !self.framed;
                if alone && document.is_body() && document.may_be_json_line() {
                    self.undecided = Some(Box::new(HeldPayload::shown(arrival)));
                }
                self.document(out, &document, payload, document_context)?;
                self.watch_dialect(arrival, text, &document);
                self.fast_path &= self.undecided.is_none();
                Ok(())
            }
            found => {
                if arrival.stray && !bare {
                    out.diagnose(Code::STRAY_PAYLOAD, None, "")?;
                }
                self.apply_salvaged(out, found, payload)
            }
        }
    }

    /// Checks whether the payload belongs to a dialect other than the specified one.
    ///
    /// The check ends with the first payload that produces content, because the stream is then in the specified
    /// dialect.
    fn watch_dialect(&mut self, arrival: LocatedPayload<'_>, text: &str, document: &Read<'_>) {
        let Some(watch) = &mut self.watch else {
            return;
        };
        if self.assembler.is_blank() {
            match document {
                Read::Plain(document, _) => watch.look(arrival, document),
                // Only a generic document can be examined, so parse documents in other forms again.
                Read::Chat(_) | Read::Undecided(_) => {
                    if let Ok(document) = members::document(text, None) {
                        watch.look(arrival, &document);
                    }
                }
            }
            if !watch.is_content() {
                return;
            }
        }
        self.watch = None;
    }

    fn apply_salvaged(
        &mut self,
        out: &mut Output<'_>,
        found: Salvaged<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        match found {
            Salvaged::Comment => out.diagnose(Code::COMMENT_AS_DATA, None, ""),
            Salvaged::Null => out.diagnose(Code::NULL_PAYLOAD, None, ""),
            Salvaged::Lines(whole) => {
                out.diagnose(Code::JSON_LINES, None, &whole.documents.to_string())?;
                for text in whole.lines {
                    self.line(out, Payload { text, ..payload })?;
                }
                match whole.remainder {
                    Some(start) => self.salvage_remainder(out, payload, start),
                    None => Ok(()),
                }
            }
            Salvaged::Joined(joined) => {
                out.diagnose(Code::LINES_JOINED, None, "")?;
                match self.reader(out).read(&joined) {
                    Ok(document) => self.document(
                        out,
                        &document,
                        Payload {
                            text: &joined,
                            ..payload
                        },
                        DocumentContext::default(),
                    ),
                    Err(_) => Ok(()),
                }
            }
            Salvaged::Tail(tails) => {
                out.diagnose(Code::RECOVERED_TAIL, None, "")?;
                for text in tails {
                    if let Ok(document) = self.reader(out).read(text) {
                        self.document(
                            out,
                            &document,
                            Payload {
                                text,
                                tail: true,
                                ..payload
                            },
                            DocumentContext::default(),
                        )?;
                    }
                }
                Ok(())
            }
            Salvaged::Text => self.text(out, payload),
            Salvaged::Blank | Salvaged::Marker | Salvaged::Document(_) | Salvaged::Broken(_) => {
                Ok(())
            }
            Salvaged::LineEndsMissing(at) => self.joined_line(out, payload, at),
        }
    }

    /// Handles a line that contains a document and other fields.
    ///
    /// Before the first complete payload, other fields on the line of a document mean that the caller removed the line
    /// endings, unless the document reports an error, to which some relays append the terminal marker. In all other
    /// cases, a single line ending is missing, directly after the document.
    fn joined_line(
        &mut self,
        out: &mut Output<'_>,
        payload: Payload<'_>,
        at: usize,
    ) -> ParseResult {
        let arrival = payload.arrival;
        let position = position(arrival.data, payload.start + at);
        let is_error = payload.first && self.is_joined_error(out, payload.text, at, arrival.stray);
        if (payload.first && !is_error) || payload.joins == MOST_JOINS {
            return Err(joined(position));
        }
        out.diagnose(
            Code::FIELDS_ON_ONE_LINE,
            None,
            &format!("position {position}"),
        )?;
        let joined = split_joined_line(payload.text, at);
        let text = joined.document;
        if text == MARKER {
            self.marker(out)?;
        } else {
            match self.reader(out).read(text) {
                Ok(document) => {
                    let is_bare = is_error && self.is_error_body(&document, arrival.stray);
                    let event = if is_bare {
                        Some("error")
                    } else {
                        payload.event
                    };
                    let payload = Payload {
                        text,
                        event,
                        ..payload
                    };
                    self.document(out, &document, payload, DocumentContext::default())?;
                }
                Err(error) => self.broken(out, error, arrival)?,
            }
        }
        let remainder = Payload {
            event: joined.event.or(payload.event),
            joins: payload.joins + 1,
            ..payload
        };
        self.salvage_remainder(out, remainder, joined.remainder)
    }

    /// Returns true if the text begins with a document that reports an error, and the line end at `at` after the document
    /// is missing. Relays append the terminal marker to an error that was sent as a plain body.
    pub(crate) fn is_joined_error(
        &self,
        out: &Output<'_>,
        text: &str,
        at: usize,
        stray: bool,
    ) -> bool {
        let text = split_joined_line(text, at).document;
        let document = self.reader(out).read(text);
        document.is_ok_and(|document| document.has_error() || self.is_error_body(&document, stray))
    }

    /// Reports a frame whose data begins on the line of another field.
    pub(crate) fn report_joined_frame(
        &self,
        out: &mut Output<'_>,
        arrival: LocatedPayload<'_>,
    ) -> ParseResult {
        if self.done {
            return Ok(()); // reported as data after the end
        }
        out.at(arrival.offset, arrival.ordinal);
        arrival.show(out);
        let result = match self.seen {
            true => out.diagnose(Code::FIELDS_ON_ONE_LINE, None, ""),
            false => Err(Fault::line_ends_missing()),
        };
        out.taken(result).map_err(|fault| arrival.locate(fault))
    }

    /// Handles the text after the complete lines of a payload: a document that spans several lines, or a broken
    /// document.
    fn salvage_remainder(
        &mut self,
        out: &mut Output<'_>,
        payload: Payload<'_>,
        start: usize,
    ) -> ParseResult {
        let sent = payload.text.get(start..).unwrap_or_default();
        let text = trim(sent);
        let start = payload.start + start + (sent.len() - trim_start(sent).len());
        let remainder = Payload {
            text,
            start,
            ..payload
        };
        if text.is_empty() {
            return Ok(()); // only other fields followed the document
        }
        if self.done {
            return self.after_done(out, remainder);
        }
        let data = payload.arrival.data;
        let data = data.get(position(data, start)..).unwrap_or_default();
        match classify(data, text, self.reader(out), true) {
            Salvaged::Broken(error)
                if payload.event == Some("error") && capped(out, error).is_none() =>
            {
                self.text(out, remainder)
            }
            Salvaged::Broken(error) => {
                let pos = start + error.pos;
                self.broken(out, ScanError { pos, ..error }, payload.arrival)
            }
            Salvaged::Document(document) => {
                self.document(out, &document, remainder, DocumentContext::default())
            }
            Salvaged::Marker => self.marker(out),
            found => self.apply_salvaged(out, found, remainder),
        }
    }

    /// Handles one line of a payload in which every line is a separate document.
    fn line(&mut self, out: &mut Output<'_>, payload: Payload<'_>) -> ParseResult {
        if self.done {
            return self.after_done(out, payload);
        }
        match payload.text {
            MARKER => self.marker(out),
            "null" => out.diagnose(Code::NULL_PAYLOAD, None, ""),
            text => match self.reader(out).read(text) {
                Ok(document) => self.document(out, &document, payload, DocumentContext::default()),
                Err(_) => Ok(()),
            },
        }
    }

    fn broken(
        &mut self,
        out: &mut Output<'_>,
        error: ScanError,
        arrival: LocatedPayload<'_>,
    ) -> ParseResult {
        if let Some((name, limit)) = capped(out, error) {
            return Err(Fault::limit(name, limit));
        }
        if out.config.policy.raises(Code::MALFORMED_JSON) {
            return Err(Fault::chunk(position(arrival.data, error.pos)));
        }
        out.diagnose(Code::MALFORMED_JSON, None, "")
    }

    /// Returns the fault to report: `fault`, or a fault which states that the body has no line endings.
    ///
    /// The fault about missing line endings is returned if an event or field before the first payload is too long
    /// because line endings are missing. `next`: input that has not been fed yet.
    pub(crate) fn explain_limit<'b>(
        &self,
        limits: &Limits,
        fault: Fault,
        next: impl Iterator<Item = &'b [u8]>,
    ) -> Fault {
        let framed = [LimitName::max_event_bytes, LimitName::max_field_bytes];
        let Extra::Limit { limit, .. } = fault.extra else {
            return fault;
        };
        if self.seen || !framed.iter().any(|name| name.rule() == fault.rule) {
            return fault;
        }
        let mut head = self.head.clone();
        head.extend(next.flatten().take(HEAD.saturating_sub(head.len())));
        // Cut the text at the limit, so that the result does not depend on the sizes of the reads.
        let end = fault.byte_offset.saturating_add(limit);
        head.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        let reader = Reader {
            dialect: self.dialect,
            max_depth: limits.max_json_depth,
            max_values: None,
        };
        // A comment cannot exceed a limit, so the line that exceeded it is not a comment.
        if !has_joined_lines(&head, false, reader) {
            return fault;
        }
        let joined = Fault::line_ends_missing().with_raw(&head);
        joined.at(fault.byte_offset, fault.event_ordinal)
    }

    /// Returns the fault for a body that is not an event stream. The fault shows the beginning of the body.
    pub(crate) fn no_event_stream(&mut self, out: &Output<'_>) -> Fault {
        let mut head = mem::take(&mut self.head);
        head.truncate(BODY_HEAD);
        let fault = Fault::not_an_event_stream(Vec::new(), None)
            .at(0, 0)
            .with_raw(&head);
        let mut located = fault;
        located.extra = Extra::NotAnEventStream {
            body_head: head,
            content_type: out.config.content_type.clone(),
        };
        located
    }
}

/// Returns the fault for a field name that follows a document on the same line. `position`: the offset of the field
/// name in the payload's data.
pub(crate) fn joined(position: usize) -> Fault {
    let mut fault = Fault::line_ends_missing();
    fault.detail = format!("position {position}");
    fault
}

/// Returns the limit that a payload exceeded, or `None` if parsing failed for another reason.
fn capped(out: &Output<'_>, error: ScanError) -> Option<(LimitName, u64)> {
    let limits = &out.config.limits;
    match error.problem {
        Problem::TooDeep => {
            // The limit can only be lowered.
            let most = u64::from(MAX_DEPTH);
            let limit = limits.max_json_depth;
            let limit = limit.map_or(most, |limit| limit.min(most));
            Some((LimitName::max_json_depth, limit))
        }
        Problem::TooMany => Some((LimitName::max_json_values, limits.max_json_values?)),
        Problem::Syntax | Problem::NumberTooBig => None,
    }
}
