//! Times the core alone: `cargo run --release --example feed -- FILE… [-d DIALECT] [-n ROUNDS] [-r READ_SIZE] [--scan]
//! [-t SETTINGS]`.
//!
//! Reads each file as one stream (of Chat, unless told) in reads of a size, without building events, and prints ns an
//! event (blank-line blocks) and MB/s: the best of all rounds. `--scan` leaves out the template cache. `-t` promotes text
//! calls by the settings in that file: what `settings_text` of `_pure/text_calls/table.py` returns.

use std::time::Instant;

use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::Parser;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Sink;

/// Looks at every event, as little as a consumer can.
#[derive(Default)]
struct Count {
    events: u64,
    bytes: u64,
}

impl Sink for Count {
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        if let Event::TextDelta(delta) | Event::ToolCallDelta(delta) = event {
            self.bytes += delta.text.len() as u64;
        }
    }
}

/// The reads of a body: pieces of a size, or one event each.
fn reads(body: &[u8], size: usize) -> Vec<&[u8]> {
    if size > 0 {
        return body.chunks(size).collect();
    }
    let mut reads = Vec::new();
    let mut rest = body;
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
        let (event, after) = rest.split_at(end + 2);
        reads.push(event);
        rest = after;
    }
    reads.push(rest);
    reads
}

fn main() {
    let mut files = Vec::new();
    let (mut rounds, mut size, mut caching) = (50, 16_384, true);
    let mut dialect = Dialect::Chat;
    let mut config = Config::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "-d" {
            let name = args.next().unwrap_or_default();
            dialect = Dialect::from_name(&name).unwrap_or(dialect);
            continue;
        }
        if arg == "-t" {
            let settings = args.next().map(std::fs::read_to_string);
            config.text_calls = settings.and_then(Result::ok).map(Into::into);
            config.text_call_tools = Some([("f".to_owned(), None)].into_iter().collect());
            continue;
        }
        let mut number = || args.next().and_then(|value| value.parse().ok());
        match arg.as_str() {
            "-n" => rounds = number().unwrap_or(rounds),
            "--scan" => caching = false,
            "-r" => size = number().unwrap_or(size),
            _ => files.push(arg),
        }
    }
    for file in files {
        let Ok(body) = std::fs::read(&file) else {
            eprintln!("{file}: cannot be read");
            continue;
        };
        let blocks = body
            .windows(2)
            .filter(|pair| *pair == b"\n\n")
            .count()
            .max(1);
        let reads = reads(&body, size);
        let mut best = u128::MAX;
        let mut seen = Count::default();
        for _ in 0..rounds {
            let started = Instant::now();
            let mut parser = Parser::with_caching(Some(dialect), config.clone(), caching);
            seen = Count::default();
            for read in &reads {
                if parser.feed(read, &mut seen).is_err() {
                    break;
                }
            }
            let _ = parser.close(InputEnd::Clean, &mut seen);
            best = best.min(started.elapsed().as_nanos());
        }
        let per_event = best / blocks as u128;
        let speed = body.len() as u128 * 1000 / best.max(1);
        println!(
            "{file}: {per_event} ns an event, {speed} MB/s, {} events",
            seen.events
        );
    }
}
