//! Members that stand twice in their object, of those that the decoder looks at.
//!
//! Walks where read members can be, and nowhere else. Knows where they are; what they mean is the readers' business.

use super::facts::FACTS;
use super::names::{Glance, Names};
use crate::json::members::{Member, Object, items};
use crate::json::{Kind, Raw};
use crate::out::Out;
use crate::spec::Code;
use crate::wire::Step;

/// What stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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

/// So many objects are kept; a reader that asks for another one reads it again.
const KEPT: usize = 16;

/// Says which members stand twice. What is inside of one is said before it. Keeps the objects that it has read, since
/// whoever asked is about to read them.
pub(super) fn tell_repeated<'a>(
    out: &mut Out<'_>,
    members: &[Member<'a>],
    place: Place,
    read: &mut Vec<Object<'a>>,
) -> Step {
    let mut glance = Glance::default();
    let names = place.names();
    for member in members {
        if matches!(member.raw.kind, Kind::Object | Kind::Array)
            && let Some(inner) = place.inside(&member.key.name())
        {
            descend(out, member.raw, inner, read)?;
        }
        if names.is_some_and(|names| names.note(&mut glance, member.key)) {
            out.diagnose(Code::DUPLICATE_KEY, None, &member.key.name())?;
        }
    }
    Ok(())
}

fn descend<'a>(out: &mut Out<'_>, raw: Raw<'a>, place: Place, read: &mut Vec<Object<'a>>) -> Step {
    if place != Place::Parts
        && let Some(object) = Object::of(raw)
    {
        tell_repeated(out, &object.members, place, read)?;
        if read.len() < KEPT {
            read.push(object);
        }
        return Ok(());
    }
    let inner = match place {
        Place::Output => Place::Item,
        Place::Parts => Place::Part,
        _ => return Ok(()),
    };
    let objects = items(raw).into_iter();
    let mut objects = objects.filter(|item| item.kind == Kind::Object);
    objects.try_for_each(|item| descend(out, item, inner, read))
}
