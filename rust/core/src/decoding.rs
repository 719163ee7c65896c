//! Payloads that were read, to the decoder of their dialect; which one that is; and the end that a stream says it has.

use std::mem;

use crate::dialect::{Dialect, Read, Reader, detect, seen};
use crate::fault::Fault;
use crate::json::members;
use crate::ladder::MARKER;
use crate::out::Out;
use crate::spec::Code;
use crate::stage::Stage;
use crate::wire::{Payload, Step, Wire, unknown};

impl Stage {
    /// An error in plain words.
    pub(crate) fn text(&mut self, out: &mut Out<'_>, payload: Payload<'_>) -> Step {
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        match &mut self.other {
            Some(decoder) => decoder.text(&mut wire, payload),
            None => self.chat.text(&mut wire, payload),
        }
    }

    /// A `[DONE]`. What it means is the dialect's business.
    pub(crate) fn marker(&mut self, out: &mut Out<'_>) -> Step {
        self.seen = true;
        let Some(decoder) = &mut self.other else {
            return self.finish(out);
        };
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        decoder.marker(&mut wire)?;
        self.done |= decoder.ended();
        Ok(())
    }

    /// The terminal marker, or what stands for it.
    fn finish(&mut self, out: &mut Out<'_>) -> Step {
        self.done = true;
        self.seen = true;
        self.swift = false;
        self.flush(out)?;
        self.assembler.done(out)
    }

    /// What the decoder held back goes out.
    pub(crate) fn flush(&mut self, out: &mut Out<'_>) -> Step {
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        match &mut self.other {
            Some(decoder) => decoder.flush(&mut wire),
            None => self.chat.flush(&mut wire),
        }
    }

    /// What comes behind the terminal marker is not processed. A note without any choice is no anomaly.
    pub(crate) fn after_done(&mut self, out: &mut Out<'_>, payload: Payload<'_>) -> Step {
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
    pub(crate) fn document<'p>(
        &mut self,
        out: &mut Out<'_>,
        mut document: Read<'p>,
        payload: Payload<'p>,
        stray: Option<bool>,
    ) -> Step {
        let complaint = stray == Some(true) && document.is_complaint();
        let event = payload.event.or(complaint.then_some("error"));
        let payload = Payload { event, ..payload };
        if self.dialect.is_none() {
            self.detect(out, &payload)?;
            if self.other.is_some()
                && let Ok(read) = self.reader(out).read(payload.text)
            {
                document = read;
            }
        }
        let body = stray == Some(true) && document.is_body();
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
        self.decode(out, &document, payload)?;
        if body && !self.done {
            return self.finish(out);
        }
        Ok(())
    }

    fn decode(&mut self, out: &mut Out<'_>, document: &Read<'_>, payload: Payload<'_>) -> Step {
        let mut wire = Wire {
            assembler: &mut self.assembler,
            out,
        };
        match (document, &mut self.other) {
            (Read::Plain(document, _), Some(decoder)) => {
                decoder.decode(&mut wire, document, payload)?;
                self.done |= decoder.ended();
                Ok(())
            }
            (Read::Chat(document), None) => {
                self.swift = !self.done && self.last.is_none();
                self.chat.document(&mut wire, document, payload)
            }
            // A document is read as its decoder wants it.
            (Read::Plain(..), None) | (Read::Chat(_), Some(_)) => unknown(&mut wire, payload),
        }
    }

    /// Which dialect the stream has, by a payload.
    fn detect(&mut self, out: &Out<'_>, payload: &Payload<'_>) -> Step {
        let Ok(document) = members::document(payload.text, None) else {
            return Ok(());
        };
        let name = detect(&document, payload.event);
        let Some(dialect) = name.and_then(Dialect::from_name) else {
            let mut fault = Fault::unknown_dialect(seen(&document));
            name.unwrap_or_default().clone_into(&mut fault.detail);
            return Err(fault);
        };
        self.speak(out, dialect);
        Ok(())
    }

    /// From here on the stream has that dialect.
    pub(crate) fn speak(&mut self, out: &Out<'_>, dialect: Dialect) {
        self.dialect = Some(dialect);
        self.other = dialect.decoder(out.config);
        self.keep_alive = dialect.keep_alive();
    }

    /// How payloads are read.
    pub(crate) fn reader(&self, out: &Out<'_>) -> Reader {
        Reader {
            dialect: self.dialect,
            max_depth: out.config.limits.max_json_depth,
        }
    }

    pub(crate) fn is_keep_alive(&self, event: &str) -> bool {
        self.keep_alive.contains(&event)
    }
}
