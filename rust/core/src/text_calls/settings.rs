//! Parses a policy's settings for tool calls in text from `config["text_calls"]`.

use crate::text_calls::byte_set::ByteSet;
use crate::text_calls::entry::Entry;
use crate::text_calls::family::Family;
use crate::text_calls::family::Tier;
use crate::text_calls::marker_tree::Beginning;
use crate::text_calls::marker_tree::Kinds;
use crate::text_calls::marker_tree::MarkerTree;
use crate::text_calls::marks::Marks;
use crate::text_calls::reading::is_indent;
use crate::text_calls::words::Lists;
use crate::text_calls::words::Message;
use crate::text_calls::words::Words;
use serde_json::Map;
use serde_json::Value;

/// Returns the pairs of literals in a list of the settings.
fn pairs_of(members: &Map<String, Value>, key: &str) -> Vec<[String; 2]> {
    let pairs = members.get(key).and_then(Value::as_array);
    let pairs = pairs.into_iter().flatten().filter_map(|pair| {
        let word = |at: usize| Some(pair.get(at)?.as_str()?.to_owned());
        Some([word(0)?, word(1)?])
    });
    pairs.collect()
}

/// Reads the marks that quote text.
fn marks_of(members: &Map<String, Value>) -> Marks {
    let character = |text: &str| text.chars().next();
    let pairs = |key: &str| {
        let pairs = pairs_of(members, key).into_iter();
        let pairs = pairs.filter_map(|[open, close]| Some([character(&open)?, character(&close)?]));
        pairs.collect()
    };
    let marks = |key: &str| {
        let words = Entry(members).words(key).into_iter();
        words.filter_map(|mark| character(&mark)).collect()
    };
    Marks {
        quotations: pairs("quotation_marks"),
        parentheses: pairs("parentheses"),
        apostrophes: marks("apostrophes"),
        emphasis: marks("emphasis"),
        brackets: marks("brackets"),
        list_items: marks("list_marks"),
        table: marks("table_marks"),
        ..Marks::default()
    }
    .indexed()
}

/// Whether blocks are only reported or are promoted to calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Report,
    Promote,
}

/// Whether text may follow a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAfterCall {
    End,
    Anywhere,
}

/// A marker and the families whose blocks it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub text: String,
    pub families: Vec<usize>,
    /// True if all families of the marker are markerless. Such a marker is searched for only until other text has been
    /// read.
    pub is_bare: bool,
    /// True if the marker contains another marker. The inner marker does not open a block.
    pub is_nesting: bool,
}

impl Marker {
    /// Returns true if the marker is searched for after a block.
    ///
    /// `repeatable_family`: the family of that block, if it is markerless and another of its blocks may directly
    /// follow.
    pub fn follows(&self, repeatable_family: Option<usize>) -> bool {
        !self.is_bare || repeatable_family.is_some_and(|family| self.families.contains(&family))
    }
}

/// All settings of a scanner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub mode: Mode,
    pub after: TextAfterCall,
    pub families: Vec<Family>,
    /// The markers, longest first.
    pub markers: Vec<Marker>,
    /// True if at least one marker is bare, that is, the opener of a markerless family.
    pub has_bare: bool,
    /// First bytes of the markers that may follow prose.
    pub firsts: ByteSet,
    /// First bytes of the markers that must start a line, except those in `firsts`.
    pub line_firsts: ByteSet,
    /// Last bytes of the literals that end a line or are treated as a line end. Empty if no marker must start a line.
    pub line_ends: ByteSet,
    /// Last characters of these literals.
    pub line_end_marks: Vec<char>,
    /// Bytes at which a marker can begin, or after which a new line can begin with a marker.
    ///
    /// Text without any of these bytes contains no marker, except possibly at its start.
    pub marks: ByteSet,
    /// First bytes of all markers except those of markerless families.
    pub starts: ByteSet,
    /// All markers except those of markerless families.
    pub tree: MarkerTree,
    /// Literals that may follow a block, longest first.
    pub end_of_turn: Vec<String>,
    /// The literals of `end_of_turn` that begin a turn of the user or a tool.
    pub next_turn: Vec<String>,
    pub words: Words,
    /// True if reasoning is also scanned.
    pub reads_reasoning: bool,
}

impl Settings {
    /// Parses the settings. Returns `None` if the text was not written by `settings_text` in
    /// `_pure/text_calls/table.py`.
    pub fn read(text: &str) -> Option<Settings> {
        let value: Value = serde_json::from_str(text).ok()?;
        let members = value.as_object()?;
        let entry = Entry(members);
        let families = members.get("families")?.as_array()?.iter();
        let families = families.filter_map(Value::as_object).map(Family::read);
        let families: Vec<Family> = families.collect::<Option<_>>()?;
        let mut markers: Vec<Marker> = Vec::new();
        for (position, family) in families.iter().enumerate() {
            let is_bare = family.tier == Tier::Markerless;
            for open in &family.open {
                match markers.iter_mut().find(|known| known.text == *open) {
                    Some(known) => {
                        known.families.push(position);
                        known.is_bare &= is_bare;
                    }
                    None => markers.push(Marker {
                        text: open.clone(),
                        families: vec![position],
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
        let next_turn = entry.words("next_turn");
        let mut end_of_turn = entry.words("end_of_turn");
        end_of_turn.extend(next_turn.iter().cloned());
        end_of_turn.sort_by_key(|literal| std::cmp::Reverse(literal.len()));
        let pairs = pairs_of(members, "reasoning_tags");
        let messages = members.get("messages").and_then(Value::as_array);
        let messages = messages.into_iter().flatten().filter_map(|message| {
            let word = |at: usize| Some(message.get(at)?.as_str()?.to_owned());
            Some(Message {
                opener: word(0)?,
                role: word(1),
                closer: word(2)?,
            })
        });
        let messages: Vec<Message> = messages.collect();
        let has_tags = families.iter().any(|family| family.tier == Tier::Tag);
        let mut line_end_marks: Vec<char> = Vec::new();
        if has_tags {
            line_end_marks.push('\n');
            line_end_marks.extend(
                pairs
                    .iter()
                    .filter_map(|[_, close]| close.chars().next_back()),
            );
        }
        line_end_marks.sort_unstable();
        line_end_marks.dedup();
        let last_bytes = line_end_marks.iter().map(char::to_string);
        let line_ends: Vec<u8> = last_bytes.filter_map(|mark| mark.bytes().last()).collect();
        let lists = Lists {
            reasoning: pairs,
            messages,
            quoting: entry.words("quoting"),
            sections: pairs_of(members, "sections"),
            marks: marks_of(members),
        };
        let mut tree = MarkerTree::default();
        for marker in markers.iter().filter(|marker| !marker.is_bare) {
            let mut of = marker.families.iter().filter_map(|at| families.get(*at));
            let kinds = Kinds {
                token: of.any(|family| family.tier == Tier::Token),
                nesting: marker.is_nesting,
            };
            tree.insert(marker.text.bytes(), kinds);
        }
        let marks = [firsts.as_slice(), &line_ends].concat();
        Some(Settings {
            mode: match entry.word("mode")?.as_str() {
                "report" => Mode::Report,
                "promote" => Mode::Promote,
                _ => return None,
            },
            after: match entry.word("after")?.as_str() {
                "anywhere" => TextAfterCall::Anywhere,
                _ => TextAfterCall::End,
            },
            words: Words::new(lists, &loud),
            reads_reasoning: entry.flag("reasoning"),
            has_bare: markers.iter().any(|marker| marker.is_bare),
            marks: ByteSet::new(marks),
            starts: ByteSet::new([firsts.as_slice(), &line_firsts].concat()),
            tree,
            line_ends: ByteSet::new(line_ends),
            line_end_marks,
            line_firsts: ByteSet::new(line_firsts),
            end_of_turn,
            next_turn,
            families,
            markers,
            firsts: ByteSet::new(firsts),
        })
    }

    /// Returns the first offset at which a marker may begin. The bare markers of markerless families are considered
    /// only if `is_fresh` is true.
    pub fn next_start(&self, text: &[u8], is_fresh: bool) -> Option<usize> {
        let mut bytes = text.iter().enumerate();
        bytes.find_map(|(at, byte)| {
            let rest = text.get(at..).unwrap_or_default();
            let is_start = (self.starts.has(*byte) && self.may_begin(rest))
                || (is_fresh && self.begins_bare(*byte));
            is_start.then_some(at)
        })
    }

    /// Determines how the text begins. The bare markers of markerless families do not count.
    pub fn beginning(&self, text: &[u8]) -> Beginning {
        self.tree.read(text.iter().copied())
    }

    /// Returns true if the text begins with a marker, or is the beginning of one. The bare markers of markerless
    /// families do not count.
    pub fn may_begin(&self, text: &[u8]) -> bool {
        self.beginning(text) != Beginning::Other
    }

    /// Returns true if the text begins with a marker. The bare markers of markerless families do not count.
    pub fn begins_marker(&self, text: &[u8]) -> bool {
        self.beginning(text) == Beginning::Marker
    }

    /// Returns true if a marker that must be at the start of a line may come after this text. `was_at_start`: such a
    /// marker may come before it.
    pub fn ends_line(&self, text: &str, was_at_start: bool) -> bool {
        // Search backwards over whitespace only, because the text may be long and contain no line end.
        let mut bytes = text.bytes().enumerate().rev();
        let Some((at, last)) = bytes.find(|(_, byte)| !is_indent(*byte)) else {
            return was_at_start;
        };
        let text = text.get(..=at).unwrap_or_default();
        self.line_ends.has(last)
            && (last.is_ascii() || self.line_end_marks.iter().any(|mark| text.ends_with(*mark)))
    }

    /// Returns true if the text is the beginning of a longer bare marker.
    pub fn begins_bare_marker(&self, text: &str) -> bool {
        let mut markers = self.markers.iter().filter(|marker| marker.is_bare);
        markers.any(|marker| marker.text.len() > text.len() && marker.text.starts_with(text))
    }

    fn begins_bare(&self, byte: u8) -> bool {
        let mut markers = self.markers.iter().filter(|marker| marker.is_bare);
        markers.any(|marker| marker.text.bytes().next() == Some(byte))
    }
}
