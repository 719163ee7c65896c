//! Checks that a repair writes the same bytes regardless of how the input is split, with and without the template
//! cache, and that events that need no repair pass through unchanged.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use streamweld_core::{Repairer, WriteOptions};
use streamweld_fuzz::{Case, case, mutate};

fn repair(case: &Case<'_>, pieces: &[&[u8]], caching: bool) -> (Vec<u8>, Repairer) {
    let options = WriteOptions {
        prefix: "fuzz".to_owned(),
        hold_arguments: case.reads.len() % 2 == 1,
        ..WriteOptions::default()
    };
    let dialect = (case.options >> 5 < 6).then(|| case.dialect());
    let mut repairer = Repairer::with_caching(dialect, case.config(), options, caching);
    let mut written = Vec::new();
    for piece in pieces {
        let mut out = Vec::new();
        let passed = repairer.feed(piece, &mut out);
        written.extend_from_slice(&out);
        written.extend_from_slice(passed);
    }
    repairer.close(case.end(), &mut written);
    (written, repairer)
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| {
    let case = case(data);
    let (out, repairer) = repair(&case, &[case.body], true);
    let same = |what: &str, (bytes, other): (Vec<u8>, Repairer)| {
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(&bytes),
            "{what}"
        );
        assert_eq!(repairer.repaired(), other.repaired(), "{what}");
    };
    same("in pieces", repair(&case, &case.pieces(), true));
    same("without templates", repair(&case, &[case.body], false));
    if !repairer.repaired() && repairer.error().is_none() {
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(case.body),
            "nothing was repaired"
        );
    }
});
