//! Cache of Chat templates. Consecutive chunks of a stream usually differ only in a few strings, so only those strings
//! have to be parsed.
//!
//! A template is learned from a fully decoded chunk whose only effect was one piece of text, of reasoning, or of a tool
//! call. The template stores the bytes around the varying members. A later payload matches if it consists of the same
//! bytes with any valid JSON strings in between, or any small number in place of an index. For such a payload, a JSON
//! parser would go through the same states and the decoder would receive the same members, so only the strings and
//! numbers differ. A matching payload has no other effects, such as new metadata, a finish reason, usage or a
//! diagnostic. If the bytes around the varying members had another effect, the template would not have been learned,
//! and a payload with different bytes does not match. When chunk-level metadata changes, `clear` removes all templates.

use crate::dialect::decode_context::Ending;
use crate::fastpath::chat::template::HOLES;
use crate::fastpath::chat::template::LearnableChunk;
use crate::fastpath::chat::template::Template;
use crate::fastpath::chat::template::VaryingMembers;
use crate::fastpath::chat::template::build_template;

/// Maximum number of templates.
const KEPT: usize = 8;

/// Number of learned templates without a match after which only every `PAUSE`-th chunk is learned.
const FRUITLESS: u32 = 16;
const PAUSE: u32 = 64;

#[derive(Debug)]
pub(crate) struct Cache {
    templates: Vec<Template>,
    last: usize,
    /// Index of the template to replace next once the cache is full.
    next: usize,
    fruitless: u32,
    off: bool,
}

impl Cache {
    pub(crate) fn new(off: bool) -> Cache {
        Cache {
            templates: Vec::new(),
            last: 0,
            next: 0,
            fruitless: 0,
            off,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.templates.clear();
        self.last = 0;
        self.next = 0;
    }

    /// Returns the template that matched last, if that template is plain, which means that its only hole is the text.
    #[inline]
    pub(crate) fn plain_event(&self) -> Option<&Template> {
        let last = self.templates.get(self.last);
        last.filter(|template| template.plain)
    }

    /// Matches the input against the template that matched last, if that template is plain.
    ///
    /// Returns the choice, the text, and the length of the matched input.
    #[inline]
    pub(crate) fn plain_text<'p>(
        &mut self,
        input: &'p [u8],
        ending: Ending,
    ) -> Option<(i32, &'p str, usize)> {
        let template = self.templates.get(self.last)?;
        let (text, length) = template.fit_plainly(input, ending)?;
        self.fruitless = 0;
        Some((template.choice, text, length))
    }

    /// Returns a template that matches the start of the input, and the matched length including the `ending`.
    ///
    /// Stores the contents of the holes in `found`, which must be empty. Ids and names that the decoder would reject
    /// are not stored.
    #[inline]
    pub(crate) fn find<'c>(
        &'c mut self,
        input: &'c [u8],
        ending: Ending,
        found: &mut VaryingMembers<'c>,
    ) -> Option<(&'c Template, usize)> {
        let length = match self.templates.get(self.last)?.fit(input, ending, found) {
            Some(length) => length,
            None => self.find_other(input, ending, found)?,
        };
        self.fruitless = 0;
        let template = self.templates.get_mut(self.last)?.recall(found);
        Some((template, length))
    }

    fn find_other<'p>(
        &mut self,
        input: &'p [u8],
        ending: Ending,
        found: &mut VaryingMembers<'p>,
    ) -> Option<usize> {
        let last = self.last;
        let others = self.templates.iter().enumerate();
        for (at, template) in others.filter(|(at, _)| *at != last) {
            *found = VaryingMembers::default();
            if let Some(length) = template.fit(input, ending, found) {
                self.last = at;
                return Some(length);
            }
        }
        None
    }

    /// Returns true if a new template should be learned now.
    pub(crate) fn should_learn(&mut self) -> bool {
        if self.off {
            return false;
        }
        self.fruitless = self.fruitless.saturating_add(1);
        self.fruitless <= FRUITLESS || self.fruitless % PAUSE == 0
    }

    /// Learns a template from a fully decoded payload.
    pub(crate) fn learn(&mut self, payload: &str, choice: i32, learnable: LearnableChunk<'_>) {
        if learnable.holes.len() > HOLES {
            return;
        }
        let Some(template) = build_template(payload, choice, learnable) else {
            return;
        };
        let same =
            |known: &Template| known.fixed == template.fixed && known.holes == template.holes;
        if self.templates.iter().any(same) {
            return;
        }
        if self.templates.len() < KEPT {
            // Reserve room for one template at a time, because most streams need only one or two, and templates are
            // large.
            self.templates.reserve_exact(1);
            self.templates.push(template);
        } else if let Some(position) = self.templates.get_mut(self.next) {
            *position = template;
            self.next = (self.next + 1) % KEPT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fastpath::chat::template::ChunkKind;
    use crate::fastpath::chat::template::Hole;
    use crate::json::Scanner;

    #[test]
    fn a_template_matches_payloads_that_differ_only_in_its_holes() {
        let payload = r#"{"a":[{"index":12,"text":"hi"}],"pad":"xyz"}"#;
        let raw = |from: usize, to: usize| {
            let text = payload.get(from..to).unwrap();
            Scanner::new(text, None).skip().unwrap()
        };
        let (index, text, pad) = (
            payload.find("12").unwrap(),
            payload.find("\"hi").unwrap(),
            payload.find("\"xyz").unwrap(),
        );
        let mut cache = Cache::new(false);
        let mut learnable = LearnableChunk::new(ChunkKind::Text, raw(text, text + 4));
        learnable.holes.push((Hole::Index, raw(index, index + 2)));
        learnable.padding(Some(raw(pad, pad + 5)));
        cache.learn(payload, 0, learnable);
        let fits = |cache: &mut Cache, text: &str| {
            let mut found = VaryingMembers::default();
            let fits = cache
                .find(text.as_bytes(), Ending::Here, &mut found)
                .is_some();
            fits.then(|| (found.text.to_owned(), found.index))
        };
        assert_eq!(fits(&mut cache, payload), Some(("hi".to_owned(), Some(12))));
        let other = r#"{"a":[{"index":0,"text":"a \"quoted\" é"}],"pad":""}"#;
        assert_eq!(
            fits(&mut cache, other),
            Some((r#"a \"quoted\" é"#.to_owned(), Some(0)))
        );
        for miss in [
            r#"{"a":[{"index":01,"text":"hi"}],"pad":"xyz"}"#,
            r#"{"a":[{"index":-1,"text":"hi"}],"pad":"xyz"}"#,
            r#"{"a":[{"index":1.5,"text":"hi"}],"pad":"xyz"}"#,
            r#"{"a":[{"index":1,"text":"hi"}],"pad":"xyz"} "#,
            r#"{"a":[{"index":1,"text":"hi"}],"pad":null}"#,
            r#"{"a":[{"index":1,"text":"hi"}],"pad":"x"#,
            r#"{"a":[{"index":1,"text":"h"i"}],"pad":"x"}"#,
        ] {
            assert_eq!(fits(&mut cache, miss), None, "{miss}");
        }
    }

    #[test]
    fn a_plain_text_is_found() {
        let payload = r#"{"t":"hi","n":1}"#;
        let text = payload.get(5..9).unwrap();
        let raw = Scanner::new(text, None).skip().unwrap();
        let mut cache = Cache::new(false);
        cache.learn(payload, 3, LearnableChunk::new(ChunkKind::Text, raw));
        let mut find = |text: &str, ending| {
            let found = cache.plain_text(text.as_bytes(), ending);
            found.map(|(choice, text, length)| (choice, text.to_owned(), length))
        };
        let (other, whole) = (r#"{"t":"größe","n":1}"#, "{\"t\":\"ho\",\"n\":1}\n\ndata");
        let found = find(other, Ending::Here);
        assert_eq!(found, Some((3, "größe".to_owned(), other.len())));
        let found = find(whole, Ending::BlankLine);
        assert_eq!(found, Some((3, "ho".to_owned(), 18)));
        assert_eq!(find(whole, Ending::Here), None);
        for miss in [r#"{"t":"h\n","n":1}"#, r#"{"t":"hi","n":2}"#, r#"{"t":"hi"#] {
            assert_eq!(find(miss, Ending::Here), None, "{miss}");
        }
    }

    #[test]
    fn parts_with_holes_in_them_are_found_again() {
        let payload = r#"{"t":"hi","d":[{"t":"hi"}],"u":{"n":1,"o":{"m":22}}}"#;
        let raw = |text: &str, at: usize| {
            let (start, found) = payload.match_indices(text).nth(at).unwrap();
            Scanner::new(payload.get(start..start + found.len()).unwrap(), None)
                .skip()
                .unwrap()
        };
        let mut learnable = LearnableChunk::new(ChunkKind::Reasoning, raw("\"hi\"", 0));
        learnable.holes.push((Hole::Same, raw("\"hi\"", 1)));
        learnable.details = Some(raw(r#"[{"t":"hi"}]"#, 0));
        learnable.counts(raw(r#"{"n":1,"o":{"m":22}}"#, 0));
        let mut cache = Cache::new(false);
        cache.learn(payload, 0, learnable);
        let other = r#"{"t":"grüße","d":[{"t":"grüße"}],"u":{"n":12345,"o":{"m":0}}}"#;
        let mut found = VaryingMembers::default();
        assert!(
            cache
                .find(other.as_bytes(), Ending::Here, &mut found)
                .is_some()
        );
        assert_eq!(found.text, "grüße");
        assert_eq!(found.details, Some(r#"[{"t":"grüße"}]"#));
        assert_eq!(found.usage, Some(r#"{"n":12345,"o":{"m":0}}"#));
        for miss in [
            r#"{"t":"hi","d":[{"t":"ho"}],"u":{"n":1,"o":{"m":22}}}"#,
            r#"{"t":"hi","d":[{"t":"hi"}],"u":{"n":,"o":{"m":22}}}"#,
            r#"{"t":"hi","d":[{"t":"hi"}],"u":{"n":1.5,"o":{"m":22}}}"#,
        ] {
            assert!(
                cache
                    .find(
                        miss.as_bytes(),
                        Ending::Here,
                        &mut VaryingMembers::default()
                    )
                    .is_none(),
                "{miss}"
            );
        }
    }
}
