//! Envelopes: consecutive chunks of a stream are the same bytes but for a few strings, so those strings are all that
//! has to be read.
//!
//! A template is learned from a chunk that was read in full and did nothing but add one piece of text, of reasoning or
//! of one tool call. It keeps the bytes around the varying members. A later payload that has the same bytes, with any
//! valid JSON strings (for an index: any small number) in between, leaves a JSON parser in the same states and the
//! decoder with the same members, so it means the same with the new strings. Whatever else a chunk could do (new
//! metadata, a finish reason, usage, a diagnostic) is either in those bytes, and then the chunk was not learned, or
//! differs from them, and then there is no match. Where chunk-level metadata changes, `clear` forgets everything.

use crate::json::{Kind, Raw};

/// How many shapes of chunks are kept.
const KEPT: usize = 8;

/// After so many templates in a row that never matched, only every so often a new one is learned.
const FRUITLESS: u32 = 16;
const PAUSE: u32 = 64;

/// The most strings that vary within one chunk.
const HOLES: usize = 5;

/// What stands in a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hole {
    /// The text, the reasoning or the arguments.
    Text,
    Index,
    Id,
    Name,
    /// Padding that nobody reads.
    Padding,
}

/// What a matching chunk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Text,
    Reasoning,
    Call { has_index_key: bool, custom: bool },
}

/// The varying members of one payload: strings as between their quotes, the index as digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found<'p> {
    pub(crate) text: &'p str,
    /// Whether `text` holds escapes.
    pub(crate) escaped: bool,
    pub(crate) index: Option<u32>,
    pub(crate) id: Option<&'p str>,
    pub(crate) name: Option<&'p str>,
}

/// A chunk that did one thing only, with the members that vary.
#[derive(Debug)]
pub(crate) struct Lesson<'a> {
    pub(crate) what: What,
    pub(crate) holes: Vec<(Hole, Raw<'a>)>,
    pub(crate) metadata: Option<String>,
}

impl<'a> Lesson<'a> {
    /// A string of padding varies too.
    pub(crate) fn padding(&mut self, slot: Option<Raw<'a>>) {
        if let Some(raw) = slot.filter(|raw| raw.kind == Kind::String) {
            self.holes.push((Hole::Padding, raw));
        }
    }
}

#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) what: What,
    pub(crate) choice: i32,
    /// Metadata below the chunk level, which every such chunk carries.
    pub(crate) metadata: Option<String>,
    head: Vec<u8>,
    /// Each hole with the bytes behind it.
    holes: Vec<(Hole, Vec<u8>)>,
}

#[derive(Debug)]
pub(crate) struct Cache {
    templates: Vec<Template>,
    last: usize,
    /// Where the next template goes once all places are taken.
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

    /// The template that the payload fits, with what stands in its holes.
    #[inline]
    pub(crate) fn find<'p>(&mut self, payload: &'p [u8]) -> Option<(&Template, Found<'p>)> {
        let count = self.templates.len();
        let order = (self.last..count).chain(0..self.last);
        for at in order {
            if let Some(found) = self
                .templates
                .get(at)
                .and_then(|template| template.fit(payload))
            {
                self.last = at;
                self.fruitless = 0;
                return self.templates.get(at).map(|template| (template, found));
            }
        }
        None
    }

    /// Whether a new template is taken now.
    fn wants(&mut self) -> bool {
        if self.off {
            return false;
        }
        self.fruitless = self.fruitless.saturating_add(1);
        self.fruitless <= FRUITLESS || self.fruitless % PAUSE == 0
    }

    /// Learns from a payload that was read in full.
    pub(crate) fn learn(&mut self, payload: &str, choice: i32, lesson: Lesson<'_>) {
        if !self.wants() {
            return;
        }
        let Lesson {
            what,
            mut holes,
            metadata,
        } = lesson;
        holes.sort_by_key(|(_, raw)| raw.text.as_ptr());
        let Some(template) = cut(payload, &holes) else {
            return;
        };
        let (head, holes) = template;
        if holes.len() > HOLES
            || self
                .templates
                .iter()
                .any(|known| known.head == head && known.holes == holes)
        {
            return;
        }
        let template = Template {
            what,
            choice,
            metadata,
            head,
            holes,
        };
        if self.templates.len() < KEPT {
            self.templates.push(template);
        } else if let Some(place) = self.templates.get_mut(self.next) {
            *place = template;
            self.next = (self.next + 1) % KEPT;
        }
    }
}

/// The bytes before the first hole, and each hole with the bytes behind it.
type Cut = (Vec<u8>, Vec<(Hole, Vec<u8>)>);

fn cut(payload: &str, holes: &[(Hole, Raw<'_>)]) -> Option<Cut> {
    let base = payload.as_ptr() as usize;
    let mut from = 0;
    let mut pieces = Vec::with_capacity(holes.len() + 1);
    for (hole, raw) in holes {
        let at = (raw.text.as_ptr() as usize).checked_sub(base)?;
        let (start, end) = match hole {
            Hole::Index => (at, at + raw.text.len()),
            // The quotes belong to the envelope.
            _ => (at + 1, (at + raw.text.len()).checked_sub(1)?),
        };
        pieces.push(payload.as_bytes().get(from..start)?.to_vec());
        from = end;
    }
    pieces.push(payload.as_bytes().get(from..)?.to_vec());
    let mut pieces = pieces.into_iter();
    let head = pieces.next()?;
    Some((
        head,
        holes.iter().map(|(hole, _)| *hole).zip(pieces).collect(),
    ))
}

impl Template {
    #[inline]
    fn fit<'p>(&self, payload: &'p [u8]) -> Option<Found<'p>> {
        let mut rest = payload.strip_prefix(self.head.as_slice())?;
        let mut found = Found::default();
        for (hole, behind) in &self.holes {
            let length = match hole {
                Hole::Index => digits(rest),
                _ => {
                    let (length, escaped) = string(rest)?;
                    if escaped {
                        match hole {
                            Hole::Text => found.escaped = true,
                            Hole::Padding => {}
                            _ => return None,
                        }
                    }
                    length
                }
            };
            let (value, after) = rest.split_at_checked(length)?;
            let value = std::str::from_utf8(value).ok()?;
            match hole {
                Hole::Text => found.text = value,
                Hole::Index => found.index = Some(value.parse().ok()?),
                Hole::Id => found.id = Some(value),
                Hole::Name => found.name = Some(value),
                Hole::Padding => {}
            }
            rest = after.strip_prefix(behind.as_slice())?;
        }
        rest.is_empty().then_some(found)
    }
}

/// The length of a small number without a sign or a leading zero; 0 where there is none, which no number fits.
fn digits(bytes: &[u8]) -> usize {
    match bytes {
        [b'0', ..] => 1,
        _ => bytes
            .iter()
            .take(9)
            .take_while(|byte| byte.is_ascii_digit())
            .count(),
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Whether one of eight bytes is a quote, a backslash or a control character; bytes above 127 may say so too.
#[inline]
fn special(word: u64) -> bool {
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word & TOPS;
    (quote | backslash | control) != 0
}

/// The length of a JSON string up to its closing quote, and whether it holds escapes; `None` if it is none.
#[inline]
fn string(bytes: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    let mut escaped = false;
    loop {
        while let Some(word) = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()) {
            if special(u64::from_le_bytes(word)) {
                break;
            }
            at += 8;
        }
        // At most eight plain bytes follow before one of the special ones, or the end.
        match bytes
            .get(at..)?
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
        {
            Some(run) => at += run,
            None => return None,
        }
        match bytes.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                escaped = true;
                at += escape(bytes.get(at + 1..)?)?;
            }
            _ => return None,
        }
    }
}

/// The length of an escape, given what follows its backslash.
#[inline]
fn escape(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'u', a, b, c, d, ..] => [a, b, c, d]
            .iter()
            .all(|digit| digit.is_ascii_hexdigit())
            .then_some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Scanner;

    #[test]
    fn strings_end_where_json_says() {
        assert_eq!(string(br#"abc","x""#), Some((3, false)));
        assert_eq!(string(br#"","x""#), Some((0, false)));
        assert_eq!(
            string(br#"a long text with \"quotes\" and \u00e9 in it""#),
            Some((44, true))
        );
        assert_eq!(
            string("größer als früher, viel größer\"".as_bytes()),
            Some((35, false))
        );
        for broken in [
            &b"abc"[..],
            b"a\nb\"",
            b"\\x\"",
            b"\\u12g4\"",
            b"\\",
            b"\\u12",
            b"",
        ] {
            assert_eq!(string(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn every_length_and_place_of_a_special_byte() {
        for length in 0..40 {
            for byte in 0..=255u8 {
                let mut text = vec![b'a'; length];
                text.push(byte);
                text.extend(b"aaaaaaaaaaaaaaaaa\"");
                let quoted = [b"\"", text.as_slice()].concat();
                let valid = std::str::from_utf8(&quoted).ok().is_some_and(|text| {
                    let mut scanner = Scanner::new(text, None);
                    scanner.skip().is_ok()
                });
                let found = string(&text)
                    .filter(|(end, _)| std::str::from_utf8(text.get(..*end).unwrap()).is_ok());
                assert_eq!(found.is_some(), valid, "{byte} at {length}");
            }
        }
    }

    #[test]
    fn a_template_fits_what_differs_in_its_holes_only() {
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
        let mut holes = vec![
            (Hole::Text, raw(text, text + 4)),
            (Hole::Index, raw(index, index + 2)),
        ];
        holes.insert(0, (Hole::Padding, raw(pad, pad + 5)));
        cache.learn(
            payload,
            0,
            Lesson {
                what: What::Text,
                holes,
                metadata: None,
            },
        );
        let fits = |cache: &mut Cache, text: &str| {
            cache
                .find(text.as_bytes())
                .map(|(_, found)| (found.text.to_owned(), found.index))
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
}
