//! Iterates over the text parts in the content or summary of an item, in every shape that gateways send.
//!
//! Each part is classified by its type. The caller decides how to handle each part.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::extra_fields;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::spec_tables::TextKind;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Object;
use crate::json::members::is_string;
use crate::json::members::string;
use crate::json::members::text;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use std::borrow::Cow;

/// A part that contains text.
#[derive(Debug)]
pub(crate) struct ContentPart<'w, 'a> {
    pub(crate) text_kind: TextKind,
    /// The object of the part. `None` if a gateway sends only a string.
    pub(crate) part: Option<Cow<'w, Object<'a>>>,
    raw: Raw<'a>,
    pub(crate) position: i64,
}

impl<'a> ContentPart<'_, 'a> {
    pub(crate) fn text(
        &self,
        reader: &mut Reader<'_, '_, 'a>,
        at: Pointer<'_>,
    ) -> Option<Text<'a>> {
        match &self.part {
            Some(part) => reader.text(part, at, self.text_kind.member()),
            None => text(self.raw),
        }
    }

    /// Returns the unknown members of the part.
    pub(crate) fn extra_fields(&self) -> ExtraFields<'a> {
        let part = self.part.as_ref();
        part.map(|part| extra_fields(part, &FACTS.part_fields))
            .unwrap_or_default()
    }
}

impl TextKind {
    /// Returns the name of the member that contains the text.
    fn member(self) -> &'static str {
        match self.channel {
            Channel::Refusal => "refusal",
            Channel::Text | Channel::Reasoning => "text",
        }
    }
}

/// Returns the `TextKind` of the part in a `content_part` or summary part event, and the name of the member that
/// contains the part's text. If `default` is given, it is used instead of the `TextKind` that the part type implies. If
/// `default` is `None`, returns `None` for an unknown type.
pub(crate) fn text_kind_of(
    part: &Object<'_>,
    default: Option<TextKind>,
) -> Option<(TextKind, &'static str)> {
    let kind = part.string("type");
    match FACTS.content.get(kind.as_deref().unwrap_or("output_text")) {
        Some((text_kind, member)) => Some((default.unwrap_or(*text_kind), *member)),
        None => default.map(|text_kind| (text_kind, "text")),
    }
}

/// Calls `take` with every part of an item that contains text, and with the part's location in the payload.
pub(crate) fn each_piece<'w, 'o, 'a>(
    item: &Object<'a>,
    at: Pointer<'_>,
    reader: &mut Reader<'w, 'o, 'a>,
    mut take: impl FnMut(&mut Reader<'w, 'o, 'a>, ContentPart<'w, 'a>, Pointer<'_>) -> ParseResult,
) -> ParseResult {
    let reasons = is_string(item.get("type"), "reasoning");
    let own = if reasons {
        TextKind::RAW
    } else {
        TextKind::TEXT
    };
    for (member, text_kind) in [("summary", TextKind::SUMMARY), ("content", own)] {
        let Some(value) = item.present(member) else {
            continue;
        };
        let at = at.member(member);
        let parts = match value.kind {
            Kind::Array => reader.items(value),
            Kind::String => Cow::Owned(vec![value]),
            _ => {
                reader.notes.shape(value, at);
                continue;
            }
        };
        for (number, (raw, position)) in parts.iter().copied().zip(0..).enumerate() {
            let at = at.item(number);
            let (text_kind, part) = match raw.kind {
                Kind::String => (text_kind, None),
                Kind::Object => {
                    let part = reader.open(raw);
                    let own = part.as_ref().and_then(|part| match member {
                        "summary" => of_summary(part, text_kind, reader, at),
                        _ => of_content(part, text_kind, reasons, reader, at),
                    });
                    let Some(text_kind) = own else { continue };
                    (text_kind, part)
                }
                _ => {
                    reader.notes.unless_null(raw, at);
                    continue;
                }
            };
            let piece = ContentPart {
                text_kind,
                part,
                raw,
                position,
            };
            take(reader, piece, at)?;
        }
    }
    Ok(())
}

/// Returns true if the part has a type that no text has. Clients keep such a part in the list, as it was sent.
pub(crate) fn is_unmodelled(part: &Object<'_>) -> bool {
    let kind = part.string("type");
    kind.is_some_and(|kind| !FACTS.content.contains_key(kind.as_ref()))
}

/// Returns the positions of the content parts of an item whose type no text has.
pub(crate) fn unmodelled_positions<'a>(item: &Object<'a>, reader: &Reader<'_, '_, 'a>) -> Vec<i64> {
    let content = item.get("content").map(|raw| reader.items(raw));
    let parts = content.unwrap_or_default();
    let is_other = |raw| Object::of(raw).is_some_and(|part| is_unmodelled(&part));
    let positions = parts.iter().zip(0..).filter(|(raw, _)| is_other(**raw));
    positions.map(|(_, position)| position).collect()
}

/// Returns the `TextKind` of a summary part, which does not depend on its `type`. Returns `None` if the `type` is not a
/// string.
fn of_summary<'a>(
    part: &Object<'a>,
    text_kind: TextKind,
    reader: &mut Reader<'_, '_, 'a>,
    at: Pointer<'_>,
) -> Option<TextKind> {
    let kind = part
        .present("type")
        .filter(|kind| kind.kind != Kind::String);
    let Some(kind) = kind else {
        return Some(text_kind);
    };
    reader.notes.shape(kind, at.member("type"));
    None
}

fn of_content<'a>(
    part: &Object<'a>,
    text_kind: TextKind,
    reasons: bool,
    reader: &mut Reader<'_, '_, 'a>,
    at: Pointer<'_>,
) -> Option<TextKind> {
    let Some(kind) = part.present("type") else {
        return Some(text_kind);
    };
    let Some(name) = string(kind) else {
        reader.notes.shape(kind, at.member("type"));
        return None;
    };
    let (own, _) = *FACTS.content.get(name.as_ref())?;
    // Text inside a reasoning item is reasoning, regardless of the type of its part.
    let inner = reasons && own.item == ItemKind::Message;
    Some(if inner { text_kind } else { own })
}
