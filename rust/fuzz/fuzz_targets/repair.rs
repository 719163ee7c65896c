//! Checks that a repair writes the same bytes regardless of how the input is split, that events that need no repair
//! pass through unchanged, and that the output can be parsed.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use streamweld_core::{Repairer, WriteOptions};
use streamweld_fuzz::{Case, case, mutate};

fn repair(case: &Case<'_>, pieces: &[&[u8]]) -> (Vec<u8>, Repairer) {
    let options = WriteOptions {
        prefix: "fuzz".to_owned(),
        hold_arguments: case.reads.len() % 2 == 1,
        ..WriteOptions::default()
    };
    let dialect = (case.options >> 5 < 6).then(|| case.dialect());
    let mut repairer = Repairer::new(dialect, case.config(), options);
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
    let (out, repairer) = repair(&case, &[case.body]);
    let (cut, other) = repair(&case, &case.pieces());
    assert_eq!(
        String::from_utf8_lossy(&out),
        String::from_utf8_lossy(&cut),
        "in pieces"
    );
    assert_eq!(repairer.repaired(), other.repaired(), "in pieces");
    if !repairer.repaired() && repairer.error().is_none() {
        assert_eq!(
            String::from_utf8_lossy(&out),
            String::from_utf8_lossy(case.body),
            "nothing was repaired"
        );
    }
});
