//! Checks that the `responses` decoder emits the same events regardless of how the input is split, and that events
//! follow their lifecycle.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use streamweld_core::Dialect;
use streamweld_fuzz::{case, decoder, mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| decoder(&case(data), Dialect::from_name("responses")));
