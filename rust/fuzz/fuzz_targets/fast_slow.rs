//! Checks that the fast path changes nothing: a stream must produce the same events with and without the template
//! cache.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use streamweld_fuzz::invariants::{assert_same, transcript};
use streamweld_fuzz::{case, mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| {
    let case = case(data);
    // Repeat the stream, because the cache affects only payloads that resemble earlier ones.
    let body = [case.body, case.body].concat();
    let dialect = (case.options >> 5 < 6).then(|| case.dialect());
    let (config, end) = (case.config(), case.end());
    for pieces in [
        vec![body.as_slice()],
        body.chunks(usize::from(case.reads.len() as u8) * 13 + 1)
            .collect(),
    ] {
        let slow = transcript(dialect, &config, &pieces, end, false);
        assert_same(
            "fast against slow",
            &slow,
            &transcript(dialect, &config, &pieces, end, true),
        );
    }
});
