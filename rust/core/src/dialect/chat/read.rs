//! Parses a Chat payload in one pass. Known members are stored in fields, and all other members in a list.
//!
//! The parser validates the complete JSON text, and limits its nesting depth. The parser does not check most types,
//! because the code that uses a member checks the type of its value. If a key is duplicated, the last value is used.

use crate::dialect::upstream_error::is_empty_value;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::ScanError;
use crate::json::Scanner;
pub(crate) use crate::json::members::Member;
pub(crate) use crate::json::members::Slot;
pub(crate) use crate::json::members::find;
pub(crate) use crate::json::members::first_item;
use crate::json::members::integer;
use crate::json::members::members;
use crate::json::members::present;
use std::mem;

type Scan<T> = Result<T, ScanError>;

impl<'a, T> TypedValue<'a, T> {
    pub(crate) fn raw(&self) -> Raw<'a> {
        match self {
            TypedValue::Read(_, raw) | TypedValue::Other(raw) => *raw,
        }
    }
}

/// A JSON value, which is parsed if it has the expected type.
#[derive(Debug)]
pub(crate) enum TypedValue<'a, T> {
    /// The parsed value and its raw text.
    Read(T, Raw<'a>),
    /// The raw text of a value with another type, including null.
    Other(Raw<'a>),
}

/// A parsed payload.
#[allow(clippy::large_enum_variant)] // created and consumed in one place
#[derive(Debug)]
pub(crate) enum Document<'a> {
    Object(Chunk<'a>),
    /// An array, a string, a number, `true`, `false`, or `null`.
    Other(Raw<'a>),
}

#[derive(Debug, Default)]
pub(crate) struct Chunk<'a> {
    pub(crate) id: Slot<'a>,
    pub(crate) object: Slot<'a>,
    pub(crate) created: Slot<'a>,
    pub(crate) model: Slot<'a>,
    pub(crate) choices: Option<TypedValue<'a, Vec<TypedValue<'a, Choice<'a>>>>>,
    /// The original value of `choices`, if the value contained no choices and was replaced by a list with one choice
    /// for the calls of the chunk.
    pub(crate) odd_choices: Slot<'a>,
    /// True if the chunk has no list of choices, so that `choices` was created for the calls of the chunk.
    pub(crate) lacks_choices: bool,
    /// True if the last choice in `choices` was added for the calls of the chunk.
    pub(crate) has_added_choice: bool,
    pub(crate) usage: Slot<'a>,
    pub(crate) error: Slot<'a>,
    pub(crate) obfuscation: Slot<'a>,
    pub(crate) other_members: Vec<Member<'a>>,
    /// Known keys that are duplicated in any object of the chunk.
    pub(crate) duplicates: Vec<&'static str>,
    /// True if the chunk contained an integer that exceeds 64 bits.
    pub(crate) wide_integer: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Choice<'a> {
    pub(crate) index: Slot<'a>,
    pub(crate) delta: Option<TypedValue<'a, Box<Delta<'a>>>>,
    pub(crate) message: Option<TypedValue<'a, Box<Delta<'a>>>>,
    /// The text of a legacy completion. `other_members` also contains the text, because `text` is an unknown member if
    /// the choice has a delta or message.
    pub(crate) text: Slot<'a>,
    /// Content and calls that are members of the choice and are absent from the delta and the message.
    pub(crate) beside: Option<Box<Delta<'a>>>,
    /// Calls that are members of the chunk, if the choice itself has no calls.
    pub(crate) beside_chunk: Option<Box<Delta<'a>>>,
    /// Calls that are members of the choice or the chunk, in a payload that also contains calls in the usual place.
    pub(crate) side: Vec<Delta<'a>>,
    pub(crate) finish_reason: Slot<'a>,
    pub(crate) finish_camel: Slot<'a>,
    pub(crate) usage: Slot<'a>,
    pub(crate) error: Slot<'a>,
    pub(crate) other_members: Vec<Member<'a>>,
}

/// A delta or a complete message, which have the same members.
#[derive(Debug, Default)]
pub(crate) struct Delta<'a> {
    pub(crate) role: Slot<'a>,
    pub(crate) content: Slot<'a>,
    /// The values of `REASONING_FIELDS`, in order of precedence.
    pub(crate) reasoning: [Slot<'a>; 4],
    pub(crate) reasoning_details: Slot<'a>,
    pub(crate) refusal: Slot<'a>,
    pub(crate) tool_calls: Option<TypedValue<'a, Vec<TypedValue<'a, Call<'a>>>>>,
    pub(crate) function_call: Option<TypedValue<'a, Function<'a>>>,
    pub(crate) annotations: Slot<'a>,
    pub(crate) images: Slot<'a>,
    pub(crate) audio: Slot<'a>,
    pub(crate) other_members: Vec<Member<'a>>,
}

/// One call object in `tool_calls`.
#[derive(Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) index: Slot<'a>,
    pub(crate) id: Slot<'a>,
    pub(crate) kind: Slot<'a>,
    pub(crate) function: Option<TypedValue<'a, Function<'a>>>,
    pub(crate) custom: Option<TypedValue<'a, Function<'a>>>,
    pub(crate) name: Slot<'a>,
    pub(crate) arguments: Slot<'a>,
    pub(crate) other_members: Vec<Member<'a>>,
}

/// The object in `function`, `custom`, or the legacy `function_call`. For `custom`, the field `arguments` contains the
/// member `input`.
#[derive(Debug, Default)]
pub(crate) struct Function<'a> {
    pub(crate) id: Slot<'a>,
    pub(crate) name: Slot<'a>,
    pub(crate) arguments: Slot<'a>,
    pub(crate) other_members: Vec<Member<'a>>,
}

pub(crate) const REASONING_FIELDS: [&str; 4] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
];

/// Parses a complete payload. Fails if the JSON is invalid or nested more deeply than `max_depth`.
pub(crate) fn document(text: &str, max_depth: Option<u64>) -> Scan<Document<'_>> {
    let mut reader = Reader {
        text,
        scanner: Scanner::new(text, max_depth),
        duplicates: Vec::new(),
    };
    if reader.scanner.kind()? != Kind::Object {
        let raw = reader.scanner.skip()?;
        reader.scanner.finish()?;
        return Ok(Document::Other(raw));
    }
    let mut chunk = reader.chunk()?;
    reader.scanner.finish()?;
    if !chunk.other_members.is_empty() {
        chunk.adopt_calls();
    }
    chunk.wide_integer = reader.scanner.wide_integer();
    chunk.duplicates = reader.duplicates;
    Ok(Document::Object(chunk))
}

/// Parses an already validated value as a list of call objects or one call object. Returns an empty list for any other
/// value.
pub(crate) fn calls(raw: Raw<'_>) -> Vec<TypedValue<'_, Call<'_>>> {
    let mut reader = Reader::of(raw);
    match reader.tool_calls() {
        Ok(TypedValue::Read(calls, _)) => calls,
        _ => Vec::new(),
    }
}

/// Names of the members that contain calls. The API defines the first name. Some gateways use the other names.
pub(crate) const CALLS: [&str; 3] = [TOOL_CALLS, "toolCalls", "tool_call"];
const TOOL_CALLS: &str = "tool_calls";
/// Name of the legacy member that contains one call.
const LEGACY_CALL: &str = "function_call";

/// The index of the choice that is added for the calls of a chunk.
const ZERO: Raw<'_> = Raw {
    text: "0",
    kind: Kind::Number,
};

impl<'a> Delta<'a> {
    /// Returns true if the delta contains calls in any form.
    pub(crate) fn has_calls(&self) -> bool {
        let own = [
            self.tool_calls.as_ref().map(TypedValue::raw),
            self.function_call.as_ref().map(TypedValue::raw),
        ];
        own.into_iter().flatten().any(may_be_calls) || calls_among(&self.other_members).is_some()
    }
}

/// Returns the first of the unknown members that contains calls, or `None`. Members with empty values are ignored.
fn calls_among<'a>(other_members: &[Member<'a>]) -> Option<Member<'a>> {
    let found = |name: &str| {
        let mut members = other_members.iter().rev();
        let member = members.find(|member| member.key.is(name))?;
        may_be_calls(member.raw).then_some(*member)
    };
    CALLS.into_iter().chain([LEGACY_CALL]).find_map(found)
}

/// Returns the value of a member if the value may contain calls.
pub(crate) fn filled_member<'a>(other_members: &[Member<'a>], name: &str) -> Slot<'a> {
    find(other_members, name).filter(|raw| may_be_calls(*raw))
}

/// Returns true if the value is a non-empty object or list.
fn may_be_calls(raw: Raw<'_>) -> bool {
    matches!(raw.kind, Kind::Object | Kind::Array) && !is_empty_value(raw)
}

/// Returns true if the value may contain text, because it is a non-empty string, object, or list.
fn may_be_content(raw: Raw<'_>) -> bool {
    matches!(raw.kind, Kind::String | Kind::Object | Kind::Array) && !is_empty_value(raw)
}

impl<'a> Choice<'a> {
    /// Returns true if the condition holds for the delta, for the message, or for content or calls that stand outside
    /// both.
    fn has(&self, condition: fn(&Delta<'a>) -> bool) -> bool {
        let walked = [&self.delta, &self.message];
        let walked = walked.into_iter().filter_map(|walk| match walk {
            Some(TypedValue::Read(delta, _)) => Some(&**delta),
            _ => None,
        });
        walked
            .chain(self.beside.as_deref())
            .chain(self.beside_chunk.as_deref())
            .any(condition)
    }

    /// Moves content and calls from the unknown members of the choice to `beside`. If the delta, the message, or the
    /// legacy text has content, the member `content` of the choice remains an unknown member.
    fn adopt(&mut self) {
        let is_absent = |slot: Slot<'_>| present(slot).is_none();
        let is_legacy = self.text.is_some()
            && is_absent(self.delta.as_ref().map(TypedValue::raw))
            && is_absent(self.message.as_ref().map(TypedValue::raw));
        let has_message = matches!(&self.message, Some(TypedValue::Read(..)));
        let has_content =
            is_legacy || has_message || !self.delta_content().is_none_or(is_empty_value);
        let content = find(&self.other_members, "content");
        if let Some(content) = content.filter(|raw| !has_content && may_be_content(*raw)) {
            self.other_members
                .retain(|member| !member.key.is("content"));
            self.beside.get_or_insert_default().content = Some(content);
        }
        let mut other_members = mem::take(&mut self.other_members);
        if let Some(calls) = self.take_calls(&mut other_members) {
            let beside = self.beside.get_or_insert_default();
            let content = beside.content;
            **beside = Delta { content, ..calls };
        }
        self.other_members = other_members;
    }

    fn delta_content(&self) -> Slot<'a> {
        match &self.delta {
            Some(TypedValue::Read(delta, _)) => delta.content,
            _ => None,
        }
    }

    /// Removes the calls from the unknown members of the choice or its chunk. Unless the choice already has calls,
    /// returns the calls in the first list and in `function_call` as members of a delta. Adds all other calls to
    /// `side`.
    fn take_calls(&mut self, other_members: &mut Vec<Member<'a>>) -> Option<Delta<'a>> {
        let has_calls = self.has(Delta::has_calls);
        let mut lists = Vec::new();
        for name in CALLS {
            let Some(raw) = filled_member(other_members, name) else {
                continue;
            };
            let mut taken = Delta::default();
            if name == TOOL_CALLS {
                taken.tool_calls = Some(TypedValue::Read(calls(raw), raw));
            } else {
                let key = Key {
                    raw: name,
                    escaped: false,
                };
                taken.other_members.push(Member { key, raw });
            }
            lists.push(taken);
        }
        let legacy = filled_member(other_members, LEGACY_CALL).and_then(|raw| {
            let function = |reader: &mut Reader<'a>| reader.function("arguments");
            Reader::of(raw).walk(Kind::Object, function).ok()
        });
        other_members.retain(|member| {
            let mut names = CALLS.into_iter().chain([LEGACY_CALL]);
            !(may_be_calls(member.raw) && names.any(|name| member.key.is(name)))
        });
        if lists.is_empty() && legacy.is_none() {
            return None;
        }
        let mut lists = lists.into_iter();
        let first = lists.next();
        let legacy = legacy.map(|call| Delta {
            function_call: Some(call),
            ..Delta::default()
        });
        if has_calls {
            self.side
                .extend(first.into_iter().chain(lists).chain(legacy));
            return None;
        }
        self.side.extend(lists);
        let mut taken = first.unwrap_or_default();
        taken.function_call = legacy.and_then(|legacy| legacy.function_call);
        Some(taken)
    }
}

impl<'a> Chunk<'a> {
    /// Moves the calls from the unknown members of the chunk to the choice with the index 0. If the chunk does not list
    /// this choice, the choice is added.
    fn adopt_calls(&mut self) {
        let Some(found) = calls_among(&self.other_members) else {
            return;
        };
        if !matches!(&self.choices, Some(TypedValue::Read(..))) {
            self.lacks_choices = true;
            self.odd_choices = self.choices.take().map(|choices| choices.raw());
        }
        let none = || TypedValue::Read(Vec::new(), found.raw);
        let TypedValue::Read(choices, _) = self.choices.get_or_insert_with(none) else {
            return;
        };
        let index = |at, choice: &Choice<'_>| {
            let sent = present(choice.index).and_then(integer);
            let sent = sent.filter(|sent| (0..=i64::from(i32::MAX)).contains(sent));
            sent.unwrap_or(at)
        };
        let is_first = |at, choice: &TypedValue<'_, Choice<'_>>| match choice {
            TypedValue::Read(choice, _) => index(at, choice) == 0,
            TypedValue::Other(_) => false,
        };
        let mut positions = (0..).zip(choices.iter());
        let first = positions.position(|(at, choice)| is_first(at, choice));
        self.has_added_choice = first.is_none();
        let first = first.unwrap_or_else(|| {
            let choice = Choice {
                index: Some(ZERO),
                ..Choice::default()
            };
            choices.push(TypedValue::Read(choice, found.raw));
            choices.len() - 1
        });
        if let Some(TypedValue::Read(choice, _)) = choices.get_mut(first) {
            choice.beside_chunk = choice.take_calls(&mut self.other_members).map(Box::new);
        }
    }

    /// Returns the raw text of the member with this name. The method cannot return `choices`, because only the parsed
    /// form of `choices` is stored.
    pub(crate) fn member(&self, name: &str) -> Slot<'a> {
        match name {
            "id" => self.id,
            "object" => self.object,
            "created" => self.created,
            "model" => self.model,
            "usage" => self.usage,
            "error" => self.error,
            "obfuscation" => self.obfuscation,
            _ => find(&self.other_members, name),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        match name {
            "choices" => self.choices.is_some(),
            _ => self.member(name).is_some(),
        }
    }

    /// Returns true if the object has `choices` or `usage`, even if they are empty.
    pub(crate) fn is_chunk(&self) -> bool {
        self.choices.is_some() || self.usage.is_some()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let modelled = [
            "choices",
            "created",
            "error",
            "id",
            "model",
            "object",
            "obfuscation",
            "usage",
        ];
        let mut names: Vec<String> = modelled
            .into_iter()
            .filter(|name| self.has(name))
            .map(str::to_owned)
            .collect();
        names.extend(
            self.other_members
                .iter()
                .map(|member| member.key.name().into_owned()),
        );
        names.sort();
        names.dedup();
        names
    }
}

/// Returns true if the keys of an object are all numbers and its values are all objects.
pub(crate) fn is_numbered(members: &[Member<'_>]) -> bool {
    members.iter().all(|member| {
        let key = member.key.name();
        let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
        is_number && member.raw.kind == Kind::Object
    })
}

struct Reader<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    duplicates: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// Creates a reader for an already validated value.
    fn of(raw: Raw<'a>) -> Reader<'a> {
        Reader {
            text: raw.text,
            scanner: Scanner::new(raw.text, None),
            duplicates: Vec::new(),
        }
    }

    fn set<T>(&mut self, slot: &mut Option<T>, name: &'static str, value: T) {
        if slot.replace(value).is_some() {
            self.duplicates.push(name);
        }
    }

    fn raw(&mut self, slot: &mut Slot<'a>, name: &'static str) -> Scan<()> {
        let raw = self.scanner.skip()?;
        self.set(slot, name, raw);
        Ok(())
    }

    fn push_other(&mut self, other_members: &mut Vec<Member<'a>>, key: Key<'a>) -> Scan<()> {
        let raw = self.scanner.skip()?;
        other_members.push(Member { key, raw });
        Ok(())
    }

    fn walk<T>(
        &mut self,
        kind: Kind,
        read: impl FnOnce(&mut Self) -> Scan<T>,
    ) -> Scan<TypedValue<'a, T>> {
        if self.scanner.kind()? != kind {
            return self.scanner.skip().map(TypedValue::Other);
        }
        let start = self.scanner.pos();
        let value = read(self)?;
        let text = self.text.get(start..self.scanner.pos()).unwrap_or_default();
        Ok(TypedValue::Read(value, Raw { text, kind }))
    }

    /// Parses the objects of an array, and keeps the other elements as raw text.
    fn list<T>(&mut self, read: fn(&mut Self) -> Scan<T>) -> Scan<Vec<TypedValue<'a, T>>> {
        let mut out = Vec::new();
        self.scanner.enter_array()?;
        while self.scanner.next_item()? {
            out.push(self.walk(Kind::Object, read)?);
        }
        Ok(out)
    }

    fn chunk(&mut self) -> Scan<Chunk<'a>> {
        let mut chunk = Chunk::default();
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            match key.name().as_ref() {
                "id" => self.raw(&mut chunk.id, "id")?,
                "object" => self.raw(&mut chunk.object, "object")?,
                "created" => self.raw(&mut chunk.created, "created")?,
                "model" => self.raw(&mut chunk.model, "model")?,
                "choices" => {
                    let choices = self.choices()?;
                    self.set(&mut chunk.choices, "choices", choices);
                }
                "usage" => self.raw(&mut chunk.usage, "usage")?,
                "error" => self.raw(&mut chunk.error, "error")?,
                "obfuscation" => self.raw(&mut chunk.obfuscation, "obfuscation")?,
                _ => self.push_other(&mut chunk.other_members, key)?,
            }
        }
        Ok(chunk)
    }

    /// Parses a list of choices. An object is either one choice, or contains choices under numeric keys, because PHP
    /// writes some arrays in this form.
    fn choices(&mut self) -> Scan<TypedValue<'a, Vec<TypedValue<'a, Choice<'a>>>>> {
        if self.scanner.kind()? != Kind::Object {
            return self.walk(Kind::Array, |reader| reader.list(Self::choice));
        }
        let choice = self.walk(Kind::Object, Self::choice)?;
        let raw = choice.raw();
        let entries = members(raw);
        if entries.is_empty() {
            return Ok(TypedValue::Other(raw));
        }
        if !is_numbered(&entries) {
            return Ok(TypedValue::Read(vec![choice], raw));
        }
        let read = |entry: &Member<'a>| Reader::of(entry.raw).walk(Kind::Object, Self::choice);
        let choices: Scan<Vec<_>> = entries.iter().map(read).collect();
        Ok(TypedValue::Read(choices?, raw))
    }

    /// Parses a delta. A string is treated as the content of a delta without other members.
    fn text_or_delta(&mut self) -> Scan<TypedValue<'a, Box<Delta<'a>>>> {
        if self.scanner.kind()? != Kind::String {
            return self.walk(Kind::Object, Self::delta);
        }
        let raw = self.scanner.skip()?;
        let content = Some(raw);
        let delta = Delta {
            content,
            ..Delta::default()
        };
        Ok(TypedValue::Read(Box::new(delta), raw))
    }

    fn choice(&mut self) -> Scan<Choice<'a>> {
        let mut choice = Choice::default();
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            match key.name().as_ref() {
                "index" => self.raw(&mut choice.index, "index")?,
                "delta" => {
                    let delta = self.text_or_delta()?;
                    self.set(&mut choice.delta, "delta", delta);
                }
                "message" => {
                    let message = self.walk(Kind::Object, Self::delta)?;
                    self.set(&mut choice.message, "message", message);
                }
                "text" => {
                    let raw = self.scanner.skip()?;
                    self.set(&mut choice.text, "text", raw);
                    choice.other_members.push(Member { key, raw });
                }
                "finish_reason" => self.raw(&mut choice.finish_reason, "finish_reason")?,
                "finishReason" => self.raw(&mut choice.finish_camel, "finishReason")?,
                "usage" => self.raw(&mut choice.usage, "usage")?,
                "error" => self.raw(&mut choice.error, "error")?,
                _ => self.push_other(&mut choice.other_members, key)?,
            }
        }
        if !choice.other_members.is_empty() {
            choice.adopt();
        }
        Ok(choice)
    }

    fn delta(&mut self) -> Scan<Box<Delta<'a>>> {
        let mut delta = Box::<Delta<'_>>::default();
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            let [reasoning_content, reasoning, reasoning_text, thinking] = &mut delta.reasoning;
            match key.name().as_ref() {
                "role" => self.raw(&mut delta.role, "role")?,
                "content" => self.raw(&mut delta.content, "content")?,
                "reasoning_content" => self.raw(reasoning_content, "reasoning_content")?,
                "reasoning" => self.raw(reasoning, "reasoning")?,
                "reasoning_text" => self.raw(reasoning_text, "reasoning_text")?,
                "thinking" => self.raw(thinking, "thinking")?,
                "reasoning_details" => {
                    self.raw(&mut delta.reasoning_details, "reasoning_details")?
                }
                "refusal" => self.raw(&mut delta.refusal, "refusal")?,
                "tool_calls" => {
                    let calls = self.tool_calls()?;
                    self.set(&mut delta.tool_calls, "tool_calls", calls);
                }
                "function_call" => {
                    let call = self.walk(Kind::Object, |reader| reader.function("arguments"))?;
                    self.set(&mut delta.function_call, "function_call", call);
                }
                "annotations" => self.raw(&mut delta.annotations, "annotations")?,
                "images" => self.raw(&mut delta.images, "images")?,
                "audio" => self.raw(&mut delta.audio, "audio")?,
                _ => self.push_other(&mut delta.other_members, key)?,
            }
        }
        Ok(delta)
    }

    /// Parses a list of call objects. A single call object is returned as a list with one element.
    fn tool_calls(&mut self) -> Scan<TypedValue<'a, Vec<TypedValue<'a, Call<'a>>>>> {
        if self.scanner.kind()? != Kind::Object {
            return self.walk(Kind::Array, |reader| reader.list(Self::call));
        }
        let call = self.walk(Kind::Object, Self::call)?;
        let raw = call.raw();
        Ok(TypedValue::Read(vec![call], raw))
    }

    fn call(&mut self) -> Scan<Call<'a>> {
        let mut call = Call::default();
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            match key.name().as_ref() {
                "index" => self.raw(&mut call.index, "index")?,
                "id" => self.raw(&mut call.id, "id")?,
                "type" => self.raw(&mut call.kind, "type")?,
                "function" => {
                    let function =
                        self.walk(Kind::Object, |reader| reader.function("arguments"))?;
                    self.set(&mut call.function, "function", function);
                }
                "custom" => {
                    let custom = self.walk(Kind::Object, |reader| reader.function("input"))?;
                    self.set(&mut call.custom, "custom", custom);
                }
                "name" => self.raw(&mut call.name, "name")?,
                "arguments" => self.raw(&mut call.arguments, "arguments")?,
                _ => self.push_other(&mut call.other_members, key)?,
            }
        }
        Ok(call)
    }

    fn function(&mut self, arguments: &'static str) -> Scan<Function<'a>> {
        let mut function = Function::default();
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            match key.name().as_ref() {
                "id" => self.raw(&mut function.id, "id")?,
                "name" => self.raw(&mut function.name, "name")?,
                name if name == arguments => self.raw(&mut function.arguments, arguments)?,
                _ => self.push_other(&mut function.other_members, key)?,
            }
        }
        Ok(function)
    }
}
