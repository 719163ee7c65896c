//! Matches the entries of an item's list with its streamed parts. Works on texts only: no events, no items.
//!
//! 1  If the parts and the entries join to the same text, they agree, however that text is divided.
//! 2  A part whose Done event was emitted takes the entry with its text: at its own position, otherwise the first free
//!    one. Without such an entry, and if parts are still open, it takes the start of an entry, at its position or the
//!    first free one, and the open parts get the rest. Otherwise it keeps its text, and the entry at its position is
//!    used up, unless an open part has that text.
//! 3  Open parts take the other entries in order, equal texts first. An entry between two parts joins the part before
//!    it. Entries at the end are new parts, or join the last part if its deltas came under several labels.
//! 4  A part without an entry becomes empty, unless an empty entry is at its position.

use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;

/// A streamed part.
#[derive(Debug)]
pub struct StreamedPart {
    pub text: String,
    /// Its Done event was emitted.
    pub done: bool,
    /// Its deltas came under several labels.
    pub several_labels: bool,
}

/// How the list changes one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The part keeps its streamed text.
    Kept,
    /// The part gets this text.
    Text(String),
    /// The part's Done event was emitted, but the list has another text for it or omits it.
    Contradicted,
    /// The list omits the part.
    Left,
}

/// The part that an entry belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    Part(usize),
    New,
    /// The entry belongs to no part, and none is created for it.
    Nowhere,
}

#[derive(Debug, Default)]
pub struct Plan {
    /// One verdict for each part.
    pub verdicts: Vec<Verdict>,
    /// One home for each entry.
    pub homes: Vec<Home>,
}

impl Plan {
    pub fn new(parts: &[StreamedPart], entries: &[&str]) -> Plan {
        let mut plan = Plan {
            verdicts: vec![Verdict::Kept; parts.len()],
            homes: vec![Home::Nowhere; entries.len()],
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
        // An empty entry does not change the part at its position.
        for (place, (text, home)) in entries.iter().zip(&mut plan.homes).enumerate() {
            if let Some(verdict) = plan.verdicts.get_mut(place)
                && text.is_empty()
            {
                *home = Home::Part(place);
                if *verdict == Verdict::Left {
                    *verdict = Verdict::Kept;
                }
            }
        }
        plan
    }

    /// Rule 1: assigns each entry to the part in which it starts.
    fn divide(&mut self, parts: &[StreamedPart], entries: &[&str]) {
        for (part, verdict) in parts.iter().zip(&mut self.verdicts) {
            if !(part.done || part.text.is_empty()) {
                *verdict = Verdict::Text(part.text.clone());
            }
        }
        if parts.is_empty() {
            return;
        }
        let mut part = 0;
        let mut end = parts.first().map_or(0, |part| part.text.len());
        let mut start = 0;
        for (text, home) in entries.iter().zip(&mut self.homes) {
            while start >= end && part + 1 < parts.len() {
                part += 1;
                end += parts.get(part).map_or(0, |part| part.text.len());
            }
            *home = Home::Part(part);
            start += text.len();
        }
    }

    /// Rule 2: assigns entries to closed parts. Returns the free entries and stores the remaining text of each in
    /// `left`.
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
        for (place, part) in done() {
            if entries.get(place) == Some(&part.text.as_str()) && !part.text.is_empty() {
                self.settle(place, place, &mut free);
            } else if !part.text.is_empty() {
                unequal.push(place);
            }
        }
        let mut by_text: HashMap<&str, VecDeque<usize>> = HashMap::new();
        for (entry, text) in entries.iter().enumerate() {
            if free.get(entry) == Some(&true) {
                by_text.entry(text).or_default().push_back(entry);
            }
        }
        let text_of = |place: usize| parts.get(place).map_or("", |part| part.text.as_str());
        unequal.retain(|place| {
            let same = by_text.get_mut(text_of(*place));
            let Some(entry) = same.and_then(VecDeque::pop_front) else {
                return true;
            };
            self.settle(*place, entry, &mut free);
            false
        });
        let open = parts.iter().filter(|part| !part.done);
        let open_texts: HashSet<&str> = open.map(|part| part.text.as_str()).collect();
        let any_open = !open_texts.is_empty();
        let mut first = 0;
        for place in unequal {
            while free.get(first) == Some(&false) {
                first += 1;
            }
            let here = Some(place).filter(|place| free.get(*place) == Some(&true));
            let entry =
                here.or_else(|| Some(first).filter(|entry| any_open && *entry < free.len()));
            let rest = entry.and_then(|entry| left.get(entry)?.strip_prefix(text_of(place)));
            match (entry, rest) {
                (Some(entry), Some(rest)) if any_open => {
                    if rest.is_empty() {
                        self.settle(place, entry, &mut free);
                    } else if let Some(text) = left.get_mut(entry) {
                        *text = rest;
                    }
                }
                _ => {
                    self.judge(place, Verdict::Contradicted);
                    let fits_open = |entry: &usize| {
                        entries
                            .get(*entry)
                            .is_some_and(|text| open_texts.contains(text))
                    };
                    if let Some(entry) = here.filter(|entry| !fits_open(entry)) {
                        self.settle(place, entry, &mut free);
                    }
                }
            }
        }
        let free = free.iter().enumerate().filter(|(_, free)| **free);
        free.map(|(entry, _)| entry).collect()
    }

    /// Rules 3 and 4: assigns entries to open parts. `free` lists the entries that no closed part took; `left` has the
    /// remaining text of each entry.
    fn take_open(&mut self, parts: &[StreamedPart], left: &[&str], free: &[usize]) {
        let open: Vec<usize> = (0..parts.len())
            .filter(|place| parts.get(*place).is_some_and(|part| !part.done))
            .collect();
        let text_of = |place: usize| parts.get(place).map_or("", |part| part.text.as_str());
        let open_texts: Vec<&str> = open.iter().map(|place| text_of(*place)).collect();
        let free_texts: Vec<&str> = free
            .iter()
            .filter_map(|entry| left.get(*entry))
            .copied()
            .collect();
        let several = |place: &usize| parts.get(*place).is_some_and(|part| part.several_labels);
        let mut taken = 0;
        if open.len() > free.len() {
            let places = matched(&free_texts, &open_texts);
            let mut places = places.into_iter().zip(free_texts).peekable();
            for (number, (&place, text)) in open.iter().zip(&open_texts).enumerate() {
                if let Some((_, told)) = places.next_if(|(matched, _)| *matched == number) {
                    self.judge(place, Verdict::Text(told.to_owned()));
                    self.give(free.get(taken..=taken), Home::Part(place));
                    taken += 1;
                } else if !text.is_empty() {
                    self.judge(place, Verdict::Left);
                }
            }
            return;
        }
        let places = matched(&open_texts, &free_texts);
        for (number, &place) in open.iter().enumerate() {
            let end = match (places.get(number + 1), places.get(number)) {
                (Some(next), _) => *next,
                (None, _) if several(&place) => free.len(),
                (None, last) => last.map_or(free.len(), |last| last + 1),
            };
            let told = free_texts.get(taken..end).unwrap_or_default().concat();
            self.judge(place, Verdict::Text(told));
            self.give(free.get(taken..end), Home::Part(place));
            taken = end;
        }
        self.give(free.get(taken..), Home::New);
    }

    fn give(&mut self, entries: Option<&[usize]>, home: Home) {
        for entry in entries.unwrap_or_default() {
            if let Some(slot) = self.homes.get_mut(*entry) {
                *slot = home;
            }
        }
    }

    /// Marks parts that the list has in another order as contradicted, because a closed part cannot move.
    fn check_order(&mut self, parts: &[StreamedPart]) {
        let mut last = 0;
        for home in &self.homes {
            let Home::Part(place) = *home else { continue };
            if place < last {
                let is_done = parts.get(place).is_some_and(|part| part.done);
                let fixed = if is_done { place } else { last };
                if let Some(verdict) = self.verdicts.get_mut(fixed) {
                    *verdict = Verdict::Contradicted;
                }
            }
            last = last.max(place);
        }
    }

    fn settle(&mut self, place: usize, entry: usize, free: &mut [bool]) {
        if let (Some(home), Some(free)) = (self.homes.get_mut(entry), free.get_mut(entry)) {
            *home = Home::Part(place);
            *free = false;
        }
    }

    fn judge(&mut self, place: usize, verdict: Verdict) {
        if let Some(slot) = self.verdicts.get_mut(place) {
            *slot = verdict;
        }
    }
}

/// Assigns each text of the shorter list, in order, to a position in the longer one: the first equal text that leaves
/// enough positions for the others, otherwise the next position.
fn matched(fewer: &[&str], others: &[&str]) -> Vec<usize> {
    let mut by_text: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (place, text) in others.iter().enumerate() {
        by_text.entry(text).or_default().push_back(place);
    }
    let (mut next, mut spare) = (0, others.len() - fewer.len());
    let mut places = Vec::with_capacity(fewer.len());
    for text in fewer {
        let mut place = next;
        if let Some(same) = by_text.get_mut(text) {
            while same.front().is_some_and(|place| *place < next) {
                same.pop_front();
            }
            if let Some(equal) = same.front().filter(|equal| **equal - next <= spare) {
                place = *equal;
            }
        }
        spare -= place - next;
        places.push(place);
        next = place + 1;
    }
    places
}
