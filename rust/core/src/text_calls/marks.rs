//! The marks of the table that quote text: quotation marks, parentheses, brackets, emphasis, list and table marks.

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
}

impl Marks {
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

fn is_first(pairs: &[[char; 2]], character: char) -> bool {
    pairs.iter().any(|[first, _]| *first == character)
}
