//! Images of a delta, and what a `data:` URL holds.

use super::error::string;
use super::metadata::Leftovers;
use super::notes::{Notes, Pointer};
use super::read::{Slot, find, items, members, present};
use super::{Step, Wire};
use crate::json::{Kind, Raw};

/// The entries of `images`.
pub(crate) fn images<'a>(
    wire: &mut Wire<'_, '_>,
    choice: i32,
    raw: Raw<'a>,
    notes: &mut Notes<'a>,
    at: Pointer<'_>,
) -> Step {
    if raw.kind != Kind::Array {
        notes.shape(raw, at);
        return Ok(());
    }
    for (place, entry) in items(raw).into_iter().enumerate() {
        if !image(wire, choice, entry)? {
            notes.unless_null(entry, at.item(place));
        }
    }
    Ok(())
}

/// One image; false where it is none.
pub(crate) fn image(
    wire: &mut Wire<'_, '_>,
    choice: i32,
    entry: Raw<'_>,
) -> Result<bool, crate::fault::Fault> {
    let entry = members(entry);
    let Some(url) = present(find(&entry, "image_url")).and_then(|raw| address(Some(raw))) else {
        return Ok(false);
    };
    let mut leftovers = Leftovers::default();
    for member in entry
        .iter()
        .filter(|member| !matches!(member.key.name().as_ref(), "type" | "image_url" | "index"))
    {
        leftovers.add(*member);
    }
    let metadata = leftovers.text();
    let (media_type, data, url) = match embedded(&url) {
        Some((media_type, data)) => (Some(media_type), Some(data), None),
        None => (None, None, Some(url.as_ref())),
    };
    wire.assembler
        .file(wire.out, choice, media_type, data, url, metadata.as_deref())?;
    Ok(true)
}

/// A URL, or an object that has one.
fn address(slot: Slot<'_>) -> Option<std::borrow::Cow<'_, str>> {
    let raw = slot?;
    match raw.kind {
        Kind::String => string(raw),
        _ => find(&members(raw), "url").and_then(string),
    }
}

/// Media type and data of a base64 `data:` URL.
fn embedded(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((head.strip_suffix(";base64")?, data))
}
