//! Checks that the template cache changes nothing: every stream must produce the same events with and without it,
//! regardless of how the stream is split.
//!
//! The streams are all Chat vectors, and many deterministic streams. The latter repeat one shape with different
//! strings, because the cache recognizes only repeated shapes, and some of their chunks are corrupted.

// Clippy allows panics only in functions marked as tests, not in their helpers.

use crate::comparable;

use comparable::{Rng, read};
use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::model::policy::Base;
use streamweld_core::model::policy::Policy;

fn check(body: &[u8], config: &Config, rng: &mut Rng) {
    let plain = read(Dialect::Chat, body, config, false, &[]);
    assert_eq!(
        plain,
        read(Dialect::Chat, body, config, true, &[]),
        "{}",
        String::from_utf8_lossy(body)
    );
    let mut cuts: Vec<usize> = (0..rng.below(6))
        .map(|_| rng.below(body.len() + 1))
        .collect();
    cuts.sort_unstable();
    assert_eq!(
        plain,
        read(Dialect::Chat, body, config, true, &cuts),
        "{cuts:?} {}",
        String::from_utf8_lossy(body)
    );
}

fn configs() -> Vec<Config> {
    let salvage = Policy::new(Base::Salvage);
    let mut tags = salvage.clone();
    tags.inline_reasoning = true;
    let mut changes = salvage.clone();
    changes.switches.restart_on_new_stream_id = true;
    changes.switches.merge_choices = true;
    let mut configs: Vec<Config> = [salvage, Policy::new(Base::Strict), tags, changes]
        .into_iter()
        .map(|policy| Config {
            policy,
            ..Config::default()
        })
        .collect();
    let mut small = configs[0].clone();
    small.limits.max_tool_index = Some(2);
    small.limits.max_choices = Some(1);
    configs.push(small);
    configs
}

#[test]
fn vectors() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/chat");
    let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file: serde_json::Value =
            serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
        for test in file["tests"].as_array().unwrap() {
            let pieces = test["chunks"].as_array().unwrap();
            let Some(pieces) = pieces
                .iter()
                .map(serde_json::Value::as_str)
                .collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            // Repeat the stream so that the learned templates are used.
            let body = pieces.concat();
            let twice = body.replace("data: [DONE]\n\n", "").repeat(2) + "data: [DONE]\n\n";
            for config in configs() {
                check(body.as_bytes(), &config, &mut rng);
                check(twice.as_bytes(), &config, &mut rng);
            }
            count += 1;
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
    "größer",
    "{\\\"a\\\":1}",
    "null",
    "\\n",
    "<think>",
    "\\\\",
    "x\u{2028}y",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "3",
    "12",
    "01",
    "-1",
    "1.0",
    "1e2",
    "9999999999",
    "99999999999999999999",
];
/// `S` stands for any string, `T` for a string that is the same everywhere in a chunk, and `N` for any number.
const SHAPES: &[&str] = &[
    r#"{"id":"x","choices":[{"index":0,"delta":{"content":"S"},"finish_reason":null}],"obfuscation":"S"}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"S"}}],"usage":{"prompt_tokens":N,"completion_tokens":N,"d":{"n":N}}}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"T","reasoning_content":"T","content":""}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"T","reasoning_details":[{"type":"reasoning.text","text":"T"}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"T","reasoning_details":[{"text":"T","signature":"S"}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":N,"function":{"arguments":"S"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":N,"id":"S","type":"function","function":{"name":"S","arguments":"S"}}]}}]}"#,
    r#"{"choices":[{"index":N,"delta":{"content":"S"},"content_filter_results":{"a":"b"}}],"provider":"p"}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"S","extra":N},"logprobs":{"n":1}}],"fingerprint":"S"}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":null,"id":"S","custom":{"name":"S","input":"S"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"refusal":"S"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"S"},"delta":{"content":"S"}}]}"#,
    r#"{"id":"S","choices":[{"index":0,"delta":{"role":"assistant","content":"S"}}]}"#,
];
const DAMAGE: &[u8] = b"\"\\{}[]:,0x\x00\xff\n ";

fn chunk(rng: &mut Rng, shape: &str) -> Vec<u8> {
    let twin = rng.pick(STRINGS);
    let mut out = String::from("data: ");
    let mut rest = shape;
    while let Some(at) = rest.find(['S', 'T', 'N']) {
        let (before, hole) = rest.split_at(at);
        out.push_str(before);
        let quoted = before.ends_with('"');
        out.push_str(match &hole[..1] {
            "S" if quoted => rng.pick(STRINGS),
            "T" if quoted && rng.below(20) == 0 => rng.pick(STRINGS),
            "T" if quoted => twin,
            "N" if rng.below(3) == 0 => rng.pick(NUMBERS),
            "N" => "1",
            other => other,
        });
        rest = &hole[1..];
    }
    out.push_str(rest);
    let mut bytes = out.into_bytes();
    if rng.below(12) == 0 {
        let at = rng.below(bytes.len());
        bytes[at] = rng.pick(DAMAGE);
    }
    bytes.extend(b"\n\n");
    bytes
}

#[test]
fn shapes_that_repeat() {
    let mut rng = Rng(0x2545_F491_4F6C_DD1D);
    let configs = configs();
    for round in 0..4_000 {
        let shapes = [rng.pick(SHAPES), rng.pick(SHAPES), rng.pick(SHAPES)];
        let mut body = Vec::new();
        for _ in 0..2 + rng.below(24) {
            let shape = rng.pick(&shapes);
            body.extend(chunk(&mut rng, shape));
        }
        body.extend(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
        check(&body, &configs[round % configs.len()], &mut rng);
    }
}
