//! The choices of one stream: found by their index, and whether one of them has taken something that no event has shown.
//!
//! Whoever changes a choice turns to it first, so that only that one has to be asked again. It knows no rule.

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

/// In order of first sight; at the end by index.
#[derive(Debug, Default)]
pub struct Choices {
    all: List<Choice>,
    /// The one that was turned to last.
    at: usize,
    /// The others that owe something.
    owing: Set<usize>,
    /// All of them came to their end; whether one owes something then, once it was asked.
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

    /// The choice of an index, to be changed.
    #[inline]
    pub fn turn_to(&mut self, index: i32) -> Option<&mut Choice> {
        let place = self.all.place(index)?;
        self.turn(place)
    }

    /// Adds the choice of an index that was not there; its place.
    pub fn add(&mut self, choice: Choice) -> usize {
        self.all.push(choice)
    }

    /// The choice at a place, to be changed.
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

    /// One of them owes something.
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

    /// All of them, which come to their end.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Choice> {
        self.ended = Some(Cell::default());
        self.all.iter_mut()
    }

    pub fn sort_by_key(&mut self, key: impl FnMut(&Choice) -> i32) {
        self.ended = Some(Cell::default());
        self.all.sort_by_key(key);
    }
}
