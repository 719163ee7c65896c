//! Writes metadata that only its provider can use, such as signatures, encrypted reasoning and item ids.
//!
//! This metadata is written only to a field that a client sends back to the same provider: `providerMetadata` of the AI
//! SDK, under the provider's name. When an AI SDK stream is converted to the provider's own dialect, the metadata is
//! restored from `providerMetadata`.

use crate::encode::common::compact_json::canonical;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind as PartKind;
use crate::encode::common::part_details::Text;
use crate::encode::common::writer::Writer;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::members;
use crate::json::members::string;
use crate::model::event::Event;
use crate::model::event::Opened;
use crate::model::spec;

/// Members of `providerMetadata` that the provider requires in a later turn.
const HANDED_BACK: [&str; 5] = [
    "itemId",
    "signature",
    "thoughtSignature",
    "reasoningEncryptedContent",
    "redactedData",
];

/// The member of a text's metadata that OpenAI requires in a later turn. @ai-sdk/openai sends it back.
const PHASE: &str = "phase";

/// Returns true if the texts of the source may have a phase.
pub(crate) fn has_phases(source: &str) -> bool {
    source == "responses"
}

/// Returns true if the event starts a text, and its metadata consists of a phase. The end of the text repeats the phase.
pub(crate) fn has_only_phase(source: &str, event: &Event<'_>) -> bool {
    let Event::TextStarted(Opened {
        metadata: Some(text),
        ..
    }) = *event
    else {
        return false;
    };
    let metadata = Raw {
        text,
        kind: Kind::Object,
    };
    let is_phase = |member: &Member<'_>| member.key.is(PHASE) && member.raw.kind == Kind::String;
    has_phases(source) && members(metadata).iter().all(is_phase)
}

/// Returns true if an AI SDK part has `providerMetadata` of this provider, which shows that the part came from this
/// provider.
pub(crate) fn is_genuine(context: &EncodeContext, provider: &str, metadata: Option<&str>) -> bool {
    let whole = metadata.filter(|_| context.source.starts_with("ai-sdk-"));
    let whole = whole.and_then(|text| {
        Object::of(Raw {
            text,
            kind: Kind::Object,
        })
    });
    whole.is_some_and(|whole| whole.object(provider).is_some())
}

/// Returns the members of a part's metadata that belong in `providerMetadata`, as JSON, and records a loss for all
/// other members. `done` is the closing event of a reasoning part, which has separate fields for the signature and the
/// encrypted content.
pub(crate) fn provider_metadata(
    context: &mut EncodeContext,
    metadata: Option<&str>,
    done: Option<&Done<'_>>,
) -> Option<String> {
    let own = done
        .map(|done| own(context.source, done))
        .unwrap_or_default();
    if metadata.is_none() && own.is_empty() {
        return None;
    }
    // Removes duplicate names.
    let mut found = ExtraFields::default();
    let parsed = members(Raw {
        text: metadata.unwrap_or("{}"),
        kind: Kind::Object,
    });
    parsed.into_iter().for_each(|member| found.add(member));
    let found = found.members;
    if context.source.starts_with("ai-sdk-") {
        handed_on(context, &found)
    } else {
        let is_text = done.is_some_and(|done| done.kind == PartKind::Text);
        under_its_name(context, &found, own, is_text)
    }
}

/// For a conversion between the AI SDK protocols, returns every provider namespace with a member that must be sent
/// back.
fn handed_on(context: &mut EncodeContext, found: &[Member<'_>]) -> Option<String> {
    let mut to = Writer::default();
    let mut mark = "{";
    for member in found {
        let (name, space) = (member.key.name(), Object::of(member.raw));
        let own = context.passed.own;
        match space.filter(|space| own || HANDED_BACK.iter().any(|member| space.has(member))) {
            Some(space) => {
                canonical(to.raw(mark).string(&name).raw(":"), space.raw.text);
                mark = ",";
            }
            None => context.losses.note("metadata"),
        }
    }
    (mark == ",").then(|| {
        to.raw("}");
        to.into_text()
    })
}

fn under_its_name(
    context: &mut EncodeContext,
    found: &[Member<'_>],
    own: Vec<(&'static str, &str)>,
    is_text: bool,
) -> Option<String> {
    let name = provider(context.source);
    let phase = find(found, PHASE).and_then(string);
    let phase = phase.filter(|_| is_text && has_phases(context.source));
    let signature = find(found, "thoughtSignature").and_then(string);
    let signature = signature.filter(|_| name == "google");
    if found.len() > usize::from(signature.is_some()) + usize::from(phase.is_some()) {
        context.losses.note("metadata");
    }
    let signature = signature.as_deref().filter(|text| !text.is_empty());
    let known = own.iter().any(|(name, _)| *name == "thoughtSignature");
    let signature = signature.filter(|_| !known);
    let signature = signature.map(|text| ("thoughtSignature", text));
    let mut to = Writer::default();
    to.raw("{").string(name).raw(":");
    let mut mark = "{";
    let phase = phase.as_deref().map(|text| (PHASE, text));
    for (name, text) in own.into_iter().chain(signature).chain(phase) {
        to.raw(mark).string(name).raw(":").string(text);
        mark = ",";
    }
    (mark == ",").then(|| {
        to.raw("}}");
        to.into_text()
    })
}

/// Returns the provider namespace for a source. A source that is not listed uses its own name.
fn provider(source: &str) -> &str {
    let known = spec::conversion("provider_names").and_then(|table| table.get(source)?.as_str());
    known.unwrap_or(if source.is_empty() { "unknown" } else { source })
}

/// Returns the content of a reasoning part's closing event, under the names that the provider's namespace uses.
fn own<'d>(source: &str, done: &'d Done<'_>) -> Vec<(&'static str, &'d str)> {
    let nonempty = |text: &'d Option<Text<'_>>| text.as_deref().filter(|text| !text.is_empty());
    let mut own = Vec::new();
    if let Some(encrypted) = nonempty(&done.encrypted_content) {
        // OpenAI requires that the encrypted content and the item id be sent back together.
        if let Some(item_id) = nonempty(&done.item_id).filter(|_| source == "responses") {
            own.push(("itemId", item_id));
        }
        let is_redacted = provider(source) == "anthropic";
        own.push((
            if is_redacted {
                "redactedData"
            } else {
                "reasoningEncryptedContent"
            },
            encrypted,
        ));
    }
    if let Some(signature) = nonempty(&done.signature) {
        let is_google = provider(source) == "google";
        own.push((
            if is_google {
                "thoughtSignature"
            } else {
                "signature"
            },
            signature,
        ));
    }
    own
}
