//! `fedtvd data` on the command line.

use crate::program::fedtvd;

#[test]
fn the_list_has_every_data_set_and_marks_the_embedded_one() {
    let answer = fedtvd(&["data", "list", "--json", "--data", "/nowhere"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let sets: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let names: Vec<&str> = sets.as_array().unwrap().iter().filter_map(|set| set["name"].as_str()).collect();
    assert_eq!(names, ["fmnist-mini", "fmnist", "mnist", "cifar10", "cifar100", "heart"]);
    assert_eq!((&sets[0]["embedded"], &sets[0]["train"]), (&true.into(), &12_000.into()));
}

#[test]
fn the_embedded_set_verifies_and_a_broken_copy_does_not() {
    let answer = fedtvd(&["data", "verify", "fmnist-mini"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    assert!(answer.out.contains("ok     training rows: 1200 in each of 10 classes"), "{}", answer.out);

    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("heart-disease");
    std::fs::create_dir(&set).unwrap();
    for hospital in ["cleveland", "hungarian", "switzerland", "va"] {
        let patient = "63,1,1,145,233,1,2,150,0,2.3,3,0,6,0\n";
        std::fs::write(set.join(format!("processed.{hospital}.data")), patient).unwrap();
    }
    let answer = fedtvd(&["data", "verify", "heart", "--data", folder.path().to_str().unwrap()]);
    assert_eq!((answer.code, answer.err.as_str()), (1, "fedtvd: heart: different from the published data\n"));
    assert!(answer.out.contains("WRONG  processed.cleveland.data"), "{}", answer.out);
}

#[test]
fn a_set_that_cannot_be_read_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("heart-disease");
    std::fs::create_dir(&set).unwrap();
    for hospital in ["cleveland", "hungarian", "switzerland", "va"] {
        std::fs::write(set.join(format!("processed.{hospital}.data")), "no patient\n").unwrap();
    }
    let data = ["--data", folder.path().to_str().unwrap(), "--json"];
    let answer = fedtvd(&[["data", "verify", "heart", "cifar100", "fmnist-mini"].as_slice(), &data].concat());
    let verdicts: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let sets: Vec<(&str, bool)> = verdicts
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| (verdict["set"].as_str().unwrap(), verdict["right"].as_bool().unwrap()))
        .collect();
    assert_eq!(sets, [("heart", false), ("fmnist-mini", true)]);
    assert!(
        verdicts[0]["flaw"].as_str().unwrap().contains("processed.cleveland.data: at byte 0"),
        "{verdicts}"
    );
    assert_eq!(answer.code, 1);
    let said =
        "fedtvd: heart: different from the published data; cifar100 is not on this machine: looked for";
    assert!(answer.err.starts_with(said), "{}", answer.err);
}

#[test]
fn a_data_set_on_this_machine_has_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let path = folder.path().join("cifar-100-binary.tar.gz");
    std::fs::write(&path, "").unwrap();
    let answer = fedtvd(&["data", "path", "cifar100", "--data", data]);
    assert_eq!((answer.code, answer.out), (0, format!("{}\n", path.display())));
}

#[test]
fn invalid_requests_exit_with_2() {
    for (arguments, sentence) in [
        (["fetch", "cifar1"], "cifar1 is not a data set; available: fmnist-mini, fmnist"),
        (["fetch", "fmnist-mini"], "fmnist-mini is embedded in the program and need not be downloaded"),
        (["verify", "nothing"], "nothing is not a data set; available:"),
        (["path", "fmnist-mini"], "fmnist-mini is embedded in the program and has no path"),
    ] {
        let answer = fedtvd(&[["data"].as_slice(), &arguments].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert!(answer.err.starts_with(&format!("fedtvd: {sentence}")), "{arguments:?}: {}", answer.err);
    }
    // A data set that is not on this machine is an invalid request for every subcommand.
    for arguments in [["data", "path", "cifar100"], ["data", "verify", "cifar100"]] {
        let answer = fedtvd(&[arguments.as_slice(), &["--data", "/nowhere"]].concat());
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments:?}: {}", answer.err);
        assert!(
            answer.err.starts_with("fedtvd: cifar100 is not on this machine: looked for"),
            "{}",
            answer.err
        );
    }
}
