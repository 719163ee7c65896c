//! Reports duplicate object keys among the members that the decoder reads.
//!
//! Scans only the places where such members can be, and does not interpret them.

use crate::dialect::decode_context::Step;
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

/// Kind of value at a place in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Event,
    Response,
    Error,
    Details,
    Item,
    /// The content or the summary of an item.
    Parts,
    Part,
    /// The output of a response: an array of items, or an object whose values are items.
    Output,
}

impl Place {
    fn names(self) -> Option<&'static Names> {
        Some(match self {
            Place::Event => &FACTS.event_fields,
            Place::Response => &FACTS.response_fields,
            Place::Error => &FACTS.read_of_error,
            Place::Details => &FACTS.read_of_details,
            Place::Item => &FACTS.read_of_item,
            Place::Part => &FACTS.part_fields,
            Place::Parts | Place::Output => return None,
        })
    }

    /// Returns the place of a member's value, if the value is an object or array that is scanned.
    fn leads(self, kind: Kind, key: Key<'_>) -> Option<Place> {
        match kind {
            Kind::Object | Kind::Array => self.inside(&key.name()),
            _ => None,
        }
    }

    fn inside(self, name: &str) -> Option<Place> {
        match (self, name) {
            (Place::Event, "response") => Some(Place::Response),
            (Place::Response, "output") => Some(Place::Output),
            (Place::Event | Place::Response, "error") => Some(Place::Error),
            (Place::Event | Place::Response, "incomplete_details") => Some(Place::Details),
            (Place::Event | Place::Response, "item") => Some(Place::Item),
            (Place::Event | Place::Response, "part") => Some(Place::Part),
            (Place::Item, "content" | "summary") => Some(Place::Parts),
            (Place::Output, _) => Some(Place::Item),
            _ => None,
        }
    }
}

/// Maximum number of objects, and of lists, that are kept. A reader that needs another one parses it again.
const KEPT: usize = 64;

/// Initial capacity for members, sufficient for most items and parts.
const USUAL: usize = 8;

/// Objects and lists already parsed during the scan, so that readers do not parse them again.
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

/// Returns true if both are the same span of the payload, not merely equal text.
fn is_same(one: Raw<'_>, other: Raw<'_>) -> bool {
    std::ptr::eq(one.text, other.text)
}

/// Reports duplicate keys, those inside a member's value before the member's own. Keeps the objects and lists it
/// parses, because the caller is about to read them.
pub(crate) fn tell_repeated<'a>(
    out: &mut Output<'_>,
    members: &[Member<'a>],
    place: Place,
    known: &mut Known<'a>,
) -> Step {
    let mut glance = Glance::default();
    let names = place.names();
    for member in members {
        if let Some(inner) = place.leads(member.raw.kind, member.key) {
            descend(out, &mut Scanner::again(member.raw.text), inner, known)?;
        }
        note(out, &mut glance, names, member.key)?;
    }
    Ok(())
}

/// Reports the key if the object already had it.
fn note(out: &mut Output<'_>, glance: &mut Glance, names: Option<&Names>, key: Key<'_>) -> Step {
    if names.is_some_and(|names| names.note(glance, key)) {
        out.diagnose(Code::DUPLICATE_KEY, None, &key.name())?;
    }
    Ok(())
}

/// Parses the next value, with everything nested in it, in one pass. Returns `None` at the end of the text, which
/// cannot happen in valid JSON.
fn descend<'a>(
    out: &mut Output<'_>,
    scanner: &mut Scanner<'a>,
    place: Place,
    known: &mut Known<'a>,
) -> Result<Option<Raw<'a>>, Fault> {
    let Ok(kind) = scanner.kind() else {
        return Ok(None);
    };
    let start = scanner.pos();
    let inner = match place {
        Place::Output => Some(Place::Item),
        Place::Parts => Some(Place::Part),
        _ => None,
    };
    match (kind, inner) {
        (Kind::Array, Some(inner)) => {
            let list = list(out, scanner, inner, known)?;
            let raw = scanner.passed(start, kind);
            known.keep_list(raw, list);
            Ok(Some(raw))
        }
        (Kind::Object, _) if place != Place::Parts => {
            let members = object(out, scanner, place, known)?;
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
    place: Place,
    known: &mut Known<'a>,
) -> Result<Vec<Member<'a>>, Fault> {
    let mut members = Vec::with_capacity(USUAL);
    let mut glance = Glance::default();
    let names = place.names();
    if scanner.enter_object().is_err() {
        return Ok(members);
    }
    while let Ok(Some(key)) = scanner.next_key() {
        let inner = scanner.kind().ok().and_then(|kind| place.leads(kind, key));
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
    place: Place,
    known: &mut Known<'a>,
) -> Result<Vec<Raw<'a>>, Fault> {
    let mut items = Vec::new();
    if scanner.enter_array().is_err() {
        return Ok(items);
    }
    while let Ok(true) = scanner.next_item() {
        let raw = match scanner.kind() {
            Ok(Kind::Object) => descend(out, scanner, place, known)?,
            _ => scanner.skip().ok(),
        };
        let Some(raw) = raw else { break };
        items.push(raw);
    }
    Ok(items)
}
