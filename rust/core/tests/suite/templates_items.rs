//! Checks that the templates for Responses and Messages streams change nothing: every stream must produce the same
//! events with and without them, regardless of how the stream is split.
//!
//! The streams are all vectors with each delta repeated three times, and many deterministic streams. The latter repeat
//! a few shapes with different strings, numbers and event names, between events that change the meaning of a delta, and
//! some of their events are corrupted.

// Clippy allows panics only in functions marked as tests, not in their helpers.

use crate::comparable;

use std::fmt::Write as _;

use comparable::{Rng, read};
use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::model::policy::Base;
use streamweld_core::model::policy::Policy;

fn check(dialect: Dialect, body: &[u8], config: &Config, rng: &mut Rng) {
    let plain = read(dialect, body, config, false, &[]);
    let text = String::from_utf8_lossy(body);
    assert_eq!(plain, read(dialect, body, config, true, &[]), "{text}");
    let mut cuts: Vec<usize> = (0..rng.below(6))
        .map(|_| rng.below(body.len() + 1))
        .collect();
    cuts.sort_unstable();
    let cut = read(dialect, body, config, true, &cuts);
    assert_eq!(plain, cut, "{cuts:?} {text}");
}

fn configs() -> Vec<Config> {
    let bases = [Base::Salvage, Base::Standard, Base::Strict];
    let mut configs: Vec<Config> = bases
        .into_iter()
        .map(|base| Config {
            policy: Policy::new(base),
            ..Config::default()
        })
        .collect();
    let mut small = configs[0].clone();
    small.limits.max_tool_index = Some(2);
    small.limits.max_text_bytes = Some(60);
    small.limits.max_arguments_bytes = Some(40);
    small.limits.max_events = Some(20);
    configs.push(small);
    configs
}

#[test]
fn vectors_with_every_delta_three_times() {
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let mut count = 0;
    for dialect in [Dialect::Responses, Dialect::Anthropic] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/");
        for file in std::fs::read_dir(format!("{root}{}", dialect.name())).unwrap() {
            let file: serde_json::Value =
                serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
            for test in file["tests"].as_array().unwrap() {
                let pieces = test["chunks"].as_array().unwrap().iter();
                let Some(pieces) = pieces
                    .map(serde_json::Value::as_str)
                    .collect::<Option<Vec<_>>>()
                else {
                    continue;
                };
                let body = pieces.concat();
                let mut more = String::new();
                for block in body.split_inclusive("\n\n") {
                    let times = if block.contains("delta") { 3 } else { 1 };
                    more.push_str(&block.repeat(times));
                }
                for config in configs() {
                    check(dialect, body.as_bytes(), &config, &mut rng);
                    check(dialect, more.as_bytes(), &config, &mut rng);
                }
                count += 1;
            }
        }
    }
    assert!(count > 100, "{count} vectors");
}

const STRINGS: &[&str] = &[
    "",
    " the",
    "a\\\"b",
    "\\u00e9",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\ude00",
    "a\\ud83d",
    "\\ude00b",
    "größer",
    "{\\\"a\\\":1}",
    "null",
    "\\n",
    "{",
    "}",
    "\\\\",
    "x\u{2028}y",
    "{\\\"a\\\":",
    "1}",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "12",
    "01",
    "-1",
    "1.0",
    "1e2",
    "9999999999",
    "null",
    "\"1\"",
];
/// `S` stands for any string, `N` for any number, `Q` for the event's sequence number, and `B` for spaces.
const MESSAGES: &[&str] = &[
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"S"}B}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"S"}B}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"S"}B}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"S"}B}"#,
    r#"{"type":"content_block_delta","index":N,"delta":{"type":"thinking_delta","thinking":"S"}}"#,
    r#"{"type":"content_block_delta","index":N,"delta":{"type":"input_json_delta","partial_json":"S"}B}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"S","x":N}}"#,
    r#"{"type":"content_block_delta","index":0,"index":0,"delta":{"type":"text_delta","text":"S"}}"#,
    r#"{"index":0,"type":"content_block_delta","delta":{"text":"S","type":"text_delta"}}"#,
    r#"{"type":"content_block_start","index":N,"content_block":{"type":"text","text":"S"}}"#,
    r#"{"type":"content_block_start","index":N,"content_block":{"type":"tool_use","id":"toolu_N","name":"f","input":{}}}"#,
    r#"{"type":"content_block_stop","index":N}"#,
    r#"{"type":"message_start","message":{"id":"msg_N","content":[{"type":"text","text":"S"}]}}"#,
    r#"{"type":"ping"}"#,
];
const RESPONSES: &[&str] = &[
    r#"{"type":"response.output_text.delta","content_index":0,"delta":"S","item_id":"msg_1","logprobs":[],"obfuscation":"S","output_index":0,"sequence_number":Q}"#,
    r#"{"type":"response.output_text.delta","content_index":0,"delta":"S","item_id":"msg_1","logprobs":[],"obfuscation":"S","output_index":0,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_1","obfuscation":"S","output_index":1,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_1","obfuscation":"S","output_index":1,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.delta","sequence_number":Q,"item_id":"fc_2","output_index":2,"delta":"S"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_N","output_index":N,"delta":"S"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":3,"summary_index":N,"delta":"S","sequence_number":Q}"#,
    r#"{"type":"response.output_text.delta","output_index":N,"content_index":N,"delta":"S","logprobs":[{"token":"S"}],"extra":N}"#,
    r#"{"type":"response.output_text.delta","delta":"S","item_id":"msg_1","item_id":"msg_1","output_index":0}"#,
    r#"{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":1,"delta":"S","sequence_number":Q}"#,
    r#"{"type":"response.mcp_call_arguments.delta","item_id":"mcp_1","output_index":4,"delta":"S"}"#,
    r#"{"type":"response.code_interpreter_call_code.delta","delta":"S","item_id":"ci_1","output_index":1,"sequence_number":Q}"#,
    r#"{"type":"response.code_interpreter_call_code.delta","delta":"S","item_id":"ci_N","output_index":N}"#,
    r#"{"type":"response.output_item.added","output_index":N,"item":{"id":"ci_N","type":"code_interpreter_call","container_id":"c","code":""}}"#,
    r#"{"type":"response.output_item.added","output_index":N,"item":{"id":"msg_N","type":"message","role":"assistant","phase":"S","content":[]}}"#,
    r#"{"type":"response.output_item.added","output_index":N,"item":{"id":"fc_N","type":"function_call","call_id":"call_N","name":"f","arguments":""}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"S"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","arguments":""}}"#,
    r#"{"type":"response.function_call_arguments.done","output_index":1,"item_id":"fc_1","arguments":"S"}"#,
    r#"{"type":"response.content_part.added","output_index":0,"item_id":"msg_1","content_index":0,"part":{"type":"output_text","text":"S"}}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":0,"content_index":0,"text":"S"}"#,
    r#"{"type":"response.output_item.done","output_index":N,"item":{"id":"fc_N","type":"function_call","call_id":"call_N","name":"f","arguments":"S"}}"#,
];
const DAMAGE: &[u8] = b"\"\\{}[]:,0x\x00\xff\n ";

fn frame(rng: &mut Rng, shape: &str, number: &mut usize) -> Vec<u8> {
    let ends = if rng.below(10) == 0 { "\r\n" } else { "\n" };
    let name = shape.split('"').nth(3).unwrap();
    let mut out = match rng.below(16) {
        0..8 => format!("event: {name}{ends}"),
        8 => format!("event:{name}{ends}"),
        9 => format!("event: message{ends}"),
        10 if rng.below(4) == 0 => format!("event: error{ends}"),
        11 => format!(": x{ends}"),
        _ => String::new(),
    };
    out.push_str("data: ");
    let mut rest = shape;
    while let Some(at) = rest.find(['S', 'N', 'Q', 'B']) {
        let (before, hole) = rest.split_at(at);
        out.push_str(before);
        match &hole[..1] {
            "S" => out.push_str(rng.pick(STRINGS)),
            "N" if rng.below(8) == 0 => out.push_str(rng.pick(NUMBERS)),
            "N" => out.push_str(rng.pick(&["0", "1", "2"])),
            "B" => out.push_str(&"        "[rng.below(8)..]),
            _ => {
                *number += usize::from(rng.below(12) != 0);
                write!(out, "{number}").unwrap();
            }
        }
        rest = &hole[1..];
    }
    out.push_str(rest);
    let mut bytes = out.into_bytes();
    if rng.below(20) == 0 {
        let at = rng.below(bytes.len());
        bytes[at] = rng.pick(DAMAGE);
    }
    bytes.extend(ends.as_bytes());
    bytes.extend(ends.as_bytes());
    bytes
}

#[test]
fn shapes_that_repeat() {
    let mut rng = Rng(0x2545_F491_4F6C_DD1D);
    let configs = configs();
    for round in 0..6_000 {
        let (dialect, shapes) = if round % 2 == 0 {
            (Dialect::Anthropic, MESSAGES)
        } else {
            (Dialect::Responses, RESPONSES)
        };
        // Mostly use one or two shapes, with an occasional other shape or replayed event.
        let usual = [rng.pick(shapes), rng.pick(shapes)];
        let (mut body, mut number, mut last) = (Vec::new(), 0, Vec::new());
        for _ in 0..2 + rng.below(24) {
            let shape = if rng.below(4) == 0 {
                rng.pick(shapes)
            } else {
                rng.pick(&usual)
            };
            if rng.below(16) != 0 {
                last = frame(&mut rng, shape, &mut number);
            }
            body.extend(&last);
        }
        check(dialect, &body, &configs[rng.below(configs.len())], &mut rng);
    }
}

/// Sends deltas, any other event, and the same deltas again, often enough for templates to be learned.
#[test]
fn whatever_comes_between() {
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let configs = configs();
    let block = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#;
    let call = r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"c","name":"f","arguments":""}}"#;
    for (dialect, shapes, opening) in [
        (Dialect::Anthropic, MESSAGES, block),
        (Dialect::Responses, RESPONSES, call),
    ] {
        let deltas = shapes.iter().filter(|shape| shape.contains("delta\""));
        for (delta, other) in deltas.flat_map(|delta| shapes.iter().map(move |it| (delta, it))) {
            for arguments in ["", "{\\\"a\\\":", "{\\\"a\\\":1}", "{\\\"a\\\":[1,2", "1"] {
                let mut body = String::new();
                let mut count = 0;
                let mut put = |shape: &str, text: &str| {
                    let number = count.to_string();
                    count += 1;
                    let data = shape.replace('Q', &number).replace(['N', 'B'], "");
                    let data = data.replace("\":,", "\":1,").replace("\":}", "\":1}");
                    writeln!(body, "data: {}\n", data.replace('S', text)).unwrap();
                };
                put(opening, "");
                for text in ["{\\\"a\\\":", "[", "1", ",", "2"] {
                    put(delta, text);
                }
                put(other, arguments);
                for text in ["3", ",4", "]", "}", "x"] {
                    put(delta, text);
                }
                let config = &configs[rng.below(configs.len())];
                check(dialect, body.as_bytes(), config, &mut rng);
            }
        }
    }
}
