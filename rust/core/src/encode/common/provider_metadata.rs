//! What only the provider that made it can use again: signatures, encrypted reasoning, ids of items.
//!
//! It is passed on where the next reader hands it back to that provider, and nowhere else: under the provider's name in the
//! AI SDK's `providerMetadata`, and from there to the provider's own dialect. Knows these names; knows no frame.

use crate::encode::common::compact_json::canonical;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::part_details::Done;
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
use crate::model::spec;

/// What providers of the AI SDK ask back, inside of their namespace.
const HANDED_BACK: [&str; 5] = [
    "itemId",
    "signature",
    "thoughtSignature",
    "reasoningEncryptedContent",
    "redactedData",
];

/// Whether a part comes from that provider, by the word of the AI SDK that read it.
pub(crate) fn is_genuine(job: &EncodeContext, provider: &str, metadata: Option<&str>) -> bool {
    let whole = metadata.filter(|_| job.source.starts_with("ai-sdk-"));
    let whole = whole.and_then(|text| {
        Object::of(Raw {
            text,
            kind: Kind::Object,
        })
    });
    whole.is_some_and(|whole| whole.object(provider).is_some())
}

/// The `providerMetadata` of a part, as JSON; of what is not in it the loss is noted. `done`: the close of a reasoning has
/// such things as members of its own.
pub(crate) fn provider_metadata(
    job: &mut EncodeContext,
    metadata: Option<&str>,
    done: Option<&Done<'_>>,
) -> Option<String> {
    let own = done.map(|done| own(job.source, done)).unwrap_or_default();
    if metadata.is_none() && own.is_empty() {
        return None;
    }
    // Each name once.
    let mut found = ExtraFields::default();
    let said = members(Raw {
        text: metadata.unwrap_or("{}"),
        kind: Kind::Object,
    });
    said.into_iter().for_each(|member| found.add(member));
    let found = found.members;
    if job.source.starts_with("ai-sdk-") {
        handed_on(job, &found)
    } else {
        under_its_name(job, &found, own)
    }
}

/// From one protocol of the AI SDK to the other: the namespaces in which something is asked back, whole.
fn handed_on(job: &mut EncodeContext, found: &[Member<'_>]) -> Option<String> {
    let mut to = Writer::default();
    let mut mark = "{";
    for member in found {
        let (name, space) = (member.key.name(), Object::of(member.raw));
        let own = job.passed.own;
        match space.filter(|space| own || HANDED_BACK.iter().any(|member| space.has(member))) {
            Some(space) => {
                canonical(to.raw(mark).string(&name).raw(":"), space.raw.text);
                mark = ",";
            }
            None => job.losses.note("metadata"),
        }
    }
    (mark == ",").then(|| {
        to.raw("}");
        to.into_text()
    })
}

fn under_its_name(
    job: &mut EncodeContext,
    found: &[Member<'_>],
    own: Vec<(&'static str, &str)>,
) -> Option<String> {
    let name = provider(job.source);
    let signature = find(found, "thoughtSignature").and_then(string);
    let signature = signature.filter(|_| name == "google");
    if found.len() > usize::from(signature.is_some()) {
        job.losses.note("metadata");
    }
    let signature = signature.as_deref().filter(|text| !text.is_empty());
    let known = own.iter().any(|(name, _)| *name == "thoughtSignature");
    let signature = signature.filter(|_| !known);
    let signature = signature.map(|text| ("thoughtSignature", text));
    let mut to = Writer::default();
    to.raw("{").string(name).raw(":");
    let mut mark = "{";
    for (name, text) in own.into_iter().chain(signature) {
        to.raw(mark).string(name).raw(":").string(text);
        mark = ",";
    }
    (mark == ",").then(|| {
        to.raw("}}");
        to.into_text()
    })
}

/// The namespace of a source.
fn provider(source: &str) -> &str {
    let known = spec::conversion("provider_names").and_then(|table| table.get(source)?.as_str());
    known.unwrap_or(if source.is_empty() { "unknown" } else { source })
}

/// What the close of a reasoning carries as members of its own, by the names that they have in its namespace.
fn own<'d>(source: &str, done: &'d Done<'_>) -> Vec<(&'static str, &'d str)> {
    let told = |text: &'d Option<Text<'_>>| text.as_deref().filter(|text| !text.is_empty());
    let mut own = Vec::new();
    if let Some(encrypted) = told(&done.encrypted_content) {
        // OpenAI asks the two back together.
        if let Some(item_id) = told(&done.item_id).filter(|_| source == "responses") {
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
    if let Some(signature) = told(&done.signature) {
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
