//! The content of an item, or its summary, in every shape that it comes in: the parts that hold text, one by one.
//!
//! Knows the types of parts. What becomes of one is not decided here.

use super::facts::{FACTS, Sort};
use super::read::{Reader, rest};
use crate::json::members::{Object, is_string, items, string, text};
use crate::json::{Kind, Raw, Text};
use crate::leftovers::Leftovers;
use crate::notes::Pointer;
use crate::wire::Step;

/// One part that holds text.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    pub(super) sort: Sort,
    /// None: some bridges write the text alone.
    pub(super) part: Option<Object<'a>>,
    raw: Raw<'a>,
    pub(super) place: i64,
}

impl<'a> Piece<'a> {
    pub(super) fn text(&self, reader: &mut Reader<'_, '_, 'a>, at: Pointer<'_>) -> Option<Text<'a>> {
        match &self.part {
            Some(part) => reader.text(part, at, self.sort.member()),
            None => text(self.raw),
        }
    }

    /// What the part says beside its text.
    pub(super) fn rest(&self) -> Leftovers<'a> {
        let part = self.part.as_ref();
        part.map(|part| rest(part, &FACTS.part_fields))
            .unwrap_or_default()
    }
}

impl Sort {
    /// Where the text of a part of an item stands.
    fn member(self) -> &'static str {
        match self.channel {
            crate::delta::Channel::Refusal => "refusal",
            _ => "text",
        }
    }
}

/// What a content part is that came by itself, and where its text stands. None: a type that nobody models.
pub(super) fn sorted(part: &Object<'_>, default: Option<Sort>) -> Option<(Sort, &'static str)> {
    let kind = part.string("type");
    match FACTS.content.get(kind.as_deref().unwrap_or("output_text")) {
        Some((sort, member)) => Some((default.unwrap_or(*sort), *member)),
        None => default.map(|sort| (sort, "text")),
    }
}

/// Every part of an item that holds text, with the place where it stands.
pub(super) fn each_piece<'w, 'o, 'a>(
    item: &Object<'a>,
    at: Pointer<'_>,
    reader: &mut Reader<'w, 'o, 'a>,
    mut take: impl FnMut(&mut Reader<'w, 'o, 'a>, Piece<'a>, Pointer<'_>) -> Step,
) -> Step {
    let reasons = is_string(item.get("type"), "reasoning");
    let own = if reasons { Sort::RAW } else { Sort::TEXT };
    for (member, sort) in [("summary", Sort::SUMMARY), ("content", own)] {
        let Some(value) = item.present(member) else {
            continue;
        };
        let at = at.member(member);
        let parts = match value.kind {
            Kind::Array => items(value),
            Kind::String => vec![value],
            _ => {
                reader.notes.shape(value, at);
                continue;
            }
        };
        for (number, (raw, place)) in parts.into_iter().zip(0..).enumerate() {
            let at = at.item(number);
            let sort = match raw.kind {
                Kind::String => Some(sort),
                Kind::Object => None,
                _ => {
                    reader.notes.unless_null(raw, at);
                    continue;
                }
            };
            let part = Object::of(raw);
            let sort = sort.or_else(|| {
                let part = part.as_ref()?;
                sort_of(part, sort_in(member, reasons), reader, at)
            });
            if let Some(sort) = sort {
                let piece = Piece {
                    sort,
                    part,
                    raw,
                    place,
                };
                take(reader, piece, at)?;
            }
        }
    }
    Ok(())
}
