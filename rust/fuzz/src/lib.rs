//! Contains the code that all fuzz targets share: the layout of an input, the structure-aware mutator, and the
//! invariants.
//!
//! An input consists of one byte with options, one byte with the number of read sizes, the read sizes, and the body.
//! The fuzzer can therefore vary how the body is split, as in the end-to-end fuzz target of the h2 crate. The function
//! `case` splits an input into these components.

pub mod invariants;
pub mod mutate;

use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::fault::Fault;
use streamweld_core::model::policy::{Base, Policy};
use streamweld_core::{Config, Dialect, Parser};

use invariants::{Lifecycle, assert_same, transcript};

/// Maximum number of read sizes in an input.
const MOST_READS: usize = 15;

/// One fuzz input, split into its components.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub options: u8,
    pub reads: &'a [u8],
    pub body: &'a [u8],
}

/// Splits an input. A short input has no body.
pub fn case(data: &[u8]) -> Case<'_> {
    let (&options, rest) = data.split_first().unwrap_or((&0, &[]));
    let (&count, rest) = rest.split_first().unwrap_or((&0, &[]));
    let count = (usize::from(count) & MOST_READS).min(rest.len());
    let (reads, body) = rest.split_at(count);
    Case {
        options,
        reads,
        body,
    }
}

impl<'a> Case<'a> {
    /// Splits the body into reads of the sizes that the input lists. The list is repeated as needed, and an empty list
    /// results in a single read.
    pub fn pieces(&self) -> Vec<&'a [u8]> {
        if self.reads.is_empty() {
            return vec![self.body];
        }
        let mut pieces = Vec::new();
        let mut rest = self.body;
        for &size in self.reads.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let size = if size < 128 {
                usize::from(size) + 1
            } else {
                usize::from(size - 127) * 64
            };
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces
    }

    /// Returns the policy and limits that the options byte selects.
    pub fn config(&self) -> Config {
        let bases = [Base::Salvage, Base::Standard, Base::Strict, Base::Salvage];
        let mut policy = Policy::new(bases[usize::from(self.options & 3)]);
        policy.inline_reasoning = self.options & 16 != 0;
        let mut config = Config {
            policy,
            seed: Some("fuzz".to_owned()),
            ..Config::default()
        };
        if self.options & 4 != 0 {
            config.limits.max_event_bytes = Some(2000);
            config.limits.max_tool_calls = Some(3);
            config.limits.max_choices = Some(2);
            config.limits.max_arguments_bytes = Some(64);
        }
        config
    }

    pub fn end(&self) -> InputEnd {
        InputEnd::of(self.options & 8 != 0)
    }

    /// Returns one of the six dialects, selected by the three highest bits of the options byte.
    pub fn dialect(&self) -> Dialect {
        dialects()[usize::from(self.options >> 5) % 6]
    }
}

/// Returns all dialects.
pub fn dialects() -> [Dialect; 6] {
    let names = [
        "chat",
        "responses",
        "anthropic",
        "gemini",
        "ai-sdk-parts",
        "ai-sdk-ui",
    ];
    names.map(|name| Dialect::from_name(name).unwrap())
}

/// Checks what every decoder target must guarantee: the result does not depend on how the input is split, and events
/// follow their lifecycle.
pub fn decoder(case: &Case<'_>, dialect: Option<Dialect>) {
    let (config, end) = (case.config(), case.end());
    let whole = transcript(dialect, &config, &[case.body], end, true);
    assert_same(
        "in pieces",
        &whole,
        &transcript(dialect, &config, &case.pieces(), end, true),
    );
    let bytes: Vec<&[u8]> = case.body.chunks(1).collect();
    assert_same(
        "byte by byte",
        &whole,
        &transcript(dialect, &config, &bytes, end, true),
    );
    lifecycle(case.body, dialect, &config, end);
}

/// Parses a body and checks the lifecycle of its events. Returns the lifecycle state and the fault, if any.
pub fn lifecycle(
    body: &[u8],
    dialect: Option<Dialect>,
    config: &Config,
    end: InputEnd,
) -> (Lifecycle, Option<Fault>) {
    let mut parser = Parser::new(dialect, config.clone());
    let mut seen = Lifecycle::default();
    let result = parser
        .feed(body, &mut seen)
        .and_then(|()| parser.close(end, &mut seen));
    (seen, result.err())
}
