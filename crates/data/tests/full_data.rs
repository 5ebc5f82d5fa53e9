//! The real files in `FEDTVD_DATA`; without it these tests print that they were skipped.

use fedtvd_core::train::Values;
use fedtvd_data::set::{DataOptions, Loaded, Places, named, verify};
use fedtvd_data::split::{Deck, SplitKind, SplitOptions, Terms};
use std::time::{SystemTime, UNIX_EPOCH};

fn places() -> Option<Places> {
    if std::env::var_os("FEDTVD_DATA").is_some() {
        return Some(Places::new(None));
    }
    eprintln!("SKIPPED: set FEDTVD_DATA to a folder with the full data sets to run this test");
    None
}

/// Seconds that this thread has spent on a core, so that other processes do not count; wall-clock time if the system does not report it.
fn on_core() -> f64 {
    let reported = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = reported.and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    nanoseconds.map_or_else(clock, |nanoseconds| nanoseconds / 1e9)
}

fn load(set: &str, places: &Places) -> Loaded {
    DataOptions { set: set.to_owned(), ..DataOptions::default() }.load(places).expect("the data loads")
}

#[test]
fn checksums_and_class_counts_are_the_published_ones() {
    let Some(places) = places() else { return };
    for set in ["fmnist", "mnist", "cifar10", "heart"] {
        let verdict = verify(named(set).unwrap(), &places).unwrap();
        assert!(verdict.right, "{verdict:?}");
        assert_eq!(load(set, &places).samples.shape(), named(set).unwrap().shape);
    }
}

#[test]
fn loading_is_quick_and_makes_one_copy() {
    let Some(places) = places() else { return };
    for (set, bytes, limit) in [("fmnist", 70_000 * 784, 0.5), ("cifar10", 60_000 * 3072, 1.0)] {
        let seconds = (0..3).map(|_| {
            let start = on_core();
            let loaded = load(set, &places);
            let Values::Bytes(pixels, _) = loaded.samples.values() else { panic!("images are bytes") };
            assert_eq!((pixels.len(), pixels.capacity()), (bytes, bytes));
            on_core() - start
        });
        let best = seconds.fold(f64::INFINITY, f64::min);
        eprintln!("{set}: {best:.3} s on one core from a warm cache");
        assert!(best < limit, "{set}: {best} s");
    }
}

#[test]
fn cifar100_comes_out_of_its_archive() {
    // The real one is not available everywhere: a synthetic one in the official layout, of the same length.
    if places().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cifar-100-binary.tar.gz");
    let gzip =
        flate2::write::GzEncoder::new(std::fs::File::create(path).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, rows) in [("test.bin", 10_000), ("train.bin", 50_000)] {
        let mut content = vec![0; rows * 3074];
        content.chunks_exact_mut(3074).enumerate().for_each(|(row, record)| record[1] = (row % 100) as u8);
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("cifar-100-binary/{name}"), content.as_slice()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    let places = Places::new(Some(folder.path().to_owned()));
    let verdict = verify(named("cifar100").unwrap(), &places).unwrap();
    assert_eq!(verdict.counts, verdict.expected_counts);
    assert!(!verdict.right, "zeros are not the published photographs");
}

#[test]
fn hospitals_and_writers_are_natural_clients() {
    let Some(places) = places() else { return };
    let split = SplitOptions { kind: SplitKind::Natural, ..SplitOptions::default() };
    let heart = load("heart", &places);
    assert!(
        heart.notes.iter().any(|note| note.starts_with("chol: 202 of 920 are missing")),
        "{:?}",
        heart.notes
    );
    let hospitals = split
        .deal(
            &Deck::new(&heart.samples, heart.groups.as_ref()),
            &Terms { set: "x", seed: 1, holdout: 0.0, reference: None },
        )
        .unwrap()
        .partition;
    let sizes: Vec<usize> = hospitals.clients.iter().map(Vec::len).collect();
    // 303, 294, 123 and 200 patients, less every fifth of the healthy and of the ill.
    assert_eq!(sizes, [303 - 32 - 27, 294 - 37 - 21, 123 - 1 - 23, 200 - 10 - 29]);

    let mnist = load("mnist", &places);
    let Some(groups) = &mnist.groups else {
        eprintln!("SKIPPED: no mnist-writers beside mnist");
        return;
    };
    assert_eq!(groups.names.len(), 539);
    let writers = split
        .deal(
            &Deck::new(&mnist.samples, Some(groups)),
            &Terms { set: "x", seed: 1, holdout: 0.0, reference: None },
        )
        .unwrap()
        .partition;
    assert_eq!(writers.clients.len(), 539);
}

#[test]
fn the_mini_set_is_the_first_of_each_class_of_the_full_one() {
    let Some(places) = places() else { return };
    let (full, mini) = (load("fmnist", &places).samples, load("fmnist-mini", &places).samples);
    let (mut seen, mut row) = ([0; 10], 0);
    let (mut a, mut b) = ([0.0; 784], [0.0; 784]);
    for from in 0..full.rows() {
        let test = from >= full.train_rows();
        if from == full.train_rows() {
            seen = [0; 10];
        }
        let count = &mut seen[full.labels()[from] as usize];
        *count += 1;
        if *count <= if test { 200 } else { 1200 } {
            full.read(from as u32, &mut a);
            mini.read(row, &mut b);
            assert_eq!((mini.labels()[row as usize], a), (full.labels()[from], b));
            row += 1;
        }
    }
    assert_eq!(row as usize, mini.rows());
}
