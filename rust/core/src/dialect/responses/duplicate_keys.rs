//! Reports duplicate object keys among the members that the decoder reads.
//!
//! Scans only the places where such members can occur, and does not interpret them.

use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::name_sets::Glance;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::responses::spec_tables::FACTS;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scanner;
use crate::json::members::Member;
use crate::json::members::Object;
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
    /// An item's content or summary.
    Parts,
    Part,
    /// A response's output: an array of items, or an object whose values are items.
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

    /// Returns the place of a member's value, if the value is an object or array that must be scanned.
    fn leads(self, kind: Kind, key: Key<'_>) -> Option<ValueKind> {
        match kind {
            Kind::Object | Kind::Array => self.inside(&key.name()),
            _ => None,
        }
    }

    fn inside(self, name: &str) -> Option<ValueKind> {
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

/// Maximum number of objects, and of lists, that are kept. A reader that needs another object or list parses it again.
const KEPT: usize = 64;

/// Initial capacity for members, which is sufficient for most items and parts.
const USUAL: usize = 8;

/// Objects and lists that were already parsed during the scan, so that readers do not have to parse them again.
#[derive(Debug, Default)]
pub(crate) struct Known<'a> {
    objects: Vec<Object<'a>>,
    lists: Vec<(Raw<'a>, Vec<Raw<'a>>)>,
}

impl<'a> Known<'a> {
    pub(crate) fn object(&self, raw: Raw<'a>) -> Option<Object<'a>> {
        let mut objects = self.objects.iter();
        objects.find(|known| is_same(known.raw, raw)).cloned()
    }

    pub(crate) fn items(&self, raw: Raw<'a>) -> Option<Vec<Raw<'a>>> {
        let mut lists = self.lists.iter();
        let known = lists.find(|(list, _)| is_same(*list, raw));
        known.map(|(_, items)| items.clone())
    }

    fn keep_object(&mut self, raw: Raw<'a>, members: Vec<Member<'a>>) {
        if self.objects.len() < KEPT {
            let wide_integer = false;
            self.objects.push(Object {
                raw,
                members,
                wide_integer,
            });
        }
    }

    fn keep_list(&mut self, raw: Raw<'a>, items: Vec<Raw<'a>>) {
        if self.lists.len() < KEPT {
            self.lists.push((raw, items));
        }
    }
}

/// Returns true if both are the same span of the payload, and not merely equal text.
fn is_same(one: Raw<'_>, other: Raw<'_>) -> bool {
    std::ptr::eq(one.text, other.text)
}

/// Reports duplicate keys; those inside a member's value come before the member's own key. Keeps the objects and lists
/// that it parses, because the caller is about to read them.
pub(crate) fn report_duplicates<'a>(
    out: &mut Output<'_>,
    members: &[Member<'a>],
    kind_of_value: ValueKind,
    known: &mut Known<'a>,
) -> ParseResult {
    let mut glance = Glance::default();
    let names = kind_of_value.names();
    for member in members {
        if let Some(inner) = kind_of_value.leads(member.raw.kind, member.key) {
            descend(out, &mut Scanner::again(member.raw.text), inner, known)?;
        }
        note(out, &mut glance, names, member.key)?;
    }
    Ok(())
}

/// Reports the key if the object already had it.
fn note(
    out: &mut Output<'_>,
    glance: &mut Glance,
    names: Option<&Names>,
    key: Key<'_>,
) -> ParseResult {
    if names.is_some_and(|names| names.note(glance, key)) {
        out.diagnose(Code::DUPLICATE_KEY, None, &key.name())?;
    }
    Ok(())
}

/// Parses the next value, including everything nested in it, in one pass. Returns `None` at the end of the text, which
/// cannot happen in valid JSON.
fn descend<'a>(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'a>,
    kind_of_value: ValueKind,
    known: &mut Known<'a>,
) -> Result<Option<Raw<'a>>, Fault> {
    let Ok(kind) = scanner.kind() else {
        return Ok(None);
    };
    let start = scanner.pos();
    let inner = match kind_of_value {
        ValueKind::Output => Some(ValueKind::Item),
        ValueKind::Parts => Some(ValueKind::Part),
        _ => None,
    };
    match (kind, inner) {
        (Kind::Array, Some(inner)) => {
            let list = list(out, scanner, inner, known)?;
            let raw = scanner.passed(start, kind);
            known.keep_list(raw, list);
            Ok(Some(raw))
        }
        (Kind::Object, _) if kind_of_value != ValueKind::Parts => {
            let members = object(out, scanner, kind_of_value, known)?;
            let raw = scanner.passed(start, kind);
            known.keep_object(raw, members);
            Ok(Some(raw))
        }
        _ => Ok(scanner.skip().ok()),
    }
}

fn object<'a>(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'a>,
    kind_of_value: ValueKind,
    known: &mut Known<'a>,
) -> Result<Vec<Member<'a>>, Fault> {
    let mut members = Vec::with_capacity(USUAL);
    let mut glance = Glance::default();
    let names = kind_of_value.names();
    if scanner.enter_object().is_err() {
        return Ok(members);
    }
    while let Ok(Some(key)) = scanner.next_key() {
        let inner = scanner
            .kind()
            .ok()
            .and_then(|kind| kind_of_value.leads(kind, key));
        let raw = match inner {
            Some(inner) => descend(out, scanner, inner, known)?,
            None => scanner.skip().ok(),
        };
        let Some(raw) = raw else { break };
        note(out, &mut glance, names, key)?;
        members.push(Member { key, raw });
    }
    Ok(members)
}

fn list<'a>(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'a>,
    kind_of_value: ValueKind,
    known: &mut Known<'a>,
) -> Result<Vec<Raw<'a>>, Fault> {
    let mut items = Vec::new();
    if scanner.enter_array().is_err() {
        return Ok(items);
    }
    while let Ok(true) = scanner.next_item() {
        let raw = match scanner.kind() {
            Ok(Kind::Object) => descend(out, scanner, kind_of_value, known)?,
            _ => scanner.skip().ok(),
        };
        let Some(raw) = raw else { break };
        items.push(raw);
    }
    Ok(items)
}
