//! The decoders, each with valid files to start from.

use crate::bytes::{gzip, idx_file, mend_png, mend_tar, npy_declared, tar, words};
use crate::folder::{SITE, got_past, own_folder, put, site_files};
use fedtvd_data::decode::table::{Layout, Table};
use fedtvd_data::decode::{Flaw, Source, archive, cifar, idx, npy, picture};
use fedtvd_data::split::{Deck, Partition, PartitionFile};
use fedtvd_data::table::{Columns, Schema, SchemaError};
use std::io::Read;

pub(crate) struct Decoder {
    pub(crate) name: &'static str,
    /// Valid files to start from.
    pub(crate) seeds: Vec<Vec<u8>>,
    /// Where the header ends: half of the mutations leave it alone.
    pub(crate) header: usize,
    /// Makes checksums right again, so that what lies behind them is reached.
    pub(crate) mend: fn(Vec<u8>) -> Vec<u8>,
    /// Whether the input got past the header.
    pub(crate) decode: fn(&[u8]) -> bool,
    /// Bytes that the input says it holds, in memory.
    pub(crate) declared: fn(&[u8]) -> usize,
}

fn past(outcome: Result<(), Flaw>, header: u64) -> bool {
    outcome.map_or_else(|flaw| flaw.offset >= header, |()| true)
}

fn as_it_is(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}

fn open<'a>(bytes: &'a [u8]) -> Source<'a> {
    Source::bytes("x", bytes).expect("memory can be read")
}

const DECK: Deck = Deck { labels: &[0; 1000], classes: 1, groups: None };

const HEART: &str = include_str!("../../src/set/heart.toml");

fn schema() -> Schema {
    HEART.parse().expect("the embedded schema is valid")
}

fn rows(bytes: &[u8]) -> Result<(), Flaw> {
    let table = Table::read(&mut open(bytes), 1 << 16, &Layout::default())?;
    let mut rows = table.rows();
    while rows.next()?.is_some() {}
    Ok(())
}

pub(crate) fn decoders() -> Vec<Decoder> {
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
            name: "table with a schema",
            seeds: vec![heart.as_bytes().to_vec()],
            header: 61,
            mend: as_it_is,
            decode: |bytes| {
                let schema = schema();
                let table = match Table::read(&mut open(bytes), 1 << 16, &schema.layout()) {
                    Ok(table) => table,
                    Err(flaw) => return flaw.offset >= 61,
                };
                let places: Vec<Option<u32>> = (0..100).map(Some).collect();
                match Columns::read(&table, &schema, &places, 100) {
                    Ok(columns) => columns
                        .inputs(&schema)
                        .map_or(true, |inputs| inputs.iter().all(|input| input.is_finite())),
                    Err(error) => error.to_string().len() > 1,
                }
            },
            declared: |bytes| 64 * bytes.len(),
        },
        Decoder {
            name: "csv",
            seeds: vec![csv.as_bytes().to_vec(), csv.replace(',', ";").into_bytes()],
            header: 15,
            mend: as_it_is,
            decode: |bytes| past(rows(bytes), 15),
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
        Decoder {
            name: "schema",
            seeds: vec![HEART.as_bytes().to_vec(), schema().text().into_bytes()],
            header: 20,
            mend: as_it_is,
            decode: |bytes| match String::from_utf8_lossy(bytes).parse::<Schema>() {
                Ok(schema) => {
                    assert_eq!(schema.text().parse::<Schema>().as_ref(), Ok(&schema));
                    true
                }
                Err(error) => {
                    // TOML is its own header: what fails after the first line was read as TOML up to there.
                    let text = error.to_string();
                    assert!(!text.is_empty());
                    !(matches!(error, SchemaError::Syntax(_)) && text.contains("line 1,"))
                }
            },
            // A parsed value has a type, a place and a text of its own; an error repeats the line.
            declared: |bytes| 512 * bytes.len(),
        },
    ]
}
