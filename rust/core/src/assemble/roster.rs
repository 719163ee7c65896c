//! An ordered set of calls with every question answered in one step: the first, the last, the last few, how many.
//!
//! A doubly linked list over small numbers, so that neither a fragment nor a removal ever walks over a thousand calls. A
//! call that leaves and comes back stands last. It knows nothing of what the numbers mean.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Link {
    before: Option<usize>,
    after: Option<usize>,
    present: bool,
}

/// Numbers in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    links: Vec<Link>,
    first: Option<usize>,
    last: Option<usize>,
    count: usize,
}

impl Roster {
    pub fn contains(&self, number: usize) -> bool {
        self.links.get(number).is_some_and(|link| link.present)
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn add(&mut self, number: usize) {
        if self.contains(number) {
            return;
        }
        if self.links.len() <= number {
            self.links.resize(number + 1, Link::default());
        }
        let before = self.last;
        if let Some(link) = self.links.get_mut(number) {
            *link = Link {
                before,
                after: None,
                present: true,
            };
        }
        match before.and_then(|before| self.links.get_mut(before)) {
            Some(link) => link.after = Some(number),
            None => self.first = Some(number),
        }
        self.last = Some(number);
        self.count += 1;
    }

    pub fn remove(&mut self, number: usize) {
        let Some(link) = self.links.get_mut(number).filter(|link| link.present) else {
            return;
        };
        let Link { before, after, .. } = *link;
        *link = Link::default();
        match before.and_then(|before| self.links.get_mut(before)) {
            Some(link) => link.after = after,
            None => self.first = after,
        }
        match after.and_then(|after| self.links.get_mut(after)) {
            Some(link) => link.before = before,
            None => self.last = before,
        }
        self.count -= 1;
    }

    /// Nobody is there any more. It costs what was added since the last time, whatever the numbers are.
    pub fn clear(&mut self) {
        let mut next = self.last.take();
        while let Some(link) = next.and_then(|number| self.links.get_mut(number)) {
            next = link.before;
            *link = Link::default();
        }
        self.first = None;
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
        self.first
    }

    pub fn last(&self) -> Option<usize> {
        self.last
    }

    /// From the last one backwards.
    pub fn latest(&self) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.last;
        std::iter::from_fn(move || {
            let number = next?;
            next = self.links.get(number).and_then(|link| link.before);
            Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Roster;

    #[test]
    fn a_number_that_comes_back_stands_last() {
        let mut roster = Roster::default();
        for number in [3, 0, 2] {
            roster.add(number);
        }
        roster.add(0);
        assert_eq!(roster.latest().collect::<Vec<_>>(), [2, 0, 3]);
        roster.remove(0);
        roster.remove(7);
        assert_eq!(
            (roster.first(), roster.last(), roster.len()),
            (Some(3), Some(2), 2)
        );
        roster.set(0, true);
        assert_eq!(roster.latest().collect::<Vec<_>>(), [0, 2, 3]);
        let mut other = roster.clone();
        other.clear();
        assert_eq!((other.first(), other.last(), other.len()), (None, None, 0));
        other.add(2);
        assert_eq!(other.latest().collect::<Vec<_>>(), [2]);
        for number in [3, 2, 0] {
            roster.set(number, false);
        }
        assert_eq!(
            (roster.first(), roster.last(), roster.len()),
            (None, None, 0)
        );
    }
}
