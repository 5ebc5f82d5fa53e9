//! What a report makes of runs.

mod runs;

use fedtvd_lab::collection::Collection;
use fedtvd_lab::record::{Record, Unfinished};
use fedtvd_lab::report::{Report, Request};
use fedtvd_lab::summary::{Deviation, Question};
use runs::run;

fn question() -> Question {
    Question { baseline: "fedavg".to_owned(), ..Question::default() }
}

fn report_with(records: Vec<Record>, question: Question) -> Report {
    let request = Request { question, without_timing: true, ..Request::default() };
    Report::new(Collection::of(records, Vec::new(), 0), &request)
}

fn report(records: Vec<Record>) -> Report {
    report_with(records, question())
}

/// Two strategies at two alphas, two seeds each.
fn grid() -> Vec<Record> {
    let mut records = Vec::new();
    for alpha in ["split.alpha=0.5", "split.alpha=0.1"] {
        for seed in [2, 1] {
            records.push(run("fedtvd", seed, &[0.3, 0.5 + 0.1 * seed as f64], &[alpha]));
            records.push(run("fedavg", seed, &[0.2, 0.4 + 0.1 * seed as f64], &[alpha]));
        }
    }
    records
}

#[test]
fn runs_that_differ_in_strategy_and_seed_alone_are_one_setting() {
    let report = report(grid());
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    assert_eq!(titles, ["split.alpha = 0.1", "split.alpha = 0.5"]);
    let labels: Vec<&str> = report.parts[0].rows.iter().map(|row| row.line.strategy.as_str()).collect();
    assert_eq!(labels, ["fedavg", "fedtvd"]);
    assert_eq!(report.parts[0].setting.seeds(), [1, 2]);
}

#[test]
fn settings_stand_in_the_order_of_their_numbers() {
    let alphas = ["split.alpha=10", "split.alpha=0.5", "split.alpha=1", "split.kind=iid"];
    let report = report(alphas.iter().map(|alpha| run("fedavg", 1, &[0.5], &[alpha])).collect());
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    let dirichlet = |alpha: &str| format!("split.kind = dirichlet, split.alpha = {alpha}");
    assert_eq!(titles[..3], [dirichlet("0.5"), dirichlet("1"), dirichlet("10")]);
    assert_eq!(titles[3], "split.kind = iid");
}

#[test]
fn a_key_that_has_no_influence_divides_nothing() {
    let alike = ["split.alpha=0.1", "split.alpha=1"]
        .map(|alpha| run("fedavg", 1, &[0.5], &["split.kind=iid", alpha]))
        .to_vec();
    let report = report(alike);
    assert_eq!((report.parts.len(), report.parts[0].rows[0].seeds.len()), (1, 1));
}

#[test]
fn a_report_without_timing_does_not_depend_on_where_when_or_in_which_order_runs_were_made() {
    let mut moved = grid();
    moved.reverse();
    for record in &mut moved {
        record.summary.directory = "elsewhere".to_owned();
        record.summary.seconds = 77.0;
        record.manifest.fingerprint.architecture = "other".to_owned();
    }
    assert_eq!(report(grid()).files(), report(moved).files());
}

#[test]
fn timing_stands_in_a_section_of_its_own_or_nowhere() {
    let request = Request { question: question(), ..Request::default() };
    let with = Report::new(Collection::of(grid(), Vec::new(), 0), &request).files();
    let without = report(grid()).files();
    let text =
        |files: &[(String, String)], name: &str| files.iter().find(|(own, _)| own == name).unwrap().1.clone();
    for name in ["report.md", "report.html"] {
        assert!(text(&with, name).contains("Timing") && !text(&without, name).contains("Timing"), "{name}");
    }
}

#[test]
fn a_run_that_occurs_twice_counts_once() {
    let same = [run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.5], &["name=\"again\""])].to_vec();
    let once = report(same);
    assert_eq!(
        (once.parts[0].rows[0].seeds.as_slice(), once.parts[0].setting.notes.len()),
        ([1].as_slice(), 0)
    );
    let other = report([run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.6], &[])].to_vec());
    assert!(
        other.parts[0].setting.notes[0].contains("fedavg with seed 1 was run twice"),
        "{:?}",
        other.parts[0].setting.notes
    );
}

#[test]
fn of_the_same_run_with_and_without_details_the_one_with_details_counts() {
    for turned in [false, true] {
        let mut records =
            vec![run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.5], &["evaluation.details=true"])];
        if turned {
            records.reverse();
        }
        assert_eq!(report(records).parts[0].rows[0].worst_decile, Some(0.2));
    }
}

#[test]
fn different_splits_of_a_seed_are_named() {
    let mut records = vec![run("fedavg", 7, &[0.5], &[]), run("fedtvd", 7, &[0.5], &[])];
    records[1].manifest.split_hash = "another".to_owned();
    let report = report(records);
    assert!(
        report.parts[0].setting.notes[0].starts_with("The runs with seed 7 do not all have the same split")
    );
    assert!(!report.parts[0].heading.contains("same split"), "{}", report.parts[0].heading);
}

#[test]
fn differences_are_paired_over_the_seeds_that_both_have() {
    let records = vec![
        run("fedavg", 1, &[0.5, 0.6], &[]),
        run("fedavg", 2, &[0.1, 0.2], &[]),
        run("fedavg", 4, &[0.3, 0.4], &[]),
        run("fedtvd", 1, &[0.6, 0.7], &[]),
        run("fedtvd", 2, &[0.2, 0.3], &[]),
        run("fedtvd", 3, &[0.9, 0.9], &[]),
    ];
    let report = report(records);
    let [first, second] = report.parts[0].rows.as_slice() else { panic!("two rows") };
    assert_eq!((first.line.difference, first.line.wins, first.pairs), (None, None, None));
    // Every round of every shared seed is 0.1 better, so the interval has no width.
    let [low, high] = [second.line.low.unwrap(), second.line.high.unwrap()];
    assert!((low - 0.1).abs() < 1e-12 && (high - 0.1).abs() < 1e-12, "{low} {high}");
    assert_eq!(
        (second.line.wins, second.pairs, second.seeds.len(), second.line.p),
        (Some(2), Some(2), 3, None)
    );
    // fedavg ends at 0.35 on average; its mean curve is 0.3, 0.4, that of fedtvd 0.57, 0.63.
    assert_eq!((first.line.rounds_to_target, second.line.rounds_to_target), (Some(2), Some(1)));
}

#[test]
fn a_target_can_be_set() {
    let question = Question { target: Some(0.6), ..question() };
    let rows = &report_with(grid(), question).parts[0].rows;
    // Mean curves: fedavg 0.2, 0.55; fedtvd 0.3, 0.65.
    assert_eq!((rows[0].line.rounds_to_target, rows[1].line.rounds_to_target), (None, Some(2)));
}

#[test]
fn both_deviations_are_those_of_the_golden_file() {
    let golden: serde_json::Value =
        serde_json::from_str(include_str!("golden/metric_last_rounds.json")).unwrap();
    let last = golden["L"].as_u64().unwrap() as usize;
    let records = || -> Vec<Record> {
        let seeds = golden["acc"].as_array().unwrap().iter();
        let curves = seeds
            .map(|curve| curve.as_array().unwrap().iter().map(|a| a.as_f64().unwrap()).collect::<Vec<_>>());
        // The golden file's last rounds are fewer than ours, so the run has no others.
        curves.zip(1..).map(|(curve, seed)| run("fedavg", seed, &curve[curve.len() - last..], &[])).collect()
    };
    for (deviation, mean, std) in [
        (Deviation::Seeds, "def_A_per_seed_mean_then_std", "std_ddof1"),
        (Deviation::Rounds, "def_B_fedeasy_analysis_py", "std"),
    ] {
        let line = &report_with(records(), Question { deviation, ..question() }).parts[0].rows[0].line;
        assert!((line.mean - golden[mean]["mean"].as_f64().unwrap()).abs() < 1e-12, "{}", line.mean);
        assert!((line.std.unwrap() - golden[mean][std].as_f64().unwrap()).abs() < 1e-12, "{:?}", line.std);
    }
}

#[test]
fn from_six_seeds_on_there_are_a_bootstrap_and_a_corrected_test() {
    let many = |count: u64| {
        let of = |seed: u64| {
            let noise = 0.01 * (seed % 3) as f64;
            vec![
                run("fedavg", seed, &[0.5], &[]),
                run("uniform", seed, &[0.5 + noise - 0.005], &[]),
                run("fedtvd", seed, &[0.6 + noise], &[]),
            ]
        };
        report((1..=count).flat_map(of).collect())
    };
    let five = &many(5).parts[0];
    assert!(five.rows.iter().all(|row| row.p_holm.is_none() && row.bootstrap_low.is_none()));
    let six = &many(6).parts[0];
    let [_, uniform, fedtvd] = six.rows.as_slice() else { panic!("three rows") };
    // The smaller of two p-values counts twice.
    assert!((fedtvd.p_holm.unwrap() / fedtvd.line.p.unwrap() - 2.0).abs() < 1e-12);
    assert_eq!(uniform.p_holm, uniform.line.p);
    assert!(fedtvd.bootstrap_low.unwrap() > 0.09 && fedtvd.bootstrap_high.unwrap() < 0.13);
    assert_eq!(
        six.verdict,
        "fedtvd (+11.0 points) is better than fedavg; no difference between fedavg and uniform can be told at 6 seeds."
    );
}

#[test]
fn the_verdict_says_when_nothing_can_be_told() {
    let one = report(vec![run("fedavg", 1, &[0.5], &[]), run("fedtvd", 1, &[0.9], &[])]);
    assert_eq!(one.verdict, "One seed tells no strategies apart.");
    let alone = report(vec![run("fedavg", 1, &[0.5], &[])]);
    assert_eq!(alone.verdict, "fedavg comes to 50.0 % over 1 seed; there is nothing to compare it with.");
    let few = (1..=3).flat_map(|seed| {
        [run("fedavg", seed, &[0.5], &[]), run("fedtvd", seed, &[0.6 + 0.001 * seed as f64], &[])]
    });
    assert_eq!(report(few.collect()).verdict, "fedtvd (+10.2 points) is better than fedavg at only 3 seeds.");
    let noisy = [(1, 0.5), (2, 0.6), (3, 0.4)].into_iter();
    let noisy =
        noisy.flat_map(|(seed, a)| [run("fedavg", seed, &[0.5], &[]), run("fedtvd", seed, &[a], &[])]);
    assert_eq!(
        report(noisy.collect()).verdict,
        "No difference between fedavg and fedtvd can be told at only 3 seeds."
    );
}

#[test]
fn several_settings_have_one_sentence_and_one_table_that_says_what_was_not_run() {
    let mut records = grid();
    records.push(run("uniform", 1, &[0.1, 0.1], &["split.alpha=0.5"]));
    let report = report(records);
    assert_eq!(report.verdict, "Against fedavg in 2 settings: uniform undecided in 1; fedtvd better in 2.");
    let files = report.files();
    let text = |name: &str| files.iter().find(|(own, _)| own == name).unwrap().1.as_str();
    assert!(text("report.md").contains("| uniform  |           not run |"), "{}", text("report.md"));
    assert!(text("table.tex").contains("strategy & split.alpha = 0.1 & split.alpha = 0.5 \\\\"));
    assert!(text("table.tex").contains("\\textbf{47.50 $\\pm$ 3.54}"), "{}", text("table.tex"));
}

#[test]
fn curves_have_a_line_per_run_and_a_column_per_round() {
    let files =
        report(vec![run("fedavg", 1, &[0.25, 0.5], &[]), run("fedtvd", 1, &[0.125, 0.75], &[])]).files();
    let curves = &files.iter().find(|(name, _)| name == "curves.csv").unwrap().1;
    assert_eq!(curves, "setting,strategy,seed,1,2\n,fedavg,1,0.25,0.5\n,fedtvd,1,0.125,0.75\n");
}

#[test]
fn the_page_loads_nothing_and_names_no_place() {
    let files = report(grid()).files();
    let page = &files.iter().find(|(name, _)| name == "report.html").unwrap().1;
    assert!(!page.contains("http") && !page.contains("place of") && page.contains("<polyline"));
    assert_eq!(page.matches("<section").count(), 2);
    let kinds = ["curves", "bubbles"].map(|kind| page.matches(&format!("class=\"{kind}\"")).count());
    // Accuracy and effective clients, and the bubbles, in each of two settings.
    assert_eq!(kinds, [4, 2]);
    for (name, text) in files.iter().filter(|(name, _)| name.starts_with("figures/")) {
        assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"), "{name}");
    }
}

#[test]
fn what_cannot_be_drawn_is_named_with_the_reason() {
    let part = &report(vec![run("fedavg", 1, &[0.5], &[])]).parts[0];
    assert!(part.missing.iter().any(|why| why.contains("evaluation.details=true")), "{:?}", part.missing);
    assert!(part.missing.iter().any(|why| why.contains("drift")), "{:?}", part.missing);
    let told = &report(vec![run("fedavg", 1, &[0.5], &["evaluation.details=true"])]).parts[0];
    assert!(told.figures.iter().any(|figure| figure.name == "classes"));
}

#[test]
fn accuracy_over_clients_on_their_own_labels_stands_in_the_table_with_its_spread_and_its_worst_tenth() {
    let report = report(vec![run("fedavg", 1, &[0.5, 0.7], &["evaluation.details=true"])]);
    let row = &report.parts[0].rows[0];
    assert_eq!((row.client_mean, row.client_deviation, row.worst_decile), (Some(0.6), Some(0.1), Some(0.2)));
    let files = report.files();
    let text = &files.iter().find(|(name, _)| name == "report.md").unwrap().1;
    let heads: Vec<&str> =
        text.lines().find(|line| line.starts_with("| strategy")).unwrap().split('|').collect();
    let place = |head: &str| heads.iter().position(|cell| cell.trim() == head);
    assert_eq!(place("own").map(|place| place + 1), place("spread"), "{heads:?}");
}

#[test]
fn unfinished_runs_are_named_and_left_out() {
    let left = Unfinished { strategy: "fedtvd".to_owned(), seed: 3, done: 12, rounds: 50 };
    let collection = Collection::of(vec![run("fedavg", 1, &[0.5], &[])], vec![left], 0);
    let report = Report::new(collection, &Request { question: question(), ..Request::default() });
    assert_eq!(report.notes, ["Left out because unfinished: fedtvd with seed 3 (12 of 50 rounds)."]);
}

#[test]
fn a_hardened_run_beside_a_plain_one_is_another_strategy_and_its_command_says_so() {
    let report =
        report(vec![run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.6], &["strategy.mode=hardened"])]);
    let part = &report.parts[0];
    assert_eq!(report.labels, ["fedavg", "fedavg (hardened)"]);
    assert_eq!(
        part.commands,
        [
            "fedtvd compare --strategies fedavg --seeds 1",
            "fedtvd compare --strategies fedavg --seeds 1 --set strategy.mode=hardened"
        ]
    );
}

#[test]
fn strategies_can_be_chosen_and_those_that_no_run_has_are_refused() {
    let mut collection = Collection::of(grid(), Vec::new(), 0);
    let refusal = collection.keep(&["fedprox".to_owned()]).unwrap_err().to_string();
    assert_eq!(refusal, "no run has the strategy fedprox; there are fedavg, fedtvd");
    collection.keep(&["fedtvd".to_owned()]).unwrap();
    assert_eq!(collection.labels(), ["fedtvd"]);
}

#[test]
fn no_file_of_a_report_has_the_name_of_another() {
    let correlated = |correlation: &str| {
        run("fedavg", 1, &[0.5], &["split.kind=correlated", &format!("split.correlation={correlation}")])
    };
    let signs = report(vec![correlated("-0.8"), correlated("0.8")]);
    // Neither has a letter that a file's name keeps.
    let folders =
        report(["data.set=/a b", "data.set=/a-b"].map(|set| run("fedavg", 1, &[0.5], &[set])).to_vec());
    for report in [signs, folders] {
        let mut names: Vec<String> = report.files().into_iter().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
    }
}

#[test]
fn the_bubbles_have_a_button_for_each_strategy_that_they_know() {
    // No seed is shared by all: the first strategy's is drawn, which uniform does not have.
    let runs = [("fedavg", 1), ("fedtvd", 1), ("uniform", 2)];
    let files = report(runs.map(|(name, seed)| run(name, seed, &[0.5], &[])).to_vec()).files();
    let page = &files.iter().find(|(name, _)| name == "report.html").unwrap().1;
    let buttons = page.matches("data-column=").count();
    let weights = page.split("data-w=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!((buttons, weights.split(' ').count()), (2, 2), "{weights}");
    assert!(page.contains("data-column=\"1\" data-s=\"2\""), "the second button is fedtvd's");
}

#[test]
fn a_seed_that_is_set_in_one_setting_alone_tells_them_apart() {
    let report = report(vec![run("fedavg", 1, &[0.5], &[]), run("fedavg", 1, &[0.6], &["split.seed=7"])]);
    let titles: Vec<&str> = report.parts.iter().map(|part| part.setting.title.as_str()).collect();
    assert_eq!(titles, ["split.seed = 7", "split.seed follows seed"]);
}

#[test]
fn more_comparisons_ask_for_more_also_below_six_seeds() {
    let of = |others: &[&str]| {
        let runs = [(1, 0.03), (2, 0.05), (3, 0.04), (4, 0.01)].into_iter().flat_map(|(seed, better)| {
            let mut runs = vec![run("fedavg", seed, &[0.5], &[]), run("fedtvd", seed, &[0.5 + better], &[])];
            // As much better as worse.
            let noise = if seed % 2 == 0 { 0.48 } else { 0.52 };
            runs.extend(others.iter().map(|name| run(name, seed, &[noise], &[])));
            runs
        });
        report(runs.collect())
    };
    // t = 0.0325 / (0.0171 / 2) = 3.81 with 3 degrees of freedom: p = 0.032 alone, 0.095 as one of three.
    assert!(of(&[]).verdict.contains("is better than fedavg at only 4 seeds"), "{}", of(&[]).verdict);
    let three = of(&["uniform", "fedprox"]);
    assert!(three.verdict.starts_with("No difference between fedavg and fedtvd"), "{}", three.verdict);
    let row = three.parts[0].rows.iter().find(|row| row.line.strategy == "fedtvd").unwrap();
    assert!(row.line.low.unwrap() > 0.0 && row.line.p.is_none() && row.p_holm.is_none());
}

#[test]
fn strategies_with_other_seeds_are_named_counted_and_not_ranked() {
    let mut records: Vec<Record> = (1..=4)
        .flat_map(|seed| {
            let noise = 0.01 * seed as f64;
            [run("fedavg", seed, &[0.5 + noise], &[]), run("uniform", seed, &[0.48 + 2.0 * noise], &[])]
        })
        .collect();
    let all = report(records.clone());
    assert!(all.parts[0].table.columns[0].cells.iter().all(|cell| cell.rank.is_some()));
    assert!(all.parts[0].setting.notes.is_empty());
    records.push(run("fedtvd", 1, &[0.60], &[]));
    records.push(run("fedtvd", 2, &[0.62], &[]));
    let part = &report(records).parts[0];
    assert_eq!(
        part.setting.notes,
        [
            "fedtvd has 2 of 4 seeds (1, 2): its accuracy is over these alone, a difference over the seeds that both have."
        ]
    );
    let texts: Vec<&str> = part.table.columns[0].cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts, ["52.50 ± 1.29 (4)", "53.00 ± 2.58 (4)", "61.00 ± 1.41 (2)"]);
    assert!(part.table.columns[0].cells.iter().all(|cell| cell.rank.is_none()));
    assert!(part.verdict.ends_with("can be told at only 2 to 4 seeds."), "{}", part.verdict);
    // Fewer seeds are no other split.
    assert!(
        part.heading.contains("2 to 4 of 4 seeds") && part.heading.contains("same split"),
        "{}",
        part.heading
    );
}

#[test]
fn captions_tell_the_target_as_people_write_it_and_the_deviation_that_was_asked_for() {
    let about = |question: Question| {
        let columns = report_with(grid(), question).parts.remove(0).table.columns;
        let of = |head: &str| columns.iter().find(|column| column.head == head).unwrap().about.clone();
        (of("rounds"), of("accuracy"))
    };
    let (rounds, accuracy) =
        about(Question { target: Some(0.57), deviation: Deviation::Rounds, ..question() });
    assert_eq!(rounds, "until the mean curve reaches 57.00 %");
    assert!(accuracy.ends_with("averaged over these rounds"), "{accuracy}");
    assert!(about(question()).1.ends_with("mean and deviation over seeds"));
    let natural = report(vec![run("fedavg", 1, &[0.5], &["split.kind=natural", "cohort.fraction=0.57"])]);
    let heading = &natural.parts[0].heading;
    assert!(heading.contains(" 57 % of the clients per round"), "{heading}");
}

#[test]
fn no_name_breaks_the_lines_and_tables_of_markdown() {
    let path = "data.set=\"a|b\"";
    let mut records = grid();
    records.extend(["fedavg", "fedtvd"].map(|name| run(name, 1, &[0.2, 0.4], &[path])));
    let request = Request { question: question(), ..Request::default() };
    let mut report = Report::new(Collection::of(records, Vec::new(), 0), &request);
    report.name = "mine | *new*\n# yours".to_owned();
    let page = fedtvd_lab::markdown::page(&report);
    assert!(page.starts_with("# mine \\| \\*new\\* # yours\n\n"), "{page}");
    assert!(page.contains("\n## data.set = a\\|b"), "{page}");
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    let tables = page.split("\n\n").filter(|block| block.starts_with('|'));
    for table in tables {
        let counts: Vec<usize> = table.lines().filter(|line| line.starts_with('|')).map(bars).collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}\n{table}");
    }
}
