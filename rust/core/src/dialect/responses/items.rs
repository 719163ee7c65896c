//! Decodes output items when they are announced, completed, or repeated in the terminal output.
//!
//! Messages and reasoning contain text. The module `calls` decodes tool calls. Results are paired with their calls.
//! Items that only the provider reads, and items of unknown type, are kept unchanged for the next turn.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::calls::CallItem;
use crate::dialect::responses::calls::call_type;
use crate::dialect::responses::calls::open_call;
use crate::dialect::responses::calls::read_call;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::responses::name_sets::is_empty_array;
use crate::dialect::responses::read::ItemAddress;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::extra_fields;
use crate::dialect::responses::spec_tables::CallType;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::text::Texts;
use crate::fastpath::text_mark::mark_of;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::compact;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::delta::CallEnding;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::unmodelled::ItemPlace;
use crate::model::unmodelled::SentItem;
use crate::model::unmodelled::Unmodelled;
use std::borrow::Cow;

/// Maximum number of emitted values whose hashes are stored, so that no value is emitted twice.
const ONCE: usize = 4096;
/// Maximum number of output indexes whose item type is stored, and of indexes and ids of announced results.
const TYPES: usize = 4096;
/// Maximum length of a stored item type, in characters.
const TYPE: usize = 64;

/// Event name under which items of unknown type are emitted. The name does not depend on the event that contained the
/// item.
const ITEM_DONE: &str = "response.output_item.done";

/// The output items of one stream.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) texts: LazyBox<Texts>,
    /// Hashes of values that were emitted and must not be emitted twice.
    once: Set<u64>,
    /// The type of the item at each output index.
    types: Map<i64, String>,
    announced: LazyBox<AnnouncedResults>,
    /// True if a response may end with the last complete item.
    pub(crate) ends_with_answer: bool,
}

impl Default for Items {
    fn default() -> Items {
        Items {
            texts: LazyBox::default(),
            once: Set::default(),
            types: Map::default(),
            announced: LazyBox::default(),
            ends_with_answer: true,
        }
    }
}

/// The call ids of announced results. Pieces of a result's output contain the id or the index of the result's item, but
/// not the call id.
#[derive(Clone, Debug, Default)]
struct AnnouncedResults {
    by_id: Map<String, String>,
    by_index: Map<i64, String>,
}
blank!(AnnouncedResults);

impl AnnouncedResults {
    fn insert(&mut self, item_id: Option<&str>, index: Option<i64>, call_id: &str) {
        if let Some(id) = item_id {
            if self.by_id.len() < TYPES || self.by_id.contains_key(id) {
                self.by_id.insert(id.to_owned(), call_id.to_owned());
            }
        }
        if let Some(index) = index {
            if self.by_index.len() < TYPES || self.by_index.contains_key(&index) {
                self.by_index.insert(index, call_id.to_owned());
            }
        }
    }

    fn call_id(&self, item_address: &ItemAddress<'_>) -> Option<&str> {
        let id = item_address.item_id.as_deref();
        let found = id.and_then(|id| self.by_id.get(id));
        let found = found.or_else(|| self.by_index.get(&item_address.index?));
        found.map(String::as_str)
    }
}

/// The place of an item in the payload.
#[derive(Clone, Copy, Debug)]
struct ItemOccurrence<'p> {
    at: Pointer<'p>,
    /// True if the item is in the terminal output, which repeats streamed items.
    again: bool,
}

/// An element of the terminal output, and its members if it is an object.
type RestatedItem<'w, 'a> = (Raw<'a>, Option<Cow<'w, Object<'a>>>);

impl Items {
    /// Discards all state when the response restarts, because indexes refer to other items after a restart.
    pub(crate) fn begin_again(&mut self) {
        self.texts = LazyBox::default();
        self.types.clear();
        self.announced = LazyBox::default();
        self.once.clear();
    }

    /// Handles `response.output_item.added`. Returns false if the item has an unknown type, or is a result without an
    /// id.
    pub(crate) fn added<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> Result<bool, Fault> {
        let (item, enclosing) = self.item(event, reader)?;
        let Some(item) = item else {
            return Ok(true);
        };
        report_item(event, &item, enclosing.index, ItemPlace::Added, reader);
        let known = self.added_item(&item, reader, enclosing)?;
        if known {
            reader.wire.out.keep(Unmodelled::ItemEnd);
        } // otherwise the event is emitted as unknown, which is part of the item
        Ok(known)
    }

    fn added_item<'a>(
        &mut self,
        item: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        enclosing: ItemAddress<'a>,
    ) -> Result<bool, Fault> {
        let at = Pointer::ROOT.member("item");
        if let Some(kind) = call_type(item) {
            let call = read_call(item, at, reader, kind, enclosing);
            open_call(&mut reader.wire, &call, kind)?;
            return Ok(true);
        }
        let Some(kind) = text_kind(item) else {
            if provider_item(item).is_some() {
                return Ok(true); // the item is emitted when it is complete
            }
            return Ok(is_result(item) && self.result(item, at, reader, &enclosing, true)?);
        };
        let item_address = ItemAddress {
            item_id: reader.identity(item, at, "id").or(enclosing.item_id),
            call_id: None,
            ..enclosing
        };
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.item_opened(out, 0, kind, item_address.address())?;
        let members = match kind {
            ItemKind::Message => members_of(item),
            _ => ExtraFields::default(),
        };
        self.texts
            .open_content(item, at, reader, &item_address, &members)?;
        Ok(true)
    }

    /// Handles `response.output_item.done`.
    pub(crate) fn done<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let occurrence = ItemOccurrence {
            at: Pointer::ROOT.member("item"),
            again: false,
        };
        let (Some(item), enclosing) = self.item(event, reader)? else {
            return Ok(());
        };
        report_item(event, &item, enclosing.index, ItemPlace::Done, reader);
        let result = self.whole_item(&item, reader, enclosing, occurrence);
        reader.wire.out.keep(Unmodelled::ItemEnd);
        result
    }

    /// Handles the terminal output, which lists every item, including items that were not streamed.
    pub(crate) fn restate<'a>(
        &mut self,
        output: Raw<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let list = reader.items(output);
        let list = list.iter().map(|raw| (*raw, reader.open(*raw)));
        let list: Vec<RestatedItem<'_, '_>> = list.collect();
        let in_line = self.in_line(&list);
        for (number, ((raw, item), position)) in list.iter().zip(0..).enumerate() {
            let at = at.item(number);
            let Some(item) = item else {
                reader.notes.unless_null(*raw, at);
                continue;
            };
            let enclosing = ItemAddress {
                index: in_line.then_some(position),
                ..ItemAddress::default()
            };
            report_item(
                reader.payload(),
                item,
                enclosing.index,
                ItemPlace::Output,
                reader,
            );
            self.whole_item(item, reader, enclosing, ItemOccurrence { at, again: true })?;
            reader.wire.out.keep(Unmodelled::ItemEnd);
        }
        Ok(())
    }

    /// Returns the item in an event, and the address that the event contains outside the item.
    fn item<'w, 'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'w, '_, 'a>,
    ) -> Result<(Option<Cow<'w, Object<'a>>>, ItemAddress<'a>), Fault> {
        let item = reader.object(event, Pointer::ROOT, "item");
        let item_address = ItemAddress {
            call_id: None,
            ..reader.item_address(None)?
        };
        if let (Some(item), Some(index)) = (&item, item_address.index) {
            if self.types.contains_key(&index) || self.types.len() < TYPES {
                self.types.insert(index, type_of(item));
            }
        }
        Ok((item, item_address))
    }

    /// Returns true if the terminal output has as many items as were streamed, with the same types. If the result is
    /// true, positions in the terminal output are output indexes. Some gateways omit items from the terminal output.
    fn in_line(&self, output: &[RestatedItem<'_, '_>]) -> bool {
        let same = |(position, (_, item)): (i64, &RestatedItem<'_, '_>)| {
            let name = item.as_deref().map(type_of).unwrap_or_default();
            self.types.get(&position) == Some(&name)
        };
        output.len() == self.types.len() && (0..).zip(output).all(same)
    }

    // Complete items

    fn whole_item<'a>(
        &mut self,
        item: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        enclosing: ItemAddress<'a>,
        occurrence: ItemOccurrence<'_>,
    ) -> ParseResult {
        let ItemOccurrence { at, again } = occurrence;
        self.ends_with_answer = is_answer(item);
        if let Some(kind) = call_type(item) {
            let call = read_call(item, at, reader, kind, enclosing);
            self.ends_with_answer |= !call.provider;
            return self.call(item, reader, kind, &call, occurrence);
        }
        if let Some(kind) = text_kind(item) {
            let item_address = ItemAddress {
                item_id: reader.identity(item, at, "id").or(enclosing.item_id),
                ..enclosing
            };
            let members = members_of(item);
            let left = self
                .texts
                .close_content(item, at, reader, &item_address, members, again)?;
            let encrypted = reader.text(item, at, "encrypted_content");
            let encrypted = encrypted.map(|text| text.into_whole().0);
            let encrypted = encrypted.filter(|text| !text.is_empty());
            let DecodeContext { assembler, out } = &mut reader.wire;
            assembler.item_closed(
                out,
                0,
                Some(kind),
                item_address.address(),
                encrypted.as_deref(),
                left.text().as_deref(),
            )?;
            return self.unmodelled_content(item, reader);
        }
        if is_result(item) && self.result(item, at, reader, &enclosing, false)? {
            return Ok(());
        }
        self.keep(item, reader)
    }

    fn call<'a>(
        &mut self,
        item: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        kind: &CallType,
        call: &CallItem<'a>,
        occurrence: ItemOccurrence<'_>,
    ) -> ParseResult {
        let ItemOccurrence { at, again } = occurrence;
        let DecodeContext { assembler, out } = &mut reader.wire;
        let call_fields = call.call_fields();
        if again {
            assembler.restate_call(out, call_fields)?;
        } else {
            assembler.call_closed(out, call_fields)?;
        }
        if call.ending != CallEnding::Whole {
            return Ok(());
        }
        match kind.results.as_slice() {
            _ if kind.kind == "image_generation_call" => self.image(item, at, reader, call),
            [output, error] => self.own_result(item, reader, call, (output, error)),
            _ => Ok(()),
        }
    }

    /// Emits the result that a call item contains: its error if there is one, otherwise its output. Emits nothing if
    /// the item has neither an error nor an output.
    fn own_result(
        &mut self,
        item: &Object<'_>,
        reader: &mut Reader<'_, '_, '_>,
        call: &CallItem<'_>,
        (output, error): (&str, &str),
    ) -> ParseResult {
        let error = item.present(error);
        let (Some(raw), Some(id)) = (
            error.or_else(|| item.present(output)),
            call.item_address.call_id.as_deref(),
        ) else {
            return Ok(());
        };
        if !self.is_new(("result", id, &compact(raw.text))) {
            return Ok(());
        }
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.result(out, 0, id, raw.text, error.is_some(), None)
    }

    /// Emits a finished image as a file of the response. Previews (`partial_image`) are not files. Previews are emitted
    /// as metadata of the call.
    fn image<'a>(
        &mut self,
        item: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
        call: &CallItem<'_>,
    ) -> ParseResult {
        let result = reader.text(item, at, "result");
        let Some(result) = result.filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let id = call.item_address.item_id.as_deref();
        let (result, lone) = result.into_whole();
        if !self.is_new(("image", id.unwrap_or_default(), &result)) {
            return Ok(());
        }
        reader.notes.lone |= lone;
        let shape = item.string("output_format").filter(|shape| {
            !shape.is_empty() && shape.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        let media_type = format!("image/{}", shape.as_deref().unwrap_or("png"));
        let metadata = id.map(|_| {
            let sent = item.get("id").map_or("null", |raw| raw.text);
            format!("{{\"item_id\":{sent}}}")
        });
        let is_url = result.starts_with("http://") || result.starts_with("https://");
        let (data, url) = if is_url {
            (None, Some(result.as_ref()))
        } else {
            (Some(result.as_ref()), None)
        };
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.file(out, 0, Some(&media_type), data, url, metadata.as_deref())
    }

    /// Emits the result of a tool. Returns false if the item has no id that pairs the result with a call.
    fn result<'a>(
        &mut self,
        item: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
        enclosing: &ItemAddress<'a>,
        opens: bool,
    ) -> Result<bool, Fault> {
        let kind = item.string("type").unwrap_or_default();
        let member = FACTS.results.get(kind.as_ref()).copied();
        let member = member.unwrap_or("output");
        let mut id = reader.identity(item, at, "call_id");
        if let Some(call_id) = id.as_deref().filter(|_| opens) {
            let item_id = item.get("id").and_then(text);
            let item_id = item_id.map(|id| id.into_whole().0);
            let item_id = item_id.filter(|id| FACTS.is_id(id));
            let item_id = item_id.as_deref().or(enclosing.item_id.as_deref());
            let DecodeContext { assembler, out } = &mut reader.wire;
            for id in [Some(call_id), item_id].into_iter().flatten() {
                assembler.check_id(out, id)?;
            }
            self.announced.insert(item_id, enclosing.index, call_id);
        }
        if id.is_none() && member == "output" {
            id = reader.identity(item, at, "id");
            id = id.or_else(|| enclosing.item_id.clone());
        }
        let Some(id) = id else {
            return Ok(false);
        };
        let may_be_empty = !opens && member != "output";
        let output = item.present(member);
        let output = output.filter(|raw| may_be_empty || !is_empty_result(*raw));
        let Some(raw) = output else {
            return Ok(true);
        };
        if self.is_new(("result", &id, &compact(raw.text))) {
            let failed = is_string(item.get("status"), "failed");
            let metadata = extra_fields(item, &Names::of(["call_id", member])).text();
            let DecodeContext { assembler, out } = &mut reader.wire;
            assembler.result(out, 0, &id, raw.text, failed, metadata.as_deref())?;
        }
        Ok(true)
    }

    /// Emits a piece of the output of an announced result. Returns false if the event addresses no such result.
    pub(crate) fn result_delta<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> Result<bool, Fault> {
        let item_address = reader.item_address(None)?;
        let Some(call_id) = self.announced.call_id(&item_address) else {
            return Ok(false);
        };
        let mut output = ExtraFields::default();
        let members = event.members.iter();
        for member in members.filter(|member| !FACTS.result_address.has(member.key)) {
            output.add(*member);
        }
        let output = output.text();
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.result_delta(out, 0, call_id, output.as_deref().unwrap_or("{}"))?;
        Ok(true)
    }

    /// Emits content parts of unknown type as unknown events, so that they are not lost.
    fn unmodelled_content<'a>(
        &mut self,
        item: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let content = item.get("content").map(|raw| reader.items(raw));
        for raw in content.unwrap_or_default().iter() {
            let Some(part) = reader.open(*raw) else {
                continue;
            };
            let kind = part.string("type");
            let unmodelled = |kind: &str| !FACTS.content.contains_key(kind);
            if kind.as_deref().is_some_and(unmodelled) && self.is_new(("part", "", part.raw.text)) {
                let DecodeContext { assembler, out } = &mut reader.wire;
                assembler.unknown(out, None, part.raw.text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Keeps an item of another type, which the client sends back unchanged in a later turn.
    fn keep(&mut self, item: &Object<'_>, reader: &mut Reader<'_, '_, '_>) -> ParseResult {
        let id = item.string("id").filter(|id| !id.is_empty());
        if !self.is_new(("item", id.as_deref().unwrap_or(item.raw.text), "")) {
            return Ok(());
        }
        let DecodeContext { assembler, out } = &mut reader.wire;
        let raw = item.raw.text;
        match provider_item(item) {
            Some(kind) => assembler.provider_item(out, 0, kind, raw, id.as_deref()),
            None => assembler.kept_unknown(out, 0, Some(ITEM_DONE), raw.as_bytes(), None),
        }
    }

    /// Returns true if the value has not been emitted before, because the terminal output repeats streamed values.
    fn is_new(&mut self, what: (&str, &str, &str)) -> bool {
        let mark = mark_of(what);
        if self.once.len() < ONCE {
            return self.once.insert(mark);
        }
        !self.once.contains(&mark)
    }
}

/// Reports an item to the repair stage, before the events of the item.
fn report_item(
    event: &Object<'_>,
    item: &Object<'_>,
    index: Option<i64>,
    place: ItemPlace,
    reader: &mut Reader<'_, '_, '_>,
) {
    if !reader.wire.out.wants_wire_facts() {
        return;
    }
    let own = item.string("type").unwrap_or_default();
    let kind = match (call_type(item), text_kind(item)) {
        (Some(kind), _) => kind.kind,
        (None, Some(ItemKind::Reasoning)) => "reasoning",
        (None, Some(_)) => "message",
        (None, None) => &own,
    };
    reader.wire.out.keep(Unmodelled::Item(SentItem {
        place,
        kind,
        index,
        item: item.raw.text,
        payload: event.raw.text,
    }));
}

/// Returns an item's type, or an empty string if the type is missing, not a string, or too long.
fn type_of(item: &Object<'_>) -> String {
    let kind = item.string("type").unwrap_or_default();
    let is_long = kind.chars().nth(TYPE).is_some();
    if is_long {
        String::new()
    } else {
        kind.into_owned()
    }
}

/// Returns the kind of an item that contains text, or `None` for any other item.
fn text_kind(item: &Object<'_>) -> Option<ItemKind> {
    match item.get("type").and_then(string).as_deref() {
        Some("message") => Some(ItemKind::Message),
        Some("reasoning") => Some(ItemKind::Reasoning),
        Some(_) => None,
        None => {
            let content = item.get("content")?;
            (content.kind == Kind::Array).then_some(ItemKind::Message)
        }
    }
}

/// Returns true if a response may end with this item. Other items always follow reasoning, commentary, calls that the
/// provider runs, and lists of the provider's tools.
fn is_answer(item: &Object<'_>) -> bool {
    let Some(kind) = item.string("type") else {
        return true;
    };
    FACTS.response_events.contains(kind.as_ref()) && !is_string(item.get("phase"), "commentary")
}

/// Returns the type of an item that only the provider reads, or `None` for any other item.
fn provider_item(item: &Object<'_>) -> Option<&'static str> {
    let kind = item.string("type")?;
    FACTS.provider_items.get(kind.as_ref()).copied()
}

fn is_result(item: &Object<'_>) -> bool {
    let kind = item.string("type");
    kind.is_some_and(|kind| FACTS.results.contains_key(kind.as_ref()))
}

/// Returns true if the result is `""` or `[]`.
fn is_empty_result(raw: Raw<'_>) -> bool {
    raw.text == "\"\"" || is_empty_array(raw)
}

/// Returns the unknown members of a text item. Omits the statuses `in_progress` and `completed`, which the events
/// already report.
fn members_of<'a>(item: &Object<'a>) -> ExtraFields<'a> {
    let mut out = extra_fields(item, &FACTS.item_fields);
    let status = item.string("status");
    if matches!(status.as_deref(), Some("in_progress" | "completed")) {
        out.members.retain(|member| !member.key.is("status"));
    }
    out
}
