use crate::json::scan::*;

#[test]
fn members_and_items() {
    let text = r#" {"a": 1, "\u0062": [true, "x\n", [], {}], "c": {"d": null}, "e": -1.5e2 } "#;
    let mut scanner = Scanner::new(text, None);
    let mut seen = Vec::new();
    scanner.enter_object().unwrap();
    while let Some(key) = scanner.next_key().unwrap() {
        seen.push(key.name().into_owned());
        if key.is("b") {
            scanner.enter_array().unwrap();
            assert!(scanner.next_item().unwrap());
            assert_eq!(scanner.kind(), Ok(Kind::True));
            assert!(scanner.boolean().unwrap());
            assert!(scanner.next_item().unwrap());
            assert_eq!(scanner.text().unwrap().body, "x\n");
            assert!(scanner.next_item().unwrap());
            assert_eq!(
                scanner.skip().unwrap(),
                Raw {
                    text: "[]",
                    kind: Kind::Array
                }
            );
            assert!(scanner.next_item().unwrap());
            assert_eq!(scanner.value().unwrap(), Value::Object("{}"));
            assert!(!scanner.next_item().unwrap());
        } else if key.is("e") {
            assert_eq!(scanner.number().unwrap().integral(), Some(-150));
        } else {
            seen.push(scanner.skip().unwrap().text.to_owned());
        }
    }
    scanner.finish().unwrap();
    assert_eq!(seen, ["a", "1", "b", "c", r#"{"d": null}"#, "e"]);
}

#[test]
fn empty_containers() {
    let mut scanner = Scanner::new("[{},[]]", None);
    scanner.enter_array().unwrap();
    assert!(scanner.next_item().unwrap());
    scanner.enter_object().unwrap();
    assert_eq!(scanner.next_key(), Ok(None));
    assert!(scanner.next_item().unwrap());
    scanner.enter_array().unwrap();
    assert!(!scanner.next_item().unwrap());
    assert!(!scanner.next_item().unwrap());
    assert_eq!(scanner.finish(), Ok(()));
}

#[test]
fn numbers() {
    let number = |raw| Number { raw };
    assert_eq!(number("1.0").integral(), Some(1));
    assert_eq!(number("-0").as_u64(), Some(0));
    assert_eq!(number("-0").as_i64(), Some(0));
    assert_eq!(number("1.5").integral(), None);
    assert_eq!(number("1e2").as_i64(), None);
    assert_eq!(number("9223372036854775808").integral(), None);
    assert_eq!(number("9223372036854775808.0").integral(), None);
    assert_eq!(number("18446744073709551615").as_u64(), Some(u64::MAX));
    assert!(number("12").is_integer() && !number("12e0").is_integer());
}

#[test]
fn errors_are_those_of_the_automaton() {
    for (text, pos, problem) in [
        ("{\"a\":1,}", 7, Problem::Syntax),
        ("[1e999]", 6, Problem::NumberTooBig),
        ("[[[]]]", 2, Problem::TooDeep),
        ("[1", 2, Problem::Syntax),
        ("", 0, Problem::Syntax),
        ("\"\\u12G4\"", 5, Problem::Syntax),
    ] {
        let mut scanner = Scanner::new(text, Some(2));
        assert_eq!(
            scanner.skip().unwrap_err(),
            ScanError { pos, problem },
            "{text}"
        );
    }
    let mut scanner = Scanner::new("{} {}", None);
    scanner.skip().unwrap();
    assert_eq!(scanner.finish().unwrap_err().pos, 3);
    let mut scanner = Scanner::new("[1,]", None);
    scanner.enter_array().unwrap();
    assert!(scanner.next_item().unwrap());
    scanner.skip().unwrap();
    assert_eq!(scanner.next_item().unwrap_err().pos, 3);
}

#[test]
fn the_wrong_kind_is_an_error_and_never_a_panic() {
    assert_eq!(Scanner::new("1", None).text().unwrap_err().pos, 0);
    assert!(Scanner::new("\"a\"", None).number().is_err());
    assert!(Scanner::new("1", None).enter_object().is_err());
    assert!(Scanner::new("1", None).boolean().is_err());
    assert!(Scanner::new("true", None).null().is_err());
}

#[test]
fn wide_integers_are_reported() {
    for (text, wide) in [
        ("[18446744073709551615]", false),
        ("[{\"a\":18446744073709551616}]", true),
        ("1e30", false),
    ] {
        let mut scanner = Scanner::new(text, None);
        scanner.skip().unwrap();
        assert_eq!(scanner.wide_integer(), wide, "{text}");
    }
}
