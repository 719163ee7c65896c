//! What a policy says about text-form tool calls, read from `config["text_calls"]`.

use crate::text_calls::entry::Entry;
use crate::text_calls::family::Family;
use crate::text_calls::family::Tier;
use crate::text_calls::layout::Words;
use serde_json::Value;

/// Whether blocks become calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Report,
    Promote,
}

/// Whether text may follow a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    End,
    Anywhere,
}

/// A marker, and the families whose blocks it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub text: String,
    pub families: Vec<usize>,
    /// It opens only what has no marker: it is looked for while nothing was said.
    pub is_bare: bool,
    /// Another marker stands inside of it, and opens nothing there.
    pub is_nesting: bool,
}

/// Everything that a scanner reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub mode: Mode,
    pub after: After,
    pub families: Vec<Family>,
    /// Longest first.
    pub markers: Vec<Marker>,
    /// Some markers are bare.
    pub has_bare: bool,
    /// With which bytes markers begin that may follow prose.
    pub firsts: Vec<u8>,
    /// With which bytes only such markers begin that start a line.
    pub line_firsts: Vec<u8>,
    /// The last bytes of what stands before the beginning of a line, or counts as that.
    pub line_ends: Vec<u8>,
    /// A text without any of these bytes has no marker, unless it begins a line.
    pub marks: ByteSet,
    /// What may follow a block. Longest first.
    pub end_of_turn: Vec<String>,
    pub words: Words,
    /// Reasoning is read too.
    pub reads_reasoning: bool,
}

/// Bytes that are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteSet {
    bytes: Vec<u8>,
    has: [bool; 256],
}

impl ByteSet {
    /// From this length on a text is searched for a few bytes at a time.
    const LONG: usize = 48;

    fn new(mut bytes: Vec<u8>) -> ByteSet {
        bytes.sort_unstable();
        bytes.dedup();
        let mut has = [false; 256];
        for byte in &bytes {
            if let Some(slot) = has.get_mut(usize::from(*byte)) {
                *slot = true;
            }
        }
        ByteSet { bytes, has }
    }

    /// The text has one of these bytes.
    #[inline]
    pub fn is_in(&self, text: &[u8]) -> bool {
        if text.len() < ByteSet::LONG {
            return text.iter().fold(false, |has, byte| has | self.has(*byte));
        }
        self.is_in_long(text)
    }

    #[inline]
    pub fn has(&self, byte: u8) -> bool {
        self.has.get(usize::from(byte)) == Some(&true)
    }

    #[inline(never)]
    fn is_in_long(&self, text: &[u8]) -> bool {
        self.bytes.chunks(3).any(|some| match some {
            [one, two, three] => memchr::memchr3(*one, *two, *three, text).is_some(),
            [one, two] => memchr::memchr2(*one, *two, text).is_some(),
            some => some.iter().any(|one| memchr::memchr(*one, text).is_some()),
        })
    }
}

impl Settings {
    /// None of a text that is none of `_families.settings_text`.
    pub fn read(text: &str) -> Option<Settings> {
        let value: Value = serde_json::from_str(text).ok()?;
        let members = value.as_object()?;
        let entry = Entry(members);
        let families = members.get("families")?.as_array()?.iter();
        let families = families.filter_map(Value::as_object).map(Family::read);
        let families: Vec<Family> = families.collect::<Option<_>>()?;
        let mut markers: Vec<Marker> = Vec::new();
        for (place, family) in families.iter().enumerate() {
            let is_bare = family.tier == Tier::Markerless;
            for open in &family.open {
                match markers.iter_mut().find(|known| known.text == *open) {
                    Some(known) => {
                        known.families.push(place);
                        known.is_bare &= is_bare;
                    }
                    None => markers.push(Marker {
                        text: open.clone(),
                        families: vec![place],
                        is_bare,
                        is_nesting: false,
                    }),
                }
            }
        }
        markers.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let loud = markers.iter().filter(|marker| !marker.is_bare);
        let loud: Vec<String> = loud.map(|marker| marker.text.clone()).collect();
        for marker in markers.iter_mut().filter(|marker| !marker.is_bare) {
            let mut others = loud.iter().filter(|other| **other != marker.text);
            marker.is_nesting = others.any(|other| marker.text.contains(other.as_str()));
        }
        let firsts_of = |tiers: &[Tier]| {
            let such = families
                .iter()
                .filter(|family| tiers.contains(&family.tier));
            let opens = such.flat_map(|family| &family.open);
            let mut firsts: Vec<u8> = opens.filter_map(|open| open.bytes().next()).collect();
            firsts.sort_unstable();
            firsts.dedup();
            firsts
        };
        let firsts = firsts_of(&[Tier::Token]);
        let mut line_firsts = firsts_of(&[Tier::Tag]);
        line_firsts.retain(|byte| !firsts.contains(byte));
        let mut end_of_turn = entry.words("end_of_turn");
        end_of_turn.sort_by_key(|literal| std::cmp::Reverse(literal.len()));
        let pairs = members.get("reasoning_tags").and_then(Value::as_array);
        let pairs = pairs.into_iter().flatten().filter_map(|pair| {
            let word = |at: usize| Some(pair.get(at)?.as_str()?.to_owned());
            Some([word(0)?, word(1)?])
        });
        let pairs: Vec<[String; 2]> = pairs.collect();
        let mut line_ends = vec![b'\n'];
        line_ends.extend(pairs.iter().filter_map(|[_, close]| close.bytes().last()));
        line_ends.sort_unstable();
        line_ends.dedup();
        let mut marks = firsts.clone();
        if !line_firsts.is_empty() {
            marks.extend(&line_ends);
        }
        Some(Settings {
            mode: match entry.word("mode")?.as_str() {
                "report" => Mode::Report,
                "promote" => Mode::Promote,
                _ => return None,
            },
            after: match entry.word("after")?.as_str() {
                "anywhere" => After::Anywhere,
                _ => After::End,
            },
            words: Words::new(&pairs, &entry.words("quoting")),
            reads_reasoning: entry.flag("reasoning"),
            has_bare: markers.iter().any(|marker| marker.is_bare),
            marks: ByteSet::new(marks),
            line_ends,
            line_firsts,
            end_of_turn,
            families,
            markers,
            firsts,
        })
    }

    /// Whether a marker may begin with that byte.
    pub fn is_first(&self, byte: u8, is_fresh: bool) -> bool {
        self.firsts.contains(&byte)
            || self.line_firsts.contains(&byte)
            || (is_fresh && self.begins_bare(byte))
    }

    /// A marker that is not bare begins with the byte and goes on with the rest, as far as either reaches.
    pub fn may_begin(&self, first: u8, rest: &[u8]) -> bool {
        let mut markers = self.markers.iter().filter(|marker| !marker.is_bare);
        markers.any(|marker| {
            let mut bytes = marker.text.bytes();
            bytes.next() == Some(first) && bytes.zip(rest).all(|(one, other)| one == *other)
        })
    }

    fn begins_bare(&self, byte: u8) -> bool {
        let mut markers = self.markers.iter().filter(|marker| marker.is_bare);
        markers.any(|marker| marker.text.bytes().next() == Some(byte))
    }
}
