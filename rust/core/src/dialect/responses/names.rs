//! Sets of member names, asked for every member of every event.

use crate::json::Key;
use crate::json::members::Member;

/// Names by their length: of one length there are few.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_length: Vec<Vec<(&'static str, u32)>>,
}

/// What the members of one object are, at a glance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Glance {
    /// Which names are there, by their numbers.
    seen: u64,
    /// One that is not in the set.
    pub(super) others: bool,
}

impl Names {
    /// At most 64 names, so that a word holds which of them were seen.
    pub(super) fn of(names: impl IntoIterator<Item = &'static str>) -> Names {
        let mut out = Names::default();
        let mut count = 0;
        for name in names {
            if out.place(name).is_some() {
                continue;
            }
            if out.by_length.len() <= name.len() {
                out.by_length.resize_with(name.len() + 1, Vec::new);
            }
            if let Some(row) = out.by_length.get_mut(name.len()) {
                row.push((name, count));
                count += 1;
            }
        }
        debug_assert!(count <= 64, "a set of names is too large");
        out
    }

    fn place(&self, name: &str) -> Option<u32> {
        let row = self.by_length.get(name.len())?;
        let found = row.iter().find(|(known, _)| *known == name);
        found.map(|(_, place)| *place)
    }

    #[inline]
    fn place_of(&self, key: Key<'_>) -> Option<u32> {
        if key.escaped {
            self.place(&key.name())
        } else {
            self.place(key.raw)
        }
    }

    pub(super) fn has(&self, key: Key<'_>) -> bool {
        self.place_of(key).is_some()
    }

    /// Notes a member; true where one of that name was there before.
    #[inline]
    pub(super) fn note(&self, glance: &mut Glance, key: Key<'_>) -> bool {
        let Some(place) = self.place_of(key) else {
            glance.others = true;
            return false;
        };
        let bit = 1_u64.checked_shl(place).unwrap_or_default();
        let again = glance.seen & bit != 0;
        glance.seen |= bit;
        again
    }

    /// Every member has one of these names.
    pub(super) fn cover(&self, members: &[Member<'_>]) -> bool {
        members.iter().all(|member| self.has(member.key))
    }
}
