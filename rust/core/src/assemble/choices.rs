//! Stores the choices of one stream, finds them by index, and tracks whether any of them holds back input.
//!
//! A caller selects a choice before changing it, so `has_pending` needs to check only the selected choice again.

use crate::assemble::choice::Choice;
use crate::model::small_map::List;
use crate::model::small_map::Numbered;
use crate::model::small_map::Set;
use std::cell::Cell;

impl Numbered for Choice {
    type Number = i32;

    #[inline]
    fn number(&self) -> i32 {
        self.index
    }
}

/// The choices, in order of first appearance until they are sorted by index at the end of the stream.
#[derive(Debug, Default)]
pub struct Choices {
    all: List<Choice>,
    /// Position of the choice that was selected last.
    at: usize,
    /// Positions of the other choices that hold back input.
    pending: Set<usize>,
    /// `Some` while all choices may change without being selected. While it is `Some`, the cell caches the result of
    /// `has_pending`.
    ended: Option<Cell<Option<bool>>>,
}

impl Choices {
    #[inline]
    pub fn find(&self, index: i32) -> Option<&Choice> {
        self.all.find(index)
    }

    #[inline]
    pub fn position(&self, index: i32) -> Option<usize> {
        self.all.position(index)
    }

    /// Selects the choice with this index and returns it, so that the caller can change it.
    #[inline]
    pub fn turn_to(&mut self, index: i32) -> Option<&mut Choice> {
        let position = self.all.position(index)?;
        self.turn(position)
    }

    /// Adds a choice and returns its position. The list must not contain a choice with the same index.
    pub fn add(&mut self, choice: Choice) -> usize {
        self.all.push(choice)
    }

    /// Selects the choice at this position and returns it, so that the caller can change it.
    #[inline]
    pub fn turn(&mut self, position: usize) -> Option<&mut Choice> {
        if position != self.at || self.ended.is_some() {
            self.leave(position);
        }
        self.all.get_mut(position)
    }

    #[inline(never)]
    fn leave(&mut self, position: usize) {
        if self.ended.take().is_some() {
            let pending = self.all.iter().zip(0..);
            self.pending = pending
                .filter(|(one, _)| one.has_pending())
                .map(|(_, position)| position)
                .collect();
        } else if self.all.get(self.at).is_some_and(Choice::has_pending) {
            self.pending.insert(self.at);
        }
        self.pending.remove(&position);
        self.at = position;
    }

    /// Returns true if any choice still holds back input.
    pub fn has_pending(&self) -> bool {
        let Some(ended) = &self.ended else {
            return !self.pending.is_empty()
                || self.all.get(self.at).is_some_and(Choice::has_pending);
        };
        let has_pending = ended
            .get()
            .unwrap_or_else(|| self.all.iter().any(Choice::has_pending));
        ended.set(Some(has_pending));
        has_pending
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.all.iter()
    }

    /// Iterates over all choices, so that the caller can close them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Choice> {
        self.ended = Some(Cell::default());
        self.all.iter_mut()
    }

    pub fn sort_by_key(&mut self, key: impl FnMut(&Choice) -> i32) {
        self.ended = Some(Cell::default());
        self.all.sort_by_key(key);
    }
}
