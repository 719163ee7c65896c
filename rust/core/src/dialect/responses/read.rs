//! Reads the members of a Responses event: ids, indexes, text, addresses, and unknown members.
//!
//! One `Reader` is created for each payload.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::name_sets::Field;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::responses::name_sets::Slots;
use crate::dialect::responses::name_sets::has_information;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::think_tags::is_white;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::duplicate_keys::may_repeat;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::Slot;
use crate::json::members::integer;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::delta::Address;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use std::borrow::Cow;

/// An unusable index is reported with at most this many characters of its JSON text.
const INDEX_CHARS: usize = 64;

/// Maximum index if no lower limit is configured.
const INDEX_CAP: u64 = u32::MAX as u64;

/// Members that may contain the text, if a delta is an object.
const DELTA_MEMBERS: [&str; 4] = ["text", "content", "delta", "refusal"];

/// The payload that is being decoded, its decode context, and the anomalies that have been found in it.
#[derive(Debug)]
pub(crate) struct Reader<'w, 'o, 'a> {
    pub(crate) wire: DecodeContext<'w, 'o>,
    pub(crate) notes: Anomalies<'a>,
    /// Members of the event. The list is empty if the payload is a complete response body.
    slots: &'w Slots<'a>,
    payload: &'w Object<'a>,
    max_index: u64,
}

/// Ids and indexes of the item or part that an event addresses.
#[derive(Clone, Debug, Default)]
pub(crate) struct ItemAddress<'a> {
    pub(crate) item_id: Option<Cow<'a, str>>,
    pub(crate) call_id: Option<Cow<'a, str>>,
    pub(crate) index: Option<i64>,
    pub(crate) sub: Option<i64>,
}

impl ItemAddress<'_> {
    #[inline]
    pub(crate) fn address(&self) -> Address<'_> {
        Address {
            item_id: self.item_id.as_deref(),
            call_id: self.call_id.as_deref(),
            index: self.index,
            sub: self.sub,
            public_id: None,
        }
    }
}

impl<'w, 'o, 'a> Reader<'w, 'o, 'a> {
    pub(crate) fn new(
        wire: DecodeContext<'w, 'o>,
        payload: &'w Object<'a>,
        slots: &'w Slots<'a>,
    ) -> Reader<'w, 'o, 'a> {
        let max_index = wire.out.config.limits.max_tool_index;
        Reader {
            wire,
            notes: Anomalies::default(),
            slots,
            payload,
            max_index: max_index.unwrap_or(INDEX_CAP),
        }
    }

    /// Returns the event, or the complete response body.
    pub(crate) fn payload(&self) -> &'w Object<'a> {
        self.payload
    }

    /// Returns the value of a member, or `None` if it is not an object. A value of another type, except null, is
    /// recorded as an anomaly.
    pub(crate) fn object(
        &mut self,
        holder: &Object<'a>,
        at: Pointer<'_>,
        key: &str,
    ) -> Option<Cow<'w, Object<'a>>> {
        let raw = holder.get(key)?;
        if raw.kind != Kind::Object {
            self.notes.unless_null(raw, at.member(key));
        }
        self.open(raw)
    }

    /// Returns the value, or `None` if it is not an object.
    pub(crate) fn open(&self, raw: Raw<'a>) -> Option<Cow<'w, Object<'a>>> {
        self.payload.open(raw)
    }

    /// Returns the elements of an array, or an empty list for any other value.
    pub(crate) fn items(&self, raw: Raw<'a>) -> Cow<'w, [Raw<'a>]> {
        self.payload.items(raw)
    }

    /// Returns an id, or `None` if the id is absent, blank, or a placeholder (`absent_ids`).
    #[inline]
    pub(crate) fn identity(
        &mut self,
        holder: &Object<'a>,
        at: Pointer<'_>,
        key: &str,
    ) -> Option<Cow<'a, str>> {
        self.identity_in(holder.get(key), at, key)
    }

    #[inline]
    fn identity_in(&mut self, slot: Slot<'a>, at: Pointer<'_>, key: &str) -> Option<Cow<'a, str>> {
        let raw = present(slot)?;
        let Some(text) = text(raw) else {
            self.notes.shape(raw, at.member(key));
            return None;
        };
        let (id, lone) = text.into_whole();
        if !FACTS.is_id(&id) {
            return None;
        }
        self.notes.lone |= lone;
        Some(id)
    }

    /// Returns the name of a tool, or `None` if the name is absent or blank.
    pub(crate) fn name(&mut self, holder: &Object<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
        let name = self.text(holder, at, "name");
        self.usable_name(name)
    }

    /// Returns the tool name in the event itself, or `None` if the name is absent or blank.
    pub(crate) fn name_of_event(&mut self) -> Option<Cow<'a, str>> {
        let name = self.text_of_event(FACTS.fields.name);
        self.usable_name(name)
    }

    fn usable_name(&mut self, name: Option<Text<'a>>) -> Option<Cow<'a, str>> {
        let (name, lone) = name?.into_whole();
        if name.trim_matches(is_white).is_empty() {
            return None;
        }
        self.notes.lone |= lone;
        Some(name)
    }

    /// Returns an index, or `None` if the index is absent or unusable. An unusable index is reported, and is never used
    /// to address an item or a part.
    #[inline]
    fn index(&mut self, slot: Slot<'_>, max: u64) -> Result<Option<i64>, Fault> {
        let Some(raw) = present(slot) else {
            return Ok(None);
        };
        let number = integer(raw);
        let usable = |number: &i64| u64::try_from(*number).is_ok_and(|it| it <= max);
        if let Some(number) = number.filter(usable) {
            return Ok(Some(number));
        }
        let head: String = raw.text.chars().take(INDEX_CHARS).collect();
        let out = &mut self.wire.out;
        out.diagnose(Code::INDEX_UNUSABLE, None, &head)?;
        Ok(None)
    }

    /// Returns the text of a string member, or `None` for any other value. The text may end with half of a surrogate
    /// pair, which the next delta may complete.
    #[inline]
    pub(crate) fn text(
        &mut self,
        holder: &Object<'a>,
        at: Pointer<'_>,
        key: &str,
    ) -> Option<Text<'a>> {
        self.text_in(holder.get(key), at, key)
    }

    #[inline]
    fn text_in(&mut self, slot: Slot<'a>, at: Pointer<'_>, key: &str) -> Option<Text<'a>> {
        let raw = present(slot)?;
        if raw.kind != Kind::String {
            self.notes.shape(raw, at.member(key));
        }
        text(raw)
    }

    /// Returns a text member of the event itself.
    #[inline]
    pub(crate) fn text_of_event(&mut self, field: Field) -> Option<Text<'a>> {
        self.text_in(self.slots.get(field), Pointer::ROOT, field.name)
    }

    /// Returns the text of a delta. Some gateways send an object that contains the text, or send the text in the member
    /// `text`.
    #[inline]
    pub(crate) fn text_of_delta(&mut self, field: Field) -> Option<Text<'a>> {
        let text = self.text_of_event(field);
        text.or_else(|| self.text_elsewhere(field))
    }

    /// Returns the text of a delta that is an object. If the member is absent, uses the member `text`, which final
    /// events use.
    #[cold]
    fn text_elsewhere(&mut self, field: Field) -> Option<Text<'a>> {
        let mut slot = self.slots.get(field);
        if present(slot).is_none() {
            let field = FACTS.fields.text;
            let text = self.text_of_event(field);
            if text.is_some() {
                return text;
            }
            slot = self.slots.get(field);
        }
        let holder = Object::of(present(slot)?)?;
        let mut texts = DELTA_MEMBERS
            .iter()
            .filter_map(|member| holder.present(member));
        texts.find_map(text)
    }

    /// Replaces lone surrogates in text that no later delta continues, and records an anomaly if there were any.
    pub(crate) fn whole_text(&mut self, text: Text<'a>) -> Cow<'a, str> {
        let (text, lone) = text.into_whole();
        self.notes.lone |= lone;
        text
    }

    /// Returns the address of the item or part that an event refers to. `position`: the member that contains the index
    /// of the part.
    #[inline]
    pub(crate) fn item_address(
        &mut self,
        position: Option<Field>,
    ) -> Result<ItemAddress<'a>, Fault> {
        let fields = &FACTS.fields;
        let id = |reader: &mut Self, field: Field| {
            reader.identity_in(reader.slots.get(field), Pointer::ROOT, field.name)
        };
        Ok(ItemAddress {
            item_id: id(self, fields.item_id),
            call_id: id(self, fields.call_id),
            index: self.index(self.slots.get(fields.output_index), self.max_index)?,
            sub: self.index(
                position.and_then(|position| self.slots.get(position)),
                INDEX_CAP,
            )?,
        })
    }

    pub(crate) fn extra_fields_of_event(&self, event: &Object<'a>) -> ExtraFields<'a> {
        if self.slots.others {
            extra_fields(event, &FACTS.event_fields)
        } else {
            ExtraFields::default()
        }
    }

    #[inline]
    pub(crate) fn metadata(&self, event: &Object<'a>) -> Option<String> {
        if !self.slots.others {
            return None;
        }
        self.extra_fields_of_event(event).text()
    }

    pub(crate) fn report(&mut self) -> ParseResult {
        self.notes.report(&mut self.wire)
    }
}

/// Returns the members that are not in `modelled`, except members that are null or `[]`.
pub(crate) fn extra_fields<'a>(holder: &Object<'a>, modelled: &Names) -> ExtraFields<'a> {
    let mut out = ExtraFields::default();
    let other = |member: &&Member<'_>| !modelled.has(member.key);
    let mut others = holder.members.iter();
    let Some(first) = others.find(other) else {
        return out;
    };
    out.members.reserve_exact(1 + others.len());
    out.members.push(*first);
    out.members.extend(others.filter(other));
    if may_repeat(&out.members) {
        // If a key is duplicated, the last value is used, even if it is null.
        let mut level = ExtraFields::default();
        for member in &out.members {
            level.add(*member);
        }
        out.members = level.members;
    }
    out.members.retain(|member| has_information(member.raw));
    out
}

pub(crate) fn member<'a>(name: &'static str, raw: Raw<'a>) -> Member<'a> {
    let key = Key {
        raw: name,
        escaped: false,
    };
    Member { key, raw }
}
