//! Returns everything that a parser reports for a stream as text, with or without the template cache. Also provides
//! pseudo-random numbers.

use std::fmt::Write as _;

use streamweld_core::Config;
use streamweld_core::Dialect;
use streamweld_core::Parser;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Sink;

#[derive(Default)]
struct Log(String);

impl Sink for Log {
    fn event(&mut self, event: &Event<'_>) {
        writeln!(self.0, "{event:?}").unwrap();
    }
}

/// A xorshift generator, so that every run tests the same streams.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Returns the events, faults, snapshot and completeness of a stream as text.
pub(crate) fn read(
    dialect: Dialect,
    body: &[u8],
    config: &Config,
    caching: bool,
    cuts: &[usize],
) -> String {
    let mut parser = Parser::with_caching(Some(dialect), config.clone(), caching);
    let mut log = Log::default();
    let mut from = 0;
    for to in cuts.iter().copied().chain([body.len()]) {
        if let Err(fault) = parser.feed(&body[from..to], &mut log) {
            writeln!(log.0, "{fault:?}").unwrap();
        }
        from = to;
    }
    if let Err(fault) = parser.close(InputEnd::Clean, &mut log) {
        writeln!(log.0, "{fault:?}").unwrap();
    }
    parser.snapshot(&mut log);
    writeln!(log.0, "{:?}", parser.completeness()).unwrap();
    log.0
}
