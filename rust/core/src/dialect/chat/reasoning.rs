//! Reads the reasoning in a delta from the first reasoning field with text, `reasoning_details`, and `thinking_blocks`.
//!
//! Gateways may send the same text in two fields, or send the accumulated text in each delta. Each text is used only
//! once.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::content::concat;
use crate::dialect::chat::content::structured;
use crate::dialect::chat::read::Delta;
use crate::dialect::chat::read::REASONING_FIELDS;
use crate::json::Key;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::is_set;
use crate::json::members::is_string;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::spec;
use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;
use std::sync::LazyLock;

/// LiteLLM writes the JSON of a Gemini part that has a signature into the text of a block. This JSON is not reasoning.
static BLOCK_PARTS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| spec::words(spec::fact("chat", "block_parts")));

const BLOCKS: &str = "thinking_blocks";

/// Default value of `Progress::least`, in characters. With a minimum of 1, "a" followed by "and" would be treated as a
/// repetition.
const PREFIX_CHARS: usize = 4;

/// The reasoning in one delta.
#[derive(Debug, Default)]
pub(crate) struct Thought<'a> {
    pub(crate) text: Option<Text<'a>>,
    /// Names of the fields that contain the text. The list is empty if only `reasoning_details` or `thinking_blocks`
    /// contains the text.
    pub(crate) names: Vec<&'static str>,
    /// The value of the field from which the text was read, if it is a string.
    pub(crate) field: Option<Raw<'a>>,
    /// True if the same text arrived twice and was used only once.
    pub(crate) repeated: bool,
    /// Values of other fields with the same text.
    pub(crate) again: Vec<Raw<'a>>,
    /// Reasoning fields with a different text, which become metadata.
    pub(crate) extra: Vec<Member<'a>>,
    pub(crate) details: Option<Details<'a>>,
    /// The signature, from a reasoning field whose value is an object or a list, or from a Gemini part in
    /// `thinking_blocks`.
    pub(crate) signature: Option<Cow<'a, str>>,
    /// The entries of `thinking_blocks`.
    pub(crate) blocks: Vec<Block<'a>>,
}

/// An entry of `thinking_blocks`, in which LiteLLM sends the content blocks of Anthropic. An entry is a whole block or
/// a piece of a block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) signature: Option<Cow<'a, str>>,
    /// The encrypted data of a redacted block.
    pub(crate) encrypted: Option<Cow<'a, str>>,
}

impl Block<'_> {
    /// Returns the signature or encrypted content, which the client must send back and which ends the block.
    fn proof(&self) -> Option<&str> {
        self.signature.as_deref().or(self.encrypted.as_deref())
    }
}

/// The content of `reasoning_details`, which is a list of objects with text, signatures, or encrypted content.
#[derive(Debug)]
pub(crate) struct Details<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) signature: Option<Cow<'a, str>>,
    pub(crate) encrypted: Option<Cow<'a, str>>,
    pub(crate) raw: Raw<'a>,
    /// The JSON strings that `text` was joined from.
    pub(crate) texts: Vec<Raw<'a>>,
}

impl Details<'_> {
    /// Returns true if the entries contain a signature or encrypted content.
    pub(crate) fn is_sealed(&self) -> bool {
        self.signature.is_some() || self.encrypted.is_some()
    }

    /// Returns the entries without split surrogate pairs. If a text ends with the first half of a pair, this half is
    /// moved to the next text, because the two halves would otherwise be two broken characters. `half`: the half that
    /// belongs to the next text.
    pub(crate) fn with_whole_characters(&self, half: &mut Option<String>) -> WholeDetails<'_> {
        let list = self.raw.text;
        let is_split = |raw: &Raw<'_>| half_at_end(raw.text).is_some();
        if half.is_none() && !self.texts.iter().any(is_split) {
            return WholeDetails {
                json: Cow::Borrowed(list),
                has_text: true,
            };
        }
        let mut out = String::new();
        let mut copied = 0;
        let mut has_text = false;
        for raw in &self.texts {
            let start = (raw.text.as_ptr() as usize).saturating_sub(list.as_ptr() as usize);
            let end = start + raw.text.len();
            let inner = half_at_end(raw.text).unwrap_or(raw.text.len() - 1);
            out.push_str(list.get(copied..start).unwrap_or_default());
            let before = half.take().unwrap_or_default();
            let own = raw.text.get(1..inner).unwrap_or_default();
            has_text |= !(before.is_empty() && own.is_empty());
            out.extend(["\"", &before, own, "\""]);
            let moved = raw.text.get(inner..raw.text.len() - 1);
            *half = moved.filter(|half| !half.is_empty()).map(str::to_owned);
            copied = end;
        }
        out.push_str(list.get(copied..).unwrap_or_default());
        WholeDetails {
            json: Cow::Owned(out),
            has_text,
        }
    }
}

/// The entries of `reasoning_details`, without split surrogate pairs.
pub(crate) struct WholeDetails<'d> {
    pub(crate) json: Cow<'d, str>,
    /// True if the entries still contain text, or if they are unchanged.
    pub(crate) has_text: bool,
}

/// Length of a JSON escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// If a JSON string ends with the first half of a surrogate pair, returns the position of its escape.
fn half_at_end(string: &str) -> Option<usize> {
    let at = string.len().checked_sub(1 + ESCAPE)?;
    let before = string.get(..at)?.bytes().rev();
    let backslashes = before.take_while(|byte| *byte == b'\\').count();
    let digits = string.get(at..string.len() - 1)?.strip_prefix("\\u")?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    ((0xD800..0xDC00).contains(&unit) && backslashes % 2 == 0).then_some(at)
}

impl Thought<'_> {
    pub(crate) fn has_content(&self) -> bool {
        let has_blocks = !self.blocks.is_empty();
        has_blocks || self.text.is_some() || self.details.is_some() || self.signature.is_some()
    }
}

pub(crate) fn read<'a>(
    delta: &Delta<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Thought<'a> {
    let mut out = Thought::default();
    for (slot, name) in delta.reasoning.iter().zip(REASONING_FIELDS) {
        let Some(raw) = present(*slot) else { continue };
        let is_text = raw.kind == Kind::String;
        let found = if is_text {
            text(raw)
        } else {
            structured(raw, notes).map(|found| {
                out.signature = found.signature.or(out.signature.take());
                found.text
            })
        };
        match found {
            None => notes.shape(raw, at.member(name)),
            Some(text) if text.is_empty() => {}
            Some(text) if out.text.is_some() => {
                if out.text.as_ref() == Some(&text) {
                    out.repeated = true;
                    out.again.push(raw);
                    out.names.push(name);
                } else {
                    out.extra.push(Member {
                        key: Key {
                            raw: name,
                            escaped: false,
                        },
                        raw,
                    });
                }
            }
            Some(text) => {
                out.text = Some(text);
                out.names.push(name);
                out.field = Some(raw).filter(|_| is_text);
            }
        }
    }
    if let Some(raw) = present(delta.reasoning_details) {
        match raw.kind {
            Kind::Array => out.details = details(raw, notes),
            _ => notes.shape(raw, at.member("reasoning_details")),
        }
    }
    if !delta.other_members.is_empty()
        && let Some(raw) = present(find(&delta.other_members, BLOCKS))
    {
        match raw.kind {
            Kind::Array => blocks(raw, &mut out, notes),
            _ => notes.shape(raw, at.member(BLOCKS)),
        }
    }
    out
}

/// Adds the entries of `thinking_blocks`, and the signature of a Gemini part among them.
fn blocks<'a>(raw: Raw<'a>, out: &mut Thought<'a>, notes: &mut Anomalies<'a>) {
    for entry in items(raw) {
        let entry = members(entry);
        let member = |name: &str| present(find(&entry, name)).and_then(text);
        let mut word = |name: &str| {
            let (word, lone) = member(name)?.into_whole();
            notes.lone |= lone;
            Some(word).filter(|word| !word.is_empty())
        };
        if is_string(find(&entry, "type"), "redacted_thinking") {
            let encrypted = word("data");
            out.blocks.extend(encrypted.map(|encrypted| Block {
                encrypted: Some(encrypted),
                ..Block::default()
            }));
            continue;
        }
        let signature = word("signature");
        let text = member("thinking").unwrap_or_default();
        let is_part = |start: &&str| text.body.starts_with(start);
        if signature.is_some() && text.lead_low.is_none() && BLOCK_PARTS.iter().any(is_part) {
            out.signature = signature;
        } else if signature.is_some() || !text.is_empty() {
            out.blocks.push(Block {
                text,
                signature,
                encrypted: None,
            });
        }
    }
}

/// The reasoning of one delta or message, divided into blocks.
#[derive(Debug, Default)]
pub(crate) struct DividedThought<'a> {
    /// The blocks that end in this delta, with their new text.
    pub(crate) ended: Vec<Block<'a>>,
    /// The new text after the ended blocks.
    pub(crate) text: Text<'a>,
    /// True if any text was repeated.
    pub(crate) repeated: bool,
}

impl<'a> DividedThought<'a> {
    /// Returns the new text of all blocks and the text that follows the blocks.
    pub(crate) fn whole(&self) -> Text<'a> {
        if self.ended.is_empty() {
            return self.text.clone();
        }
        let texts = self.ended.iter().map(|block| &block.text);
        concat(texts.chain([&self.text]).cloned().collect())
    }

    /// Removes the text of all blocks and the text that follows them, because all of this text repeats earlier text.
    pub(crate) fn clear(&mut self) {
        self.text = Text::default();
        for block in &mut self.ended {
            block.text = Text::default();
        }
    }
}

/// Divides the reasoning of one choice into the blocks of `thinking_blocks`, so that each block keeps its signature.
#[derive(Debug, Default)]
pub(crate) struct ThinkingBlocks {
    /// The signatures and encrypted contents of the blocks that have ended.
    proofs: HashSet<String>,
}

impl ThinkingBlocks {
    /// Divides the reasoning of a delta. `plain`: the text outside `thinking_blocks`. `shown`: the text of the open
    /// reasoning part. LiteLLM sends the text of a block in pieces. LiteLLM then sends either the signature without
    /// text, or the whole block.
    pub(crate) fn divide<'a>(
        &mut self,
        blocks: Vec<Block<'a>>,
        plain: Option<Text<'a>>,
        shown: &str,
    ) -> DividedThought<'a> {
        let mut out = DividedThought::default();
        let mut pieces = Vec::new();
        for mut block in blocks {
            let Some(proof) = block.proof() else {
                pieces.push(block.text);
                continue;
            };
            if !self.proofs.insert(proof.to_owned()) {
                out.repeated |= !block.text.is_empty();
                continue;
            }
            let before = concat(pieces.clone());
            let shown = if out.ended.is_empty() { shown } else { "" };
            let has_text = !(shown.is_empty() && before.body.is_empty());
            let rest = block.text.body.strip_prefix(shown);
            if let Some(rest) = rest.and_then(|rest| rest.strip_prefix(before.body.as_ref()))
                && has_text
            {
                block.text = Text {
                    tail_high: block.text.tail_high,
                    ..Text::plain(rest).into_owned()
                };
                out.repeated = true;
            }
            pieces.push(mem::take(&mut block.text));
            block.text = concat(mem::take(&mut pieces));
            out.ended.push(block);
        }
        out.text = concat(pieces);
        if let Some(plain) = plain.filter(|plain| !plain.is_empty()) {
            let sent = out.whole();
            out.repeated |= !sent.is_empty();
            if sent != plain {
                // The text of the plain reasoning field has precedence.
                out.clear();
                match out.ended.first_mut() {
                    Some(block) => block.text = plain,
                    None => out.text = plain,
                }
            }
        }
        out
    }
}

/// Returns true if the delta has the flag in `extra_content` by which Gemini's Chat endpoint marks text as a thought.
pub(crate) fn is_thought(delta: &Delta<'_>) -> bool {
    let extra = find(&delta.other_members, "extra_content").map(members);
    let google = extra.and_then(|extra| find(&extra, "google")).map(members);
    google.is_some_and(|google| is_set(find(&google, "thought")))
}

fn details<'a>(raw: Raw<'a>, notes: &mut Anomalies<'a>) -> Option<Details<'a>> {
    let entries = items(raw);
    if entries.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    let mut out = Details {
        text: Text::default(),
        signature: None,
        encrypted: None,
        raw,
        texts: Vec::new(),
    };
    for entry in entries {
        let entry = members(entry);
        let member = |name: &str| present(find(&entry, name));
        for raw in ["text", "summary"].into_iter().filter_map(member) {
            if let Some(text) = text(raw).filter(|text| !text.is_empty()) {
                texts.push(text);
                out.texts.push(raw);
            }
        }
        let mut word = |name: &str| {
            let (word, lone) = member(name).and_then(text)?.into_whole();
            notes.lone |= lone;
            Some(word).filter(|word| !word.is_empty())
        };
        out.signature = word("signature").or(out.signature);
        if is_string(find(&entry, "type"), "reasoning.encrypted") {
            out.encrypted = word("data").or(out.encrypted);
        }
    }
    out.text = concat(texts);
    Some(out)
}

/// The accumulated text of a source that may repeat this text in each piece: `reasoning_details` or a streamed
/// `message`.
#[derive(Debug)]
pub(crate) struct Progress {
    seen: String,
    doubted: bool,
    /// Minimum length of the accumulated text, in characters. If the accumulated text is shorter, no piece is treated
    /// as a repetition.
    least: usize,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::from(PREFIX_CHARS)
    }
}

impl Progress {
    /// Creates an empty state. `least`: the value of the field `least`, which must not be 0.
    pub(crate) fn from(least: usize) -> Progress {
        Progress {
            seen: String::new(),
            doubted: false,
            least,
        }
    }

    /// Returns true if the accumulated text has at least `least` characters.
    fn is_long(&self) -> bool {
        self.seen.chars().nth(self.least - 1).is_some()
    }

    /// Returns true if `text` begins with the accumulated text, which must be long enough to prove a repetition.
    pub(crate) fn repeated_by(&self, text: &Text<'_>) -> bool {
        self.is_long() && text.body.starts_with(self.seen.as_str())
    }

    /// Returns true if `text` begins with the accumulated text, so that it may be new text or a repetition (AM13). The
    /// method returns true at most once, so that the ambiguity is reported only once.
    pub(crate) fn is_doubtful(&mut self, text: &Text<'_>) -> bool {
        let Some(new) = text.body.strip_prefix(self.seen.as_str()) else {
            return false;
        };
        if self.doubted || self.seen.is_empty() {
            return false;
        }
        let is_long = self.is_long();
        let is_blank = || self.seen.bytes().all(|byte| byte.is_ascii_whitespace());
        self.doubted = is_long || !(new.is_empty() || is_blank());
        self.doubted
    }

    /// Returns the new text in a piece, and whether the piece repeats the earlier text. Halves of surrogate pairs at
    /// either end of the piece are not compared.
    pub(crate) fn next<'t>(&mut self, text: &Text<'t>) -> (Text<'t>, bool) {
        let long = self.is_long();
        let Some(new) = text.body.strip_prefix(self.seen.as_str()).filter(|_| long) else {
            self.seen.push_str(&text.body);
            return (text.clone(), false);
        };
        self.seen.push_str(new);
        let new = Text::plain(new).into_owned();
        (
            Text {
                tail_high: text.tail_high,
                ..new
            },
            true,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_and_incremental_details() {
        let step = |progress: &mut Progress, text: &str| {
            let (new, again) = progress.next(&Text::plain(text));
            (new.body.into_owned(), again)
        };
        let mut progress = Progress::default();
        assert_eq!(
            step(&mut progress, "The user"),
            ("The user".to_owned(), false)
        );
        assert_eq!(
            step(&mut progress, "The user asks"),
            (" asks".to_owned(), true)
        );
        assert_eq!(step(&mut progress, " why"), (" why".to_owned(), false));
        let mut progress = Progress::default();
        assert_eq!(step(&mut progress, "a"), ("a".to_owned(), false));
        assert_eq!(step(&mut progress, "and"), ("and".to_owned(), false));
    }
}
