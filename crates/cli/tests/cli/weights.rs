//! `fedtvd weights` on the command line.

use crate::program::fedtvd;

const PAPER: &str = "30,30,30;20,40,40;10,30,70";

#[test]
fn the_papers_three_clients_have_the_papers_weights() {
    let answer = fedtvd(&["weights", "--counts", PAPER, "--json"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let view: serde_json::Value = serde_json::from_str(&answer.out).expect("--json gives one JSON document");
    let column = |view: &serde_json::Value, name: &str| -> Vec<String> {
        let clients = view["clients"].as_array().expect("clients are a list");
        clients.iter().map(|client| format!("{:.4}", client[name].as_f64().unwrap_or(f64::NAN))).collect()
    };
    // TVD 0, 2/15, 10/33; weights from the golden vectors of the paper's example.
    assert_eq!(column(&view, "tvd"), ["0.0000", "0.1333", "0.3030"]);
    assert_eq!(column(&view, "weight"), ["0.3413", "0.3341", "0.3246"]);
    assert_eq!(column(&view, "quality_share"), ["0.3826", "0.3348", "0.2826"]);
    let beside = view["beside"].as_array().expect("beside is a list");
    assert_eq!([&beside[0]["strategy"], &beside[1]["strategy"]], ["fedavg", "uniform"]);
    assert_eq!(column(&beside[0], "weight"), ["0.3000", "0.3333", "0.3667"]);
    assert!(beside[0]["clients"][0]["quality_share"].is_null());
}

#[test]
fn the_table_reads_well() {
    insta::assert_snapshot!("weights_of_the_paper", fedtvd(&["weights", "--counts", PAPER]).out);
    let hardened =
        ["weights", "--counts", "900,100;10,10;5,15", "--strategy", "fedavg", "--set", "mode=hardened"];
    insta::assert_snapshot!("weights_hardened", fedtvd(&hardened).out);
}

#[test]
fn a_plot_shows_every_client_under_every_strategy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plot = folder.path().join("three.svg").display().to_string();
    let answer = fedtvd(&["weights", "--counts", PAPER, "--plot", &plot]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let drawn = std::fs::read_to_string(&plot).expect("the plot is written");
    // The background, nine bars of labels, nine of weights, three in the legend.
    assert_eq!(drawn.matches("<rect").count(), 1 + 9 + 9 + 3);
    for word in ["\"n = 110, TVD 0.30\"", "\"0.341\"", "\"0.367\"", "\"uniform\""] {
        assert!(drawn.contains(word), "{word}");
    }
    let plot = folder.path().join("three.png").display().to_string();
    assert_eq!(fedtvd(&["weights", "--counts", PAPER, "--plot", &plot]).code, 0);
    assert_eq!(std::fs::read(&plot).expect("the plot is written")[1..4], *b"PNG");
    let refused = fedtvd(&["weights", "--plot", "three.jpg"]);
    let sentence = "fedtvd: --plot three.jpg must end in .svg or .png\n";
    assert_eq!((refused.code, refused.err.as_str()), (2, sentence));
}

#[test]
fn a_parameter_can_be_set_and_lambda_0_is_fedavg() {
    let set = fedtvd(&["weights", "--set", "lambda=0"]).out;
    assert!(set.starts_with("fedtvd:lambda=0\n"), "{set}");
    assert!(set.contains("0.3826  0.3000  0.3000  │ 0.3000"), "{set}");
}

#[test]
fn invalid_requests_exit_with_2_and_say_what_is_valid() {
    let refusals: &[(&[&str], &str)] = &[
        (&["--counts", "-3,4;1,1"], "client 0: \"-3\" is not a count; counts are whole numbers from 0"),
        (&["--counts", "1.5,4"], "client 0: \"1.5\" is not a count; counts are whole numbers from 0"),
        (&["--counts", "1,NaN"], "client 0: \"NaN\" is not a count; counts are whole numbers from 0"),
        (
            &["--counts", "1,2;0,0"],
            "client 1 has no samples: its counts \"0,0\" are all 0; at least one must be above 0",
        ),
        (
            &["--counts", "1,2;"],
            "client 1 of \"1,2;\" has no counts; write counts such as 30,30,30;20,40,40;10,30,70",
        ),
        (
            &["--counts", "1,2;1,2,3"],
            "client 1 has 3 classes and client 0 has 2; all must have the same number",
        ),
        (&["--counts", "5"], "client 0 has 1 class; there must be at least 2"),
        (
            &["--counts", "18446744073709551616,1"],
            "client 0: count 18446744073709551616 does not fit into 64 bits; the maximum is 18446744073709551615",
        ),
        (
            &["--counts", "18446744073709551615,1"],
            "client 0 has 18446744073709551616 samples; the maximum is 18446744073709551615",
        ),
        (&["--set", "lambda=1.5"], "lambda = 1.5 is not allowed; it must be 0 to 1"),
        (&["--set", "lambda=NaN"], "lambda = NaN is not allowed; it must be 0 to 1"),
        (&["--set", "temperature=0"], "temperature = 0 is not allowed; it must be above 0"),
        (&["--set", "lamda=0.5"], "there is no key lamda; did you mean strategy.lambda?"),
        (
            &["--set", "strategy.lamda=0.5"],
            "fedtvd has no parameter lamda; did you mean lambda? it has lambda, temperature",
        ),
        (&["--set", "lambda"], "--set lambda sets nothing; write key=value, such as split.alpha=0.5"),
        (
            &["--set", "rounds=3"],
            "rounds does not affect the weights; set parameters of fedtvd, strategy.mode or labels.reference",
        ),
        (
            &["--strategy", "fedtdv"],
            "there is no strategy fedtdv; did you mean fedtvd? (fedtvd strategies lists all)",
        ),
        (
            &["--strategy", "fedtvd+uniform"],
            "fedtvd and uniform both change the clients' weights; use one of them",
        ),
        (
            &["--set", "labels.reference=[0.5, 0.5]"],
            "labels.reference has 2 numbers, but there are 3 classes",
        ),
    ];
    for (arguments, sentence) in refusals {
        let answer = fedtvd(&[&["weights"], *arguments].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert_eq!(answer.err, format!("fedtvd: {sentence}\n"), "{arguments:?}");
    }
}

#[test]
fn a_strategy_that_does_not_average_with_its_weights_says_so() {
    let krum = fedtvd(&["weights", "--strategy", "fedtvd+krum"]);
    assert!(krum.out.contains("\nnote: krum combines updates by their values too"), "{}", krum.out);
    let json: serde_json::Value =
        serde_json::from_str(&fedtvd(&["weights", "--strategy", "fedtvd+krum", "--json"]).out)
            .expect("a document");
    assert_eq!(json["combined_by"], "krum");
    assert!(!fedtvd(&["weights"]).out.contains("note:"));
}
