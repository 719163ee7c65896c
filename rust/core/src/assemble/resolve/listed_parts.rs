//! Matches the entries of an item's content list with the item's streamed parts. An entry is the text of one listed
//! part. This module compares only texts; it does not change parts.
//!
//! 1   If the entries and the streamed parts concatenate to the same text, they agree, regardless of how that text is
//!     divided.
//! 2a  A part that has been closed is matched with an entry that has the same text: the one at its position,
//!     otherwise the first free one.
//! 2b  If there is no such entry and other parts are still open, the part is matched with the start of an entry: the
//!     one at its position, otherwise the first free one. The open parts get the rest of that entry.
//! 2c  If neither 2a nor 2b applies, the part keeps its text. The entry at its position is then skipped, unless an open
//!     part has the same text as that entry.
//! 3   Open parts are matched with the remaining entries in order, equal texts first. An entry between two parts is
//!     added to the part before it. Entries at the end become new parts, or are added to the last part if its deltas
//!     had several sub-indexes.
//! 4   A part without an entry becomes empty, unless the entry at its position is empty. A part that contains late text
//!     keeps it, because the list may contain only the part that was closed before.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;

/// The facts about a streamed part that the matching uses.
#[derive(Debug)]
pub struct StreamedPart {
    pub text: String,
    /// The closing event of the part was emitted.
    pub done: bool,
    /// The deltas of the part had several sub-indexes.
    pub several_labels: bool,
    /// The part contains text that arrived after an earlier part was closed.
    pub is_late: bool,
}

/// The effect of the list on one streamed part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartUpdate {
    /// The part keeps its streamed text.
    Kept,
    /// The text of the part is replaced with this text.
    Text(String),
    /// The closing event of the part was emitted, but the list contains a different text for the part or omits it.
    Contradicted,
    /// The list does not contain the part.
    Left,
}

/// The streamed part to which an entry of the list is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    Part(usize),
    New,
    /// The entry is assigned to no part, and no part is created for it.
    Unassigned,
}

#[derive(Debug, Default)]
pub struct Plan {
    /// The effect of the list on each streamed part.
    pub updates: Vec<PartUpdate>,
    /// The streamed part to which each entry is assigned.
    pub assignments: Vec<Assignment>,
}

impl Plan {
    pub fn new(parts: &[StreamedPart], entries: &[&str]) -> Plan {
        let mut plan = Plan {
            updates: vec![PartUpdate::Kept; parts.len()],
            assignments: vec![Assignment::Unassigned; entries.len()],
        };
        let streamed: String = parts.iter().map(|part| part.text.as_str()).collect();
        if streamed == entries.concat() {
            plan.divide(parts, entries);
        } else if entries.iter().any(|text| !text.is_empty()) {
            let mut left = Vec::new();
            let free = plan.take_done(parts, entries, &mut left);
            plan.take_open(parts, &left, &free);
            plan.check_order(parts);
        }
        // An empty entry belongs to the part at its position, but does not change that part.
        for (position, (text, assignment)) in entries.iter().zip(&mut plan.assignments).enumerate()
        {
            if let Some(update) = plan.updates.get_mut(position)
                && text.is_empty()
            {
                *assignment = Assignment::Part(position);
                if *update == PartUpdate::Left {
                    *update = PartUpdate::Kept;
                }
            }
        }
        plan
    }

    /// Rule 1: assigns each entry to the part in which the entry starts.
    fn divide(&mut self, parts: &[StreamedPart], entries: &[&str]) {
        for (part, update) in parts.iter().zip(&mut self.updates) {
            if !(part.done || part.text.is_empty()) {
                *update = PartUpdate::Text(part.text.clone());
            }
        }
        if parts.is_empty() {
            return;
        }
        let mut part = 0;
        let mut end = parts.first().map_or(0, |part| part.text.len());
        let mut start = 0;
        for (text, assignment) in entries.iter().zip(&mut self.assignments) {
            while start >= end && part + 1 < parts.len() {
                part += 1;
                end += parts.get(part).map_or(0, |part| part.text.len());
            }
            *assignment = Assignment::Part(part);
            start += text.len();
        }
    }

    /// Rule 2: assigns entries to closed parts, and returns the positions of the entries that remain free. For each
    /// entry, stores in `left` the text that does not belong to a closed part.
    fn take_done<'a>(
        &mut self,
        parts: &[StreamedPart],
        entries: &[&'a str],
        left: &mut Vec<&'a str>,
    ) -> Vec<usize> {
        left.extend(entries);
        let mut free: Vec<bool> = entries.iter().map(|text| !text.is_empty()).collect();
        let done = || parts.iter().enumerate().filter(|(_, part)| part.done);
        let mut unequal = Vec::new();
        for (position, part) in done() {
            if entries.get(position) == Some(&part.text.as_str()) && !part.text.is_empty() {
                self.assign_part(position, position, &mut free);
            } else if !part.text.is_empty() {
                unequal.push(position);
            }
        }
        let mut by_text: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (entry, text) in entries.iter().enumerate() {
            if free.get(entry) == Some(&true) {
                by_text.entry(text).or_default().push_back(entry);
            }
        }
        let text_of = |position: usize| parts.get(position).map_or("", |part| part.text.as_str());
        unequal.retain(|position| {
            let same = by_text.get_mut(text_of(*position));
            let Some(entry) = same.and_then(VecDeque::pop_front) else {
                return true;
            };
            self.assign_part(*position, entry, &mut free);
            false
        });
        let open = parts.iter().filter(|part| !part.done);
        let open_texts: HashSet<&str> = open.map(|part| part.text.as_str()).collect();
        let any_open = !open_texts.is_empty();
        let mut first = 0;
        for position in unequal {
            while free.get(first) == Some(&false) {
                first += 1;
            }
            let here = Some(position).filter(|position| free.get(*position) == Some(&true));
            let entry =
                here.or_else(|| Some(first).filter(|entry| any_open && *entry < free.len()));
            let rest = entry.and_then(|entry| left.get(entry)?.strip_prefix(text_of(position)));
            match (entry, rest) {
                (Some(entry), Some(rest)) if any_open => {
                    if rest.is_empty() {
                        self.assign_part(position, entry, &mut free);
                    } else if let Some(text) = left.get_mut(entry) {
                        *text = rest;
                    }
                }
                _ => {
                    self.set_update(position, PartUpdate::Contradicted);
                    let fits_open = |entry: &usize| {
                        entries
                            .get(*entry)
                            .is_some_and(|text| open_texts.contains(text))
                    };
                    if let Some(entry) = here.filter(|entry| !fits_open(entry)) {
                        self.assign_part(position, entry, &mut free);
                    }
                }
            }
        }
        let free = free.iter().enumerate().filter(|(_, free)| **free);
        free.map(|(entry, _)| entry).collect()
    }

    /// Rules 3 and 4: assigns the remaining entries to open parts. `free` contains the positions of these entries. For
    /// each entry, `left` contains the text that does not belong to a closed part.
    fn take_open(&mut self, parts: &[StreamedPart], left: &[&str], free: &[usize]) {
        let open: Vec<usize> = (0..parts.len())
            .filter(|position| parts.get(*position).is_some_and(|part| !part.done))
            .collect();
        let text_of = |position: usize| parts.get(position).map_or("", |part| part.text.as_str());
        let open_texts: Vec<&str> = open.iter().map(|position| text_of(*position)).collect();
        let free_texts: Vec<&str> = free
            .iter()
            .filter_map(|entry| left.get(*entry))
            .copied()
            .collect();
        let is_late = |position: usize| parts.get(position).is_some_and(|part| part.is_late);
        let several =
            |position: &usize| parts.get(*position).is_some_and(|part| part.several_labels);
        let mut taken = 0;
        if open.len() > free.len() {
            let positions = matched(&free_texts, &open_texts);
            let mut positions = positions.into_iter().zip(free_texts).peekable();
            for (number, (&position, text)) in open.iter().zip(&open_texts).enumerate() {
                if let Some((_, sent_text)) = positions.next_if(|(matched, _)| *matched == number) {
                    self.set_update(position, PartUpdate::Text(sent_text.to_owned()));
                    self.assign(free.get(taken..=taken), Assignment::Part(position));
                    taken += 1;
                } else if !text.is_empty() {
                    // The list may show only the text before the part was closed, so the late text is kept.
                    let update = if is_late(position) {
                        PartUpdate::Contradicted
                    } else {
                        PartUpdate::Left
                    };
                    self.set_update(position, update);
                }
            }
            return;
        }
        let positions = matched(&open_texts, &free_texts);
        for (number, &position) in open.iter().enumerate() {
            let end = match (positions.get(number + 1), positions.get(number)) {
                (Some(next), _) => *next,
                (None, _) if several(&position) => free.len(),
                (None, last) => last.map_or(free.len(), |last| last + 1),
            };
            let sent_text = free_texts.get(taken..end).unwrap_or_default().concat();
            self.set_update(position, PartUpdate::Text(sent_text));
            self.assign(free.get(taken..end), Assignment::Part(position));
            taken = end;
        }
        self.assign(free.get(taken..), Assignment::New);
    }

    fn assign(&mut self, entries: Option<&[usize]>, assignment: Assignment) {
        for entry in entries.unwrap_or_default() {
            if let Some(slot) = self.assignments.get_mut(*entry) {
                *slot = assignment;
            }
        }
    }

    /// Marks closed parts as contradicted if the list contains the parts in another order, because a closed part cannot
    /// be moved.
    fn check_order(&mut self, parts: &[StreamedPart]) {
        let mut last = 0;
        for assignment in &self.assignments {
            let Assignment::Part(position) = *assignment else {
                continue;
            };
            if position < last {
                let is_done = parts.get(position).is_some_and(|part| part.done);
                let fixed = if is_done { position } else { last };
                if let Some(update) = self.updates.get_mut(fixed) {
                    *update = PartUpdate::Contradicted;
                }
            }
            last = last.max(position);
        }
    }

    fn assign_part(&mut self, position: usize, entry: usize, free: &mut [bool]) {
        if let (Some(assignment), Some(free)) =
            (self.assignments.get_mut(entry), free.get_mut(entry))
        {
            *assignment = Assignment::Part(position);
            *free = false;
        }
    }

    fn set_update(&mut self, position: usize, update: PartUpdate) {
        if let Some(slot) = self.updates.get_mut(position) {
            *slot = update;
        }
    }
}

/// Returns a position in the longer list `others` for each text of the shorter list `fewer`, in ascending order. Each
/// position is that of the first equal text that leaves enough positions for the other texts, or else the next free
/// position.
fn matched(fewer: &[&str], others: &[&str]) -> Vec<usize> {
    let mut by_text: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (position, text) in others.iter().enumerate() {
        by_text.entry(text).or_default().push_back(position);
    }
    let (mut next, mut spare) = (0, others.len() - fewer.len());
    let mut positions = Vec::with_capacity(fewer.len());
    for text in fewer {
        let mut position = next;
        if let Some(same) = by_text.get_mut(text) {
            while same.front().is_some_and(|position| *position < next) {
                same.pop_front();
            }
            if let Some(equal) = same.front().filter(|equal| **equal - next <= spare) {
                position = *equal;
            }
        }
        spare -= position - next;
        positions.push(position);
        next = position + 1;
    }
    positions
}
