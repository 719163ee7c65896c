//! Measures the speed of the core without the bindings. Usage: `cargo run --release --example feed -- FILE… [-d
//! DIALECT] [-n ROUNDS] [-r READ_SIZE] [--scan] [--total] [-t SETTINGS]`.
//!
//! Parses each file as one stream, which is a Chat stream unless `-d` is given, in reads of a fixed size. Prints the
//! nanoseconds per event and the MB/s of the fastest round, where each block that ends with a blank line counts as an
//! event. `--scan` disables the template cache. `--total` prints one line for all files. The program then does nothing
//! but parse between reading the files and printing, so `valgrind --tool=callgrind` can count the instructions of the
//! core. `-t` turns tool calls in text into events, with the settings in the given file, which must be the output of
//! `settings_text` in `_pure/text_calls/table.py`.

use std::time::Instant;

use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::Parser;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Sink;

/// Receives every event and does almost no work with it.
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

/// Splits a body into reads of a fixed size, or into one read per event if the size is 0.
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

/// Reads one stream, and returns the counted events and the elapsed time.
fn parse(dialect: Dialect, config: &Config, caching: bool, reads: &[&[u8]]) -> (Count, u128) {
    let started = Instant::now();
    let mut parser = Parser::with_caching(Some(dialect), config.clone(), caching);
    let mut seen = Count::default();
    for read in reads {
        if parser.feed(read, &mut seen).is_err() {
            break;
        }
    }
    let _ = parser.close(InputEnd::Clean, &mut seen);
    drop(parser);
    (seen, started.elapsed().as_nanos())
}

fn main() {
    let mut files = Vec::new();
    let (mut rounds, mut size, mut caching, mut total) = (50, 16_384, true, false);
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
            "--total" => total = true,
            "-r" => size = number().unwrap_or(size),
            _ => files.push(arg),
        }
    }
    let read = |file: &String| match std::fs::read(file) {
        Ok(body) => Some((file.clone(), body)),
        Err(error) => {
            eprintln!("{file}: {error}");
            None
        }
    };
    let bodies: Vec<(String, Vec<u8>)> = files.iter().filter_map(read).collect();
    if total {
        let bytes: usize = bodies.iter().map(|(_, body)| body.len()).sum();
        let (mut events, mut best) = (0, u128::MAX);
        for _ in 0..rounds {
            let mut all = 0;
            events = 0;
            for (_, body) in &bodies {
                let (seen, took) = parse(dialect, &config, caching, &reads(body, size));
                events += seen.events;
                all += took;
            }
            best = best.min(all);
        }
        let speed = bytes as u128 * 1000 / best.max(1);
        let streams = bodies.len();
        println!(
            "{streams} streams: {} us, {speed} MB/s, {events} events",
            best / 1000
        );
        return;
    }
    for (file, body) in bodies {
        let blocks = body
            .windows(2)
            .filter(|pair| *pair == b"\n\n")
            .count()
            .max(1);
        let reads = reads(&body, size);
        let mut best = u128::MAX;
        let mut seen = Count::default();
        for _ in 0..rounds {
            let took;
            (seen, took) = parse(dialect, &config, caching, &reads);
            best = best.min(took);
        }
        let per_event = best / blocks as u128;
        let speed = body.len() as u128 * 1000 / best.max(1);
        println!(
            "{file}: {per_event} ns an event, {speed} MB/s, {} events",
            seen.events
        );
    }
}
