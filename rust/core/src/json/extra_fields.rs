//! Collects the members that streamweld does not model. The result is the text of one JSON object, which events contain
//! as metadata.
//!
//! The values stay raw JSON text, in wire order. Null members are omitted. If a key occurs at several levels, the value
//! at the innermost level is used.

use crate::json::Key;
use crate::json::Kind;
use crate::json::duplicate_keys::may_repeat;
use crate::json::members::Member;
use std::collections::HashMap;

/// Maximum number of stored chunk members. A stored member is not emitted again while it is unchanged.
///
/// Further members, and long members, are included in every event.
const REMEMBERED: usize = 64;
const LONGEST_KEY: usize = 256;
const LONGEST: usize = 4096;
/// Number of members up to which a linear search is used.
const FEW: usize = 16;

/// Collects the members of one object from several nesting levels. If a key occurs at several levels, the value at the
/// innermost level is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtraFields<'a> {
    pub(crate) members: Vec<Member<'a>>,
    /// Position of each key. The map is created when there are too many members for a linear search.
    positions: Option<HashMap<String, usize>>,
}

impl<'a> ExtraFields<'a> {
    /// Collects the members of one level.
    pub(crate) fn of(members: Vec<Member<'a>>) -> ExtraFields<'a> {
        let mut level = ExtraFields::default();
        if may_repeat(&members) {
            // Nulls are removed only after this loop, because the last value of a duplicate key replaces the earlier
            // values even if it is null.
            for member in members {
                level.add(member);
            }
            level.positions = None;
        } else {
            level.members = members;
        }
        level.members.retain(|member| member.raw.kind != Kind::Null);
        level
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds a member. The last value of a duplicate key is used, even if this value is null.
    pub(crate) fn add(&mut self, member: Member<'a>) {
        let position = self.position(member.key);
        match position.and_then(|at| self.members.get_mut(at)) {
            Some(known) => known.raw = member.raw,
            None => {
                if let Some(positions) = &mut self.positions {
                    positions.insert(member.key.name().into_owned(), self.members.len());
                }
                self.members.push(member);
            }
        }
    }

    fn position(&mut self, key: Key<'a>) -> Option<usize> {
        let name = key.name();
        if self.members.len() < FEW {
            return self
                .members
                .iter()
                .position(|known| known.key.name() == name);
        }
        let known = &self.members;
        let positions = self.positions.get_or_insert_with(|| {
            let names = known.iter().map(|known| known.key.name().into_owned());
            names.zip(0..).collect()
        });
        positions.get(name.as_ref()).copied()
    }

    /// Adds the members of a nested object.
    pub(crate) fn extend(&mut self, members: &[Member<'a>]) {
        if members.iter().all(|member| member.raw.kind == Kind::Null) {
            return;
        }
        let level = ExtraFields::of(members.to_vec());
        if self.members.is_empty() {
            *self = level;
            return;
        }
        for member in level.members {
            self.add(member);
        }
    }

    /// Returns these members combined with `later`, which takes precedence.
    pub(crate) fn and(&self, later: &ExtraFields<'a>) -> ExtraFields<'a> {
        let mut out = self.clone();
        out.extend(&later.members);
        out
    }

    /// Returns `{"key":raw,…}`, or `None` if there are no members.
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

/// Returns true if the text has at most `most` characters.
fn is_within(text: &str, most: usize) -> bool {
    text.len() <= most || text.chars().nth(most).is_none()
}

/// The last values of the members at one level. A stored member is included again only if its value changes.
#[derive(Debug, Default)]
pub(crate) struct LastSeen {
    members: Vec<(Box<str>, Box<str>)>,
}

impl LastSeen {
    /// Returns the members that are new or have changed since the previous call.
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
        let level = ExtraFields::of(members.to_vec());
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
