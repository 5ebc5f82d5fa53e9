//! Strategies with several models: golden CFL and IFCA, which client is where, and what every such strategy must keep.

use crate::exact::{Exact, Quadratic};
use crate::federation::{
    Federation, SKEWED, Site, bits, local, models, run, skewed, strategy, sums, upload, vector,
};
use crate::vectors::{number, numbers, read, rows, same, same_f32};
use fedtvd_core::labels::Reference;
use fedtvd_core::memory::Memory;
use fedtvd_core::round::{
    BranchRecord, ClientFailure, ClientId, Job, Mode, Offer, Profile, RoundRecord, State, hardened, plan,
    restored,
};
use fedtvd_core::strategy::ALL;
use proptest::prelude::*;
use std::sync::Arc;

/// Clients with these ids and sizes, each with a quadratic loss around its point, and one step of SGD in a round.
fn around(label: &str, clients: &[(ClientId, u64, Vec<f64>)], start: &[f64]) -> Federation {
    let site = |(row, (id, size, _)): (usize, &(ClientId, u64, Vec<f64>))| Site {
        id: *id,
        rows: vec![row as u32; *size as usize],
        counts: vec![*size, 0],
    };
    let sites = clients.iter().enumerate().map(site).collect();
    let rows = clients.iter().map(|(.., point)| (vec![1.0; point.len()], point.clone())).collect();
    let trainer = Box::new(Exact::new(Quadratic { rows }));
    Federation::new(
        run(label, local(1, 1000, 0.5, 0.0)),
        vector(start),
        Reference::uniform(2),
        sites,
        trainer,
    )
}

/// A round in which each client moves its model by a given change.
fn moved(federation: &mut Federation, changes: &[Vec<f64>]) -> RoundRecord {
    let jobs = plan(&federation.run, &federation.state);
    let places: Vec<usize> = jobs.iter().map(|job| place(federation, job)).collect();
    let answer = |(job, place): (&Job, usize)| {
        let base = &job.offer.params.values;
        let values: Vec<f32> =
            base.iter().zip(&changes[place]).map(|(w, d)| (f64::from(*w) + d) as f32).collect();
        (job.client, Ok(upload(job, &values, 1)))
    };
    let answers = jobs.iter().zip(places).map(answer).collect();
    federation.close(&jobs, answers)
}

fn place(federation: &Federation, job: &Job) -> usize {
    federation.sites.iter().position(|site| site.id == job.client).unwrap()
}

/// The clients of each branch.
fn clients(record: &RoundRecord) -> Vec<(u32, Vec<ClientId>)> {
    record.branches.iter().map(|BranchRecord { branch, clients, .. }| (*branch, clients.clone())).collect()
}

const IDS: [ClientId; 5] = [3, 7, 8, 12, 20];

/// The clients of golden `cfl.json`, which `gen_golden_3.py` made with numpy, under ids of their own.
fn golden_cfl(settings: &str) -> (Federation, Vec<Vec<f64>>) {
    let golden = read(include_str!("../golden/cfl.json"));
    let updates = rows(&golden["updates"]);
    let sizes = numbers(&golden["n"]);
    let clients: Vec<_> = IDS.iter().zip(&sizes).map(|(id, n)| (*id, *n as u64, vec![0.0; 3])).collect();
    (around(&format!("cfl:warmup=0:eps1=0.4:eps2=0.8{settings}"), &clients, &[0.0; 3]), updates)
}

#[test]
fn cfl_parts_the_golden_clients_by_their_ids() {
    let golden = read(include_str!("../golden/cfl.json"));
    let (mut federation, updates) = golden_cfl(":gamma_max=0.5");
    let record = moved(&mut federation, &updates);
    // The golden parts [[0, 1, 4], [2, 3]] are places; the clients' ids are others.
    assert_eq!(clients(&record), [(1, vec![3, 7, 20]), (2, vec![8, 12])]);
    assert_eq!(federation.state.children(0), Some([1, 2]));
    assert!(
        models(&federation.state).iter().all(|x| *x == 0.0),
        "both branches start from the cluster's model"
    );
    // In f32: one rounding of each change.
    let within = |got: f64, want: &str| assert!((got - number(&golden[want])).abs() < 1e-7, "{got} {want}");
    let parting = record.clients.iter().map(|client| client.norm.unwrap()).fold(0.0, f64::max);
    within(parting, "max_update_norm");
    let next = moved(&mut federation, &updates);
    assert_eq!(clients(&next), clients(&record));
    // Each branch moved by the mean of its own clients, weighted by size.
    let mean = |places: &[usize], sizes: &[f64]| -> Vec<f32> {
        let sum: f64 = sizes.iter().sum();
        (0..3)
            .map(|i| places.iter().zip(sizes).map(|(k, n)| n / sum * updates[*k][i]).sum::<f64>() as f32)
            .collect()
    };
    let close = |got: &[f32], want: Vec<f32>| {
        assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?} {want:?}");
    };
    close(&federation.state.model(1).unwrap().values, mean(&[0, 1, 4], &[10.0, 20.0, 20.0]));
    close(&federation.state.model(2).unwrap().values, mean(&[2, 3], &[10.0, 20.0]));
    // The first branch keeps the model that it had when it parted.
    assert_eq!(federation.state.params.values, [0.0; 3]);
}

#[test]
fn cfl_parts_only_if_its_mean_change_weighted_by_the_strategy_stands_still_and_some_client_does_not() {
    let golden = read(include_str!("../golden/cfl.json"));
    let parted = |settings: &str| {
        let (mut federation, updates) = golden_cfl("");
        federation.run.strategy = strategy(&format!("cfl{settings}"));
        let record = moved(&mut federation, &updates);
        record.branches.iter().any(|branch| branch.parent == Some(0))
    };
    assert!(parted(":warmup=0:eps1=0.4:eps2=0.8"));
    // The weighted mean has norm 0.3204, the plain one 0.2778: an unweighted test would part.
    assert!(number(&golden["norm_unweighted_mean_update"]) < 0.3 && !parted(":warmup=0:eps1=0.3:eps2=0.8"));
    assert!(parted(":warmup=0:eps1=0.321:eps2=0.8") && !parted(":warmup=0:eps1=0.32:eps2=0.8"));
    // The largest change has norm 1.1045.
    assert!(parted(":warmup=0:eps1=0.4:eps2=1.104") && !parted(":warmup=0:eps1=0.4:eps2=1.105"));
    // sqrt((1 - alpha) / 2) is 0.97028.
    assert!(parted(":warmup=0:eps1=0.4:eps2=0.8:gamma_max=0.97"));
    assert!(!parted(":warmup=0:eps1=0.4:eps2=0.8:gamma_max=0.971"));
    assert!(!parted(":warmup=1:eps1=0.4:eps2=0.8"), "the first round is the warm-up");
    assert!(!parted(":eps1=0.4:eps2=0.8"), "by default it takes 20 rounds");
}

#[test]
fn a_parting_is_recorded_with_its_similarity_and_the_drift_that_the_test_used() {
    let golden = read(include_str!("../golden/cfl.json"));
    let (mut federation, updates) = golden_cfl("");
    // One client more, which is absent: it stays where it was.
    let site = Site { id: 30, rows: vec![0; 10], counts: vec![10, 0] };
    let profile = site.profile(&federation.run.strategy, &federation.state.reference);
    federation.state.enrol(&federation.run, profile).unwrap();
    federation.state.members.insert(30, 0);
    let jobs: Vec<Job> =
        plan(&federation.run, &federation.state).into_iter().filter(|job| job.client != 30).collect();
    let answers = jobs.iter().zip(&updates).map(|(job, change)| {
        let values: Vec<f32> = change.iter().map(|d| *d as f32).collect();
        (job.client, Ok(upload(job, &values, 1)))
    });
    let record = federation.close(&jobs, answers.collect());
    let first = &record.branches[0];
    assert_eq!((first.branch, first.clients.clone()), (0, vec![30]));
    let close =
        |got: f64, want: &str| assert!((got - number(&golden[want])).abs() < 1e-6, "{got} is not {want}");
    close(first.parted.unwrap().similarity, "alpha_cross_max");
    close(first.drift.unwrap().along, "norm_weighted_mean_update");
    assert_eq!(first.parted.unwrap().into, [1, 2]);
    assert!(record.clients.iter().all(|client| client.weight.is_none()), "no update was combined");
}

#[test]
fn cfl_has_the_bits_of_fedavg_until_it_parts() {
    let (mut plain, mut grouped) = (
        skewed(run("fedtvd", local(2, 4, 0.1, 0.9)), &SKEWED),
        skewed(run("cfl+fedtvd", local(2, 4, 0.1, 0.9)), &SKEWED),
    );
    for _ in 0..3 {
        let (one, other) = (plain.round(), grouped.round());
        assert_eq!(bits(plain.model()), bits(grouped.model()));
        assert_eq!(one.drift, other.branches[0].drift);
        assert_eq!(
            one.clients.iter().map(|c| c.weight).collect::<Vec<_>>(),
            other.clients.iter().map(|c| c.weight).collect::<Vec<_>>()
        );
    }
}

/// Four groups around points at right angles, of which the first two parts are the pairs of opposite sides of the plane.
fn four_groups(label: &str) -> Federation {
    let points = [
        vec![4.0, 1.0],
        vec![4.0, 1.2],
        vec![4.0, -1.0],
        vec![4.0, -1.2],
        vec![-4.0, 1.0],
        vec![-4.0, 1.2],
        vec![-4.0, -1.0],
        vec![-4.0, -1.2],
    ];
    let clients: Vec<_> =
        points.into_iter().zip([2u32, 5, 6, 9, 11, 14, 17, 40]).map(|(point, id)| (id, 10, point)).collect();
    around(label, &clients, &[0.0, 0.0])
}

const PARTING: &str = "cfl:warmup=0:eps1=0.2:eps2=0.3";

#[test]
fn children_partition_their_parents_clients_and_part_again_until_each_group_has_its_model() {
    let mut federation = four_groups(PARTING);
    let mut last = federation.round();
    for _ in 0..20 {
        last = federation.round();
        let mut all: Vec<ClientId> = last.branches.iter().flat_map(|branch| branch.clients.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, [2, 5, 6, 9, 11, 14, 17, 40]);
        assert_eq!(restored::check(&federation.run, &federation.state), Ok(()));
    }
    let mut groups: Vec<Vec<ClientId>> = last.branches.iter().map(|branch| branch.clients.clone()).collect();
    groups.sort();
    assert_eq!(groups, [vec![2, 5], vec![6, 9], vec![11, 14], vec![17, 40]]);
    // The tree: 0 parted into 1 and 2, and each of them again.
    let parents: Vec<_> = (0..7).map(|branch| federation.state.parent(branch)).collect();
    assert_eq!(parents[..3], [None, Some(0), Some(0)]);
    assert!(federation.state.children(1).is_some() && federation.state.children(2).is_some());
}

#[test]
fn a_client_that_joins_late_walks_down_the_tree_to_the_branch_of_its_group() {
    let mut federation = four_groups(PARTING);
    for _ in 0..20 {
        federation.round();
    }
    // Around (-4, 1.1), like clients 11 and 14.
    let site = Site { id: 1, rows: vec![8; 10], counts: vec![10, 0] };
    let profile = site.profile(&federation.run.strategy, &federation.state.reference);
    federation.state.enrol(&federation.run, profile).unwrap();
    let group = federation.state.branch_of(11);
    let parent = federation.state.parent(group).unwrap();
    let mut path = Vec::new();
    for _ in 0..3 {
        let jobs = plan(&federation.run, &federation.state);
        let before = models(&federation.state);
        let answers = jobs.iter().map(|job| {
            // Half a step from where it is towards its point; the others stay where they are.
            let base = &job.offer.params.values;
            let values = match job.client {
                1 => vec![base[0] + (-4.0 - base[0]) / 2.0, base[1] + (1.1 - base[1]) / 2.0],
                _ => base.clone(),
            };
            (job.client, Ok(upload(job, &values, 1)))
        });
        let record = federation.close(&jobs, answers.collect());
        let own = &record.clients[0];
        assert_eq!(own.client, 1);
        path.push((own.branch, own.weight.is_some()));
        if own.weight.is_none() {
            assert_eq!(
                bits(&models(&federation.state)),
                bits(&before),
                "a client on its way changes no model"
            );
        }
    }
    assert_eq!(path, [(Some(0), false), (Some(parent), false), (Some(group), true)]);
}

#[test]
fn cosines_know_trainable_tensors_only() {
    let mut federation = skewed(run("cfl:warmup=0:eps1=1000:eps2=0", local(1, 4, 0.1, 0.0)), &SKEWED);
    let jobs = plan(&federation.run, &federation.state);
    let answers = jobs.iter().map(|job| {
        let mut values = job.offer.params.values.clone();
        let trainable = job.offer.params.layout.trainable();
        // Even clients against odd ones in the weights; the first two against the others in the buffers.
        values[0] += if job.client % 2 == 0 { 1.0 } else { -1.0 };
        values[1] += 0.01 * job.client as f32;
        values[trainable..].iter_mut().for_each(|x| *x += if job.client < 2 { 100.0 } else { 900.0 });
        (job.client, Ok(upload(job, &values, 1)))
    });
    let record = federation.close(&jobs, answers.collect());
    assert_eq!(clients(&record), [(1, vec![0, 2, 4]), (2, vec![1, 3])]);
}

#[test]
fn after_a_parting_each_branch_has_the_bits_of_a_run_of_its_clients_alone() {
    let label = "cfl:warmup=0:eps1=0.2:eps2=0.3+fedavgm+fedtvd";
    let mut federation = four_groups(label);
    federation.round();
    federation.round();
    let branches = federation.state.branch_count();
    assert!(branches > 1);
    let started = federation.state.clone();
    federation.run.strategy = strategy("cfl:warmup=1000+fedavgm+fedtvd");
    for _ in 0..3 {
        federation.round();
    }
    for branch in (0..branches).filter(|branch| started.children(*branch).is_none()) {
        let own = &started.branches[branch as usize - 1];
        let mut alone = four_groups("fedavgm+fedtvd");
        alone.state = State {
            params: Arc::clone(&own.params),
            weighting: own.weighting.clone(),
            combining: own.combining.clone(),
            server: own.server.clone(),
            branches: Vec::new(),
            members: Default::default(),
            ..started.clone()
        };
        alone.state.roster.retain(|profile| started.branch_of(profile.client) == branch);
        for _ in 0..3 {
            alone.round();
        }
        assert_eq!(bits(&federation.state.model(branch).unwrap().values), bits(alone.model()), "{branch}");
    }
}

/// The clients of golden `ifca.json`, which `gen_golden_3.py` made with numpy.
fn golden_ifca() -> (Federation, serde_json::Value) {
    let golden = read(include_str!("../golden/ifca.json"));
    let (points, sizes, theta) = (rows(&golden["b"]), numbers(&golden["n"]), rows(&golden["theta"]));
    let clients: Vec<_> =
        (0..).zip(points).zip(sizes).map(|((id, point), n)| (id, n as u64, point)).collect();
    let mut federation = around("ifca", &clients, &theta[0]);
    federation.state.branches[0].params = Arc::new(vector(&theta[1]));
    (federation, golden)
}

#[test]
fn ifca_makes_the_golden_step() {
    let (mut federation, golden) = golden_ifca();
    let record = federation.round();
    let chosen: Vec<f64> = record.clients.iter().map(|client| f64::from(client.branch.unwrap())).collect();
    same(&chosen, &golden["assignment"], "assignment");
    for (branch, want) in (0..).zip(golden["theta_new"].as_array().unwrap()) {
        same_f32(&federation.state.model(branch).unwrap().values, want, "theta_new");
    }
    assert_eq!(clients(&record), [(0, vec![0, 2]), (1, vec![1, 3])]);
}

#[test]
fn a_model_that_nobody_chose_stays_as_it_is_and_weights_are_those_within_each_model() {
    let (mut federation, _) = golden_ifca();
    federation.state.branches[0].params = Arc::new(vector(&[1000.0, -1000.0]));
    let before = bits(&federation.state.model(1).unwrap().values);
    let record = federation.round();
    assert_eq!(clients(&record), [(0, vec![0, 1, 2, 3]), (1, vec![])]);
    assert_eq!(bits(&federation.state.model(1).unwrap().values), before);
    assert_eq!((record.unchanged, record.branches[1].unchanged.clone()), (None, None));
    let mut mixed = skewed(run("ifca:models=6+fedtvd:lambda=0.5", local(1, 4, 0.1, 0.0)), &SKEWED);
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let record = mixed.round();
        for BranchRecord { branch, .. } in &record.branches {
            let here = || record.clients.iter().filter(|client| client.branch == Some(*branch));
            let profiles: Vec<&Profile> =
                here().filter_map(|client| mixed.state.profile(client.client)).collect();
            sizes.push(profiles.len());
            if profiles.is_empty() {
                continue;
            }
            let weighting = mixed.run.strategy.weighting.as_ref();
            let shares = hardened::shares(
                weighting,
                Mode::Paper,
                &profiles,
                &mixed.state.reference,
                &mut Memory::default(),
            );
            assert_eq!(here().map(|client| client.weight.unwrap()).collect::<Vec<_>>(), shares.weight);
        }
        assert!(sums(&record, |client| client.weight).iter().all(|sum| (sum - 1.0).abs() < 1e-14));
    }
    assert!(sizes.iter().any(|size| (1..5).contains(size)), "the clients chose different models");
}

#[test]
fn an_update_for_a_model_that_its_job_did_not_bring_is_rejected() {
    for (label, named, offered) in
        [("fedavg", 1, "branch 0"), ("cfl", 1, "branch 0"), ("ifca:models=3", 3, "branches 0 to 2")]
    {
        let mut federation = skewed(run(label, local(1, 4, 0.1, 0.0)), &SKEWED);
        let jobs = plan(&federation.run, &federation.state);
        let mut answers = federation.answers(&jobs);
        answers[2].1.as_mut().unwrap().report.branch = named;
        let record = federation.close(&jobs, answers);
        let why = record.clients[2].failure.as_ref().unwrap().to_string();
        assert_eq!(why, format!("the update is for the model of branch {named}; its job brought {offered}"));
    }
}

#[test]
fn a_client_refuses_a_job_with_another_number_of_models_than_its_strategy_uses() {
    for (label, others) in [("fedavg", 1), ("cfl", 1), ("ifca", 0), ("ifca", 2)] {
        let mut federation = skewed(run(label, local(1, 4, 0.1, 0.0)), &SKEWED);
        let mut job = plan(&federation.run, &federation.state).remove(0);
        let others = vec![Arc::clone(&federation.state.params); others];
        job.offer = Arc::new(Offer { others, ..Offer::clone(&job.offer) });
        let (_, answer) = federation.answers(&[job]).remove(0);
        let Err(ClientFailure::BadJob(why)) = answer else { panic!("{label}: {answer:?}") };
        assert!(why.contains("models from branch 0 on"), "{why}");
    }
}

#[test]
fn several_models_leave_no_trace_in_the_bytes_of_strategies_with_one() {
    for spec in ALL {
        let mut federation = skewed(run(spec.name, local(1, 4, 0.1, 0.0)), &SKEWED);
        let jobs = plan(&federation.run, &federation.state);
        let sent = federation.answers(&jobs).remove(0).1.unwrap().to_bytes();
        federation.round();
        let traces = |bytes: &[u8]| {
            ["\\\"branch", "\\\"others", "\\\"members", "branch/", "other/"]
                .iter()
                .any(|word| String::from_utf8_lossy(bytes).contains(word))
        };
        let found = [traces(&jobs[0].to_bytes()), traces(&federation.state.to_bytes()), traces(&sent)];
        let grouping = federation.run.strategy.grouping.is_some();
        assert!(found == [false; 3] || grouping, "{}: {found:?}", spec.name);
        assert_eq!(found[1], grouping, "{}: the state knows who is where", spec.name);
    }
}

#[test]
fn strategies_that_sum_over_all_clients_refuse_several_models() {
    for grouped in ALL.iter().filter(|spec| strategy(spec.name).grouping.is_some()) {
        for other in ALL.iter().filter(|spec| strategy(spec.name).needs_roster()) {
            let label = format!("{}+{}", grouped.name, other.name);
            let refusal = fedtvd_core::rules::notation::strategy(&label, []).unwrap_err().to_string();
            assert!(refusal.contains("which clients share a model"), "{refusal}");
        }
    }
}

#[test]
fn a_tree_that_no_rounds_could_have_left_is_refused() {
    let mut federation = four_groups(PARTING);
    for _ in 0..8 {
        federation.round();
    }
    let refusal = |damage: &dyn Fn(&mut State)| {
        let mut state = federation.state.clone();
        damage(&mut state);
        restored::check(&federation.run, &state).unwrap_err().to_string()
    };
    assert!(refusal(&|state| state.branches[0].parent = None).contains("models cannot have come from"));
    assert!(refusal(&|state| state.branches[0].parent = Some(7)).contains("models cannot have come from"));
    assert!(refusal(&|state| drop(state.branches.pop())).contains("models cannot have come from"));
    let count = federation.state.branch_count();
    let beyond = |state: &mut State| _ = state.members.insert(5, count);
    assert!(refusal(&beyond).contains("client 5 is in branch"));
    let nan = |state: &mut State| Arc::make_mut(&mut state.branches[1].params).values[0] = f32::NAN;
    assert!(refusal(&nan).contains("not finite"));
}

proptest! {
    #[test]
    fn states_of_trees_come_back_from_their_bytes_whatever_the_partings(rounds in 1..12usize, eps1 in 0.05..0.5f64) {
        let mut federation = four_groups(&format!("cfl:warmup=0:eps1={eps1}:eps2=0.3+fedadam"));
        for _ in 0..rounds {
            federation.round();
        }
        let bytes = federation.state.to_bytes();
        let again = State::from_bytes(&bytes, &federation.layout).unwrap();
        prop_assert_eq!(&again, &federation.state);
        prop_assert_eq!(again.to_bytes(), bytes);
    }
}
