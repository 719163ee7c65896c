//! Writes items from a source in the same dialect as they were sent, if their type is not one that the encoder writes
//! itself.
//!
//! The events of such an item are copied. Only their sequence numbers, and the index and id of an item to which clients
//! give another one, are replaced. An event of an item that clients do not have cannot be written.
//!
//! A message may also contain parts of a type that the encoder does not write itself. Clients keep all parts of a message
//! in one list, so these parts are written at their positions among the others.

use crate::dialect::responses::readers::expected_type;
use crate::dialect::upstream_error::is_blank_error;
use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::writer::Writer;
use crate::encode::responses::copied_items::Change;
use crate::encode::responses::copied_items::Copied;
use crate::encode::responses::copied_items::Name;
use crate::encode::responses::copied_items::object;
use crate::encode::responses::copied_items::status;
use crate::encode::responses::copied_items::with_id;
use crate::encode::responses::copied_items::with_status;
use crate::encode::responses::copied_items::write_members;
use crate::encode::responses::items::Items;
use crate::encode::responses::known_items::AnnouncedItem;
use crate::encode::responses::known_items::KnownItem;
use crate::json::Raw;
use crate::json::members::integer;
use crate::json::members::string;
use crate::model::unmodelled::ItemPlace;
use crate::model::unmodelled::SentItem;
use std::borrow::Cow;

/// Item types that the encoder writes from events. Their unknown members are added (`item_members`).
const WRITTEN: [&str; 4] = ["message", "reasoning", "function_call", "custom_tool_call"];

/// Returns true if the encoder writes items of this type from events.
pub(crate) fn is_written(kind: &str) -> bool {
    WRITTEN.contains(&kind)
}

impl Items {
    /// Writes the event about an item, and the event that announces the item if the source sent none.
    pub(crate) fn copy_item(&mut self, context: &mut EncodeContext, sent: &SentItem<'_>) {
        let Some(object) = object(sent.item) else {
            return;
        };
        let word = |name| {
            let word = object.string(name).filter(|word| !word.is_empty());
            word.map(|word| word.into_owned())
        };
        let kind = sent.kind.to_owned();
        let id = word("id");
        let name = match (id.clone(), word("call_id"), sent.index) {
            (Some(id), ..) => Name::Id(kind, id),
            (None, Some(call_id), _) => Name::Call(kind, call_id),
            (None, None, Some(index)) => Name::Index(kind, index),
            (None, None, None) => return context.losses.note("unknown"),
        };
        let known = self.copied.by_name.get(&name).copied();
        let known = known.or_else(|| self.open_copy(sent));
        let is_open = known.and_then(|position| self.copied.all.get(position));
        let is_open = is_open.is_none_or(|item| !item.is_done && sent.place != ItemPlace::Added);
        if is_open {
            self.end_idle_items(context, None, true); // an event of the item follows
        }
        let position = known.unwrap_or_else(|| self.add_copy(context, sent, id.as_deref()));
        if !self.copied.by_name.contains_key(&name) {
            self.copied.by_name.insert(name, position);
        }
        let target = KnownItem::Copied(position);
        self.known.add(id.as_deref(), sent.index, &target);
        let Some(item) = self.copied.all.get_mut(position) else {
            return;
        };
        let is_over = item.is_done;
        item.is_done |= sent.place != ItemPlace::Added;
        let index = item.index;
        let json = with_id(sent.item, &item.id);
        let is_update = known.is_none() || sent.place != ItemPlace::Added;
        if is_update {
            let size = item.json.as_ref().map_or(0, String::len);
            // The output of the response object is as large as one payload.
            let keeps = sent.place == ItemPlace::Output
                || context.passed.keeps(json.len().saturating_sub(size));
            item.json = keeps.then(|| json.clone().into_owned());
        }
        if known.is_none() && sent.place != ItemPlace::Added {
            let to = self.frame(context, "response.output_item.added");
            to.raw(",\"output_index\":").number(index).raw(",\"item\":");
            with_status(to, &json, "\"in_progress\"");
            to.raw("}").end();
        }
        let place = index.to_string();
        let mut changes = vec![("output_index", Change::Set(place.as_str()))];
        if matches!(json, Cow::Owned(_)) {
            changes.push(("item", Change::Replace(&json)));
        }
        match sent.place {
            ItemPlace::Added if known.is_none() => {
                copy(context, sent.payload, "response.output_item.added", changes);
            }
            ItemPlace::Done if !is_over => {
                copy(context, sent.payload, "response.output_item.done", changes);
            }
            ItemPlace::Output
                if !is_over
                    && (known.is_none() || status(&json).as_deref() != Some("incomplete")) =>
            {
                let to = self.frame(context, "response.output_item.done");
                to.raw(",\"output_index\":").number(index).raw(",\"item\":");
                spliced(to, &json);
                to.raw("}").end();
            }
            ItemPlace::Added | ItemPlace::Done | ItemPlace::Output => {}
        }
    }

    /// Writes the events that end the items without a status that the source announced and did not end. An item with a
    /// status is listed as incomplete, and no event ends it, because clients may run a call when an event ends it.
    pub(crate) fn end_copies(&mut self, context: &mut EncodeContext) {
        for (index, item) in self.copied.open_without_status() {
            self.hosted_item(context, "response.output_item.done", index, &item);
        }
    }

    /// Returns the open item that an event ends under another id. Clients expect the id that was announced.
    fn open_copy(&self, sent: &SentItem<'_>) -> Option<usize> {
        let known = self.known.by_index.get(&sent.index?)?;
        let KnownItem::Copied(position) = *known else {
            return None;
        };
        let item = self.copied.all.get(position)?;
        let is_same = !item.is_done && item.kind == sent.kind;
        (is_same && sent.place == ItemPlace::Done).then_some(position)
    }

    fn add_copy(
        &mut self,
        context: &mut EncodeContext,
        sent: &SentItem<'_>,
        id: Option<&str>,
    ) -> usize {
        let index = self.take_index(context, context.passed.index);
        let id = id.map_or_else(|| context.mint.make("item"), str::to_owned);
        self.copied.all.push(Copied {
            json: None,
            kind: sent.kind.to_owned(),
            id,
            index,
            is_done: false,
        });
        self.copied.all.len() - 1
    }

    /// Copies an event that the encoder does not write itself. `name` is the name of the event. An event whose name is
    /// not printable ASCII is not written, because its name could contain a line end.
    pub(crate) fn copy_event(
        &mut self,
        context: &mut EncodeContext,
        payload: &str,
        name: Option<&str>,
    ) {
        let Some(event) = object(payload) else {
            return context.losses.note("unknown");
        };
        let kind = event.string("type").filter(|kind| !kind.is_empty());
        let name = kind.as_deref().or(name).unwrap_or_default();
        if !name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return context.losses.note("unknown");
        }
        self.end_idle_items(context, None, true);
        let is_about_item = expected_type(name).is_some();
        let [id, index] = ["item_id", "output_index"].map(|name| event.present(name));
        if id.is_none() && index.is_none() && !is_about_item {
            return copy(context, payload, name, Vec::new());
        }
        let Some((id, index)) = self.addressed(context, name, (id, index)) else {
            return context.losses.note("unknown");
        };
        let index = index.to_string();
        let mut changes = vec![("output_index", Change::Set(index.as_str()))];
        let id = id.map(|id| {
            let mut text = Writer::default();
            text.string(&id);
            text.into_text()
        });
        if let Some(id) = &id {
            changes.push(("item_id", Change::Set(id)));
        }
        copy(context, payload, name, changes);
    }

    /// Returns the id and the index of the item that an event addresses. The event's id decides. If no item or more
    /// than one has that id, the event's index decides. Returns `None` if no item matches, or if clients expect an item
    /// of another type.
    fn addressed(
        &mut self,
        context: &mut EncodeContext,
        name: &str,
        (id, index): (Option<Raw<'_>>, Option<Raw<'_>>),
    ) -> Option<(Option<String>, i64)> {
        let id = id.and_then(string);
        let by_id = id.as_ref().and_then(|id| self.known.by_id.get(id.as_ref()));
        let index = index.and_then(integer);
        let at_index = index.and_then(|index| self.known.by_index.get(&index));
        let is_meant = |item: &&KnownItem| {
            let (own, kind) = self.id_and_kind(item).unzip();
            own.flatten() == id.as_deref() && kind.is_some_and(|kind| is_expected(name, kind))
        };
        let known = at_index.filter(is_meant).or(by_id).or(at_index)?.clone();
        if !is_expected(name, self.id_and_kind(&known)?.1) {
            return None;
        }
        let position = match known {
            KnownItem::Copied(position) => {
                let item = self.copied.all.get(position)?;
                return Some((Some(item.id.clone()), item.index));
            }
            KnownItem::Written(position) => position,
            KnownItem::Announced(item) => self.open_announced(context, &item),
        };
        let item = self.all.get(position)?;
        Some((item.id.clone(), item.index))
    }

    fn id_and_kind<'i>(&'i self, item: &'i KnownItem) -> Option<(Option<&'i str>, &'i str)> {
        Some(match item {
            KnownItem::Copied(position) => {
                let item = self.copied.all.get(*position)?;
                (Some(item.id.as_str()), item.kind.as_str())
            }
            KnownItem::Written(position) => {
                let item = self.all.get(*position)?;
                (item.id.as_deref(), item.body.kind())
            }
            KnownItem::Announced(item) => (item.id.as_deref(), item.kind.word()),
        })
    }

    /// Opens an item without a part, because an event addresses it.
    fn open_announced(&mut self, context: &mut EncodeContext, item: &AnnouncedItem) -> usize {
        let body = item.kind.body();
        self.own_item(context, &body, (item.at, item.id.as_deref()), None)
    }
}

/// Returns true if events of this name may address an item of this type.
fn is_expected(name: &str, kind: &str) -> bool {
    expected_type(name).is_none_or(|expected| expected == kind)
}

/// Writes an event as it was sent, with the next sequence number and the given changes. If only the event's name tells
/// its type, clients need the type in the payload as well. A blank error is omitted, because some clients raise an
/// exception for it.
fn copy<'c>(
    context: &mut EncodeContext,
    payload: &str,
    name: &str,
    changes: impl IntoIterator<Item = (&'c str, Change<'c>)>,
) {
    let Some(event) = object(payload) else {
        return;
    };
    let number = context.passed.sequence;
    let numbered = number.filter(|_| event.has("sequence_number"));
    context.passed.sequence = number.map(|number| number + i128::from(numbered.is_some()));
    let number = numbered.map(|number| number.to_string());
    let mut changes: Vec<(&str, Change<'_>)> = changes.into_iter().collect();
    if let Some(number) = &number {
        changes.push(("sequence_number", Change::Replace(number)));
    }
    if event.get("error").is_some_and(is_blank_error) {
        changes.push(("error", Change::Remove));
    }
    let to = context.writer.raw("event: ").raw(name).raw("\ndata: ");
    let is_typed = event.string("type").is_some_and(|kind| !kind.is_empty());
    let kind = Some(name).filter(|name| !(is_typed || name.is_empty()));
    write_members(to, &event, kind, &changes);
    to.end();
}
