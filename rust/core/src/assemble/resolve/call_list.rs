//! An ordered set of calls or items. Adding or removing a call or item, counting them, and reading the first or last
//! one all take constant time.
//!
//! The set is a doubly linked list of numbers, so that neither finding the call of a fragment nor removing a call scans
//! all calls. A number that is removed and added again moves to the end.

/// Marks the end of the list. No call has a number this large, because so many calls would not fit in memory.
const NONE: u32 = u32::MAX;
/// The value of `before` for a number that is not in the list.
const ABSENT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

const LEFT: Link = Link {
    before: ABSENT,
    after: NONE,
};

/// The numbers of calls or items, in the order in which they were added.
#[derive(Clone, Debug)]
pub struct CallList {
    links: Vec<Link>,
    first: u32,
    last: u32,
    count: u32,
}

impl Default for CallList {
    fn default() -> CallList {
        CallList {
            links: Vec::new(),
            first: NONE,
            last: NONE,
            count: 0,
        }
    }
}

fn known(number: u32) -> Option<usize> {
    (number < ABSENT).then_some(number as usize)
}

impl CallList {
    fn link(&self, number: u32) -> Option<&Link> {
        self.links.get(known(number)?)
    }

    fn link_mut(&mut self, number: u32) -> Option<&mut Link> {
        self.links.get_mut(known(number)?)
    }

    pub fn contains(&self, number: usize) -> bool {
        let link = self.links.get(number);
        link.is_some_and(|link| link.before != ABSENT)
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn add(&mut self, number: usize) {
        let Some(short) = u32::try_from(number).ok().filter(|it| *it < ABSENT) else {
            return;
        };
        if self.contains(number) {
            return;
        }
        if self.links.len() <= number {
            // Reserve room for one number: a `Vec` that grows on demand starts with room for four, and most streams
            // have one call.
            self.links
                .reserve_exact(usize::from(self.links.is_empty()) * (number + 1));
            self.links.resize(number + 1, LEFT);
        }
        let before = self.last;
        if let Some(link) = self.links.get_mut(number) {
            *link = Link {
                before,
                after: NONE,
            };
        }
        match self.link_mut(before) {
            Some(link) => link.after = short,
            None => self.first = short,
        }
        self.last = short;
        self.count += 1;
    }

    pub fn remove(&mut self, number: usize) {
        if !self.contains(number) {
            return;
        }
        let Some(link) = self.links.get_mut(number) else {
            return;
        };
        let Link { before, after } = std::mem::replace(link, LEFT);
        match self.link_mut(before) {
            Some(link) => link.after = after,
            None => self.first = after,
        }
        match self.link_mut(after) {
            Some(link) => link.before = before,
            None => self.last = before,
        }
        self.count -= 1;
    }

    /// Removes all numbers, in time proportional to their count.
    pub fn clear(&mut self) {
        let mut next = std::mem::replace(&mut self.last, NONE);
        while let Some(link) = self.link_mut(next) {
            next = link.before;
            *link = LEFT;
        }
        self.first = NONE;
        self.count = 0;
    }

    pub fn set(&mut self, number: usize, present: bool) {
        if present {
            self.add(number);
        } else {
            self.remove(number);
        }
    }

    pub fn first(&self) -> Option<usize> {
        known(self.first)
    }

    pub fn last(&self) -> Option<usize> {
        known(self.last)
    }

    /// Iterates from the last number to the first.
    pub fn latest(&self) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.last;
        std::iter::from_fn(move || {
            let number = known(next)?;
            next = self.link(next).map_or(NONE, |link| link.before);
            Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CallList;

    #[test]
    fn a_number_added_again_moves_to_the_end() {
        let mut calls = CallList::default();
        for number in [3, 0, 2] {
            calls.add(number);
        }
        calls.add(0);
        assert_eq!(calls.latest().collect::<Vec<_>>(), [2, 0, 3]);
        calls.remove(0);
        calls.remove(7);
        assert_eq!(
            (calls.first(), calls.last(), calls.len()),
            (Some(3), Some(2), 2)
        );
        calls.set(0, true);
        assert_eq!(calls.latest().collect::<Vec<_>>(), [0, 2, 3]);
        let mut other = calls.clone();
        other.clear();
        assert_eq!((other.first(), other.last(), other.len()), (None, None, 0));
        other.add(2);
        assert_eq!(other.latest().collect::<Vec<_>>(), [2]);
        for number in [3, 2, 0] {
            calls.set(number, false);
        }
        assert_eq!((calls.first(), calls.last(), calls.len()), (None, None, 0));
    }
}
