//! Reads the token counts from a usage object, using the table of dotted paths in `_spec/dialects.json`.
//!
//! If a payload contains several usage objects, the caller selects the one to use.

use crate::json::Kind;
use crate::json::Number;
use crate::json::Raw;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::member_of;
use crate::json::members::members;
use crate::model::event::Usage;
use crate::model::spec;
use serde_json::Value;

/// The paths at which one count may be. The first path that leads to a number is used.
type Paths = Vec<Vec<String>>;

/// The `usage` table of a dialect, with its paths split into steps.
#[derive(Debug)]
pub(crate) struct Counts([Paths; 6]);

impl Counts {
    pub(crate) fn of(dialect: &str) -> Counts {
        let usage = spec::dialects()
            .get(dialect)
            .and_then(|facts| facts.get("usage"));
        let paths = |name: &str| -> Paths {
            let list = usage
                .and_then(|usage| usage.get(name))
                .and_then(Value::as_array);
            let path = |path: &Value| {
                path.as_str()
                    .map(|path| path.split('.').map(str::to_owned).collect())
            };
            list.into_iter().flatten().filter_map(path).collect()
        };
        Counts([
            paths("input_tokens"),
            paths("output_tokens"),
            paths("total_tokens"),
            paths("cached_input_tokens"),
            paths("cache_write_tokens"),
            paths("reasoning_tokens"),
        ])
    }

    /// Returns the token counts in a usage object, and its JSON.
    pub(crate) fn read<'a>(&self, raw: Raw<'a>) -> Usage<'a> {
        self.read_members(raw, &members(raw))
    }

    /// Like `read`, for an object whose members are already parsed.
    pub(crate) fn read_members<'a>(&self, raw: Raw<'a>, object: &[Member<'a>]) -> Usage<'a> {
        let Counts([input, output, total, cached, written, reasoning]) = self;
        Usage {
            input_tokens: number(object, input),
            output_tokens: number(object, output),
            total_tokens: number(object, total),
            cached_input_tokens: number(object, cached),
            cache_write_tokens: number(object, written),
            reasoning_tokens: number(object, reasoning),
            raw: Some(raw.text),
        }
    }
}

fn number(object: &[Member<'_>], paths: &Paths) -> Option<i64> {
    paths.iter().find_map(|path| {
        let mut steps = path.iter();
        let mut value = find(object, steps.next()?)?;
        for step in steps {
            value = member_of(value, step)?;
        }
        match value.kind {
            Kind::Number => Number { raw: value.text }.integral(),
            _ => None,
        }
    })
}
