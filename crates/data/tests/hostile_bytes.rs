//! Decoders against mutated files: no panic, and no memory beyond what the file declares.
//!
//! A few thousand inputs per decoder belong to the tests; `FEDTVD_FUZZ_INPUTS=1000000` asks for more (docs/data.md
//! says when that was last done), `FEDTVD_FUZZ_ONLY=npy,csv` for some of the decoders. At least a tenth of them must get
//! past the format's header.

use fedtvd_core::stream::{Purpose, Stream};
use fedtvd_data::decode::{Flaw, Source, archive, cifar, heart, idx, npy, picture, table};
use fedtvd_data::set::{DataOptions, LoadError, Places};
use fedtvd_data::split::{Deck, Partition, PartitionFile};
use flate2::Compression;
use peak_alloc::PeakAlloc;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::OnceLock;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Buffers of the decompressors, and messages.
const SLACK: usize = 1 << 20;

struct Decoder {
    name: &'static str,
    /// Valid files to start from.
    seeds: Vec<Vec<u8>>,
    /// Where the header ends: half of the mutations leave it alone.
    header: usize,
    /// Makes checksums right again, so that what lies behind them is reached.
    mend: fn(Vec<u8>) -> Vec<u8>,
    /// Whether the input got past the header.
    decode: fn(&[u8]) -> bool,
    /// Bytes that the input says it holds, in memory.
    declared: fn(&[u8]) -> usize,
}

fn past(outcome: Result<(), Flaw>, header: u64) -> bool {
    outcome.map_or_else(|flaw| flaw.offset >= header, |()| true)
}

fn words(bytes: &[u8], places: &[usize]) -> usize {
    let word = |place: &usize| match bytes.get(*place..place + 4) {
        Some(word) => word.iter().fold(0usize, |number, byte| number << 8 | usize::from(*byte)),
        None => 0,
    };
    places.iter().map(word).fold(1, usize::saturating_mul)
}

fn idx_file(words: &[u32], content: usize) -> Vec<u8> {
    let head = words.iter().flat_map(|word| word.to_be_bytes());
    head.chain((0..content).map(|x| (x % 10) as u8)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

fn as_it_is(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

fn open<'a>(bytes: &'a [u8]) -> Source<'a> {
    Source::bytes("x", bytes).expect("memory can be read")
}

/// The chunks of a PNG with their checksums computed again.
fn mend_png(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut place = 8;
    while place + 12 <= bytes.len() {
        let length = words(&bytes, &[place]);
        let Some(end) = place.checked_add(8).and_then(|start| start.checked_add(length)) else { break };
        if end + 4 > bytes.len() {
            break;
        }
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[place + 4..end]);
        bytes[end..end + 4].copy_from_slice(&crc.sum().to_be_bytes());
        place = end + 4;
    }
    bytes
}

fn tar(content: &[u8]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["folder/one.bin", "folder/two.bin"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, content).expect("memory does not fail");
    }
    tar.into_inner().expect("memory does not fail")
}

/// A member of a tar has its header's checksum computed again.
fn mend_tar(mut bytes: Vec<u8>) -> Vec<u8> {
    for start in (0..bytes.len().saturating_sub(511)).step_by(512) {
        if bytes[start + 257..start + 262] == *b"ustar" {
            bytes[start + 148..start + 156].fill(b' ');
            let sum: u32 = bytes[start..start + 512].iter().map(|byte| u32::from(*byte)).sum();
            let text = format!("{sum:06o}\0 ");
            bytes[start + 148..start + 156].copy_from_slice(text.as_bytes());
        }
    }
    bytes
}

/// What the header of an NPY file says that it holds: once as bytes, once as numbers.
fn npy_declared(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let after = |words: &str| text.split(words).nth(1).map(str::to_owned).unwrap_or_default();
    let width = match after("'descr': '").get(..3) {
        Some("|u1") => 1,
        Some("<f4" | "<i4") => 4,
        Some("<i8") => 8,
        _ => 0,
    };
    let sides = after("'shape': (");
    let sides = sides.split(')').next().unwrap_or_default().split(',');
    sides.filter_map(|side| side.trim().parse().ok()).fold(2 * width, usize::saturating_mul)
}

const SITE: [&str; 5] = ["set.json", "x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"];

/// The files of a client's own folder, each behind its number.
fn site_files() -> Vec<Vec<u8>> {
    let array = |shape: &[usize], numbers| npy::npy(&npy::Array { shape: shape.to_vec(), numbers });
    let about = r#"{"set": "x", "classes": ["a", "b"], "normal": [[0.5, 0.25]]}"#;
    let files = [
        about.as_bytes().to_vec(),
        array(&[3, 1, 2, 2], npy::Numbers::Bytes((0..12).collect())),
        array(&[3], npy::Numbers::Counts(vec![0, 1, 0])),
        array(&[1, 1, 2, 2], npy::Numbers::Bytes(vec![7; 4])),
        array(&[1], npy::Numbers::Counts(vec![1])),
    ];
    files.into_iter().zip(0u8..).map(|(file, number)| [vec![number], file].concat()).collect()
}

fn own_folder() -> &'static Path {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = || {
        // In memory where there is such a folder.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a folder for temporary files");
        SITE.iter().zip(site_files()).for_each(|(name, file)| put(folder.path(), name, &file[1..]));
        folder
    };
    FOLDER.get_or_init(made).path()
}

fn put(folder: &Path, name: &str, content: &[u8]) {
    std::fs::write(folder.join(name), content).expect("a small file can be written");
}

/// Whether a data set loads, or fails behind its header.
fn got_past(path: &Path, header: u64) -> bool {
    let set = path.to_str().expect("the folder's name is text").to_owned();
    match (DataOptions { set, ..DataOptions::default() }).load(&Places::new(None)) {
        Ok(_) => true,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            !matches!(error, LoadError::Flaw(flaw) if flaw.offset < header)
        }
    }
}

const DECK: Deck = Deck { labels: &[0; 1000], classes: 1, groups: None };

fn decoders() -> Vec<Decoder> {
    let heart =
        "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n32,1,1,95,0,?,0,127,0,.7,1,?,?,1\n";
    let csv = "age,town,label\n1,Ulm,a\n2,\"Rio, Brazil\",b\n?,Ulm,a\n";
    let pixels: Vec<u8> = (0..192u32).map(|x| (x * x) as u8).collect();
    let image = |shape, count: usize| picture::png(shape, &pixels[..count]).expect("memory does not fail");
    let array = |numbers| npy::npy(&npy::Array { shape: vec![2, 3], numbers });
    let saved = Partition { clients: vec![(0..400).collect(), (400..1000).collect()] };
    let saved = PartitionFile { hash: None, ..PartitionFile::new("x", &DECK, &saved, None) };
    let saved = serde_json::to_string(&saved).expect("a partition is JSON");
    vec![
        Decoder {
            name: "idx images",
            seeds: vec![idx_file(&[0x803, 3, 4, 5], 60), idx_file(&[0x803, 1, 1, 1], 1)],
            header: 16,
            mend: as_it_is,
            decode: |bytes| past(idx::images(&mut open(bytes), &mut Vec::new()).map(drop), 16),
            declared: |bytes| words(bytes, &[4, 8, 12]),
        },
        Decoder {
            name: "idx images in gzip",
            seeds: vec![idx_file(&[0x803, 3, 4, 5], 60)],
            header: 16,
            mend: |bytes| {
                let mut packed = gzip(&bytes);
                // One in three is cut in the compressed bytes.
                packed.truncate(packed.len() / if bytes.len() % 3 == 0 { 2 } else { 1 });
                packed
            },
            decode: |bytes| past(idx::images(&mut open(bytes), &mut Vec::new()).map(drop), 16),
            // What the compressed header says is not known here; it is read from the decompressed bytes.
            declared: |bytes| {
                let mut plain = Vec::new();
                let _ = flate2::read::MultiGzDecoder::new(bytes).take(16).read_to_end(&mut plain);
                words(&plain, &[4, 8, 12])
            },
        },
        Decoder {
            name: "idx labels",
            seeds: vec![idx_file(&[0x801, 30], 30)],
            header: 8,
            mend: as_it_is,
            decode: |bytes| past(idx::labels(&mut open(bytes), 10).map(drop), 8),
            declared: |bytes| words(bytes, &[4]),
        },
        Decoder {
            name: "idx column",
            seeds: vec![idx_file(&[0xc02, 3, 2, 1, 2, 3, 4, 5, 6], 0)],
            header: 12,
            mend: as_it_is,
            decode: |bytes| past(idx::column(&mut open(bytes), 1).map(drop), 12),
            declared: |bytes| 4 * words(bytes, &[8]) + 8 * bytes.len(),
        },
        Decoder {
            name: "cifar10",
            seeds: vec![(0..2 * 3073u32).map(|x| if x % 3073 == 0 { 7 } else { x as u8 }).collect()],
            header: 1,
            mend: as_it_is,
            decode: |bytes| {
                let (mut pixels, mut labels) = (vec![0; 2 * cifar::IMAGE], Vec::new());
                past(cifar::records(&mut open(bytes), cifar::Layout::Cifar10, &mut pixels, &mut labels), 1)
            },
            declared: |_| 2 * cifar::IMAGE,
        },
        Decoder {
            name: "cifar100",
            seeds: vec![(0..2 * 3074u32).map(|x| if x % 3074 < 2 { 19 } else { x as u8 }).collect()],
            header: 2,
            mend: as_it_is,
            decode: |bytes| {
                let (mut pixels, mut labels) = (vec![0; 2 * cifar::IMAGE], Vec::new());
                past(cifar::records(&mut open(bytes), cifar::Layout::Cifar100, &mut pixels, &mut labels), 2)
            },
            declared: |_| 2 * cifar::IMAGE,
        },
        Decoder {
            name: "heart",
            seeds: vec![heart.as_bytes().to_vec()],
            header: 61,
            mend: as_it_is,
            decode: |bytes| past(heart::patients(&mut open(bytes)).map(drop), 61),
            declared: |bytes| 16 * bytes.len(),
        },
        Decoder {
            name: "csv",
            seeds: vec![csv.as_bytes().to_vec()],
            header: 15,
            mend: as_it_is,
            decode: |bytes| past(table::table(&mut open(bytes), 1 << 16).map(drop), 15),
            // A field is a string of its own.
            declared: |bytes| 64 * bytes.len(),
        },
        Decoder {
            name: "png",
            seeds: vec![image([3, 8, 8], 192), image([1, 10, 7], 70)],
            header: 33,
            mend: mend_png,
            decode: |bytes| past(picture::picture(&mut open(bytes)).map(drop), 33),
            // Mixed and as planes, and the decoder's own two lines of up to eight bytes a pixel.
            declared: |bytes| {
                8 * words(bytes, &[16, 20]).min(1 << 26)
                    + 64 * words(bytes, &[16]).min(1 << 20)
                    + 4 * bytes.len()
            },
        },
        Decoder {
            name: "npy",
            seeds: vec![
                array(npy::Numbers::Bytes(vec![1; 6])),
                array(npy::Numbers::Floats(vec![0.5; 6])),
                array(npy::Numbers::Counts(vec![3; 6])),
            ],
            header: 128,
            mend: as_it_is,
            decode: |bytes| past(npy::array(&mut open(bytes)).map(drop), 128),
            declared: |bytes| npy_declared(bytes) + 16 * bytes.len(),
        },
        Decoder {
            name: "site folder",
            seeds: site_files(),
            header: 129,
            mend: as_it_is,
            decode: |bytes| {
                let Some((place, content)) = bytes.split_first() else { return false };
                let place = usize::from(*place) % SITE.len();
                put(own_folder(), SITE[place], content);
                let past = got_past(own_folder(), 128);
                put(own_folder(), SITE[place], &site_files()[place][1..]);
                past
            },
            declared: |bytes| 2 * npy_declared(bytes) + 64 * bytes.len(),
        },
        Decoder {
            name: "csv as a set",
            seeds: vec![
                b"age,town,label\n1,Ulm,a\n2,Rio,b\n?,Ulm,a\n4,Rio,1\n5,Ulm,1.0\n6,,b\n7,Rio,?\n".to_vec(),
            ],
            header: 15,
            mend: as_it_is,
            decode: |bytes| {
                put(own_folder(), "table.csv", bytes);
                got_past(&own_folder().join("table.csv"), 15)
            },
            // A field is a string of its own, and a text of 64 values becomes 64 inputs.
            declared: |bytes| 2048 * bytes.len(),
        },
        Decoder {
            name: "tar.gz",
            seeds: vec![tar(&[7; 700])],
            header: 512,
            mend: |bytes| gzip(&mend_tar(bytes)),
            decode: |bytes| {
                let mut members = 0;
                let _ = archive::each_member(open(bytes), |_, reader| {
                    members += 1;
                    let mut content = [0; 700];
                    Source::reader("y", reader).and_then(|mut source| source.fill("content", &mut content))
                });
                members > 0
            },
            declared: |bytes| 64 * bytes.len(),
        },
        Decoder {
            name: "partition.json",
            header: saved.find("[[").expect("there are lists") + 2,
            seeds: vec![saved.into_bytes()],
            mend: as_it_is,
            decode: |bytes| {
                let text = std::str::from_utf8(bytes).map_err(|_| ()).and_then(|text| {
                    PartitionFile::parse(text).map_err(|flaw| assert!(!flaw.to_string().is_empty()))
                });
                text.is_ok_and(|file| {
                    file.dealt("x", &DECK).map_or_else(|flaw| flaw.to_string().len() > 1, |_| true)
                })
            },
            declared: |bytes| 64 * bytes.len(),
        },
    ]
}

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
