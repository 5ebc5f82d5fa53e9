//! What holds for every kind of split.

use fedtvd_data::split::{
    Deck, Groups, Partition, PartitionFile, SplitError, SplitKind, SplitOptions, Terms,
};
use proptest::prelude::*;

const DRAWN: [SplitKind; 7] = [
    SplitKind::Iid,
    SplitKind::Dirichlet,
    SplitKind::Hsu,
    SplitKind::Shards,
    SplitKind::Labels,
    SplitKind::Quantity,
    SplitKind::Correlated,
];

fn options(kind: SplitKind, clients: usize, alpha: f64) -> SplitOptions {
    SplitOptions { kind, clients, alpha, min_size: 1, ..SplitOptions::default() }
}

fn split(options: &SplitOptions, deck: &Deck, seed: u64) -> Result<Partition, SplitError> {
    options.deal(deck, &Terms { set: "x", seed, holdout: 0.0, reference: None }).map(|dealt| dealt.partition)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_row_is_in_exactly_one_client_and_the_same_seed_gives_the_same_split(
        labels in prop::collection::vec(0u32..5, 200..600),
        clients in 5usize..12,
        alpha in 0.5f64..5.0,
        seed: u64,
    ) {
        let deck = Deck { labels: &labels, classes: 6, groups: None };
        for kind in DRAWN {
            let options = options(kind, clients, alpha);
            let partition = split(&options, &deck, seed).unwrap();
            prop_assert_eq!(partition.clients.len(), clients);
            prop_assert!(partition.clients.iter().all(|rows| rows.is_sorted() && !rows.is_empty()));
            let mut rows = partition.clients.concat();
            rows.sort_unstable();
            prop_assert_eq!(rows, (0..labels.len() as u32).collect::<Vec<_>>(), "{:?}", kind);
            prop_assert_eq!(&split(&options, &deck, seed).unwrap(), &partition);
        }
    }

    #[test]
    fn a_split_with_its_own_seed_does_not_move_with_the_run(run in 1u64..1000) {
        let labels: Vec<u32> = (0..500).map(|row| row % 5).collect();
        let deck = Deck { labels: &labels, classes: 5, groups: None };
        for kind in DRAWN {
            let own = SplitOptions { seed: Some(7), ..options(kind, 8, 1.0) };
            let first = split(&own, &deck, 0).unwrap();
            prop_assert_eq!(&split(&own, &deck, run).unwrap(), &first);
            let following = options(kind, 8, 1.0);
            prop_assert_ne!(split(&following, &deck, run).unwrap(), split(&following, &deck, 0).unwrap());
        }
    }
}

#[test]
fn a_saved_split_and_a_natural_one_go_by_the_same_options() {
    let labels = [0, 1, 0, 1];
    let groups = Groups { names: vec!["a".into(), "b".into()], of: vec![0, 1, 1, 1] };
    let deck = Deck { labels: &labels, classes: 2, groups: Some(&groups) };
    let natural = split(&options(SplitKind::Natural, 99, 1.0), &deck, 1).unwrap();
    assert_eq!(natural.clients, [vec![0], vec![1, 2, 3]]);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("partition.json");
    PartitionFile::new("x", &deck, &natural, Some(groups.names.clone())).write(&path).unwrap();
    let saved = SplitOptions { file: Some(path), ..options(SplitKind::File, 99, 1.0) };
    assert_eq!(split(&saved, &deck, 5).unwrap().hash(), natural.hash());
}

#[test]
fn ten_thousand_clients_cost_their_lists() {
    let labels: Vec<u32> = (0..60_000).map(|row| row % 10).collect();
    let deck = Deck { labels: &labels, classes: 10, groups: None };
    let partition = split(&options(SplitKind::Iid, 10_000, 1.0), &deck, 1).unwrap();
    assert!(partition.clients.iter().all(|rows| rows.len() == 6 && rows.capacity() == 6));
}
