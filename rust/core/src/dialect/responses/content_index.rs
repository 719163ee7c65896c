//! The position of a part in its item, whatever `content_index` or `summary_index` says.
//!
//! Clients keep the parts of an item in a list. Some gateways never reset the index, skip numbers, or use one number for
//! two parts, so the number that an event carries is a label: the first part of an item has position 0, the next one
//! position 1. A label that is not known yet may still belong to a known part: a delta to the only announced part without
//! text, a close to the only part that is not closed. Holds indexes and channels; no text and no part.

use crate::dialect::responses::read::Whom;
use crate::model::delta::Channel;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use std::mem;

/// Messages, and parts of each.
const REMEMBERED: usize = 4096;

/// What an event does with its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Open,
    Delta,
    Value,
    Close,
}

/// How far a part has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Opened,
    Text,
    Valued,
    Closed,
}

impl Purpose {
    /// The stages of the parts that an event with an unknown label may mean.
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
    /// By what the events call it.
    named: Map<(Channel, i64), i64>,
    /// `None`: a part of a type that nobody models.
    taken: Map<i64, Option<Channel>>,
    stages: Map<i64, Stage>,
    at_stage: Map<(Channel, Stage), Set<i64>>,
    /// What opens is a part of another one.
    is_over: bool,
}

impl Message {
    /// The one part of the channel that an event with an unknown label may mean.
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

    /// The part at the place gets to the stage that the event leads to; it never gets back to an earlier one.
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

    /// The position of the part that an event means. `Open`: a closed part of that label was another one.
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

    /// A part of a type that nobody models opens: it has a position, too.
    pub(crate) fn skip(&mut self, whom: &Whom<'_>) {
        if whom.sub.is_some()
            && let Some(message) = self.message(whom)
            && message.taken.len() < REMEMBERED
        {
            let place = message.taken.len() as i64;
            message.taken.insert(place, None);
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
