//! Members that nobody models, as the text of one JSON object that an event can carry.
//!
//! Raw texts in wire order; no value is built and none is interpreted. A null is not carried, an inner level wins.

use crate::json::Key;
use crate::json::Kind;
use crate::json::duplicate_keys::may_repeat;
use crate::json::members::Member;
use std::collections::HashMap;

/// How many chunk-level members are remembered; further ones are carried each time, and so are longer ones.
const REMEMBERED: usize = 64;
const LONGEST_KEY: usize = 256;
const LONGEST: usize = 4096;
/// Up to so many members are looked through one by one.
const FEW: usize = 16;

/// Members on their way into one object: a later level wins over an earlier one.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtraFields<'a> {
    pub(crate) members: Vec<Member<'a>>,
    /// Where each key stands, once there are too many to look through.
    places: Option<HashMap<String, usize>>,
}

impl<'a> ExtraFields<'a> {
    /// Of one level.
    pub(crate) fn of(members: &[Member<'a>]) -> ExtraFields<'a> {
        let mut out = ExtraFields::default();
        out.extend(members);
        out
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Of a repeated key the last one holds, a null too.
    pub(crate) fn add(&mut self, member: Member<'a>) {
        let place = self.place(member.key);
        match place.and_then(|at| self.members.get_mut(at)) {
            Some(known) => known.raw = member.raw,
            None => {
                if let Some(places) = &mut self.places {
                    places.insert(member.key.name().into_owned(), self.members.len());
                }
                self.members.push(member);
            }
        }
    }

    fn place(&mut self, key: Key<'a>) -> Option<usize> {
        let name = key.name();
        if self.members.len() < FEW {
            return self
                .members
                .iter()
                .position(|known| known.key.name() == name);
        }
        let known = &self.members;
        let places = self.places.get_or_insert_with(|| {
            let names = known.iter().map(|known| known.key.name().into_owned());
            names.zip(0..).collect()
        });
        places.get(name.as_ref()).copied()
    }

    /// The members of an inner level.
    pub(crate) fn extend(&mut self, members: &[Member<'a>]) {
        if members.iter().all(|member| member.raw.kind == Kind::Null) {
            return;
        }
        // Of a key that stands twice in one level a null may be the last.
        let mut level = ExtraFields::default();
        if may_repeat(members) {
            for member in members {
                level.add(*member);
            }
            level.places = None;
        } else {
            level.members.extend_from_slice(members);
        }
        level.members.retain(|member| member.raw.kind != Kind::Null);
        if self.members.is_empty() {
            *self = level;
            return;
        }
        for member in level.members {
            self.add(member);
        }
    }

    /// These and those; those win.
    pub(crate) fn and(&self, later: &ExtraFields<'a>) -> ExtraFields<'a> {
        let mut out = self.clone();
        out.extend(&later.members);
        out
    }

    /// `{"key":raw,…}`; `None` where there is nothing to carry.
    pub(crate) fn text(&self) -> Option<String> {
        if self.members.is_empty() {
            return None;
        }
        let length = self
            .members
            .iter()
            .map(|member| member.key.raw.len() + member.raw.text.len() + 4);
        let mut out = String::with_capacity(1 + length.sum::<usize>());
        for member in &self.members {
            out.push(if out.is_empty() { '{' } else { ',' });
            out.push('"');
            out.push_str(member.key.raw);
            out.push_str("\":");
            out.push_str(member.raw.text);
        }
        out.push('}');
        Some(out)
    }
}

/// Whether a text has no more characters than that.
fn is_within(text: &str, most: usize) -> bool {
    text.len() <= most || text.chars().nth(most).is_none()
}

/// What the members of a level said last: what does not change is not said again.
#[derive(Debug, Default)]
pub(crate) struct LastSeen {
    members: Vec<(Box<str>, Box<str>)>,
}

impl LastSeen {
    /// The members that are new or say something else than before.
    pub(crate) fn fresh<'a>(&mut self, members: &[Member<'a>]) -> ExtraFields<'a> {
        let unchanged = |member: &Member<'_>| {
            member.raw.kind == Kind::Null
                || self
                    .members
                    .iter()
                    .any(|(known, last)| member.key.is(known) && **last == *member.raw.text)
        };
        if members.iter().all(unchanged) {
            return ExtraFields::default();
        }
        let mut level = ExtraFields::default();
        level.extend(members);
        let mut out = ExtraFields::default();
        let mut room = REMEMBERED.saturating_sub(self.members.len());
        for member in &level.members {
            let key = member.key.name();
            let is_short = is_within(member.raw.text, LONGEST) && is_within(&key, LONGEST_KEY);
            match self.members.iter_mut().find(|(known, _)| **known == *key) {
                Some((_, last)) if **last == *member.raw.text => continue,
                Some((_, last)) => {
                    *last = if is_short { member.raw.text } else { "" }.into();
                }
                None if room > 0 && is_short => {
                    room -= 1;
                    let member = (key.into(), member.raw.text.into());
                    self.members.reserve_exact(1);
                    self.members.push(member);
                }
                None => {}
            }
            out.members.push(*member);
        }
        out
    }
}
