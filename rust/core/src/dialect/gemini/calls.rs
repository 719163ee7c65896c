//! Decodes the function calls of one candidate: complete calls, and calls with streamed arguments.
//!
//! A call ends with its part, unless the part has `willContinue`. A call that continues ends with the first later part
//! that does not have `willContinue`. Only one call can be in progress at a time, unless the calls have different ids.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::gemini::partial::Partial;
use crate::dialect::gemini::partial::parse_path;
use crate::dialect::gemini::spec_tables::FACTS;
use crate::dialect::gemini::spec_tables::a_word;
use crate::dialect::gemini::spec_tables::an_id;
use crate::dialect::gemini::spec_tables::extra_fields;
use crate::dialect::gemini::spec_tables::is_blank;
use crate::dialect::gemini::spec_tables::is_true;
use crate::dialect::gemini::spec_tables::nonnull;
use crate::dialect::unread_arguments::may_hold_arguments;
use crate::dialect::upstream_error::is_empty_value;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::items;
use crate::json::members::text;
use crate::model::delta::Address;
use crate::model::delta::CallFields;
use crate::model::delta::ItemKind;
use crate::model::small_map::Map;
use crate::model::spec::Code;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::mem::replace;
use std::mem::take;

/// Maximum number of steps in a JSON path. This number is one less than the maximum depth of JSON text.
const MAX_STEPS: usize = 127;

/// The address of a call that has not ended.
#[derive(Debug)]
struct ActiveCall {
    call_id: Option<String>,
    position: i64,
    arguments: ExpectedArguments,
    /// The name of the call, if its arguments may still arrive.
    name: Option<String>,
}

/// Whether the arguments of a call may still arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedArguments {
    /// The arguments arrived in the part that began the call, or arrive as `partialArgs`.
    Streamed,
    /// The call has no arguments yet. A later part without a name may contain the arguments. If no part with arguments
    /// arrives, the arguments are empty, because Protobuf omits empty objects.
    Whole,
    /// Like `Whole`, but an unknown member may contain the arguments, so they are not assumed to be empty.
    Unread,
}

impl ActiveCall {
    /// Returns true if a later part may contain the arguments.
    fn waits(&self) -> bool {
        self.arguments != ExpectedArguments::Streamed
    }

    fn address(&self) -> Address<'_> {
        Address {
            call_id: self.call_id.as_deref(),
            index: Some(self.position),
            ..Address::default()
        }
    }
}

/// Decoder state for the calls of one candidate.
#[derive(Debug)]
pub(crate) struct Calls {
    choice: i32,
    active: Option<ActiveCall>,
    partial: Partial,
    /// Other calls that have not ended. Each call continues when a part with its id arrives.
    others: BTreeMap<u64, (ActiveCall, Partial)>,
    /// The keys in `others` for each call id. The next free key is `aside`, the number of calls that have been set
    /// aside.
    waiting: Map<String, BTreeSet<u64>>,
    aside: u64,
    /// True once a `functionCall` without content has been reported. Some gateways send an empty `functionCall` in
    /// every part.
    placeholder_reported: bool,
    /// True once the candidate has a finish reason that means an error. The calls of a candidate that ended with an
    /// error are not closed, because their parts do not show that the calls are valid.
    pub(crate) failed: bool,
}

impl Calls {
    pub(crate) fn new(choice: i32) -> Calls {
        Calls {
            choice,
            active: None,
            partial: Partial::default(),
            others: BTreeMap::new(),
            waiting: Map::default(),
            aside: 0,
            placeholder_reported: false,
            failed: false,
        }
    }

    /// Decodes the `functionCall` of a part. `position`: the part's position in its candidate. `extra`: the unknown
    /// members of the part.
    pub(crate) fn read<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        part: &Object<'a>,
        at: Pointer<'_>,
        position: i64,
        extra: &ExtraFields<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let Some(call) = notes.an_object(&part.members, at, "functionCall") else {
            return Ok(());
        };
        let (members, at) = (&call.members, at.member("functionCall"));
        let id = an_id(members, at, notes);
        let name = a_word(members, at, "name", notes);
        let (sent, arguments) = arguments(members);
        let mut metadata = extra_fields(members, &FACTS.call_fields);
        if let Some(sent) = sent {
            metadata.members.retain(|member| !member.key.is(sent));
            notes.mark_misread("other_member");
        }
        let metadata = extra.and(&metadata).text();
        let metadata = metadata.as_deref();
        let goes_on = is_true(members, "willContinue");
        let partial = nonnull(members, "partialArgs");
        self.turn_to(wire, id.as_deref(), name.is_some())?;
        let is_named = |own: &str| name.as_deref().is_none_or(|name| name == own);
        let same = |active: &ActiveCall| match (id.as_deref(), active.call_id.as_deref()) {
            (Some(id), Some(own)) => id == own && active.name.as_deref().is_none_or(is_named),
            _ => name.is_none(),
        };
        if self.active.as_ref().is_some_and(same) {
            self.late_arguments(wire, arguments, notes)?;
            let streams = partial.is_some_and(|raw| raw.kind == Kind::Array);
            if let Some(active) = self.active.as_mut().filter(|_| streams) {
                active.arguments = ExpectedArguments::Streamed;
            }
            self.more(wire, partial, at, metadata, notes)?;
            return if goes_on { Ok(()) } else { self.end(wire) };
        }
        if id.is_none() {
            self.finish(wire)?;
        } else if self.active.as_ref().is_some_and(ActiveCall::waits) {
            self.end(wire)?;
        } else {
            self.set_aside(wire)?;
        }
        if nonnull(members, "args").is_some_and(|raw| raw.text.starts_with("\"{")) {
            notes.mark_misread("args_text"); // google-genai raises unless the arguments are an object
        }
        let streams = partial.is_some_and(|raw| raw.kind == Kind::Array);
        let is_blank_value = nonnull(members, "args").is_some_and(is_empty_value);
        let is_empty = is_blank_value && !may_be_unread(members, extra);
        if name.is_none() && id.is_none() && (arguments.is_none() || is_empty) && !streams {
            notes.mark_misread("empty_entry"); // clients read a call
            if !replace(&mut self.placeholder_reported, true) {
                wire.out.diagnose(Code::CALL_PLACEHOLDER, None, "")?;
            }
            return match metadata {
                Some(metadata) => wire
                    .assembler
                    .choice_metadata(wire.out, self.choice, metadata),
                None => Ok(()),
            };
        }
        let is_whole = !goes_on && !streams;
        let waits = is_whole && name.is_some() && arguments.is_none();
        let active = ActiveCall {
            call_id: id.map(|id| id.into_owned()),
            position,
            arguments: match waits {
                false => ExpectedArguments::Streamed,
                true if may_be_unread(members, extra) => ExpectedArguments::Unread,
                true => ExpectedArguments::Whole,
            },
            name: name.as_deref().filter(|_| waits).map(str::to_owned),
        };
        let call_fields = CallFields {
            choice: self.choice,
            address: active.address(),
            name: name.as_deref(),
            metadata,
            ..CallFields::default()
        };
        let call_fields = CallFields {
            arguments: match is_whole {
                true if waits => None,
                true => Some(arguments.unwrap_or_else(|| Text::plain("{}"))),
                false => arguments.filter(|text| *text != Text::plain("{}")),
            },
            ..call_fields
        };
        wire.assembler.call_opened(wire.out, call_fields)?;
        if is_whole && !waits {
            return self.close(wire, &active);
        }
        if active.arguments == ExpectedArguments::Unread {
            wire.assembler
                .call_misses_arguments(self.choice, active.address());
        }
        self.active = Some(active);
        self.partial = Partial::default();
        if is_whole {
            return Ok(());
        }
        self.more(wire, partial, at, None, notes)?;
        if goes_on { Ok(()) } else { self.end(wire) }
    }

    /// Ends all open calls, because a part of another kind or the end of the stream follows. A call that was truncated
    /// within a string remains incomplete.
    pub(crate) fn finish(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        if self.others.is_empty() {
            return self.end(wire);
        }
        self.waiting.clear();
        let mut active: Vec<_> = take(&mut self.others).into_values().collect();
        active.extend(self.active.take().map(|one| (one, take(&mut self.partial))));
        active.sort_by_key(|(one, _)| one.position);
        for (one, partial) in active {
            self.active = Some(one);
            self.partial = partial;
            self.end(wire)?;
        }
        Ok(())
    }

    /// Ends the active call if it has no arguments yet, because a finish reason has arrived.
    pub(crate) fn end_waiting(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        match self.active.as_ref().is_some_and(ActiveCall::waits) {
            true => self.end(wire),
            false => Ok(()),
        }
    }

    /// Sets the active call aside until a part with its id arrives. If the call has no id, ends the call instead.
    fn set_aside(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        match self.active.take_if(|active| active.call_id.is_some()) {
            Some(active) => {
                let id = active.call_id.clone().unwrap_or_default();
                self.waiting.slot(id).insert(self.aside);
                let waits = (active, take(&mut self.partial));
                self.others.insert(self.aside, waits);
                self.aside += 1;
            }
            None => self.end(wire)?,
        }
        Ok(())
    }

    /// Activates the call with this id, if it was set aside. If no call is active, a part with neither id nor name
    /// activates the call that was set aside last.
    fn turn_to(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        id: Option<&str>,
        named: bool,
    ) -> ParseResult {
        if self.others.is_empty() {
            return Ok(());
        }
        let position = if let Some(id) = id {
            let position = self.waiting.get(id).and_then(|positions| positions.first());
            let position = position.copied();
            if position.is_some() {
                self.set_aside(wire)?;
            }
            position
        } else if named || self.active.is_some() {
            None
        } else {
            self.others.last_key_value().map(|(position, _)| *position)
        };
        let other = position.and_then(|position| Some((position, self.others.remove(&position)?)));
        if let Some((position, (active, partial))) = other {
            let id = active.call_id.clone().unwrap_or_default();
            let positions = self.waiting.slot(id.clone());
            positions.remove(&position);
            if positions.is_empty() {
                self.waiting.remove(id.as_str());
            }
            self.active = Some(active);
            self.partial = partial;
        }
        Ok(())
    }

    fn end(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let Some(active) = self.active.take() else {
            return Ok(());
        };
        match active.arguments {
            ExpectedArguments::Streamed if self.partial.is_between() => {
                let close = self.partial.close();
                self.push(wire, &active, Text::plain(&close), None)?;
            }
            ExpectedArguments::Whole => self.push(wire, &active, Text::plain("{}"), None)?,
            ExpectedArguments::Streamed | ExpectedArguments::Unread => {}
        }
        self.close(wire, &active)
    }

    /// Adds the arguments from a part without a name to the active call, if the call has no arguments yet.
    fn late_arguments<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        arguments: Option<Text<'a>>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let Some(mut active) = self.active.take() else {
            return Ok(());
        };
        let mut step = Ok(());
        if let Some(text) = arguments.filter(|_| active.arguments != ExpectedArguments::Streamed) {
            notes.mark_misread("no_name"); // clients read another call
            active.arguments = ExpectedArguments::Streamed;
            self.partial.spoil(); // nothing may follow these arguments
            step = self.push(wire, &active, text, None);
        }
        self.active = Some(active);
        step
    }

    fn close(&self, wire: &mut DecodeContext<'_, '_>, active: &ActiveCall) -> ParseResult {
        if self.failed {
            return Ok(());
        }
        let (kind, address) = (Some(ItemKind::Call), active.address());
        wire.assembler
            .item_closed(wire.out, self.choice, kind, address, None, None)
    }

    fn more<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        partial: Option<Raw<'a>>,
        at: Pointer<'_>,
        metadata: Option<&str>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let Some(active) = self.active.take() else {
            return Ok(());
        };
        let step = self.pieces(wire, &active, partial, at, metadata, notes);
        self.active = Some(active);
        step
    }

    fn pieces<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        active: &ActiveCall,
        partial: Option<Raw<'a>>,
        at: Pointer<'_>,
        metadata: Option<&str>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        if metadata.is_some() {
            self.push(wire, active, Text::default(), metadata)?;
        }
        let Some(raw) = partial else { return Ok(()) };
        let at = at.member("partialArgs");
        if raw.kind != Kind::Array {
            notes.shape(raw, at);
            return Ok(());
        }
        for (number, item) in items(raw).into_iter().enumerate() {
            let piece = Object::of(item).and_then(|piece| self.piece(&piece.members, notes));
            let text = match piece {
                Some(text) => text,
                None => {
                    notes.shape(item, at.item(number));
                    self.partial.spoil()
                }
            };
            self.push(wire, active, text, None)?;
        }
        Ok(())
    }

    /// Returns the JSON text that an element of `partialArgs` adds, or `None` if the element cannot be added.
    fn piece<'a>(
        &mut self,
        piece: &[Member<'a>],
        notes: &mut Anomalies<'a>,
    ) -> Option<Text<'static>> {
        let path = find(piece, "jsonPath").and_then(text)?;
        let steps = parse_path(&notes.clean(path), MAX_STEPS)?;
        let of = |key: &str, fits: fn(Kind) -> bool| find(piece, key).filter(|raw| fits(raw.kind));
        if let Some(value) = find(piece, "stringValue").and_then(text) {
            let goes_on = is_true(piece, "willContinue");
            return self.partial.string(steps, &value, goes_on);
        }
        let leaf = of("numberValue", |kind| kind == Kind::Number)
            .or_else(|| of("boolValue", |kind| matches!(kind, Kind::True | Kind::False)));
        if let Some(leaf) = leaf {
            return self.partial.leaf(&steps, leaf.text);
        }
        find(piece, "nullValue")?;
        self.partial.leaf(&steps, "null")
    }

    fn push(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        active: &ActiveCall,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> ParseResult {
        if text.is_empty() && metadata.is_none() {
            return Ok(());
        }
        let address = active.address();
        wire.assembler
            .call_text(wire.out, self.choice, address, text, None, metadata)
    }
}

/// Returns true if an unknown member of the call or its part may contain the arguments. `extra`: the unknown members of
/// the part.
fn may_be_unread(call: &[Member<'_>], extra: &ExtraFields<'_>) -> bool {
    may_hold_arguments(&extra_fields(call, &FACTS.call_fields).members)
        || may_hold_arguments(&extra.members)
}

/// Returns the arguments. Also returns the name of the member that contains the arguments, if this member is not
/// `args`. A value that is not an object is returned as text, and the assembler classifies it later.
fn arguments<'a>(call: &[Member<'a>]) -> (Option<&'static str>, Option<Text<'a>>) {
    if let Some(raw) = nonnull(call, "args") {
        return (None, argument_text(raw));
    }
    let mut others = FACTS.other_arguments.iter();
    let found = others.find_map(|name| {
        let raw = nonnull(call, name).filter(|raw| matches!(raw.kind, Kind::Object | Kind::String));
        Some((*name, argument_text(raw?)?))
    });
    match found {
        Some((name, text)) => (Some(name), Some(text)),
        None => (None, None),
    }
}

fn argument_text(raw: Raw<'_>) -> Option<Text<'_>> {
    match text(raw) {
        Some(text) => Some(text).filter(|text| !is_blank(text)),
        None => Some(Text::plain(raw.text)),
    }
}
