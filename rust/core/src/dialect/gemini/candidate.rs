//! Decodes one candidate of a Gemini stream: its parts in order, its sources, its metadata, and its finish reason.
//!
//! Parts have no address on the wire. Consecutive text parts of the same kind are joined into one part, which ends at a
//! part of another kind or at a thought signature.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::gemini::calls::Calls;
use crate::dialect::gemini::sources::Sources;
use crate::dialect::gemini::spec_tables::FACTS;
use crate::dialect::gemini::spec_tables::a_reason;
use crate::dialect::gemini::spec_tables::extra_fields;
use crate::dialect::gemini::spec_tables::nonnull;
use crate::dialect::gemini::tools::KINDS;
use crate::dialect::gemini::tools::PartContext;
use crate::dialect::gemini::tools::read_tool;
use crate::dialect::upstream_error::is_empty_value;
use crate::fastpath::items::template::is_small;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::is_set;
use crate::json::members::present;
use crate::json::write_string;
use crate::model::delta::Address;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::delta::PartAttributes;
use crate::model::finish_words::is_alias;
use crate::model::finish_words::meaning;
use crate::model::small_map::Numbered;
use crate::model::spec::Code;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;
use std::mem;

const SIGNATURE: &str = "thoughtSignature";
const LOGPROBS: &str = "logprobsResult";
const CALL: &str = "functionCall";

/// Decoder state of one candidate.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) index: i32,
    calls: Calls,
    sources: Sources,
    /// Number of parts that have arrived.
    positions: i64,
    /// Kind and position of the open text part.
    open: Option<(ItemKind, i64)>,
    finish_reported: bool,
    pub(crate) reason: Option<String>,
    /// True if text or another part arrived after a finish reason, so that the end of the stream is not valid.
    pub(crate) ran_on: bool,
}

/// An element of `candidates`. The objects and lists that the decoder reads are already split into members and
/// elements.
#[derive(Debug)]
pub(crate) struct OpenedCandidate<'c, 'a> {
    pub(crate) raw: Raw<'a>,
    /// `None` if the candidate is not an object.
    pub(crate) object: Option<Cow<'c, Object<'a>>>,
    content: Option<Cow<'c, Object<'a>>>,
    parts: Vec<OpenedPart<'c, 'a>>,
}

/// An element of `parts`, with its members if it is an object.
type OpenedPart<'c, 'a> = (Raw<'a>, Option<Cow<'c, Object<'a>>>);

impl<'c, 'a> OpenedCandidate<'c, 'a> {
    /// Splits the elements of `candidates` in `payload`. Returns an empty list if the value is not an array.
    pub(crate) fn list(payload: &'c Object<'a>, raw: Raw<'a>) -> Vec<OpenedCandidate<'c, 'a>> {
        let entries = payload.items(raw);
        let open = |entry: &Raw<'a>| OpenedCandidate::of(payload, *entry);
        entries.iter().map(open).collect()
    }

    fn of(payload: &'c Object<'a>, raw: Raw<'a>) -> OpenedCandidate<'c, 'a> {
        let inside = |holder: &Option<Cow<'c, Object<'a>>>, key| holder.as_ref()?.get(key);
        let object = payload.open(raw);
        let content = inside(&object, "content").and_then(|raw| payload.open(raw));
        let parts = inside(&content, "parts").map(|raw| match raw.kind {
            Kind::Object => Cow::Owned(vec![raw]),
            _ => payload.items(raw),
        });
        let parts = parts.unwrap_or_default();
        let parts = parts.iter().map(|part| (*part, payload.open(*part)));
        OpenedCandidate {
            raw,
            parts: parts.collect(),
            object,
            content,
        }
    }
}

/// One part in a chunk.
#[derive(Debug)]
struct CandidatePart<'p, 'a> {
    object: &'p Object<'a>,
    at: Pointer<'p>,
    /// Unknown members of the part.
    extra: ExtraFields<'a>,
    tail: bool,
}

impl Numbered for Candidate {
    type Number = i32;

    fn number(&self) -> i32 {
        self.index
    }
}

impl Candidate {
    /// Creates the state of a candidate, and opens its choice, so that the choice is closed even if it has no output.
    pub(crate) fn new(
        wire: &mut DecodeContext<'_, '_>,
        index: i32,
    ) -> Result<Candidate, crate::model::fault::Fault> {
        wire.assembler
            .text(wire.out, index, Text::default(), None)?;
        Ok(Candidate {
            index,
            calls: Calls::new(index),
            sources: Sources::default(),
            positions: 0,
            open: None,
            finish_reported: false,
            reason: None,
            ran_on: false,
        })
    }

    /// Decodes one element of a chunk's `candidates`. `tail`: true if the chunk follows a broken document.
    pub(crate) fn read<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        entry: &OpenedCandidate<'_, 'a>,
        value: &Object<'a>,
        at: Pointer<'_>,
        tail: bool,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let members = &value.members;
        let reason = a_reason(members, at, "finishReason", notes);
        let fails = |reason: &Cow<'_, str>| meaning("gemini", reason) == Some("error");
        if reason.as_ref().is_some_and(fails) {
            self.calls.end_waiting(wire)?; // the call came before the failure
            self.calls.failed = true;
        }
        let mut extra = extra_fields(members, &FACTS.candidate_fields);
        let mut carry = ExtraFields::default();
        if let Some(raw) = nonnull(members, LOGPROBS) {
            // Log probabilities describe the tokens in this chunk, so they are attached to the event that contains
            // these tokens.
            carry.add(member(LOGPROBS, raw));
        }
        if let Some(content) = &entry.content {
            let inner = at.member("content");
            self.content(wire, content, entry, inner, &mut carry, tail, notes)?;
            extra.extend(&extra_fields(&content.members, &FACTS.content_fields).members);
        } else if let Some(raw) = nonnull(members, "content") {
            notes.shape(raw, at.member("content"));
        }
        if !tail {
            self.sources.read(wire, self.index, value, notes)?;
        }
        let mut left = if carry.is_empty() {
            extra
        } else {
            carry.extend(&extra.members);
            carry
        };
        let empty = |member: &Member<'_>| matches!(member.raw.text, "{}" | "[]" | "null");
        left.members.retain(|member| !empty(member));
        if let Some(metadata) = left.text() {
            wire.assembler
                .choice_metadata(wire.out, self.index, &metadata)?;
        }
        match reason {
            Some(reason) => self.take(wire, &reason),
            None => Ok(()),
        }
    }

    /// Returns the kind and position of the open text part, or `None`.
    pub(crate) fn open(&self) -> Option<(ItemKind, i64)> {
        self.open
    }

    /// If the candidate only extends the open text part, returns this part and the text. Returns `None` for any other
    /// candidate. A template can match later candidates that differ only in their text.
    pub(crate) fn lone_text<'a>(
        &self,
        entry: &OpenedCandidate<'_, 'a>,
    ) -> Option<(PartAt<'static>, Raw<'a>)> {
        let (object, content) = (entry.object.as_ref()?, entry.content.as_ref()?);
        let [(_, Some(part))] = entry.parts.as_slice() else {
            return None;
        };
        let only = |members: &[Member<'_>], names: &[&str]| {
            let mut members = members.iter();
            members.all(|member| names.iter().any(|name| member.key.is(name)))
        };
        let plain = only(&object.members, &["content", "index"])
            && only(&content.members, &["parts", "role"])
            && only(&part.members, &["text", "thought"])
            && object.get("index").is_none_or(is_small);
        // Empty text is excluded, because it does not open a part. The open part may therefore be of another kind.
        let text = part.get("text").filter(|raw| raw.text.len() > 2)?;
        let text = Some(text).filter(|raw| raw.kind == Kind::String)?;
        let (kind, position) = self.open.filter(|_| plain && self.reason.is_none())?;
        Some((self.at(kind, position), text))
    }

    /// Stores a finish reason. The last reason is used, unless only an earlier reason means that the response was
    /// truncated, filtered, or failed.
    pub(crate) fn take(&mut self, wire: &mut DecodeContext<'_, '_>, reason: &str) -> ParseResult {
        let cut = |reason| {
            matches!(
                meaning("gemini", reason),
                Some("length" | "content_filter" | "error")
            )
        };
        if let Some(before) = self.reason.as_deref().filter(|before| *before != reason) {
            wire.out.diagnose(Code::FINISH_REPEATED, None, reason)?;
            if cut(before) && !cut(reason) {
                return Ok(());
            }
        }
        if is_alias("gemini", reason) {
            wire.out.mark_misread("finish_alias"); // the assembler receives the reason only at the end of the input
        }
        self.reason = Some(reason.to_owned());
        Ok(())
    }

    /// Closes the open text part and emits the finish reason, if the candidate has one that was not emitted before. A
    /// finish reason that means success also ends the open calls.
    pub(crate) fn finish(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if mem::replace(&mut self.finish_reported, true) {
            return Ok(());
        }
        let Some(reason) = self.reason.take() else {
            return Ok(());
        };
        match meaning("gemini", &reason) {
            Some("natural") => self.calls.finish(wire)?,
            _ => self.calls.end_waiting(wire)?,
        }
        self.close(wire)?;
        wire.assembler.finish(wire.out, self.index, &reason)?;
        self.reason = Some(reason);
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn content<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        content: &Object<'a>,
        entry: &OpenedCandidate<'_, 'a>,
        at: Pointer<'_>,
        carry: &mut ExtraFields<'a>,
        tail: bool,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let Some(parts) = nonnull(&content.members, "parts") else {
            return Ok(());
        };
        let at = at.member("parts");
        let is_list = parts.kind == Kind::Array;
        if !is_list && entry.parts.is_empty() {
            notes.shape(parts, at);
            return Ok(());
        }
        if !is_list {
            notes.mark_misread("no_list");
        }
        for (position, (raw, object)) in entry.parts.iter().enumerate() {
            let item = at.item(position);
            let at = if is_list { item } else { at };
            let Some(object) = object else {
                notes.unless_null(*raw, at);
                continue;
            };
            let part = CandidatePart {
                object,
                at,
                extra: extra_fields(&object.members, &FACTS.part_fields),
                tail,
            };
            self.part(wire, part, carry, notes)?;
        }
        Ok(())
    }

    fn part<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        mut part: CandidatePart<'_, 'a>,
        carry: &mut ExtraFields<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let (members, tail) = (&part.object.members, part.tail);
        let has_value = |key| find(members, key).is_some_and(|raw| !is_empty_value(raw));
        let kinds = kinds(members);
        if kinds.is_empty() && !part.extra.is_empty() && !tail && nonnull(members, "text").is_none()
        {
            return self.keep(wire, part.object);
        }
        if (kinds.is_empty() || has_value("text")) && !(tail && has_value("thought")) {
            let none = ExtraFields::default();
            let extra = if kinds.is_empty() { &part.extra } else { &none };
            self.text(wire, &part, extra, carry, notes)?;
        }
        if tail || kinds.is_empty() {
            return Ok(());
        }
        if has_value("text") {
            notes.mark_misread("other_member"); // @ai-sdk/google reads only one value of a part
        }
        self.ran_on |= self.reason.is_some();
        self.close(wire)?;
        if let Some(raw) = nonnull(members, SIGNATURE) {
            part.extra.add(member(SIGNATURE, raw));
        }
        if let Some(raw) = find(members, "thought").filter(|raw| raw.kind == Kind::True) {
            part.extra.add(member("thought", raw));
        }
        let mut is_reported = false;
        for kind in kinds {
            if kind == CALL {
                let position = self.position();
                self.calls
                    .read(wire, part.object, part.at, position, &part.extra, notes)?;
                continue;
            }
            self.calls.finish(wire)?;
            if !mem::replace(&mut is_reported, true) {
                self.report_members(wire, part.object, has_value("text"));
            }
            let position = PartContext {
                choice: self.index,
                position: self.position(),
                part: part.object,
                at: part.at,
                extra: &part.extra,
            };
            read_tool(wire, kind, position, notes)?;
        }
        Ok(())
    }

    /// Emits a part of an unknown kind unchanged. A client must send the signature back in a later turn.
    fn keep(&mut self, wire: &mut DecodeContext<'_, '_>, part: &Object<'_>) -> ParseResult {
        self.close(wire)?;
        self.calls.finish(wire)?;
        self.report(wire, part);
        let raw = part.raw.text.as_bytes();
        wire.assembler
            .kept_unknown(wire.out, self.index, None, raw, None)
    }

    /// Reports a part that the encoder does not write itself to the repair stage.
    fn report(&self, wire: &mut DecodeContext<'_, '_>, part: &Object<'_>) {
        wire.out.keep(Unmodelled::Part {
            choice: self.index,
            part: part.raw.text,
        });
    }

    /// Reports the members of a part to the repair stage, except a text and a call, which the encoder writes from
    /// events.
    fn report_members(&self, wire: &mut DecodeContext<'_, '_>, part: &Object<'_>, has_text: bool) {
        let mut others = ExtraFields::default();
        for member in &part.members {
            if !(member.key.is(CALL) || (has_text && member.key.is("text"))) {
                others.add(*member);
            }
        }
        if let Some(part) = others.text() {
            let choice = self.index;
            wire.out.keep(Unmodelled::Part {
                choice,
                part: &part,
            });
        }
    }

    // Text

    fn text<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &CandidatePart<'_, 'a>,
        extra: &ExtraFields<'a>,
        carry: &mut ExtraFields<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let members = &part.object.members;
        let text = notes.a_text(members, part.at, "text");
        let signature = notes.a_text(members, part.at, SIGNATURE);
        let signature = notes.clean(signature);
        let signature = Some(signature.as_ref()).filter(|signature| !signature.is_empty());
        if text.is_empty() && signature.is_none() && extra.is_empty() {
            return Ok(());
        }
        let kind = match is_set(find(members, "thought")) {
            true => ItemKind::Reasoning,
            false => ItemKind::Message,
        };
        if !text.is_empty() {
            self.ran_on |= self.reason.is_some();
        }
        let at = match self.open.filter(|(open, _)| *open == kind) {
            Some((_, position)) => self.at(kind, position),
            None => {
                self.close(wire)?;
                self.calls.finish(wire)?;
                let position = self.position();
                self.open = Some((kind, position));
                let at = self.at(kind, position);
                if text.is_empty() {
                    // A signature without text needs a separate part, because clients must send the signature back in a
                    // later turn.
                    wire.assembler.part_opened(wire.out, at, None, None)?;
                }
                at
            }
        };
        if !text.is_empty() {
            let metadata = mem::take(carry).text();
            wire.assembler
                .part_text(wire.out, at, text, metadata.as_deref())?;
        }
        if signature.is_none() && extra.is_empty() {
            return Ok(());
        }
        let thought = kind == ItemKind::Reasoning;
        let metadata = match signature.filter(|_| !thought) {
            Some(signature) => Some(signed(extra, signature)),
            None => extra.text(),
        };
        let attributes = PartAttributes {
            signature: signature.filter(|_| thought),
            metadata: metadata.as_deref(),
            ..PartAttributes::default()
        };
        wire.assembler.part_attributes(wire.out, at, attributes)?;
        match signature {
            // The signature covers only the text before the signature, so that text must not be joined with later text
            // in the next turn.
            Some(_) => self.close(wire),
            None => Ok(()),
        }
    }

    fn at(&self, kind: ItemKind, position: i64) -> PartAt<'static> {
        PartAt {
            choice: self.index,
            kind,
            address: address(position),
            channel: match kind {
                ItemKind::Reasoning => Channel::Reasoning,
                _ => Channel::Text,
            },
            reasoning_kind: "summary",
        }
    }

    fn close(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let Some((kind, position)) = self.open.take() else {
            return Ok(());
        };
        let (kind, address) = (Some(kind), address(position));
        wire.assembler
            .item_closed(wire.out, self.index, kind, address, None, None)
    }

    fn position(&mut self) -> i64 {
        self.positions += 1;
        self.positions - 1
    }
}

fn address(position: i64) -> Address<'static> {
    Address {
        index: Some(position),
        ..Address::default()
    }
}

/// Returns the kinds of content in a part, except text, in the order of the part's members.
fn kinds(part: &[Member<'_>]) -> Vec<&'static str> {
    let mut out = Vec::new();
    for member in part {
        let mut known = KINDS.into_iter().chain([CALL]);
        let kind = known.find(|kind| member.key.is(kind));
        if let Some(kind) = kind.filter(|kind| present(find(part, kind)).is_some()) {
            if !out.contains(&kind) {
                out.push(kind);
            }
        }
    }
    out
}

fn member<'a>(name: &'static str, raw: Raw<'a>) -> Member<'a> {
    Member {
        key: Key {
            raw: name,
            escaped: false,
        },
        raw,
    }
}

/// Returns the unknown members and the signature of a text part as one JSON object.
fn signed(extra: &ExtraFields<'_>, signature: &str) -> String {
    let mut out = extra.text().unwrap_or_else(|| "{".to_owned());
    if out.pop() != Some('{') {
        out.push(',');
    } else {
        out.push('{');
    }
    write_string(&mut out, SIGNATURE);
    out.push(':');
    write_string(&mut out, signature);
    out.push('}');
    out
}
