//! Runs the framer on `tests/vectors/sse`: in the given chunks, in one read, and byte by byte.

use crate::vectors;

use serde_json::{Value, json};
use streamweld_core::model::limits::Limits;
use streamweld_core::sse::Framer;
use streamweld_core::sse::Item;
use streamweld_core::sse::decode_utf8;
use vectors::{bytes_of, tests_in};

fn text(bytes: &[u8]) -> String {
    decode_utf8(bytes).0.into_owned()
}

struct Run {
    framer: Framer,
    events: Vec<Value>,
    after_chunk: Vec<Value>,
}

fn run<'c>(chunks: impl Iterator<Item = &'c [u8]>, last_event_id: Option<&str>) -> Run {
    let mut framer = Framer::new(&Limits::default(), false);
    if let Some(id) = last_event_id {
        framer.set_last_event_id(id.as_bytes());
    }
    let mut run = Run {
        framer,
        events: Vec::new(),
        after_chunk: Vec::new(),
    };
    for chunk in chunks {
        let events = &mut run.events;
        let mut on = |item: Item<'_>| {
            let Item::Frame(frame) = item else {
                panic!("a stray payload")
            };
            assert_eq!(frame.ordinal, events.len() as u64);
            let name = if frame.event.is_empty() {
                b"message"
            } else {
                frame.event
            };
            events.push(json!([
                text(name),
                text(frame.data),
                text(frame.id),
                frame.retry
            ]));
            Ok(())
        };
        run.framer.feed(chunk, &mut on).unwrap();
        run.after_chunk.push(json!(run.events.len()));
    }
    run
}

fn without(events: &[Value], fields: &[Value]) -> Vec<Value> {
    let names = ["event", "data", "id", "retry"];
    let keep = |at: &usize| !fields.contains(&json!(names[*at]));
    events
        .iter()
        .map(|event| (0..4).filter(keep).map(|at| event[at].clone()).collect())
        .collect()
}

fn check(mut run: Run, test: &Value, how: &str) {
    let name = format!("{} ({how})", test["name"]);
    let none = Vec::new();
    let open = test["not_compared"].as_array().unwrap_or(&none);
    let expected = test["events"].as_array().unwrap();
    assert_eq!(
        without(&run.events, open),
        without(expected, open),
        "{name}"
    );
    let id = text(run.framer.last_event_id());
    assert_eq!(json!(id), test["final"]["last_event_id"], "{name}");
    if !open.contains(&json!("retry")) {
        let time = run.framer.reconnection_time();
        assert_eq!(json!(time), test["final"]["reconnection_time"], "{name}");
    }
    let pending = run.framer.finish(&[], &mut |_: Item<'_>| Ok(()));
    let pending = pending.unwrap();
    let data = pending.data.map(text);
    let unterminated = test["unterminated"].as_array().map(|events| &events[0][1]);
    if let Some(unterminated) = unterminated {
        assert_eq!(&json!(data), unterminated, "{name}");
        let event = if pending.event.is_empty() {
            b"message"
        } else {
            pending.event
        };
        assert_eq!(
            text(event),
            test["unterminated"][0][0].as_str().unwrap(),
            "{name}"
        );
        assert!(pending.open, "{name}");
    }
}

#[test]
fn every_vector_in_every_chunking() {
    let mut count = 0;
    for test in tests_in("sse") {
        let chunks: Vec<Vec<u8>> = test["chunks"]
            .as_array()
            .unwrap()
            .iter()
            .map(bytes_of)
            .collect();
        let body: Vec<u8> = chunks.concat();
        let id = test["last_event_id"].as_str();
        let given = run(chunks.iter().map(Vec::as_slice), id);
        let expected = test["events_after_chunk"].as_array().unwrap();
        assert_eq!(&given.after_chunk, expected, "{}", test["name"]);
        check(given, &test, "as given");
        check(run([body.as_slice()].into_iter(), id), &test, "one read");
        check(run(body.chunks(1), id), &test, "byte by byte");
        // Split the body in two at each of its first 600 positions.
        for cut in 0..body.len().min(600) {
            let (head, tail) = body.split_at(cut);
            check(run([head, tail].into_iter(), id), &test, "cut");
        }
        count += 1;
    }
    println!("{count} vectors");
    assert!(count >= 224);
}
