//! Golden weights: FedTVD (paper and released code), its bounds, FedDkw.

use crate::federation::strategy;
use crate::vectors::{counts, number, numbers, read, same};
use fedtvd_core::labels::{Reference, Statistic, released_distance, size, tvd};
use fedtvd_core::memory::Memory;
use fedtvd_core::round::Profile;
use fedtvd_core::rules::Shares;
use serde_json::Value;

fn fedtvd() -> Value {
    read(include_str!("../golden/fedtvd_weights.json"))
}

/// The shares of clients with these label counts.
fn shares_of_counts(label: &str, counts: &[Vec<u64>], reference: &Reference, memory: &mut Memory) -> Shares {
    let strategy = strategy(label);
    let ask = strategy.asks();
    let profile = |(k, h): (usize, &Vec<u64>)| Profile::new(k as u32, size(h), ask.answer(h, reference));
    let profiles: Vec<Profile> = counts.iter().enumerate().map(profile).collect();
    strategy.weighting.shares(&profiles.iter().collect::<Vec<_>>(), reference, memory)
}

/// The shares of clients with these distances, all of one size unless given.
fn shares_of_distances(label: &str, distances: &[f64], sizes: &[f64]) -> Shares {
    let profile = |(k, (&distance, &size)): (usize, (&f64, &f64))| {
        Profile::new(k as u32, size as u64, Statistic::Distance(distance))
    };
    let profiles: Vec<Profile> = distances.iter().zip(sizes).enumerate().map(profile).collect();
    let q = Reference::uniform(10);
    strategy(label).weighting.shares(&profiles.iter().collect::<Vec<_>>(), &q, &mut Memory::default())
}

fn all_counts(golden: &Value) -> Vec<Vec<u64>> {
    golden["counts"].as_array().expect("a list").iter().map(counts).collect()
}

#[test]
fn fedtvd_gives_the_papers_three_clients_the_papers_weights_for_every_lambda() {
    let golden = fedtvd();
    let (counts, q) = (all_counts(&golden), Reference::uniform(3));
    same(&counts.iter().map(|h| tvd(h, &q)).collect::<Vec<_>>(), &golden["tvd"], "TVD");
    for case in golden["cases"].as_array().expect("a list") {
        let label = format!("fedtvd:lambda={}", case["lambda"]);
        let shares = shares_of_counts(&label, &counts, &q, &mut Memory::default());
        same(&shares.quality.expect("labels count"), &golden["a"], "a");
        same(&shares.size, &golden["n_frac"], "p");
        same(&shares.weight, &case["s"], &label);
        let largest = (0..3).fold(0, |best, k| if shares.weight[k] > shares.weight[best] { k } else { best });
        assert_eq!(Some(largest as u64), case["argmax_client"].as_u64(), "{label}");
    }
}

#[test]
fn the_balanced_client_overtakes_the_others_at_the_golden_lambdas() {
    let golden = fedtvd();
    let counts = all_counts(&golden);
    for (other, key) in
        [(1, "lambda_where_client0_overtakes_client1"), (2, "lambda_where_client0_overtakes_client2")]
    {
        let ahead = |lambda: f64| {
            let label = format!("fedtvd:lambda={lambda}");
            let s = shares_of_counts(&label, &counts, &Reference::uniform(3), &mut Memory::default()).weight;
            s[0] > s[other]
        };
        let turn = number(&golden[key]);
        assert!(!ahead(turn - 1e-12) && ahead(turn + 1e-12), "{key}");
    }
}

#[test]
fn the_released_code_gives_the_same_clients_very_different_weights() {
    let golden = fedtvd();
    let (counts, q) = (all_counts(&golden), Reference::uniform(3));
    let released = &golden["fedeasy_release_variant"];
    let distances: Vec<f64> = counts.iter().map(|h| released_distance(h, &q)).collect();
    same(&distances, &released["tvd_prime"], "d'");
    for case in released["cases"].as_array().expect("a list") {
        let label = format!("fedtvd-released:lambda={}", case["lambda"]);
        let shares = shares_of_counts(&label, &counts, &q, &mut Memory::default());
        same(&shares.quality.expect("labels count"), &released["a"], "a");
        same(&shares.weight, &case["s"], &label);
    }
}

#[test]
fn temperatures_references_and_edge_cases_of_fedtvd_are_the_golden_ones() {
    let golden = fedtvd();
    let (counts, edge) = (all_counts(&golden), &golden["edge_cases"]);
    let quality = |label: &str, q: &Reference| {
        shares_of_counts(label, &counts, q, &mut Memory::default()).quality.expect("labels count")
    };
    for case in edge["temperature"].as_array().expect("a list") {
        let label = format!("fedtvd:temperature={}", case["T"]);
        same(&quality(&label, &Reference::uniform(3)), &case["a"], &label);
    }
    let aggregated = Reference::aggregated(counts.iter().map(Vec::as_slice)).unwrap();
    same(aggregated.shares(), &edge["aggregated_histogram_Q"]["Q"], "Q");
    let declared = Reference::given(vec![0.2, 0.3, 0.5]).unwrap();
    same(&[declared.farthest()], &Value::from(vec![0.8]), "the farthest client");
    for (key, q) in [("declared_prior_Q_0.2_0.3_0.5", declared), ("aggregated_histogram_Q", aggregated)] {
        same(&counts.iter().map(|h| tvd(h, &q)).collect::<Vec<_>>(), &edge[key]["tvd"], key);
        same(&quality("fedtvd", &q), &edge[key]["a"], key);
    }
    for key in ["single_client", "equal_tvd_equal_n"] {
        let case = &edge[key];
        let label = format!("fedtvd:lambda={}", case["lambda"]);
        let shares = shares_of_distances(&label, &numbers(&case["tvd"]), &numbers(&case["n"]));
        same(&shares.weight, &case["s"], key);
    }
    let pair = &edge["one_class_vs_balanced_C10"];
    let a = shares_of_distances("fedtvd", &numbers(&pair["tvd"]), &[5.0, 5.0]).quality.unwrap();
    same(&a, &pair["a"], "one class against balanced");
    same(&[a[0] / a[1]], &Value::from(vec![pair["ratio"].clone()]), "their ratio");
    let one = &edge["one_class_client_C10"];
    let distance = tvd(&self::counts(&one["counts"]), &Reference::uniform(10));
    same(&[distance], &Value::from(vec![one["tvd"].clone()]), "one class of ten");
}

#[test]
fn quality_shares_attain_their_bounds_and_never_exceed_them() {
    let golden = read(include_str!("../golden/fedtvd_bounds.json"));
    for row in golden["rows"].as_array().expect("a list") {
        let clients = row["K"].as_u64().unwrap() as usize;
        let farthest = Reference::uniform(row["C"].as_u64().unwrap() as usize).farthest();
        let what = format!("C = {}, K = {clients}", row["C"]);
        let quality = |balanced: usize| {
            let distances: Vec<f64> =
                (0..clients).map(|k| if k < balanced { 0.0 } else { farthest }).collect();
            shares_of_distances("fedtvd:lambda=1", &distances, &vec![9.0; clients]).weight
        };
        let expect = |got: f64, key: &str| same(&[got], &Value::from(vec![row[key].clone()]), &what);
        expect(farthest, "max_tvd");
        expect(quality(1)[0], "a_max");
        expect(quality(clients - 1)[clients - 1], "a_min");
        expect(quality(1)[0] / quality(1)[1], "max_ratio");
        let uniform = number(&row["uniform"]);
        let distance = |m: usize| 0.5 * quality(m).iter().map(|a| (a - uniform).abs()).sum::<f64>();
        expect(
            distance(row["attained_with_m_balanced_clients"].as_u64().unwrap() as usize),
            "max_TV_from_uniform",
        );
        assert!((1..clients).all(|m| distance(m) < number(&row["sup_over_K_tanh_M_over_4"])), "{what}");
    }
}

#[test]
fn feddkw_weighs_by_closeness_to_all_labels_seen_and_remembers_them() {
    let golden = read(include_str!("../golden/feddkw_weights.json"));
    let (counts, q) = (all_counts(&golden), Reference::uniform(3));
    let mean = &golden["reference_mean_of_seen_distributions"];
    let shares = shares_of_counts("feddkw", &counts, &q, &mut Memory::default());
    same(&shares.weight, &mean["weights"], "mean of seen distributions");
    for case in golden["mixed_with_size"].as_array().expect("a list") {
        let label = format!("feddkw:lambda={}", case["lambda"]);
        same(&shares_of_counts(&label, &counts, &q, &mut Memory::default()).weight, &case["s"], &label);
    }
    let dynamic = &golden["dynamic_two_rounds"];
    let mut memory = Memory::default();
    for (number, round) in dynamic["rounds"].as_array().expect("a list").iter().enumerate() {
        let names: Vec<&str> =
            round["selected"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let profiles: Vec<Profile> = names
            .iter()
            .map(|&name| {
                let h = self::counts(&dynamic["client_counts"][name]);
                let client = u32::from(name.as_bytes()[0]);
                Profile::new(client, size(&h), Statistic::Histogram(h))
            })
            .collect();
        let (profiles, q): (Vec<&Profile>, _) = (profiles.iter().collect(), Reference::uniform(3));
        let shares = strategy("feddkw").weighting.shares(&profiles, &q, &mut memory);
        same(&shares.weight, &round["weights"], &format!("round {number}"));
        let seen = memory.f64("distributions").expect("it remembers");
        let clients = seen.len() / 3;
        assert_eq!(clients, round["seen_after"].as_array().unwrap().len());
        let d: Vec<f64> =
            (0..3).map(|c| seen.chunks(3).map(|p| p[c]).sum::<f64>() / clients as f64).collect();
        same(&d, &round["D_g"], &format!("D of round {number}"));
    }
}
