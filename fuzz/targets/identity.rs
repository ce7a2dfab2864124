#![no_main]

#[path = "../checks/identity.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|raw: &[u8]| checks::check(raw));
