//! Where a call may stand: the lines, fences, inline code, quoting elements and reasoning tags before a place of the text.
//!
//! Blocks are passed over, so that a fence in an argument hides nothing. A fence that is indented by four columns or more
//! is a fence in a list and code elsewhere. Both readings are kept, and a call may stand only where neither has an open
//! fence. In doubt the answer is no: a call that stays text can be read.

use crate::text_calls::reading::is_blank;

/// Characters of a line by which its kind is known.
const HEAD: usize = 256;
/// A line that is indented so far is code.
const CODE_INDENT: usize = 4;
/// The least indent of the lines that belong to a list item.
const ITEM_INDENT: usize = 2;
/// The least length of a fence.
const FENCE: usize = 3;

/// A word that changes what text means, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    text: String,
    kind: TagKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TagKind {
    Opener(Closer),
    /// `<name`, which must end there.
    Element(Closer),
    ReasoningCloser,
}

/// What ends reasoning, a quoting element, or a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Closer {
    text: String,
    is_reasoning: bool,
}

/// The words of the table that change what text means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// Longest first.
    tags: Vec<Tag>,
    /// With which bytes they begin, and the bytes of Markdown.
    firsts: Vec<u8>,
    longest: usize,
}

impl Words {
    /// `reasoning`: what opens reasoning in a text, and what closes it. `quoting`: elements that quote.
    pub fn new(reasoning: &[[String; 2]], quoting: &[String]) -> Words {
        let closer = |text: &str, is_reasoning| Closer {
            text: text.to_ascii_lowercase(),
            is_reasoning,
        };
        let mut tags = Vec::new();
        let mut add = |text: &str, kind: TagKind| {
            let text = text.to_ascii_lowercase();
            if !tags.iter().any(|tag: &Tag| tag.text == text) {
                tags.push(Tag { text, kind });
            }
        };
        for [open, close] in reasoning {
            add(open, TagKind::Opener(closer(close, true)));
        }
        for [_, close] in reasoning {
            add(close, TagKind::ReasoningCloser);
        }
        for name in quoting {
            let close = closer(&format!("</{name}>"), false);
            add(&format!("<{name}"), TagKind::Element(close));
        }
        add("<!--", TagKind::Opener(closer("-->", false)));
        tags.sort_by(|one, other| {
            let by_length = other.text.len().cmp(&one.text.len());
            by_length.then_with(|| one.text.cmp(&other.text))
        });
        let mut firsts: Vec<u8> = b"`~|".to_vec();
        firsts.extend(tags.iter().filter_map(|tag| tag.text.bytes().next()));
        firsts.sort_unstable();
        firsts.dedup();
        Words {
            longest: tags.first().map_or(0, |tag| tag.text.len() + 1),
            tags,
            firsts,
        }
    }

    /// The tag with which the text begins.
    fn tag(&self, text: &str) -> Option<&Tag> {
        self.tags.iter().find(|tag| {
            let Some((head, tail)) = text.split_at_checked(tag.text.len()) else {
                return false;
            };
            let is_name = matches!(tag.kind, TagKind::Element(_));
            let ends = |c: char| matches!(c, ' ' | '\t' | '\r' | '/' | '>');
            head.eq_ignore_ascii_case(&tag.text)
                && (!is_name || tail.chars().next().is_none_or(ends))
        })
    }

    /// Where the end of the text begins that may be the beginning of a tag, a run or `|>`; else its length.
    fn settled(&self, text: &str, at: usize, closer: Option<&Closer>) -> usize {
        let longest = closer.map_or(self.longest, |closer| closer.text.len());
        let from = (text.len() + 1).saturating_sub(longest).max(at);
        let may_go_on = |place: &usize| {
            let rest = text.get(*place..).unwrap_or_default();
            let begins = |word: &str| {
                let head = word.get(..rest.len()).filter(|_| rest.len() < word.len());
                head.is_some_and(|head| head.eq_ignore_ascii_case(rest))
            };
            let is_name = |tag: &Tag| {
                matches!(tag.kind, TagKind::Element(_)) && rest.eq_ignore_ascii_case(&tag.text)
            };
            !rest.is_empty()
                && match closer {
                    Some(closer) => begins(&closer.text),
                    None => self
                        .tags
                        .iter()
                        .any(|tag| begins(&tag.text) || is_name(tag)),
                }
        };
        let run = || {
            let before = match text.strip_suffix('|') {
                Some(before) => before,
                None => text.trim_end_matches(['`', '~']),
            };
            before.len().max(at)
        };
        let whole = || closer.map_or_else(run, |_| text.len());
        (from..text.len()).find(may_go_on).unwrap_or_else(whole)
    }

    /// The next mark that begins in the range, and where.
    fn next_mark<'w>(&'w self, piece: &str, at: usize, end: usize) -> Option<(usize, Mark<'w>)> {
        let bytes = piece.as_bytes().get(..end)?;
        let mut at = at;
        loop {
            let rest = bytes.get(at..)?;
            at += rest.iter().position(|byte| self.firsts.contains(byte))?;
            let run = |mark: u8| {
                let rest = bytes.get(at..).unwrap_or_default();
                rest.iter().take_while(|byte| **byte == mark).count()
            };
            match bytes.get(at)? {
                b'`' => return Some((at, Mark::Ticks(run(b'`')))),
                b'~' => match run(b'~') {
                    length if length >= FENCE => return Some((at, Mark::Tildes(length))),
                    length => at += length,
                },
                // The bar of a special token separates no columns.
                b'|' => {
                    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
                    if before != Some(&b'<') && bytes.get(at + 1) != Some(&b'>') {
                        return Some((at, Mark::Pipe));
                    }
                    at += 1;
                }
                _ => {
                    let rest = piece.get(at..end).unwrap_or_default();
                    if let Some(tag) = self.tag(rest) {
                        return Some((at, Mark::Tag(tag)));
                    }
                    at += 1;
                }
            }
        }
    }
}

/// What counts in a line.
enum Mark<'w> {
    Ticks(usize),
    Tildes(usize),
    Pipe,
    Tag(&'w Tag),
}

impl Mark<'_> {
    fn length(&self) -> usize {
        match self {
            Mark::Ticks(length) | Mark::Tildes(length) => *length,
            Mark::Pipe => 1,
            Mark::Tag(tag) => tag.text.len(),
        }
    }
}

/// What a place allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Nowhere,
    /// Only white space before it on its line, the end of the reasoning, or a block.
    Start,
    /// Special tokens may follow.
    AfterProse,
}

/// What stands before the place on its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// White space at most.
    #[default]
    Nothing,
    /// A block or the end of the reasoning, and then white space at most.
    Block,
    Prose,
}

/// Fenced code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
    indent: usize,
}

/// The state of the text up to a place.
#[derive(Debug)]
pub(crate) struct Layout {
    /// All before it was read.
    at: usize,
    /// Of any indentation; of less than four columns.
    fences: [Option<Fence>; 2],
    /// What ends the reasoning or the quoting element that is open.
    closer: Option<Closer>,
    /// The length of the backtick run that opened inline code; 0 outside of it.
    run: usize,
    in_list: bool,
    in_diff: bool,
    in_quotation: bool,
    /// Nothing was said yet, reasoning tags aside.
    pub is_empty: bool,
    /// How many lines ended.
    pub line: usize,
    // Of the line.
    head: String,
    head_length: usize,
    before: Before,
    /// What is a fence if the line has no other backtick.
    candidate: Option<Fence>,
    has_pipe: bool,
    last: Option<char>,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            at: 0,
            fences: [None, None],
            closer: None,
            run: 0,
            in_list: false,
            in_diff: false,
            in_quotation: false,
            is_empty: true,
            line: 0,
            head: String::new(),
            head_length: 0,
            before: Before::Nothing,
            candidate: None,
            has_pipe: false,
            last: None,
        }
    }
}

impl Layout {
    fn begin_line(&mut self) {
        self.head.clear();
        self.head_length = 0;
        self.before = Before::Nothing;
        self.candidate = None;
        self.has_pipe = false;
        self.last = None;
    }

    /// Reads on to the place, and tells what may stand there.
    pub fn stand(&mut self, text: &str, place: usize, words: &Words) -> Stand {
        self.advance(text, place, words);
        let tail = text.get(self.at..place).unwrap_or_default();
        let is_fenced = self.fences.iter().any(Option::is_some) || self.candidate.is_some();
        if is_fenced || self.closer.is_some() || self.run > 0 {
            return Stand::Nowhere;
        }
        let before = if tail.is_empty() {
            self.before
        } else {
            Before::Prose
        };
        if before == Before::Block {
            return Stand::Start;
        }
        if self.is_quoting_line() {
            return Stand::Nowhere;
        }
        if before == Before::Nothing {
            return Stand::Start;
        }
        let last = tail.chars().next_back().or(self.last);
        if self.has_pipe || last.is_none_or(is_quoting) {
            return Stand::Nowhere;
        }
        Stand::AfterProse
    }

    /// A block ended on this line before the place that was read up to, and only white space follows.
    pub fn is_line_open(&self, text: &str, place: usize) -> bool {
        self.before == Before::Block && text.get(self.at..place).is_none_or(str::is_empty)
    }

    /// A block from there to there may be a call.
    pub fn end_block(&mut self, text: &str, start: usize, end: usize) {
        self.settle(text, start);
        self.at = end;
        self.before = Before::Block;
        self.is_empty = false;
    }

    /// A block from there to there is text, or the text after one goes on.
    pub fn end_refused(&mut self, text: &str, start: usize, end: usize) {
        self.settle(text, start);
        self.at = end;
        self.is_empty = false;
        self.before = Before::Prose;
        self.last = Some('>');
    }

    /// Reads on to `start`, and leaves out what is between there and `end`.
    pub fn skip(&mut self, text: &str, start: usize, end: usize, words: &Words) {
        self.advance(text, start, words);
        self.at = end;
    }

    /// Another part begins, and with it a line.
    pub fn start_part(&mut self, text: &str, words: &Words) {
        self.advance(text, text.len(), words);
        self.settle(text, text.len());
        if !self.head.is_empty() || self.before != Before::Nothing {
            self.end_line();
        }
        self.at = 0;
    }

    /// What might have been the beginning of a tag is text.
    fn settle(&mut self, text: &str, end: usize) {
        self.say(text.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    /// The line is a quotation, a list item, a table row, code, numbered, or of a diff.
    fn is_quoting_line(&self) -> bool {
        let (indent, rest) = split_indent(&self.head);
        let rest = rest.trim_start_matches(is_blank);
        indent >= CODE_INDENT
            || self.in_quotation
            || (self.in_list && indent >= ITEM_INDENT)
            || (self.in_diff && !self.head.is_empty())
            || rest.starts_with(['>', '|', '+', '-'])
            || rest.starts_with("@@")
            || is_list_item(rest)
            || is_numbered(rest)
    }

    /// Reads on to `end`, or to the beginning of a tag that reaches there.
    pub fn advance(&mut self, text: &str, end: usize, words: &Words) {
        while let Some(rest) = text.get(self.at..end) {
            let Some(length) = memchr::memchr(b'\n', rest.as_bytes()) else {
                self.at += self.piece(rest, true, words);
                return;
            };
            self.piece(rest.get(..length).unwrap_or_default(), false, words);
            self.end_line();
            self.at += length + 1;
        }
    }

    /// More of one line, that goes on if it is open. Returns how much was read: the rest may begin a tag.
    fn piece(&mut self, piece: &str, is_open: bool, words: &Words) -> usize {
        if self.fences.iter().all(Option::is_some) {
            self.note_head(piece);
            return piece.len();
        }
        let mut at = 0;
        loop {
            let end = if is_open {
                words.settled(piece, at, self.closer.as_ref())
            } else {
                piece.len()
            };
            let text = piece.get(at..end).unwrap_or_default();
            if let Some(closer) = &self.closer {
                let Some(found) = find_ignoring_case(text, &closer.text) else {
                    return end;
                };
                at += found + closer.text.len();
                self.close();
                continue;
            }
            let Some((found, mark)) = words.next_mark(piece, at, end) else {
                self.say(text);
                return end;
            };
            self.say(piece.get(at..found).unwrap_or_default());
            at = found + mark.length();
            self.mark(&mark, piece.get(found..at).unwrap_or_default());
        }
    }

    fn mark(&mut self, mark: &Mark<'_>, text: &str) {
        match mark {
            Mark::Ticks(length) => self.ticks(*length),
            Mark::Tildes(length) => {
                if self.before == Before::Nothing {
                    self.candidate = Some(self.fence(b'~', *length));
                }
            }
            Mark::Pipe => self.has_pipe = true,
            Mark::Tag(tag) if self.candidate.is_none() && self.run == 0 => match &tag.kind {
                TagKind::ReasoningCloser => return self.close_reasoning(text),
                TagKind::Opener(closer) | TagKind::Element(closer) => {
                    self.closer = Some(closer.clone());
                    if closer.is_reasoning {
                        return;
                    }
                }
            },
            Mark::Tag(_) => {}
        }
        self.say(text);
    }

    fn fence(&self, mark: u8, length: usize) -> Fence {
        let (indent, _) = split_indent(&self.head);
        Fence {
            mark,
            length,
            indent,
        }
    }

    /// A run of backticks: a fence, if it begins its line and the line has no other; else inline code.
    fn ticks(&mut self, length: usize) {
        if self.before == Before::Nothing && length >= FENCE {
            self.candidate = Some(self.fence(b'`', length));
            return;
        }
        match self.candidate {
            Some(candidate) if candidate.mark == b'~' => return,
            Some(candidate) => {
                self.run = candidate.length;
                self.candidate = None;
            }
            None => {}
        }
        if self.run == 0 {
            self.run = length;
        } else if self.run == length {
            self.run = 0;
        }
    }

    /// The reasoning or the quoting element ends.
    fn close(&mut self) {
        let Some(closer) = self.closer.take() else {
            return;
        };
        if closer.is_reasoning {
            self.close_reasoning(&closer.text);
        } else {
            self.say(&closer.text);
        }
    }

    fn close_reasoning(&mut self, text: &str) {
        if self.is_quoting_line() {
            self.say(text);
        } else {
            self.begin_line();
            self.before = Before::Block;
        }
    }
}

impl Layout {
    fn say(&mut self, text: &str) {
        let Some(last) = text.chars().next_back() else {
            return;
        };
        self.note_head(text);
        if !text.chars().all(is_blank) {
            self.before = Before::Prose;
            self.is_empty = false;
        }
        self.last = Some(last);
    }

    fn note_head(&mut self, text: &str) {
        if self.head_length < HEAD {
            let more = text.chars().take(HEAD - self.head_length);
            let before = self.head.len();
            self.head.extend(more);
            let more = self.head.get(before..).unwrap_or_default();
            self.head_length += more.chars().count();
        }
    }

    fn end_line(&mut self) {
        let candidate = self.candidate.filter(|_| self.closer.is_none());
        let is_fenced = self.fences.iter().all(Option::is_some);
        if !is_fenced && self.closer.is_none() && candidate.is_none() {
            self.note_line();
        }
        for strict in [false, true] {
            let fence = self.fences.get(usize::from(strict)).copied().flatten();
            let next = match fence {
                Some(fence) if self.closes(fence) => None,
                Some(fence) => Some(fence),
                None => candidate.filter(|candidate| !strict || candidate.indent < CODE_INDENT),
            };
            if fence.is_none() && next.is_some() {
                self.run = 0;
            }
            if let Some(slot) = self.fences.get_mut(usize::from(strict)) {
                *slot = next;
            }
        }
        self.line += 1;
        self.begin_line();
    }

    fn closes(&self, fence: Fence) -> bool {
        let (indent, _) = split_indent(&self.head);
        let content = self.head.trim_matches(is_blank);
        let is_only = content.bytes().all(|byte| byte == fence.mark);
        let is_whole = self.head_length < HEAD && content.len() >= fence.length;
        is_whole && is_only && indent < fence.indent + CODE_INDENT
    }

    /// What a line that ended means for the next ones.
    fn note_line(&mut self) {
        let content = self.head.trim_matches(is_blank);
        if content.is_empty() {
            if self.before == Before::Nothing {
                // Inline code does not reach over a blank line.
                self.run = 0;
                self.in_quotation = false;
            }
            return;
        }
        // The text after a quotation belongs to it, up to a blank line.
        self.in_quotation |= content.starts_with('>');
        let (indent, _) = split_indent(&self.head);
        if is_list_item(content) {
            self.in_list = true;
        } else if indent == 0 {
            self.in_list = false;
        }
        let starts = |words: &[&str]| words.iter().any(|word| self.head.starts_with(word));
        if starts(&["@@", "diff --git ", "--- ", "+++ "]) {
            self.in_diff = true;
        } else if !starts(&[" ", "+", "-", "@", "\\", "index ", "diff "]) {
            self.in_diff = false;
        }
    }
}

/// Where the word, which is in lower case, stands in the text.
fn find_ignoring_case(text: &str, word: &str) -> Option<usize> {
    let first = word.bytes().next()?;
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text.as_bytes()).find(|at| {
        let here = text.as_bytes().get(*at..*at + word.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Quotation marks, opening brackets and emphasis.
fn is_quoting(character: char) -> bool {
    matches!(
        character,
        '"' | '\''
            | '('
            | '['
            | '{'
            | '`'
            | '*'
            | '_'
            | '~'
            | '|'
            | '«'
            | '»'
            | '“'
            | '”'
            | '‘'
            | '’'
            | '„'
            | '‹'
            | '›'
    )
}

/// The columns before the text of a line, and that text.
fn split_indent(line: &str) -> (usize, &str) {
    let rest = line.trim_start_matches([' ', '\t']);
    let before = line.len() - rest.len();
    let columns = line
        .bytes()
        .take(before)
        .fold(0, |columns, byte| match byte {
            b'\t' => columns + CODE_INDENT - columns % CODE_INDENT,
            _ => columns + 1,
        });
    (columns, rest)
}

fn without_digits(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

fn is_list_item(rest: &str) -> bool {
    let after = rest.strip_prefix(['-', '*', '+', '•', '‣', '◦']);
    let after = after.or_else(|| without_digits(rest)?.strip_prefix(['.', ')']));
    after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\r']))
}

/// A line with its number before it.
fn is_numbered(rest: &str) -> bool {
    let is_gap = |c: char| matches!(c, ' ' | '\r');
    without_digits(rest).is_some_and(|after| {
        after.starts_with(['.', ')', ':', '|', '\t', '→'])
            || after.chars().take(2).filter(|c| is_gap(*c)).count() == 2
    })
}
