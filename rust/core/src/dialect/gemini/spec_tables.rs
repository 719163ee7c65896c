//! Loads the tables of the Gemini dialect from `_spec/dialects.json`, such as the known members of a
//! GenerateContentResponse. This module also reads ids, names, reasons, and token counts.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anomalies::Pointer;
use crate::dialect::think_tags::is_white;
use crate::dialect::usage_counts::Counts;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::integer;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::event::Usage;
use crate::model::spec::fact;
use crate::model::spec::words;
use serde_json::Value;
use std::borrow::Cow;
use std::mem;
use std::sync::LazyLock;

const DIALECT: &str = "gemini";

/// A list of member names or other strings.
type Fields = Vec<&'static str>;

/// The tables of the Gemini dialect, loaded from `_spec/dialects.json`.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) envelope_fields: Fields,
    pub(crate) candidate_fields: Fields,
    pub(crate) content_fields: Fields,
    pub(crate) part_fields: Fields,
    pub(crate) call_fields: Fields,
    /// Names that some gateways use instead of `args`.
    pub(crate) other_arguments: Vec<&'static str>,
    partial_fields: Fields,
    /// Pairs of a proto name and its JSON name.
    pub(crate) proto_names: Vec<(&'static str, String)>,
    pub(crate) code_tool: &'static str,
    absent_reasons: Fields,
    absent_ids: Fields,
    counts: Counts,
    input: Fields,
    output: Fields,
}

pub(crate) static FACTS: LazyLock<Facts> = LazyLock::new(|| {
    let list = |key| words(fact(DIALECT, key));
    let sum = |key| words(fact(DIALECT, "usage_sums").and_then(|sums| sums.get(key)));
    let tool = fact(DIALECT, "code_tool").and_then(Value::as_str);
    Facts {
        envelope_fields: list("envelope_fields"),
        candidate_fields: list("candidate_fields"),
        content_fields: list("content_fields"),
        part_fields: list("part_fields"),
        call_fields: list("call_fields"),
        other_arguments: words(fact("gemini", "other_arguments")),
        partial_fields: list("partial_fields"),
        proto_names: list("proto_names")
            .into_iter()
            .map(|name| (name, camel_case(name)))
            .collect(),
        code_tool: tool.unwrap_or_default(),
        absent_reasons: list("absent_reasons"),
        absent_ids: list("absent_ids"),
        counts: Counts::of(DIALECT),
        input: sum("input_tokens"),
        output: sum("output_tokens"),
    }
});

fn camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for letter in name.chars() {
        match letter {
            '_' => upper = true,
            _ if mem::take(&mut upper) => out.push(letter.to_ascii_uppercase()),
            _ => out.push(letter),
        }
    }
    out
}

impl Facts {
    /// Returns the token counts in a `usageMetadata` object, and its JSON.
    pub(crate) fn usage<'a>(&self, object: &Object<'a>) -> Usage<'a> {
        Usage {
            input_tokens: sum(&object.members, &self.input),
            output_tokens: sum(&object.members, &self.output),
            ..self.counts.read_members(object.raw, &object.members)
        }
    }
}

/// Returns the sum of the members that are numbers, or `None` if no member is a number or the sum overflows.
fn sum(members: &[Member<'_>], keys: &[&str]) -> Option<i64> {
    let numbers = keys.iter().filter_map(|key| {
        let raw = find(members, key)?;
        integer(raw).filter(|_| raw.kind == Kind::Number)
    });
    let mut total: Option<i64> = None;
    for number in numbers {
        total = Some(total.unwrap_or(0).checked_add(number)?);
    }
    total
}

/// Returns the members that are not listed in `modelled`, as metadata.
pub(crate) fn extra_fields<'a>(members: &[Member<'a>], modelled: &[&str]) -> ExtraFields<'a> {
    let rest = unmodelled(members, modelled);
    ExtraFields::of(rest)
}

/// Returns the members that are not listed in `modelled`.
pub(crate) fn unmodelled<'a>(members: &[Member<'a>], modelled: &[&str]) -> Vec<Member<'a>> {
    let known = |member: &&Member<'_>| modelled.iter().any(|name| member.key.is(name));
    let rest = members.iter().filter(|member| !known(member));
    rest.copied().collect()
}

/// Returns a `finishReason` or a `blockReason`, or `None` if it is blank or a placeholder.
pub(crate) fn a_reason<'a>(
    holder: &[Member<'a>],
    at: Pointer<'_>,
    key: &str,
    notes: &mut Anomalies<'a>,
) -> Option<Cow<'a, str>> {
    let reason = notes.a_text(holder, at, key);
    is_reason(&reason).then(|| notes.clean(reason))
}

/// Returns true if the text is neither blank nor a placeholder (`absent_reasons`).
pub(crate) fn is_reason(text: &Text<'_>) -> bool {
    !is_blank(text) && !FACTS.absent_reasons.contains(&text.body.as_ref())
}

/// Returns the id as text, or `None` if it is absent, blank, or a placeholder. A numeric id is returned with the digits
/// that the payload contains.
pub(crate) fn an_id<'a>(
    holder: &[Member<'a>],
    at: Pointer<'_>,
    notes: &mut Anomalies<'a>,
) -> Option<Cow<'a, str>> {
    let raw = present(find(holder, "id"))?;
    match text(raw) {
        Some(id) => {
            let (id, lone) = id.into_whole();
            let trimmed = id.trim_matches(is_white);
            let usable = !trimmed.is_empty() && !FACTS.absent_ids.contains(&trimmed);
            notes.lone |= lone && usable;
            usable.then_some(id)
        }
        None if raw.kind == Kind::Number => Some(Cow::Borrowed(raw.text)),
        None => {
            notes.shape(raw, at.member("id"));
            None
        }
    }
}

/// Returns a string such as a name or an id, or `None` if it is blank.
pub(crate) fn a_word<'a>(
    holder: &[Member<'a>],
    at: Pointer<'_>,
    key: &str,
    notes: &mut Anomalies<'a>,
) -> Option<Cow<'a, str>> {
    let word = notes.a_text(holder, at, key);
    (!is_blank(&word)).then(|| notes.clean(word))
}

pub(crate) fn is_blank(text: &Text<'_>) -> bool {
    text.lead_low.is_none()
        && text.tail_high.is_none()
        && text.body.trim_matches(is_white).is_empty()
}

pub(crate) fn is_true(holder: &[Member<'_>], key: &str) -> bool {
    find(holder, key).is_some_and(|raw| raw.kind == Kind::True)
}

/// Converts a `createTime` to seconds since 1970-01-01. The API writes this time in UTC, in the format of RFC 3339.
/// Returns `None` if the text has another form.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let (date, fraction) = text.strip_suffix('Z')?.split_at_checked(19)?;
    if let Some(digits) = fraction.strip_prefix('.') {
        if !(1..=9).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    } else if !fraction.is_empty() {
        return None;
    }
    let mut numbers = [0_i64; 6];
    let mut position = 0;
    for (sign, byte) in b"0000-00-00T00:00:00".iter().zip(date.bytes()) {
        if *sign != b'0' {
            if *sign != byte {
                return None;
            }
            position += 1;
        } else {
            let number = numbers.get_mut(position)?;
            *number = *number * 10 + i64::from(char::from(byte).to_digit(10)?);
        }
    }
    let [year, month, day, hour, minute, second] = numbers;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Count the days since 1970-01-01 in the proleptic Gregorian calendar. In this calculation, years begin in March.
    let year = year - i64::from(month < 3);
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = 365 * year + leaps + (153 * ((month + 9) % 12) + 2) / 5 + day - 719_469;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Returns true if the decoder reads the member at `path` of a chunk. Only duplicates of members that the decoder reads
/// are reported.
pub(crate) fn is_read(path: &[Option<&str>]) -> bool {
    let facts = &*FACTS;
    let Some((Some(key), holder)) = path.split_last() else {
        return false;
    };
    let [candidates, content, parts, call, partial] = [
        "candidates",
        "content",
        "parts",
        "functionCall",
        "partialArgs",
    ]
    .map(Some);
    let fields = match holder {
        [] => &facts.envelope_fields,
        [Some("promptFeedback")] => return *key == "blockReason",
        [a, None] if *a == candidates => &facts.candidate_fields,
        [a, None, b] if (*a, *b) == (candidates, content) => &facts.content_fields,
        [a, None, b, c, None] if (*a, *b, *c) == (candidates, content, parts) => &facts.part_fields,
        [a, None, b, c, None, d] if (*a, *b, *c, *d) == (candidates, content, parts, call) => {
            &facts.call_fields
        }
        [a, None, b, c, None, d, e, None]
            if (*a, *b, *c, *d, *e) == (candidates, content, parts, call, partial) =>
        {
            &facts.partial_fields
        }
        _ => return false,
    };
    fields.contains(key)
}

/// Returns the value of a member, or `None` if it is absent or null.
pub(crate) fn nonnull<'a>(holder: &[Member<'a>], key: &str) -> Option<Raw<'a>> {
    present(find(holder, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2025-02-28T23:59:59.123456Z"), Some(1_740_787_199));
        assert_eq!(seconds("2000-02-29T12:00:00Z"), Some(951_825_600));
        assert_eq!(seconds("0000-01-01T00:00:00Z"), Some(-62_167_219_200));
        for text in [
            "2025-13-01T00:00:00Z",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00.1234567890Z",
            "2025-01-01 00:00:00Z",
            "2025-01-01T24:00:00Z",
            "\u{e9}025-01-01T00:00:0Z",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
