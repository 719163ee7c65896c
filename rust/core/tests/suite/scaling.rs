//! Checks that the work is linear in the size of the input. A stream contains many elements of one kind from
//! `tests/support/load/scaling.txt`. For every order of the elements' events, the stream is parsed, repaired, and
//! converted to every dialect, with and without limits.
//!
//! An operation is a suspect if its time grows too much. If Valgrind is installed, the test then decides by the number
//! of executed instructions.
//!
//! `cargo test scaling::scaling -- --ignored --nocapture` prints the suspects. `STREAMWELD_FULL=1` adds all target
//! dialects and the default limits. `SCALING_SIZE=16000` uses larger streams. `SCALING_ONLY=responses` runs only
//! matching streams.

use std::collections::BTreeSet;
use std::fs;
use std::iter;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use streamweld_core::Config;
use streamweld_core::Converter;
use streamweld_core::Dialect;
use streamweld_core::Parser;
use streamweld_core::Repairer;
use streamweld_core::WriteOptions;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Sink;
use streamweld_core::model::limits::Limits;

/// Number of elements in the smaller stream. The larger stream has four times as many.
const SIZE: usize = 1000;
const SIZE_VARIABLE: &str = "SCALING_SIZE";
/// Maximum ratio of the two times: 2.3 per doubling, plus a margin for a busy machine.
const MOST: f64 = 2.3 * 2.3 * 1.25;
/// Runs that take less time than this are not compared.
const NOISE: Duration = Duration::from_millis(8);
/// The stream sizes for which the instructions of suspects are counted, and the maximum ratio of the counts. Under
/// Valgrind, an operation takes about 15 times as long.
const COUNTED: [usize; 2] = [4000, 8000];
const MOST_COUNTED: f64 = 2.3;
/// Environment variable that names the job to be counted, for the process that Valgrind runs.
const JOB: &str = "SCALING_JOB";
const READ: usize = 1 << 14;

const DIALECTS: [&str; 6] = [
    "chat",
    "responses",
    "anthropic",
    "gemini",
    "ai-sdk-parts",
    "ai-sdk-ui",
];

/// The operation to run on a stream.
#[derive(Clone, Copy, Debug)]
enum Job {
    Read,
    Repair { holds: bool },
    Write(&'static str),
}

struct Count(u64);

impl Sink for Count {
    fn event(&mut self, _: &Event<'_>) {
        self.0 += 1;
    }
}

/// A stream with a given number of elements of one kind.
struct Stream {
    dialect: String,
    name: String,
    body: Box<dyn Fn(usize) -> Vec<u8>>,
}

/// A row in the table, which describes a kind of element that can occur many times.
#[derive(Clone, Default)]
struct Row {
    is_list: bool,
    name: String,
    lines: Vec<(String, String)>,
}

impl Row {
    /// Returns the joined lines for one kind.
    fn text(&self, kind: &str) -> Option<String> {
        let mut lines = self.lines.iter().filter(|(known, _)| known == kind);
        let first = lines.next()?;
        Some(
            iter::once(first)
                .chain(lines)
                .map(|(_, text)| text.as_str())
                .collect(),
        )
    }
}

/// Returns the bytes of an event.
fn wire(line: &str, is_list: bool) -> String {
    match line.split_once('{') {
        _ if is_list || line.is_empty() => line.replace("\\n", "\n"),
        _ if line.starts_with('=') => line[1..].replace("\\n", "\n"),
        Some(("", _)) => format!("data: {line}\n\n"),
        Some((name, _)) => format!("event: {}\ndata: {}\n\n", name.trim(), &line[name.len()..]),
        None => panic!("{line}"),
    }
}

fn numbered(text: &str, number: usize) -> String {
    let scattered = number * 7919 % 1_000_003;
    let text = text.replace("@@", &(2 * number).to_string());
    let text = text.replace("@+", &(2 * number + 1).to_string());
    let text = text.replace("@%", &scattered.to_string());
    text.replace('@', &number.to_string())
}

fn streams() -> Vec<Stream> {
    let table = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/support/load/scaling.txt"
    );
    let table = fs::read_to_string(table).unwrap();
    let mut out = Vec::new();
    let mut dialect = String::new();
    let (mut usual, mut row) = (Row::default(), None);
    let lines = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    for line in lines.chain(["dialect "]) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        if matches!(kind, "dialect" | "many" | "list") {
            if let Some(row) = row.take() {
                out.extend(arranged(&dialect, &usual, row));
            }
            if kind == "dialect" {
                (dialect, usual) = (rest.to_owned(), Row::default());
            } else {
                row = Some(Row {
                    is_list: kind == "list",
                    name: rest.to_owned(),
                    lines: Vec::new(),
                });
            }
            continue;
        }
        let row = row.as_mut().unwrap_or(&mut usual);
        row.lines.push((kind.to_owned(), wire(rest, row.is_list)));
    }
    out
}

/// The orders in which the opening (`o`), fragment (`f`) and closing (`c`) events of the elements are sent. Each string
/// is one pass over all elements, and `C` closes the last element first. After all passes, the lines under `then` in
/// the table follow.
const ORDERS: [(&str, &[&str]); 7] = [
    ("one by one", &["ofc"]),
    ("side by side", &["o", "f", "c"]),
    ("closed backwards", &["o", "f", "C"]),
    ("in two rounds", &["of", "fc"]),
    ("never opened", &["f"]),
    ("never closed", &["of"]),
    ("closed alone", &["c"]),
];

fn arranged(dialect: &str, usual: &Row, row: Row) -> Vec<Stream> {
    if row.is_list {
        let text = |kind| row.text(kind).unwrap();
        let (before, one, behind) = (text("before"), text("one"), text("behind"));
        let (between, other) = (row.text("between").unwrap_or_default(), row.text("other"));
        return vec![Stream {
            dialect: dialect.to_owned(),
            name: row.name,
            body: Box::new(move |count| {
                let list = |element: &String| {
                    let all: Vec<String> = (0..count).map(|n| numbered(element, n)).collect();
                    all.join(",")
                };
                let lists: Vec<String> = iter::once(&one).chain(&other).map(list).collect();
                format!("{before}{}{behind}", lists.join(&between)).into_bytes()
            }),
        }];
    }
    let around = |kind| {
        row.text(kind)
            .or_else(|| usual.text(kind))
            .unwrap_or_default()
    };
    let (head, tail) = (around("head"), around("tail"));
    let row = Rc::new(row);
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for (order, passes) in ORDERS {
        let sent = |pass: &&str| -> Vec<(bool, String)> {
            let kinds = pass.chars().map(|kind| match kind {
                'o' => (false, "open"),
                'f' => (false, "fill"),
                kind => (kind == 'C', "close"),
            });
            kinds
                .filter_map(|(last, kind)| Some((last, row.text(kind)?)))
                .collect()
        };
        let mut passes: Vec<_> = passes
            .iter()
            .map(sent)
            .filter(|pass| !pass.is_empty())
            .collect();
        if passes.is_empty() || !seen.insert(passes.clone()) {
            continue;
        }
        passes.extend(row.text("then").map(|then| vec![(false, then)]));
        let (head, tail) = (head.clone(), tail.clone());
        out.push(Stream {
            dialect: dialect.to_owned(),
            name: format!("{}, {order}", row.name),
            body: Box::new(move |count| {
                let mut body = head.clone();
                for pass in &passes {
                    for place in 0..count {
                        for (last, text) in pass {
                            let place = if *last { count - 1 - place } else { place };
                            body.push_str(&numbered(text, place));
                        }
                    }
                }
                body.push_str(&tail);
                body.into_bytes()
            }),
        });
    }
    out
}

fn run(stream: &Stream, job: Job, config: &Arc<Config>, body: &[u8]) -> Duration {
    let dialect = Dialect::from_name(&stream.dialect);
    let config = Arc::clone(config);
    let options = WriteOptions {
        prefix: "p".to_owned(),
        include_usage: true,
        ..WriteOptions::default()
    };
    let started = Instant::now();
    let mut out = Vec::new();
    match job {
        Job::Read => {
            let mut parser = Parser::new(dialect, config);
            let mut count = Count(0);
            let reads = body.chunks(READ).map(|read| parser.feed(read, &mut count));
            if reads.take_while(Result::is_ok).count() * READ >= body.len() {
                _ = parser.close(InputEnd::Clean, &mut count);
            }
            parser.snapshot(&mut count);
        }
        Job::Repair { holds } => {
            let options = WriteOptions {
                hold_arguments: holds,
                ..options
            };
            let mut repairer = Repairer::new(dialect, config, options);
            for read in body.chunks(READ) {
                let run = repairer.feed(read, &mut out);
                out.extend_from_slice(run);
            }
            repairer.close(InputEnd::Clean, &mut out);
        }
        Job::Write(target) => {
            let target = Dialect::from_name(target).unwrap();
            let mut converter = Converter::new(dialect, target, config, options).unwrap();
            for read in body.chunks(READ) {
                converter.feed(read, &mut out).unwrap();
            }
            converter.close(InputEnd::Clean, &mut out).unwrap();
        }
    }
    started.elapsed()
}

/// Returns the factor by which the time grows for four times as many elements, in the best of several attempts.
fn ratio(stream: &Stream, job: Job, config: &Arc<Config>, size: usize) -> (f64, Duration) {
    let four = (stream.body)(4 * size);
    let mut long = run(stream, job, config, &four);
    if long < NOISE {
        return (0.0, long);
    }
    let one = (stream.body)(size);
    let mut short = Duration::MAX;
    for _ in 0..5 {
        short = short.min(run(stream, job, config, &one));
        long = long.min(run(stream, job, config, &four));
        if long.as_secs_f64() <= MOST * short.as_secs_f64() {
            break;
        }
    }
    (long.as_secs_f64() / short.as_secs_f64(), long)
}

/// Returns the factor by which the number of instructions grows for twice as many elements, or `None` if Valgrind is
/// not installed.
///
/// Unlike the time, the number of instructions does not depend on processor caches or other processes.
fn counted(job: &str) -> Option<f64> {
    let count = |size: usize| {
        let output = Command::new("valgrind")
            .args([
                "--tool=cachegrind",
                "--cache-sim=no",
                "--cachegrind-out-file=/dev/null",
            ])
            .arg(std::env::current_exe().ok()?)
            .args(["--exact", "scaling::count_one_job", "--ignored"])
            .env(JOB, job)
            .env(SIZE_VARIABLE, size.to_string())
            .output()
            .ok()?;
        let log = String::from_utf8(output.stderr).ok()?;
        let total = log.lines().find_map(|line| line.split_once("refs:"))?.1;
        total.trim().replace(',', "").parse::<f64>().ok()
    };
    let idle = count(0)?;
    let [short, long] = COUNTED.map(|size| count(size).map(|count| count - idle));
    Some(long? / short?)
}

/// Runs the job that `counted` measures.
#[test]
#[ignore = "does nothing unless `scaling` runs it"]
fn count_one_job() {
    let Ok(wanted) = std::env::var(JOB) else {
        return;
    };
    let size = size();
    for (number, stream) in streams().into_iter().enumerate() {
        for job in jobs(&stream.dialect, number, true) {
            for (limits, config) in &configs() {
                if label(&stream, job, limits) == wanted {
                    run(&stream, job, config, &(stream.body)(size));
                }
            }
        }
    }
}

/// Returns the name of one measurement.
fn label(stream: &Stream, job: Job, limits: &str) -> String {
    format!("{}: {} -> {job:?}, {limits}", stream.dialect, stream.name)
}

fn size() -> usize {
    let size = std::env::var(SIZE_VARIABLE).ok();
    size.and_then(|size| size.parse().ok()).unwrap_or(SIZE)
}

fn configs() -> [(&'static str, Arc<Config>); 2] {
    let limits = [
        ("limits off", Limits::OFF),
        ("limits on", Limits::default()),
    ];
    limits.map(|(name, limits)| {
        let config = Config {
            seed: Some("s".to_owned()),
            limits,
            ..Config::default()
        };
        (name, Arc::new(config))
    })
}

/// Returns the jobs for a dialect, which convert to all targets or to the target selected by `number`.
fn jobs(dialect: &str, number: usize, all: bool) -> Vec<Job> {
    let others = DIALECTS.into_iter().filter(|other| *other != dialect);
    let targets: Vec<Job> = others.map(Job::Write).collect();
    let mut jobs = vec![Job::Read, Job::Repair { holds: false }];
    if all {
        jobs.push(Job::Repair { holds: true });
        jobs.extend(targets);
    } else {
        jobs.extend(targets.into_iter().cycle().nth(number));
    }
    jobs
}

#[test]
fn every_dialect_has_repeatable_elements() {
    let streams = streams();
    let there: BTreeSet<&str> = streams
        .iter()
        .map(|stream| stream.dialect.as_str())
        .collect();
    assert_eq!(there, BTreeSet::from(DIALECTS));
    let detected = serde_json::from_str::<serde_json::Value>(
        &fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../python/streamweld/_spec/dialects.json"
        ))
        .unwrap(),
    )
    .unwrap();
    let detected = detected["detect"].as_array().unwrap().iter();
    let detected: BTreeSet<&str> = detected
        .map(|row| row["dialect"].as_str().unwrap())
        .collect();
    assert_eq!(there, detected);
}

#[test]
#[ignore = "compares times, which takes minutes"]
fn scaling() {
    let size = size();
    let all = std::env::var("STREAMWELD_FULL").is_ok_and(|full| full == "1");
    let only = std::env::var("SCALING_ONLY").unwrap_or_default();
    let verbose = std::env::var("SCALING_ALL").is_ok();
    let configs = configs();
    let mut failed = Vec::new();
    let mut measured = 0;
    for (number, stream) in streams().into_iter().enumerate() {
        if !format!("{}: {}", stream.dialect, stream.name).contains(&only) {
            continue;
        }
        for job in jobs(&stream.dialect, number, all) {
            for (limits, config) in configs.iter().take(if all { 2 } else { 1 }) {
                let (ratio, long) = ratio(&stream, job, config, size);
                measured += 1;
                let label = label(&stream, job, limits);
                let report = format!("{label}: {ratio:.1} times, {long:?}");
                if verbose {
                    println!("{report}");
                }
                if ratio > MOST {
                    let counted = counted(&label);
                    println!("suspect: {report}, instructions {counted:.2?} times");
                    if counted.is_none_or(|counted| counted > MOST_COUNTED) {
                        failed.push(report);
                    }
                }
            }
        }
    }
    println!("{measured} measured");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
