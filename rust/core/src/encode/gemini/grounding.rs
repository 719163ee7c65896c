//! Writes the pages that a candidate cites as its `groundingMetadata`.
//!
//! Other dialects count positions in characters. Gemini counts them in UTF-8 bytes of the candidate's whole text:
//! <https://ai.google.dev/gemini-api/docs/google-search>.

use crate::encode::common::citations::Citation;
use crate::encode::common::writer::Writer;
use std::collections::HashMap;

/// Maximum size of the texts of all segments of a response, in bytes. Every citation repeats the text that it refers
/// to, so many citations of a long text would need much more space than the source. A segment without its text can
/// still be cut from the candidate's text.
const MAX_SEGMENT_TEXTS: usize = 1 << 20;

/// The number of characters between two known byte offsets of a text.
const STEP: usize = 64;

/// Converts positions in a text from characters to bytes. The byte offset of every `STEP`th character is known, so that
/// many positions in a long text can be converted.
#[derive(Debug, Default)]
pub(crate) struct IndexedText {
    text: String,
    characters: usize,
    offsets: Vec<usize>,
}

impl IndexedText {
    pub(crate) fn of(text: &str) -> IndexedText {
        let mut indexed = IndexedText::default();
        indexed.push(text);
        indexed
    }

    pub(crate) fn push(&mut self, text: &str) {
        let start = self.text.len();
        for (offset, _) in text.char_indices() {
            if self.characters % STEP == 0 {
                self.offsets.push(start + offset);
            }
            self.characters += 1;
        }
        self.text.push_str(text);
    }

    /// Returns the number of characters.
    pub(crate) fn length(&self) -> i64 {
        i64::try_from(self.characters).unwrap_or(i64::MAX)
    }

    /// Returns the byte offset of a character, or `None` if it is not in the text. The end of the text also has an
    /// offset.
    fn byte_of(&self, character: usize) -> Option<usize> {
        if character == self.characters {
            return Some(self.text.len());
        }
        let start = *self.offsets.get(character / STEP)?;
        let mut following = self.text.get(start..)?.char_indices();
        let (offset, _) = following.nth(character % STEP)?;
        Some(start + offset)
    }

    /// Returns the byte offsets of a range in characters, or `None` if the range is empty or not in the text.
    fn bytes_of(&self, citation: &Citation<'_>) -> Option<(usize, usize)> {
        let start = usize::try_from(citation.start?).ok()?;
        let end = usize::try_from(citation.end?).ok()?;
        let range = self.byte_of(start).zip(self.byte_of(end));
        range.filter(|_| start < end)
    }
}

/// The pages that one candidate cites, and the segments of its text that refer to them.
#[derive(Debug, Default)]
pub(crate) struct Grounding {
    /// The index of each page, by URL and title.
    pages: HashMap<(String, String), usize>,
    /// The pages and segments as JSON, each without the brackets of its list.
    chunks: Writer,
    supports: Writer,
}

impl Grounding {
    /// Adds a page, and returns its index. A page that was already added is not added again.
    pub(crate) fn cite(&mut self, url: &str, title: Option<&str>) -> usize {
        let title = title.unwrap_or_default();
        let next = self.pages.len();
        let key = (url.to_owned(), title.to_owned());
        let index = *self.pages.entry(key).or_insert(next);
        if index == next {
            let to = comma(&mut self.chunks)
                .raw("{\"web\":{\"uri\":")
                .string(url);
            if !title.is_empty() {
                to.raw(",\"title\":").string(title);
            }
            to.raw("}}");
        }
        index
    }

    /// Adds a citation. Its positions are those of `text`, which begins at the byte offset `start` of the candidate's
    /// text. If `text` is `None` or the range is empty or invalid, only the page is added.
    pub(crate) fn cite_segment(
        &mut self,
        citation: &Citation<'_>,
        text: Option<(&IndexedText, usize)>,
        budget: &mut SegmentBudget,
    ) {
        let page = self.cite(&citation.url, citation.title.as_deref());
        let Some((indexed, start)) = text else {
            return;
        };
        let Some((from, end)) = indexed.bytes_of(citation) else {
            return;
        };
        let offset = |offset: usize| i64::try_from(start + offset).unwrap_or(i64::MAX);
        let to = comma(&mut self.supports).raw("{\"segment\":{\"startIndex\":");
        to.number(offset(from)).raw(",\"endIndex\":");
        to.number(offset(end));
        if let Some(segment) = indexed.text.get(from..end)
            && budget.spend(segment.len())
        {
            to.raw(",\"text\":").string(segment);
        }
        to.raw("},\"groundingChunkIndices\":[");
        to.number(i64::try_from(page).unwrap_or(i64::MAX)).raw("]}");
    }

    /// Writes `groundingMetadata`, if the candidate cites a page.
    pub(crate) fn write(&self, to: &mut Writer) {
        if self.chunks.bytes.is_empty() {
            return;
        }
        to.raw(",\"groundingMetadata\":{\"groundingChunks\":[");
        to.bytes.extend_from_slice(&self.chunks.bytes);
        if !self.supports.bytes.is_empty() {
            to.raw("],\"groundingSupports\":[");
            to.bytes.extend_from_slice(&self.supports.bytes);
        }
        to.raw("]}");
    }
}

/// Limits the texts of the segments of one response.
#[derive(Debug, Default)]
pub(crate) struct SegmentBudget {
    spent: usize,
}

impl SegmentBudget {
    /// Returns true if a text of this size may be written, and counts it.
    fn spend(&mut self, size: usize) -> bool {
        let fits = self.spent + size <= MAX_SEGMENT_TEXTS;
        if fits {
            self.spent += size;
        }
        fits
    }
}

/// Writes a comma, unless the list is empty.
fn comma(list: &mut Writer) -> &mut Writer {
    let mark = if list.bytes.is_empty() { "" } else { "," };
    list.raw(mark)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn positions_in_a_text() {
        let text = "é".repeat(STEP) + "xé";
        let mut indexed = IndexedText::default();
        for character in text.chars() {
            indexed.push(&character.to_string());
        }
        for (character, (offset, _)) in text.char_indices().enumerate() {
            assert_eq!(indexed.byte_of(character), Some(offset));
        }
        assert_eq!(indexed.byte_of(STEP + 2), Some(text.len()));
        assert_eq!(indexed.byte_of(STEP + 3), None);
        assert_eq!(IndexedText::default().byte_of(0), Some(0));
    }

    #[test]
    fn segments_that_are_too_long_have_no_text() {
        let indexed = IndexedText::of(&"x".repeat(MAX_SEGMENT_TEXTS));
        let citation = |end| Citation {
            url: Cow::Borrowed("u"),
            title: None,
            start: Some(0),
            end: Some(end),
            content: None,
        };
        let mut budget = SegmentBudget::default();
        let mut texts = |ends: &[usize]| {
            let mut grounding = Grounding::default();
            for end in ends {
                let end = i64::try_from(*end).unwrap();
                grounding.cite_segment(&citation(end), Some((&indexed, 7)), &mut budget);
            }
            let written = String::from_utf8(grounding.supports.bytes).unwrap();
            let supports = written.split("{\"segment\"").skip(1);
            let has_text = supports.map(|support| support.contains("\"text\""));
            has_text.collect::<Vec<bool>>()
        };
        assert_eq!(texts(&[1, MAX_SEGMENT_TEXTS, 2]), [true, false, true]);
        assert_eq!(texts(&[MAX_SEGMENT_TEXTS - 3, 1]), [true, false]);
    }
}
