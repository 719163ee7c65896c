//! Maps, sets, and lists that are usually small. Short collections are searched linearly, and long collections are
//! hashed.
//!
//! An empty map takes three words and no allocation. A hash table would take six words, and its first allocation would
//! have room for three entries. The maps and sets are unordered.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::ops::Deref;

/// Maximum number of entries that are searched linearly.
const FEW: usize = 8;

#[derive(Clone, Debug)]
enum Store<K, V> {
    Few(Vec<(K, V)>),
    #[allow(clippy::box_collection)] // boxed: a bare table would enlarge every map
    Many(Box<HashMap<K, V>>),
}

/// A map from keys to values.
#[derive(Clone, Debug)]
pub struct Map<K, V>(Store<K, V>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map(Store::Few(Vec::new()))
    }
}

impl<K: Eq + Hash, V> Map<K, V> {
    pub fn len(&self) -> usize {
        match &self.0 {
            Store::Few(list) => list.len(),
            Store::Many(table) => table.len(),
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        let (list, table) = match &self.0 {
            Store::Few(list) => (list.as_slice(), None),
            Store::Many(table) => (&[][..], Some(table)),
        };
        let hashed = table.into_iter().flat_map(|table| table.keys());
        list.iter().map(|(key, _)| key).chain(hashed)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        let (list, table) = match &self.0 {
            Store::Few(list) => (list.as_slice(), None),
            Store::Many(table) => (&[][..], Some(table)),
        };
        let hashed = table.into_iter().flat_map(|table| table.values());
        list.iter().map(|(_, value)| value).chain(hashed)
    }

    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match &self.0 {
            Store::Few(list) => {
                let mut list = list.iter();
                list.find(|(known, _)| known.borrow() == key)
                    .map(|(_, value)| value)
            }
            Store::Many(table) => table.get(key),
        }
    }

    /// Returns the stored key that equals `key`.
    pub fn key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&K>
    where
        K: Borrow<Q>,
    {
        match &self.0 {
            Store::Few(list) => {
                let mut known = list.iter().map(|(known, _)| known);
                known.find(|known| (*known).borrow() == key)
            }
            Store::Many(table) => table.get_key_value(key).map(|(known, _)| known),
        }
    }

    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.0 {
            Store::Few(list) => {
                let mut list = list.iter_mut();
                list.find(|(known, _)| known == key).map(|(_, value)| value)
            }
            Store::Many(table) => table.get_mut(key),
        }
    }

    pub fn contains_key<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Inserts or replaces a value. Returns true if the key is new.
    pub fn insert(&mut self, key: K, value: V) -> bool {
        if let Some(known) = self.get_mut(&key) {
            *known = value;
            return false;
        }
        self.make_room();
        match &mut self.0 {
            Store::Few(list) => list.push((key, value)),
            Store::Many(table) => _ = table.insert(key, value),
        }
        true
    }

    /// Reserves space for one more entry. If the list is full, switches to a hash table.
    fn make_room(&mut self) {
        let Store::Few(list) = &mut self.0 else {
            return;
        };
        if list.len() == FEW {
            self.0 = Store::Many(Box::new(mem::take(list).into_iter().collect()));
        } else if list.len() == list.capacity() {
            // The capacity grows to 1, 2, 4, and 8 entries. A `Vec` that grows on demand would start with a capacity of
            // four.
            list.reserve_exact(list.len().max(1));
        }
    }

    /// Returns the value of a key. If the map does not contain the key, inserts the default value first.
    pub fn slot(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let position = match &self.0 {
            Store::Few(list) => list.iter().position(|(known, _)| *known == key),
            Store::Many(_) => None,
        };
        if position.is_none() {
            self.make_room();
        }
        match &mut self.0 {
            Store::Many(table) => table.entry(key).or_default(),
            Store::Few(list) => {
                let position = position.unwrap_or(list.len());
                if position == list.len() {
                    list.push((key, V::default()));
                }
                // The lookup cannot panic, because the entry was just found or inserted.
                #[allow(clippy::indexing_slicing)]
                &mut list[position].1
            }
        }
    }

    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        match &mut self.0 {
            Store::Few(list) => {
                let position = list.iter().position(|(known, _)| known.borrow() == key);
                position
                    .map(|position| list.swap_remove(position))
                    .is_some()
            }
            Store::Many(table) => table.remove(key).is_some(),
        }
    }

    pub fn clear(&mut self) {
        *self = Map::default();
    }

    /// Moves all entries to another map.
    pub fn move_into(&mut self, into: &mut Map<K, V>) {
        match mem::take(self).0 {
            Store::Few(list) => list.into_iter().for_each(|(key, value)| {
                into.insert(key, value);
            }),
            Store::Many(table) => table.into_iter().for_each(|(key, value)| {
                into.insert(key, value);
            }),
        }
    }
}

/// A set of keys.
#[derive(Clone, Debug)]
pub struct Set<K>(Map<K, ()>);

impl<K> Default for Set<K> {
    fn default() -> Self {
        Set(Map::default())
    }
}

impl<K: Eq + Hash> Set<K> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = &K> {
        self.0.keys()
    }

    /// Inserts a key. Returns true if the key is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.0.insert(key, ())
    }

    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<K: Eq + Hash> FromIterator<K> for Set<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Set::default();
        keys.into_iter().for_each(|key| {
            set.insert(key);
        });
        set
    }
}

/// A value with a unique number.
pub trait Numbered {
    type Number: Copy + Eq + Hash;

    fn number(&self) -> Self::Number;
}

/// A list of values with unique numbers. A short list is searched linearly, and a long list is hashed.
#[derive(Clone, Debug)]
pub struct List<T: Numbered> {
    all: Vec<T>,
    /// The position of each number. The map is used when there are too many values for a linear search.
    #[allow(clippy::box_collection)] // boxed: a bare table would enlarge every list
    positions: Option<Box<HashMap<T::Number, usize>>>,
}

impl<T: Numbered> Default for List<T> {
    fn default() -> Self {
        List {
            all: Vec::new(),
            positions: None,
        }
    }
}

impl<T: Numbered> List<T> {
    #[inline]
    pub fn position(&self, number: T::Number) -> Option<usize> {
        match &self.positions {
            None => self.all.iter().position(|one| one.number() == number),
            Some(positions) => positions.get(&number).copied(),
        }
    }

    #[inline]
    pub fn find(&self, number: T::Number) -> Option<&T> {
        self.all.get(self.position(number)?)
    }

    /// Appends a value and returns its position. The list must not contain a value with the same number.
    pub fn push(&mut self, one: T) -> usize {
        let position = self.all.len();
        if position == FEW {
            self.positions = Some(Box::new(self.numbers()));
        }
        if let Some(positions) = &mut self.positions {
            positions.insert(one.number(), position);
        }
        // Reserve space for one value. Most lists have only one value, and a `Vec` that grows on demand starts with a
        // capacity of four.
        self.all.reserve_exact(usize::from(position == 0));
        self.all.push(one);
        position
    }

    /// Returns the value with this number. If there is no such value, appends `make()` first.
    pub fn slot(&mut self, number: T::Number, make: impl FnOnce() -> T) -> &mut T {
        let position = self.position(number);
        let position = position.unwrap_or_else(|| self.push(make()));
        // The lookup cannot panic, because the entry was just found or inserted.
        #[allow(clippy::indexing_slicing)]
        &mut self.all[position]
    }

    pub fn sort_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        self.all.sort_by_key(key);
        if self.positions.is_some() {
            self.positions = Some(Box::new(self.numbers()));
        }
    }

    #[inline]
    pub fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        self.all.get_mut(position)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.iter_mut()
    }

    pub fn clear(&mut self) {
        *self = List::default();
    }

    fn numbers(&self) -> HashMap<T::Number, usize> {
        self.all.iter().map(T::number).zip(0..).collect()
    }
}

impl<T: Numbered> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Numbered for i64 {
        type Number = i64;

        fn number(&self) -> i64 {
            self % 1000
        }
    }

    #[test]
    fn a_list_finds_by_number() {
        let mut list: List<i64> = List::default();
        for one in (0..40).rev() {
            assert_eq!(list.position(one), None);
            assert_eq!(*list.slot(one, || 1000 + one), 1000 + one);
            assert_eq!(*list.slot(one, || 0), 1000 + one);
            let found = (one..40).map(|number| list.find(number));
            assert!(found.flatten().copied().eq(1000 + one..1040));
        }
        list.sort_by_key(|one| *one);
        for one in 0..40 {
            assert_eq!((list.position(one), list.len()), (Some(one as usize), 40));
        }
        list.clear();
        assert!(list.is_empty() && list.position(1).is_none());
    }

    #[test]
    fn short_and_long_maps_behave_the_same() {
        let mut map: Map<String, usize> = Map::default();
        let mut model: HashMap<String, usize> = HashMap::new();
        for step in 0..400_usize {
            let key = (step * 7 % 23 % (1 + step / 8)).to_string();
            if step % 5 == 4 {
                assert_eq!(map.remove(key.as_str()), model.remove(&key).is_some());
            } else {
                assert_eq!(
                    map.insert(key.clone(), step),
                    model.insert(key, step).is_none()
                );
            }
            assert_eq!(map.len(), model.len());
            for key in (0..25).map(|key: usize| key.to_string()) {
                assert_eq!(map.get(key.as_str()), model.get(&key));
            }
        }
        assert!(model.len() > FEW);
        let mut other = Map::default();
        map.move_into(&mut other);
        assert_eq!((map.len(), other.len()), (0, model.len()));
        other.clear();
        assert_eq!(other.len(), 0);
    }
}
