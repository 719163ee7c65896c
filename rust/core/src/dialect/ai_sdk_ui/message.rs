//! What a UI message stream says of the message itself: its id, and the metadata that an application hangs on it.
//!
//! Metadata is the application's own: `start`, `finish` and `message-metadata` bring objects that are merged (B 9.5; here
//! by their first level), and many applications put the usage there. Knows no content.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::ai_sdk_part::{TypedPart, once, words, write_member};
use crate::fault::Fault;
use crate::json::Kind;
use crate::json::members::{Slot, find, members};
use crate::limits::LimitName;
use crate::spec;
use crate::wire::{Step, Wire};

const METADATA: &str = "messageMetadata";

static USAGE_MEMBERS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let facts = spec::dialects().get("ai-sdk-ui");
    words(facts.and_then(|facts| facts.get("usage_members")))
});

/// Keeps the metadata of one message until its end.
#[derive(Debug, Default)]
pub(super) struct MessageReader {
    /// What came behind the start: keys and the texts of their values.
    members: Vec<(String, String)>,
    places: HashMap<String, usize>,
    size: usize,
    told: bool,
}

impl MessageReader {
    /// The first `start` is that of the response; what another one says is kept as the metadata it brings.
    pub(super) fn start(&mut self, wire: &mut Wire<'_, '_>, chunk: &mut TypedPart<'_, '_>) -> Step {
        if self.told {
            return self.metadata(wire, chunk);
        }
        self.told = true;
        let sent = chunk.an_object(METADATA);
        let identity = chunk.identity(&["messageId"]);
        let metadata = chunk.metadata_with(METADATA, sent.map(|raw| raw.text));
        let Wire { assembler, out } = &mut *wire;
        assembler.started(out, identity.as_deref(), None, None, metadata.as_deref())?;
        usage(wire, chunk, sent)
    }

    /// There is content, and no `start` came before it.
    #[inline]
    pub(super) fn tell(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if self.told {
            return Ok(());
        }
        self.told = true;
        wire.assembler.started(wire.out, None, None, None, None)
    }

    /// The `messageMetadata` of any chunk: the last of each member holds.
    pub(super) fn metadata(
        &mut self,
        wire: &mut Wire<'_, '_>,
        chunk: &mut TypedPart<'_, '_>,
    ) -> Step {
        let Some(sent) = chunk.an_object(METADATA) else {
            return Ok(());
        };
        for member in once(&members(sent)) {
            let (key, raw) = (member.key.name(), member.raw.text);
            self.size += raw.len();
            let known = self.places.get(key.as_ref());
            match known.and_then(|place| self.members.get_mut(*place)) {
                Some((_, before)) => {
                    self.size = self.size.saturating_sub(before.len());
                    raw.clone_into(before);
                }
                None => {
                    self.size += key.len();
                    let key = key.into_owned();
                    self.places.insert(key.clone(), self.members.len());
                    self.members.push((key, raw.to_owned()));
                }
            }
        }
        match wire.out.config.limits.max_text_bytes {
            Some(limit) if self.size as u64 > limit => {
                return Err(Fault::limit(LimitName::max_text_bytes, limit));
            }
            _ => {}
        }
        usage(wire, chunk, Some(sent))
    }

    /// The message is about to end.
    pub(super) fn flush(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        self.places.clear();
        let members = std::mem::take(&mut self.members);
        let mut text = String::new();
        for (key, raw) in &members {
            text.push(if text.is_empty() { '{' } else { ',' });
            write_member(&mut text, key, raw);
        }
        if text.is_empty() {
            return Ok(());
        }
        text.push('}');
        let mut whole = String::from("{");
        write_member(&mut whole, METADATA, &text);
        whole.push('}');
        wire.assembler.choice_metadata(wire.out, 0, &whole)
    }
}

fn usage<'a>(wire: &mut Wire<'_, '_>, chunk: &TypedPart<'_, 'a>, sent: Slot<'a>) -> Step {
    let Some(sent) = sent else {
        return Ok(());
    };
    let members = members(sent);
    for key in USAGE_MEMBERS.iter() {
        let usage = find(&members, key).filter(|raw| raw.kind == Kind::Object);
        let Some(raw) = usage else { continue };
        let counts = chunk.schema.counts.read(raw);
        if !counts.is_blank() {
            wire.assembler.merge_usage(wire.out, counts)?;
        }
    }
    Ok(())
}
