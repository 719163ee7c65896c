//! What a policy says about text-form tool calls, read from `config["text_calls"]`.

use crate::text_calls::entry::Close;
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
    pub tier: Tier,
    pub families: Vec<usize>,
}

/// Everything that a scanner reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub mode: Mode,
    pub after: After,
    pub families: Vec<Family>,
    /// Longest first.
    pub markers: Vec<Marker>,
    /// Openers of blocks without a marker.
    pub bare: Vec<Marker>,
    /// With which bytes markers begin.
    pub firsts: Vec<u8>,
    /// What may follow a block: ends of turn, and closers that may be missing.
    pub end_of_turn: Vec<String>,
    pub words: Words,
    /// Reasoning is read too.
    pub reads_reasoning: bool,
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
        let mut all: Vec<Marker> = Vec::new();
        for (place, family) in families.iter().enumerate() {
            for open in &family.open {
                let same = |known: &&mut Marker| known.text == *open && known.tier == family.tier;
                match all.iter_mut().find(same) {
                    Some(known) => known.families.push(place),
                    None => all.push(Marker {
                        text: open.clone(),
                        tier: family.tier,
                        families: vec![place],
                    }),
                }
            }
        }
        let (bare, mut markers): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|marker| marker.tier == Tier::Markerless);
        markers.sort_by_key(|marker| std::cmp::Reverse(marker.text.len()));
        let mut firsts: Vec<u8> = markers
            .iter()
            .filter_map(|marker| marker.text.bytes().next())
            .collect();
        firsts.sort_unstable();
        firsts.dedup();
        let mut end_of_turn = entry.words("end_of_turn");
        end_of_turn.extend(families.iter().filter_map(|family| match &family.close {
            Close::Maybe(literal) => Some(literal.clone()),
            Close::Body | Close::Literal(_) => None,
        }));
        let pairs = members.get("reasoning_tags").and_then(Value::as_array);
        let pairs = pairs.into_iter().flatten().filter_map(|pair| {
            let word = |at: usize| Some(pair.get(at)?.as_str()?.to_owned());
            Some([word(0)?, word(1)?])
        });
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
            words: Words {
                reasoning: pairs.collect(),
                quoting: entry.words("quoting"),
            },
            reads_reasoning: entry.flag("reasoning"),
            end_of_turn,
            families,
            markers,
            bare,
            firsts,
        })
    }
}
