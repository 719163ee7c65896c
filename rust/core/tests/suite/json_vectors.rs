//! Runs the automaton and the scanner on `tests/vectors/json`: in one piece, byte by byte, and split at every position.

use crate::vectors;

use serde_json::{Value as Json, json};
use streamweld_core::json::Automaton;
use streamweld_core::json::Problem;
use streamweld_core::json::Root;
use streamweld_core::json::ScanError;
use streamweld_core::json::Scanner;
use streamweld_core::json::Status;
use vectors::{bytes_of, tests_in};

fn verdict(status: Status) -> (&'static str, Option<(u64, &'static str)>) {
    match status {
        Status::Prefix => ("prefix", None),
        Status::Complete => ("complete", None),
        Status::Broken { pos, problem } => {
            let reason = match problem {
                Problem::Syntax => "syntax",
                Problem::TooDeep => "too_deep",
                Problem::NumberTooBig => "number_too_big",
                Problem::TooMany => "too_many",
            };
            ("broken", Some((pos, reason)))
        }
    }
}

fn root(root: Option<Root>) -> Option<&'static str> {
    root.map(|root| match root {
        Root::Object => "object",
        Root::Array => "array",
        Root::String => "string",
        Root::Number => "number",
        Root::Literal => "literal",
    })
}

fn check<'p>(test: &Json, pieces: impl IntoIterator<Item = &'p [u8]>, how: &str) -> Status {
    let name = format!("{} ({how})", test["name"]);
    let mut automaton = Automaton::new();
    for piece in pieces {
        automaton.feed(piece);
    }
    let status = automaton.finish();
    let (word, broken) = verdict(status);
    assert_eq!(json!(word), test["verdict"], "{name}");
    assert_eq!(json!(root(automaton.root())), test["root"], "{name}");
    if let Some((pos, reason)) = broken {
        assert_eq!(json!(pos), test["pos"], "{name}");
        assert_eq!(
            reason,
            test["reason"].as_str().unwrap_or("syntax"),
            "{name}"
        );
    } else if let Some(depth) = test["depth"].as_u64() {
        assert_eq!(u64::from(automaton.depth()), depth, "{name}");
        assert_eq!(json!(automaton.in_string()), test["in_string"], "{name}");
    }
    let none = Vec::new();
    let flags = test["flags"].as_array().unwrap_or(&none);
    let flag = |name: &str| flags.contains(&json!(name));
    assert_eq!(automaton.wide_integer(), flag("big_integer"), "{name}");
    assert_eq!(automaton.lone_surrogate(), flag("lone_surrogate"), "{name}");
    status
}

#[test]
fn every_vector_split_everywhere() {
    let mut count = 0;
    for test in tests_in("json") {
        let bytes = bytes_of(&test["input"]);
        let status = check(&test, [bytes.as_slice()], "whole");
        check(&test, bytes.chunks(1), "byte by byte");
        for cut in 0..bytes.len().min(600) {
            let (head, tail) = bytes.split_at(cut);
            check(&test, [head, tail], "cut");
        }
        // The scanner must accept the same texts as the automaton.
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let mut scanner = Scanner::new(text, None);
            let result = scanner.skip().and_then(|_| scanner.finish());
            let expected = match status {
                Status::Complete => Ok(()),
                Status::Prefix => Err(ScanError {
                    pos: text.len(),
                    problem: Problem::Syntax,
                }),
                Status::Broken { pos, problem } => Err(ScanError {
                    pos: pos as usize,
                    problem,
                }),
            };
            assert_eq!(result, expected, "{}", test["name"]);
        }
        count += 1;
    }
    println!("{count} vectors");
    assert!(count >= 190);
}
