//! Reads one typed object of an AI SDK stream: its ids, text, flags, and `providerMetadata`.
//!
//! Provider-level parts and UI message chunks are different protocols, but both consist of objects with a `type`, and
//! both contain `providerMetadata`. `providerMetadata` has one member per provider, in that provider's format.
//! `_spec/dialects.json` lists the known members of each type.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::decode_context::Payload;
use crate::dialect::unread_arguments::may_hold_arguments;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::dialect::upstream_error::is_problem;
use crate::dialect::upstream_error::reports_failure;
use crate::dialect::upstream_error::reports_success;
use crate::dialect::usage_counts::Counts;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::compact;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::text;
use crate::json::write_string;
use crate::model::spec;
use crate::model::spec::Code;
use serde_json::Map;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;

const PROVIDER: &str = "providerMetadata";
const COMMON: [&str; 2] = ["type", PROVIDER];
/// Objects with at most this many members are searched for duplicate keys by comparing all pairs.
const FEW: usize = 16;

/// The AI SDK data of one dialect in `_spec/dialects.json`.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The known types, sorted by name.
    types: Vec<Type>,
    nothing: Type,
    /// Keys whose duplicates are reported.
    read: HashSet<&'static str>,
    provider_members: ProviderMembers,
    pub(crate) counts: Counts,
}

/// The data of one type in `_spec/dialects.json`.
#[derive(Debug)]
pub(crate) struct Type {
    name: &'static str,
    modelled: Vec<&'static str>,
    /// True if parts of this type contain no content, such as `start-step`. A part of any other type causes the start
    /// event.
    pub(crate) frames: bool,
    /// True if parts of this type are decoded even if they follow a broken document.
    pub(crate) recovered: bool,
}

/// Members in which providers store data that a later turn needs.
#[derive(Debug)]
struct ProviderMembers {
    item_id: Vec<&'static str>,
    signature: Vec<&'static str>,
    encrypted_content: Vec<&'static str>,
    redacted_content: Vec<&'static str>,
}

/// Returns the strings of a JSON list.
pub(crate) fn words(list: Option<&'static Value>) -> Vec<&'static str> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

impl Schema {
    pub(crate) fn of(dialect: &'static str) -> Schema {
        let facts = spec::dialects().get(dialect);
        let get = |key: &str| facts.and_then(|facts| facts.get(key));
        let fields = get("fields").and_then(Value::as_object);
        let (frames, recovered) = (words(get("frames")), words(get("recovered")));
        let named = fields.into_iter().flat_map(Map::keys).map(String::as_str);
        let mut names: Vec<_> = named.chain(frames.iter().copied()).collect();
        names.extend(&recovered);
        names.sort_unstable();
        names.dedup();
        let types = names.into_iter().map(|name| Type {
            name,
            modelled: modelled(fields.and_then(|fields| fields.get(name))),
            frames: frames.contains(&name),
            recovered: recovered.contains(&name),
        });
        let types: Vec<Type> = types.collect();
        let back = |key: &str| words(get("provider_metadata").and_then(|back| back.get(key)));
        let read = types.iter().flat_map(|one| &one.modelled);
        Schema {
            read: read.chain(&COMMON).copied().collect(),
            types,
            nothing: Type {
                name: "",
                modelled: modelled(None),
                frames: false,
                recovered: false,
            },
            provider_members: ProviderMembers {
                item_id: back("item_id"),
                signature: back("signature"),
                encrypted_content: back("encrypted_content"),
                redacted_content: back("redacted_content"),
            },
            counts: Counts::of(dialect),
        }
    }

    pub(crate) fn of_type(&self, name: &str) -> &Type {
        let position = self.types.binary_search_by(|one| one.name.cmp(name));
        let found = position.ok().and_then(|position| self.types.get(position));
        found.unwrap_or(&self.nothing)
    }
}

fn modelled(list: Option<&'static Value>) -> Vec<&'static str> {
    let mut out = words(list);
    out.extend(COMMON);
    out
}

/// The metadata of a part.
#[derive(Debug, Default)]
pub(crate) struct Provider<'a> {
    /// The members of `providerMetadata` and the unknown members of the part, as one JSON object.
    pub(crate) metadata: Option<String>,
    /// Id of the output item in the provider's own API.
    pub(crate) item_id: Option<Cow<'a, str>>,
    pub(crate) signature: Option<Cow<'a, str>>,
    pub(crate) encrypted_content: Option<Cow<'a, str>>,
    pub(crate) redacted: bool,
}

/// One payload: an object with a type.
#[derive(Debug)]
pub(crate) struct TypedPart<'d, 'a> {
    pub(crate) object: &'d Object<'a>,
    pub(crate) payload: Payload<'d>,
    pub(crate) kind: Cow<'a, str>,
    pub(crate) of_type: &'static Type,
    pub(crate) schema: &'static Schema,
    pub(crate) notes: Anomalies<'a>,
}

impl<'a> TypedPart<'_, 'a> {
    pub(crate) fn get(&self, key: &str) -> Slot<'a> {
        self.object.get(key)
    }

    pub(crate) fn present(&self, key: &str) -> Slot<'a> {
        self.object.present(key)
    }

    #[cold]
    pub(crate) fn shape(&mut self, raw: Raw<'a>, key: &str) {
        self.notes.shape(raw, Pointer::ROOT.member(key));
    }

    /// Replaces lone surrogates, and records an anomaly if there were any. Use this function only for text that is
    /// complete, because a later piece could complete a surrogate pair.
    pub(crate) fn clean(&mut self, text: Text<'a>) -> Cow<'a, str> {
        let (text, lone) = text.into_whole();
        self.notes.lone |= lone;
        text
    }

    /// Returns the text of a string, or `None` if it is blank or not a string.
    pub(crate) fn text_of(&mut self, slot: Slot<'a>) -> Option<Cow<'a, str>> {
        let text = text(slot?).filter(|text| !is_blank(text))?;
        Some(self.clean(text))
    }

    /// Returns the first id among the members in `keys`, as text. An id is a non-blank string or a number. A number is
    /// returned with the digits that the payload contains.
    pub(crate) fn identity(&mut self, keys: &[&str]) -> Option<Cow<'a, str>> {
        for key in keys {
            let Some(raw) = self.present(key) else {
                continue;
            };
            match raw.kind {
                Kind::String => match self.text_of(Some(raw)) {
                    None => {}
                    text => return text,
                },
                Kind::Number => return Some(Cow::Borrowed(raw.text)),
                _ => self.shape(raw, key),
            }
        }
        None
    }

    /// Returns a descriptive string (a name, a title, a URL), or `None` if it is absent or blank.
    pub(crate) fn descriptive_string(&mut self, key: &str) -> Option<Cow<'a, str>> {
        let raw = self.present(key)?;
        if raw.kind != Kind::String {
            self.shape(raw, key);
        }
        self.text_of(Some(raw))
    }

    /// Returns the text of the first member in `keys` that is present, or an empty text. The text may begin or end with
    /// half of a surrogate pair.
    pub(crate) fn text(&mut self, keys: &[&str]) -> Text<'a> {
        let found = keys.iter().find_map(|key| Some((key, self.present(key)?)));
        let Some((key, raw)) = found else {
            return Text::default();
        };
        text(raw).unwrap_or_else(|| {
            self.shape(raw, key);
            Text::default()
        })
    }

    pub(crate) fn flag(&mut self, key: &str) -> bool {
        let Some(raw) = self.present(key) else {
            return false;
        };
        if !matches!(raw.kind, Kind::True | Kind::False) {
            self.shape(raw, key);
        }
        raw.kind == Kind::True
    }

    /// Returns the JSON of the first member in `keys` that is neither absent nor null.
    pub(crate) fn json(&self, keys: &[&str]) -> Option<&'a str> {
        let mut found = keys.iter().filter_map(|key| self.present(key));
        Some(found.next()?.text)
    }

    /// Returns the value of a member, or `None` if it is not an object. A value of another type, except null, is
    /// recorded as an anomaly.
    pub(crate) fn an_object(&mut self, key: &str) -> Option<Raw<'a>> {
        let raw = self.present(key)?;
        if raw.kind != Kind::Object {
            self.shape(raw, key);
            return None;
        }
        Some(raw)
    }

    /// Returns the call's arguments from the first member in `keys` that is present. If the value is a string, returns
    /// its text, which should be JSON; otherwise, returns the JSON of the value.
    ///
    /// Providers send a string; `streamText` and the UI protocol forward a parsed value.
    pub(crate) fn document(&self, keys: &[&str]) -> Option<Text<'a>> {
        let raw = keys.iter().find_map(|key| self.present(key))?;
        Some(text(raw).unwrap_or(Text::plain(raw.text)))
    }

    /// Returns true if the part has no member in `keys` but an unknown member may contain the arguments.
    pub(crate) fn misses_arguments(&self, keys: &[&str]) -> bool {
        let is_sent = |key: &&str| self.present(key).is_some();
        !keys.iter().any(is_sent) && may_hold_arguments(&self.left().members)
    }

    /// Returns the metadata of the part: its `providerMetadata` and its unknown members.
    pub(crate) fn provider(&mut self) -> Provider<'a> {
        let sent = self.present(PROVIDER);
        let object = sent.filter(|raw| raw.kind == Kind::Object);
        let Some(raw) = object else {
            if let Some(raw) = sent {
                self.shape(raw, PROVIDER);
            }
            let left = self.left();
            return Provider {
                metadata: left.text(),
                ..Provider::default()
            };
        };
        let providers = once(&members(raw));
        let inner: Vec<_> = providers.iter().map(|one| members(one.raw)).collect();
        let mut metadata = ExtraFields::of(providers);
        metadata.extend(&self.left().members);
        let schema = self.schema;
        let back = &schema.provider_members;
        let item_id = self.first(&inner, &back.item_id);
        let redacted = self.first(&inner, &back.redacted_content);
        let signature = self.first(&inner, &back.signature);
        let encrypted = self.first(&inner, &back.encrypted_content);
        Provider {
            metadata: metadata.text(),
            item_id,
            signature,
            redacted: redacted.is_some(),
            encrypted_content: encrypted.or(redacted),
        }
    }

    /// Returns the metadata of the part as one JSON object, or `None` if there is none.
    pub(crate) fn metadata(&mut self) -> Option<String> {
        self.provider().metadata
    }

    /// Returns the metadata with an additional member. If `raw` is `None`, returns the metadata unchanged.
    pub(crate) fn metadata_with(&mut self, key: &str, raw: Option<&str>) -> Option<String> {
        let known = self.metadata();
        let Some(raw) = raw else {
            return known;
        };
        let mut out = String::with_capacity(key.len() + raw.len() + 8);
        let mut known = known.unwrap_or_default();
        if known.pop().is_some() {
            out.push_str(&known);
            out.push(',');
        } else {
            out.push('{');
        }
        write_member(&mut out, key, raw);
        out.push('}');
        Some(out)
    }

    /// Returns the metadata of a part that contains no content, such as `start-step`. If the part has no
    /// `providerMetadata`, empty lists and objects are omitted.
    pub(crate) fn worth_keeping(&mut self) -> Option<String> {
        if self
            .get(PROVIDER)
            .is_some_and(|raw| raw.kind == Kind::Object)
        {
            return self.metadata();
        }
        let mut left = self.left();
        left.members
            .retain(|member| !matches!(compact(member.raw.text).as_ref(), "[]" | "{}"));
        left.text()
    }

    /// Returns the unknown members that are not null.
    fn left(&self) -> ExtraFields<'a> {
        let known = |member: &Member<'_>| {
            let mut names = self.of_type.modelled.iter();
            names.any(|name| member.key.is(name))
        };
        let members = &self.object.members;
        if members.iter().all(known) {
            return ExtraFields::default();
        }
        let rest = members.iter().filter(|member| !known(member));
        ExtraFields::of(rest.copied().collect())
    }

    /// Returns the first non-empty text that any provider sent under one of `keys`. A stream comes from one provider,
    /// but relays add their own members to `providerMetadata`.
    fn first(&mut self, providers: &[Vec<Member<'a>>], keys: &[&str]) -> Option<Cow<'a, str>> {
        let mut texts = providers.iter().flat_map(|inner| {
            let texts = keys.iter().filter_map(|key| text(find(inner, key)?));
            texts.filter(|text| !text.is_empty())
        });
        let found = texts.next()?;
        Some(self.clean(found))
    }
}

/// Reports integers that exceed 64 bits, and duplicate keys, before a payload is decoded.
pub(crate) fn report_document(
    wire: &mut DecodeContext<'_, '_>,
    object: &Object<'_>,
    schema: &Schema,
) -> ParseResult {
    if object.wide_integer {
        wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
    }
    let members = &object.members;
    if members.len() > FEW {
        let mut seen = HashSet::new();
        for member in members {
            let name = member.key.name();
            if schema.read.contains(name.as_ref()) && !seen.insert(name.clone()) {
                wire.out.diagnose(Code::DUPLICATE_KEY, None, &name)?;
            }
        }
        return Ok(());
    }
    for (position, member) in members.iter().enumerate() {
        let same = |earlier: &Member<'_>| same_key(earlier, member);
        if members.iter().take(position).any(same) {
            let name = member.key.name();
            if schema.read.contains(name.as_ref()) {
                wire.out.diagnose(Code::DUPLICATE_KEY, None, &name)?;
            }
        }
    }
    Ok(())
}

fn same_key(one: &Member<'_>, other: &Member<'_>) -> bool {
    if one.key.escaped || other.key.escaped {
        return one.key.name() == other.key.name();
    }
    one.key.raw == other.key.raw
}

/// Returns the members without duplicate keys. Each key keeps its first position and its last value.
pub(crate) fn once<'a>(members: &[Member<'a>]) -> Vec<Member<'a>> {
    let mut out = ExtraFields::default();
    members.iter().for_each(|member| out.add(*member));
    out.members
}

/// Returns true if a document that follows a broken document has usable content or reports an error.
pub(crate) fn has_usable_data(object: &Object<'_>, schema: &Schema) -> bool {
    let kind = object.string("type");
    kind.is_some_and(|kind| schema.of_type(&kind).recovered) || reports_error(object)
}

/// Returns true if an object reports an error. An object reports an error if it has an `error` member, a message with a
/// code, or no type and another known error shape.
pub(crate) fn reports_error(object: &Object<'_>) -> bool {
    let has = |name: &str| object.present(name).is_some();
    has("error")
        || (has("message") && has("code") && !reports_success(&object.members))
        || (!is_typed(object) && reports_failure(&object.members))
        || is_problem(&object.members)
}

/// Returns true if the object has a type that is a string.
pub(crate) fn is_typed(object: &Object<'_>) -> bool {
    object
        .get("type")
        .is_some_and(|raw| raw.kind == Kind::String)
}

/// Reads an object that is an error itself.
pub(crate) fn whole_error<'a>(object: &Object<'a>) -> UpstreamErrorFields<'a> {
    UpstreamErrorFields::of_members(&object.members, object.raw)
}

/// Appends `"key":raw` to `out`.
pub(crate) fn write_member(out: &mut String, key: &str, raw: &str) {
    write_string(out, key);
    out.push(':');
    out.push_str(raw);
}

/// Returns the selected members as a JSON object, in the order of `keys`, or `None` if none is present.
pub(crate) fn chosen(object: &Object<'_>, keys: &[&str]) -> Option<String> {
    let mut out = String::new();
    for key in keys {
        if let Some(raw) = object.get(key) {
            out.push(if out.is_empty() { '{' } else { ',' });
            write_member(&mut out, key, raw.text);
        }
    }
    if out.is_empty() {
        return None;
    }
    out.push('}');
    Some(out)
}

/// Returns the media type and the base64 text of a data URL, or `None` for any other URL.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((kind.strip_suffix(";base64")?, data))
}

fn is_blank(text: &Text<'_>) -> bool {
    // Python's `isspace` accepts four separator characters that are not Unicode whitespace.
    let blank = |c: char| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}');
    text.lead_low.is_none() && text.tail_high.is_none() && text.body.chars().all(blank)
}

/// Returns the text of a string, or `None` if it is absent, empty, or not a string.
pub(crate) fn filled<'a>(slot: Slot<'a>) -> Option<Text<'a>> {
    present(slot).and_then(text).filter(|text| !text.is_empty())
}
