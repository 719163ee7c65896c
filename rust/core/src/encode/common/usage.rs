//! Normalizes token counts across APIs: the input includes the cache, and the output includes the reasoning.
//!
//! The Python counterpart is `python/streamweld/usage.py`. `_spec/usage.json` describes what each API's usage object
//! means, and every encoder converts the counts to the meaning that its target uses.

use crate::json::Kind;
use crate::json::Number;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::string;
use crate::model::event::Usage;
use crate::model::small_map::Map;
use crate::model::spec;
use serde_json::Value;
use std::sync::LazyLock;

/// The normalized token counts of one response. A count is `None` if it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) input: Option<i64>,
    pub(crate) output: Option<i64>,
    pub(crate) cached: Option<i64>,
    pub(crate) cache_write: Option<i64>,
    pub(crate) reasoning: Option<i64>,
    pub(crate) total: Option<i64>,
}

const NAMES: [&str; 10] = [
    "reasoning",
    "cached_read",
    "cache_write",
    "input_audio",
    "output_audio",
    "input_images",
    "output_images",
    "input",
    "output",
    "total",
];
/// For each of the first seven counts, 0 if the count is normally part of the input and 1 if it is normally part of the
/// output.
const SIDES: [usize; 7] = [1, 0, 0, 0, 1, 0, 1];
const REASONING: usize = 0;
const CACHED_READ: usize = 1;
const CACHE_WRITE: usize = 2;
const INPUT: usize = 7;
const OUTPUT: usize = 8;
const TOTAL: usize = 9;

/// The token counts as sent, in the order of `NAMES`.
type Found = [Option<i64>; NAMES.len()];

/// The paths of several numbers, split into steps. The count is the sum of these numbers.
type Sum = Vec<Vec<String>>;

/// What one API's usage object means, as described in `about` of `_spec/usage.json`.
struct Shape {
    paths: [Vec<Sum>; NAMES.len()],
    modalities: [Vec<(String, String)>; NAMES.len()],
    iterations: Option<(String, String)>,
    adds: [Vec<usize>; 2],
    total_decides: bool,
    placeholder: Placeholder,
}

/// Which counts of 0 are placeholders, that is, members that are sent only because clients require them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    None,
    /// An input of 0 is a placeholder if the output is greater than 0.
    Input,
    /// An input token count of 0 is always a placeholder. If the input is 0, an output or total of 0 is a placeholder
    /// as well.
    Both,
}

static SHAPES: LazyLock<Map<String, Shape>> = LazyLock::new(|| {
    let mut shapes = Map::default();
    for (dialect, name) in spec::usage_dialects() {
        let row = name.as_str().and_then(spec::usage_shape);
        if let Some(row) = row {
            shapes.insert(dialect.clone(), Shape::of(row));
        }
    }
    shapes
});

impl Shape {
    fn of(row: &Value) -> Shape {
        let steps = |path: &str| path.split('.').map(str::to_owned).collect();
        let sum = |path: &Value| match path.as_array() {
            Some(paths) => paths.iter().filter_map(Value::as_str).map(steps).collect(),
            None => path.as_str().map(steps).into_iter().collect(),
        };
        let listed = |member: &str, name: &str| {
            let found = row
                .get(member)
                .and_then(|table| table.get(name)?.as_array());
            found.map(Vec::as_slice).unwrap_or_default()
        };
        let pair = |value: &Value| {
            let text = |at: usize| value.get(at).and_then(Value::as_str).map(str::to_owned);
            Some((text(0)?, text(1)?))
        };
        let added = |side: &str| {
            let names = listed("adds", side).iter().filter_map(Value::as_str);
            names
                .filter_map(|name| NAMES.iter().position(|known| *known == name))
                .collect()
        };
        Shape {
            paths: NAMES.map(|name| listed("paths", name).iter().map(sum).collect()),
            modalities: NAMES
                .map(|name| listed("modalities", name).iter().filter_map(pair).collect()),
            iterations: row.get("iterations").and_then(pair),
            adds: [added("input"), added("output")],
            total_decides: row.get("total_decides") == Some(&Value::Bool(true)),
            placeholder: match row.get("placeholder").and_then(Value::as_str) {
                Some("input") => Placeholder::Input,
                Some("both") => Placeholder::Both,
                _ => Placeholder::None,
            },
        }
    }

    /// Returns the counts in the object as sent, plus the counts of the iterations that the object does not include.
    fn read(&self, raw: &str) -> Found {
        let object = members(Raw {
            text: raw,
            kind: Kind::Object,
        });
        let mut found = self.read_one(&object);
        let Some((member, kind)) = &self.iterations else {
            return found;
        };
        let iterations = find(&object, member).map(items).unwrap_or_default();
        for entry in iterations.into_iter().map(members) {
            if find(&entry, "type").and_then(string).as_deref() == Some(kind.as_str()) {
                for (slot, count) in found.iter_mut().zip(self.read_one(&entry)) {
                    *slot = add([*slot, count].into_iter());
                }
            }
        }
        found
    }

    fn read_one(&self, object: &[Member<'_>]) -> Found {
        let mut found = Found::default();
        for (slot, paths) in found.iter_mut().zip(&self.paths) {
            let at_path = |path: &Vec<String>| {
                let mut steps = path.iter();
                let mut value = find(object, steps.next()?)?;
                for step in steps {
                    value = find(&members(value), step)?;
                }
                count(value)
            };
            *slot = paths.iter().find_map(|sum| add(sum.iter().map(at_path)));
        }
        for (slot, lists) in found.iter_mut().zip(&self.modalities) {
            if !lists.is_empty() {
                *slot = add(lists
                    .iter()
                    .map(|(member, modality)| of_modality(find(object, member)?, modality)));
            }
        }
        found
    }

    /// Returns which counts the gateway reports separately from the input and the output.
    ///
    /// The API's documentation determines which counts are separate, unless the numbers contradict the documentation. A
    /// count that is larger than the input cannot be part of the input, and the same applies to the output. If the
    /// total exceeds the input plus the output by the sum of some counts, these counts are reported separately.
    fn excluded_counts(&self, found: &Found) -> [Vec<usize>; 2] {
        let known = |parts: &Vec<usize>| -> Vec<usize> {
            let parts = parts.iter().copied();
            parts.filter(|part| sent(found, *part).is_some()).collect()
        };
        let mut excluded_counts = [known(&self.adds[0]), known(&self.adds[1])];
        if excluded_counts.iter().all(Vec::is_empty) {
            larger_parts(found, &mut excluded_counts);
        }
        let (Some(total), Some(input), Some(output), true) = (
            found[TOTAL],
            found[INPUT],
            found[OUTPUT],
            self.total_decides,
        ) else {
            return excluded_counts;
        };
        let value = |part: usize| sent(found, part).unwrap_or(0);
        let rest = total.saturating_sub(input).saturating_sub(output);
        let sum = |parts: &[usize]| {
            let values = parts.iter().map(|part| value(*part));
            values.fold(0, i64::saturating_add)
        };
        let documented = excluded_counts.concat();
        if rest == sum(&documented) {
            return excluded_counts;
        }
        let fits = |part: &usize| value(*part) <= if side(*part) == 0 { input } else { output };
        if rest == 0 && documented.iter().all(fits) {
            return Default::default();
        }
        let parts: Vec<usize> = (0..SIDES.len()).filter(|part| value(*part) > 0).collect();
        let mut some: Vec<Vec<usize>> = (1..1_usize << parts.len())
            .map(|mask| {
                let chosen = parts.iter().enumerate();
                let chosen = chosen.filter(|(at, _)| mask >> at & 1 == 1);
                chosen.map(|(_, part)| *part).collect()
            })
            .collect();
        some.sort_by_key(|parts| (parts.len(), parts.clone()));
        match some.into_iter().find(|parts| sum(parts) == rest) {
            Some(parts) => [0, 1].map(|wanted| {
                let parts = parts.iter().copied();
                parts.filter(|part| side(*part) == wanted).collect()
            }),
            None => excluded_counts,
        }
    }
}

fn sent(found: &Found, name: usize) -> Option<i64> {
    found.get(name).copied().flatten()
}

fn side(part: usize) -> usize {
    SIDES.get(part).copied().unwrap_or_default()
}

fn larger_parts(found: &Found, excluded_counts: &mut [Vec<usize>; 2]) {
    let value = |part: usize| sent(found, part).unwrap_or(0);
    let cached = value(CACHED_READ).max(value(CACHE_WRITE));
    if cached > value(INPUT) && value(INPUT) > 0 {
        let parts = [CACHED_READ, CACHE_WRITE].into_iter();
        excluded_counts[0] = parts.filter(|part| sent(found, *part).is_some()).collect();
    }
    if value(REASONING) > value(OUTPUT) && value(OUTPUT) > 0 {
        excluded_counts[1] = vec![REASONING];
    }
}

fn count(value: Raw<'_>) -> Option<i64> {
    let number = (value.kind == Kind::Number).then_some(Number { raw: value.text })?;
    number.integral().filter(|number| *number >= 0)
}

fn of_modality(list: Raw<'_>, modality: &str) -> Option<i64> {
    add(items(list).into_iter().map(|entry| {
        let entry = members(entry);
        let named = find(&entry, "modality").and_then(string)? == modality;
        find(&entry, "tokenCount").filter(|_| named).and_then(count)
    }))
}

/// Returns the sum of the counts that are known, or `None` if no count is known.
fn add(counts: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    counts.flatten().reduce(i64::saturating_add)
}

impl Counts {
    pub(crate) fn of(usage: &Usage<'_>, source: &str) -> Counts {
        let Some(shape) = SHAPES.get(source).or_else(|| SHAPES.get("chat")) else {
            return Counts::default();
        };
        let mut found = usage.raw.map(|raw| shape.read(raw)).unwrap_or_default();
        if found.iter().all(Option::is_none) {
            let known = |count: Option<i64>| count.filter(|count| *count >= 0);
            found[INPUT] = known(usage.input_tokens);
            found[OUTPUT] = known(usage.output_tokens);
            found[TOTAL] = known(usage.total_tokens);
            found[CACHED_READ] = known(usage.cached_input_tokens);
            found[CACHE_WRITE] = known(usage.cache_write_tokens);
            found[REASONING] = known(usage.reasoning_tokens);
        }
        let [inputs, outputs] = shape.excluded_counts(&found);
        let whole = |name: usize, parts: Vec<usize>| {
            add([name]
                .into_iter()
                .chain(parts)
                .map(|part| sent(&found, part)))
        };
        let (mut input, mut output) = (whole(INPUT, inputs), whole(OUTPUT, outputs));
        let mut total = found[TOTAL];
        let is_counted = output.is_some_and(|output| output > 0);
        let is_placeholder = match shape.placeholder {
            Placeholder::None => false,
            Placeholder::Input => is_counted,
            Placeholder::Both => true,
        };
        if input == Some(0) && is_placeholder {
            // An input of 0 is a placeholder for a required member, because every request has input.
            input = None;
            output = output.filter(|_| is_counted);
            total = total.filter(|total| *total > 0);
        }
        if let Some(total) = total {
            // If the total equals the known count, the missing count is either zero or has not been sent yet.
            let rest = |known: i64| Some(total.saturating_sub(known)).filter(|rest| *rest > 0);
            match (input, output) {
                (None, Some(known)) => input = rest(known),
                (Some(known), None) => output = rest(known),
                _ => {}
            }
        }
        if let (Some(input), Some(output)) = (input, output) {
            let known = input.saturating_add(output);
            total = Some(total.map_or(known, |total| total.max(known)));
        }
        Counts {
            input,
            output,
            cached: found[CACHED_READ],
            cache_write: found[CACHE_WRITE],
            reasoning: found[REASONING],
            total,
        }
    }

    /// Returns true if the input, the output, or the total is known.
    pub(crate) fn is_known(&self) -> bool {
        self.input.is_some() || self.output.is_some() || self.total.is_some()
    }

    /// Returns the total, for a target that requires a number. If the total is unknown, returns the sum of the known
    /// counts.
    pub(crate) fn sum(&self) -> i64 {
        let input = self.input.unwrap_or(0);
        let both = input.saturating_add(self.output.unwrap_or(0));
        self.total.unwrap_or(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anthropic_leaves_the_cached_tokens_out() {
        let usage = Usage {
            input_tokens: Some(200),
            output_tokens: Some(5),
            cached_input_tokens: Some(10),
            cache_write_tokens: Some(100),
            ..Usage::default()
        };
        assert_eq!(Counts::of(&usage, "anthropic").input, Some(310));
        assert_eq!(Counts::of(&usage, "anthropic").sum(), 315);
        assert_eq!(Counts::of(&usage, "chat").input, Some(200));
    }

    #[test]
    fn reasoning_beside_the_output() {
        let mut usage = Usage {
            input_tokens: Some(1),
            output_tokens: Some(5),
            total_tokens: Some(9),
            reasoning_tokens: Some(3),
            ..Usage::default()
        };
        assert_eq!(Counts::of(&usage, "chat").output, Some(8));
        usage.total_tokens = Some(6);
        assert_eq!(Counts::of(&usage, "chat").output, Some(5));
    }
}
