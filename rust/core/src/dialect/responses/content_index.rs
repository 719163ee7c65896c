//! The place of a part in its message, whatever `content_index` calls it.
//!
//! The content of a whole message lists its parts by their places. Some gateways give two parts one `content_index`: then
//! the second has the next free place, and so has what comes behind it. Knows indexes and channels; no text and no part.

use crate::dialect::responses::read::Whom;
use crate::model::delta::Channel;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::mem;

/// Messages, and parts of each.
const REMEMBERED: usize = 4096;

#[derive(Debug, Default)]
struct Message {
    /// By what the events call it.
    named: Map<(Channel, i64), i64>,
    closed: Set<(Channel, i64)>,
    taken: Map<i64, Channel>,
    /// Behind all that are taken.
    next: i64,
    /// What opens is a part of another one.
    is_over: bool,
}

/// Those of one stream.
#[derive(Debug, Default)]
pub(crate) struct ContentIndexes {
    by_id: Map<String, Message>,
    /// Those of which no id is known.
    by_index: Map<i64, Message>,
    /// Of the others, by index.
    ids: Map<i64, String>,
    /// What had a name has it no longer.
    renamed: bool,
}

/// Under what a message is kept.
#[derive(Debug)]
enum MessageKey {
    Id(String),
    Index(i64),
}

impl ContentIndexes {
    /// Whether, since that was asked last, a name came to mean another part.
    #[inline]
    pub(crate) fn take_renamed(&mut self) -> bool {
        mem::take(&mut self.renamed)
    }

    /// A message is announced: what was under its id and its index is another one.
    pub(crate) fn begin(&mut self, whom: &Whom<'_>) {
        if let Some(id) = whom.item_id.as_deref() {
            self.by_id.remove(id);
        }
        if let Some(index) = whom.index {
            self.by_index.remove(&index);
            self.ids.remove(&index);
        }
        self.renamed = true;
    }

    /// The place of the part that an event speaks of. `opens`: a closed one of that name was another one.
    pub(crate) fn of(&mut self, whom: &Whom<'_>, channel: Channel, opens: bool) -> Option<i64> {
        let before = self.known(whom).filter(|_| opens);
        if before.is_some_and(|key| self.at(&key).is_some_and(|message| message.is_over)) {
            self.begin(whom);
        }
        let sent = whom.sub?;
        let Some(message) = self.message(whom) else {
            return Some(sent);
        };
        let name = (channel, sent);
        let known = message.named.get(&name).copied();
        let again = opens && message.closed.contains(&name);
        if known.is_some() && !again {
            return known;
        }
        if message.taken.len() >= REMEMBERED {
            return Some(sent);
        }
        let place = if message.taken.contains_key(&sent) {
            message.next
        } else {
            sent
        };
        message.named.insert(name, place);
        message.closed.remove(&name);
        message.taken.insert(place, channel);
        message.next = message.next.max(place.saturating_add(1));
        self.renamed |= known.is_some();
        Some(place)
    }

    /// The part is over, as far as events go.
    pub(crate) fn close(&mut self, whom: &Whom<'_>, channel: Channel) {
        let key = self.known(whom);
        if let Some(message) = key.and_then(|key| self.at(&key))
            && let Some(name) = whom.sub.map(|sub| (channel, sub))
            && message.named.contains_key(&name)
        {
            message.closed.insert(name);
        }
    }

    /// The message is over, as far as events go; a list may tell it again.
    pub(crate) fn finish(&mut self, whom: &Whom<'_>) {
        let key = self.known(whom);
        if let Some(message) = key.and_then(|key| self.at(&key)) {
            message.is_over = true;
        }
    }

    /// That of an entry of a list: its own, unless only a name of it fits (lists may leave empty parts out).
    pub(crate) fn listed(&mut self, whom: &Whom<'_>, channel: Channel, place: i64) -> i64 {
        let key = self.known(whom);
        let Some(message) = key.and_then(|key| self.at(&key)) else {
            return place;
        };
        if message.taken.get(&place) == Some(&channel) {
            return place;
        }
        let named = message.named.get(&(channel, place));
        named.copied().unwrap_or(place)
    }

    fn at(&mut self, key: &MessageKey) -> Option<&mut Message> {
        match key {
            MessageKey::Id(id) => self.by_id.get_mut(id),
            MessageKey::Index(index) => self.by_index.get_mut(index),
        }
    }

    fn known(&self, whom: &Whom<'_>) -> Option<MessageKey> {
        let id = whom.item_id.as_deref();
        if let Some(id) = id.filter(|id| self.by_id.contains_key(*id)) {
            return Some(MessageKey::Id(id.to_owned()));
        }
        let index = whom.index?;
        match self.ids.get(&index) {
            Some(other) => (id.is_none() && self.by_id.contains_key(other.as_str()))
                .then(|| MessageKey::Id(other.clone())),
            None => self
                .by_index
                .contains_key(&index)
                .then_some(MessageKey::Index(index)),
        }
    }

    /// The message that an event speaks of; `None` where there are too many, or it says nothing.
    fn message(&mut self, whom: &Whom<'_>) -> Option<&mut Message> {
        let (known, id) = (self.known(whom), whom.item_id.as_deref());
        if known.is_none() && self.by_id.len() + self.by_index.len() >= REMEMBERED {
            return None;
        }
        let key = match (known, id, whom.index) {
            // Its id comes late.
            (Some(MessageKey::Index(index)), Some(id), _) => {
                let message = mem::take(self.by_index.slot(index));
                self.by_index.remove(&index);
                self.by_id.insert(id.to_owned(), message);
                MessageKey::Id(id.to_owned())
            }
            (Some(key), ..) => key,
            (None, Some(id), _) => {
                self.by_id.insert(id.to_owned(), Message::default());
                MessageKey::Id(id.to_owned())
            }
            (None, None, Some(index)) => {
                self.by_index.insert(index, Message::default());
                self.ids.remove(&index);
                MessageKey::Index(index)
            }
            (None, None, None) => return None,
        };
        if let (Some(id), Some(index)) = (id, whom.index) {
            self.by_index.remove(&index);
            if self.ids.contains_key(&index) || self.ids.len() < REMEMBERED {
                self.ids.insert(index, id.to_owned());
            }
        }
        self.at(&key)
    }
}
