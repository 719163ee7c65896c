//! What the chunk-level members said last: what does not change is not said again.

use super::read::Member;
use crate::json::Kind;
pub(crate) use crate::leftovers::Leftovers;

/// How many chunk-level members are remembered; further ones are carried each time.
const REMEMBERED: usize = 64;

/// The last text of each.
#[derive(Debug, Default)]
pub(crate) struct LastSeen {
    members: Vec<(String, String)>,
}

impl LastSeen {
    /// The members that are new or say something else than before.
    pub(crate) fn fresh<'a>(&mut self, members: &[Member<'a>]) -> Leftovers<'a> {
        let unchanged = |member: &Member<'_>| {
            member.raw.kind == Kind::Null
                || self
                    .members
                    .iter()
                    .any(|(known, last)| member.key.is(known) && last == member.raw.text)
        };
        if members.iter().all(unchanged) {
            return Leftovers::default();
        }
        let mut level = Leftovers::default();
        level.extend(members);
        let mut out = Leftovers::default();
        let mut room = REMEMBERED.saturating_sub(self.members.len());
        for member in &level.members {
            let key = member.key.name();
            match self.members.iter_mut().find(|(known, _)| *known == key) {
                Some((_, last)) if last == member.raw.text => continue,
                Some((_, last)) => {
                    last.clear();
                    last.push_str(member.raw.text);
                }
                None if room > 0 => {
                    room -= 1;
                    let member = (key.into_owned(), member.raw.text.to_owned());
                    self.members.push(member);
                }
                None => {}
            }
            out.members.push(*member);
        }
        out
    }
}
