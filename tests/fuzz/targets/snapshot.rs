#![no_main]

libfuzzer_sys::fuzz_target!(
    init: {
        // Small builds, which take longer than one case may.
        tests::hostile::SmallBuild::all();
    },
    |bytes: &[u8]| tests::hostile::snapshot(bytes)
);
