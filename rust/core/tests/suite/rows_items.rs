//! Checks that processing item deltas in rows does not change the events. Long sequences of one delta or of two
//! alternating deltas must produce the same events with and without templates, however the input is split and whichever
//! events come in between.

// Clippy allows panics only in functions marked as tests, not in their helpers.

use crate::comparable;

use comparable::{Rng, read};
use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::model::policy::Base;
use streamweld_core::model::policy::Policy;

/// The opening events of two calls and one text.
const RESPONSES: [&str; 3] = [
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_0","type":"function_call","call_id":"c0","name":"f","arguments":""},"sequence_number":Q}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"g","arguments":""},"sequence_number":Q}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"msg_2","type":"message","role":"assistant","content":[]},"sequence_number":Q}"#,
];
const MESSAGES: [&str; 3] = [
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t0","name":"f","input":{}}}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"g","input":{}}}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
];

/// Deltas for each opening event. `S` stands for the piece of text, `P` for padding, `Q` for the event's sequence
/// number, and `B` for spaces.
const RESPONSES_DELTAS: [&[&str]; 3] = [
    &[
        r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_0","obfuscation":"P","output_index":0,"sequence_number":Q}"#,
        r#"{"type":"response.function_call_arguments.delta","sequence_number":Q,"item_id":"fc_0","output_index":0,"delta":"S"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_0","output_index":0,"delta":"S"}"#,
    ],
    &[
        r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_1","obfuscation":"P","output_index":1,"sequence_number":Q}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"S","sequence_number":Q}"#,
    ],
    &[
        r#"{"type":"response.output_text.delta","content_index":0,"delta":"S","item_id":"msg_2","logprobs":[],"obfuscation":"P","output_index":2,"sequence_number":Q}"#,
        r#"{"type":"response.output_text.delta","content_index":0,"delta":"S","item_id":"msg_2","output_index":2,"sequence_number":Q}"#,
    ],
];
const MESSAGES_DELTAS: [&[&str]; 3] = [
    &[
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"S"}B}"#,
    ],
    &[
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"S"}B}"#,
    ],
    &[r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"S"}B}"#],
];

/// Events that may interrupt a row.
const RESPONSES_BREAKS: &[&str] = &[
    r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_0","obfuscation":"P","output_index":1,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_9","obfuscation":"P","output_index":0,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_0","obfuscation":"P","output_index":0,"x":1,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.delta","delta":"S","item_id":"fc_0","obfuscation":7,"output_index":0,"sequence_number":Q}"#,
    r#"{"type":"response.output_text.delta","content_index":0,"delta":"S","item_id":"msg_2","logprobs":[{"token":"S"}],"obfuscation":"P","output_index":2,"sequence_number":Q}"#,
    r#"{"type":"response.output_text.delta","content_index":1,"delta":"S","item_id":"msg_2","logprobs":[],"obfuscation":"P","output_index":2,"sequence_number":Q}"#,
    r#"{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_0","arguments":"{}","sequence_number":Q}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"g","arguments":"S"},"sequence_number":Q}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_2","output_index":2,"content_index":0,"text":"S","sequence_number":Q}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_5","type":"function_call","call_id":"c0","name":"f","arguments":""},"sequence_number":Q}"#,
    r#"{"type":"response.x","sequence_number":Q}"#,
    "[DONE]",
];
const MESSAGES_BREAKS: &[&str] = &[
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"S","x":1}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"S"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"S"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"url":"S"}}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t0","name":"f","input":{}}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"x"}"#,
];

/// JSON texts with the escapes that they need inside a JSON string. The test splits these texts into pieces as a
/// gateway might.
const ARGUMENTS: &[&str] = &[
    r#"{\"path\":\"src/main.py\",\"content\":\"the quick brown fox jumps over the lazy dog, and on and on it goes\"}"#,
    r#"{\"a\":[1,2,3.5,-4e2,true,null,{\"b\":\"gr\u00fc\u00dfe\"},\"\ud83d\ude00\"],\"c\":\"größer als 🦀 ist nichts\"}"#,
    r#"{ \"n\" : 12345678901234567890 , \"s\" : \"a\\nb\\\"c\\ud83d\\ude00d\" }"#,
    r#"{}"#,
    r#"not JSON at all, which nobody should send"#,
];
const PADDING: &[&str] = &[
    "",
    "aB3",
    "qzCdjyzkN",
    "é",
    "\\n",
    "0123456789abcdefghij",
    "\u{7f}",
];

fn encode(shape: &str, piece: &[u8], number: usize, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    for byte in shape.bytes() {
        match byte {
            b'S' => out.extend(piece),
            b'P' => out.extend(rng.pick(PADDING).bytes()),
            b'Q' => out.extend(number.to_string().bytes()),
            b'B' => out.extend(vec![b' '; rng.below(20)]),
            _ => out.push(byte),
        }
    }
    out
}

fn frame(shape: &str, piece: &[u8], number: usize, named: bool, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    if named && let Some(name) = shape.split('"').nth(3) {
        out.extend(format!("event: {name}\n").bytes());
    }
    out.extend(b"data: ");
    out.extend(encode(shape, piece, number, rng));
    out.extend(b"\n\n");
    out
}

/// Splits a text into pieces, usually between characters and escapes, occasionally within a character.
fn pieces<'t>(text: &'t str, longest: usize, rng: &mut Rng) -> Vec<&'t [u8]> {
    let (bytes, mut out, mut from) = (text.as_bytes(), Vec::new(), 0);
    while from < bytes.len() {
        let mut to = (from + 1 + rng.below(longest)).min(bytes.len());
        if rng.below(60) != 0 {
            // Avoid splitting within an escape, which is at most six bytes long, or within a character.
            let inside = |to: usize| {
                let run = bytes[..to].iter().rev().take_while(|byte| **byte == b'\\');
                let start = to.saturating_sub(5);
                let unicode = (start..to).any(|at| bytes[..=at].ends_with(b"\\u"));
                run.count() % 2 == 1 || unicode || !text.is_char_boundary(to)
            };
            while to < bytes.len() && inside(to) {
                to += 1;
            }
        }
        out.push(&bytes[from..to]);
        from = to;
    }
    out
}

fn configs() -> Vec<Config> {
    let mut configs = Vec::new();
    for base in [Base::Salvage, Base::Standard, Base::Strict] {
        let policy = Policy::new(base);
        let config = Config {
            policy,
            ..Config::default()
        };
        configs.push(config);
    }
    let mut small = configs[0].clone();
    small.limits.max_arguments_bytes = Some(90);
    small.limits.max_total_arguments_bytes = Some(120);
    small.limits.max_text_bytes = Some(70);
    configs.push(small);
    let mut few = configs[1].clone();
    few.limits.max_events = Some(40);
    few.limits.max_event_bytes = Some(260);
    configs.push(few);
    configs
}

fn body(dialect: Dialect, rng: &mut Rng) -> Vec<u8> {
    let (openings, deltas, breaks) = match dialect {
        Dialect::Responses => (RESPONSES, RESPONSES_DELTAS, RESPONSES_BREAKS),
        _ => (MESSAGES, MESSAGES_DELTAS, MESSAGES_BREAKS),
    };
    let (named, longest) = (rng.below(4) != 0, rng.pick(&[2, 6, 12, 40]));
    let (mut out, mut number) = (Vec::new(), rng.below(3));
    for opening in openings {
        out.extend(frame(opening, b"", number, named, rng));
        number += 1;
    }
    // Use one item, or two or three alternating items.
    let turns: Vec<usize> = match rng.below(3) {
        0 => vec![rng.below(3)],
        1 => vec![0, 1],
        _ => vec![2, 0, 1],
    };
    let texts: Vec<Vec<&[u8]>> = (0..3)
        .map(|_| pieces(rng.pick(ARGUMENTS), longest, rng))
        .collect();
    let shapes: Vec<&str> = deltas.iter().map(|of| rng.pick(of)).collect();
    let (often, counted) = (rng.pick(&[15, 40, 1000]), rng.below(8) != 0);
    for round in 0..texts.iter().map(Vec::len).max().unwrap_or(0) {
        for &item in &turns {
            let Some(piece) = texts[item].get(round) else {
                continue;
            };
            let mut next = frame(shapes[item], piece, number, named, rng);
            number += usize::from(counted);
            if rng.below(often) == 0 {
                match rng.below(9) {
                    0 => out.extend(next.clone()),
                    1 => number += 3,
                    2 => number = number.saturating_sub(2),
                    3 => out.extend(b": a comment\n\n"),
                    4 => next.extend(b"\n"),
                    5 => {
                        let at = rng.below(next.len());
                        next[at] = rng.pick(b"\"\\{}0x\xff\xc3\n \r");
                    }
                    6 => {
                        next = String::from_utf8_lossy(&next)
                            .replace('\n', "\r\n")
                            .into_bytes()
                    }
                    _ => {
                        let other = rng.pick(breaks);
                        out.extend(frame(other, piece, number, named, rng));
                        number += 1;
                    }
                }
            }
            out.extend(next);
        }
    }
    out
}

#[test]
fn rows_change_nothing() {
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let configs = configs();
    for round in 0..6_000 {
        let dialect = [Dialect::Anthropic, Dialect::Responses][round % 2];
        let body = body(dialect, &mut rng);
        let config = &configs[rng.below(configs.len())];
        let plain = read(dialect, &body, config, false, &[]);
        let text = String::from_utf8_lossy(&body);
        assert_eq!(plain, read(dialect, &body, config, true, &[]), "{text}");
        let mut cuts: Vec<usize> = (0..rng.below(4))
            .map(|_| rng.below(body.len() + 1))
            .collect();
        cuts.sort_unstable();
        let cut = read(dialect, &body, config, true, &cuts);
        assert_eq!(plain, cut, "{cuts:?} {text}");
    }
}
