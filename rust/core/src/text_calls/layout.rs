//! Determines where in Markdown text a call is allowed: not in fences, inline code, quotations, lists, diffs, or
//! tables.
//!
//! Blocks are skipped, so that a fence inside an argument is ignored. A fence that is indented by four or more columns
//! is a fence inside a list and indented code elsewhere. Both interpretations are tracked, and a call is allowed only
//! if neither has an open fence. If a position is ambiguous, no call is allowed there, because a call that remains text
//! is still readable.

use crate::text_calls::fences::CODE_INDENT;
use crate::text_calls::fences::Code;
use crate::text_calls::fences::split_indent;
use crate::text_calls::marks::Marks;
use crate::text_calls::open::Following;
use crate::text_calls::open::Open;
use crate::text_calls::open::Progress;
use crate::text_calls::open::begins;
use crate::text_calls::open::begins_element;
use crate::text_calls::open::is_element;
use crate::text_calls::quotes::Quotes;
use crate::text_calls::reading::is_blank;
use crate::text_calls::words::Mark;
use crate::text_calls::words::Words;

/// Minimum number of columns by which a line that belongs to a list item is indented.
const ITEM_INDENT: usize = 2;
/// Line before each hunk of a context diff.
const CONTEXT_DIFF: &str = "***************";

/// Which markers are allowed at a position. `Nowhere`: no marker is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkerPosition {
    Nowhere,
    /// Every marker is allowed, because only whitespace, the end of reasoning, or a block precedes it on its line.
    Start,
    /// Only special tokens are allowed, because other text precedes them on the line.
    AfterProse,
}

/// What precedes a position on its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// At most whitespace precedes the position.
    #[default]
    Nothing,
    /// A block or the end of reasoning precedes the position, followed by at most whitespace.
    Block,
    Prose,
}

/// Whether the beginning of an opener in an earlier part is completed by the text of this part.
enum Joined<'w> {
    Opener(Mark<'w>),
    /// An element of the same name as the open element.
    Element,
    Undecided,
    Text,
}

/// Markdown state of the text read so far.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Offset up to which the text has been read.
    at: usize,
    code: Code,
    /// What is open and quotes the text.
    open: Option<Open>,
    /// The first opener in the inline code. The opener counts if no backticks end the code.
    code_opener: Option<Open>,
    /// The beginning of an opener at the end of the earlier parts of this kind. It counts if the text of this part
    /// completes it.
    carried: String,
    /// Likewise for the parts of the other kind: those with reasoning, or those with text.
    carried_elsewhere: String,
    /// False if the current part is reasoning.
    in_text: bool,
    in_list: bool,
    in_diff: bool,
    in_quotation: bool,
    /// True if the text so far consists only of reasoning tags.
    pub is_empty: bool,
    /// Number of lines that have ended.
    pub line: usize,
    // The current line.
    /// Offset of the line's start, or of the end of the last skipped range in the line.
    line_start: usize,
    before: Before,
    /// True if a table mark, or reasoning that ended in a quotation, precedes the position. No call is allowed on the
    /// rest of the line.
    is_quoted: bool,
    /// The last character that is not white space.
    last: Option<char>,
    /// True if white space follows `last`.
    is_spaced: bool,
    /// Quotation marks and emphasis on the line.
    quotes: Quotes,
    /// Offset up to which `quotes` has read the line. The text of reasoning is not read.
    quotes_at: usize,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            at: 0,
            code: Code::default(),
            open: None,
            code_opener: None,
            carried: String::new(),
            carried_elsewhere: String::new(),
            in_text: true,
            in_list: false,
            in_diff: false,
            in_quotation: false,
            is_empty: true,
            line: 0,
            line_start: 0,
            before: Before::Nothing,
            is_quoted: false,
            last: None,
            is_spaced: false,
            quotes: Quotes::default(),
            quotes_at: 0,
        }
    }
}

impl Layout {
    fn begin_line(&mut self) {
        self.code.begin_line();
        self.before = Before::Nothing;
        self.is_quoted = false;
        self.last = None;
        self.is_spaced = false;
    }

    /// Reads the text up to a position, and returns which markers are allowed there.
    pub fn marker_position(
        &mut self,
        text: &str,
        position: usize,
        words: &Words,
    ) -> MarkerPosition {
        let next = text.get(position..).unwrap_or_default().chars().next();
        let next = next.unwrap_or_default();
        let is_joined = self.join(text, position + next.len_utf8(), Following::Unknown, words);
        self.advance(text, position, words);
        let is_settled = self.settle(text, position, next, words);
        let tail = text.get(self.at..position).unwrap_or_default();
        if self.code.is_code() || self.open.is_some() || !is_settled {
            return MarkerPosition::Nowhere;
        }
        if !is_joined && position > 0 {
            return MarkerPosition::Nowhere;
        }
        let before = if tail.is_empty() {
            self.before
        } else {
            Before::Prose
        };
        if before == Before::Block {
            return MarkerPosition::Start;
        }
        if self.is_quoting_line(&words.marks) {
            return MarkerPosition::Nowhere;
        }
        if before == Before::Nothing {
            return MarkerPosition::Start;
        }
        let (last, is_spaced) = self.last_before(tail);
        // More marks of the same kind follow, so a closing mark is not complete yet.
        let goes_on = !is_spaced && last == Some(next) && words.marks.is_opening(next);
        if self.is_quoted || goes_on {
            return MarkerPosition::Nowhere;
        }
        let is_tag_begun =
            !tail.is_empty() && last.is_some_and(|last| words.marks.is_opening(last));
        self.read_quotes(text, position, &words.marks);
        if is_tag_begun || self.quotes_here(last, is_spaced, &words.marks) {
            return MarkerPosition::Nowhere;
        }
        MarkerPosition::AfterProse
    }

    /// Reads the text before a position if the character at the position determines how it is read.
    ///
    /// Returns false if the text is an opener and the character may continue what makes it no opener.
    fn settle(&mut self, text: &str, position: usize, next: char, words: &Words) -> bool {
        let tail = text.get(self.at..position).unwrap_or_default();
        if tail.is_empty() {
            return true;
        }
        let is_settled = match &self.open {
            Some(open) => open.is_whole_closer(tail),
            None if words.may_continue(tail, next) => return false,
            None if tail.trim_start_matches(['`', '~']).is_empty() => !tail.ends_with(next),
            None => words.is_held_opener(tail),
        };
        if is_settled {
            self.piece(text, position, Following::Character(next), words);
        }
        true
    }

    /// Returns the last character that is not white space, and whether white space follows. `tail`: the text that was
    /// not read yet.
    fn last_before(&self, tail: &str) -> (Option<char>, bool) {
        let content = tail.trim_end_matches(is_blank);
        match content.chars().next_back() {
            Some(last) => (Some(last), content.len() < tail.len()),
            None => (self.last, self.is_spaced || !tail.is_empty()),
        }
    }

    /// Returns true if the marks on the line quote what follows. `last`: the last character that is not white space.
    fn quotes_here(&self, last: Option<char>, is_spaced: bool, marks: &Marks) -> bool {
        let is_opened = last.is_none_or(|last| {
            let is_opening = !is_spaced && marks.is_opening(last) && !self.quotes.closes();
            is_opening || marks.brackets.contains(&last)
        });
        is_opened || self.quotes.is_open()
    }

    /// Reads the marks on the line up to a position.
    fn read_quotes(&mut self, text: &str, position: usize, marks: &Marks) {
        let next = text.get(position..).unwrap_or_default().chars().next();
        let line = text.get(self.quotes_at..position).unwrap_or_default();
        self.quotes.read(line, next.unwrap_or_default(), marks);
        self.quotes_at = position;
    }

    /// Returns true if a block ended on this line and only whitespace follows up to the position.
    pub fn is_line_open(&self, text: &str, position: usize) -> bool {
        self.before == Before::Block && text.get(self.at..position).is_none_or(str::is_empty)
    }

    /// Records the end of a block that may become a call, and skips the block.
    pub fn end_block(&mut self, text: &str, start: usize, end: usize) {
        self.accept_as_text(text, start);
        self.skip_to(end);
        self.before = Before::Block;
        self.is_empty = false;
    }

    /// Records that a block stays text, or that text follows a block, and skips the range.
    pub fn end_refused(&mut self, text: &str, start: usize, end: usize) {
        self.accept_as_text(text, start);
        self.skip_to(end);
        self.is_empty = false;
        self.before = Before::Prose;
        self.last = Some('>');
        self.is_spaced = false;
    }

    /// Reads up to `start` and skips the text from there to `end`.
    pub fn skip(&mut self, text: &str, start: usize, end: usize, words: &Words) {
        self.advance(text, start, words);
        self.skip_to(end);
    }

    fn skip_to(&mut self, end: usize) {
        self.at = end;
        self.line_start = end;
        self.quotes.restart(self.code.run);
        self.quotes_at = end;
        self.carried.clear();
    }

    /// Starts another part, which also starts a new line. `in_text`: the part is not reasoning.
    pub fn start_part(&mut self, text: &str, in_text: bool, words: &Words) {
        let carried = self.end_part(text, words);
        let is_in_line = self.open.as_ref().is_some_and(Open::is_in_line);
        if !self.code.head.is_empty() || self.before != Before::Nothing || is_in_line {
            self.end_line(text.get(self.line_start..).unwrap_or_default(), words);
        }
        self.skip_to(0);
        self.carried = carried;
        if in_text != self.in_text {
            std::mem::swap(&mut self.carried, &mut self.carried_elsewhere);
            self.in_text = in_text;
        }
    }

    /// Reads the text up to the end of the part. Returns the end of the text if it may be the beginning of an opener.
    fn end_part(&mut self, text: &str, words: &Words) -> String {
        let end = text.len();
        let held = if self.join(text, end, Following::Unknown, words) {
            self.advance(text, end, words);
            text.get(self.at..).unwrap_or_default().to_owned()
        } else {
            self.carried.clone() + text
        };
        let may_open = match &self.open {
            None => !self.code.is_fenced() && words.begins_opener(&held),
            Some(Open::Element(element)) => begins(element.opener(), &held),
            Some(_) => false,
        };
        let was_open = self.open.is_some();
        self.join(text, end, Following::LineEnd, words);
        self.piece(text, end, Following::LineEnd, words);
        if may_open && self.open.is_some() == was_open {
            held
        } else {
            String::new()
        }
    }

    /// Completes an opener that began in earlier parts, if the text up to `end` shows that it is one. If not, its
    /// beginning is ordinary text.
    ///
    /// Returns false if more text is needed.
    fn join(&mut self, text: &str, end: usize, following: Following, words: &Words) -> bool {
        while !self.carried.is_empty() {
            match self.joined(text.get(..end).unwrap_or_default(), following, words) {
                Joined::Undecided => return false,
                Joined::Text => {
                    self.carried.remove(0);
                }
                Joined::Element => {
                    if let Some(open) = &mut self.open {
                        open.add_element();
                    }
                    self.carried.clear();
                }
                Joined::Opener(mark) => {
                    self.at = mark.length().saturating_sub(self.carried.len());
                    self.carried.clear();
                    let text = text.get(..self.at).unwrap_or_default();
                    if self.mark(&mark, text, words) {
                        self.note_text(text);
                    }
                }
            }
        }
        true
    }

    /// Determines whether the carried beginning of an opener and the text together are an opener.
    fn joined<'w>(&self, text: &str, following: Following, words: &'w Words) -> Joined<'w> {
        let line = text.chars().take_while(|next| *next != '\n');
        let mut joined = self.carried.clone();
        joined.extend(line.take(words.longest));
        let more = text.get(joined.len() - self.carried.len()..);
        let following = match more.unwrap_or_default().bytes().next() {
            None => following,
            Some(b'\n') => Following::LineEnd,
            Some(_) => Following::Unknown,
        };
        let is_held = following == Following::Unknown;
        match &self.open {
            None if self.code.is_fenced() => Joined::Text,
            None if is_held && words.may_begin(&joined) => Joined::Undecided,
            None => match words.tag(&joined, following) {
                Some(tag) if tag.is_opener() => Joined::Opener(Mark::Tag(tag)),
                _ => Joined::Text,
            },
            Some(Open::Element(element))
                if is_held && begins_element(element.opener(), &joined) =>
            {
                Joined::Undecided
            }
            Some(Open::Element(element)) if is_element(element.opener(), &joined, following) => {
                Joined::Element
            }
            Some(_) => Joined::Text,
        }
    }

    /// Treats the unread text up to `end` as ordinary text, although it might have begun a tag.
    fn accept_as_text(&mut self, text: &str, end: usize) {
        self.note_text(text.get(self.at..end).unwrap_or_default());
        self.at = end;
    }

    /// Returns true if the line is a quotation, a list item, a table row, code, a numbered line, or in a diff.
    fn is_quoting_line(&self, marks: &Marks) -> bool {
        let (indent, remaining) = split_indent(&self.code.head);
        let remaining = remaining.trim_start_matches(is_blank);
        indent >= CODE_INDENT
            || self.in_quotation
            || (self.in_list && indent >= ITEM_INDENT)
            || (self.in_diff && !self.code.head.is_empty())
            || remaining.starts_with(['>', '+', '-'])
            || remaining.starts_with(|first| marks.table.contains(&first))
            || ["@@", "< ", "<\t", "! ", "!\t"]
                .iter()
                .any(|start| remaining.starts_with(start))
            || marks.begin_item(remaining)
            || is_numbered(remaining, marks)
    }

    /// Reads up to `end`, or up to text that may be the beginning of a tag.
    pub fn advance(&mut self, text: &str, end: usize, words: &Words) {
        if !self.join(text, end, Following::Unknown, words) {
            return;
        }
        while let Some(remaining) = text.get(self.at..end) {
            let Some(length) = memchr::memchr(b'\n', remaining.as_bytes()) else {
                return self.piece(text, end, Following::Unknown, words);
            };
            let line_end = self.at + length;
            self.piece(text, line_end, Following::LineEnd, words);
            let line = text.get(self.line_start..line_end);
            self.end_line(line.unwrap_or_default(), words);
            self.skip_to(line_end + 1);
        }
    }

    /// Reads the text of one line up to `end`, or up to text that may be the beginning of a tag. `following`: what
    /// follows at `end`.
    fn piece(&mut self, text: &str, end: usize, following: Following, words: &Words) {
        let mut noted = self.at; // the offset up to which the text was noted
        loop {
            let piece = text.get(self.at..end).unwrap_or_default();
            if self.code.is_fenced() {
                self.code.note(piece);
                self.at = end.max(self.at);
                return;
            }
            if self.open.is_some() {
                self.note_text(text.get(noted..self.at).unwrap_or_default());
                noted = self.at;
            }
            if let Some(open) = &mut self.open {
                match open.read(piece, following, &words.marks) {
                    Progress::Open(length) => {
                        self.at += length;
                        return;
                    }
                    Progress::Closed(length) => self.at += length,
                }
                self.close(words);
                noted = self.at;
                continue;
            }
            let settled = words.settled(piece, following);
            let Some((found, mark)) = words.next_mark(piece, settled, following) else {
                self.at += settled;
                self.note_text(text.get(noted..self.at).unwrap_or_default());
                return;
            };
            let start = self.at + found;
            self.at = start + mark.length();
            if !matches!(mark, Mark::Table(_)) {
                self.note_text(text.get(noted..start).unwrap_or_default());
                noted = start;
            }
            if matches!(mark, Mark::Tag(tag) if tag.is_reasoning()) {
                // The text of the reasoning is not part of the line.
                self.read_quotes(text, start, &words.marks);
            }
            if !self.mark(&mark, text.get(start..self.at).unwrap_or_default(), words) {
                noted = self.at;
            }
        }
    }

    /// Reads a mark. Returns true if the mark is part of the line and was not noted yet.
    fn mark(&mut self, mark: &Mark<'_>, text: &str, words: &Words) -> bool {
        match mark {
            Mark::Ticks(length) => {
                self.code.ticks(*length, self.before == Before::Nothing);
                if self.code.run == 0 {
                    self.code_opener = None;
                }
            }
            Mark::Tildes(length) => self.code.tildes(*length, self.before == Before::Nothing),
            Mark::Table(_) => self.is_quoted = true,
            Mark::Tag(tag) => match tag.opens() {
                Some(open) if self.code.is_inline() => {
                    self.code_opener.get_or_insert(open);
                }
                None if self.code.is_inline() => {}
                Some(open) => {
                    let is_reasoning = tag.is_reasoning();
                    self.open = Some(open);
                    return !is_reasoning;
                }
                None => {
                    self.end_reasoning(text, words);
                    return false;
                }
            },
        }
        true
    }

    /// Treats an open run of backticks as text, because inline code cannot continue here.
    fn leave_code(&mut self) {
        let opener = self.code_opener.take();
        if self.code.run > 0 {
            self.open = opener;
        }
        self.code.run = 0;
    }

    /// Ends what is open.
    fn close(&mut self, words: &Words) {
        let Some(open) = self.open.take() else {
            return;
        };
        match open {
            Open::Reasoning { closer } => self.end_reasoning(&closer, words),
            _ => self.note_text(open.closer()),
        }
    }

    /// Ends reasoning, which begins a new line, unless the line up to the reasoning quotes what follows.
    fn end_reasoning(&mut self, text: &str, words: &Words) {
        self.quotes_at = self.at - text.len();
        let is_quoted = self.before == Before::Prose
            && (self.is_quoted || self.quotes_here(self.last, self.is_spaced, &words.marks));
        if is_quoted || self.is_quoting_line(&words.marks) {
            self.note_text(text);
            self.is_quoted |= is_quoted;
        } else {
            self.begin_line();
            self.before = Before::Block;
        }
    }

    fn note_text(&mut self, text: &str) {
        self.code.note(text);
        let content = text.trim_end_matches(is_blank);
        self.is_spaced = content.len() < text.len() || (text.is_empty() && self.is_spaced);
        if let Some(last) = content.chars().next_back() {
            self.last = Some(last);
            self.before = Before::Prose;
            self.is_empty = false;
        }
    }

    fn end_line(&mut self, line: &str, words: &Words) {
        let is_fenced = self.code.is_fenced() || self.code.may_begin_fence();
        match &mut self.open {
            Some(open) => open.end_line(),
            None if !is_fenced => self.note_line(line, words),
            None => {}
        }
        if self.code.end_line() {
            // Inline code does not continue after a fence.
            self.leave_code();
        }
        self.line += 1;
        self.begin_line();
    }

    /// Updates the state of lists, quotations and diffs after a line.
    fn note_line(&mut self, line: &str, words: &Words) {
        let content = self.code.head.trim_matches(is_blank);
        if content.is_empty() {
            if self.before == Before::Nothing {
                // Inline code does not continue after a blank line.
                self.leave_code();
                self.in_quotation = false;
            }
            return;
        }
        // In Markdown, lines after a quotation or a list item belong to it until a blank line. A list item or another
        // quoting line that contains a marker quotes a call, and the following lines may be the rest of the quotation
        // or its next call. A call that remains text is still readable, but a quoted call cannot be undone once it has
        // been run. Therefore, no call is allowed before the blank line. After list items without a marker, a call is
        // allowed, because models often list their steps just before they make a call. A line that ends in a marker
        // quotes a block whose content is on the following lines.
        let is_item = words.marks.begin_item(content);
        let may_quote = is_item || content.starts_with('>');
        self.in_quotation = self.in_quotation
            || (may_quote && words.marks.begin_quotation(content))
            || words.ends_in_marker(line)
            || (self.is_quoting_line(&words.marks) && words.has_marker(line));
        let (indent, _) = split_indent(&self.code.head);
        if is_item {
            self.in_list = true;
        } else if indent == 0 {
            self.in_list = false;
        }
        let starts = |words: &[&str]| words.iter().any(|word| self.code.head.starts_with(word));
        if self.code.head.starts_with(['@', 'd', '-', '+', '*'])
            && starts(&["@@", "diff --git ", "--- ", "+++ ", "*** ", CONTEXT_DIFF])
        {
            self.in_diff = true;
        } else if self.in_diff {
            self.in_diff = starts(&[" ", "+", "-", "!", "@", "\\", "index ", "diff "]);
        }
    }
}

fn without_digits(text: &str) -> Option<&str> {
    let remaining = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (remaining.len() < text.len()).then_some(remaining)
}

/// Returns true if the line begins with a line number.
fn is_numbered(remaining: &str, marks: &Marks) -> bool {
    let is_gap = |c: char| matches!(c, ' ' | '\r');
    without_digits(remaining).is_some_and(|after| {
        after.starts_with(['.', ')', ':', '\t', '→'])
            || after.starts_with(|next| marks.table.contains(&next))
            || after.chars().take(2).filter(|c| is_gap(*c)).count() == 2
    })
}
