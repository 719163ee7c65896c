//! Payloads that were read, to the decoder of their dialect; which one that is; and the end that a stream says it has.

use crate::dialect::Dialect;
use crate::dialect::Read;
use crate::dialect::Reader;
use crate::dialect::chat::Chat;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Payload;
use crate::dialect::decode_context::Step;
use crate::dialect::decode_context::unknown;
use crate::dialect::payload::DocumentContext;
use crate::model::config::Config;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::spec::Code;
use crate::pipeline::payload_pipeline::PayloadPipeline;
use crate::pipeline::salvage::MARKER;
use std::mem;

impl PayloadPipeline {
    /// An error in plain words.
    pub(crate) fn text(&mut self, out: &mut Output<'_>, payload: Payload<'_>) -> Step {
        out.touch("plain_words"); // readers want JSON
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

    /// A `[DONE]`. What it means is the dialect's business.
    pub(crate) fn marker(&mut self, out: &mut Output<'_>) -> Step {
        self.seen = true;
        self.tell_other(out)?;
        let Some(decoder) = &mut self.other else {
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

    /// The terminal marker, or what stands for it.
    fn finish(&mut self, out: &mut Output<'_>) -> Step {
        self.seen = true;
        self.swift = false;
        self.flush(out)?;
        if let Some(chat) = &mut self.chat {
            chat.end_choices(out);
        }
        self.assembler.done(out)?;
        self.done = true;
        Ok(())
    }

    /// What the decoder held back goes out.
    pub(crate) fn flush(&mut self, out: &mut Output<'_>) -> Step {
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

    /// What comes behind the terminal marker is not processed. A note without any choice is no anomaly.
    pub(crate) fn after_done(&mut self, out: &mut Output<'_>, payload: Payload<'_>) -> Step {
        if payload.text == MARKER || payload.text.starts_with(':') {
            return Ok(());
        }
        let note = payload.text.starts_with('{')
            && self
                .reader(out)
                .read(payload.text)
                .is_ok_and(|document| document.is_note());
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

    /// Something stands behind the end; it is said once.
    pub(crate) fn after_end(&mut self, out: &mut Output<'_>) -> Step {
        out.sign(WireFact::Emptied);
        if mem::replace(&mut self.late, true) {
            return Ok(());
        }
        out.diagnose(Code::DATA_AFTER_DONE, None, "")
    }

    /// One document, to its dialect's decoder.
    pub(crate) fn document<'p>(
        &mut self,
        out: &mut Output<'_>,
        mut document: Read<'p>,
        payload: Payload<'p>,
        standing: DocumentContext,
    ) -> Step {
        let DocumentContext { stray, first, .. } = standing;
        let complaint = first && self.is_complaint(&document, stray);
        let event = if complaint {
            Some("error")
        } else {
            payload.event
        };
        let payload = Payload { event, ..payload };
        if let Read::Undecided(plain) = &document {
            self.detect(out, plain, payload)?;
            match self.reader(out).read(payload.text) {
                Ok(read) => document = read,
                Err(_) => return Ok(()),
            }
        }
        if event.is_some_and(|name| self.wrapped.iter().any(|begin| name.starts_with(begin))) {
            out.touch("event_name"); // readers find something else in it
        }
        let mut body = false;
        if self.array {
            if first {
                out.diagnose(Code::ARRAY_BODY, None, "")?;
            }
        } else if stray && self.undecided.is_none() {
            body = first && document.is_body();
            if first && !body && !self.framed && standing.one_line {
                self.lines = true;
                out.diagnose(Code::JSON_LINES_BODY, None, "")?;
            } else if self.in_lines() {
                out.sign(WireFact::Mended { emptied: false }); // the first line was told for all
            } else if body {
                out.diagnose(Code::BODY_NOT_STREAMED, None, "")?;
            } else {
                out.diagnose(Code::STRAY_PAYLOAD, None, "")?;
            }
        }
        self.decode(out, &document, payload)?;
        if body && !self.done {
            return self.finish(out);
        }
        Ok(())
    }

    /// Documents stand on lines of their own, and nothing else does.
    pub(crate) fn in_lines(&self) -> bool {
        self.lines && !self.framed
    }

    /// A plain body that is an error in a shape of its own.
    pub(crate) fn is_complaint(&self, document: &Read<'_>, stray: bool) -> bool {
        stray && !self.array && self.waiting.is_empty() && document.is_complaint()
    }

    fn decode(&mut self, out: &mut Output<'_>, document: &Read<'_>, payload: Payload<'_>) -> Step {
        let config = out.config;
        let mut wire = DecodeContext {
            assembler: &mut self.assembler,
            out,
        };
        match (document, &mut self.other) {
            (Read::Plain(document, _), Some(decoder)) => {
                decoder.decode(&mut wire, document, payload)?;
                self.done |= decoder.ended();
                self.swift = self.caching && self.last.is_none();
                Ok(())
            }
            (Read::Chat(document), None) => {
                self.swift = !self.done && self.last.is_none();
                let chat = chat(&mut self.chat, config, self.caching);
                chat.document(&mut wire, document, payload)
            }
            // A document is read as its decoder wants it.
            _ => unknown(&mut wire, payload),
        }
    }

    /// From here on the stream has that dialect.
    pub(crate) fn speak(&mut self, out: &mut Output<'_>, dialect: Dialect) {
        self.dialect = Some(dialect);
        self.other = dialect.decoder(out.config);
        self.keep_alive = dialect.keep_alive();
        self.wrapped = dialect.wrapped_names();
        self.assembler.speak(dialect.name());
        out.speak(dialect.name());
    }

    /// How payloads are read.
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
}

/// Chat's decoder, made when it has something to read: a stream of another dialect never needs it.
fn chat<'c>(known: &'c mut Option<Box<Chat>>, config: &Config, caching: bool) -> &'c mut Chat {
    known.get_or_insert_with(|| Box::new(Chat::new(config, caching)))
}
