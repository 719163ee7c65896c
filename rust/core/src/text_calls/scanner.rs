//! The text of one choice to blocks: finds markers, reads blocks, judges them, and tells how far the text is free.

use crate::text_calls::family::Family;
use crate::text_calls::family::Tier;
use crate::text_calls::layout::Layout;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::in_name;
use crate::text_calls::reading::is_blank;
use crate::text_calls::settings::After;
use crate::text_calls::settings::Marker;
use crate::text_calls::settings::Settings;
use crate::text_calls::values::Refusal;
use crate::text_calls::values::Tool;
use crate::text_calls::values::arguments;
use std::collections::HashMap;
use std::collections::HashSet;

/// What a scanner works with beside the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub settings: &'a Settings,
    /// None: names are not checked.
    pub tools: Option<&'a HashMap<String, Tool>>,
    pub max_calls: usize,
    pub max_bytes: usize,
}

/// A span of the text of a part, and the family that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub part: usize,
    pub family: String,
    pub start: usize,
    pub end: usize,
    /// The same in characters.
    pub characters: [usize; 2],
}

/// A whole block whose calls may be promoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub span: Span,
    /// The number of the part.
    pub part: u32,
    /// Name and arguments.
    pub calls: Vec<(String, String)>,
    /// The block as it was written.
    pub raw: String,
    after_prose: bool,
    is_bare: bool,
}

/// A block under way.
#[derive(Debug)]
struct Open {
    start: usize,
    marker: usize,
    after_prose: bool,
    is_bare: bool,
    /// The first family of the marker, by which a block without an end is called.
    family: usize,
    /// How far the families came that do not read it any more.
    reached: usize,
    /// By place of the family.
    readings: Vec<(usize, Reading)>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Text,
    Block(Open),
    /// Nothing is looked for any more.
    Off,
}

/// The text of one choice.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// Of the part at hand.
    pub text: String,
    part: usize,
    /// In the stream.
    number: u32,
    layout: Layout,
    state: State,
    /// Before it no marker begins that was not looked at.
    searched: usize,
    pub pending: Vec<Block>,
    /// Nothing but white space and ends of turn came behind the last of them.
    follows: bool,
    /// With the number of the part.
    pub refused: Vec<(Span, u32, Refusal)>,
    /// Text other than reasoning came: what has no marker can no longer begin.
    has_text: bool,
    /// Bytes of the part and the characters in them.
    counted: [usize; 2],
}

impl Scanner {
    /// Another part begins.
    pub fn start_part(&mut self, part: usize, number: u32, settings: &Settings) {
        self.layout.start_part(&self.text, &settings.words);
        self.text.clear();
        self.counted = [0, 0];
        self.part = part;
        self.number = number;
        self.searched = 0;
    }

    /// Looks at what is new in the text: how much of it is free. `over`: the part has ended.
    pub fn advance(&mut self, context: &Context<'_>, over: bool) -> usize {
        loop {
            let held = match std::mem::take(&mut self.state) {
                State::Off => {
                    self.state = State::Off;
                    Some(self.text.len())
                }
                State::Block(open) => self.read(open, context, over),
                State::Text => self.search(context, over),
            };
            if let Some(held) = held {
                let first = self
                    .pending
                    .iter()
                    .find(|block| block.span.part == self.part);
                let first = first.map_or(held, |block| held.min(block.span.start));
                let earlier = self
                    .pending
                    .iter()
                    .any(|block| block.span.part != self.part);
                return if earlier { 0 } else { first };
            }
        }
    }

    /// Nothing is held, and these pieces change nothing about that: no marker can begin in them.
    pub fn is_plain(&mut self, texts: &str, settings: &Settings) -> bool {
        match self.state {
            State::Off => return true,
            State::Block(_) => return false,
            State::Text if !self.pending.is_empty() || self.searched < self.text.len() => {
                return false;
            }
            State::Text => {}
        }
        if !self.has_text && !settings.bare.is_empty() {
            return false;
        }
        settings.firsts.iter().all(|first| {
            if first.is_ascii_alphanumeric() {
                self.line_starts_without(texts, *first)
            } else {
                memchr::memchr(*first, texts.as_bytes()).is_none()
            }
        })
    }

    /// No line of the text begins with that byte.
    fn line_starts_without(&self, texts: &str, first: u8) -> bool {
        let starts = |line: &str| {
            let line = line.trim_start_matches(is_blank);
            line.bytes().next() == Some(first)
        };
        let bytes = texts.as_bytes();
        // Backwards over white space only: the text may be long, and without any line end.
        let mut before = self.text.bytes().rev();
        let last = before.find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        let is_start = last.is_none_or(|byte| byte == b'\n');
        !(is_start && starts(texts))
            && memchr::memchr_iter(b'\n', bytes)
                .all(|at| !starts(texts.get(at + 1..).unwrap_or_default()))
    }

    /// Takes pieces of which `is_plain` is true.
    pub fn take_plain(&mut self, texts: &str) {
        self.text.push_str(texts);
        self.searched = self.text.len();
        self.has_text |= !texts.chars().all(is_blank);
    }

    // Text

    fn search(&mut self, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        if self.follows && !self.pending.is_empty() {
            return self.follow(context, over);
        }
        if !self.has_text && !settings.bare.is_empty() {
            match self.begin(settings, over) {
                Begin::Wait(held) => return Some(held),
                Begin::Opened => return None,
                Begin::Text => self.has_text = true,
            }
        }
        while let Some(place) = self.next_place(settings) {
            match self.marker_at(place, settings, over) {
                At::Marker(marker) => {
                    self.open(place, marker, settings);
                    return None;
                }
                At::Prefix => {
                    self.searched = place;
                    return Some(place);
                }
                At::Text => {
                    let next = self.text.get(place..).and_then(|rest| rest.chars().next());
                    self.searched = place + next.map_or(1, char::len_utf8);
                }
            }
        }
        self.searched = self.text.len();
        Some(self.text.len())
    }

    /// The next place at which a marker may begin.
    fn next_place(&self, settings: &Settings) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.searched..)?;
        let found = match settings.firsts.as_slice() {
            [one] => memchr::memchr(*one, rest),
            [one, two] => memchr::memchr2(*one, *two, rest),
            [one, two, three] => memchr::memchr3(*one, *two, *three, rest),
            firsts => rest.iter().position(|byte| firsts.contains(byte)),
        };
        found.map(|at| self.searched + at)
    }

    /// What begins at that place.
    fn marker_at(&mut self, place: usize, settings: &Settings, over: bool) -> At {
        let rest = self.text.get(place..).unwrap_or_default();
        let mut permitted = [None; 2];
        for (at, marker) in settings.markers.iter().enumerate() {
            let is_whole = rest.starts_with(marker.text.as_str());
            let is_prefix = !over && !is_whole && marker.text.starts_with(rest);
            if !(is_whole || is_prefix) {
                continue;
            }
            let slot = usize::from(marker.tier == Tier::Tag);
            let known = permitted.get(slot).copied().flatten();
            let may = known.unwrap_or_else(|| {
                self.layout
                    .permits(&self.text, place, marker.tier, &settings.words)
            });
            if let Some(slot) = permitted.get_mut(slot) {
                *slot = Some(may);
            }
            match (may, is_whole) {
                (true, true) => return At::Marker(at),
                (true, false) => return At::Prefix,
                (false, _) => {}
            }
        }
        At::Text
    }

    fn open(&mut self, place: usize, marker: usize, settings: &Settings) {
        if let Some(marker) = settings.markers.get(marker) {
            self.open_with(place, marker, settings);
        }
    }

    fn open_with(&mut self, place: usize, marker: &Marker, settings: &Settings) {
        let end = place + marker.text.len();
        let body = |family: &Family| end.saturating_sub(family.unread);
        let readings = marker.families.iter().filter_map(|at| {
            let family = settings.families.get(*at)?;
            Some((*at, Reading::new(body(family))))
        });
        self.has_text = true;
        self.state = State::Block(Open {
            start: place,
            marker: marker.text.len(),
            after_prose: self.layout.follows_prose(),
            is_bare: marker.tier == Tier::Markerless,
            family: marker.families.first().copied().unwrap_or_default(),
            reached: 0,
            readings: readings.collect(),
        });
    }

    /// The first text of the answer: what has no marker may begin there.
    fn begin(&mut self, settings: &Settings, over: bool) -> Begin {
        loop {
            let rest = self.text.get(self.searched..).unwrap_or_default();
            let text = rest.trim_start_matches(is_blank);
            let place = self.searched + rest.len() - text.len();
            if text.is_empty() {
                self.searched = place;
                return Begin::Wait(place);
            }
            let mut tags = settings.words.reasoning.iter();
            if let Some([open, close]) = tags.find(|[open, _]| text.starts_with(open.as_str())) {
                let Some(end) = text
                    .get(open.len()..)
                    .and_then(|text| text.find(close.as_str()))
                else {
                    return if over {
                        Begin::Text
                    } else {
                        Begin::Wait(self.text.len())
                    };
                };
                self.searched = place + open.len() + end + close.len();
                continue;
            }
            let mut tags = settings.words.reasoning.iter();
            if !over && tags.any(|[open, _]| open.starts_with(text)) {
                return Begin::Wait(place);
            }
            match self.marker_at(place, settings, over) {
                At::Marker(marker) => {
                    self.open(place, marker, settings);
                    return Begin::Opened;
                }
                At::Prefix => return Begin::Wait(place),
                At::Text => {}
            }
            let text = self.text.get(place..).unwrap_or_default();
            let mut bare: Vec<&Marker> = settings.bare.iter().collect();
            bare.retain(|marker| text.starts_with(marker.text.as_str()));
            let Some(marker) = bare.first().copied() else {
                return Begin::Text;
            };
            if !self
                .layout
                .permits(&self.text, place, Tier::Tag, &settings.words)
            {
                return Begin::Text;
            }
            self.open_with(place, marker, settings);
            return Begin::Opened;
        }
    }

    /// Behind a block: white space, ends of turn and further blocks; anything else shows that it was a quotation.
    fn follow(&mut self, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        loop {
            let rest = self.text.get(self.searched..).unwrap_or_default();
            let text = rest.trim_start_matches(is_blank);
            let place = self.searched + rest.len() - text.len();
            self.searched = place;
            if text.is_empty() {
                return Some(place);
            }
            let mut ends = settings.end_of_turn.iter();
            if let Some(end) = ends.find(|end| text.starts_with(end.as_str())) {
                self.searched = place + end.len();
                self.layout.pass_block(self.searched);
                continue;
            }
            let mut ends = settings.end_of_turn.iter();
            let may_end = !over && ends.any(|end| end.starts_with(text));
            match self.marker_at(place, settings, over) {
                At::Marker(marker) => {
                    self.open(place, marker, settings);
                    return None;
                }
                At::Prefix => return Some(place),
                At::Text if may_end => return Some(place),
                At::Text => {
                    self.text_follows_before(place, settings);
                    return None;
                }
            }
        }
    }

    fn text_follows(&mut self) {
        for block in std::mem::take(&mut self.pending) {
            self.refused
                .push((block.span, block.part, Refusal::TextFollows));
        }
    }

    // Blocks

    fn read(&mut self, mut open: Open, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        let too_long = self.text.len() - open.start > context.max_bytes;
        let first = open.family;
        let mut whole: Option<(usize, usize, Reading)> = None;
        let mut reached = 0;
        open.readings.retain_mut(|(at, reading)| {
            let Some(family) = settings.families.get(*at) else {
                return false;
            };
            match family.read_block(reading, &self.text) {
                Ok(end) => {
                    if whole.as_ref().is_none_or(|(known, ..)| end < *known) {
                        whole = Some((end, *at, std::mem::take(reading)));
                    }
                    false
                }
                Err(Stop::Cut) => true,
                Err(Stop::Broken) => {
                    reached = reached.max(reading.at);
                    false
                }
            }
        });
        open.reached = open.reached.max(reached);
        let reached = open.reached;
        if let Some((end, family, reading)) = whole {
            let span = self.span(settings, family, open.start, end);
            self.layout.pass_block(end);
            self.searched = end;
            if end - open.start > context.max_bytes {
                return self.give_up(span, Refusal::Limit, settings);
            }
            self.judge(span, reading, &open, context);
            return None;
        }
        let behind = open.start + open.marker;
        if open.readings.is_empty() {
            let matched = self.text.get(behind..reached).unwrap_or_default();
            let is_name = matched.chars().all(|c| is_blank(c) || in_name(c));
            if open.after_prose && is_name {
                self.searched = behind;
                return None;
            }
            let span = self.span(settings, first, open.start, behind);
            return self.give_up(span, Refusal::Malformed, settings);
        }
        if too_long {
            let span = self.span(settings, first, open.start, behind);
            return self.give_up(span, Refusal::Limit, settings);
        }
        if over {
            let span = self.span(settings, first, open.start, behind);
            self.searched = self.text.len();
            self.text_follows_before(span.start, settings);
            self.refused.push((span, self.number, Refusal::Cut));
            return None;
        }
        let held = open.start;
        self.state = State::Block(open);
        Some(held)
    }

    fn span(&mut self, settings: &Settings, family: usize, start: usize, end: usize) -> Span {
        let family = settings.families.get(family);
        Span {
            part: self.part,
            family: family.map(|family| family.name.clone()).unwrap_or_default(),
            start,
            end,
            characters: [self.characters(start), self.characters(end)],
        }
    }

    /// How many characters stand before that place.
    fn characters(&mut self, end: usize) -> usize {
        let [mut bytes, mut characters] = self.counted;
        if end < bytes {
            (bytes, characters) = (0, 0);
        }
        let more = self.text.get(bytes..end).unwrap_or_default();
        self.counted = [end, characters + more.chars().count()];
        let [_, characters] = self.counted;
        characters
    }

    fn give_up(&mut self, span: Span, why: Refusal, settings: &Settings) -> Option<usize> {
        self.text_follows_before(span.start, settings);
        self.refused.push((span, self.number, why));
        self.state = State::Off;
        None
    }

    /// Text that is no block begins there.
    fn text_follows_before(&mut self, place: usize, settings: &Settings) {
        if settings.after == After::End {
            self.text_follows();
        } else if self.follows {
            let last = self
                .pending
                .last()
                .filter(|block| block.span.part == self.part);
            let gap = last.and_then(|block| self.text.get(block.span.end..place));
            let gap = gap.unwrap_or("\n").to_owned();
            self.text_follows_in_line(&gap);
        }
        self.follows = false;
    }

    fn judge(&mut self, span: Span, reading: Reading, open: &Open, context: &Context<'_>) {
        let raw = self
            .text
            .get(span.start..span.end)
            .unwrap_or_default()
            .to_owned();
        let mut calls = Vec::with_capacity(reading.calls.len());
        let mut refusal = None;
        for found in reading.calls {
            let tool = context.tools.and_then(|tools| tools.get(&found.name));
            if context.tools.is_some() && tool.is_none() {
                refusal = Some(Refusal::UnknownName);
                break;
            }
            match arguments(&found, tool, open.is_bare && context.tools.is_some()) {
                Ok(arguments) => calls.push((found.name, arguments)),
                Err(why) => {
                    refusal = Some(why);
                    break;
                }
            }
        }
        let known: usize = self.pending.iter().map(|block| block.calls.len()).sum();
        match refusal {
            Some(why) => {
                self.text_follows_before(span.start, context.settings);
                self.refused.push((span, self.number, why));
            }
            None if known + calls.len() > context.max_calls => {
                self.text_follows_before(span.start, context.settings);
                self.refused.push((span, self.number, Refusal::Limit));
                self.state = State::Off;
            }
            None => {
                self.follows = true;
                self.pending.push(Block {
                    span,
                    part: self.number,
                    calls,
                    raw,
                    after_prose: open.after_prose,
                    is_bare: open.is_bare,
                });
            }
        }
    }

    /// Text that is no block follows the last one: blocks that stand in a line of prose are quotations, and what has no
    /// marker is the whole answer.
    fn text_follows_in_line(&mut self, gap: &str) {
        let mut is_on_line = !gap.contains('\n');
        let mut next: Option<(usize, usize)> = None;
        let mut refused = HashSet::new();
        for (place, block) in self.pending.iter().enumerate().rev() {
            if let Some((part, start)) = next {
                let gap = self.text.get(block.span.end..start).unwrap_or("\n");
                is_on_line &= part == block.span.part && part == self.part && !gap.contains('\n');
            }
            next = Some((block.span.part, block.span.start));
            if block.after_prose || block.is_bare || is_on_line {
                refused.insert(place);
            }
        }
        let blocks = std::mem::take(&mut self.pending).into_iter().enumerate();
        for (place, block) in blocks {
            if refused.contains(&place) {
                self.refused
                    .push((block.span, block.part, Refusal::TextFollows));
            } else {
                self.pending.push(block);
            }
        }
    }
}

/// What may begin without a marker.
enum Begin {
    Wait(usize),
    Opened,
    Text,
}

/// What begins at a place.
enum At {
    /// By its place in the list.
    Marker(usize),
    Prefix,
    Text,
}

impl Family {
    /// The block as far as the text goes: where it ends. A closer that may be missing is no part of it.
    fn read_block(&self, reading: &mut Reading, text: &str) -> Parse<usize> {
        self.grammar.read_block(reading, text, &self.close)?;
        Ok(reading.at)
    }
}
