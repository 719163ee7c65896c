//! Members that stand twice in their object, of those that the decoder looks at.
//!
//! Walks where read members can be, and nowhere else. Knows where they are; what they mean is the readers' business.

use crate::dialect::decode_context::Step;
use crate::dialect::responses::name_sets::Glance;
use crate::dialect::responses::name_sets::Names;
use crate::dialect::responses::spec_tables::FACTS;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::items;
use crate::model::output::Output;
use crate::model::spec::Code;

/// What stands there.
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
    /// The output of a response: items by whatever key.
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

    /// Where a member leads.
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

/// So many objects, and lists, are kept; a reader that asks for another one reads it again.
const KEPT: usize = 16;

/// What of a payload was walked through already: nobody has to find it again.
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
}

/// The same piece of the payload, not one that says the same.
fn is_same(one: Raw<'_>, other: Raw<'_>) -> bool {
    std::ptr::eq(one.text, other.text)
}

/// Says which members stand twice. What is inside of one is said before it. Keeps what it has read, since whoever asked is
/// about to read it.
pub(crate) fn tell_repeated<'a>(
    out: &mut Output<'_>,
    members: &[Member<'a>],
    place: Place,
    known: &mut Known<'a>,
) -> Step {
    let mut glance = Glance::default();
    let names = place.names();
    for member in members {
        if matches!(member.raw.kind, Kind::Object | Kind::Array)
            && let Some(inner) = place.inside(&member.key.name())
        {
            descend(out, member.raw, inner, known)?;
        }
        if names.is_some_and(|names| names.note(&mut glance, member.key)) {
            out.diagnose(Code::DUPLICATE_KEY, None, &member.key.name())?;
        }
    }
    Ok(())
}

fn descend<'a>(out: &mut Output<'_>, raw: Raw<'a>, place: Place, known: &mut Known<'a>) -> Step {
    if place != Place::Parts
        && let Some(object) = Object::of(raw)
    {
        tell_repeated(out, &object.members, place, known)?;
        if known.objects.len() < KEPT {
            known.objects.push(object);
        }
        return Ok(());
    }
    let inner = match place {
        Place::Output => Place::Item,
        Place::Parts => Place::Part,
        _ => return Ok(()),
    };
    let list = items(raw);
    let mut objects = list.iter().filter(|item| item.kind == Kind::Object);
    objects.try_for_each(|item| descend(out, *item, inner, known))?;
    if known.lists.len() < KEPT {
        known.lists.push((raw, list));
    }
    Ok(())
}
