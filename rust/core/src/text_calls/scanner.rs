//! The text of one choice to blocks: finds markers, reads blocks, judges them, and tells how far the text is free.

use crate::text_calls::entry::Close;
use crate::text_calls::family::Family;
use crate::text_calls::family::Tier;
use crate::text_calls::layout::Layout;
use crate::text_calls::layout::Stand;
use crate::text_calls::reading::Found;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Stop;
use crate::text_calls::reading::is_blank;
use crate::text_calls::settings::After;
use crate::text_calls::settings::Marker;
use crate::text_calls::settings::Settings;
use crate::text_calls::values::Refusal;
use crate::text_calls::values::Tool;
use crate::text_calls::values::arguments;
use std::collections::HashMap;

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
    /// The line on which it began.
    line: usize,
    /// What may still close it.
    closer: Option<String>,
}

/// A block under way.
#[derive(Debug)]
struct Open {
    start: usize,
    marker: usize,
    after_prose: bool,
    line: usize,
    /// The first family of the marker, by which a block without an end is called.
    family: usize,
    /// A family that does not read it any more had read more than a name.
    has_matched: bool,
    /// By place of the family.
    readings: Vec<(usize, Reading)>,
}

#[derive(Debug, Default)]
enum State {
    /// Outside of blocks.
    #[default]
    Text,
    Block(Open),
    /// Nothing but white space and ends of turn since the last block.
    After,
    /// Text to the end of the choice.
    Off,
}

/// The text of one choice.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// Of the part at hand.
    pub text: String,
    part: u32,
    layout: Layout,
    state: State,
    /// Before it no marker begins that was not looked at.
    searched: usize,
    pub pending: Vec<Block>,
    /// With the number of the part.
    pub refused: Vec<(Span, u32, Refusal)>,
    /// Bytes of the part and the characters in them.
    counted: [usize; 2],
}

impl Scanner {
    /// Another part begins.
    pub fn start_part(&mut self, part: u32, settings: &Settings) {
        self.layout.start_part(&self.text, &settings.words);
        self.text.clear();
        self.counted = [0, 0];
        self.part = part;
        self.searched = 0;
    }

    /// What comes is text to the end of the choice.
    pub fn turn_off(&mut self) {
        self.state = State::Off;
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
                State::After => self.follow(context, over),
                State::Text => self.search(context, over),
            };
            if let Some(held) = held {
                let first = self.pending.iter().find(|block| block.part == self.part);
                let first = first.map_or(held, |block| held.min(block.span.start));
                let earlier = self.pending.iter().any(|block| block.part != self.part);
                return if earlier { 0 } else { first };
            }
        }
    }

    /// Nothing is held, and more text changes nothing about that where no marker begins in it.
    pub fn is_idle(&self, settings: &Settings) -> bool {
        match self.state {
            State::Off => true,
            State::Text => {
                let is_free = self.pending.is_empty() && self.searched == self.text.len();
                is_free && !self.is_fresh(settings)
            }
            State::Block(_) | State::After => false,
        }
    }

    /// A marker may come next that must start a line.
    pub fn is_at_line_start(&self, settings: &Settings) -> bool {
        !settings.line_firsts.is_empty() && self.begins_line(self.text.len(), settings)
    }

    /// No marker can begin in this text, which comes next.
    pub fn is_plain(
        &self,
        text: &str,
        extent: Extent,
        is_at_line_start: bool,
        settings: &Settings,
    ) -> bool {
        let bytes = text.as_bytes();
        matches!(self.state, State::Off)
            || ((!is_at_line_start || !begins_marker(bytes, extent, settings))
                && (!settings.marks.is_in(bytes) || has_no_marker(bytes, extent, settings)))
    }

    /// Only white space stands before the place on its line, or what counts as the beginning of one.
    fn begins_line(&self, place: usize, settings: &Settings) -> bool {
        // Backwards over white space only: the text may be long, and without any line end.
        let before = self.text.as_bytes().get(..place).unwrap_or_default();
        let mut before = before.iter().rev();
        let last = before.find(|byte| !is_indent(**byte));
        last.is_none_or(|byte| settings.line_ends.contains(byte))
    }

    /// Takes pieces of which `is_plain` is true.
    #[inline]
    pub fn take_plain(&mut self, texts: &str) {
        self.text.push_str(texts);
        self.searched = self.text.len();
    }

    /// What has no marker may still begin: nothing was said yet, as far as the layout has read.
    fn is_fresh(&self, settings: &Settings) -> bool {
        settings.has_bare && self.layout.is_empty
    }

    // Text

    fn search(&mut self, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        while let Some(place) = self.next_place(settings) {
            match self.marker_at(place, settings, over) {
                At::Marker(open) => {
                    self.state = State::Block(open);
                    return None;
                }
                At::Prefix => {
                    self.searched = place;
                    return Some(place);
                }
                At::Rest => break,
                At::Text(length) => self.searched = place + length,
            }
        }
        // A run of backticks is read once, when it has ended.
        if self.is_fresh(settings) && !self.text.ends_with(['`', '~']) {
            self.layout
                .advance(&self.text, self.text.len(), &settings.words);
        }
        self.searched = self.text.len();
        Some(self.text.len())
    }

    /// The next place at which a marker may begin.
    fn next_place(&self, settings: &Settings) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.searched..)?;
        let is_fresh = self.is_fresh(settings);
        let found = rest
            .iter()
            .position(|byte| settings.is_first(*byte, is_fresh));
        found.map(|at| self.searched + at)
    }

    /// What begins at that place. A longer marker may begin like a shorter one: of two, the longer one is looked for.
    fn marker_at(&mut self, place: usize, settings: &Settings, over: bool) -> At {
        let rest = self.text.get(place..).unwrap_or_default();
        let text = At::Text(rest.chars().next().map_or(1, char::len_utf8));
        let is_fresh = self.is_fresh(settings);
        let mut markers = settings.markers.iter();
        let is_looked_for = |marker: &&Marker| is_fresh || !marker.is_bare;
        let waits =
            |marker: &Marker| marker.text.len() > rest.len() && marker.text.starts_with(rest);
        let whole = markers
            .clone()
            .filter(is_looked_for)
            .find(|marker| rest.starts_with(marker.text.as_str()));
        let is_prefix = markers.clone().filter(is_looked_for).any(waits);
        if whole.is_none() && !is_prefix {
            return text;
        }
        // Letters begin words: the layout is not read for each of them.
        let first = rest.bytes().next().unwrap_or_default();
        let is_word = self.pending.is_empty() && settings.line_firsts.contains(&first);
        if is_word && !self.begins_line(place, settings) {
            return text;
        }
        let stand = self.layout.stand(&self.text, place, &settings.words);
        let is_empty = self.layout.is_empty;
        let may = |at: &usize| {
            let tier = settings.families.get(*at).map(|family| family.tier);
            match tier {
                Some(Tier::Token) => stand != Stand::Nowhere,
                Some(Tier::Tag) => stand == Stand::Start,
                Some(Tier::Markerless) => stand == Stand::Start && is_empty,
                None => false,
            }
        };
        let may_wait = |marker: &Marker| {
            waits(marker) && (marker.is_nesting || marker.families.iter().any(may))
        };
        if is_prefix && markers.any(may_wait) {
            return if over { At::Rest } else { At::Prefix };
        }
        let Some(marker) = whole else {
            return text;
        };
        let families: Vec<usize> = marker.families.iter().copied().filter(may).collect();
        let Some(first) = families.first().copied() else {
            return if marker.is_nesting {
                At::Text(marker.text.len())
            } else {
                text
            };
        };
        let end = place + marker.text.len();
        let readings = families.into_iter().filter_map(|at| {
            let unread = settings.families.get(at)?.unread;
            Some((at, Reading::new(end.saturating_sub(unread))))
        });
        At::Marker(Open {
            start: place,
            marker: marker.text.len(),
            after_prose: stand == Stand::AfterProse,
            line: self.layout.line,
            family: first,
            has_matched: false,
            readings: readings.collect(),
        })
    }

    /// Behind a block: white space, ends of turn and further blocks; anything else shows that it was a quotation.
    fn follow(&mut self, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        loop {
            let rest = self.text.get(self.searched..).unwrap_or_default();
            let text = rest.trim_start_matches(is_blank);
            let place = self.searched + rest.len() - text.len();
            self.searched = place;
            let begins = |word: &str| word.len() > text.len() && word.starts_with(text);
            let closer = self.pending.last().and_then(|block| block.closer.clone());
            let mut markers = settings.markers.iter().filter(|marker| !marker.is_bare);
            let mut ends = settings.end_of_turn.iter();
            let is_open = markers.any(|marker| begins(&marker.text))
                || ends.any(|end| begins(end))
                || closer.as_deref().is_some_and(begins);
            if text.is_empty() || (is_open && !over) {
                self.state = State::After;
                return Some(place);
            }
            let end = settings.end_of_turn.iter();
            let end = end.map(String::as_str).find(|end| text.starts_with(end));
            let closer = closer.filter(|closer| text.starts_with(closer.as_str()));
            if is_open {
                self.text_follows(place, settings);
                self.searched = self.text.len();
                return Some(self.text.len());
            }
            if let At::Marker(open) = self.marker_at(place, settings, true) {
                self.state = State::Block(open);
                return None;
            }
            if let Some(closer) = closer {
                self.close_late(place + closer.len(), place, settings);
                continue;
            }
            if let Some(block) = self.pending.last_mut() {
                block.closer = None;
            }
            let Some(end) = end else {
                self.text_follows(place, settings);
                return None;
            };
            self.searched = place + end.len();
            self.layout
                .skip(&self.text, place, self.searched, &settings.words);
        }
    }

    /// The closer of the last block, which may be missing, is there.
    fn close_late(&mut self, end: usize, place: usize, settings: &Settings) {
        self.searched = end;
        self.layout.skip(&self.text, place, end, &settings.words);
        let characters = self.characters(end);
        if let Some(block) = self.pending.last_mut() {
            let start = block.span.start;
            block.span.end = end;
            let [first, _] = block.span.characters;
            block.span.characters = [first, characters];
            block.raw = self.text.get(start..end).unwrap_or_default().to_owned();
            block.closer = None;
        }
    }

    /// Text that is no call begins there: what it makes of the pending blocks.
    fn text_follows(&mut self, place: usize, settings: &Settings) {
        self.layout.advance(&self.text, place, &settings.words);
        let is_on_line = self.layout.is_line_open(&self.text, place);
        let line = self.layout.line;
        let had_pending = !self.pending.is_empty();
        for block in std::mem::take(&mut self.pending) {
            let is_kept = settings.after == After::Anywhere
                && !block.after_prose
                && !(is_on_line && block.line == line);
            if is_kept {
                self.pending.push(block);
            } else {
                let refused = (block.span, block.part, Refusal::TextFollows);
                self.refused.push(refused);
            }
        }
        if settings.after == After::End && had_pending {
            // The answer shows calls; one that follows may be shown as well.
            self.state = State::Off;
        }
        if is_on_line {
            self.layout.end_refused(&self.text, place, place);
        }
    }

    // Blocks

    fn read(&mut self, mut open: Open, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        let too_long = self.text.len() - open.start > context.max_bytes;
        let mut whole: Option<(usize, usize, Reading)> = None;
        let has_matched = &mut open.has_matched;
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
                    let is_value = reading.rest(&self.text).starts_with(['{', '[']);
                    *has_matched |= reading.has_matched || is_value;
                    false
                }
            }
        });
        if let Some((end, family, reading)) = whole {
            self.searched = end;
            self.judge(&open, family, end, reading, context);
            return None;
        }
        let (first, start) = (open.family, open.start);
        let after = start + open.marker;
        let refusal = if !open.readings.is_empty() {
            if too_long {
                Refusal::Limit
            } else if over {
                Refusal::Cut
            } else {
                self.state = State::Block(open);
                return Some(start);
            }
        } else if open.after_prose && !open.has_matched {
            // Somebody wrote about the marker.
            self.searched = after;
            return None;
        } else {
            Refusal::Malformed
        };
        let span = self.span(settings, first, start, after);
        self.give_up(span, refusal, settings);
        None
    }

    fn span(&mut self, settings: &Settings, family: usize, start: usize, end: usize) -> Span {
        let family = settings.families.get(family);
        Span {
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

    /// The block has no end that is known: everything after it is text.
    fn give_up(&mut self, span: Span, why: Refusal, settings: &Settings) {
        self.text_follows(span.start, settings);
        self.refused.push((span, self.part, why));
        self.state = State::Off;
    }

    /// The block is whole: what becomes of it.
    fn judge(
        &mut self,
        open: &Open,
        family: usize,
        end: usize,
        reading: Reading,
        context: &Context<'_>,
    ) {
        let settings = context.settings;
        if end - open.start > context.max_bytes {
            let span = self.span(settings, family, open.start, open.start + open.marker);
            return self.give_up(span, Refusal::Limit, settings);
        }
        let is_bare = settings
            .families
            .get(family)
            .is_some_and(|family| family.tier == Tier::Markerless);
        let calls = calls_of(reading.calls, is_bare, context);
        let span = self.span(settings, family, open.start, end);
        let calls = match calls {
            Ok(calls) => calls,
            Err(why) => {
                self.text_follows(open.start, settings);
                self.layout.end_refused(&self.text, open.start, end);
                return self.refused.push((span, self.part, why));
            }
        };
        let known: usize = self.pending.iter().map(|block| block.calls.len()).sum();
        if known + calls.len() > context.max_calls {
            let span = self.span(settings, family, open.start, open.start + open.marker);
            return self.give_up(span, Refusal::Limit, settings);
        }
        let closer = settings.families.get(family);
        let closer = closer.and_then(|family| match &family.close {
            Close::Maybe(literal) => Some(literal.clone()),
            Close::Body | Close::Literal(_) => None,
        });
        self.layout.end_block(&self.text, open.start, end);
        self.state = State::After;
        self.pending.push(Block {
            raw: self
                .text
                .get(open.start..end)
                .unwrap_or_default()
                .to_owned(),
            span,
            part: self.part,
            calls,
            after_prose: open.after_prose,
            line: open.line,
            closer,
        });
    }
}

/// What a text is that may be plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Delta,
    /// Several deltas. A first byte of a marker that ends one of them is held, whatever follows.
    Row,
}

/// A marker may begin with the byte, as far as the text tells that follows.
fn may_begin(first: u8, rest: &[u8], extent: Extent, settings: &Settings) -> bool {
    extent == Extent::Row || settings.may_begin(first, rest)
}

/// If a line begins here, it begins with a marker that may stand nowhere else, or with a part of one.
fn begins_marker(text: &[u8], extent: Extent, settings: &Settings) -> bool {
    let solid = text.iter().position(|byte| !is_indent(*byte));
    let Some((first, rest)) = solid.and_then(|at| text.get(at..)?.split_first()) else {
        return false;
    };
    settings.line_firsts.contains(first) && may_begin(*first, rest, extent, settings)
}

/// White space inside of a line.
fn is_indent(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// No marker begins in the text where one may stand, the beginning of the text aside.
fn has_no_marker(text: &[u8], extent: Extent, settings: &Settings) -> bool {
    let bytes = text.iter().enumerate();
    let mut marks = bytes.filter(|(_, byte)| settings.marks.has(**byte));
    marks.all(|(at, byte)| {
        let after = text.get(at + 1..).unwrap_or_default();
        let may_follow_prose =
            settings.firsts.contains(byte) && may_begin(*byte, after, extent, settings);
        let may_start_line =
            settings.line_ends.contains(byte) && begins_marker(after, extent, settings);
        !may_follow_prose && !may_start_line
    })
}

/// Name and arguments of each call, or why there is none: a block is promoted whole, or not at all.
fn calls_of(
    found: Vec<Found>,
    is_bare: bool,
    context: &Context<'_>,
) -> Result<Vec<(String, String)>, Refusal> {
    let judged = found.into_iter().map(|found| {
        let tool = context.tools.and_then(|tools| tools.get(&found.name));
        if context.tools.is_some() && tool.is_none() {
            return Err(Refusal::UnknownName);
        }
        let arguments = arguments(&found, tool, is_bare && tool.is_some())?;
        Ok((found.name, arguments))
    });
    judged.collect()
}

/// What begins at a place.
enum At {
    Marker(Open),
    /// What may become one.
    Prefix,
    /// What might have become one, and the part has ended.
    Rest,
    /// That many bytes.
    Text(usize),
}

impl Family {
    /// The block as far as the text goes: where it ends. A closer that may be missing is no part of it.
    fn read_block(&self, reading: &mut Reading, text: &str) -> Parse<usize> {
        self.grammar.read_block(reading, text, &self.close)?;
        Ok(reading.at)
    }
}
