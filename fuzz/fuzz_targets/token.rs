#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tokkuri_server::fuzzing::token(data));
