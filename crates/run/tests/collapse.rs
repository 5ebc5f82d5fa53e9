//! When a run raises an alarm and when it has collapsed, on hand-made rounds.

use fedtvd_core::labels::Statistic;
use fedtvd_core::round::{Balanced, ClientFailure, ClientRecord, RoundRecord, Screened};
use fedtvd_run::collapse::Detector;
use proptest::prelude::*;

fn client(client: u32, norm: f64) -> ClientRecord {
    ClientRecord {
        branch: None,
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
        entered_weight: None,
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

/// A round of four clients with this accuracy on ten classes of the same size, and norms of 1, 1.1, 1.2 and 1.3.
fn round(round: u32, accuracy: f64) -> RoundRecord {
    RoundRecord {
        round,
        accuracy: Some(accuracy),
        loss: Some(2.0 - accuracy),
        chance: Some(0.1),
        classes: Some(10),
        balanced: Some(Balanced { accuracy, classes: 10 }),
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
fn a_result_that_was_discarded_is_an_alarm() {
    let mut lines = rounds([0.3, 0.4, 0.5]);
    let why = "after this round fc.weight would hold inf at 0";
    (lines[1].unchanged, lines[1].discarded) = (Some(why.to_owned()), true);
    let (alarms, verdict) = watched(&lines);
    assert!(alarms.len() == 1 && alarms[0].0 == 2, "{alarms:?}");
    assert!(alarms[0].1.starts_with(&format!("the result was discarded: {why}")), "{alarms:?}");
    assert_eq!(verdict, None);
}

#[test]
fn accuracy_back_at_chance_level_for_five_rounds_is_an_alarm_and_at_the_end_a_collapse() {
    let learned = [0.1, 0.2, 0.3, 0.4, 0.5, 0.5];
    let fallen = |rounds_at_chance: usize, after: &[f64]| {
        let falling = std::iter::repeat_n(0.1, rounds_at_chance);
        watched(&rounds(learned.into_iter().chain(falling).chain(after.iter().copied())))
    };
    // The best five rounds are the last five before the fall: (20 + 30 + 40 + 50 + 50) / 5 = 38 %.
    let why = "balanced accuracy back at chance level (10.0 %) from round 7 on, after 38.0 %";
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
        (line.chance, line.classes, line.balanced) = (None, None, None);
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
    for line in &mut lines {
        line.clients[0].statistic = Statistic::Nothing;
        line.chance = Some(0.1);
    }
    assert_eq!(watched(&lines).1.unwrap(), why, "the share of the most frequent class is all they have");
}

/// The same rounds with clients that disclose only how many samples of their hold-outs were classified correctly.
fn by_counts(mut lines: Vec<RoundRecord>, classes: usize) -> Vec<RoundRecord> {
    for line in &mut lines {
        (line.chance, line.balanced, line.classes) = (None, None, Some(classes));
        (line.median_accuracy, line.median_loss) = (line.accuracy, line.loss);
        line.clients.iter_mut().for_each(|client| client.distance = None);
    }
    lines
}

/// Rounds on samples of which one in 800 belongs to the second of two classes: share of each class that is classified
/// correctly, and loss.
fn rare(results: impl IntoIterator<Item = ([f64; 2], f64)>) -> Vec<RoundRecord> {
    let line = |(number, ([frequent, rare], loss)): (u32, ([f64; 2], f64))| RoundRecord {
        loss: Some(loss),
        chance: Some(799.0 / 800.0),
        classes: Some(2),
        balanced: Some(Balanced { accuracy: (frequent + rare) / 2.0, classes: 2 }),
        ..round(number, (799.0 * frequent + rare) / 800.0)
    };
    (1..).zip(results).map(line).collect()
}

#[test]
fn clients_that_disclose_counts_only_do_not_hide_a_model_back_at_chance_level() {
    let fallen = |low: f64| watched(&by_counts(rounds([0.7; 6].into_iter().chain([low; 5])), 10)).1;
    let why = "the clients' median accuracy back at chance level (10.0 %) from round 7 on, after 70.0 %";
    assert_eq!(fallen(0.1).unwrap(), why);
    assert_eq!(fallen(0.04).unwrap(), why, "skewed clients may have few samples of the predicted class");
    // A tenth of the excess over 10 % is left at 16 %.
    assert_eq!(fallen(0.155).unwrap(), why, "predicting the most frequent class is better than 10 %");
    assert_eq!(fallen(0.165), None);
    assert!(quiet(&by_counts(rounds([0.1; 30]), 10)), "it never learned");
}

#[test]
fn counts_alone_show_a_destroyed_model_by_its_loss_also_on_imbalanced_samples() {
    let destroyed = |accuracy: f64, loss: f64, classes: usize| {
        let mut lines = by_counts(rounds([accuracy; 7]), classes);
        lines.iter_mut().for_each(|line| (line.loss, line.median_loss) = (Some(loss), Some(loss)));
        watched(&lines)
    };
    let (alarms, verdict) = destroyed(0.0988, 3.1e4, 10);
    assert_eq!(verdict.unwrap(), "no better than guessing from round 1 on, with a loss of 3.1e4");
    assert!(alarms[0].1.starts_with("the loss is 3.1e4, 1.3e4 times that of guessing"), "{alarms:?}");
    assert_eq!(alarms.iter().filter(|(_, alarm)| alarm.contains("no better than guessing")).count(), 1);
    // The most frequent of two classes has nine tenths of the samples; 100 ln 2 is 69.3.
    assert_eq!(
        destroyed(0.9, 70.0, 2).1.unwrap(),
        "no better than guessing from round 2 on, with a loss of 70.000"
    );
    assert_eq!(destroyed(0.9, 69.0, 2), (vec![], None));
}

#[test]
fn an_overconfident_model_is_useful_though_its_loss_is_far_above_that_of_guessing() {
    let mut lines = rounds([0.62, 0.66, 0.65, 0.68, 0.63, 0.64, 0.64, 0.66, 0.67, 0.65]);
    lines.iter_mut().for_each(|line| line.loss = Some(300.0));
    assert_eq!(watched(&lines).1, None);
    assert_eq!(watched(&by_counts(lines, 10)).1, None);
}

#[test]
fn one_client_can_neither_invent_nor_hide_a_destroyed_model_with_the_loss_that_it_reports() {
    let mut invented = by_counts(rounds([0.7; 8]), 10);
    invented.iter_mut().for_each(|line| line.loss = Some(1e30));
    assert!(quiet(&invented));
    invented.iter_mut().for_each(|line| line.loss = None);
    assert!(quiet(&invented), "its NaN is not the others'");
    let mut hidden = by_counts(rounds([0.1; 8]), 10);
    hidden.iter_mut().for_each(|line| (line.accuracy, line.median_loss) = (Some(0.9), Some(1e4)));
    assert_eq!(watched(&hidden).1.unwrap(), "no better than guessing from round 1 on, with a loss of 1.0e4");
}

#[test]
fn a_useful_model_of_a_rare_class_has_not_collapsed_though_its_accuracy_is_below_the_share_of_the_other() {
    // From the first round to the last below 799 / 800, with a loss of more than 100 times -ln(799 / 800), which is 0.125.
    let learning = (0..20).map(|round| {
        let frequent = 0.949 * (f64::from(round) / 19.0).powf(0.2);
        ([frequent, 1.0], 1.0 - 0.79 * f64::from(round) / 19.0)
    });
    let lines = rare(learning);
    assert!(lines.iter().all(|line| line.accuracy < line.chance));
    assert!(quiet(&lines));
    assert!(quiet(&by_counts(lines, 2)));
    let slow = [0.003, 0.01, 0.04, 0.13, 0.32, 0.51, 0.86, 0.997].map(|frequent| ([frequent, 0.0], 0.75));
    assert!(quiet(&rare(slow)), "it has not learned yet");
}

#[test]
fn a_model_that_no_longer_finds_the_rare_class_is_back_at_chance_level_though_its_accuracy_rose() {
    let lines = rare([([0.95, 0.9], 0.2); 6].into_iter().chain([([1.0, 0.0], 0.1); 5]));
    assert!(lines[10].accuracy > lines[0].accuracy);
    let why = "balanced accuracy back at chance level (50.0 %) from round 7 on, after 92.5 %";
    assert_eq!(watched(&lines).1.unwrap(), why);
    assert_eq!(watched(&by_counts(lines, 2)).1, None, "counts cannot show it");
}

#[test]
fn a_model_that_never_learned_has_collapsed_if_its_loss_is_far_above_that_of_guessing() {
    let destroyed = |accuracy: f64, loss: f64| {
        let mut lines = rounds([accuracy; 6]);
        lines.iter_mut().for_each(|line| line.loss = Some(loss));
        watched(&lines)
    };
    // 100 ln 10 is 230.3.
    let (alarms, verdict) = destroyed(0.1, 231.0);
    assert_eq!(verdict.unwrap(), "no better than guessing from round 1 on, with a loss of 231.000");
    assert!(alarms[0].1.contains("; no better than guessing from round 1 on, with a loss"), "{alarms:?}");
    assert_eq!(alarms.len(), 5, "the first five rounds are compared with guessing: {alarms:?}");
    // 10 ln 10 is 23.03.
    let (alarms, verdict) = destroyed(0.1, 23.1);
    assert_eq!(verdict.unwrap(), "no better than guessing from round 1 on, with a loss of 23.100");
    assert_eq!(alarms.iter().map(|(round, _)| *round).collect::<Vec<_>>(), [5]);
    assert_eq!(destroyed(0.1, 23.0), (vec![], None));
    assert_eq!(destroyed(0.3, 231.0).1, None, "it is better than guessing");
    let mut spike = rounds([0.1; 6]);
    spike[5].loss = Some(23.1);
    assert_eq!(watched(&spike).1, None, "a single loss of ten times that of guessing");
    // A model that was good and is destroyed in the last round cannot be used.
    let mut lines = rounds([0.5, 0.6, 0.1]);
    lines[2].loss = Some(231.0);
    assert_eq!(watched(&lines).1.unwrap(), "no better than guessing from round 3 on, with a loss of 231.000");
    lines[2].loss = Some(230.0);
    assert_eq!(watched(&lines).1, None, "one such round may pass");
    let mut recovered = rounds([0.1; 7]);
    recovered.iter_mut().take(6).for_each(|line| line.loss = Some(1e4));
    assert_eq!(watched(&recovered).1, None, "the loss is back");
}

#[test]
fn rounds_with_and_without_matrices_are_not_compared_with_each_other() {
    // A model that always predicts the frequent class never learned, though nearly all of the counts are right.
    let mut lines = rare([([1.0, 0.0], 0.05); 20]);
    let counts = by_counts(lines.clone(), 2);
    lines[..10].clone_from_slice(&counts[..10]);
    assert!(quiet(&lines));
}

#[test]
fn samples_of_a_single_class_say_nothing() {
    let mut lines = rounds([1.0; 6].into_iter().chain([0.0; 6]));
    for line in &mut lines {
        (line.chance, line.balanced) = (Some(1.0), None);
    }
    assert!(quiet(&lines));
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
