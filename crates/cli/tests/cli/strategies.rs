//! `fedtvd strategies` on the command line.

use crate::program::fedtvd;
use fedtvd_core::strategy::ALL;

#[test]
fn the_list_reads_well() {
    let list = fedtvd(&["strategies"]).out;
    // Only the first three methods and the text below the list, so that a new method does not change the snapshot.
    let (head, rest) = list.split_once("fedtvd-released").expect("the fourth method is there");
    let (_, tail) = rest.split_once("\n\n").expect("an empty line follows the last method");
    insta::assert_snapshot!("strategies", format!("{head}\n{tail}"));
    insta::assert_snapshot!("strategies_fedtvd", fedtvd(&["strategies", "fedtvd"]).out);
}

#[test]
fn the_list_holds_every_strategy_with_its_parameters() {
    let list = fedtvd(&["strategies"]).out;
    let mut lines = list.lines();
    for spec in ALL {
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(&format!("{} ", spec.name)) && line.ends_with(spec.about), "{line}");
        for param in spec.params {
            let line = lines.next().unwrap_or_default();
            assert!(line.trim_start().starts_with(&format!("{} = ", param.name)), "{line}");
        }
    }
    assert_eq!(lines.next(), Some(""), "nothing else is listed");
}

#[test]
fn the_documentation_page_is_up_to_date() {
    let page = include_str!("../../../../docs/strategies.md");
    let fresh = fedtvd(&["strategies", "--markdown"]).out;
    assert!(
        page == fresh,
        "docs/strategies.md is stale: cargo run -- strategies --markdown > docs/strategies.md"
    );
}

#[test]
fn json_lists_every_parameter_with_its_range() {
    let answer = fedtvd(&["strategies", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&answer.out).expect("--json gives one JSON document");
    let list = list.as_array().expect("a list");
    let fedtvd = list.iter().find(|spec| spec["name"] == "fedtvd").expect("fedtvd is there");
    let lambda = &fedtvd["params"][0];
    assert_eq!((&lambda["name"], &lambda["kind"]), (&"lambda".into(), &"number".into()));
    assert_eq!((&lambda["default"], &lambda["min"], &lambda["max"]), (&0.5.into(), &0.0.into(), &1.0.into()));
    assert!(fedtvd["params"][1]["max"].is_null(), "a temperature has no greatest value");
    assert_eq!((&lambda["above_min"], &fedtvd["params"][1]["above_min"]), (&false.into(), &true.into()));
    let scaffold = list.iter().find(|spec| spec["name"] == "scaffold").expect("scaffold is there");
    assert_eq!(scaffold["suggests"], "uniform");
    assert_eq!(scaffold["keeps"][0]["rule"], "how updates are combined");
    assert!(list.iter().all(|spec| spec["paper"].as_str().is_some_and(|paper| !paper.is_empty())));
}

#[test]
fn an_unknown_name_is_an_invalid_request() {
    let answer = fedtvd(&["strategies", "scafold"]);
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    assert_eq!(
        answer.err,
        "fedtvd: there is no strategy scafold; did you mean scaffold? (fedtvd strategies lists all)\n"
    );
}
