use crate::json::automaton::*;

fn verdict(text: &[u8]) -> Status {
    let whole = check(text, MAX_DEPTH);
    let mut bytewise = Automaton::new();
    for byte in text {
        bytewise.feed(&[*byte]);
    }
    assert_eq!(
        bytewise.finish(),
        whole,
        "{:?}",
        String::from_utf8_lossy(text)
    );
    whole
}

fn broken(pos: u64) -> Status {
    Status::Broken {
        pos,
        problem: Problem::Syntax,
    }
}

#[test]
fn whole_values() {
    for text in [
        "{}",
        "[]",
        "\"\"",
        "0",
        "-0",
        "1.5e+3",
        "true",
        "false",
        "null",
        " { \"a\" : [ 1 , { } , [ ] ] } \r\n\t",
        "[1,2,3]",
        "{\"a\":{\"b\":\"\\u00e9\\n\"},\"a\":null}",
        "1E5",
        "10",
        "\"\\ud800\"",
        "\"\u{2028}\u{7f}é😀\"",
    ] {
        assert_eq!(verdict(text.as_bytes()), Status::Complete, "{text}");
    }
}

#[test]
fn prefixes() {
    for text in [
        "",
        " ",
        "{",
        "{\"",
        "{\"a",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "[",
        "[1",
        "[1,",
        "\"a",
        "\"\\",
        "\"\\u",
        "\"\\u12",
        "t",
        "tru",
        "-",
        "1.",
        "1e",
        "1e+",
        "[1e999",
        "nul",
    ] {
        assert_eq!(verdict(text.as_bytes()), Status::Prefix, "{text}");
    }
}

#[test]
fn errors_are_at_the_offending_byte() {
    for (text, pos) in [
        ("x", 0),
        ("{,", 1),
        ("{\"a\" 1}", 5),
        ("[1,]", 3),
        ("{\"a\":1,}", 7),
        ("[1 2]", 3),
        ("01", 1),
        ("-a", 1),
        ("1.e", 2),
        ("1e+-", 3),
        ("+1", 0),
        (".5", 0),
        ("\"\\x\"", 2),
        ("\"\\u12G4\"", 5),
        ("\"\t\"", 1),
        ("nulx", 3),
        ("{} {", 3),
        ("{}x", 2),
        ("[}", 1),
        ("{]", 1),
        ("[1}", 2),
        ("{\"a\":1]", 6),
        ("{'a':1}", 1),
        ("NaN", 0),
        ("Infinity", 0),
        ("[NaN]", 1),
        ("\u{feff}{}", 0),
        ("\u{a0}1", 0),
        ("1\u{b}", 1),
        ("//", 0),
        ("truefalse", 4),
        ("\"a\"b", 3),
        ("{\"a\":,}", 5),
        ("[,1]", 1),
        ("--1", 1),
        ("1 2", 2),
        ("0x1", 1),
        ("\"\u{1f}", 1),
        ("{1:2}", 1),
    ] {
        assert_eq!(verdict(text.as_bytes()), broken(pos), "{text}");
    }
}

#[test]
fn depth_is_capped() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let at_cap = format!("{}1{}", open.repeat(128), close.repeat(128));
        assert_eq!(verdict(at_cap.as_bytes()), Status::Complete);
        let over = open.repeat(129);
        let pos = (open.len() * 128) as u64;
        assert_eq!(
            verdict(over.as_bytes()),
            Status::Broken {
                pos,
                problem: Problem::TooDeep
            }
        );
    }
    assert_eq!(check(b"[[[]]]", 3), Status::Complete);
    assert_eq!(
        check(b"[[[]]]", 2),
        Status::Broken {
            pos: 2,
            problem: Problem::TooDeep
        }
    );
    assert_eq!(
        check(&b"[".repeat(100_000), 9999),
        Status::Broken {
            pos: 128,
            problem: Problem::TooDeep
        }
    );
}

#[test]
fn numbers_that_are_infinite_break_where_they_end() {
    let too_big = |pos| Status::Broken {
        pos,
        problem: Problem::NumberTooBig,
    };
    assert_eq!(verdict(b"1e999"), too_big(5));
    assert_eq!(verdict(b"[1e999]"), too_big(6));
    assert_eq!(verdict(b"{\"a\":-1e999 }"), too_big(11));
    assert_eq!(verdict(b"[1e-999]"), Status::Complete);
    assert_eq!(verdict("9".repeat(5000).as_bytes()), Status::Complete);
}

#[test]
fn queries_while_the_text_arrives() {
    let mut automaton = Automaton::new();
    assert!(automaton.is_blank());
    automaton.feed(b" ");
    assert!(automaton.is_blank());
    assert_eq!(automaton.root(), None);
    automaton.feed(b"{\"a");
    assert!(automaton.in_string() && !automaton.is_blank());
    assert_eq!(
        (automaton.root(), automaton.depth(), automaton.pos()),
        (Some(Root::Object), 1, 4)
    );
    let mut trial = automaton;
    assert!(matches!(trial.feed(b"\n"), Status::Broken { pos: 4, .. }));
    assert!(matches!(
        trial.feed(b"\":1}"),
        Status::Broken { pos: 4, .. }
    ));
    assert_eq!(automaton.feed(b"\":1}"), Status::Complete);
    assert!(automaton.is_complete_object());
    for (text, wide) in [
        ("18446744073709551615", false),
        ("18446744073709551616", true),
        ("[1e30]", false),
    ] {
        let mut automaton = Automaton::new();
        automaton.feed(text.as_bytes());
        assert_eq!(automaton.wide_integer(), wide, "{text}");
    }
    let lone = [
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x\udc00""#,
        r#""\ud800\n""#,
        r#""\ud800\ud800\udc00""#,
    ];
    for text in lone {
        let mut automaton = Automaton::new();
        automaton.feed(text.as_bytes());
        assert!(automaton.lone_surrogate(), "{text}");
    }
    let mut automaton = Automaton::new();
    automaton.feed(br#"["\ud83d\ude00","\u00e9"]"#);
    assert!(!automaton.lone_surrogate());
}

#[test]
fn a_breaking_piece_is_rejected_by_offer() {
    let mut automaton = Automaton::new();
    assert_eq!(automaton.offer(b"{\"a\":\"x"), Status::Prefix);
    assert_eq!(automaton.offer(b"yz"), Status::Prefix);
    assert_eq!(
        automaton.offer(b"\"x"),
        Status::Broken {
            pos: 10,
            problem: Problem::Syntax
        }
    );
    assert_eq!(automaton.pos(), 9);
    assert_eq!(automaton.offer(b"\"}"), Status::Complete);
    assert_eq!(
        automaton.offer(b"{"),
        Status::Broken {
            pos: 11,
            problem: Problem::Syntax
        }
    );
    assert!(automaton.is_complete_object());
}
