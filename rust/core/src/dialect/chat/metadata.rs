//! Members that nobody models, as the text of one JSON object that an event can carry.
//!
//! Raw texts in wire order; no value is built and none is interpreted. A null is not carried.

use super::read::Member;
use crate::json::{Kind, Raw};

/// How many chunk-level members are remembered; further ones are carried each time.
const REMEMBERED: usize = 64;

/// Members on their way into one object: a later level wins over an earlier one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leftovers<'a> {
    members: Vec<Member<'a>>,
}

impl<'a> Leftovers<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(crate) fn add(&mut self, member: Member<'a>) {
        if member.raw.kind == Kind::Null {
            return;
        }
        let name = member.key.name();
        match self
            .members
            .iter_mut()
            .find(|known| known.key.name() == name)
        {
            Some(known) => known.raw = member.raw,
            None => self.members.push(member),
        }
    }

    pub(crate) fn extend(&mut self, members: &[Member<'a>]) {
        for member in members {
            self.add(*member);
        }
    }

    /// These and those; those win.
    pub(crate) fn and(&self, later: &Leftovers<'a>) -> Leftovers<'a> {
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

/// An object with one member of that (plain) name.
pub(crate) fn single(name: &str, raw: Raw<'_>) -> String {
    format!("{{\"{name}\":{}}}", raw.text)
}

/// What the chunk-level members said last: what does not change is not said again.
#[derive(Debug, Default)]
pub(crate) struct LastSeen {
    members: Vec<(String, String)>,
}

impl LastSeen {
    /// The members that are new or say something else than before.
    pub(crate) fn fresh<'a>(&mut self, members: &[Member<'a>]) -> Leftovers<'a> {
        let mut out = Leftovers::default();
        let room = self.members.len() < REMEMBERED;
        for member in members
            .iter()
            .filter(|member| member.raw.kind != Kind::Null)
        {
            let key = member.key.name();
            match self.members.iter_mut().find(|(known, _)| *known == key) {
                Some((_, last)) if last == member.raw.text => continue,
                Some((_, last)) => {
                    last.clear();
                    last.push_str(member.raw.text);
                }
                None if room => {
                    self.members
                        .push((key.into_owned(), member.raw.text.to_owned()));
                }
                None => {}
            }
            out.add(*member);
        }
        out
    }
}
