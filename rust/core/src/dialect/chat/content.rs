//! Splits the content of a delta or message into typed pieces. Content is a string, a part, or a list of parts (Mistral
//! and multimodal gateways). This module also decodes `images` members and structured reasoning.
//!
//! Parts with a documented shape are decoded. Any other part is kept unchanged.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::chat::calls::is_typed_tool_use;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Surrogates;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Slot;
use crate::json::members::find;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::present;
use crate::json::members::string;
use crate::json::members::text;
use std::borrow::Cow;
use std::mem;

#[derive(Debug)]
pub(crate) enum ContentPiece<'a> {
    Shown(Text<'a>),
    Thought(Text<'a>),
    Refused(Text<'a>),
    File(File<'a>),
    /// The signature of the preceding reasoning. A client must send the signature back in a later turn.
    Signature(Cow<'a, str>),
    /// The JSON of a part with an unknown type.
    Unread(Raw<'a>),
}

impl ContentPiece<'_> {
    pub(crate) fn is_shown(&self) -> bool {
        matches!(self, ContentPiece::Shown(_))
    }
}

#[derive(Debug)]
pub(crate) struct File<'a> {
    url: Cow<'a, str>,
    metadata: Option<String>,
}

impl File<'_> {
    /// Returns the media type, the data, and the URL. A base64 `data:` URL is split into media type and data. For any
    /// other URL, only the URL is returned.
    pub(crate) fn fields(&self) -> (Option<&str>, Option<&str>, Option<&str>) {
        let embedded = self
            .url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(','));
        match embedded.and_then(|(head, data)| Some((head.strip_suffix(";base64")?, data))) {
            Some((media_type, data)) => (Some(media_type), Some(data), None),
            None => (None, None, Some(&self.url)),
        }
    }

    pub(crate) fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }
}

/// Values of `type` for parts that contain reasoning.
const REASONING_TYPES: [&str; 4] = ["reasoning", "reasoning_text", "summary_text", "thinking"];
/// Members that may contain reasoning text, in order of precedence.
const REASONING_MEMBERS: [&str; 5] = ["thinking", "reasoning", "summary", "content", "text"];

/// Splits content into pieces. The content is a string, a single part, or a list of parts. Empty texts are omitted.
pub(crate) fn read<'a>(
    slot: Slot<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Vec<ContentPiece<'a>> {
    let Some(raw) = present(slot) else {
        return Vec::new();
    };
    if let Some(text) = text(raw) {
        return if text.is_empty() {
            Vec::new()
        } else {
            vec![ContentPiece::Shown(text)]
        };
    }
    let mut pieces = Vec::new();
    match raw.kind {
        Kind::Object => part(raw, &mut pieces, notes),
        Kind::Array => {
            for (position, item) in items(raw).into_iter().enumerate() {
                if item.kind == Kind::Object {
                    part(item, &mut pieces, notes);
                } else if let Some(text) = text(item) {
                    pieces.push(ContentPiece::Shown(text));
                } else {
                    notes.unless_null(item, at.item(position));
                }
            }
        }
        _ => notes.shape(raw, at),
    }
    pieces.retain(|piece| match piece {
        ContentPiece::Shown(text) | ContentPiece::Thought(text) | ContentPiece::Refused(text) => {
            !text.is_empty()
        }
        ContentPiece::File(_) | ContentPiece::Signature(_) | ContentPiece::Unread(_) => true,
    });
    pieces
}

/// Converts a text piece into a reasoning piece.
pub(crate) fn think(pieces: &mut [ContentPiece<'_>]) {
    for piece in pieces {
        if let ContentPiece::Shown(text) = piece {
            *piece = ContentPiece::Thought(mem::take(text));
        }
    }
}

/// Reasoning in a field whose value is not a string.
#[derive(Debug)]
pub(crate) struct Structured<'a> {
    pub(crate) text: Text<'a>,
    pub(crate) signature: Option<Cow<'a, str>>,
}

/// Returns the text and the last signature of reasoning that is an object or a list of objects. Returns `None` if the
/// reasoning has neither text nor a signature.
pub(crate) fn structured<'a>(raw: Raw<'a>, notes: &mut Anomalies<'a>) -> Option<Structured<'a>> {
    let entries = match raw.kind {
        Kind::Array => items(raw),
        _ => vec![raw],
    };
    let mut texts = Vec::new();
    let mut last = None;
    for entry in entries
        .into_iter()
        .filter(|entry| entry.kind == Kind::Object)
    {
        let part = members(entry);
        texts.extend(reasoning_texts(&part).unwrap_or_default());
        last = signature(&part).or(last);
    }
    if texts.is_empty() && last.is_none() {
        return None;
    }
    Some(Structured {
        text: concat(texts),
        signature: last.map(|signature| cleaned(signature, notes)),
    })
}

/// Decodes a part by the member that contains its content, because gateways disagree about `type`.
fn part<'a>(raw: Raw<'a>, pieces: &mut Vec<ContentPiece<'a>>, notes: &mut Anomalies<'a>) {
    let part = members(raw);
    let member = |name: &str| present(find(&part, name));
    let is_reasoning = member("thinking").is_some()
        || member("type")
            .and_then(string)
            .is_some_and(|kind| REASONING_TYPES.contains(&kind.as_ref()));
    if is_reasoning {
        reasoning_part(raw, &part, pieces, notes);
    } else if let Some(text) = member("refusal").and_then(text) {
        pieces.push(ContentPiece::Refused(text));
    } else if let Some(text) = member("text").and_then(text) {
        pieces.push(ContentPiece::Shown(text));
    } else if !is_typed_tool_use(&part) {
        // The module `calls` decodes tool calls in content.
        pieces.push(image(&part, notes).map_or(ContentPiece::Unread(raw), ContentPiece::File));
    }
}

fn reasoning_part<'a>(
    raw: Raw<'a>,
    part: &[Member<'a>],
    pieces: &mut Vec<ContentPiece<'a>>,
    notes: &mut Anomalies<'a>,
) {
    let (texts, signature) = (reasoning_texts(part), signature(part));
    if texts.is_none() && signature.is_none() {
        return pieces.push(ContentPiece::Unread(raw));
    }
    pieces.extend(texts.into_iter().flatten().map(ContentPiece::Thought));
    if let Some(signature) = signature {
        pieces.push(ContentPiece::Signature(cleaned(signature, notes)));
    }
}

/// Returns the texts of the first reasoning member that contains text. Returns `None` if the part has no reasoning
/// member.
fn reasoning_texts<'a>(part: &[Member<'a>]) -> Option<Vec<Text<'a>>> {
    let mut found = None;
    for raw in REASONING_MEMBERS
        .into_iter()
        .filter_map(|name| present(find(part, name)))
    {
        let mut texts = texts(raw);
        texts.retain(|text| !text.is_empty());
        let has_text = !texts.is_empty();
        found = Some(texts);
        if has_text {
            break;
        }
    }
    found
}

/// Returns the last signature in a part or its list elements, or `None`.
fn signature<'a>(part: &[Member<'a>]) -> Option<Text<'a>> {
    let of = |holder: &[Member<'a>]| {
        find(holder, "signature")
            .and_then(text)
            .filter(|text| !text.is_empty())
    };
    let lists = REASONING_MEMBERS
        .into_iter()
        .filter_map(|name| find(part, name))
        .filter(|raw| raw.kind == Kind::Array);
    let entries = lists.flat_map(items);
    entries.fold(of(part), |last, entry| of(&members(entry)).or(last))
}

fn cleaned<'a>(text: Text<'a>, notes: &mut Anomalies<'a>) -> Cow<'a, str> {
    let (text, lone) = text.into_whole();
    notes.lone |= lone;
    text
}

/// Returns the texts in a reasoning value, which is a string or a list of text parts (Mistral, Databricks).
fn texts(raw: Raw<'_>) -> Vec<Text<'_>> {
    match raw.kind {
        Kind::Array => items(raw)
            .into_iter()
            .filter_map(|item| find(&members(item), "text").and_then(text))
            .collect(),
        _ => text(raw).into_iter().collect(),
    }
}

/// Returns the files in an `images` member, which is a list of `{"image_url":{"url"}}`.
pub(crate) fn images<'a>(
    raw: Raw<'a>,
    notes: &mut Anomalies<'a>,
    at: Pointer<'_>,
) -> Vec<File<'a>> {
    if raw.kind != Kind::Array {
        notes.shape(raw, at);
        return Vec::new();
    }
    let mut files = Vec::new();
    for (position, item) in items(raw).into_iter().enumerate() {
        match image(&members(item), notes) {
            Some(file) => files.push(file),
            None => notes.unless_null(item, at.item(position)),
        }
    }
    files
}

fn image<'a>(entry: &[Member<'a>], notes: &mut Anomalies<'a>) -> Option<File<'a>> {
    let holder = present(find(entry, "image_url"))?;
    let url = match holder.kind {
        Kind::Object => find(&members(holder), "url").and_then(text)?,
        _ => text(holder)?,
    };
    let (url, lone) = url.into_whole();
    if url.is_empty() {
        return None;
    }
    notes.lone |= lone;
    let modelled = |member: &&Member<'_>| {
        !matches!(member.key.name().as_ref(), "type" | "image_url" | "index")
    };
    let mut leftovers = ExtraFields::default();
    leftovers.extend(&entry.iter().filter(modelled).copied().collect::<Vec<_>>());
    Some(File {
        url,
        metadata: leftovers.text(),
    })
}

/// Joins several texts. Adjacent halves of a surrogate pair form one character. Halves at the beginning and the end of
/// the whole text are kept as halves.
pub(crate) fn concat<'a>(mut texts: Vec<Text<'a>>) -> Text<'a> {
    if texts.len() < 2 {
        return texts.pop().unwrap_or_default();
    }
    let lead_low = texts.first_mut().and_then(|text| text.lead_low.take());
    let tail_high = texts.last_mut().and_then(|text| text.tail_high.take());
    let mut body = String::new();
    let mut half = Surrogates::default();
    let mut lone = false;
    for text in texts {
        let (text, alone) = half.join(text);
        body.push_str(&text);
        lone |= alone;
    }
    if let Some(left) = half.finish() {
        body.push(left);
        lone = true;
    }
    Text {
        body: body.into(),
        lead_low,
        tail_high,
        lone,
    }
}
