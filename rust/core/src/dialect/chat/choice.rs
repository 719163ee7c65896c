//! One choice of a chunk, said to the assembler in the order of the wire.

use std::borrow::Cow;
use std::mem;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::cache::{Hole, Lesson, What};
use super::calls;
use super::error::{is_string, string, text};
use super::metadata::{Leftovers, single};
use super::notes::{Notes, Pointer};
use super::read::{Call, Choice, Delta, Slot, Walk, find, items, members, present};
use super::reasoning::{self, Progress, Thought};
use super::{Step, Wire, files, usage};
use crate::delta::Message;
use crate::dialect::think::{Piece, Think};
use crate::fault::Fault;
use crate::json::{Kind, Raw, Text};
use crate::spec::{self, Code};

/// What the finish reasons of the wire mean.
static FINISH: LazyLock<Option<&'static Map<String, Value>>> =
    LazyLock::new(|| spec::dialects().get("chat")?.get("finish")?.as_object());

/// What is carried by the first event of a choice in a chunk.
struct Carry<'c, 'a> {
    /// Of the chunk: the first choice that can carries it.
    chunk: &'c mut Leftovers<'a>,
    /// Of the choice and its delta.
    own: Leftovers<'a>,
    text: Option<String>,
}

impl Carry<'_, '_> {
    /// What the next event has to carry.
    fn text(&mut self) -> Option<&str> {
        if self.text.is_none() && !(self.chunk.is_empty() && self.own.is_empty()) {
            self.text = self.chunk.and(&self.own).text();
        }
        self.text.as_deref()
    }

    /// It was given along.
    fn given(&mut self) {
        if self.text.take().is_some() {
            *self.chunk = Leftovers::default();
            self.own = Leftovers::default();
        }
    }
}

/// What a decoder keeps of a choice.
#[derive(Debug)]
pub(super) struct ChoiceState {
    pub(super) index: i32,
    think: Option<Think>,
    details: Progress,
    /// Said once a choice.
    repeated: bool,
    merged: Vec<i32>,
    /// Files or annotations came in deltas: a whole message only repeats them.
    attached: bool,
}

/// How a chunk is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// What stands behind a broken document: text and finish only.
    pub(super) tail: bool,
    /// The chunk has another id than the one before.
    pub(super) restarts: bool,
}

impl ChoiceState {
    pub(super) fn new(index: i32, inline_reasoning: bool) -> ChoiceState {
        ChoiceState {
            index,
            think: inline_reasoning.then(Think::default),
            details: Progress::default(),
            repeated: false,
            merged: Vec::new(),
            attached: false,
        }
    }

    /// Another choice goes into this one (AM11).
    pub(super) fn merge(&mut self, wire: &mut Wire<'_, '_>, index: i32) -> Step {
        if self.merged.contains(&index) || self.merged.len() > 64 {
            return Ok(());
        }
        self.merged.push(index);
        wire.out
            .diagnose(Code::CHOICES_MERGED, None, &index.to_string())
    }

    pub(super) fn take<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        choice: &Choice<'a>,
        fresh: &mut Leftovers<'a>,
        mut notes: Notes<'a>,
        at: Pointer<'_>,
        reading: Reading,
    ) -> Result<Option<Lesson<'a>>, Fault> {
        let delta = object(choice.delta.as_ref(), &mut notes, at.member("delta"));
        let message = object(choice.message.as_ref(), &mut notes, at.member("message"));
        let finish = finish(choice, &mut notes, at);
        notes.tell(wire)?;
        let mut carry = Carry {
            chunk: fresh,
            own: Leftovers::default(),
            text: None,
        };
        carry.own.extend(&choice.rest);
        let mut learned = None;
        if let Some(delta) = delta {
            if reading.restarts && delta.role.is_some_and(|raw| raw.kind == Kind::String) {
                wire.assembler.restart(wire.out, self.index)?;
            }
            carry.own.extend(&delta.rest);
            learned = self.delta(
                wire,
                delta,
                &mut carry,
                at.member("delta"),
                finish.is_some(),
                reading.tail,
            )?;
        }
        // Some gateways send a message with every delta; it counts at the end, or where there is no delta.
        if let Some(message) =
            message.filter(|_| !reading.tail && (finish.is_some() || delta.is_none()))
        {
            if delta.is_none() {
                carry.own.extend(&message.rest);
            }
            self.message(wire, message, at.member("message"))?;
        }
        if !carry.own.is_empty() {
            if let Some(text) = carry.own.text() {
                wire.assembler
                    .choice_metadata(wire.out, self.index, &text)?;
            }
        }
        if let Some(raw) = present(choice.usage) {
            if raw.kind == Kind::Object {
                wire.assembler.usage(wire.out, usage::read(raw))?;
            } else {
                tell(wire, raw, at.member("usage"))?;
            }
            learned = None;
        }
        if let Some(raw_reason) = finish {
            self.flush(wire)?;
            let reason = FINISH
                .and_then(|table| table.get(raw_reason.as_ref()))
                .and_then(Value::as_str);
            wire.assembler
                .finish(wire.out, self.index, &raw_reason, reason)?;
            learned = None;
        }
        Ok(learned.filter(|_| present(choice.error).is_none() && message.is_none()))
    }

    fn delta<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        delta: &Delta<'a>,
        carry: &mut Carry<'_, 'a>,
        at: Pointer<'_>,
        finishes: bool,
        tail: bool,
    ) -> Result<Option<Lesson<'a>>, Fault> {
        let mut notes = Notes::default();
        let own = carry.own.text();
        let mut lessons = Vec::new();
        if !tail {
            let thought = reasoning::read(delta, &mut notes, at);
            mem::take(&mut notes).tell(wire)?;
            lessons.extend(self.thought(wire, thought, carry)?);
        }
        let calls = match &delta.tool_calls {
            Some(Walk::Read(entries)) if !tail => entries.as_slice(),
            _ => &[],
        };
        let closing = finishes || !calls.is_empty();
        lessons.extend(self.content(
            wire,
            present(delta.content),
            carry,
            &mut notes,
            at.member("content"),
            closing,
        )?);
        if tail {
            notes.tell(wire)?;
            return Ok(None);
        }
        let mut odd = self.attachments(wire, delta, carry, &mut notes, at)?;
        mem::take(&mut notes).tell(wire)?;
        if let Some(Walk::Other(raw)) = &delta.tool_calls {
            notes.unless_null(*raw, at.member("tool_calls"));
        }
        let limit = wire.out.config.limits.max_tool_index;
        let mut fragments = calls::fragments(calls, limit, &mut notes, at.member("tool_calls"));
        match &delta.function_call {
            Some(Walk::Read(function)) => {
                fragments.push(calls::legacy(
                    function,
                    &mut notes,
                    at.member("function_call"),
                ));
                odd = true;
            }
            Some(Walk::Other(raw)) => notes.unless_null(*raw, at.member("function_call")),
            None => {}
        }
        notes.tell(wire)?;
        if !fragments.is_empty() {
            self.flush(wire)?;
        }
        for fragment in &fragments {
            wire.assembler.call(wire.out, self.index, fragment)?;
        }
        if let [Walk::Read(call)] = calls {
            lessons.push(lesson(call));
        } else if !calls.is_empty() {
            odd = true;
        }
        if odd || lessons.len() != 1 {
            return Ok(None);
        }
        let (what, holes) = match lessons.pop().flatten() {
            Some(lesson) => lesson,
            None => return Ok(None),
        };
        Ok(Some(Lesson {
            what,
            holes,
            metadata: own,
        }))
    }

    /// Says what was thought. Returns what can be learned from it, if it said anything.
    fn thought<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        thought: Thought<'a>,
        carry: &mut Carry<'_, 'a>,
    ) -> Result<Option<Learned<'a>>, Fault> {
        let Thought {
            text,
            field,
            mut repeated,
            details,
        } = thought;
        let mut lesson = None;
        if let Some(text) = text {
            if let Some(think) = &mut self.think {
                think.field(&text.body);
            }
            repeated |= details
                .as_ref()
                .is_some_and(|details| !details.text.is_empty());
            wire.assembler
                .reasoning(wire.out, self.index, "raw", text, carry.text())?;
            carry.given();
            lesson = Some(field.map(|raw| (What::Reasoning, vec![(Hole::Text, raw)])));
        } else if let Some(details) = details.as_ref().filter(|details| !details.text.is_empty()) {
            let (new, again) = self.details.next(&details.text);
            repeated |= again;
            if let Some(think) = &mut self.think {
                think.field(new);
            }
            wire.assembler.reasoning(
                wire.out,
                self.index,
                "raw",
                Text::plain(new),
                carry.text(),
            )?;
            carry.given();
        }
        if let Some(details) = details {
            let (signature, encrypted) =
                (details.signature.as_deref(), details.encrypted.as_deref());
            wire.assembler.reasoning_attributes(
                wire.out,
                self.index,
                signature,
                encrypted,
                Some(details.raw.text),
            )?;
            lesson = Some(None);
        }
        if repeated && !self.repeated {
            self.repeated = true;
            wire.out.diagnose(Code::REASONING_REPEATED, None, "")?;
        }
        Ok(if repeated { Some(None) } else { lesson })
    }

    fn content<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        slot: Slot<'a>,
        carry: &mut Carry<'_, 'a>,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
        closing: bool,
    ) -> Result<Option<Learned<'a>>, Fault> {
        let Some(raw) = slot else { return Ok(None) };
        if raw.kind == Kind::Array {
            for (place, item) in items(raw).into_iter().enumerate() {
                self.item(wire, item, carry, notes, at.item(place))?;
            }
            return Ok(Some(None));
        }
        let Some(text) = text(raw) else {
            notes.shape(raw, at);
            return Ok(Some(None));
        };
        if text.is_empty() {
            return Ok(None);
        }
        let restated = closing && wire.out.config.policy.switches.drop_restated_content;
        if restated && wire.assembler.restates(self.index, &text) {
            wire.out.diagnose(Code::CONTENT_RESTATED, None, "")?;
            return Ok(Some(None));
        }
        self.said(wire, text, carry)?;
        Ok(Some(Some((What::Text, vec![(Hole::Text, raw)]))))
    }

    /// One part of a content list.
    fn item<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        item: Raw<'a>,
        carry: &mut Carry<'_, 'a>,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
    ) -> Step {
        let part = members(item);
        let member = |name: &str| present(find(&part, name));
        if let Some(thinking) = member("thinking") {
            for text in texts(thinking) {
                wire.assembler
                    .reasoning(wire.out, self.index, "raw", text, carry.text())?;
                carry.given();
            }
        } else if let Some(text) = member("refusal").and_then(text) {
            wire.assembler
                .refusal(wire.out, self.index, text, carry.text())?;
            carry.given();
        } else if let Some(text) = member("text").and_then(text) {
            self.said(wire, text, carry)?;
        } else if member("image_url").is_some() && files::image(wire, self.index, item)? {
            self.attached = true;
        } else if item.kind == Kind::Object {
            wire.assembler
                .unknown(wire.out, None, item.text.as_bytes())?;
        } else {
            notes.unless_null(item, at);
        }
        Ok(())
    }

    /// Text of the answer; with tags in it, if they are to be read.
    fn said(&mut self, wire: &mut Wire<'_, '_>, text: Text<'_>, carry: &mut Carry<'_, '_>) -> Step {
        let Some(think) = &mut self.think else {
            wire.assembler
                .text(wire.out, self.index, text, carry.text())?;
            carry.given();
            return Ok(());
        };
        let mut lone = text.lone;
        for piece in think.feed(&text) {
            let carries = matches!(piece, Piece::Text(_) | Piece::Reasoning(_));
            let metadata = if carries { carry.text() } else { None };
            say(wire, self.index, piece, &mut lone, metadata)?;
            if carries {
                carry.given();
            }
        }
        Ok(())
    }

    /// What the splitter of tags holds back goes out.
    pub(super) fn flush(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if let Some(think) = &mut self.think {
            for piece in think.flush() {
                say(wire, self.index, piece, &mut false, None)?;
            }
        }
        Ok(())
    }

    /// Annotations, refusal, images, audio. True where there was any.
    fn attachments<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        delta: &Delta<'a>,
        carry: &mut Carry<'_, 'a>,
        notes: &mut Notes<'a>,
        at: Pointer<'_>,
    ) -> Result<bool, Fault> {
        let mut any = false;
        if let Some(raw) = present(delta.annotations) {
            any = true;
            self.attached = true;
            annotations(wire, self.index, raw, notes, at.member("annotations"))?;
        }
        if let Some(raw) = present(delta.refusal) {
            match text(raw) {
                Some(text) => {
                    any |= !text.is_empty();
                    wire.assembler
                        .refusal(wire.out, self.index, text, carry.text())?;
                    carry.given();
                }
                None => notes.shape(raw, at.member("refusal")),
            }
        }
        if let Some(raw) = present(delta.images) {
            any = true;
            self.attached = true;
            files::images(wire, self.index, raw, notes, at.member("images"))?;
        }
        if let Some(raw) = present(delta.audio) {
            any = true;
            wire.assembler
                .choice_metadata(wire.out, self.index, &single("audio", raw))?;
        }
        Ok(any)
    }

    /// A whole message: reconciled, never appended.
    fn message(&mut self, wire: &mut Wire<'_, '_>, message: &Delta<'_>, at: Pointer<'_>) -> Step {
        self.flush(wire)?;
        let mut notes = Notes::default();
        let mut whole = Message::default();
        let thought = reasoning::read(message, &mut notes, at);
        let details = thought
            .details
            .as_ref()
            .map(|details| details.text.clone())
            .filter(|text| !text.is_empty());
        whole.reasoning = thought.text.or_else(|| details.map(owned));
        let mut files_in_content = Vec::new();
        match present(message.content) {
            Some(raw) if raw.kind == Kind::Array => {
                let (mut said, mut thought) = (String::new(), String::new());
                for item in items(raw) {
                    let part = members(item);
                    if let Some(thinking) = present(find(&part, "thinking")) {
                        texts(thinking)
                            .into_iter()
                            .for_each(|text| thought.push_str(&text.into_whole().0));
                    } else if let Some(text) = present(find(&part, "text")).and_then(string) {
                        said.push_str(&text);
                    } else {
                        files_in_content.push(item);
                    }
                }
                whole.content = (!said.is_empty()).then(|| owned(said));
                if whole.reasoning.is_none() && !thought.is_empty() {
                    whole.reasoning = Some(owned(thought));
                }
            }
            Some(raw) => match text(raw) {
                Some(text) => whole.content = Some(text),
                None => notes.shape(raw, at.member("content")),
            },
            None => {}
        }
        if self.think.is_some() {
            split(&mut whole);
        }
        if let Some(raw) = present(message.refusal) {
            match text(raw) {
                Some(text) => whole.refusal = Some(text),
                None => notes.shape(raw, at.member("refusal")),
            }
        }
        match &message.tool_calls {
            Some(Walk::Read(entries)) => {
                let limit = wire.out.config.limits.max_tool_index;
                whole.fragments =
                    calls::fragments(entries, limit, &mut notes, at.member("tool_calls"));
            }
            Some(Walk::Other(raw)) => notes.unless_null(*raw, at.member("tool_calls")),
            None => {}
        }
        match &message.function_call {
            Some(Walk::Read(function)) => {
                whole.fragments.push(calls::legacy(
                    function,
                    &mut notes,
                    at.member("function_call"),
                ));
            }
            Some(Walk::Other(raw)) => notes.unless_null(*raw, at.member("function_call")),
            None => {}
        }
        mem::take(&mut notes).tell(wire)?;
        wire.assembler.message(wire.out, self.index, whole)?;
        if let Some(details) = thought.details {
            let (signature, encrypted) =
                (details.signature.as_deref(), details.encrypted.as_deref());
            wire.assembler.reasoning_attributes(
                wire.out,
                self.index,
                signature,
                encrypted,
                Some(details.raw.text),
            )?;
        }
        if !self.attached {
            if let Some(raw) = present(message.annotations) {
                annotations(wire, self.index, raw, &mut notes, at.member("annotations"))?;
            }
            for item in files_in_content {
                if !files::image(wire, self.index, item)? {
                    wire.assembler
                        .unknown(wire.out, None, item.text.as_bytes())?;
                }
            }
            if let Some(raw) = present(message.images) {
                files::images(wire, self.index, raw, &mut notes, at.member("images"))?;
            }
        }
        if let Some(raw) = present(message.audio) {
            wire.assembler
                .choice_metadata(wire.out, self.index, &single("audio", raw))?;
        }
        notes.tell(wire)
    }
}

/// What a delta does, and the members that vary; `None` where it cannot be learned.
type Learned<'a> = Option<(What, Vec<(Hole, Raw<'a>)>)>;

/// What can be learned from an entry of `tool_calls`.
fn lesson<'a>(call: &Call<'a>) -> Learned<'a> {
    let (function, custom) = match (&call.function, &call.custom) {
        (Some(Walk::Read(function)), None) => (function, is_string(call.kind, "custom")),
        (None, Some(Walk::Read(function))) => (function, true),
        _ => return None,
    };
    let twice = function.id.is_some() || call.name.is_some() || call.arguments.is_some();
    if twice || !call.rest.is_empty() || !function.rest.is_empty() {
        return None;
    }
    let mut holes = Vec::with_capacity(5);
    holes.push((
        Hole::Text,
        function.arguments.filter(|raw| raw.kind == Kind::String)?,
    ));
    if let Some(raw) = present(call.index) {
        // Anything but a plain small number was said to be unusable, or needs more than digits to be read.
        let digits = raw.kind == Kind::Number
            && raw.text.len() < 9
            && raw.text.bytes().all(|byte| byte.is_ascii_digit());
        holes.push((Hole::Index, digits.then_some(raw)?));
    }
    for (hole, slot) in [(Hole::Id, call.id), (Hole::Name, function.name)] {
        if let Some(raw) = present(slot) {
            holes.push((hole, (raw.kind == Kind::String).then_some(raw)?));
        }
    }
    Some((
        What::Call {
            has_index_key: call.index.is_some(),
            custom,
        },
        holes,
    ))
}

fn object<'c, 'a, T>(
    walk: Option<&'c Walk<'a, Box<T>>>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Option<&'c T> {
    match walk? {
        Walk::Read(value) => Some(value),
        Walk::Other(raw) => {
            notes.unless_null(*raw, at);
            None
        }
    }
}

/// The finish reason, unless it is blank.
fn finish<'a>(choice: &Choice<'a>, notes: &mut Notes<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
    for (slot, name) in [
        (choice.finish_reason, "finish_reason"),
        (choice.finish_camel, "finishReason"),
    ] {
        let Some(raw) = present(slot) else { continue };
        match string(raw) {
            Some(reason) if reason.trim().is_empty() => {}
            Some(reason) => return Some(reason),
            None => notes.shape(raw, at.member(name)),
        }
    }
    None
}

/// The texts of a `thinking` part: a string, or a list of text parts.
fn texts(raw: Raw<'_>) -> Vec<Text<'_>> {
    match raw.kind {
        Kind::Array => items(raw)
            .into_iter()
            .filter_map(|item| find(&members(item), "text").and_then(text))
            .collect(),
        _ => text(raw).into_iter().collect(),
    }
}

fn say(
    wire: &mut Wire<'_, '_>,
    index: i32,
    piece: Piece,
    lone: &mut bool,
    metadata: Option<&str>,
) -> Step {
    match piece {
        Piece::Text(mut text) => {
            text.lone |= mem::take(lone);
            wire.assembler.text(wire.out, index, text, metadata)
        }
        Piece::Reasoning(mut text) => {
            text.lone |= mem::take(lone);
            wire.assembler
                .reasoning(wire.out, index, "raw", text, metadata)
        }
        Piece::Orphan => {
            wire.assembler.retype_text(wire.out, index)?;
            wire.out.diagnose(Code::ORPHAN_THINK_CLOSE, None, "")
        }
        Piece::Repeated => wire.out.diagnose(Code::REASONING_REPEATED, None, ""),
    }
}

fn annotations<'a>(
    wire: &mut Wire<'_, '_>,
    index: i32,
    raw: Raw<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Step {
    match raw.kind {
        Kind::Array => wire.assembler.annotations(wire.out, index, raw.text),
        _ => {
            notes.shape(raw, at);
            Ok(())
        }
    }
}

fn tell(wire: &mut Wire<'_, '_>, raw: Raw<'_>, at: Pointer<'_>) -> Step {
    let mut notes = Notes::default();
    notes.shape(raw, at);
    notes.tell(wire)
}

fn owned(text: String) -> Text<'static> {
    Text {
        body: Cow::Owned(text),
        ..Text::default()
    }
}

/// Tags in the text of a whole message.
fn split(whole: &mut Message<'_>) {
    let Some(content) = whole.content.take() else {
        return;
    };
    let mut think = Think::default();
    if let Some(reasoning) = &whole.reasoning {
        think.field(&reasoning.body);
    }
    let (mut said, mut thought) = (String::new(), String::new());
    let mut pieces = think.feed(&content);
    pieces.extend(think.flush());
    for piece in pieces {
        match piece {
            Piece::Text(text) => said.push_str(&text.into_whole().0),
            Piece::Reasoning(text) => thought.push_str(&text.into_whole().0),
            Piece::Orphan => thought.push_str(&mem::take(&mut said)),
            Piece::Repeated => {}
        }
    }
    whole.content = (!said.is_empty()).then(|| owned(said));
    if whole.reasoning.is_none() && !thought.is_empty() {
        whole.reasoning = Some(owned(thought));
    }
}
