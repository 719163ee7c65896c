//! Computes the position of a part in its item, whatever `content_index` or `summary_index` the events carry.
//!
//! Clients keep the parts of an item in a list. Some gateways never reset the index, skip numbers, or use one number
//! for two parts. The number in an event is therefore only a label: the first part of an item has position 0, the next
//! one position 1. A label that was not seen before may still belong to a known part: a delta to the only announced
//! part without text, a close to the only part that is not closed. Only indexes and channels are stored.

use crate::dialect::responses::read::Whom;
use crate::model::delta::Channel;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::mem;

/// Maximum number of messages that are tracked, and of parts in each.
const REMEMBERED: usize = 4096;

/// What an event does to its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Open,
    Delta,
    Value,
    Close,
}

/// Lifecycle stage of a part, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Opened,
    Text,
    Valued,
    Closed,
}

impl Purpose {
    /// Returns the stages of the parts that an event with an unknown label may address.
    fn may_mean(self) -> &'static [Stage] {
        match self {
            Purpose::Open => &[],
            Purpose::Delta => &[Stage::Opened],
            Purpose::Value => &[Stage::Opened, Stage::Text],
            Purpose::Close => &[Stage::Opened, Stage::Text, Stage::Valued],
        }
    }

    fn leads_to(self) -> Stage {
        match self {
            Purpose::Open => Stage::Opened,
            Purpose::Delta => Stage::Text,
            Purpose::Value => Stage::Valued,
            Purpose::Close => Stage::Closed,
        }
    }
}

#[derive(Debug, Default)]
struct Message {
    /// Positions of parts, by channel and label.
    named: Map<(Channel, i64), i64>,
    /// Channel of the part at each position; `None` for a part of an unknown type.
    taken: Map<i64, Option<Channel>>,
    stages: Map<i64, Stage>,
    at_stage: Map<(Channel, Stage), Set<i64>>,
    /// True if the message is complete: a part that opens now belongs to another message.
    is_over: bool,
}

impl Message {
    /// Returns the part of the channel that an event with an unknown label addresses, if exactly one qualifies.
    fn only_part(&self, channel: Channel, purpose: Purpose) -> Option<i64> {
        let stages = purpose.may_mean().iter();
        let mut found = stages
            .filter_map(|stage| self.at_stage.get(&(channel, *stage)))
            .filter(|places| !places.is_empty());
        let places = found.next().filter(|places| places.len() == 1)?;
        if found.next().is_some() {
            return None;
        }
        places.iter().next().copied()
    }

    /// Advances the part at a position to the stage that the event leads to. A part never returns to an earlier stage.
    fn advance(&mut self, place: i64, channel: Channel, purpose: Purpose) {
        let (before, after) = (self.stages.get(&place).copied(), purpose.leads_to());
        if before.is_some_and(|before| before >= after) {
            return;
        }
        if let Some(before) = before
            && let Some(places) = self.at_stage.get_mut(&(channel, before))
        {
            places.remove(&place);
        }
        self.stages.insert(place, after);
        self.at_stage.slot((channel, after)).insert(place);
    }
}

/// Part positions of the messages of one stream.
#[derive(Debug, Default)]
pub(crate) struct ContentIndexes {
    by_id: Map<String, Message>,
    /// Messages whose id is not known.
    by_index: Map<i64, Message>,
    /// Ids of the messages in `by_id`, by output index.
    ids: Map<i64, String>,
    /// True if a label came to mean another part since the last `take_renamed`.
    renamed: bool,
}

/// Key under which a message is stored.
#[derive(Debug)]
enum MessageKey {
    Id(String),
    Index(i64),
}

impl ContentIndexes {
    /// Returns true if a label came to mean another part since the last call.
    #[inline]
    pub(crate) fn take_renamed(&mut self) -> bool {
        mem::take(&mut self.renamed)
    }

    /// Starts a new message: discards the messages stored under the same id and index.
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

    /// Returns the position of the part that an event addresses. With `Open`, a closed part with the same label is a
    /// different part.
    pub(crate) fn of(
        &mut self,
        whom: &Whom<'_>,
        channel: Channel,
        purpose: Purpose,
    ) -> Option<i64> {
        let opens = purpose == Purpose::Open;
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
        let closed = |place: &i64| message.stages.get(place) == Some(&Stage::Closed);
        let place = match known.filter(|place| !(opens && closed(place))) {
            Some(place) => place,
            None => {
                if message.named.len() >= REMEMBERED || message.taken.len() >= REMEMBERED {
                    return Some(sent);
                }
                let place = message.only_part(channel, purpose);
                let place = place.unwrap_or(message.taken.len() as i64);
                message.named.insert(name, place);
                message.taken.insert(place, Some(channel));
                place
            }
        };
        message.advance(place, channel, purpose);
        self.renamed |= known.is_some_and(|known| known != place);
        Some(place)
    }

    /// Reserves a position for a newly opened part of an unknown type.
    pub(crate) fn skip(&mut self, whom: &Whom<'_>) {
        if whom.sub.is_some()
            && let Some(message) = self.message(whom)
            && message.taken.len() < REMEMBERED
        {
            let place = message.taken.len() as i64;
            message.taken.insert(place, None);
        }
    }

    /// Marks the message as complete. The terminal output may still list it.
    pub(crate) fn finish(&mut self, whom: &Whom<'_>) {
        let key = self.known(whom);
        if let Some(message) = key.and_then(|key| self.at(&key)) {
            message.is_over = true;
        }
    }

    /// Returns the position of a part in an item's list: its index there, or the position of its label if only that
    /// fits (lists may leave out empty parts).
    pub(crate) fn listed(&mut self, whom: &Whom<'_>, channel: Channel, place: i64) -> i64 {
        let key = self.known(whom);
        let Some(message) = key.and_then(|key| self.at(&key)) else {
            return place;
        };
        if message.taken.get(&place) == Some(&Some(channel)) {
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

    /// Returns the message that an event addresses, and adds it if it is new. Returns `None` if too many messages are
    /// stored or the event has no address.
    fn message(&mut self, whom: &Whom<'_>) -> Option<&mut Message> {
        let (known, id) = (self.known(whom), whom.item_id.as_deref());
        if known.is_none() && self.by_id.len() + self.by_index.len() >= REMEMBERED {
            return None;
        }
        let key = match (known, id, whom.index) {
            // The id of a known message arrives late.
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
                self.renamed |= self.ids.remove(&index);
                MessageKey::Index(index)
            }
            (None, None, None) => return None,
        };
        if let (Some(id), Some(index)) = (id, whom.index) {
            self.renamed |= self.by_index.remove(&index);
            let before = self.ids.get(&index);
            if before.is_some_and(|before| before != id)
                || (before.is_none() && self.ids.len() < REMEMBERED)
            {
                self.renamed |= before.is_some();
                self.ids.insert(index, id.to_owned());
            }
        }
        self.at(&key)
    }
}
