//! Parses a Chat payload in one pass. Known members are stored in fields, and all others in a list.
//!
//! Validates all of the JSON and limits its nesting depth. Does not check most types; the code that uses a member does.
//! If a key is duplicated, the last value is used.

use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::ScanError;
use crate::json::Scanner;
pub(crate) use crate::json::members::Member;
pub(crate) use crate::json::members::Slot;
pub(crate) use crate::json::members::find;
pub(crate) use crate::json::members::first_item;

type Scan<T> = Result<T, ScanError>;

impl<'a, T> TypedValue<'a, T> {
    pub(crate) fn raw(&self) -> Raw<'a> {
        match self {
            TypedValue::Read(_, raw) | TypedValue::Other(raw) => *raw,
        }
    }
}

/// A value, parsed if it has the expected JSON type.
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
    /// An array, a string, a number, or a literal.
    Other(Raw<'a>),
}

#[derive(Debug, Default)]
pub(crate) struct Chunk<'a> {
    pub(crate) id: Slot<'a>,
    pub(crate) object: Slot<'a>,
    pub(crate) created: Slot<'a>,
    pub(crate) model: Slot<'a>,
    pub(crate) choices: Option<TypedValue<'a, Vec<TypedValue<'a, Choice<'a>>>>>,
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
    /// The content of a legacy completion. It is also in `other_members`, because it is an unknown member if the
    /// choice has a delta or message.
    pub(crate) text: Slot<'a>,
    pub(crate) finish_reason: Slot<'a>,
    pub(crate) finish_camel: Slot<'a>,
    pub(crate) usage: Slot<'a>,
    pub(crate) error: Slot<'a>,
    pub(crate) other_members: Vec<Member<'a>>,
}

/// A delta or a complete message. Both have the same members.
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

/// The object in `function`, `custom`, or the legacy `function_call`. For `custom`, `arguments` is its `input`.
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
    chunk.wide_integer = reader.scanner.wide_integer();
    chunk.duplicates = reader.duplicates;
    Ok(Document::Object(chunk))
}

/// Parses an already validated value as a list of call objects or one call object. Returns an empty list for any other
/// value.
pub(crate) fn calls(raw: Raw<'_>) -> Vec<TypedValue<'_, Call<'_>>> {
    let mut reader = Reader {
        text: raw.text,
        scanner: Scanner::new(raw.text, None),
        duplicates: Vec::new(),
    };
    match reader.tool_calls() {
        Ok(TypedValue::Read(calls, _)) => calls,
        _ => Vec::new(),
    }
}

impl<'a> Chunk<'a> {
    /// Returns the raw text of a member by its name. Cannot find `choices`, which is parsed.
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

struct Reader<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    duplicates: Vec<&'static str>,
}

impl<'a> Reader<'a> {
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
                    let choices = self.walk(Kind::Array, |reader| reader.list(Self::choice))?;
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

    fn choice(&mut self) -> Scan<Choice<'a>> {
        let mut choice = Choice::default();
        self.scanner.enter_object()?;
        while let Some(key) = self.scanner.next_key()? {
            match key.name().as_ref() {
                "index" => self.raw(&mut choice.index, "index")?,
                "delta" => {
                    let delta = self.walk(Kind::Object, Self::delta)?;
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

    /// Parses a list of call objects. One call object without a list is returned as a list with one element.
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
