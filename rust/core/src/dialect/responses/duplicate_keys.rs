//! Finds and reports duplicate object keys among the members that the decoder reads.
//!
//! The parser marks a payload that may have a duplicate key (`Place`). Only a marked payload is scanned again here. The
//! scan is limited to the places where the decoder reads members.

use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::name_sets::KeyBits;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::responses::spec_tables::FACTS;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Scanner;
use crate::json::members::Member;
use crate::json::members::Place;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::spec::Code;

/// The kind of value at a place in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Event,
    Response,
    Error,
    Details,
    Item,
    /// The list in an item's `content` or `summary`.
    Parts,
    Part,
    /// A response's `output`: an array of items, or an object whose values are items.
    Output,
}

impl ValueKind {
    fn names(self) -> Option<&'static Names> {
        Some(match self {
            ValueKind::Event => &FACTS.event_fields,
            ValueKind::Response => &FACTS.response_fields,
            ValueKind::Error => &FACTS.read_of_error,
            ValueKind::Details => &FACTS.read_of_details,
            ValueKind::Item => &FACTS.read_of_item,
            ValueKind::Part => &FACTS.part_fields,
            ValueKind::Parts | ValueKind::Output => return None,
        })
    }

    /// Returns the kind of the value of a member, or `None` if the decoder reads no keys in that value.
    fn leads(self, kind: Kind, key: Key<'_>) -> Option<ValueKind> {
        match kind {
            Kind::Object | Kind::Array => self.child(&key.name()),
            _ => None,
        }
    }

    fn child(self, name: &str) -> Option<ValueKind> {
        match (self, name) {
            (ValueKind::Event, "response") => Some(ValueKind::Response),
            (ValueKind::Response, "output") => Some(ValueKind::Output),
            (ValueKind::Event | ValueKind::Response, "error") => Some(ValueKind::Error),
            (ValueKind::Event | ValueKind::Response, "incomplete_details") => {
                Some(ValueKind::Details)
            }
            (ValueKind::Event | ValueKind::Response, "item") => Some(ValueKind::Item),
            (ValueKind::Event | ValueKind::Response, "part") => Some(ValueKind::Part),
            (ValueKind::Item, "content" | "summary") => Some(ValueKind::Parts),
            (ValueKind::Output, _) => Some(ValueKind::Item),
            _ => None,
        }
    }
}

impl Place for ValueKind {
    /// Like the inherent method of the same name, but also accepts a payload that is a complete response, with the
    /// output at the top level.
    fn child(self, key: Key<'_>) -> Option<ValueKind> {
        match (self, key.name().as_ref()) {
            (ValueKind::Event, "output") => Some(ValueKind::Output),
            (_, name) => ValueKind::child(self, name),
        }
    }

    fn item(self) -> Option<ValueKind> {
        match self {
            ValueKind::Output => Some(ValueKind::Item),
            ValueKind::Parts => Some(ValueKind::Part),
            _ => None,
        }
    }

    fn may_repeat(self, members: &[Member<'_>]) -> bool {
        let mut seen_bits = KeyBits::default();
        let names = self.names();
        names.is_some_and(|names| {
            let mut members = members.iter();
            members.any(|member| names.note(&mut seen_bits, member.key))
        })
    }
}

/// Reports duplicate keys. Duplicates inside a member's value are reported before a duplicate of the member's own key.
#[cold]
pub(crate) fn report_duplicates(
    out: &mut Output<'_>,
    members: &[Member<'_>],
    kind_of_value: ValueKind,
) -> ParseResult {
    let mut seen_bits = KeyBits::default();
    let names = kind_of_value.names();
    for member in members {
        if let Some(inner) = kind_of_value.leads(member.raw.kind, member.key) {
            descend(out, &mut Scanner::of_validated(member.raw.text), inner)?;
        }
        note(out, &mut seen_bits, names, member.key)?;
    }
    Ok(())
}

/// Reports the key if the decoder reads it and it occurred before in the same object.
fn note(
    out: &mut Output<'_>,
    seen_bits: &mut KeyBits,
    names: Option<&Names>,
    key: Key<'_>,
) -> ParseResult {
    if names.is_some_and(|names| names.note(seen_bits, key)) {
        out.diagnose(Code::DUPLICATE_KEY, None, &key.name())?;
    }
    Ok(())
}

/// Scans the next value and everything nested in it, in one pass. Returns false if the JSON is invalid, which cannot
/// happen, because the payload has already been validated.
fn descend(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'_>,
    kind_of_value: ValueKind,
) -> Result<bool, Fault> {
    match (scanner.kind(), kind_of_value.item()) {
        (Ok(Kind::Array), Some(inner)) => list(out, scanner, inner),
        (Ok(Kind::Object), _) if kind_of_value != ValueKind::Parts => {
            object(out, scanner, kind_of_value)
        }
        _ => Ok(scanner.skip().is_ok()),
    }
}

fn object(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'_>,
    kind_of_value: ValueKind,
) -> Result<bool, Fault> {
    let mut seen_bits = KeyBits::default();
    let names = kind_of_value.names();
    if scanner.enter_object().is_err() {
        return Ok(false);
    }
    while let Ok(Some(key)) = scanner.next_key() {
        let inner = scanner
            .kind()
            .ok()
            .and_then(|kind| kind_of_value.leads(kind, key));
        let is_whole = match inner {
            Some(inner) => descend(out, scanner, inner)?,
            None => scanner.skip().is_ok(),
        };
        if !is_whole {
            return Ok(false);
        }
        note(out, &mut seen_bits, names, key)?;
    }
    Ok(true)
}

fn list(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'_>,
    kind_of_value: ValueKind,
) -> Result<bool, Fault> {
    if scanner.enter_array().is_err() {
        return Ok(false);
    }
    while let Ok(true) = scanner.next_item() {
        let is_whole = match scanner.kind() {
            Ok(Kind::Object) => descend(out, scanner, kind_of_value)?,
            _ => scanner.skip().is_ok(),
        };
        if !is_whole {
            return Ok(false);
        }
    }
    Ok(true)
}
