//! Checks that the automaton, the scanner and serde_json agree on any text, regardless of how it is split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamweld_core::json::Automaton;
use streamweld_core::json::Problem;
use streamweld_core::json::Scanner;
use streamweld_core::json::Status;
use streamweld_fuzz::case;

fuzz_target!(|data: &[u8]| {
    let case = case(data);
    let text = String::from_utf8_lossy(case.body);
    let mut whole = Automaton::new();
    whole.feed(text.as_bytes());
    let verdict = whole.finish();
    let mut cut = Automaton::new();
    let sizes: Vec<u8> = case.reads.iter().copied().chain([7]).collect();
    let mut rest = text.as_bytes();
    for size in sizes.into_iter().cycle() {
        let (piece, after) = rest.split_at((usize::from(size) + 1).min(rest.len()));
        cut.feed(piece);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    assert_eq!(cut.finish(), verdict, "in pieces");
    assert_eq!(
        (cut.root(), cut.pos()),
        (whole.root(), whole.pos()),
        "in pieces"
    );

    let mut scanner = Scanner::new(&text, None);
    let scanned = scanner.skip().map(drop).and_then(|()| scanner.finish());
    match (verdict, &scanned) {
        (Status::Complete, Ok(())) => assert_eq!(scanner.wide_integer(), whole.wide_integer()),
        (Status::Prefix, Err(error)) => {
            assert_eq!((error.pos, error.problem), (text.len(), Problem::Syntax))
        }
        (Status::Broken { pos, problem }, Err(error)) => {
            assert_eq!((error.pos as u64, error.problem), (pos, problem));
        }
        _ => panic!("automaton {verdict:?}, scanner {scanned:?}"),
    }
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(_) => assert_eq!(verdict, Status::Complete, "serde_json accepts it"),
        Err(error) if verdict == Status::Complete => {
            let text = error.to_string();
            let known = ["surrogate", "out of range", "recursion", "escape"];
            assert!(
                known.iter().any(|known| text.contains(known)),
                "only serde_json rejects it: {error}"
            );
        }
        Err(_) => {}
    }
});
