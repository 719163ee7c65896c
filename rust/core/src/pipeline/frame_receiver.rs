//! Passes the framer's items to the payload pipeline, with their places (byte offset and event ordinal).
//!
//! A complete event is matched against the known templates before it is split into lines. Several events that only
//! continue the same text are matched in one step.

use crate::dialect::decode_context::DATA;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::one_line_of_data;
use crate::dialect::payload::LocatedPayload;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::limits::as_len;
use crate::model::output::Output;
use crate::pipeline::array_body::ArrayBody;
use crate::pipeline::array_body::UnfinishedElement;
use crate::pipeline::payload_pipeline::PayloadPipeline;
use crate::sse::Item;
use crate::sse::Receiver;
use crate::sse::WholeEvents;

/// The payload pipeline and its output, as the framer's receiver.
pub(crate) struct FrameReceiver<'g, 'o> {
    pub(crate) stage: &'g mut PayloadPipeline,
    pub(crate) out: Output<'o>,
    /// Offset of an event that is known to match no template, so that the event is not matched again.
    pub(crate) unknown: u64,
}

impl FrameReceiver<'_, '_> {
    /// Consumes at most `most` events that only continue the current text. The places of these events are not recorded.
    #[inline]
    fn similar_events(&mut self, unread: &[u8], most: usize) -> WholeEvents {
        let PayloadPipeline {
            other,
            chat,
            assembler,
            ..
        } = &mut *self.stage;
        let out = &mut self.out;
        let mut wire = DecodeContext { assembler, out };
        match (other, chat) {
            (Some(decoder), _) => decoder.row(&mut wire, unread, most),
            (None, Some(chat)) => chat.similar_events(&mut wire, unread, most),
            (None, None) => WholeEvents::default(),
        }
    }

    /// Passes the elements of an array to the pipeline one by one.
    pub(crate) fn elements(
        &mut self,
        array: &mut ArrayBody,
        input: &[u8],
        unfinished: UnfinishedElement,
    ) -> ParseResult {
        self.stage.array = true;
        let limit = self.out.config.limits.max_event_bytes;
        let mut unread = input;
        while let Some(element) = array.next(&mut unread, limit, unfinished)? {
            let arrival = LocatedPayload {
                event: b"",
                data: &element.data,
                offset: element.offset,
                ordinal: element.ordinal,
                stray: false,
            };
            self.stage.arrival(&mut self.out, arrival)?;
            self.out.record_fact(WireFact::Element);
            self.out.taken(Ok(()))?;
        }
        Ok(())
    }
}

impl Receiver for FrameReceiver<'_, '_> {
    #[inline]
    fn item(&mut self, item: Item<'_>) -> ParseResult {
        let arrival = match item {
            Item::Frame(frame) => {
                let arrival = LocatedPayload {
                    event: frame.event,
                    data: frame.data,
                    offset: frame.offset,
                    ordinal: frame.ordinal,
                    stray: false,
                };
                if frame.is_joined {
                    self.stage.report_joined_frame(&mut self.out, arrival)?;
                }
                arrival
            }
            Item::Stray(stray) => {
                self.stage.framed |= stray.has_data_lines;
                LocatedPayload {
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
    fn take_whole_events(
        &mut self,
        unread: &[u8],
        offset: u64,
        ordinal: u64,
    ) -> Result<WholeEvents, Fault> {
        if !self.stage.fast_path || self.stage.done || offset == self.unknown {
            return Ok(WholeEvents::default());
        }
        let limit = as_len(self.out.config.limits.max_events);
        let left = limit.saturating_sub(usize::try_from(ordinal).unwrap_or(usize::MAX));
        let taken = self.similar_events(unread, left);
        if taken.events > 0 {
            self.stage.framed = true;
            return Ok(taken);
        }
        if left == 0 {
            return Ok(WholeEvents::default());
        }
        self.out.at(offset, ordinal);
        let known = self
            .stage
            .match_template(&mut self.out, Incoming::Lines(unread));
        match known.and_then(|bytes| self.out.taken(Ok(bytes))) {
            Ok(0) => Ok(WholeEvents::default()),
            Ok(bytes) => {
                self.stage.framed = true;
                Ok(WholeEvents { events: 1, bytes })
            }
            Err(fault) => Err(locate(fault, unread, offset, ordinal)),
        }
    }
}

/// Adds to a fault the place of the first event in the input.
#[cold]
fn locate(fault: Fault, unread: &[u8], offset: u64, ordinal: u64) -> Fault {
    let (event, payload) = one_line_of_data(unread).unwrap_or_default();
    let before = unread.len() - payload.len();
    let mut lines = payload.split(|byte| matches!(byte, b'\n' | b'\r'));
    LocatedPayload {
        event,
        data: lines.next().unwrap_or_default(),
        // The offset of a frame is the offset of its data.
        offset: offset + before.saturating_sub(DATA.len()) as u64,
        ordinal,
        stray: false,
    }
    .locate(fault)
}
