//! The marks of the table that quote text: quotation marks, parentheses, brackets, emphasis, list and table marks.

use crate::text_calls::byte_set::ByteSet;
use crate::text_calls::reading::is_blank;

/// The marks of the table, by their meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// A quotation mark and a mark that may close it. Languages use the same marks differently.
    pub quotations: Vec<[char; 2]>,
    /// Opening and closing parentheses.
    pub parentheses: Vec<[char; 2]>,
    /// Marks that also occur in words, so that they quote only what directly follows them.
    pub apostrophes: Vec<char>,
    pub emphasis: Vec<char>,
    /// Brackets, which quote what follows them, also after white space.
    pub brackets: Vec<char>,
    /// Marks that begin a list item if white space follows.
    pub list_items: Vec<char>,
    /// Marks between the cells of a table row.
    pub table: Vec<char>,
    /// First bytes of the quotation marks, parentheses, apostrophes and emphasis.
    pub quoting_firsts: ByteSet,
    /// First bytes of the marks and labels of list items.
    pub item_firsts: ByteSet,
}

impl Marks {
    /// Returns the marks, ready for searches.
    pub fn indexed(self) -> Marks {
        let pairs = self.quotations.iter().chain(&self.parentheses).flatten();
        let quoting = pairs.chain(&self.apostrophes).chain(&self.emphasis);
        let first = |mark: &char| mark.to_string().bytes().next();
        let labels = (b'0'..=b'9').chain(b'a'..=b'z').chain(b'A'..=b'Z');
        let items = self.list_items.iter().filter_map(first);
        Marks {
            quoting_firsts: ByteSet::new(quoting.filter_map(first).collect()),
            item_firsts: ByteSet::new(items.chain(labels).chain([b'(']).collect()),
            ..self
        }
    }

    /// Returns the text before the first character that may be a quotation mark, a parenthesis, an apostrophe or
    /// emphasis, and the rest of the text.
    pub fn split_at_quoting<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        let mut bytes = text.bytes();
        let found = bytes.position(|byte| self.quoting_firsts.has(byte));
        text.split_at_checked(found.unwrap_or(text.len()))
            .unwrap_or((text, ""))
    }

    /// Returns the text after the mark or the label of a list item (`-`, `1.`, `b)`, `(iv)`), or `None` if the text does
    /// not begin with one.
    fn after_list_mark<'t>(&self, text: &'t str) -> Option<&'t str> {
        if !self.item_firsts.has(*text.as_bytes().first()?) {
            return None;
        }
        let after = text.strip_prefix(|first| self.list_items.contains(&first));
        let after = after.or_else(|| after_item_label(text));
        after.filter(|after| after.is_empty() || after.starts_with([' ', '\t', '\r']))
    }

    /// Returns true if the text, which begins a line, begins a list item.
    pub fn begin_item(&self, text: &str) -> bool {
        self.after_list_mark(text).is_some()
    }

    /// Returns true if the line begins a block quotation (`>`), possibly as the content of list items and tasks.
    pub fn begin_quotation(&self, line: &str) -> bool {
        let mut content = line.trim_start_matches(is_blank);
        while let Some(after) = self.after_list_mark(content) {
            let item = after.trim_start_matches(is_blank);
            content = after_task_box(item).unwrap_or(item);
        }
        content.starts_with('>')
    }

    /// Returns true if the character opens a quotation or parentheses.
    pub fn opens_quotation(&self, character: char) -> bool {
        is_first(&self.quotations, character) || is_first(&self.parentheses, character)
    }

    /// Returns true if the second character closes the quotation or the parentheses that the first one opens.
    pub fn pairs(&self, open: char, close: char) -> bool {
        let pair = [open, close];
        self.quotations.contains(&pair) || self.parentheses.contains(&pair)
    }

    /// Returns true if a call directly after the character is quoted, unless the character closes a quotation.
    pub fn is_opening(&self, character: char) -> bool {
        self.opens_quotation(character)
            || self.is_emphasis_or_apostrophe(character)
            || self.brackets.contains(&character)
            || self.table.contains(&character)
    }

    /// Returns true for the marks that may be closed by the same mark or by another one, except parentheses.
    pub fn is_paired(&self, character: char) -> bool {
        let mut pairs = self.quotations.iter().flatten();
        self.is_emphasis_or_apostrophe(character) || pairs.any(|mark| *mark == character)
    }

    pub fn is_emphasis_or_apostrophe(&self, character: char) -> bool {
        self.emphasis.contains(&character) || self.apostrophes.contains(&character)
    }

    /// Returns true if a token between these two characters is quoted.
    pub fn surround(&self, before: char, after: char) -> bool {
        let is_apostrophe = before == after && self.apostrophes.contains(&before);
        is_apostrophe || self.quotations.contains(&[before, after])
    }
}

/// Returns the text after a number, a letter, or a roman number that begins a list item.
fn after_item_label(remaining: &str) -> Option<&str> {
    let (is_enclosed, text) = match remaining.strip_prefix('(') {
        Some(text) => (true, text),
        None => (false, remaining),
    };
    let after = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    let label = text.get(..text.len() - after.len())?;
    let is_roman = |label: &str| label.bytes().all(|byte| b"ivxIVX".contains(&byte));
    if is_enclosed {
        return after
            .strip_prefix(')')
            .filter(|_| (1..=3).contains(&label.len()));
    }
    let is_label = match label.len() {
        0 => false,
        1 => true,
        2..=4 if is_roman(label) => true,
        _ => label.bytes().all(|byte| byte.is_ascii_digit()),
    };
    after.strip_prefix(['.', ')']).filter(|_| is_label)
}

/// Skips the box of a task (`[ ]`, `[x]`) and the white space behind it. Returns the rest, or `None` without a box.
fn after_task_box(item: &str) -> Option<&str> {
    let mut boxes = ["[ ]", "[x]", "[X]"].into_iter();
    let after = boxes.find_map(|mark| item.strip_prefix(mark))?;
    let content = after.trim_start_matches(is_blank);
    (content.len() < after.len()).then_some(content)
}

fn is_first(pairs: &[[char; 2]], character: char) -> bool {
    pairs.iter().any(|[first, _]| *first == character)
}
