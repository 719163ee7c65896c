//! The events of Anthropic Messages as wire deltas.
//!
//! Knows no other dialect, no framing and no identity of calls.

use crate::complaint::Complaint;
use crate::config::Config;
use crate::decode::{Decode, Shapes};
use crate::json::members::Document;
use crate::notes::Notes;
use crate::wire::{Payload, Step, Wire, unknown};

pub(crate) static SHAPES: Shapes = Shapes {
    is_body: |_| false,
    is_complaint: |_| false,
    is_of_use: |_| false,
    is_note: |_| false,
};

/// The decoder of one stream.
#[derive(Debug)]
pub(crate) struct Anthropic {
    ended: bool,
}

impl Anthropic {
    pub(crate) fn new(_config: &Config) -> Anthropic {
        Anthropic { ended: false }
    }
}

impl Decode for Anthropic {
    fn decode(
        &mut self,
        wire: &mut Wire<'_, '_>,
        _document: &Document<'_>,
        payload: Payload<'_>,
    ) -> Step {
        unknown(wire, payload)
    }

    fn marker(&mut self, _wire: &mut Wire<'_, '_>) -> Step {
        Ok(())
    }

    fn text(&mut self, wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
        Notes::default().complain(wire, &Complaint::of_text(payload.text), payload)
    }

    fn ended(&self) -> bool {
        self.ended
    }
}
