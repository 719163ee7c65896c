//! Dispatches parsed payloads to the decoder of their dialect, and handles the terminal marker.

use crate::dialect::Dialect;
use crate::dialect::Read;
use crate::dialect::Reader;
use crate::dialect::chat::Chat;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::unknown;
use crate::dialect::detect;
use crate::dialect::payload::DocumentContext;
use crate::dialect::payload::HeldPayload;
use crate::dialect::payload::LocatedPayload;
use crate::dialect::upstream_error::is_notice;
use crate::dialect::upstream_error::states_message;
use crate::json::members;
use crate::json::members::Document;
use crate::model::config::Config;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::spec::Code;
use crate::pipeline::payload_pipeline::PayloadPipeline;
use crate::pipeline::salvage::MARKER;
use std::mem;

impl PayloadPipeline {
    /// Passes an error that was sent as plain text to the decoder.
    pub(crate) fn text(&mut self, out: &mut Output<'_>, payload: Payload<'_>) -> ParseResult {
        out.mark_misread("plain_words"); // clients expect JSON
        let config = out.config;
        let mut wire = DecodeContext {
            assembler: &mut self.assembler,
            out,
        };
        let Some(decoder) = &mut self.other else {
            let chat = chat(&mut self.chat, config, self.caching);
            return chat.text(&mut wire, payload);
        };
        decoder.text(&mut wire, payload)?;
        self.done |= decoder.ended();
        Ok(())
    }

    /// Handles `[DONE]`, whose meaning depends on the dialect.
    pub(crate) fn marker(&mut self, out: &mut Output<'_>) -> ParseResult {
        self.seen = true;
        self.report_other_dialect(out)?;
        self.report_last_message(out)?;
        let Some(decoder) = &mut self.other else {
            if let Some(chat) = &mut self.chat {
                chat.forget_members(out);
            }
            return self.finish(out);
        };
        let mut wire = DecodeContext {
            assembler: &mut self.assembler,
            out,
        };
        decoder.marker(&mut wire)?;
        self.done |= decoder.ended();
        Ok(())
    }

    /// Ends the stream, at the terminal marker or after a complete response that was sent as one document.
    fn finish(&mut self, out: &mut Output<'_>) -> ParseResult {
        self.seen = true;
        self.fast_path = false;
        self.flush(out)?;
        if let Some(chat) = &mut self.chat {
            chat.end_choices(out);
            if self.assembler.has_counts() {
                chat.check_counts(out);
            }
        }
        self.assembler.done(out)?;
        self.done = true;
        Ok(())
    }

    /// Emits the output that the decoder still holds back.
    pub(crate) fn flush(&mut self, out: &mut Output<'_>) -> ParseResult {
        let mut wire = DecodeContext {
            assembler: &mut self.assembler,
            out,
        };
        match &mut self.other {
            Some(decoder) => decoder.flush(&mut wire),
            None => match &mut self.chat {
                Some(chat) => chat.flush(&mut wire),
                None => Ok(()),
            },
        }
    }

    /// Reports data after the terminal marker, and does not decode it.
    ///
    /// A document without response data is not reported; the document is passed on as `Unknown`. A second marker and
    /// comments are ignored.
    pub(crate) fn after_done(&mut self, out: &mut Output<'_>, payload: Payload<'_>) -> ParseResult {
        if payload.text == MARKER || payload.text.starts_with(':') {
            return Ok(());
        }
        let note = payload.event != Some("error")
            && payload.text.starts_with('{')
            && self
                .reader(out)
                .read(payload.text)
                .is_ok_and(|document| document.is_without_output());
        if note {
            return unknown(
                &mut DecodeContext {
                    assembler: &mut self.assembler,
                    out,
                },
                payload,
            );
        }
        self.after_end(out)
    }

    /// Reports data after the end of the stream, at most once.
    pub(crate) fn after_end(&mut self, out: &mut Output<'_>) -> ParseResult {
        out.record_fact(WireFact::Emptied);
        if mem::replace(&mut self.late, true) {
            return Ok(());
        }
        out.diagnose(Code::DATA_AFTER_DONE, None, "")
    }

    /// Passes one document to the decoder of its dialect, and reports how the document was framed.
    pub(crate) fn document<'p>(
        &mut self,
        out: &mut Output<'_>,
        document: &Read<'p>,
        payload: Payload<'p>,
        document_context: DocumentContext,
    ) -> ParseResult {
        let DocumentContext { stray, first, .. } = document_context;
        let is_error_body = first && self.is_error_body(document, stray);
        let event = if is_error_body {
            Some("error")
        } else {
            payload.event
        };
        let payload = Payload { event, ..payload };
        let reread;
        let document = match document {
            Read::Undecided(plain) => {
                self.detect(out, plain, payload)?;
                match self.reader(out).read(payload.text) {
                    Ok(read) => reread = read,
                    Err(_) => return Ok(()),
                }
                &reread
            }
            known => known,
        };
        if event.is_some_and(|name| self.wrapped.iter().any(|begin| name.starts_with(begin))) {
            out.mark_misread("event_name"); // clients misread an event with this name
        }
        let mut body = false;
        if self.array {
            if first {
                out.diagnose(Code::ARRAY_BODY, None, "")?;
            }
        } else if stray && self.undecided.is_none() {
            body = first && document.is_body();
            if first && !body && !self.framed && document_context.one_line {
                self.lines = true;
                out.diagnose(Code::JSON_LINES_BODY, None, "")?;
            } else if self.in_lines() {
                out.record_fact(WireFact::Mended { emptied: false }); // reported once, at the first line
            } else if body {
                out.diagnose(Code::BODY_NOT_STREAMED, None, "")?;
            } else {
                out.diagnose(Code::STRAY_PAYLOAD, None, "")?;
            }
        }
        self.last_message = None;
        self.assembler.unknown_size = 0;
        self.assembler.begin_document();
        self.decode(out, document, payload)?;
        if self.assembler.unknown_size == payload.text.len() {
            self.keep_message(payload);
        }
        if body && !self.done {
            return self.finish(out);
        }
        Ok(())
    }

    /// Stores an unknown payload if it contains only a message text. Such a payload is an error if the response ends
    /// with it.
    #[cold]
    fn keep_message(&mut self, payload: Payload<'_>) {
        if is_message(payload.text, payload.event) {
            let data = payload.text.as_bytes();
            let arrival = LocatedPayload {
                data,
                ..payload.arrival
            };
            self.last_message = Some(Box::new(HeldPayload::of(arrival)));
            self.fast_path = false; // the message must be discarded at the next payload
        }
    }

    /// Reports the last payload as an error if it contains only a message text and the response has no other end. This
    /// method is called when the response ends.
    pub(crate) fn report_last_message(&mut self, out: &mut Output<'_>) -> ParseResult {
        let Some(message) = self.last_message.take() else {
            return Ok(());
        };
        let position = out.position();
        self.flush(out)?; // flushing may emit a finish reason
        if !self.assembler.states_end() {
            let arrival = message.arrival();
            out.at(arrival.offset, arrival.ordinal);
            let event = b"error";
            self.read(out, LocatedPayload { event, ..arrival })
                .map_err(|fault| arrival.locate(fault))?;
            out.at(position.0, position.1);
        }
        Ok(())
    }

    /// Returns true if each document is on a separate line and no `data:` line was seen.
    pub(crate) fn in_lines(&self) -> bool {
        self.lines && !self.framed
    }

    /// Returns true if the document is a plain body that reports an error without an `error` member.
    pub(crate) fn is_error_body(&self, document: &Read<'_>, stray: bool) -> bool {
        stray && !self.array && self.waiting.is_empty() && document.is_error_body()
    }

    fn decode(
        &mut self,
        out: &mut Output<'_>,
        document: &Read<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let config = out.config;
        let mut wire = DecodeContext {
            assembler: &mut self.assembler,
            out,
        };
        match (document, &mut self.other) {
            (Read::Plain(document, _), Some(decoder)) => {
                decoder.decode(&mut wire, document, payload)?;
                self.done |= decoder.ended();
                self.fast_path = self.caching && self.last.is_none();
                Ok(())
            }
            (Read::Chat(document), None) => {
                self.fast_path = !self.done && self.last.is_none();
                let chat = chat(&mut self.chat, config, self.caching);
                chat.document(&mut wire, document, payload)
            }
            // The document was parsed for a decoder other than the current one.
            _ => unknown(&mut wire, payload),
        }
    }

    /// Sets the dialect of the stream.
    pub(crate) fn set_dialect(&mut self, out: &mut Output<'_>, dialect: Dialect) {
        self.dialect = Some(dialect);
        self.other = dialect.decoder(out.config);
        self.keep_alive = dialect.keep_alive();
        self.wrapped = dialect.wrapped_names();
        self.assembler.set_dialect(dialect.name());
        out.set_dialect(dialect.name());
    }

    /// Returns the settings for parsing JSON.
    pub(crate) fn reader(&self, out: &Output<'_>) -> Reader {
        Reader {
            dialect: self.dialect,
            max_depth: out.config.limits.max_json_depth,
            max_values: out.config.limits.max_json_values,
        }
    }

    pub(crate) fn is_keep_alive(&self, event: &str) -> bool {
        self.keep_alive.contains(&event)
    }

    /// Returns true if the payload is empty or a keep-alive, and is therefore ignored.
    ///
    /// If clients would parse the data and raise an exception, the payload is also marked so that repair omits it.
    pub(crate) fn is_ignored(&self, out: &mut Output<'_>, text: &str, event: Option<&str>) -> bool {
        if text.is_empty() {
            out.leave_out("empty_event"); // openai-python and the AI SDK parse empty data as JSON
            return true;
        }
        let Some(event) = event.filter(|event| self.is_keep_alive(event)) else {
            return false;
        };
        if self.is_keep_alive_read(event) {
            out.leave_out("keep_alive");
        }
        true
    }

    /// Returns true if clients would parse the data of a keep-alive as a payload and raise an exception.
    ///
    /// Clients of Messages expect `ping`. In Responses, a `keepalive` after the first event passes through, because
    /// OpenAI counts it in the sequence numbers; openai-node raises an exception for all other keep-alives.
    fn is_keep_alive_read(&self, event: &str) -> bool {
        match self.dialect {
            Some(Dialect::Chat) => true,
            Some(Dialect::Responses) => !self.seen || event != "keepalive",
            _ => event != "ping",
        }
    }
}

/// Returns true if a payload matches no dialect and contains only a message text. Such a payload is an error if the
/// response ends with it. `event`: the name of the payload's event.
pub(crate) fn is_message(text: &str, event: Option<&str>) -> bool {
    let document = members::document(text, None);
    let states = |document: &Document<'_>| match document {
        Document::Object(object) => states_message(&object.members),
        Document::Other(_) => false,
    };
    let is_free = |document: &Document<'_>| {
        states(document) && detect(document, event, &[]).is_none() // no dialect matches
    };
    !event.is_some_and(is_notice) && document.is_ok_and(|document| is_free(&document))
}

/// Returns the Chat decoder, creating it on first use. Streams in other dialects never need this decoder.
fn chat<'c>(known: &'c mut Option<Box<Chat>>, config: &Config, caching: bool) -> &'c mut Chat {
    known.get_or_insert_with(|| Box::new(Chat::new(config, caching)))
}
