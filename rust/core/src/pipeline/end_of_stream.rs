//! Handles the end of the input: parses an unfinished event if its payload is complete, and reports a missing end.

use crate::dialect::decode_context::ParseResult;
use crate::dialect::payload::LocatedPayload;
use crate::json::Problem;
use crate::model::delta::InputEnd;
use crate::model::delta::UnfinishedInput;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::policy::Base;
use crate::model::spec::Code;
use crate::pipeline::array_body::ArrayBody;
use crate::pipeline::nested_event::nested_event;
use crate::pipeline::payload_pipeline::BODY_HEAD;
use crate::pipeline::payload_pipeline::PayloadPipeline;
use crate::pipeline::payload_pipeline::joined;
use crate::pipeline::salvage::MARKER;
use crate::pipeline::salvage::MOST_JOINS;
use crate::pipeline::salvage::Salvaged;
use crate::pipeline::salvage::WholeLines;
use crate::pipeline::salvage::classify;
use crate::pipeline::salvage::has_joined_lines;
use crate::pipeline::salvage::is_foreign;
use crate::pipeline::salvage::joined_field;
use crate::pipeline::salvage::position;
use crate::pipeline::salvage::split_joined_line;
use crate::pipeline::salvage::trim;
use crate::sse::Pending;
use crate::sse::decode_utf8;
use crate::sse::fields::ends_inside_a_sequence;

impl PayloadPipeline {
    pub(crate) fn close(
        &mut self,
        out: &mut Output<'_>,
        pending: &Pending<'_>,
        input: InputEnd,
    ) -> ParseResult {
        let data = pending
            .data
            .filter(|data| !data.is_empty())
            .map(|data| LocatedPayload {
                event: pending.event,
                data,
                offset: pending.data_offset,
                ordinal: pending.ordinal,
                stray: false,
            });
        let stray = pending
            .stray
            .filter(|data| !data.is_empty())
            .map(|data| LocatedPayload {
                event: b"",
                data,
                offset: pending.stray_offset,
                ordinal: pending.ordinal,
                stray: true,
            });
        let begun = data.is_some() || stray.is_some();
        let mut arrivals = [data, stray];
        arrivals.sort_by_key(|arrival| arrival.map(|arrival| arrival.offset));
        let mut cut = pending.open && !begun;
        let mut ordinal = pending.ordinal;
        for arrival in arrivals.into_iter().flatten() {
            let arrival = LocatedPayload { ordinal, ..arrival };
            match self
                .last_one(out, arrival, pending.is_joined && !arrival.stray)
                .map_err(|fault| arrival.locate(fault))?
            {
                UsedInput::Used => ordinal += 1,
                UsedInput::Nothing => {}
                UsedInput::UsedInPart => {
                    ordinal += 1;
                    cut = true;
                }
                UsedInput::Cut => cut = true,
            }
        }
        let is_open = pending
            .open_line
            .is_some_and(|at| at < self.head.len() as u64);
        if !self.seen && has_joined_lines(&self.head, is_open, self.reader(out)) {
            let fault = Fault::line_ends_missing().with_raw(&self.head);
            return Err(fault.at(0, pending.ordinal));
        }
        let shown = self.head.get(..BODY_HEAD).unwrap_or(&self.head);
        if !self.seen && !begun && is_foreign(shown) {
            return Err(self.no_event_stream(out));
        }
        let unfinished = unfinished_input(cut, pending.mid_utf8);
        self.end(out, unfinished, input, (pending.offset, ordinal))
    }

    /// Ends a stream whose body is an array. `total`: the number of bytes fed.
    pub(crate) fn close_array(
        &mut self,
        out: &mut Output<'_>,
        array: &ArrayBody,
        total: u64,
        input: InputEnd,
    ) -> ParseResult {
        let stream_position = (total, array.ordinal);
        if let Some(at) = array.spilled() {
            let stream_position = (at, array.ordinal);
            out.at(stream_position.0, stream_position.1);
            self.after_end(out)
                .map_err(|fault| with_position(fault, stream_position))?;
        }
        // An array without its closing bracket was truncated, even if the input ends between two elements.
        let unfinished =
            unfinished_input(!array.is_closed(), ends_inside_a_sequence(array.pending()));
        // A closed array is complete, even if the transport failed afterwards.
        let input = if array.is_closed() {
            InputEnd::Clean
        } else {
            input
        };
        self.end(out, unfinished, input, stream_position)
    }

    /// Parses the complete part of an unterminated event, and returns how much of the event was used.
    fn last_one(
        &mut self,
        out: &mut Output<'_>,
        arrival: LocatedPayload<'_>,
        is_joined: bool,
    ) -> Result<UsedInput, Fault> {
        let (text, _) = decode_utf8(arrival.data);
        let text = trim(&text);
        let event = arrival.event_name();
        let heartbeat = event
            .as_deref()
            .is_some_and(|event| self.is_keep_alive(event));
        if text.is_empty() || text.starts_with(':') || heartbeat {
            return Ok(UsedInput::Nothing);
        }
        if arrival.stray && !self.seen && text.starts_with('<') {
            return Err(self.no_event_stream(out));
        }
        if !self.seen
            && let Some(at) = joined_field(text, self.reader(out))
            && !self.is_joined_error(out, text, at, arrival.stray)
        {
            arrival.show(out);
            return Err(joined(position(arrival.data, at)));
        }
        let usable = match text == MARKER || self.done {
            true => UsablePrefix::All,
            false => self.usable(out, arrival.data, text, 0),
        };
        if usable == UsablePrefix::Nothing {
            return Ok(UsedInput::Cut);
        }
        if is_joined {
            self.report_joined_frame(out, arrival)?;
        }
        if !arrival.stray && !self.done {
            out.at(arrival.offset, arrival.ordinal);
            arrival.show(out);
            out.diagnose(Code::UNTERMINATED_EVENT, None, "")?;
        }
        if let UsablePrefix::Lines(end) = usable {
            let from = position(arrival.data, 0);
            let data = arrival.data.get(from..position(arrival.data, end));
            let data = data.unwrap_or_default();
            self.arrival(out, LocatedPayload { data, ..arrival })?;
            return Ok(UsedInput::UsedInPart);
        }
        self.arrival(out, arrival)?;
        Ok(UsedInput::Used)
    }

    fn end(
        &mut self,
        out: &mut Output<'_>,
        unfinished: UnfinishedInput,
        input: InputEnd,
        stream_position: (u64, u64),
    ) -> ParseResult {
        out.at(stream_position.0, stream_position.1);
        let result = self.finish_input(out, unfinished, input);
        let result = result.and_then(|()| self.conclude(out, unfinished, input));
        let reported = out.report_left_out();
        out.taken(reported.and(result))
            .map_err(|fault| with_position(fault, stream_position))
    }

    fn conclude(
        &mut self,
        out: &mut Output<'_>,
        unfinished: UnfinishedInput,
        input: InputEnd,
    ) -> ParseResult {
        let unfinished = match unfinished {
            UnfinishedInput::Nothing if !self.seen => UnfinishedInput::Empty,
            unfinished => unfinished,
        };
        self.assembler.end(out, unfinished, input)
    }

    /// Returns how much of an unfinished event can be parsed. The remaining bytes are treated as truncated.
    ///
    /// `joins`: the number of missing line endings before the unfinished event.
    fn usable(&self, out: &Output<'_>, data: &[u8], text: &str, joins: usize) -> UsablePrefix {
        let lenient = out.config.policy.base != Base::Strict;
        if text == MARKER {
            return UsablePrefix::All;
        }
        if !text.starts_with(['{', '[']) {
            return self.usable_nested(out, data);
        }
        match classify(data, text, self.reader(out), lenient) {
            // The fault for a document that is nested too deeply is the same whether or not the document is complete.
            Salvaged::Broken(error) if error.problem == Problem::TooDeep => UsablePrefix::All,
            Salvaged::Broken(_) | Salvaged::Text => UsablePrefix::Nothing,
            Salvaged::Lines(WholeLines {
                remainder: Some(start),
                ..
            }) => {
                let remainder = trim(text.get(start..).unwrap_or_default());
                let data = data.get(position(data, start)..).unwrap_or_default();
                match self.usable(out, data, remainder, joins) {
                    UsablePrefix::All => UsablePrefix::All,
                    UsablePrefix::Lines(_) | UsablePrefix::Nothing => UsablePrefix::Lines(start),
                }
            }
            Salvaged::LineEndsMissing(_) if joins == MOST_JOINS => UsablePrefix::All,
            Salvaged::LineEndsMissing(at) => {
                let start = split_joined_line(text, at).remainder;
                let remainder = trim(text.get(start..).unwrap_or_default());
                let data = data.get(position(data, start)..).unwrap_or_default();
                match self.usable(out, data, remainder, joins + 1) {
                    UsablePrefix::All => UsablePrefix::All,
                    UsablePrefix::Lines(_) | UsablePrefix::Nothing => UsablePrefix::Lines(at),
                }
            }
            _ => UsablePrefix::All,
        }
    }

    /// Returns how much of unfinished data can be parsed if the data is itself an event.
    fn usable_nested(&self, out: &Output<'_>, data: &[u8]) -> UsablePrefix {
        let Some(nested) = nested_event(data) else {
            return UsablePrefix::Nothing;
        };
        let Some(data) = nested.data else {
            return UsablePrefix::All;
        };
        let (text, _) = decode_utf8(&data);
        let text = trim(&text);
        let is_whole = text == MARKER
            || (text.starts_with(['{', '['])
                && self.usable(out, &data, text, 0) == UsablePrefix::All);
        if is_whole {
            UsablePrefix::All
        } else {
            UsablePrefix::Nothing
        }
    }
}

/// How much of an unfinished event can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsablePrefix {
    All,
    /// Only the complete lines can be parsed; they end at this offset.
    Lines(usize),
    Nothing,
}

/// Returns the kind of unfinished input at the end. `cut`: an event is incomplete. `mid_utf8`: the input ends inside a
/// character.
fn unfinished_input(cut: bool, mid_utf8: bool) -> UnfinishedInput {
    match (cut, mid_utf8) {
        (true, true) => UnfinishedInput::MidUtf8,
        (true, false) => UnfinishedInput::MidEvent,
        (false, _) => UnfinishedInput::Nothing,
    }
}

/// Adds the place to a fault that does not have a place yet.
fn with_position(fault: Fault, (offset, ordinal): (u64, u64)) -> Fault {
    if fault.placed {
        return fault;
    }
    fault.at(offset, ordinal)
}

/// How much of an unfinished event was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsedInput {
    Used,
    /// Only the complete lines were used; the text after them was truncated.
    UsedInPart,
    /// The payload had no content, so there was nothing to use.
    Nothing,
    Cut,
}
