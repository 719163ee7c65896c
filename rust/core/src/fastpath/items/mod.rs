//! Cache of item templates. Consecutive deltas of one item usually differ only in their text, so only the text is
//! parsed.
//!
//! If a fully decoded payload contains only one piece of text for one item, the decoder learns a template from the
//! payload. The template consists of the bytes around the varying members. A later payload matches if it consists of
//! the same bytes with any valid JSON strings and small numbers in between. A JSON parser would go through the same
//! states for such a payload, so only the text and the numbers differ. The decoder itself checks conditions that depend
//! on more than the payload. The code in this folder does not depend on the dialect.

pub(crate) mod rows;
pub(crate) mod template;

use crate::assemble::PieceRun;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::dialect::decode_context::ParseResult;
use crate::fastpath::items::template::ItemTemplate;
use crate::fastpath::items::template::LearnableDelta;
use crate::fastpath::items::template::TemplateMatch;
use crate::fastpath::items::template::build_template;
use crate::json::Text;
use crate::model::delta::PartAt;
use crate::model::event::Delta;

/// Maximum number of templates, and thus of items whose deltas may alternate.
const KEPT: usize = 4;

/// After this many learned templates without a match, only every `PAUSE`-th payload is learned.
const FRUITLESS: u32 = 16;
const PAUSE: u32 = 64;

/// The templates of one stream.
#[derive(Debug, Default)]
pub(crate) struct ItemTemplates {
    known: Vec<ItemTemplate>,
    last: usize,
    /// Index of the template to replace next once the cache is full.
    next: usize,
    fruitless: u32,
}

impl ItemTemplates {
    /// Returns the varying members of a payload if it matches a known template.
    #[inline]
    pub(crate) fn find<'p>(&mut self, incoming: Incoming<'p>) -> Option<TemplateMatch<'p>> {
        let likely = self.known.get(self.last)?.next;
        let found = match self.known.get(likely).and_then(|it| it.fit(incoming)) {
            Some(found) => {
                self.last = likely;
                found
            }
            None => self.find_other(incoming, likely)?,
        };
        self.fruitless = 0;
        found.as_text()
    }

    #[inline(never)]
    fn find_other<'p>(
        &mut self,
        incoming: Incoming<'p>,
        unlike: usize,
    ) -> Option<TemplateMatch<'p>> {
        let mut positions = (0..self.known.len()).filter(|position| *position != unlike);
        let fit = |position: usize| Some((position, self.known.get(position)?.fit(incoming)?));
        let (position, found) = positions.find_map(fit)?;
        if let Some(before) = self.known.get_mut(self.last) {
            before.next = position;
        }
        self.last = position;
        Some(found)
    }

    /// Appends the text in `found`, which `find` returned last, to the text's part or call.
    #[inline]
    pub(crate) fn append_match(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        found: &TemplateMatch<'_>,
    ) -> ParseResult {
        let Some(template) = self.known.get_mut(self.last) else {
            return Ok(());
        };
        let text = if found.escaped {
            Text::unescape(found.text)
        } else {
            Text::plain(found.text)
        };
        if text.is_whole() {
            let ends = [text.body.len()];
            let gone = template.more(wire, PieceRun::new(&text.body, 0, &ends), !found.escaped);
            if gone.count > 0 {
                let (kind, choice) = template.kind_and_choice();
                wire.out.emit(&kind.event(Delta {
                    part: gone.part,
                    text: &text.body,
                    choice,
                    metadata: None,
                }));
                return Ok(());
            }
        }
        let mut route_cache = template.route_cache;
        let (address, DecodeContext { assembler, out }) = (template.address(), wire);
        match template.part {
            Some(part) => {
                let at = PartAt {
                    choice: part.choice,
                    kind: part.kind,
                    address,
                    channel: part.channel,
                    reasoning_kind: part.reasoning_kind,
                };
                assembler.go_on_with_part(out, at, text, &mut route_cache)?;
            }
            None => {
                let tool = template.tool;
                assembler.go_on_with_call(out, 0, address, text, tool, &mut route_cache)?;
            }
        }
        template.route_cache = route_cache;
        Ok(())
    }

    /// Returns true if a new template should be learned now.
    #[inline]
    pub(crate) fn should_learn(&mut self) -> bool {
        self.fruitless = self.fruitless.saturating_add(1);
        self.fruitless <= FRUITLESS || self.fruitless % PAUSE == 0
    }

    /// Removes all templates, because they may no longer be valid.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.last = 0;
        self.next = 0;
    }

    /// Learns a template from a fully decoded payload.
    pub(crate) fn learn(
        &mut self,
        event: Option<&str>,
        payload: &str,
        learnable: LearnableDelta<'_>,
    ) {
        let Some(mut template) = build_template(event, payload, learnable) else {
            return;
        };
        if self.known.iter().any(|known| known.is_same(&template)) {
            return;
        }
        if self.known.len() < KEPT {
            self.last = self.known.len();
            template.next = self.last;
            self.known.reserve_exact(usize::from(self.last == 0));
            self.known.push(template);
        } else if let Some(position) = self.known.get_mut(self.next) {
            template.next = self.next;
            *position = template;
            self.last = self.next;
            self.next = (self.next + 1) % KEPT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fastpath::items::template::Target;
    use crate::fastpath::items::template::Varying;
    use crate::fastpath::items::template::is_small;
    use crate::json::Kind;
    use crate::json::members::Document;
    use crate::json::members::Object;
    use crate::json::members::document;
    use crate::model::delta::Address;

    fn object(payload: &str) -> Object<'_> {
        match document(payload, None) {
            Ok(Document::Object(object)) => object,
            other => panic!("{other:?}"),
        }
    }

    fn varying<'a>(object: &Object<'a>) -> Varying<'a> {
        Varying {
            text: object.get("t").unwrap(),
            padding: object.get("p").filter(|raw| raw.kind == Kind::String),
            number: object.get("n").filter(|raw| is_small(*raw)),
            object: None,
            blanks: true,
        }
    }

    /// The mark (hash) of an event must be the same whether the event is decoded in full or matched against a template.
    #[test]
    fn equal_events_have_equal_marks() {
        let mut marks = std::collections::HashSet::new();
        let texts = [
            "a",
            "seven77",
            "a \\n",
            "\u{e9}t\u{e9}",
            "sixteen letters!",
            "a longer piece of text than that is",
        ];
        for text in texts {
            for padding in [
                "\"p\":\"\",",
                "\"p\":\"xY\",",
                "\"p\":\"xYxYxYxYxYxYxYxYxY\",",
                "",
            ] {
                for following in ["", "   "] {
                    let write = |text, number| {
                        format!(
                            "{{{padding}\"t\":\"{text}\",\"i\":\"id\",\"n\":{number}{following}}}"
                        )
                    };
                    let (first, next) = (write("first", 7), write(text, 12_345));
                    let learnable = LearnableDelta {
                        target: Target::Call(Address::default(), None),
                        varying: varying(&object(&first)),
                    };
                    let template = build_template(None, &first, learnable).unwrap();
                    let read = varying(&object(&next)).mark(&next);
                    let lines = format!("data: {next}\n\n");
                    let found = template.fit(Incoming::Lines(lines.as_bytes())).unwrap();
                    assert_eq!(Some(found.mark()), read, "{next}");
                    let (event, data) = (&b""[..], next.as_bytes());
                    let found = template.fit(Incoming::Payload { event, data }).unwrap();
                    assert_eq!(Some(found.mark()), read, "{next}");
                    assert!(marks.insert(read), "{next}");
                }
            }
        }
    }
}
