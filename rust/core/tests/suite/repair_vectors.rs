//! Runs the repairer on `tests/vectors/repair`: in one read, in the given chunks, byte by byte, and split in two. Also
//! checks that a second repair does not change the repaired output.

use std::sync::Arc;

use crate::vectors::{bytes_of, files_in, input_end, policy_of};
use serde_json::{Map, Value as Json};
use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::Repairer;
use streamweld_core::WriteOptions;
use streamweld_core::model::delta::InputEnd;

struct Setting {
    dialect: Option<Dialect>,
    config: Arc<Config>,
    cut_is_error: bool,
    hold_arguments: bool,
    input: InputEnd,
}

#[derive(Debug, PartialEq)]
struct Run {
    out: String,
    repaired: bool,
    error: Option<&'static str>,
    codes: Vec<&'static str>,
}

impl Setting {
    fn of(file: &str, test: &Json) -> Setting {
        let none = Map::new();
        let mut config = Config {
            seed: Some("vec".to_owned()),
            ..Config::default()
        };
        let (mut cut_is_error, mut hold_arguments) = (false, false);
        for (name, value) in test["options"].as_object().unwrap_or(&none) {
            match name.as_str() {
                "policy" => config.policy = policy_of(value),
                "hold_arguments" => hold_arguments = value.as_bool().unwrap(),
                "cut_ending" => cut_is_error = value == "error",
                other => panic!("option {other}"),
            }
        }
        Setting {
            dialect: (file != "auto").then(|| Dialect::from_name(file).unwrap()),
            config: Arc::new(config),
            cut_is_error,
            hold_arguments,
            input: input_end(test),
        }
    }

    fn run<'p>(&self, pieces: impl IntoIterator<Item = &'p [u8]>) -> Run {
        let options = WriteOptions {
            prefix: "vec".to_owned(),
            include_usage: true,
            cut_is_error: self.cut_is_error,
            hold_arguments: self.hold_arguments,
            ..WriteOptions::default()
        };
        let mut repairer = Repairer::new(self.dialect, Arc::clone(&self.config), options);
        let mut out = Vec::new();
        for piece in pieces {
            let run = repairer.feed(piece, &mut out);
            out.extend_from_slice(run);
        }
        repairer.close(self.input, &mut out);
        let diagnostics = repairer.diagnostics();
        let codes = diagnostics
            .iter()
            .map(|diagnostic| diagnostic.code.name())
            .collect();
        Run {
            out: String::from_utf8_lossy(&out).into_owned(),
            repaired: repairer.repaired(),
            error: repairer.error().map(|fault| fault.class.name()),
            codes,
        }
    }
}

/// Returns the expected output, which is either the stream as sent, or a sequence of original blocks (by number),
/// renamed blocks and rewritten frames.
fn expected(test: &Json, chunks: &[Vec<u8>]) -> String {
    let mut out = Vec::new();
    let Some(parts) = test["expect"]["out"].as_array() else {
        assert_eq!(test["expect"]["same"], true);
        return String::from_utf8_lossy(&chunks.concat()).into_owned();
    };
    for part in parts {
        if let Some(number) = part.as_u64() {
            out.extend_from_slice(&chunks[usize::try_from(number).unwrap()]);
        } else if part == "[DONE]" {
            out.extend_from_slice(b"data: [DONE]\n\n");
        } else if let Some(number) = part[0].as_u64() {
            let block = String::from_utf8_lossy(&chunks[usize::try_from(number).unwrap()]);
            let end = ["\r\n", "\n", "\r"]
                .into_iter()
                .find(|end| block.ends_with(end))
                .unwrap();
            let lines = block.split_inclusive(end).filter(|line| *line != end);
            let lines: String = lines.filter(|line| !line.starts_with("event:")).collect();
            let name = part[1].as_str().unwrap();
            out.extend_from_slice(format!("{lines}event: {name}{end}{end}").as_bytes());
        } else {
            if let Some(event) = part[0].as_str() {
                out.extend_from_slice(format!("event: {event}\n").as_bytes());
            }
            out.extend_from_slice(format!("data: {}\n\n", part[1]).as_bytes());
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn failures(file: &str, test: &Json) -> Vec<String> {
    let mut failures = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            failures.push(format!("{file} {}: {what}", test["name"]));
        }
    };
    let setting = Setting::of(file, test);
    let chunks = test["chunks"].as_array().unwrap();
    let chunks: Vec<Vec<u8>> = chunks.iter().map(bytes_of).collect();
    let body = chunks.concat();
    let whole = setting.run([body.as_slice()]);
    let wanted = expected(test, &chunks);
    let mut pairs = whole.out.split("\n\n").zip(wanted.split("\n\n"));
    let differs = pairs.find(|(frame, wanted)| frame != wanted);
    check(whole.out == wanted, format!("out {differs:#?}"));
    let expect = &test["expect"];
    check(whole.repaired == expect["repaired"], "repaired".to_owned());
    check(
        Json::from(whole.error) == expect["error"],
        format!("error {:?}", whole.error),
    );
    let codes: Json = whole.codes.iter().copied().collect();
    check(
        codes == expect["diagnostics"],
        format!("diagnostics {codes}"),
    );
    let given = setting.run(chunks.iter().map(Vec::as_slice));
    check(given == whole, "as given".to_owned());
    check(
        setting.run(body.chunks(1)) == whole,
        "byte by byte".to_owned(),
    );
    for cut in 1..body.len() {
        let (head, tail) = body.split_at(cut);
        check(setting.run([head, tail]) == whole, format!("cut at {cut}"));
    }
    let plain = Setting::of(file, &Json::Null);
    let again = plain.run([whole.out.as_bytes()]);
    check(
        again.out == whole.out && !again.repaired,
        "again".to_owned(),
    );
    failures
}

#[test]
fn every_vector() {
    let mut ran = 0;
    let mut failed = Vec::new();
    for file in files_in("repair") {
        for test in file["tests"].as_array().unwrap() {
            let name = file["file"].as_str().unwrap();
            failed.extend(failures(name, test));
            ran += 1;
        }
    }
    println!("{ran} vectors");
    assert!(ran >= 40);
    let names = failed.iter().map(|text| text.split(": ").next().unwrap());
    let names: std::collections::BTreeSet<&str> = names.collect();
    assert!(failed.is_empty(), "{names:#?}\n{}", failed.join("\n"));
}
