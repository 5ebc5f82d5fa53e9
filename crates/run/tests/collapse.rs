//! When a run raises an alarm and when it has collapsed, on hand-made rounds.

use fedtvd_core::labels::Statistic;
use fedtvd_core::round::{ClientFailure, ClientRecord, RoundRecord, Screened};
use fedtvd_run::collapse::Detector;
use proptest::prelude::*;

fn client(client: u32, norm: f64) -> ClientRecord {
    ClientRecord {
        client,
        size: 100,
        tvd: None,
        statistic: Statistic::Nothing,
        quality_share: None,
        size_share: None,
        weight: Some(0.25),
        steps: Some(10),
        norm: Some(norm),
        distance: Some(norm),
        screened: None,
        first_loss: None,
        last_loss: None,
        forgot: false,
        failure: None,
    }
}

fn failed(id: u32, failure: ClientFailure) -> ClientRecord {
    let nothing = ClientRecord { weight: None, norm: None, distance: None, ..client(id, 0.0) };
    ClientRecord { failure: Some(failure), ..nothing }
}

fn nan(id: u32) -> ClientRecord {
    failed(id, ClientFailure::Training("the loss became NaN in epoch 0".to_owned()))
}

/// A round of four clients with this accuracy and norms of 1, 1.1, 1.2 and 1.3; chance is 10 %.
fn round(round: u32, accuracy: f64) -> RoundRecord {
    RoundRecord {
        round,
        accuracy: Some(accuracy),
        loss: Some(2.0 - accuracy),
        chance: Some(0.1),
        clients: (0..4).map(|id| client(id, 1.0 + 0.1 * f64::from(id))).collect(),
        ..RoundRecord::default()
    }
}

fn rounds(accuracies: impl IntoIterator<Item = f64>) -> Vec<RoundRecord> {
    (1..).zip(accuracies).map(|(number, accuracy)| round(number, accuracy)).collect()
}

/// The alarms of these rounds, with their rounds, and the verdict after them.
fn watched(lines: &[RoundRecord]) -> (Vec<(u32, String)>, Option<String>) {
    let mut detector = Detector::default();
    let alarms = lines.iter().filter_map(|line| Some((line.round, detector.observe(line)?))).collect();
    (alarms, detector.verdict())
}

fn quiet(lines: &[RoundRecord]) -> bool {
    watched(lines) == (Vec::new(), None)
}

const FAILED: &str = "client 0: training failed: the loss became NaN in epoch 0";

#[test]
fn a_run_that_learns_raises_no_alarm() {
    assert!(quiet(&rounds((0..50).map(|round| 0.1 + 0.01 * f64::from(round)))));
    assert!(quiet(&[]));
}

#[test]
fn a_run_that_never_learned_has_not_collapsed() {
    assert!(quiet(&rounds([0.1])));
    assert!(quiet(&rounds([0.1; 50])));
    // Single lucky rounds are not learning: the mean of five rounds stays below 19 %.
    assert!(quiet(&rounds([0.1, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])));
}

#[test]
fn half_of_the_updates_of_a_round_failing_is_an_alarm_and_fewer_are_counted() {
    let mut lines = rounds([0.3, 0.3]);
    lines[0].clients[3] = nan(3);
    lines[1].clients[0] = nan(0);
    lines[1].clients[1] = nan(1);
    let (alarms, verdict) = watched(&lines);
    assert_eq!(alarms, [(2, format!("2 of 4 updates failed, first: {FAILED}"))]);
    assert_eq!(verdict, None);
    let detector = Detector::of(&lines);
    assert_eq!(
        detector.failed_updates().sentence().unwrap(),
        "3 of 8 updates failed, first: round 1, client 3: training failed: the loss became NaN in epoch 0"
    );
    assert_eq!(detector.alarms(), 1);
}

#[test]
fn more_than_half_of_the_updates_of_the_last_ten_rounds_failing_is_a_collapse() {
    let broken = |broken: std::ops::RangeInclusive<u32>| {
        let mut lines = rounds([0.3; 20]);
        for line in lines.iter_mut().filter(|line| broken.contains(&line.round)) {
            (0..3).for_each(|id| line.clients[id as usize] = nan(id));
        }
        watched(&lines).1
    };
    // 3 of 4 in seven of ten rounds are 21 of 40, in six rounds 18 of 40.
    assert_eq!(
        broken(14..=20).unwrap(),
        format!("21 of 40 updates in the last 10 rounds failed, first: {FAILED}")
    );
    assert_eq!(broken(15..=20), None);
    assert_eq!(broken(1..=10), None, "the last ten rounds are fine");
    let mut only = rounds([0.3]);
    only[0].clients = (0..4).map(nan).collect();
    assert_eq!(
        watched(&only).1.unwrap(),
        format!("4 of 4 updates in the last round failed, first: {FAILED}")
    );
}

#[test]
fn clients_without_an_answer_have_not_failed_live_or_in_a_record() {
    let mut lines = rounds([0.3; 12]);
    for line in &mut lines {
        (0..3).for_each(|id| line.clients[id as usize] = failed(id, ClientFailure::Absent));
    }
    assert!(quiet(&lines));
    let recorded: Vec<RoundRecord> = lines
        .iter()
        .map(|line| serde_json::from_str(&serde_json::to_string(line).unwrap()).unwrap())
        .collect();
    assert!(quiet(&recorded));
    assert_eq!(Detector::of(&recorded).failed_updates().updates, 12);
}

#[test]
fn a_model_that_is_unchanged_in_the_last_ten_rounds_is_a_collapse() {
    let unchanged = |unchanged: std::ops::RangeInclusive<u32>, rounds_done: usize| {
        let mut lines = rounds(vec![0.3; rounds_done]);
        for line in lines.iter_mut().filter(|line| unchanged.contains(&line.round)) {
            line.unchanged = Some("1 of 2 needed updates were accepted".to_owned());
        }
        watched(&lines).1
    };
    let why = "the model was unchanged in the last 10 rounds: 1 of 2 needed updates were accepted";
    assert_eq!(unchanged(11..=20, 20).unwrap(), why);
    assert_eq!(unchanged(12..=20, 20), None);
    assert_eq!(unchanged(11..=19, 20), None);
    assert_eq!(unchanged(1..=3, 3).unwrap(), why.replace("10 rounds", "3 rounds"));
}

#[test]
fn accuracy_back_at_chance_level_for_five_rounds_is_an_alarm_and_at_the_end_a_collapse() {
    let learned = [0.1, 0.2, 0.3, 0.4, 0.5, 0.5];
    let fallen = |rounds_at_chance: usize, after: &[f64]| {
        let falling = std::iter::repeat_n(0.1, rounds_at_chance);
        watched(&rounds(learned.into_iter().chain(falling).chain(after.iter().copied())))
    };
    // The best five rounds are the last five before the fall: (20 + 30 + 40 + 50 + 50) / 5 = 38 %.
    let why = "accuracy back at chance level (10.0 %) from round 7 on, after 38.0 %";
    let farthest = "; farthest from the others: client 3, 1.2 times their median distance";
    assert_eq!(fallen(4, &[]), (vec![], None));
    assert_eq!(fallen(5, &[]), (vec![(11, format!("{why}{farthest}"))], Some(why.to_owned())));
    assert_eq!(fallen(9, &[]).0.len(), 1, "the alarm is raised once");
    assert_eq!(fallen(9, &[]).1.unwrap(), why);
    assert_eq!(fallen(5, &[0.3]).1, None, "it has recovered");
}

#[test]
fn records_of_earlier_versions_have_chance_by_their_number_of_classes() {
    let accuracies = [0.5, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1];
    let mut lines = rounds(accuracies);
    for line in &mut lines {
        line.chance = None;
        line.clients.iter_mut().for_each(|client| (client.norm, client.distance) = (None, None));
    }
    assert!(quiet(&lines), "the number of classes is not known");
    lines.iter_mut().for_each(|line| line.class_accuracy = Some(vec![None; 10]));
    let why = "accuracy back at chance level (10.0 %) from round 6 on, after 50.0 %";
    assert_eq!(watched(&lines), (vec![(10, why.to_owned())], Some(why.to_owned())));
    for line in &mut lines {
        line.class_accuracy = None;
        line.clients[0].statistic = Statistic::Histogram(vec![1; 10]);
    }
    assert_eq!(watched(&lines).1.unwrap(), why);
}

#[test]
fn a_loss_that_is_not_finite_is_an_alarm_and_at_the_end_a_collapse() {
    for broken in [Some(f64::NAN), Some(f64::INFINITY), None] {
        let mut lines = rounds([0.3; 4]);
        lines[1].loss = broken;
        let (alarms, verdict) = watched(&lines);
        assert_eq!(alarms.len(), 1);
        assert!(
            alarms[0].1.starts_with("the loss is not finite; farthest from the others: client 3"),
            "{alarms:?}"
        );
        assert_eq!((alarms[0].0, verdict), (2, None));
        lines[2].loss = broken;
        lines[3].loss = broken;
        assert_eq!(watched(&lines).1.unwrap(), "the loss is not finite from round 2 on");
        assert_eq!(watched(&lines).0.len(), 1, "the alarm is raised once");
    }
    let mut unknown = rounds([0.3; 4]);
    unknown.iter_mut().for_each(|line| (line.accuracy, line.loss) = (None, None));
    assert!(quiet(&unknown), "the model was not evaluated");
}

#[test]
fn a_loss_far_above_the_recent_ones_is_an_alarm() {
    let jump = |loss: f64, usual: f64, before: usize| {
        let mut lines = rounds(vec![0.3; before + 1]);
        lines.iter_mut().for_each(|line| line.loss = Some(usual));
        lines[before].loss = Some(loss);
        watched(&lines)
    };
    let (alarms, verdict) = jump(21.0, 2.0, 5);
    assert!(
        alarms[0].1.starts_with("the loss is 21.000, 10.5 times that of recent rounds; farthest"),
        "{alarms:?}"
    );
    assert_eq!((alarms[0].0, verdict), (6, None));
    assert_eq!(jump(19.0, 2.0, 5).0, []);
    assert_eq!(jump(1.0, 0.01, 5).0, [], "it is still below that of guessing, ln 10");
    // The first rounds are compared with guessing: 100 ln 10 is 230.3.
    assert_eq!(jump(229.0, 2.0, 0).0, []);
    assert!(jump(231.0, 2.0, 0).0[0].1.starts_with("the loss is 231.000, 100.3 times that of guessing"));
}

#[test]
fn a_norm_far_above_the_others_and_the_usual_largest_is_an_alarm_that_names_the_client() {
    let jump = |norm: f64, before: usize| {
        let mut lines = rounds(vec![0.3; before + 1]);
        lines[before].clients[2] = client(2, norm);
        watched(&lines).0
    };
    // The others' median is 1.1, the usual largest norm 1.3.
    assert_eq!(jump(12.9, 6), []);
    assert_eq!(
        jump(13.1, 6),
        [(7, "the update of client 2 has norm 13.100, 11.9 times the median of the others".to_owned())]
    );
    assert_eq!(jump(109.0, 0), [], "the first rounds have nothing to compare with");
    assert_eq!(jump(111.0, 0).len(), 1);
    assert!(jump(3.4e38, 0)[0].1.contains("norm 3.4e38, 3.1e38 times"), "{:?}", jump(3.4e38, 0));
}

#[test]
fn a_median_norm_far_above_the_recent_ones_is_an_alarm() {
    let grown = |factor: f64| {
        let mut lines = rounds([0.3; 6]);
        lines[5].clients.iter_mut().for_each(|client| client.norm = client.norm.map(|norm| factor * norm));
        watched(&lines).0
    };
    assert_eq!(grown(9.9), []);
    assert!(
        grown(10.1)[0]
            .1
            .starts_with("the median norm of the updates is 11.615, 10.1 times that of recent rounds")
    );
}

#[test]
fn the_farthest_client_is_the_one_that_screening_stopped() {
    let mut lines = rounds([0.3]);
    lines[0].loss = None;
    let screened = Screened { part: "weights".to_owned(), norm: 5e9, bound: 2.0, factor: 4e-10 };
    lines[0].clients[1].screened = Some(screened);
    assert_eq!(
        watched(&lines).0[0].1,
        "the loss is not finite; farthest from the others: client 1, with norm 5.0e9"
    );
    lines[0].clients.truncate(2);
    assert_eq!(watched(&lines).0[0].1, "the loss is not finite", "two clients have no majority");
}

#[test]
fn a_detector_that_reads_lines_again_raises_the_same_alarms() {
    let mut lines = rounds([0.1, 0.2, 0.3, 0.4, 0.5, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4]);
    lines[3].loss = Some(f64::NAN);
    lines[7].clients[0] = client(0, 1e30);
    lines[8].clients = (0..4).map(nan).collect();
    lines[9].clients[1].norm = Some(f64::INFINITY);
    assert!(watched(&lines).0.len() >= 4);
    assert_eq!(watched(&lines), watched(&read_back(&lines)));
}

fn read_back(lines: &[RoundRecord]) -> Vec<RoundRecord> {
    let again = |line| {
        let text = serde_json::to_string(line).expect("a record is plain data");
        serde_json::from_str(&text).expect("what is written can be read")
    };
    lines.iter().map(again).collect()
}

#[test]
fn an_update_that_was_rejected_is_named_by_how_far_it_was_beyond_its_bound_live_and_from_a_record() {
    let named = |norm: f64| {
        let mut lines = rounds([0.3]);
        lines[0].loss = None;
        let screened = Screened { part: "control".to_owned(), norm, bound: 6.0, factor: 0.0 };
        let rejected = &mut lines[0].clients[1];
        (rejected.weight, rejected.distance) = (None, None);
        rejected.failure = Some(screened.clone().into());
        rejected.screened = Some(screened);
        assert_eq!(watched(&lines), watched(&read_back(&lines)));
        watched(&lines).0[0].1.clone()
    };
    // A little beyond its bound: 6 / 7 is 0.86.
    assert!(named(7.0).ends_with("farthest from the others: client 3, 1.2 times their median distance"));
    assert!(named(60.0).ends_with("farthest from the others: client 1, with norm 60.000"));
}

proptest! {
    /// Small cohorts of skewed clients: accuracy jumps up and down between rounds, sizes and norms differ.
    #[test]
    fn oscillation_between_rounds_is_no_collapse_and_no_alarm(
        swings in prop::collection::vec((0.0..0.3f64, 0.3..3.0f64), 1..60),
        losses in prop::collection::vec(0.8..4.0f64, 60),
    ) {
        let mut lines = rounds(swings.iter().enumerate().map(|(number, (swing, _))| {
            // It learns from 10 % to 55 %, and falls by up to 30 points in any round, but every third stands out.
            let level = 0.1 + 0.45 * (number as f64 / 30.0).min(1.0);
            if number % 3 == 0 { level.max(0.15) } else { (level - swing).max(0.1) }
        }));
        for (place, line) in lines.iter_mut().enumerate() {
            line.loss = Some(losses[place]);
            line.clients.iter_mut().for_each(|client| client.norm = client.norm.map(|norm| swings[place].1 * norm));
        }
        prop_assert_eq!(watched(&lines), (Vec::new(), None));
    }
}
