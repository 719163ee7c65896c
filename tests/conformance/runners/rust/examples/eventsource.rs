//! A reader of event streams in 40 lines, as a model for an adapter. Usage: `cargo run --example eventsource -- CASES`.

use std::path::PathBuf;

use serde_json::{json, Value};
use streamweld_conformance::{run, Reader};

struct Small;

impl Reader for Small {
    fn read(&mut self, case: &Value, reads: &[Vec<u8>]) -> Option<Value> {
        if case["category"] != "sse" {
            return None;
        }
        let text = String::from_utf8_lossy(&reads.concat())
            .replace("\r\n", "\n")
            .replace('\r', "\n");
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (mut events, mut name, mut data, mut has_data) =
            (Vec::new(), String::new(), String::new(), false);
        for line in text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'))
        {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() => {
                    if has_data {
                        let kind = if name.is_empty() { "message" } else { &name };
                        events.push(json!([kind, data.strip_suffix('\n').unwrap_or(&data)]));
                    }
                    (name, data, has_data) = (String::new(), String::new(), false);
                }
                "event" => value.clone_into(&mut name),
                "data" => {
                    data = data + value + "\n";
                    has_data = true;
                }
                _ => {}
            }
        }
        Some(json!({"error": null, "events": events}))
    }
}

fn main() -> std::io::Result<()> {
    let cases = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "../../cases".into()),
    );
    let outcome = run(&mut Small, &cases)?;
    for (group, (passed, of)) in &outcome.groups {
        println!("{group:14} {passed:5} of {of}");
    }
    for (id, reason) in &outcome.failed {
        println!("  {id}: {reason}");
    }
    std::process::exit(i32::from(!outcome.failed.is_empty()));
}
