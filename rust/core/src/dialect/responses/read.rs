//! How members of a Responses event are read: ids, indexes, texts, addresses, and what nobody models.
//!
//! One `Reader` lives as long as one payload. Knows no kind of event and no item type.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Step;
use crate::dialect::responses::duplicate_keys::Known;
use crate::dialect::responses::name_sets::Field;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::responses::name_sets::Slots;
use crate::dialect::responses::name_sets::says;
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
use crate::json::members::items;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::delta::Address;
use crate::model::fault::Fault;
use crate::model::spec::Code;
use std::borrow::Cow;

/// Characters of an unusable index that are worth repeating.
const INDEX_CHARS: usize = 64;

/// The largest possible index, if no configured limit is lower.
const INDEX_CAP: u64 = u32::MAX as u64;

/// The members that can hold the text of a delta that is an object.
const DELTA_MEMBERS: [&str; 4] = ["text", "content", "delta", "refusal"];

/// One payload, with what has to be said about it, and to whom.
#[derive(Debug)]
pub(crate) struct Reader<'w, 'o, 'a> {
    pub(crate) wire: DecodeContext<'w, 'o>,
    pub(crate) notes: Anomalies<'a>,
    /// The members of the event; nothing of a whole response.
    slots: &'w Slots<'a>,
    pub(crate) known: Known<'a>,
    max_index: u64,
}

/// Whom an event speaks of, with the texts that say it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whom<'a> {
    pub(crate) item_id: Option<Cow<'a, str>>,
    pub(crate) call_id: Option<Cow<'a, str>>,
    pub(crate) index: Option<i64>,
    pub(crate) sub: Option<i64>,
}

impl Whom<'_> {
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
    pub(crate) fn new(wire: DecodeContext<'w, 'o>, slots: &'w Slots<'a>) -> Reader<'w, 'o, 'a> {
        let max_index = wire.out.config.limits.max_tool_index;
        Reader {
            wire,
            notes: Anomalies::default(),
            slots,
            known: Known::default(),
            max_index: max_index.unwrap_or(INDEX_CAP),
        }
    }

    /// The member if it is an object.
    pub(crate) fn object(
        &mut self,
        holder: &Object<'a>,
        at: Pointer<'_>,
        key: &str,
    ) -> Option<Object<'a>> {
        let raw = holder.get(key)?;
        if raw.kind != Kind::Object {
            self.notes.unless_null(raw, at.member(key));
        }
        self.open(raw)
    }

    /// The value if it is an object.
    pub(crate) fn open(&self, raw: Raw<'a>) -> Option<Object<'a>> {
        self.known.object(raw).or_else(|| Object::of(raw))
    }

    /// The items of an array; nothing of any other value.
    pub(crate) fn items(&self, raw: Raw<'a>) -> Vec<Raw<'a>> {
        self.known.items(raw).unwrap_or_else(|| items(raw))
    }

    /// An id exactly as sent; blank is absent, and so is what says so in words.
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

    /// A tool's name as sent; blank is absent.
    pub(crate) fn name(&mut self, holder: &Object<'a>, at: Pointer<'_>) -> Option<Cow<'a, str>> {
        let name = self.text(holder, at, "name");
        self.usable_name(name)
    }

    /// The name of a tool that an event tells.
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

    /// An index; what cannot be one is absent, and never addresses anything.
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

    /// A text as sent. A surrogate at its edge may find its other half in the next delta.
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

    /// A text of the event itself.
    #[inline]
    pub(crate) fn text_of_event(&mut self, field: Field) -> Option<Text<'a>> {
        self.text_in(self.slots.get(field), Pointer::ROOT, field.name)
    }

    /// The text of a delta; some gateways send an object that holds it.
    #[inline]
    pub(crate) fn text_of_delta(&mut self, field: Field) -> Option<Text<'a>> {
        let text = self.text_of_event(field);
        text.or_else(|| self.text_in_object(field))
    }

    #[cold]
    fn text_in_object(&self, field: Field) -> Option<Text<'a>> {
        let holder = Object::of(present(self.slots.get(field))?)?;
        let mut texts = DELTA_MEMBERS
            .iter()
            .filter_map(|member| holder.present(member));
        texts.find_map(text)
    }

    /// The same where nothing can be joined to it.
    pub(crate) fn whole_text(&mut self, text: Text<'a>) -> Cow<'a, str> {
        let (text, lone) = text.into_whole();
        self.notes.lone |= lone;
        text
    }

    /// Whom an event speaks of.
    #[inline]
    pub(crate) fn whom(&mut self, place: Option<Field>) -> Result<Whom<'a>, Fault> {
        let fields = &FACTS.fields;
        let id = |reader: &mut Self, field: Field| {
            reader.identity_in(reader.slots.get(field), Pointer::ROOT, field.name)
        };
        Ok(Whom {
            item_id: id(self, fields.item_id),
            call_id: id(self, fields.call_id),
            index: self.index(self.slots.get(fields.output_index), self.max_index)?,
            sub: self.index(place.and_then(|place| self.slots.get(place)), INDEX_CAP)?,
        })
    }

    /// What an event says beyond its content.
    pub(crate) fn rest_of_event(&self, event: &Object<'a>) -> ExtraFields<'a> {
        if self.slots.others {
            rest(event, &FACTS.event_fields)
        } else {
            ExtraFields::default()
        }
    }

    #[inline]
    pub(crate) fn metadata(&self, event: &Object<'a>) -> Option<String> {
        if !self.slots.others {
            return None;
        }
        self.rest_of_event(event).text()
    }

    /// Says what was noticed.
    pub(crate) fn tell(&mut self) -> Step {
        self.notes.tell(&mut self.wire)
    }
}

/// The members nobody models, and which say something.
pub(crate) fn rest<'a>(holder: &Object<'a>, modelled: &Names) -> ExtraFields<'a> {
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
        // The last one counts, be it null.
        let mut level = ExtraFields::default();
        for member in &out.members {
            level.add(*member);
        }
        out.members = level.members;
    }
    out.members.retain(|member| says(member.raw));
    out
}

/// A member of that name.
pub(crate) fn member<'a>(name: &'static str, raw: Raw<'a>) -> Member<'a> {
    let key = Key {
        raw: name,
        escaped: false,
    };
    Member { key, raw }
}
