//! Computes the position of a part in its item, because `content_index` and `summary_index` in the events are
//! unreliable.
//!
//! Clients store the parts of an item in a list. Some gateways never reset the index, skip numbers, or use the same
//! number for two parts. The number in an event is therefore only a label for a part. The first part of an item has
//! position 0, the second part has position 1, and so on. An unknown label may still refer to a known part. A delta
//! with an unknown label belongs to the only part that was announced but has no text. A closing event with an unknown
//! label belongs to the only part that is still open. The module stores only indexes and channels.

use crate::dialect::responses::read::ItemAddress;
use crate::model::delta::Channel;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::mem;

/// Maximum number of messages that are tracked, and of parts in each message.
const REMEMBERED: usize = 4096;

/// The effect of an event on the part that it addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Open,
    Delta,
    Value,
    Close,
}

/// How much of a part has arrived. The variants are in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Opened,
    Text,
    Valued,
    Closed,
}

impl Purpose {
    /// Returns the stages that a part may have if an event addresses it by an unknown number (label).
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
    /// Positions of parts, by channel and label. The label of a part is the number that events use for it.
    named: Map<(Channel, i64), i64>,
    /// The channel of the part at each position, or `None` for a part of unknown type.
    taken: Map<i64, Option<Channel>>,
    stages: Map<i64, Stage>,
    at_stage: Map<(Channel, Stage), Set<i64>>,
    /// True if the message is complete. A part that opens now belongs to another message.
    is_over: bool,
}

impl Message {
    /// Returns the part of the channel that an event with an unknown label addresses. Returns `None` unless exactly one
    /// part is in a suitable stage.
    fn only_part(&self, channel: Channel, purpose: Purpose) -> Option<i64> {
        let stages = purpose.may_mean().iter();
        let mut found = stages
            .filter_map(|stage| self.at_stage.get(&(channel, *stage)))
            .filter(|positions| !positions.is_empty());
        let positions = found.next().filter(|positions| positions.len() == 1)?;
        if found.next().is_some() {
            return None;
        }
        positions.iter().next().copied()
    }

    /// Moves the part at a position to the stage that follows the event. A part never returns to an earlier stage.
    fn advance(&mut self, position: i64, channel: Channel, purpose: Purpose) {
        let (before, after) = (self.stages.get(&position).copied(), purpose.leads_to());
        if before.is_some_and(|before| before >= after) {
            return;
        }
        if let Some(before) = before
            && let Some(positions) = self.at_stage.get_mut(&(channel, before))
        {
            positions.remove(&position);
        }
        self.stages.insert(position, after);
        self.at_stage.slot((channel, after)).insert(position);
    }
}

/// The positions of parts in all messages of one stream.
#[derive(Debug, Default)]
pub(crate) struct ContentIndexes {
    by_id: Map<String, Message>,
    /// Messages without a known id.
    by_index: Map<i64, Message>,
    /// Ids of the messages in `by_id`, by output index.
    ids: Map<i64, String>,
    /// True if any label was reassigned to another part since the last call to `take_renamed`. Templates are not valid
    /// after a label was reassigned.
    renamed: bool,
}

/// The key under which a message is stored.
#[derive(Debug)]
enum MessageKey {
    Id(String),
    Index(i64),
}

impl ContentIndexes {
    /// Returns true if any label was reassigned to another part since the last call to this function.
    #[inline]
    pub(crate) fn take_renamed(&mut self) -> bool {
        mem::take(&mut self.renamed)
    }

    /// Starts a new message, and discards any message with the same id or index.
    pub(crate) fn begin(&mut self, item_address: &ItemAddress<'_>) {
        if let Some(id) = item_address.item_id.as_deref() {
            self.by_id.remove(id);
        }
        if let Some(index) = item_address.index {
            self.by_index.remove(&index);
            self.ids.remove(&index);
        }
        self.renamed = true;
    }

    /// Returns the position of the part that an event addresses, or `None` if the event has no index. If the label of
    /// an opening event refers to a closed part, the event addresses a new part.
    pub(crate) fn of(
        &mut self,
        item_address: &ItemAddress<'_>,
        channel: Channel,
        purpose: Purpose,
    ) -> Option<i64> {
        let opens = purpose == Purpose::Open;
        let before = self.known(item_address).filter(|_| opens);
        if before.is_some_and(|key| self.at(&key).is_some_and(|message| message.is_over)) {
            self.begin(item_address);
        }
        let sent = item_address.sub?;
        let Some(message) = self.message(item_address) else {
            return Some(sent);
        };
        let name = (channel, sent);
        let known = message.named.get(&name).copied();
        let closed = |position: &i64| message.stages.get(position) == Some(&Stage::Closed);
        let position = match known.filter(|position| !(opens && closed(position))) {
            Some(position) => position,
            None => {
                if message.named.len() >= REMEMBERED || message.taken.len() >= REMEMBERED {
                    return Some(sent);
                }
                let position = message.only_part(channel, purpose);
                let position = position.unwrap_or(message.taken.len() as i64);
                message.named.insert(name, position);
                message.taken.insert(position, Some(channel));
                position
            }
        };
        message.advance(position, channel, purpose);
        self.renamed |= known.is_some_and(|known| known != position);
        Some(position)
    }

    /// Reserves a position for a newly opened part of unknown type.
    pub(crate) fn skip(&mut self, item_address: &ItemAddress<'_>) {
        if item_address.sub.is_some()
            && let Some(message) = self.message(item_address)
            && message.taken.len() < REMEMBERED
        {
            let position = message.taken.len() as i64;
            message.taken.insert(position, None);
        }
    }

    /// Marks the message as complete, even though the terminal output may list the message again.
    pub(crate) fn finish(&mut self, item_address: &ItemAddress<'_>) {
        let key = self.known(item_address);
        if let Some(message) = key.and_then(|key| self.at(&key)) {
            message.is_over = true;
        }
    }

    /// Returns the position of the part that an element of a content list repeats. If the part at the position of the
    /// element has another channel, the position is treated as a label, because lists may omit empty parts.
    pub(crate) fn listed(
        &mut self,
        item_address: &ItemAddress<'_>,
        channel: Channel,
        position: i64,
    ) -> i64 {
        let key = self.known(item_address);
        let Some(message) = key.and_then(|key| self.at(&key)) else {
            return position;
        };
        if message.taken.get(&position) == Some(&Some(channel)) {
            return position;
        }
        let named = message.named.get(&(channel, position));
        named.copied().unwrap_or(position)
    }

    fn at(&mut self, key: &MessageKey) -> Option<&mut Message> {
        match key {
            MessageKey::Id(id) => self.by_id.get_mut(id),
            MessageKey::Index(index) => self.by_index.get_mut(index),
        }
    }

    fn known(&self, item_address: &ItemAddress<'_>) -> Option<MessageKey> {
        let id = item_address.item_id.as_deref();
        if let Some(id) = id.filter(|id| self.by_id.contains_key(*id)) {
            return Some(MessageKey::Id(id.to_owned()));
        }
        let index = item_address.index?;
        match self.ids.get(&index) {
            Some(other) => (id.is_none() && self.by_id.contains_key(other.as_str()))
                .then(|| MessageKey::Id(other.clone())),
            None => self
                .by_index
                .contains_key(&index)
                .then_some(MessageKey::Index(index)),
        }
    }

    /// Returns the message that an event addresses. Adds the message if it is new. Returns `None` if too many messages
    /// are stored or the event has neither an id nor an index.
    fn message(&mut self, item_address: &ItemAddress<'_>) -> Option<&mut Message> {
        let (known, id) = (self.known(item_address), item_address.item_id.as_deref());
        if known.is_none() && self.by_id.len() + self.by_index.len() >= REMEMBERED {
            return None;
        }
        let key = match (known, id, item_address.index) {
            // The message is known by its index, and its id arrives only now.
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
        if let (Some(id), Some(index)) = (id, item_address.index) {
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
