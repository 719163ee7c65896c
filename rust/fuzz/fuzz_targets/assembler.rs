//! Fuzzes the assembler with Chat payloads. Every three bytes of the input describe one tool-call delta.
//!
//! Checks that argument text of one call never becomes part of another call, and that the stream contains every emitted
//! call.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use streamweld_core::Dialect;
use streamweld_core::model::policy::{Base, Policy};
use streamweld_fuzz::{Case, case, decoder, lifecycle};

const NAMES: [&str; 4] = ["", "alpha", "beta", "gamma"];
const IDS: [&str; 4] = ["", "call_a", "call_b", "call_c"];

/// Builds the payload of one delta.
fn payload(op: &[u8]) -> Value {
    let [who, what, text] = [0, 1, 2].map(|at| op.get(at).copied().unwrap_or(0));
    let mut call = Map::new();
    match who & 7 {
        0..=3 => drop(call.insert("index".to_owned(), json!(who & 3))),
        4 => drop(call.insert("index".to_owned(), Value::Null)),
        5 => drop(call.insert("index".to_owned(), json!(-1))),
        6 => drop(call.insert("index".to_owned(), json!("1"))),
        _ => {}
    }
    if who & 8 != 0 {
        call.insert("id".to_owned(), json!(IDS[usize::from(who >> 4 & 3)]));
    }
    let mut function = Map::new();
    if what & 1 != 0 {
        function.insert("name".to_owned(), json!(NAMES[usize::from(what >> 1 & 3)]));
    }
    let pieces = [
        "",
        "{",
        "}",
        "{}",
        "{\"k\":",
        "\"v\"",
        "1",
        ",\"l\":2",
        "{\"k\":\"v\"}",
        "null",
        "[",
        "\\",
    ];
    if what & 8 != 0 {
        function.insert(
            "arguments".to_owned(),
            json!(pieces[usize::from(text) % pieces.len()]),
        );
    }
    call.insert("function".to_owned(), Value::Object(function));
    let mut choice = json!({"index": 0, "delta": {"tool_calls": [call]}});
    if what & 0xE0 == 0xE0 {
        choice["finish_reason"] = json!("tool_calls");
    }
    json!({"choices": [choice]})
}

/// Builds a conformant stream. Each call opens with an id and a name, and its arguments are interleaved with those of
/// the other calls. The number of the call is part of its arguments, so that misplaced text can be detected.
fn conformant(ops: &[u8]) -> (Vec<u8>, Vec<String>) {
    let count = usize::from(ops.first().copied().unwrap_or(0) % 4) + 1;
    let mut arguments: Vec<String> = (0..count)
        .map(|n| format!("{{\"call\":{n},\"text\":\""))
        .collect();
    let mut body = String::new();
    let mut send = |n: usize, id: Option<String>, text: &str| {
        let function = match &id {
            Some(_) => json!({"name": format!("f{n}"), "arguments": text}),
            None => json!({"arguments": text}),
        };
        let mut call = json!({"index": n, "function": function});
        if let Some(id) = id {
            call["id"] = json!(id);
            call["type"] = json!("function");
        }
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]});
        body.push_str(&format!("data: {chunk}\n\n"));
    };
    for (n, text) in arguments.iter().enumerate() {
        send(n, Some(format!("call_{n}")), text);
    }
    for op in ops.iter().skip(1) {
        let n = usize::from(*op) % count;
        let piece = format!(
            "{n}{}",
            ["", "x", "{", "\\\\", "\\\"", "é"][usize::from(*op >> 2) % 6]
        );
        arguments[n].push_str(&piece);
        send(n, None, &piece);
    }
    for (n, text) in arguments.iter_mut().enumerate() {
        text.push_str("\"}");
        send(n, None, "\"}");
    }
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n");
    (body.into_bytes(), arguments)
}

fuzz_target!(|data: &[u8]| {
    let given = case(data);
    let mut body = Vec::new();
    for op in given.body.chunks(3) {
        body.extend_from_slice(format!("data: {}\n\n", payload(op)).as_bytes());
    }
    if given.options & 32 != 0 {
        body.extend_from_slice(b"data: [DONE]\n\n");
    }
    decoder(
        &Case {
            body: &body,
            ..given
        },
        Some(Dialect::Chat),
    );

    let (body, arguments) = conformant(given.body);
    let mut config = given.config();
    config.policy = Policy::new(Base::Strict);
    config.limits = Default::default();
    let (seen, fault) = lifecycle(&body, Some(Dialect::Chat), &config, given.end());
    assert!(fault.is_none(), "a conformant stream is refused: {fault:?}");
    let calls: Vec<(String, String, String)> = arguments
        .into_iter()
        .enumerate()
        .map(|(n, text)| (format!("call_{n}"), format!("f{n}"), text))
        .collect();
    assert_eq!(seen.calls, calls, "calls of a conformant stream");
});
