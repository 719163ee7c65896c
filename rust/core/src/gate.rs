//! A stage as the receiver of the framer: what it hands out goes on, at its place.
//!
//! A whole event that is known is taken before it is cut into lines.

use memchr::memchr;

use crate::array_body::ArrayBody;
use crate::arrival::Arrival;
use crate::fault::Fault;
use crate::out::Out;
use crate::sse::{Item, Receiver};
use crate::stage::Stage;
use crate::wire::{Ending, Step};

/// A stage with its way out: takes what the framer hands out.
pub(crate) struct Gate<'g, 'o> {
    pub(crate) stage: &'g mut Stage,
    pub(crate) out: Out<'o>,
}

impl Gate<'_, '_> {
    /// The elements of an array, one by one.
    pub(crate) fn elements(&mut self, array: &mut ArrayBody, input: &[u8]) -> Step {
        self.stage.array = true;
        let limit = self.out.config.limits.max_event_bytes;
        let mut rest = input;
        while let Some(element) = array.next(&mut rest, limit)? {
            let arrival = Arrival {
                event: b"",
                data: &element.data,
                offset: element.offset,
                ordinal: element.ordinal,
                stray: false,
            };
            self.stage.arrival(&mut self.out, arrival)?;
        }
        Ok(())
    }
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
            Item::Stray(stray) => {
                self.stage.framed |= stray.beside_data;
                Arrival {
                    event: b"",
                    data: stray.data,
                    offset: stray.offset,
                    ordinal: stray.ordinal,
                    stray: true,
                }
            }
        };
        self.stage.arrival(&mut self.out, arrival)
    }

    #[inline]
    fn whole(&mut self, rest: &[u8], offset: u64, ordinal: u64) -> Result<usize, Fault> {
        if !self.stage.swift || self.stage.done {
            return Ok(0);
        }
        let Some((event, payload)) = one_line_of_data(rest) else {
            return Ok(0);
        };
        let limit = self.out.config.limits.max_events;
        if limit.is_some_and(|limit| ordinal >= limit) {
            return Ok(0);
        }
        // A frame is where its data is.
        let before = rest.len() - payload.len();
        let offset = offset + (before - DATA.len()) as u64;
        self.out.at(offset, ordinal);
        self.stage.framed = true;
        let known = self
            .stage
            .known(&mut self.out, event, payload, Ending::BlankLine);
        match known {
            Ok(0) => Ok(0),
            Ok(length) => Ok(before + length),
            Err(fault) => {
                let data = payload
                    .split(|byte| matches!(byte, b'\n' | b'\r'))
                    .next()
                    .unwrap_or_default();
                Err(Arrival {
                    event,
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

const DATA: &[u8] = b"data: ";

/// The name of an event, if that comes first, and what follows the beginning of its data line.
#[inline]
fn one_line_of_data(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(payload) = rest.strip_prefix(DATA) {
        return Some((b"", payload));
    }
    let named = rest.strip_prefix(b"event: ")?;
    let (event, payload) = named.split_at_checked(memchr(b'\n', named)?)?;
    let payload = payload.strip_prefix(b"\n")?.strip_prefix(DATA)?;
    Some((event, payload))
}
