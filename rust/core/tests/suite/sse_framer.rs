//! Checks the framer against a simple model: payloads, offsets, limits and unfinished input.

use crate::model;
use crate::random;

use model::{Model, Seen};
use random::Random;
use streamweld_core::model::fault::Extra;
use streamweld_core::model::fault::Fault;
use streamweld_core::model::limits::Limits;
use streamweld_core::sse::Framer;
use streamweld_core::sse::Item;
use streamweld_core::sse::Pending;

fn of_fault(fault: &Fault) -> Seen {
    let Extra::Limit {
        name,
        limit,
        observed,
    } = fault.extra
    else {
        panic!("{fault:?}")
    };
    Seen::Fault {
        name,
        limit,
        observed,
        offset: fault.byte_offset,
        ordinal: fault.event_ordinal,
    }
}

fn of_pending(pending: &Pending<'_>) -> Seen {
    Seen::End {
        open: pending.open,
        event: pending.event.to_vec(),
        data: pending
            .data
            .map(|data| (data.to_vec(), pending.data_offset)),
        stray: pending
            .stray
            .map(|stray| (stray.to_vec(), pending.stray_offset)),
        ordinal: pending.ordinal,
    }
}

fn run<'c>(
    chunks: impl IntoIterator<Item = &'c [u8]>,
    limits: &Limits,
    keep_stray: bool,
) -> Vec<Seen> {
    run_to_end(chunks, &[], limits, keep_stray)
}

/// Feeds the chunks, and ends the input with the bytes in `last`.
fn run_to_end<'c>(
    chunks: impl IntoIterator<Item = &'c [u8]>,
    last: &[u8],
    limits: &Limits,
    keep_stray: bool,
) -> Vec<Seen> {
    let mut framer = Framer::new(limits, keep_stray);
    let mut seen = Vec::new();
    let mut fed = 0;
    let on_item = |item: Item<'_>, seen: &mut Vec<Seen>| {
        seen.push(match item {
            Item::Frame(f) => Seen::Frame {
                event: f.event.to_vec(),
                data: f.data.to_vec(),
                id: f.id.to_vec(),
                retry: f.retry,
                offset: f.offset,
                ordinal: f.ordinal,
            },
            Item::Stray(s) => Seen::Stray {
                data: s.data.to_vec(),
                offset: s.offset,
                ordinal: s.ordinal,
            },
        });
    };
    for chunk in chunks {
        let result = framer.feed(chunk, &mut |item: Item<'_>| {
            on_item(item, &mut seen);
            Ok(())
        });
        if let Err(fault) = result {
            seen.push(of_fault(&fault));
            return seen;
        }
        fed += chunk.len() as u64;
        assert_eq!(framer.offset(), fed);
    }
    let pending = framer.finish(last, &mut |item: Item<'_>| {
        on_item(item, &mut seen);
        Ok(())
    });
    seen.push(match pending {
        Ok(pending) => of_pending(&pending),
        Err(fault) => of_fault(&fault),
    });
    seen
}

const PIECES: &[&str] = &[
    "data: ",
    "data:",
    "data",
    "event: ",
    "event:x",
    "id: ",
    "id",
    "retry: ",
    "retry:12",
    "\n",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    ":",
    ": c",
    " ",
    "\t",
    "  ",
    "{",
    "}",
    "[",
    "]",
    "<",
    "{\"a\":1}",
    "[DONE]",
    "x",
    "da",
    "dat",
    "ev",
    "i",
    "re",
    "\0",
    "\u{e9}",
    "\u{2028}",
    "\u{feff}",
    "abcdefgh",
    "7",
    "99999999999999999999",
];

fn body(random: &mut Random) -> Vec<u8> {
    let mut body = Vec::new();
    if random.below(8) == 0 {
        body.extend_from_slice(&b"\xEF\xBB\xBF"[..random.below(4)]);
    }
    for _ in 0..random.below(40) {
        body.extend_from_slice(PIECES[random.below(PIECES.len())].as_bytes());
    }
    body
}

fn pieces<'b>(body: &'b [u8], random: &mut Random) -> Vec<&'b [u8]> {
    let mut rest = body;
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(random.below(8).min(rest.len()));
        chunks.push(chunk);
        rest = tail;
    }
    chunks
}

#[test]
fn the_framer_agrees_with_the_model_in_any_chunking() {
    let mut random = Random::new(1);
    let mut faults = 0;
    for round in 0..60_000 {
        let body = body(&mut random);
        let keep_stray = random.below(4) > 0;
        let mut limits = Limits::default();
        if random.below(2) == 0 {
            limits.max_event_bytes = Some(random.below(24) as u64);
            limits.max_field_bytes = Some(random.below(6) as u64);
        }
        let expected = Model::run(&body, &limits, keep_stray);
        faults += usize::from(matches!(expected.last(), Some(Seen::Fault { .. })));
        let shown = String::from_utf8_lossy(&body).into_owned();
        let whole = run([body.as_slice()], &limits, keep_stray);
        assert_eq!(
            whole, expected,
            "round {round}, whole: {shown:?} {limits:?}"
        );
        let single = run(body.chunks(1), &limits, keep_stray);
        assert_eq!(
            single, expected,
            "round {round}, byte by byte: {shown:?} {limits:?}"
        );
        let cut = run(pieces(&body, &mut random), &limits, keep_stray);
        assert_eq!(cut, expected, "round {round}, cut: {shown:?} {limits:?}");
    }
    assert!(faults > 5_000, "{faults} faults");
}

fn strays(body: &str) -> Vec<(String, bool)> {
    let of = |item: &Seen| match item {
        Seen::Frame { data, .. } => Some((String::from_utf8(data.clone()).unwrap(), false)),
        Seen::Stray { data, .. } => Some((String::from_utf8(data.clone()).unwrap(), true)),
        _ => None,
    };
    run([body.as_bytes()], &Limits::default(), true)
        .iter()
        .filter_map(of)
        .collect()
}

fn stray(text: &str) -> (String, bool) {
    (text.to_owned(), true)
}

fn frame(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

#[test]
fn stray_payloads() {
    // An empty data line and the following payload without a `data:` prefix form one payload.
    assert_eq!(
        strays("data:\n {\"a\":1}\n\ndata: x\n\n"),
        [stray(" {\"a\":1}"), frame("x")]
    );
    assert_eq!(
        strays("data:\n{\"a\":1}\n{\"b\":2}\n\n"),
        [stray("{\"a\":1}"), stray("{\"b\":2}")]
    );
    assert_eq!(strays("{}\ndata:\n\ndata:\n\n"), [stray("{}"), frame("")]);
    assert_eq!(strays("data\ndata\n{}\n\n"), [frame("\n"), stray("{}")]);
    // A stray payload next to nonempty data is separate, and comes in the order in which the two began.
    assert_eq!(strays("{\ndata: x\n}\n\n"), [stray("{\n}"), frame("x")]);
    assert_eq!(strays("data: x\n[1]\n\n"), [frame("x"), stray("[1]")]);
    // One-line documents are emitted immediately.
    assert_eq!(
        strays("{\"a\":1}\n{\"b\":2}\n[DONE]\n"),
        [stray("{\"a\":1}"), stray("{\"b\":2}"), stray("[DONE]")]
    );
    assert_eq!(strays("data: x\n\n[DONE]\n"), [frame("x"), stray("[DONE]")]);
    assert_eq!(strays("{\"b\":2} \n"), []);
    // A document of several lines is emitted at the blank line, without comments and fields.
    assert_eq!(
        strays("{\n \"a\": 1\n: c\nretry: 5\n}\n\n"),
        [stray("{\n \"a\": 1\n}")]
    );
    assert_eq!(strays("<html>\n  <body>\n\n"), [stray("<html>\n  <body>")]);
    assert_eq!(strays("noise\nnoise\n\nda: {}\n\n"), []);
    assert_eq!(run([&b"{}\n\n"[..]], &Limits::default(), false).len(), 1);
}

#[test]
fn limits_are_exact_to_the_byte() {
    let limits = Limits {
        max_event_bytes: Some(100),
        max_field_bytes: Some(10),
        ..Limits::OFF
    };
    let outcome = |body: String| {
        let seen = run([body.as_bytes()], &limits, true);
        assert_eq!(run(body.as_bytes().chunks(1), &limits, true), seen);
        seen.last().cloned().unwrap()
    };
    let event_fault = |offset, ordinal| Seen::Fault {
        name: "max_event_bytes",
        limit: 100,
        observed: 101,
        offset,
        ordinal,
    };
    assert!(matches!(
        outcome(format!("data: {}\n\n", "x".repeat(99))),
        Seen::End { .. }
    ));
    assert!(matches!(
        outcome(format!("data: {}", "x".repeat(100))),
        Seen::End { .. }
    ));
    assert_eq!(
        outcome(format!(":c\n\ndata: {}\n", "x".repeat(100))),
        event_fault(4, 0)
    );
    assert_eq!(
        outcome(format!("data: {}", "x".repeat(101))),
        event_fault(0, 0)
    );
    assert_eq!(
        outcome(format!(
            "data: a\n\n:c\nzz\nevent: e\n{}",
            "data\n".repeat(101)
        )),
        event_fault(15, 1)
    );
    assert_eq!(
        outcome(format!("data\n\n{{{}", "\n".to_owned() + &"x".repeat(99))),
        event_fault(6, 1)
    );
    let field_fault = Seen::Fault {
        name: "max_field_bytes",
        limit: 10,
        observed: 11,
        offset: 0,
        ordinal: 0,
    };
    assert!(matches!(
        outcome("id: 1234567890\n\n".to_owned()),
        Seen::End { .. }
    ));
    assert_eq!(outcome("id: 12345678901".to_owned()), field_fault);
    assert_eq!(outcome("event: 12345678901\n".to_owned()), field_fault);
    // Discarded lines do not count toward the limit.
    for body in [":", "unknown: ", "retry: ", "datax: "] {
        assert!(matches!(
            outcome(body.to_owned() + &"9".repeat(1000)),
            Seen::End { .. }
        ));
    }
}

#[test]
fn the_end_inside_a_character() {
    let mid = |body: &[u8]| {
        let mut framer = Framer::new(&Limits::default(), false);
        framer.feed(b"data: ", &mut |_: Item<'_>| Ok(())).unwrap();
        for byte in body {
            framer.feed(&[*byte], &mut |_: Item<'_>| Ok(())).unwrap();
        }
        let pending = framer.finish(&[], &mut |_: Item<'_>| Ok(()));
        pending.unwrap().mid_utf8
    };
    for body in [
        &b"\xE2\x82"[..],
        b"\xE2",
        b"\xF0\x9F\x98",
        b"x\xC3",
        b"\xE2\x82\xAC\xE2",
    ] {
        assert!(mid(body), "{body:?}");
    }
    for body in [
        &b""[..],
        b"\xE2\x82\xAC",
        b"\xF0\x9F\x98\x80",
        b"\xE2\x82\n",
        b"\x80\x80",
        b"\xC0",
        b"\xED\xA0",
        b"\n\n: \xE2",
        b"\n\nunknown\xE2",
    ] {
        assert!(!mid(body), "{body:?}");
    }
}

#[test]
fn a_fault_of_the_caller_ends_the_read() {
    let mut framer = Framer::new(&Limits::default(), false);
    let mut count = 0;
    let result = framer.feed(b"data: a\n\ndata: b\n\n", &mut |_: Item<'_>| {
        count += 1;
        Err(Fault::chunk(7))
    });
    assert_eq!(result, Err(Fault::chunk(7)));
    assert_eq!(count, 1);
}

#[test]
fn one_long_line_in_small_reads_takes_linear_time() {
    let mut framer = Framer::new(&Limits::default(), true);
    let mut frames = 0;
    let mut on = |item: Item<'_>| {
        let Item::Frame(frame) = item else { panic!() };
        assert_eq!(frame.data.len(), 8 * 1024 * 1024);
        frames += 1;
        Ok(())
    };
    framer.feed(b"data: ", &mut on).unwrap();
    for _ in 0..8 * 1024 * 1024 / 64 {
        framer.feed(&[b'x'; 64], &mut on).unwrap();
    }
    framer.feed(b"\n\n", &mut on).unwrap();
    assert_eq!(frames, 1);
}

/// The last bytes are parsed in place, with the same result as if they were fed.
#[test]
fn the_last_bytes_may_be_read_in_place() {
    for body in [
        "data: {\"a\":1",
        "data:x\ndata: y",
        "event: e\ndata: {\"a\"",
        "{\n\"x\":1,\n\"y",
        "{\r\n\"x\":1,\r\n\"y",
        "{\r1,\rdata",
        "[1,\n{\"a\":1}\n: c\n{\"b",
        "data: x\n{\"a\":1}\n{\"b\":2",
        "{\"a\":1}\n{\"b\":2",
        "{1\nid: 2\n3\nda",
        "{1\n\n  {2\n ",
        "   ",
        "  x",
        "  {x",
        "da",
        "data",
        "data:",
        "id: 1",
        "retry: 5",
        ": c",
        "x: y",
        "\u{feff}data: \u{20ac}",
    ] {
        let body = body.as_bytes();
        for keep_stray in [true, false] {
            let fed = run([body], &Limits::default(), keep_stray);
            for at in 0..=body.len() {
                let (head, last) = body.split_at(at);
                let seen = run_to_end([head], last, &Limits::default(), keep_stray);
                assert_eq!(seen, fed, "{:?} {at}", String::from_utf8_lossy(body));
            }
        }
    }
}
