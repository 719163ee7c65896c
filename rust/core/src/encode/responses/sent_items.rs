//! Writes items from a source in the same dialect as they were sent, if their type is not one that the encoder writes
//! itself.
//!
//! The events of such an item are copied. Only their sequence numbers and, if another item has the item's index, their
//! output indexes are replaced.

use crate::encode::common::compact_json::spliced;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::responses::copied_items::Copied;
use crate::encode::responses::copied_items::Name;
use crate::encode::responses::copied_items::object;
use crate::encode::responses::copied_items::with_status;
use crate::encode::responses::copied_items::write_members;
use crate::encode::responses::items::Items;
use crate::json::members::integer;
use crate::model::unmodelled::ItemPlace;
use crate::model::unmodelled::SentItem;

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
        let position = match known {
            Some(position) => position,
            None => {
                self.end_idle_items(context, None, true);
                let index = self.take_index(context, context.passed.index);
                let position = self.copied.all.len();
                self.copied.all.push(Copied {
                    json: None,
                    index,
                    is_done: false,
                });
                self.copied.by_name.insert(name, position);
                if let Some(id) = id {
                    self.copied.by_id.insert(id, index);
                }
                if let Some(sent) = sent.index {
                    self.copied.by_index.insert(sent, index);
                }
                if sent.place != ItemPlace::Added {
                    let to = self.frame(context, "response.output_item.added");
                    to.raw(",\"output_index\":").number(index).raw(",\"item\":");
                    with_status(to, sent.item, "\"in_progress\"");
                    to.raw("}").end();
                }
                position
            }
        };
        let Some(item) = self.copied.all.get_mut(position) else {
            return;
        };
        let is_over = item.is_done;
        item.is_done |= sent.place != ItemPlace::Added;
        let index = item.index;
        let is_update = known.is_none() || sent.place != ItemPlace::Added;
        if is_update {
            let size = item.json.as_ref().map_or(0, String::len);
            // The output of the response object is as large as one payload.
            let keeps = sent.place == ItemPlace::Output
                || context.passed.keeps(sent.item.len().saturating_sub(size));
            item.json = keeps.then(|| sent.item.to_owned());
        }
        match sent.place {
            ItemPlace::Added if known.is_none() => {
                self.copy(context, sent.payload, "response.output_item.added", index);
            }
            ItemPlace::Done if !is_over => {
                self.copy(context, sent.payload, "response.output_item.done", index);
            }
            ItemPlace::Output if !is_over => {
                let to = self.frame(context, "response.output_item.done");
                to.raw(",\"output_index\":").number(index).raw(",\"item\":");
                spliced(to, sent.item);
                to.raw("}").end();
            }
            ItemPlace::Added | ItemPlace::Done | ItemPlace::Output => {}
        }
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
        let sent = event.get("output_index").and_then(integer);
        let id = event.string("item_id");
        let by_id = id.and_then(|id| self.index_of(&id));
        let by_index = || sent.and_then(|sent| self.copied.by_index.get(&sent).copied());
        let index = by_id.or_else(by_index).or(sent).unwrap_or_default();
        self.copy(context, payload, name, index);
    }

    fn index_of(&self, id: &str) -> Option<i64> {
        let copied = self.copied.by_id.get(id).copied();
        let written = || {
            let item = self.by_id.get(id).and_then(|item| self.all.get(*item));
            item.map(|item| item.index)
        };
        copied.or_else(written)
    }

    /// Writes an event as it was sent, with the next sequence number and the given output index. If only the event's
    /// name tells its type, clients need the type in the payload as well.
    fn copy(&mut self, context: &mut EncodeContext, payload: &str, name: &str, index: i64) {
        let Some(event) = object(payload) else {
            return;
        };
        let number = context.passed.sequence;
        let numbered = number.filter(|_| event.has("sequence_number"));
        context.passed.sequence = number.map(|number| number + i128::from(numbered.is_some()));
        let number = numbered.map(|number| number.to_string());
        let index = index.to_string();
        let to = context.writer.raw("event: ").raw(name).raw("\ndata: ");
        let is_typed = event.string("type").is_some_and(|kind| !kind.is_empty());
        let kind = Some(name).filter(|name| !(is_typed || name.is_empty()));
        write_members(to, &event, kind, |name| match name {
            "sequence_number" => number.as_deref(),
            "output_index" => Some(&index),
            _ => None,
        });
        to.end();
    }
}
