//! Checks that the automaton, the scanner and serde_json accept the same texts, however a text is split and its values
//! are read.

use crate::random;

use random::Random;
use serde_json::Value as Json;
use streamweld_core::json::Automaton;
use streamweld_core::json::Kind;
use streamweld_core::json::MAX_DEPTH;
use streamweld_core::json::Problem;
use streamweld_core::json::Scan;
use streamweld_core::json::ScanError;
use streamweld_core::json::Scanner;
use streamweld_core::json::Status;
use streamweld_core::json::Text;
use streamweld_core::json::automaton::check;
use streamweld_core::json::compact;
use streamweld_core::json::write_string;

const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"a\"",
    "\"a\":",
    "\"\\u00",
    "\\ud83d",
    "\\ude00",
    "\\u",
    "\\n",
    "\\",
    "e9",
    "é",
    "😀",
    "0",
    "-",
    "1",
    "12",
    ".5",
    "e",
    "E+",
    "e-9",
    "e999",
    "e308",
    "18446744073709551616",
    "true",
    "false",
    "null",
    "nul",
    " ",
    "\n",
    "\t",
    "\u{b}",
    "\u{1f}",
    "\u{7f}",
    "NaN",
    "plain text that is longer than eight bytes",
    "/",
    "'",
    "\u{feff}",
];

/// Returns random pieces of JSON, or a valid text in which some bytes were changed.
fn text(random: &mut Random) -> String {
    if random.below(2) == 0 {
        return (0..random.below(12))
            .map(|_| PIECES[random.below(PIECES.len())])
            .collect();
    }
    let mut text = String::new();
    valid(random, 4, &mut text);
    for _ in 0..random.below(3) {
        let at = random.below(text.len().max(1));
        if text.is_char_boundary(at) {
            match random.below(3) {
                0 => text.truncate(at),
                1 => text.insert_str(at, PIECES[random.below(PIECES.len())]),
                _ => drop(text.pop()),
            }
        }
    }
    text
}

fn valid(random: &mut Random, depth: usize, out: &mut String) {
    let blanks = ["", "", "", " ", "\n", " \t\r"];
    out.push_str(blanks[random.below(blanks.len())]);
    match random.below(if depth == 0 { 7 } else { 10 }) {
        0 => out.push_str("true"),
        1 => out.push_str("null"),
        2 => {
            let numbers = [
                "0",
                "-0",
                "12",
                "-7.25",
                "1e3",
                "1E-400",
                "1.7976931348623157e308",
                "9223372036854775808",
                "1e309",
            ];
            out.push_str(numbers[random.below(numbers.len())]);
        }
        3..=6 => string(random, out),
        kind => {
            let object = kind < 9;
            out.push(if object { '{' } else { '[' });
            for at in 0..random.below(4) {
                if at > 0 {
                    out.push(',');
                }
                if object {
                    string(random, out);
                    out.push_str(blanks[random.below(blanks.len())]);
                    out.push(':');
                }
                valid(random, depth - 1, out);
            }
            out.push(if object { '}' } else { ']' });
        }
    }
    out.push_str(blanks[random.below(blanks.len())]);
}

fn string(random: &mut Random, out: &mut String) {
    let parts = [
        "a",
        "b c",
        "\\n",
        "\\\"",
        "\\\\",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud800",
        "\\udc00",
        "é",
        "😀",
        "longer than a word",
    ];
    out.push('"');
    for _ in 0..random.below(4) {
        out.push_str(parts[random.below(parts.len())]);
    }
    out.push('"');
}

/// Splits the text at random, feeds the pieces to the automaton, and returns its verdict.
fn in_pieces(text: &str, random: &mut Random) -> Status {
    let mut automaton = Automaton::new();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(random.below(12).min(rest.len()));
        automaton.feed(piece);
        rest = tail;
    }
    automaton.finish()
}

/// Scans the whole text, and reads each value with a randomly chosen method of the scanner.
fn walk(scanner: &mut Scanner<'_>, random: &mut Random) -> Scan<()> {
    match (scanner.kind()?, random.below(3)) {
        (_, 0) => drop(scanner.skip()?),
        (_, 1) => drop(scanner.value()?),
        (Kind::Object, _) => {
            scanner.enter_object()?;
            while scanner.next_key()?.is_some() {
                walk(scanner, random)?;
            }
        }
        (Kind::Array, _) => {
            scanner.enter_array()?;
            while scanner.next_item()? {
                walk(scanner, random)?;
            }
        }
        (Kind::String, _) => drop(scanner.text()?),
        (Kind::Number, _) => drop(scanner.number()?),
        (Kind::Null, _) => scanner.null()?,
        (Kind::True | Kind::False, _) => drop(scanner.boolean()?),
    }
    Ok(())
}

fn scanned(text: &str, mut random: Option<&mut Random>) -> (Scan<()>, bool) {
    let mut scanner = Scanner::new(text, None);
    let result = match &mut random {
        Some(random) => walk(&mut scanner, random),
        None => scanner.skip().map(drop),
    };
    (
        result.and_then(|()| scanner.finish()),
        scanner.wide_integer(),
    )
}

/// Converts the automaton's verdict to the result that the scanner should return.
fn as_scan(verdict: Status, length: usize) -> Scan<()> {
    match verdict {
        Status::Complete => Ok(()),
        Status::Prefix => Err(ScanError {
            pos: length,
            problem: Problem::Syntax,
        }),
        Status::Broken { pos, problem } => Err(ScanError {
            pos: pos as usize,
            problem,
        }),
    }
}

#[test]
fn automaton_scanner_and_serde_json_agree() {
    let mut random = Random::new(2);
    let mut valid = 0;
    for round in 0..300_000 {
        let text = text(&mut random);
        let mut automaton = Automaton::new();
        automaton.feed(text.as_bytes());
        let verdict = automaton.finish();
        assert_eq!(
            in_pieces(&text, &mut random),
            verdict,
            "round {round}: {text:?}"
        );
        let expected = as_scan(verdict, text.len());
        let (result, wide) = scanned(&text, None);
        assert_eq!(result, expected, "round {round}, skipped: {text:?}");
        assert_eq!(
            scanned(&text, Some(&mut random)).0,
            expected,
            "round {round}, walked: {text:?}"
        );
        if verdict == Status::Complete {
            valid += 1;
            assert_eq!(wide, automaton.wide_integer(), "round {round}: {text:?}");
        }
        // Unlike the automaton and the scanner, serde_json rejects unpaired surrogates and integers that are too large
        // for a float.
        match serde_json::from_str::<Json>(&text) {
            Ok(_) => assert_eq!(verdict, Status::Complete, "round {round}: {text:?}"),
            Err(error) => {
                let lone = automaton.lone_surrogate() || error.to_string().contains("surrogate");
                let known = lone || error.to_string().contains("number out of range");
                assert!(
                    verdict != Status::Complete || known,
                    "round {round}: {text:?}: {error}"
                );
            }
        }
    }
    assert!(valid > 60_000, "{valid} valid texts");
}

#[test]
fn a_prefix_of_json_is_not_broken_and_a_broken_text_stays_broken() {
    let mut random = Random::new(3);
    for _ in 0..20_000 {
        let text = text(&mut random);
        let mut automaton = Automaton::new();
        let mut broken = None;
        for byte in text.as_bytes() {
            match (automaton.feed(&[*byte]), broken) {
                (status @ Status::Broken { .. }, None) => broken = Some(status),
                (status, Some(before)) => assert_eq!(status, before),
                _ => {}
            }
        }
        if check(text.as_bytes(), MAX_DEPTH) == Status::Complete {
            assert_eq!(broken, None, "{text:?}");
        }
    }
}

#[test]
fn strings_decode_as_serde_json_decodes_them_and_are_written_back() {
    let mut random = Random::new(4);
    for _ in 0..50_000 {
        let mut raw = String::new();
        string(&mut random, &mut raw);
        let inner = raw.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        let (text, lone) = Text::unescape(inner).into_whole();
        match serde_json::from_str::<String>(&raw) {
            Ok(expected) => {
                assert_eq!(text, expected);
                assert!(!lone);
            }
            Err(_) => assert!(lone, "{raw}"),
        }
        let mut automaton = Automaton::new();
        automaton.feed(raw.as_bytes());
        assert_eq!(automaton.lone_surrogate(), lone, "{raw}");
        let mut written = String::new();
        write_string(&mut written, &text);
        assert_eq!(written, serde_json::to_string(&text).unwrap());
    }
}

#[test]
fn compact_text_is_the_same_value() {
    let mut random = Random::new(5);
    for _ in 0..20_000 {
        let text = text(&mut random);
        if let Ok(value) = serde_json::from_str::<Json>(&text) {
            let compact = compact(&text);
            assert_eq!(serde_json::from_str::<Json>(&compact).unwrap(), value);
            assert_eq!(compact, streamweld_core::json::compact(&compact));
            assert!(compact.len() <= text.trim_ascii().len());
        }
    }
}
