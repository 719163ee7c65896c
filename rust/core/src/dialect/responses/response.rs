//! Decodes the response object, both in events and as a complete body: its id, model, output, usage, and status.
//!
//! At the end of a response, the module decodes the output, the usage, and the status, in this order.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::payload::HeldPayload;
use crate::dialect::payload::LocatedPayload;
use crate::dialect::responses::Responses;
use crate::dialect::responses::duplicate_keys::ValueKind;
use crate::dialect::responses::duplicate_keys::report_duplicates;
use crate::dialect::responses::name_sets::Slots;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::extra_fields;
use crate::dialect::responses::read::member;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::think_tags::is_white;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_blank_error;
use crate::fastpath::text_mark::mark;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::Place;
use crate::json::members::integer;
use crate::json::members::members;
use crate::json::members::string;
use crate::model::event::WireFact;
use crate::model::spec::Code;
use std::borrow::Cow;

/// Maximum number of response members to compare between start and end.
const REMEMBERED: usize = 64;
/// The reason that the status `incomplete` implies.
const USUAL: &str = "max_output_tokens";

impl Responses {
    pub(crate) fn opening<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let Some((response, at)) = response_of(event, reader) else {
            return Ok(());
        };
        let is_wrapped = event.present("response").is_some();
        // Without a wrapper, the id may be that of the event, so it does not indicate a restart.
        if self.restarts && is_wrapped && self.is_another(&response) {
            let DecodeContext { assembler, out } = &mut reader.wire;
            assembler.restart(out, 0)?;
            self.audio.forget(&mut reader.wire)?;
            self.items.begin_again();
        }
        if let Some(tools) = response.get("tools") {
            let fact = WireFact::RequestTools(tools);
            reader.wire.out.record_fact(fact);
        }
        self.start(&response, at, reader)?;
        usage(&response, at, reader)
    }

    /// Returns true if the response id differs from the last response id, which means that the response was restarted
    /// (AM10).
    fn is_another(&mut self, response: &Object<'_>) -> bool {
        let id = response.string("id");
        let Some(id) = id.filter(|id| !id.trim_matches(is_white).is_empty()) else {
            return false;
        };
        let id = mark(id.as_bytes());
        let before = self.id.replace(id);
        before.is_some_and(|before| before != id)
    }

    /// Decodes a response that was sent as one document. The response may be complete or in progress.
    pub(crate) fn body(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        response: &Object<'_>,
        payload: Payload<'_>,
    ) -> ParseResult {
        if response.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        let nested = response.nested();
        if nested.is_some_and(|nested| nested.may_repeat)
            || ValueKind::Response.may_repeat(&response.members)
        {
            report_duplicates(wire.out, &response.members, ValueKind::Response)?;
        }
        let wire = DecodeContext {
            assembler: &mut *wire.assembler,
            out: &mut *wire.out,
        };
        let (slots, at) = (Slots::default(), Pointer::ROOT);
        let mut reader = Reader::new(wire, response, &slots);
        self.start(response, at, &mut reader)?;
        self.output(response, at, &mut reader)?;
        // Some gateways omit the status.
        let status = response.string("status").unwrap_or("completed".into());
        if FACTS.is_final(&status) {
            let enclosing = ExtraFields::default();
            return self.conclude(Some(response), at, reader, status, enclosing, payload);
        }
        usage(response, at, &mut reader)?;
        reader.report()
    }

    /// Handles a terminal event. The status of the response takes precedence over the type of the event
    /// (`response.done`).
    pub(crate) fn end<'a>(
        &mut self,
        event: &Object<'a>,
        mut reader: Reader<'_, '_, 'a>,
        named: &'static str,
        payload: Payload<'_>,
    ) -> ParseResult {
        let (response, at) = response_of(event, &mut reader).unzip();
        let at = at.unwrap_or(Pointer::ROOT);
        let status = response.as_ref().and_then(|it| it.string("status"));
        let status = status.filter(|status| FACTS.is_final(status));
        let status = status.unwrap_or(Cow::Borrowed(named));
        if let Some(response) = response.as_deref().filter(|_| !payload.tail) {
            self.start(response, at, &mut reader)?;
            self.output(response, at, &mut reader)?;
        }
        let enclosing = match event.present("response") {
            Some(_) => reader.extra_fields_of_event(event),
            None => ExtraFields::default(), // members of the response
        };
        self.conclude(response.as_deref(), at, reader, status, enclosing, payload)
    }

    /// For a failed response whose members are sent directly in the event, applies the output and the usage before the
    /// error is reported.
    pub(crate) fn before_error<'a>(
        &mut self,
        event: &Object<'a>,
        mut reader: Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let Some((response, at)) = response_of(event, &mut reader) else {
            return Ok(());
        };
        self.start(&response, at, &mut reader)?;
        self.output(&response, at, &mut reader)?;
        usage(&response, at, &mut reader)?;
        reader.report()
    }

    /// Emits the response's start event from the first event that identifies the response, or completes the start event
    /// from a later event. In a resumed stream, the terminal event may be the first event that identifies the response.
    fn start<'a>(
        &mut self,
        response: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        if self.start_reported {
            return complete_start(response, &mut reader.wire);
        }
        let members = extra_fields(response, &FACTS.response_fields);
        let model = reader.text(response, at, "model");
        let model = model.filter(|model| !model.is_empty());
        let created = response.present("created_at");
        let id = reader.identity(response, at, "id");
        if id.is_none() && model.is_none() && created.is_none() && members.is_empty() {
            return Ok(());
        }
        self.start_reported = true;
        let model = model.map(|model| reader.whole_text(model));
        let created = created.filter(|raw| raw.kind != Kind::String);
        let metadata = members.text();
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.started(
            out,
            id.as_deref(),
            model.as_deref(),
            created.and_then(integer),
            metadata.as_deref(),
        )
    }

    fn output<'a>(
        &mut self,
        response: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        match response.present("output") {
            Some(output) if output.kind == Kind::Array => {
                self.items.restate(output, at.member("output"), reader)?;
            }
            Some(output) => reader.notes.shape(output, at.member("output")),
            None => {}
        }
        self.items.texts.top_level(response, reader)
    }

    /// Ends the response: emits the usage, the changed members, and the finish reason or error.
    fn conclude<'a>(
        &mut self,
        response: Option<&Object<'a>>,
        at: Pointer<'_>,
        mut reader: Reader<'_, '_, 'a>,
        mut status: Cow<'a, str>,
        enclosing: ExtraFields<'a>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let mut left = ExtraFields::default();
        if let Some(response) = response {
            usage(response, at, &mut reader)?;
            left = changed_fields(response, reader.wire.assembler.start_metadata());
            if let Some(details) = reader.object(response, at, "incomplete_details") {
                left.add(member("incomplete_details", details.raw));
                status = reason_of(status, details.get("reason"));
            }
        }
        self.audio.leave(&mut reader.wire)?;
        if let Some(text) = left.and(&enclosing).text() {
            let DecodeContext { assembler, out } = &mut reader.wire;
            assembler.choice_metadata(out, 0, &text)?;
        }
        let error = response.and_then(|response| response.get("error"));
        if let Some(error) = error.filter(|raw| !is_blank_error(*raw)) {
            self.ended = true;
            let upstream_error = UpstreamErrorFields::of_value(error);
            return reader
                .notes
                .report_error(&mut reader.wire, &upstream_error, payload);
        }
        reader.report()?;
        if status == "failed" {
            self.hold_failure(payload);
            return Ok(());
        }
        self.ended = true;
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.finish(out, 0, &status)?;
        assembler.done(out)
    }
}

impl Responses {
    /// Holds back a failure event without an error, because some gateways send the error in the next event.
    fn hold_failure(&mut self, payload: Payload<'_>) {
        let data = payload.text.as_bytes();
        let arrival = LocatedPayload {
            data,
            ..payload.arrival
        };
        self.failure = Some(Box::new(HeldPayload::of(arrival)));
    }

    /// Reports the error in the event that follows a failure event without an error. If this event contains no error
    /// either, reports the failure itself and ignores the event.
    #[cold]
    pub(crate) fn after_failure(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        upstream_error: Option<UpstreamErrorFields<'_>>,
        payload: Payload<'_>,
    ) -> ParseResult {
        let Some(upstream_error) = upstream_error else {
            return self.report_failure(wire);
        };
        self.failure = None;
        self.report_error(wire, &upstream_error, payload)
    }

    /// Reports the held failure, if there is one. The report refers to the position of the failure event.
    pub(crate) fn report_failure(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let Some(failure) = self.failure.take() else {
            return Ok(());
        };
        self.ended = true;
        let arrival = failure.arrival();
        let DecodeContext { assembler, out } = wire;
        let position = out.position();
        out.at(arrival.offset, arrival.ordinal);
        arrival.show(out);
        assembler
            .upstream_error(out, None, None, "failed", arrival.data)
            .map_err(|fault| arrival.locate(fault))?;
        out.at(position.0, position.1);
        Ok(())
    }
}

/// Returns the response in an event that opens or ends the response, and the response's place in the payload. Some
/// gateways send the members of the response next to the type of the event.
fn response_of<'w, 'a>(
    event: &Object<'a>,
    reader: &mut Reader<'w, '_, 'a>,
) -> Option<(Cow<'w, Object<'a>>, Pointer<'static>)> {
    if event.present("response").is_some() {
        let response = reader.object(event, Pointer::ROOT, "response")?;
        return Some((response, Pointer::ROOT.member("response")));
    }
    let response = Object {
        raw: event.raw,
        members: response_members(event),
        wide_integer: false,
        nested: None,
    };
    Some((Cow::Owned(response), Pointer::ROOT))
}

/// Returns the members of the response in an event without `response`: all members except those of events.
pub(crate) fn response_members<'a>(event: &Object<'a>) -> Vec<Member<'a>> {
    let is_own = |member: &&Member<'_>| {
        FACTS.response_fields.has(member.key) || !FACTS.event_fields.has(member.key)
    };
    event.members.iter().filter(is_own).copied().collect()
}

/// Sets the fields that the start event lacked.
fn complete_start(response: &Object<'_>, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
    let DecodeContext { assembler, out } = wire;
    if !assembler.lacks_start_fields() {
        return Ok(());
    }
    let word = |key| response.string(key).filter(|word| !word.trim().is_empty());
    let (id, model) = (word("id"), word("model"));
    let created = response.present("created_at").and_then(integer);
    assembler.started(out, id.as_deref(), model.as_deref(), created, None)
}

/// Returns the unknown members of the response that differ from `reported`, the metadata of the start event.
fn changed_fields<'a>(response: &Object<'a>, reported: Option<&str>) -> ExtraFields<'a> {
    let mut left = extra_fields(response, &FACTS.response_fields);
    let Some(text) = reported else {
        return left;
    };
    let kind = Kind::Object;
    let reported = members(Raw { text, kind });
    let reported = reported.get(..REMEMBERED).unwrap_or(&reported);
    // The members usually have the same order, so the search begins after the last match.
    let mut next = 0;
    left.members.retain(|one| {
        let name = one.key.name();
        let (before, following) = reported.split_at_checked(next).unwrap_or_default();
        let positions = (next..).zip(following).chain((0..).zip(before));
        let mut same = positions.filter(|(_, known)| known.key.is(&name));
        let Some((position, known)) = same.next() else {
            return true;
        };
        next = position + 1;
        known.raw.text != one.raw.text
    });
    left
}

fn usage<'a>(
    response: &Object<'a>,
    at: Pointer<'_>,
    reader: &mut Reader<'_, '_, 'a>,
) -> ParseResult {
    let Some(usage) = reader.object(response, at, "usage") else {
        return Ok(());
    };
    let DecodeContext { assembler, out } = &mut reader.wire;
    let counts = FACTS.counts.read_members(usage.raw, &usage.members);
    assembler.merge_usage(out, counts)
}

/// Returns the status, or the reason why the response is incomplete.
///
/// The reason is not used if it is blank or `max_output_tokens`. A response whose reason does not mean success is
/// incomplete, even if its status is `completed`.
fn reason_of<'a>(status: Cow<'a, str>, why: Option<Raw<'a>>) -> Cow<'a, str> {
    let Some(why) = why.and_then(string).filter(|why| !why.trim().is_empty()) else {
        return status;
    };
    let incomplete =
        status == "incomplete" || (status == "completed" && FACTS.is_unsuccessful(&why));
    match incomplete {
        true if why == USUAL => Cow::Borrowed("incomplete"),
        true => why,
        false => status,
    }
}
