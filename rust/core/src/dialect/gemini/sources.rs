//! Decodes the grounding chunks of one candidate, and emits each of them once as a source.
//!
//! Later payloads of a stream repeat or extend the list of grounding chunks. The `candidate` module stores the complete
//! grounding metadata.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::Kind;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::items;
use crate::json::members::text;
use std::borrow::Cow;
use std::collections::HashSet;

const KINDS: [&str; 4] = ["web", "retrievedContext", "maps", "image"];

/// Decoder state for the sources of one candidate.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// JSON of the grounding chunks that have been emitted. The assembler limits the number of grounding chunks.
    emitted: HashSet<String>,
}

impl Sources {
    /// Emits the elements of a candidate's `groundingMetadata.groundingChunks` that have not been emitted yet.
    pub(crate) fn read<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        choice: i32,
        candidate: &Object<'a>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let grounding = candidate.object("groundingMetadata");
        let Some(chunks) = grounding.and_then(|grounding| grounding.get("groundingChunks")) else {
            return Ok(());
        };
        for raw in items(chunks) {
            if raw.kind != Kind::Object || !self.emitted.insert(raw.text.to_owned()) {
                continue;
            }
            let inner = Object::of(raw).and_then(|chunk| {
                let mut kinds = KINDS.into_iter();
                kinds.find_map(|kind| Some((kind, chunk.object(kind)?)))
            });
            let (kind, members) = inner
                .map(|(kind, inner)| (kind, inner.members))
                .unwrap_or_default();
            let url = word(&members, "uri", notes);
            let title = word(&members, "title", notes);
            // A URL and a title fully describe a web page. For any other kind of source, the complete grounding chunk
            // is kept.
            let document = Some(raw.text).filter(|_| kind != "web" || url.is_none());
            let DecodeContext { assembler, out } = wire;
            assembler.source(
                out,
                choice,
                url.as_deref(),
                title.as_deref(),
                document,
                None,
            )?;
        }
        Ok(())
    }
}

fn word<'a>(holder: &[Member<'a>], key: &str, notes: &mut Anomalies<'a>) -> Option<Cow<'a, str>> {
    let text = find(holder, key).and_then(text)?;
    (!text.is_empty()).then(|| notes.clean(text))
}
