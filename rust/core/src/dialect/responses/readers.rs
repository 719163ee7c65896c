//! What the official clients need of an event, so that a repair rewrites what they would misread or reject.
//!
//! openai-python raises at content of an item or part that was not announced, and at an item whose identity changes. At
//! the end it takes the output of the last event as it is.

use crate::dialect::responses::spec_tables::FACTS;
use crate::json::Kind;
use crate::json::members::Object;
use crate::json::members::items;
use crate::model::event::WireFact;
use crate::model::output::Output;
use crate::model::small_map::Map;

/// Items that are remembered.
const MAX_ITEMS: usize = 4096;

/// Types of items that clients find by their call id.
const BY_CALL_ID: [&str; 4] = [
    "function_call",
    "custom_tool_call",
    "shell_call",
    "shell_call_output",
];

/// One item of the output, as clients keep it.
#[derive(Debug, Default)]
struct Item {
    kind: Option<String>,
    id: Option<String>,
    call_id: Option<String>,
    parts: i64,
}

impl Item {
    fn of(item: &Object<'_>) -> Item {
        let content = item.get("content").filter(|raw| raw.kind == Kind::Array);
        let parts = content.map_or(0, |raw| items(raw).len());
        Item {
            kind: word(item, "type"),
            id: word(item, "id"),
            call_id: word(item, "call_id"),
            parts: i64::try_from(parts).unwrap_or(i64::MAX),
        }
    }

    fn is(&self, kind: &str) -> bool {
        self.kind.as_deref() == Some(kind)
    }

    /// Whether clients refuse `item` as the end of this one.
    fn is_changed(&self, item: &Item) -> bool {
        let known = BY_CALL_ID.iter().any(|kind| self.is(kind));
        let ids_differ = self.id != item.id && !(known && self.id.is_none());
        self.kind != item.kind || self.call_id != item.call_id || ids_differ
    }
}

/// What the answer opened with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Opening {
    #[default]
    Nothing,
    Sent,
    /// The one that is put before its first event.
    Ours,
}

/// The output that clients keep of one response.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    opening: Opening,
    id: Option<String>,
    items: Map<i64, Item>,
}

impl Readers {
    /// Checks an event of a response.
    pub(crate) fn event(&mut self, out: &mut Output<'_>, kind: &str, event: &Object<'_>) {
        if self.opening == Opening::Nothing {
            self.begin(out, kind, event);
        }
        match kind {
            "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.completed"
            | "response.failed"
            | "response.incomplete" => self.lifecycle(out, kind, event),
            "response.done" => out.touch("end_name"),
            "response.output_item.added" => self.added(out, event),
            "response.output_item.done" => self.item_done(out, event),
            "response.content_part.added" => {
                if let Some(item) = self.item(out, event) {
                    item.parts += 1;
                }
            }
            "response.output_text.delta" | "response.output_text.done" => {
                let is_delta = kind.ends_with("delta");
                let Some(item) = self.item(out, event) else {
                    return;
                };
                let (is_message, parts) = (item.is("message"), item.parts);
                match index(event, "content_index") {
                    None => out.touch("no_index"),
                    Some(place) if !is_message || place >= parts => out.touch("not_opened"),
                    Some(_) if is_delta && !has_text(event) => out.touch("no_text"),
                    Some(_) => {}
                }
            }
            "response.function_call_arguments.delta" => {
                let is_call = self.item(out, event);
                if is_call.is_some_and(|item| item.is("function_call")) && !has_text(event) {
                    out.touch("no_text");
                }
            }
            _ => {}
        }
    }

    /// The first event. Clients want `response.created` before any other.
    fn begin(&mut self, out: &mut Output<'_>, kind: &str, event: &Object<'_>) {
        self.opening = Opening::Sent;
        if FACTS.is_terminal(kind) {
            out.touch("start_missing"); // what it brings is not streamed either
        } else if kind != "response.created" {
            self.opening = Opening::Ours;
            out.miss_opening();
            if matches!(kind, "response.queued" | "response.in_progress") {
                let id = event.object("response").and_then(|one| word(&one, "id"));
                self.id = id.filter(|id| FACTS.is_id(id)); // which the opening takes
            }
        }
    }

    fn lifecycle(&mut self, out: &mut Output<'_>, kind: &str, event: &Object<'_>) {
        let Some(response) = event.object("response") else {
            return;
        };
        let id = word(&response, "id");
        let is_ours = self.opening == Opening::Ours;
        if kind == "response.created" && !is_ours {
            out.sign(WireFact::Created(id.as_deref()));
            self.id = id;
        } else if id != self.id || (id.is_none() && is_ours) {
            out.touch("other_id");
        }
        let output = response.get("output").filter(|raw| raw.kind == Kind::Array);
        let is_empty = output.is_some_and(|raw| items(raw).is_empty());
        if kind == "response.completed" && is_empty && self.items.len() > 0 {
            out.touch("empty_output");
        }
    }

    fn added(&mut self, out: &mut Output<'_>, event: &Object<'_>) {
        let Some(item) = event.object("item") else {
            return;
        };
        match index(event, "output_index") {
            None => out.touch("no_index"),
            Some(at) => self.keep(out, at, Item::of(&item)),
        }
    }

    fn keep(&mut self, out: &mut Output<'_>, at: i64, item: Item) {
        if self.items.len() < MAX_ITEMS && !self.items.contains_key(&at) {
            out.sign(WireFact::ItemAdded {
                index: at,
                kind: item.kind.as_deref(),
                id: item.id.as_deref(),
            });
            self.items.insert(at, item);
        }
    }

    fn item_done(&mut self, out: &mut Output<'_>, event: &Object<'_>) {
        let Some(sent) = event.object("item") else {
            return;
        };
        let Some(at) = index(event, "output_index") else {
            return out.touch("no_index");
        };
        let item = Item::of(&sent);
        match self.items.get(&at) {
            None => self.keep(out, at, item),
            Some(known) if known.is_changed(&item) => out.touch("other_id"),
            Some(_) => {}
        }
        out.sign(WireFact::ItemEnded {
            index: at,
            item: sent.raw.text,
        });
    }

    /// The item that an event speaks of.
    fn item(&mut self, out: &mut Output<'_>, event: &Object<'_>) -> Option<&mut Item> {
        let at = index(event, "output_index");
        let is_full = self.items.len() >= MAX_ITEMS;
        let item = at.and_then(|at| self.items.get_mut(&at));
        if item.is_none() && !is_full {
            out.touch(if at.is_none() {
                "no_index"
            } else {
                "not_opened"
            });
        }
        item
    }
}

fn has_text(event: &Object<'_>) -> bool {
    event
        .get("delta")
        .is_some_and(|raw| raw.kind == Kind::String)
}

fn index(holder: &Object<'_>, key: &str) -> Option<i64> {
    let raw = holder.get(key).filter(|raw| raw.kind == Kind::Number)?;
    raw.text.parse().ok().filter(|number| *number >= 0)
}

fn word(holder: &Object<'_>, key: &str) -> Option<String> {
    let text = holder.string(key)?;
    Some(text.into_owned())
}
