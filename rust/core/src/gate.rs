//! A stage as the receiver of the framer: what it hands out goes on, at its place.
//!
//! A whole event that is known is taken before it is cut into lines.

use crate::dialect::chat::Ending;
use crate::fault::Fault;
use crate::out::Out;
use crate::sse::{Item, Receiver};
use crate::stage::{Arrival, Stage};
use crate::wire::{Step, Wire};

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
