//! Mutates a body without breaking its structure, by moving events and changing values inside their JSON.
//!
//! Half of all mutations are libFuzzer's own byte mutations.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};

/// Values that decoders handle specially.
const STRINGS: [&str; 20] = [
    "",
    "stop",
    "tool_calls",
    "end_turn",
    "completed",
    "call_1",
    "call_2",
    "get_weather",
    "{\"a\":1}",
    "{\"a\":",
    "}",
    "\\",
    "<think>",
    "</think>",
    "\u{2028}",
    "\u{d7ff}",
    "text",
    "tool_use",
    "function_call",
    "error",
];
/// Lines to insert between events.
const LINES: [&str; 12] = [
    "data: [DONE]\n\n",
    "event: ping\n",
    ": comment\n",
    "id: 1\n",
    "retry: 10\n",
    "\r\n",
    "\r",
    "\n",
    "data:\n",
    "event: error\n",
    "data: {\"error\":{\"message\":\"m\"}}\n\n",
    "\u{feff}",
];

struct Random(u64);

impl Random {
    fn new(seed: u32) -> Random {
        Random((u64::from(seed) << 1 | 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}

/// Mutates the input in `data[..size]` in place. Returns the new size of the input, which is at most `max_size`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random::new(seed);
    if random.below(2) == 0 || size < 4 {
        return fuzzer_mutate(data, size, max_size);
    }
    let header = 2 + (usize::from(data[1]) & 15).min(size - 2);
    if random.below(8) == 0 {
        let at = random.below(header);
        data[at] = random.below(256) as u8;
        return size;
    }
    let mut events = split(&data[header..size]);
    if events.is_empty() {
        return fuzzer_mutate(data, size, max_size);
    }
    for _ in 0..=random.below(3) {
        change(&mut events, &mut random);
    }
    let body = events.concat();
    let room = max_size.saturating_sub(header).min(body.len());
    data[header..header + room].copy_from_slice(&body[..room]);
    header + room
}

/// Splits a body into blocks, each with the blank line that ends it.
fn split(body: &[u8]) -> Vec<Vec<u8>> {
    let mut events = vec![Vec::new()];
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        if let Some(event) = events.last_mut() {
            event.extend_from_slice(line);
        }
        if matches!(line, b"\n" | b"\r\n") {
            events.push(Vec::new());
        }
    }
    events.retain(|event| !event.is_empty());
    events
}

fn change(events: &mut Vec<Vec<u8>>, random: &mut Random) {
    if events.is_empty() {
        return;
    }
    let at = random.below(events.len());
    let other = random.below(events.len());
    match random.below(9) {
        0 => events.swap(at, other),
        1 => drop(events.remove(at)),
        2 => {
            let event = events[at].clone();
            events.insert(other, event);
        }
        3 => events.insert(at, LINES[random.below(LINES.len())].as_bytes().to_vec()),
        4 => events.truncate(at + 1),
        _ => change_json(events, at, other, random),
    }
}

/// Changes a value inside the JSON of an event's data line.
fn change_json(events: &mut [Vec<u8>], at: usize, other: usize, random: &mut Random) {
    let donor = payload(&events[other]).map(|(_, value, _)| value);
    let Some((before, mut value, after)) = payload(&events[at]) else {
        return;
    };
    let count = nodes(&value);
    let mut index = random.below(count);
    let donor = donor.map(|donor| {
        let mut index = random.below(nodes(&donor));
        pick(&donor, &mut index).unwrap_or(Value::Null)
    });
    edit(&mut value, &mut index, random, donor);
    let text = value.to_string();
    events[at] = [before.as_slice(), text.as_bytes(), after.as_slice()].concat();
}

/// Returns the JSON in a block, and the bytes before and after it.
fn payload(event: &[u8]) -> Option<(Vec<u8>, Value, Vec<u8>)> {
    let start = event.iter().position(|byte| *byte == b'{')?;
    let end = start
        + event[start..]
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .unwrap_or(event.len() - start);
    let value = serde_json::from_slice(&event[start..end]).ok()?;
    Some((event[..start].to_vec(), value, event[end..].to_vec()))
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(nodes).sum(),
        Value::Array(items) => items.iter().map(nodes).sum(),
        _ => 0,
    }
}

fn pick(value: &Value, index: &mut usize) -> Option<Value> {
    if *index == 0 {
        return Some(value.clone());
    }
    *index -= 1;
    match value {
        Value::Object(members) => members.values().find_map(|member| pick(member, index)),
        Value::Array(items) => items.iter().find_map(|item| pick(item, index)),
        _ => None,
    }
}

/// Edits the JSON node with the given index. Returns true if the node was found.
fn edit(value: &mut Value, index: &mut usize, random: &mut Random, donor: Option<Value>) -> bool {
    if *index == 0 {
        *value = edited(value.take(), random, donor);
        return true;
    }
    *index -= 1;
    match value {
        Value::Object(members) => members
            .values_mut()
            .any(|member| edit(member, index, random, donor.clone())),
        Value::Array(items) => items
            .iter_mut()
            .any(|item| edit(item, index, random, donor.clone())),
        _ => false,
    }
}

fn edited(value: Value, random: &mut Random, donor: Option<Value>) -> Value {
    match (value, random.below(6)) {
        (_, 0) => donor.unwrap_or(Value::Null),
        (Value::Object(members), 1) => {
            let gone = random.below(members.len());
            let kept = members
                .into_iter()
                .enumerate()
                .filter(|(at, _)| *at != gone);
            Value::Object(kept.map(|(_, member)| member).collect::<Map<_, _>>())
        }
        (Value::Array(mut items), 1 | 2) => {
            if let Some(item) = items.get(random.below(items.len())).cloned() {
                items.push(item);
            }
            Value::Array(items)
        }
        (Value::String(text), 1..=3) => {
            let at = (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .nth(random.below(text.len() + 1));
            let (head, tail) = text.split_at(at.unwrap_or(0));
            json!(match random.below(3) {
                0 => head.to_owned(),
                1 => format!("{text}{text}"),
                _ => format!("{head}{}{tail}", STRINGS[random.below(STRINGS.len())]),
            })
        }
        (Value::Number(_), 1..=3) => number(random),
        (_, 4) => json!(STRINGS[random.below(STRINGS.len())]),
        (_, 5) => {
            [Value::Null, json!(true), json!([]), json!({}), json!(0)][random.below(5)].clone()
        }
        (value, _) => value,
    }
}

/// Returns a number near the limits of the types that decoders use, or a value that gateways send instead of a number.
fn number(random: &mut Random) -> Value {
    let integers = [
        -1,
        0,
        1,
        2,
        127,
        128,
        i64::from(i32::MIN) - 1,
        i64::from(i32::MAX) + 1,
        i64::from(u32::MAX),
        i64::from(u32::MAX) + 1,
        i64::MIN,
        i64::MAX,
    ];
    match random.below(16) {
        0 => json!(u64::MAX),
        1 => json!(1.0),
        2 => json!(1e300),
        3 => json!("1"),
        _ => json!(integers[random.below(integers.len())]),
    }
}
