//! Finds blocks in the text of one choice: their markers, their ends, and their calls.
//!
//! Reports how much of the text can be released.

use crate::text_calls::entry::Close;
use crate::text_calls::family::Family;
use crate::text_calls::family::Tier;
use crate::text_calls::layout::Layout;
use crate::text_calls::layout::MarkerPosition;
use crate::text_calls::marker_tree::Beginning;
use crate::text_calls::plain_text::PlainText;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::ParsedCall;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::is_blank;
use crate::text_calls::settings::Settings;
use crate::text_calls::settings::TextAfterCall;
use crate::text_calls::values::Refusal;
use crate::text_calls::values::Tools;
use crate::text_calls::values::arguments;

/// What a scanner needs in addition to its state: settings, tools and limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub settings: &'a Settings,
    pub tools: &'a Tools,
    pub max_calls: usize,
    pub max_bytes: usize,
}

/// A range of a part's text, and the name of the family whose block it contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub family: String,
    pub start: usize,
    pub end: usize,
    /// Start and end of the range in characters.
    pub characters: [usize; 2],
}

/// A complete block whose calls may be promoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub span: Span,
    /// Number of the part that contains the block.
    pub part: u32,
    /// Name and arguments of each call.
    pub calls: Vec<(String, String)>,
    /// Text of the block, as written.
    pub raw: String,
    after_prose: bool,
    /// True if the block has no marker. Such a block counts only if it is the complete response.
    is_bare: bool,
    /// Number of the line on which the block begins.
    line: usize,
    /// Optional closing literal that may still follow.
    closer: Option<String>,
    /// Index of the family if another block of this family, which has no marker, may directly follow.
    repeatable_family: Option<usize>,
}

/// A block whose end has not been found yet.
#[derive(Debug)]
struct OpenBlock {
    start: usize,
    marker: usize,
    after_prose: bool,
    line: usize,
    /// First family with this marker. Diagnostics about a block without an end name this family.
    family: usize,
    /// True if at least one family that no longer matches had matched more than a name.
    has_matched: bool,
    /// Index of each family whose grammar still matches the text, and its progress.
    readings: Vec<(usize, Reading)>,
}

#[derive(Debug, Default)]
enum State {
    /// The scanner is outside blocks.
    #[default]
    Text,
    Block(OpenBlock),
    /// Only whitespace and end-of-turn literals have followed the last block.
    After,
    /// After the last block, a token has begun a turn of the user or a tool. Only whitespace has followed that token.
    NextTurn,
    /// All remaining content of the choice is ordinary text.
    Off,
}

/// Scans the text of one choice for blocks.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// Text of the current part, without the text in `plain`.
    text: String,
    /// Text at the end of the part in which no marker can begin. This text is moved to `text` before more text is
    /// scanned.
    plain: PlainText,
    part: u32,
    layout: Layout,
    state: State,
    /// Offset before which every possible marker has been examined.
    searched: usize,
    pub pending: Vec<Block>,
    /// Refused blocks, each with its part number and the reason for refusing it.
    pub refused: Vec<(Span, u32, Refusal)>,
    /// A number of bytes at the start of the part, and the number of characters in them.
    counted: [usize; 2],
}

impl Scanner {
    /// Starts the first part, which is not reasoning.
    pub fn begin(&mut self, part: u32) {
        self.part = part;
    }

    /// Starts another part. `in_text`: the part is not reasoning.
    pub fn start_part(&mut self, part: u32, in_text: bool, settings: &Settings) {
        self.collect();
        self.layout.start_part(&self.text, in_text, &settings.words);
        if let Some(block) = self.pending.last_mut() {
            // A block cannot continue in another part.
            block.closer = None;
        }
        self.text.clear();
        self.counted = [0, 0];
        self.part = part;
        self.searched = 0;
    }

    /// Treats all remaining content of the choice as ordinary text.
    pub fn turn_off(&mut self) {
        self.state = State::Off;
    }

    /// Scans the new text, and returns how many bytes of the part's text can be released. `over`: the part has ended.
    pub fn advance(&mut self, context: &Context<'_>, over: bool) -> usize {
        if self.plain.length() > 0 {
            return self.length(); // the last text needs no examination
        }
        loop {
            let held = match std::mem::take(&mut self.state) {
                State::Off => {
                    self.state = State::Off;
                    Some(self.text.len())
                }
                State::Block(open) => self.read(open, context, over),
                State::After => self.follow(context, over),
                State::NextTurn => self.follow_turn(context.settings),
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

    /// Returns true if no text is held back, and later text without a marker will not be held back either.
    pub fn is_idle(&self, settings: &Settings) -> bool {
        match self.state {
            State::Off => true,
            State::Text => {
                let is_free = self.pending.is_empty() && self.searched == self.text.len();
                is_free && !self.is_fresh(settings)
            }
            State::Block(_) | State::After | State::NextTurn => false,
        }
    }

    /// Returns true if the position is outside of blocks, and no block precedes it.
    pub fn is_in_text(&self) -> bool {
        matches!(self.state, State::Text)
    }

    /// Returns true if a marker that must be at the start of a line may come next.
    pub fn is_at_line_start(&self, settings: &Settings) -> bool {
        settings.ends_line(&self.text, true)
    }

    /// Returns the offset of the first position from which the text must be scanned: a marker begins there, or the text
    /// from there on may be the beginning of a marker.
    ///
    /// `is_at_line_start`: a marker that must be at the start of a line may come first.
    pub fn first_marker(
        &self,
        text: &str,
        is_at_line_start: bool,
        settings: &Settings,
    ) -> Option<usize> {
        if matches!(self.state, State::Off) {
            return None;
        }
        settings.starts.find(text.as_bytes(), |at| {
            match settings.beginning(text.as_bytes().get(at..).unwrap_or_default()) {
                Beginning::Other => false,
                Beginning::Marker => true,
                Beginning::Prefix(kinds) => {
                    let before = text.get(..at).unwrap_or_default();
                    kinds.may_follow_prose() || settings.ends_line(before, is_at_line_start)
                }
            }
        })
    }

    /// Returns true if only whitespace separates the position from the start of its line, or from a literal that is
    /// treated as a line end.
    fn begins_line(&self, position: usize, settings: &Settings) -> bool {
        settings.ends_line(self.text.get(..position).unwrap_or_default(), true)
    }

    /// Appends text that must be scanned. Returns the length of the text before it.
    pub fn push(&mut self, text: &str) -> usize {
        self.collect();
        let before = self.text.len();
        self.text.push_str(text);
        before
    }

    /// Appends a short piece that contains none of the bytes at which a marker can begin. Returns false and changes
    /// nothing for any other piece.
    #[inline(always)]
    pub fn take_unmarked(&mut self, piece: &str, settings: &Settings) -> bool {
        self.plain.push_without(piece.as_bytes(), &settings.marks)
    }

    /// Appends text in which no marker can begin.
    pub fn take_plain(&mut self, texts: &str) {
        if !self.plain.push(texts) {
            self.collect();
            self.text.push_str(texts);
            self.searched = self.text.len();
        }
    }

    /// Moves the text in `plain` to the end of `text`.
    fn collect(&mut self) {
        if self.plain.length() > 0 {
            self.plain.move_to(&mut self.text);
            self.searched = self.text.len();
        }
    }

    /// Returns the length of the current part's text, in bytes.
    pub fn length(&self) -> usize {
        self.text.len() + self.plain.length()
    }

    /// Returns true if a family without a marker may still begin, because the layout has not read any text yet.
    fn is_fresh(&self, settings: &Settings) -> bool {
        settings.has_bare && self.layout.is_empty
    }

    // Text

    fn search(&mut self, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        while let Some(position) = self.next_offset(settings) {
            match self.marker_at(position, settings, None, over) {
                MarkerMatch::Marker(open) => {
                    self.state = State::Block(open);
                    return None;
                }
                MarkerMatch::Prefix => {
                    self.searched = position;
                    return Some(position);
                }
                MarkerMatch::PrefixAtEnd => break,
                MarkerMatch::Text(length) => self.searched = position + length,
            }
        }
        // The layout reads a run of backticks only when the run is complete.
        if self.is_fresh(settings) && !self.text.ends_with(['`', '~']) {
            self.layout
                .advance(&self.text, self.text.len(), &settings.words);
        }
        self.searched = self.text.len();
        Some(self.text.len())
    }

    /// Returns the next offset at which a marker may begin.
    fn next_offset(&self, settings: &Settings) -> Option<usize> {
        let remaining = self.text.as_bytes().get(self.searched..)?;
        let found = settings.next_start(remaining, self.is_fresh(settings));
        found.map(|at| self.searched + at)
    }

    /// Determines what begins at an offset: a marker, a possible marker, or text.
    ///
    /// If one marker is the beginning of another, the longer one takes precedence. `repeatable_family`: a family without
    /// a marker, one of whose blocks may directly follow the previous block.
    fn marker_at(
        &mut self,
        position: usize,
        settings: &Settings,
        repeatable_family: Option<usize>,
        over: bool,
    ) -> MarkerMatch {
        let remaining = self.text.get(position..).unwrap_or_default();
        let text = MarkerMatch::Text(remaining.chars().next().map_or(1, char::len_utf8));
        let is_fresh = self.is_fresh(settings);
        let reads_bare = is_fresh || repeatable_family.is_some();
        if !reads_bare && !settings.may_begin(remaining.as_bytes()) {
            return text;
        }
        if self.may_wait(position, is_fresh, settings) {
            return if over {
                MarkerMatch::PrefixAtEnd
            } else {
                MarkerMatch::Prefix
            };
        }
        let remaining = self.text.get(position..).unwrap_or_default();
        let mut markers = settings.markers.iter();
        let whole = markers.find(|marker| {
            (is_fresh || marker.follows(repeatable_family))
                && remaining.starts_with(marker.text.as_str())
        });
        let Some(marker) = whole else {
            return text;
        };
        let Some(marker_position) = self.marker_position(position, settings) else {
            return text;
        };
        let is_empty = self.layout.is_empty;
        let may = |at: &usize| {
            let tier = settings.families.get(*at).map(|family| family.tier);
            match tier {
                Some(Tier::Token) => marker_position != MarkerPosition::Nowhere,
                Some(Tier::Tag) => marker_position == MarkerPosition::Start,
                Some(Tier::Markerless) => {
                    marker_position == MarkerPosition::Start
                        && (is_empty || repeatable_family == Some(*at))
                }
                None => false,
            }
        };
        let families: Vec<usize> = marker.families.iter().copied().filter(may).collect();
        let Some(first) = families.first().copied() else {
            return if marker.is_nesting {
                MarkerMatch::Text(marker.text.len())
            } else {
                text
            };
        };
        let end = position + marker.text.len();
        let readings = families.into_iter().filter_map(|at| {
            let unread = settings.families.get(at)?.unread;
            Some((at, Reading::new(end.saturating_sub(unread))))
        });
        MarkerMatch::Marker(OpenBlock {
            start: position,
            marker: marker.text.len(),
            after_prose: marker_position == MarkerPosition::AfterProse,
            line: self.layout.line,
            family: first,
            has_matched: false,
            readings: readings.collect(),
        })
    }

    /// Returns which markers are allowed at an offset.
    ///
    /// Returns `None` if the first byte there is one of `line_firsts`, but not the first byte of its line.
    fn marker_position(&mut self, position: usize, settings: &Settings) -> Option<MarkerPosition> {
        // Do not update the layout for every letter that may begin a marker.
        let first = *self.text.as_bytes().get(position)?;
        let is_word = self.pending.is_empty() && settings.line_firsts.has(first);
        if is_word && !self.begins_line(position, settings) {
            return None;
        }
        let words = &settings.words;
        Some(self.layout.marker_position(&self.text, position, words))
    }

    /// Returns true if the text after an offset must be held back, because it is the beginning of a marker.
    ///
    /// Whether a call is allowed there is determined only if the marker is complete, because the layout then has to
    /// read all text before it.
    fn may_wait(&mut self, position: usize, is_fresh: bool, settings: &Settings) -> bool {
        let remaining = self.text.get(position..).unwrap_or_default();
        match settings.tree.continuations(remaining.as_bytes()) {
            Some(kinds) => kinds.may_follow_prose() || self.begins_line(position, settings),
            None if is_fresh && settings.begins_bare_marker(remaining) => {
                let words = &settings.words;
                let marker_position = self.layout.marker_position(&self.text, position, words);
                marker_position == MarkerPosition::Start && self.layout.is_empty
            }
            None => false,
        }
    }

    /// Reads whitespace, end-of-turn literals and further blocks after a block. Any other text means that the block was
    /// quoted.
    fn follow(&mut self, context: &Context<'_>, over: bool) -> Option<usize> {
        let settings = context.settings;
        loop {
            let remaining = self.text.get(self.searched..).unwrap_or_default();
            let text = remaining.trim_start_matches(is_blank);
            let position = self.searched + remaining.len() - text.len();
            self.searched = position;
            let begins = |word: &str| word.len() > text.len() && word.starts_with(text);
            let closer = self.pending.last().and_then(|block| block.closer.clone());
            let repeatable_family = self
                .pending
                .last()
                .and_then(|block| block.repeatable_family);
            let mut markers = settings
                .markers
                .iter()
                .filter(|it| it.follows(repeatable_family));
            let mut ends = settings.end_of_turn.iter();
            let is_open = markers.any(|marker| begins(&marker.text))
                || ends.any(|end| begins(end))
                || closer.as_deref().is_some_and(begins);
            if text.is_empty() || (is_open && !over) {
                self.state = State::After;
                return Some(position);
            }
            let end = settings.end_of_turn.iter();
            let end = end.map(String::as_str).find(|end| text.starts_with(end));
            let closer = closer.filter(|closer| text.starts_with(closer.as_str()));
            if is_open {
                self.text_follows(position, settings);
                self.searched = self.text.len();
                return Some(self.text.len());
            }
            if let MarkerMatch::Marker(open) =
                self.marker_at(position, settings, repeatable_family, true)
            {
                self.state = State::Block(open);
                return None;
            }
            if let Some(closer) = closer {
                self.close_late(position + closer.len(), position, settings);
                continue;
            }
            if let Some(block) = self.pending.last_mut() {
                block.closer = None;
            }
            let Some(end) = end else {
                self.text_follows(position, settings);
                return None;
            };
            self.searched = position + end.len();
            self.layout
                .skip(&self.text, position, self.searched, &settings.words);
            if settings.next_turn.iter().any(|token| token == end) {
                self.state = State::NextTurn;
                return None;
            }
        }
    }

    /// Reads whitespace after the end of the model's turn. Any other text was not written by the model, so calls in it
    /// do not count.
    fn follow_turn(&mut self, settings: &Settings) -> Option<usize> {
        let remaining = self.text.get(self.searched..).unwrap_or_default();
        let text = remaining.trim_start_matches(is_blank);
        let position = self.searched + remaining.len() - text.len();
        self.searched = position;
        if text.is_empty() {
            self.state = State::NextTurn;
            return Some(position);
        }
        self.text_follows(position, settings);
        self.state = State::Off;
        None
    }

    /// Adds the optional closing literal to the last block.
    fn close_late(&mut self, end: usize, position: usize, settings: &Settings) {
        self.searched = end;
        self.layout.skip(&self.text, position, end, &settings.words);
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

    /// Handles text that is not a call and begins at an offset after the pending blocks.
    fn text_follows(&mut self, position: usize, settings: &Settings) {
        self.layout.advance(&self.text, position, &settings.words);
        let is_on_line = self.layout.is_line_open(&self.text, position);
        let line = self.layout.line;
        let had_pending = !self.pending.is_empty();
        for block in std::mem::take(&mut self.pending) {
            let is_refused = settings.after == TextAfterCall::End
                || block.after_prose
                || block.is_bare
                || (is_on_line && block.line == line);
            if is_refused {
                let refused = (block.span, block.part, Refusal::TextFollows);
                self.refused.push(refused);
            } else {
                self.pending.push(block);
            }
        }
        if settings.after == TextAfterCall::End && had_pending {
            // The response quotes calls, so later calls may also be quoted.
            self.state = State::Off;
        }
        if is_on_line {
            self.layout.end_refused(&self.text, position, position);
        }
    }

    // Blocks

    fn read(&mut self, mut open: OpenBlock, context: &Context<'_>, over: bool) -> Option<usize> {
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
                Err(ParseFailure::Cut) => true,
                Err(ParseFailure::Broken) => {
                    // In a family without a marker, the bracket itself opens the block. The block counts only if its
                    // contents begin like a call.
                    let is_bare = family.tier == Tier::Markerless;
                    let is_value = reading.remaining(&self.text).starts_with(['{', '[']);
                    *has_matched |= reading.has_matched || (is_value && !is_bare);
                    false
                }
            }
        });
        if let Some((end, family, reading)) = whole {
            self.searched = end;
            self.check_block(&open, family, end, reading, context);
            return None;
        }
        let (first, start) = (open.family, open.start);
        let after = start + open.marker;
        let is_bare = settings
            .families
            .get(first)
            .is_some_and(|family| family.tier == Tier::Markerless);
        let refusal = if !open.readings.is_empty() {
            if too_long {
                Refusal::Limit
            } else if over {
                Refusal::Cut
            } else {
                self.state = State::Block(open);
                return Some(start);
            }
        } else if (open.after_prose || is_bare) && !open.has_matched {
            // The text only mentions the marker, or only begins like a call of a family without a marker.
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

    /// Returns the number of characters before an offset.
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

    /// Refuses a block whose end is unknown. Everything after its beginning remains ordinary text.
    fn give_up(&mut self, span: Span, why: Refusal, settings: &Settings) {
        self.text_follows(span.start, settings);
        self.refused.push((span, self.part, why));
        self.state = State::Off;
    }

    /// Handles a complete block: either makes it pending or refuses it.
    fn check_block(
        &mut self,
        open: &OpenBlock,
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
        let calls = match calls {
            Ok(calls) => calls,
            Err(why @ Refusal::Malformed) => {
                // The model repeats declarations instead of making calls.
                let span = self.span(settings, family, open.start, open.start + open.marker);
                return self.give_up(span, why, settings);
            }
            Err(why) => {
                let span = self.span(settings, family, open.start, end);
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
        let span = self.span(settings, family, open.start, end);
        let written = settings.families.get(family);
        let repeatable_family = written
            .filter(|it| it.allows_consecutive_blocks)
            .map(|_| family);
        let closer = written.and_then(|family| match &family.close {
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
            is_bare,
            line: open.line,
            closer,
            repeatable_family,
        });
    }
}

/// Returns the name and arguments of each call, or the reason for refusing the block.
///
/// If one call cannot be promoted, none of the block's calls is promoted.
fn calls_of(
    found: Vec<ParsedCall>,
    is_bare: bool,
    context: &Context<'_>,
) -> Result<Vec<(String, String)>, Refusal> {
    let checked_block = found.into_iter().map(|found| {
        let tools = context.tools.get();
        let tool = tools.and_then(|tools| tools.get(&found.name));
        match tools {
            Some(tools) if tools.is_empty() => return Err(Refusal::NoTools),
            Some(_) if tool.is_none() => return Err(Refusal::UnknownName),
            _ => {}
        }
        let arguments = arguments(&found, tool, is_bare && tool.is_some())?;
        Ok((found.name, arguments))
    });
    checked_block.collect()
}

/// What begins at an offset.
enum MarkerMatch {
    Marker(OpenBlock),
    /// The text may be the beginning of a marker.
    Prefix,
    /// The text may be the beginning of a marker, but the part has ended.
    PrefixAtEnd,
    /// Text with this number of bytes.
    Text(usize),
}

impl Family {
    /// Reads the available text of the block, and returns the offset of the block's end.
    ///
    /// An optional closing literal is not included.
    fn read_block(&self, reading: &mut Reading, text: &str) -> Parse<usize> {
        self.grammar.read_block(reading, text, &self.close)?;
        Ok(reading.at)
    }
}
