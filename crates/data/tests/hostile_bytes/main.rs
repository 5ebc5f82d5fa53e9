//! Decoders against mutated files: no panic, and no memory beyond what the file declares.
//!
//! A few thousand inputs per decoder belong to the tests; `FEDTVD_FUZZ_INPUTS=1000000` asks for more (docs/data.md
//! says when that was last done), `FEDTVD_FUZZ_ONLY=npy,csv` for some of the decoders. At least a tenth of them must get
//! past the format's header.

mod bytes;
mod decoders;
mod folder;

use decoders::{Decoder, decoders};
use fedtvd_core::stream::{Purpose, Stream};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Buffers of the decompressors, and messages.
const SLACK: usize = 1 << 20;

/// A seed with a few bytes changed, cut, repeated or added.
fn mutated(decoder: &Decoder, stream: &mut Stream) -> Vec<u8> {
    let mut bytes = decoder.seeds[stream.below(decoder.seeds.len() as u64) as usize].clone();
    let from = if stream.below(2) == 0 { decoder.header.min(bytes.len()) } else { 0 };
    for _ in 0..=stream.below(4) {
        let room = (bytes.len() - from.min(bytes.len())) as u64;
        let place = (from + stream.below(room.max(1)) as usize).min(bytes.len());
        let end = (place + 1 + stream.below(8) as usize).min(bytes.len());
        match stream.below(8) {
            0 => bytes.truncate(place),
            1 => bytes.extend_from_within(place..end),
            2 => {
                let copied = bytes[place..end].to_vec();
                bytes.splice(place..place, copied);
            }
            3 => drop(bytes.drain(place..end)),
            4 => {
                let odd = [0, 1, 0x7f, 0x80, 0xfe, 0xff, b',', b'"', b'\n', b'9'];
                bytes[place..end].fill(odd[stream.below(odd.len() as u64) as usize]);
            }
            5 | 6 => bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= 1 << stream.below(8)),
            _ => bytes[place..end].iter_mut().for_each(|byte| *byte = stream.bits32() as u8),
        }
    }
    // One in four keeps its broken checksums.
    if stream.below(4) == 0 && decoder.name != "idx images in gzip" { bytes } else { (decoder.mend)(bytes) }
}

#[test]
fn mutated_files_neither_panic_nor_take_more_memory_than_they_declare() {
    let asked = std::env::var("FEDTVD_FUZZ_INPUTS").ok().and_then(|count| count.parse().ok());
    let inputs: u32 = asked.unwrap_or(3_000);
    let only = std::env::var("FEDTVD_FUZZ_ONLY").ok();
    let wanted =
        |decoder: &Decoder| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == decoder.name));
    for (place, decoder) in decoders().iter().enumerate().filter(|(_, decoder)| wanted(decoder)) {
        for seed in &decoder.seeds {
            assert!((decoder.decode)(&(decoder.mend)(seed.clone())), "{}: the seed itself", decoder.name);
        }
        let mut deep = 0;
        for number in 0..inputs {
            let bytes = mutated(decoder, &mut Stream::at(1, Purpose::Split, number, place as u32));
            let declared = (decoder.declared)(&bytes).saturating_add(SLACK);
            let before = MEMORY.current_usage();
            MEMORY.reset_peak_usage();
            let passed = std::panic::catch_unwind(|| (decoder.decode)(&bytes));
            let taken = MEMORY.peak_usage().saturating_sub(before);
            let passed =
                passed.unwrap_or_else(|_| panic!("{}: input {number} panics: {bytes:?}", decoder.name));
            let name = decoder.name;
            assert!(taken <= declared, "{name}: input {number} takes {taken} of {declared} bytes: {bytes:?}");
            deep += u32::from(passed);
        }
        let share = f64::from(deep) / f64::from(inputs);
        println!("{:20} {inputs} inputs, {:.0} % past the header", decoder.name, 100.0 * share);
        assert!(share >= 0.1, "{}: only {share} got past the header", decoder.name);
    }
}
