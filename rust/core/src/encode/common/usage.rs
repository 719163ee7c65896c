//! Token counts in one convention: the input with all that was cached, the output with the reasoning.
//!
//! What a source's own numbers leave out stands in `_spec/conversions.json`; every encoder turns these into its own.

use crate::model::event::Usage;
use crate::model::spec;

/// What is known of the counts of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) input: Option<i64>,
    pub(crate) output: Option<i64>,
    pub(crate) cached: Option<i64>,
    pub(crate) cache_write: Option<i64>,
    pub(crate) reasoning: Option<i64>,
    pub(crate) total: Option<i64>,
}

impl Counts {
    pub(crate) fn of(usage: &Usage<'_>, source: &str) -> Counts {
        let mut counts = Counts {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached: usage.cached_input_tokens,
            cache_write: usage.cache_write_tokens,
            reasoning: usage.reasoning_tokens,
            total: usage.total_tokens,
        };
        let left_out = spec::conversion("usage")
            .and_then(|table| table.get(source)?.get("input_excludes"))
            .map(|names| spec::words(Some(names)));
        for name in left_out.unwrap_or_default() {
            let more = match name {
                "cached" => counts.cached,
                "cache_write" => counts.cache_write,
                _ => None,
            };
            counts.input = counts
                .input
                .map(|input| input.saturating_add(more.unwrap_or(0)));
        }
        if counts.total.is_none() {
            let both = |input: i64| Some(input.saturating_add(counts.output?));
            counts.total = counts.input.and_then(both);
            return counts;
        }
        // xAI counts the reasoning beside the output, and shows it by its total.
        if let (Some(input), Some(output), Some(reasoning), Some(total)) =
            (counts.input, counts.output, counts.reasoning, counts.total)
        {
            let whole = output.saturating_add(reasoning);
            if input.saturating_add(whole) == total {
                counts.output = Some(whole);
            }
        }
        counts
    }

    /// Whether there is anything to write.
    pub(crate) fn is_told(&self) -> bool {
        self.input.is_some() || self.output.is_some() || self.total.is_some()
    }

    /// The total for a target that wants a number: what is not known is 0.
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
            input_tokens: Some(1),
            output_tokens: Some(5),
            cached_input_tokens: Some(10),
            cache_write_tokens: Some(100),
            ..Usage::default()
        };
        assert_eq!(Counts::of(&usage, "anthropic").input, Some(111));
        assert_eq!(Counts::of(&usage, "anthropic").sum(), 116);
        assert_eq!(Counts::of(&usage, "chat").input, Some(1));
    }

    #[test]
    fn reasoning_beside_the_output() {
        let mut usage = Usage {
            input_tokens: Some(1),
            output_tokens: Some(5),
            total_tokens: Some(13),
            reasoning_tokens: Some(7),
            ..Usage::default()
        };
        assert_eq!(Counts::of(&usage, "chat").output, Some(12));
        usage.total_tokens = Some(6);
        assert_eq!(Counts::of(&usage, "chat").output, Some(5));
    }
}
