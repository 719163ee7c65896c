//! The content of an item, or its summary, in every shape that it comes in: the parts that hold text, one by one.
//!
//! Knows the types of parts. What becomes of one is not decided here.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::Step;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::rest;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::spec_tables::Sort;
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

/// One part that holds text.
#[derive(Debug)]
pub(crate) struct ContentPart<'a> {
    pub(crate) sort: Sort,
    /// None: some bridges write the text alone.
    pub(crate) part: Option<Object<'a>>,
    raw: Raw<'a>,
    pub(crate) place: i64,
}

impl<'a> ContentPart<'a> {
    pub(crate) fn text(
        &self,
        reader: &mut Reader<'_, '_, 'a>,
        at: Pointer<'_>,
    ) -> Option<Text<'a>> {
        match &self.part {
            Some(part) => reader.text(part, at, self.sort.member()),
            None => text(self.raw),
        }
    }

    /// What the part says beside its text.
    pub(crate) fn rest(&self) -> ExtraFields<'a> {
        let part = self.part.as_ref();
        part.map(|part| rest(part, &FACTS.part_fields))
            .unwrap_or_default()
    }
}

impl Sort {
    /// Where the text of a part of an item stands.
    fn member(self) -> &'static str {
        match self.channel {
            Channel::Refusal => "refusal",
            Channel::Text | Channel::Reasoning => "text",
        }
    }
}

/// What a content part is that came by itself, and where its text stands. None: a type that nobody models.
pub(crate) fn sorted(part: &Object<'_>, default: Option<Sort>) -> Option<(Sort, &'static str)> {
    let kind = part.string("type");
    match FACTS.content.get(kind.as_deref().unwrap_or("output_text")) {
        Some((sort, member)) => Some((default.unwrap_or(*sort), *member)),
        None => default.map(|sort| (sort, "text")),
    }
}

/// Every part of an item that holds text, with the place where it stands.
pub(crate) fn each_piece<'w, 'o, 'a>(
    item: &Object<'a>,
    at: Pointer<'_>,
    reader: &mut Reader<'w, 'o, 'a>,
    mut take: impl FnMut(&mut Reader<'w, 'o, 'a>, ContentPart<'a>, Pointer<'_>) -> Step,
) -> Step {
    let reasons = is_string(item.get("type"), "reasoning");
    let own = if reasons { Sort::RAW } else { Sort::TEXT };
    for (member, sort) in [("summary", Sort::SUMMARY), ("content", own)] {
        let Some(value) = item.present(member) else {
            continue;
        };
        let at = at.member(member);
        let parts = match value.kind {
            Kind::Array => reader.items(value),
            Kind::String => vec![value],
            _ => {
                reader.notes.shape(value, at);
                continue;
            }
        };
        for (number, (raw, place)) in parts.into_iter().zip(0..).enumerate() {
            let at = at.item(number);
            let (sort, part) = match raw.kind {
                Kind::String => (sort, None),
                Kind::Object => {
                    let part = reader.open(raw);
                    let own = part.as_ref().and_then(|part| match member {
                        "summary" => of_summary(part, sort, reader, at),
                        _ => of_content(part, sort, reasons, reader, at),
                    });
                    let Some(sort) = own else { continue };
                    (sort, part)
                }
                _ => {
                    reader.notes.unless_null(raw, at);
                    continue;
                }
            };
            let piece = ContentPart {
                sort,
                part,
                raw,
                place,
            };
            take(reader, piece, at)?;
        }
    }
    Ok(())
}

/// Whatever a part of a summary calls itself.
fn of_summary<'a>(
    part: &Object<'a>,
    sort: Sort,
    reader: &mut Reader<'_, '_, 'a>,
    at: Pointer<'_>,
) -> Option<Sort> {
    let kind = part
        .present("type")
        .filter(|kind| kind.kind != Kind::String);
    let Some(kind) = kind else {
        return Some(sort);
    };
    reader.notes.shape(kind, at.member("type"));
    None
}

fn of_content<'a>(
    part: &Object<'a>,
    sort: Sort,
    reasons: bool,
    reader: &mut Reader<'_, '_, 'a>,
    at: Pointer<'_>,
) -> Option<Sort> {
    let Some(kind) = part.present("type") else {
        return Some(sort);
    };
    let Some(name) = string(kind) else {
        reader.notes.shape(kind, at.member("type"));
        return None;
    };
    let (own, _) = *FACTS.content.get(name.as_ref())?;
    // Text inside of a reasoning item is reasoning, whatever its part calls itself.
    let inner = reasons && own.item == ItemKind::Message;
    Some(if inner { sort } else { own })
}
