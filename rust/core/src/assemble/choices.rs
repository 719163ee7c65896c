//! The choices of one stream: finds them by index and tracks whether any of them holds back accepted input.
//!
//! A caller selects a choice before changing it, so that `owe` has to recheck only that one.

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

/// Choices in order of first appearance; sorted by index at the end of the stream.
#[derive(Debug, Default)]
pub struct Choices {
    all: List<Choice>,
    /// Position of the choice that was selected last.
    at: usize,
    /// Positions of the other choices that hold back input.
    owing: Set<usize>,
    /// Set when all choices close, because any of them may change then. Caches the result of `owe`.
    ended: Option<Cell<Option<bool>>>,
}

impl Choices {
    #[inline]
    pub fn find(&self, index: i32) -> Option<&Choice> {
        self.all.find(index)
    }

    #[inline]
    pub fn place(&self, index: i32) -> Option<usize> {
        self.all.place(index)
    }

    /// Selects the choice with this index for changes.
    #[inline]
    pub fn turn_to(&mut self, index: i32) -> Option<&mut Choice> {
        let place = self.all.place(index)?;
        self.turn(place)
    }

    /// Adds a choice whose index is new, and returns its position.
    pub fn add(&mut self, choice: Choice) -> usize {
        self.all.push(choice)
    }

    /// Selects the choice at this position for changes.
    #[inline]
    pub fn turn(&mut self, place: usize) -> Option<&mut Choice> {
        if place != self.at || self.ended.is_some() {
            self.leave(place);
        }
        self.all.get_mut(place)
    }

    #[inline(never)]
    fn leave(&mut self, place: usize) {
        if self.ended.take().is_some() {
            let owing = self.all.iter().zip(0..);
            self.owing = owing
                .filter(|(one, _)| one.owes())
                .map(|(_, place)| place)
                .collect();
        } else if self.all.get(self.at).is_some_and(Choice::owes) {
            self.owing.insert(self.at);
        }
        self.owing.remove(&place);
        self.at = place;
    }

    /// Returns true if a choice holds back input that no event has shown.
    pub fn owe(&self) -> bool {
        let Some(ended) = &self.ended else {
            return !self.owing.is_empty() || self.all.get(self.at).is_some_and(Choice::owes);
        };
        let owe = ended
            .get()
            .unwrap_or_else(|| self.all.iter().any(Choice::owes));
        ended.set(Some(owe));
        owe
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.all.iter()
    }

    /// Iterates over all choices to close them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Choice> {
        self.ended = Some(Cell::default());
        self.all.iter_mut()
    }

    pub fn sort_by_key(&mut self, key: impl FnMut(&Choice) -> i32) {
        self.ended = Some(Cell::default());
        self.all.sort_by_key(key);
    }
}
