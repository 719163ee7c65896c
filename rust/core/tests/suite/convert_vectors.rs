//! Runs the converter on `tests/vectors/convert`: in the given chunks, in one read, byte by byte, and split in two at
//! every position.

use std::sync::Arc;

use crate::vectors::{bytes_of, files_in, input_end, policy_of};
use serde_json::{Map, Value as Json};
use streamweld_core::Config;
use streamweld_core::Converter;
use streamweld_core::Dialect;
use streamweld_core::ToolIdForm;
use streamweld_core::WriteOptions;
use streamweld_core::model::delta::InputEnd;

/// Targets that the converter can write.
const TARGETS: [&str; 6] = [
    "anthropic",
    "chat",
    "responses",
    "gemini",
    "ai-sdk-parts",
    "ai-sdk-ui",
];

struct Setting {
    source: Option<Dialect>,
    target: Dialect,
    config: Arc<Config>,
    options: WriteOptions,
    input: InputEnd,
}

impl Setting {
    fn of(test: &Json) -> Setting {
        let dialect = |key: &str| Dialect::from_name(test[key].as_str().unwrap());
        let none = Map::new();
        let options = test["options"].as_object().unwrap_or(&none);
        let mut config = Config {
            seed: Some("vec".to_owned()),
            ..Config::default()
        };
        let mut written = WriteOptions {
            prefix: "vec".to_owned(),
            include_usage: true,
            ..WriteOptions::default()
        };
        for (name, value) in options {
            match name.as_str() {
                "include_usage" => written.include_usage = value.as_bool().unwrap(),
                "hold_arguments" => written.hold_arguments = value.as_bool().unwrap(),
                "reasoning_events" => written.openresponses = value == "openresponses",
                "carry_reasoning" => written.carry_reasoning = value.as_bool().unwrap(),
                "tool_ids" => {
                    let form = |word_only, most| Some(ToolIdForm { word_only, most });
                    written.tool_id_form = match test["target"].as_str().unwrap() {
                        _ if value != "target" => None,
                        "anthropic" => form(true, Some(64)),
                        "responses" => form(false, Some(64)),
                        "chat" => form(false, Some(40)),
                        _ => None,
                    };
                }
                "cut_ending" => written.cut_is_error = value == "error",
                "limits" => {
                    for (name, limit) in value.as_object().unwrap() {
                        assert!(config.limits.set(name, limit.as_u64()), "{name}");
                    }
                }
                "policy" => config.policy = policy_of(value),
                "known_call_ids" => {
                    let ids = value.as_array().unwrap().iter();
                    config.known_call_ids = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
                }
                other => panic!("option {other}"),
            }
        }
        Setting {
            source: (test["source"] != "auto").then(|| dialect("source").unwrap()),
            target: dialect("target").unwrap(),
            config: Arc::new(config),
            options: written,
            input: input_end(test),
        }
    }

    fn run<'p>(&self, pieces: impl IntoIterator<Item = &'p [u8]>) -> Run {
        self.run_to_end(pieces, &[])
    }

    /// Feeds the pieces, and ends the input with bytes that are only stored, so that they are parsed in place.
    fn run_to_end<'p>(&self, pieces: impl IntoIterator<Item = &'p [u8]>, last: &[u8]) -> Run {
        let config = Arc::clone(&self.config);
        let mut converter =
            Converter::new(self.source, self.target, config, self.options.clone()).unwrap();
        let mut out = Vec::new();
        for piece in pieces {
            converter.feed(piece, &mut out).unwrap();
        }
        converter.store(last);
        converter.close(self.input, &mut out).unwrap();
        converter.close(self.input, &mut out).unwrap();
        let diagnostics = converter.diagnostics();
        assert_eq!(converter.diagnostics_dropped(), 0);
        let places = diagnostics.iter().map(|diagnostic| {
            let place = (diagnostic.byte_offset, diagnostic.event_ordinal);
            (diagnostic.code.name(), diagnostic.detail.clone(), place)
        });
        Run {
            out: String::from_utf8(out).unwrap(),
            diagnostics: places.collect(),
            error: converter.error().map(|fault| fault.class.name()),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Run {
    out: String,
    diagnostics: Vec<(&'static str, String, (u64, u64))>,
    error: Option<&'static str>,
}

/// Returns the body with the file's resource inserted.
fn filled(body: &Json, resource: &Json) -> Json {
    match body {
        Json::Object(members) => {
            if let Some(Json::Object(changed)) = members.get("$resource") {
                let mut whole = resource.as_object().unwrap().clone();
                for (name, value) in changed {
                    whole.insert(name.clone(), filled(value, resource));
                }
                return Json::Object(whole);
            }
            let members = members.iter();
            Json::Object(
                members
                    .map(|(name, value)| (name.clone(), filled(value, resource)))
                    .collect(),
            )
        }
        Json::Array(items) => items.iter().map(|item| filled(item, resource)).collect(),
        other => other.clone(),
    }
}

fn expected(test: &Json, resource: &Json) -> String {
    let mut out = String::new();
    for frame in test["expect"]["frames"].as_array().unwrap() {
        if frame == "[DONE]" {
            out.push_str("data: [DONE]\n\n");
            continue;
        }
        if let Some(event) = frame[0].as_str() {
            out.push_str(&format!("event: {event}\n"));
        }
        let body = match &frame[1] {
            Json::String(text) => text.clone(),
            body => {
                let text = filled(body, resource).to_string();
                let text = text.replace('\u{2028}', "\\u2028");
                text.replace('\u{2029}', "\\u2029")
            }
        };
        out.push_str(&format!("data: {body}\n\n"));
    }
    out
}

/// Returns the expectations of a vector that are not met.
fn failures(test: &Json, resource: &Json) -> Vec<String> {
    let mut failures = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            failures.push(format!("{} {}: {what}", test["target"], test["name"]));
        }
    };
    let setting = Setting::of(test);
    let chunks = test["chunks"].as_array().unwrap();
    let chunks: Vec<Vec<u8>> = chunks.iter().map(bytes_of).collect();
    let body = chunks.concat();
    let given = setting.run(chunks.iter().map(Vec::as_slice));
    let wanted = expected(test, resource);
    let mut pairs = given.out.split("\n\n").zip(wanted.split("\n\n"));
    let differs = pairs.find(|(frame, wanted)| frame != wanted);
    check(given.out == wanted, format!("frames {differs:#?}"));
    let losses = given.diagnostics.iter();
    let losses = losses.filter(|(code, ..)| *code == "not_carried");
    let ordinals: Json = losses.clone().map(|(.., (_, ordinal))| *ordinal).collect();
    let wanted = test["expect"].get("ordinals").unwrap_or(&ordinals);
    check(*wanted == ordinals, format!("ordinals {ordinals}"));
    let losses: Json = losses.map(|(_, detail, _)| detail.as_str()).collect();
    check(
        losses == test["expect"]["losses"],
        format!("losses {losses}"),
    );
    let error = Json::from(given.error);
    check(error == test["expect"]["error"], format!("error {error}"));
    check(setting.run([body.as_slice()]) == given, "whole".to_owned());
    check(
        setting.run(body.chunks(1)) == given,
        "byte by byte".to_owned(),
    );
    for cut in 1..body.len() {
        let (head, tail) = body.split_at(cut);
        check(setting.run([head, tail]) == given, format!("cut at {cut}"));
        check(
            setting.run_to_end([head], tail) == given,
            format!("stored from {cut}"),
        );
    }
    failures
}

#[test]
fn every_vector() {
    let mut ran = 0;
    let mut failed = Vec::new();
    for file in files_in("convert") {
        for test in file["tests"].as_array().unwrap() {
            if TARGETS.contains(&test["target"].as_str().unwrap()) {
                failed.extend(failures(test, &file["resource"]));
                ran += 1;
            }
        }
    }
    println!("{ran} vectors");
    assert!(ran >= 150);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
