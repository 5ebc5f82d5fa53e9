//! Model files from elsewhere whose card cannot be true, and rows that no model can predict.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::program::{Answer, fedtvd};
use fedtvd_core::model::{Layer, Layout, ModelCard, Network, Params};
use std::sync::Arc;

const SCHEMA: &str = "header = [\"age\", \"bp\", \"sick\"]\n[label]\ncolumn = \"sick\"\nclasses = [\"no\", \"yes\"]\n[[column]]\nname = \
                      \"age\"\nkind = \"number\"\ncentre = 50\nscale = 10\n[[column]]\nname = \"bp\"\nkind = \"number\"\ncentre = \
                      100\nscale = 20\n";

/// Predicts a table with a model of these numbers of inputs and classes, and this schema.
fn predicted(size: [usize; 2], schema: &str, table: &str) -> Answer {
    predicted_with(size, schema, table, None)
}

/// The same with all of its parameters at one value.
fn predicted_with([inputs, classes]: [usize; 2], schema: &str, table: &str, value: Option<f32>) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let layers = vec![Layer::Flatten, Layer::Linear { name: "fc".into(), out: classes }];
    let network = Network { input: [inputs, 1, 1], classes, layers };
    let mut params = Params::initial(Arc::new(Layout::of(&network).unwrap()), 1);
    if let Some(value) = value {
        params.values.fill(value);
    }
    let card = ModelCard { network: network.into(), schema: schema.to_owned() };
    let [model, rows] = ["model.safetensors", "rows.csv"].map(|name| folder.path().join(name));
    std::fs::write(&model, params.to_described_safetensors(Some(&card))).unwrap();
    std::fs::write(&rows, table).unwrap();
    fedtvd(&["predict", model.to_str().unwrap(), rows.to_str().unwrap()])
}

const ROWS: &str = "age,bp\n40,120\n60,140\n";

#[test]
fn a_model_whose_layers_and_schema_contradict_each_other_is_refused() {
    let good = predicted([2, 2], SCHEMA, ROWS);
    assert_eq!((good.code, good.out.lines().count()), (0, 3), "{}", good.err);
    for (size, layers) in [([2, 5], "[2, 1, 1] and 5 classes"), ([3, 2], "[3, 1, 1] and 2 classes")] {
        let wrong = predicted(size, SCHEMA, ROWS);
        let sentence = format!("its layers are for inputs of shape {layers}, its schema for [2, 1, 1] and 2");
        assert!(wrong.code == 2 && wrong.err.contains(&sentence), "{}", wrong.err);
    }
}

#[test]
fn a_model_whose_schema_lacks_centres_is_refused_with_the_columns() {
    let wrong = predicted([2, 2], &SCHEMA.replace("centre = 50\nscale = 10\n", ""), ROWS);
    assert!(wrong.code == 2 && wrong.err.contains("has no centre and scale of age"), "{}", wrong.err);
}

#[test]
fn probabilities_that_are_not_finite_are_an_error_with_the_row() {
    // Inputs of 0 and 0, then of 5 and 5 times the greatest number.
    let wrong = predicted_with([2, 2], SCHEMA, "age,bp\n50,100\n100,200\n", Some(f32::MAX));
    assert!(wrong.code == 1 && wrong.out.is_empty(), "{} {} {}", wrong.code, wrong.out, wrong.err);
    assert!(wrong.err.contains("the probabilities of sample 2 are not finite"), "{}", wrong.err);
}

#[test]
fn a_file_with_names_and_without_the_label_is_predicted_although_the_schema_has_a_header() {
    let good = predicted([2, 2], SCHEMA, "id,bp,age\n7,120,40\n");
    assert!(
        good.code == 0 && good.out.starts_with("id,bp,age,prediction,p_no,p_yes\n7,120,40,"),
        "{}",
        good.err
    );
    assert!(good.err.contains("columns that the schema does not have are left out: id"), "{}", good.err);
    let lacking = predicted([2, 2], SCHEMA, "income,age,sick\n7,40,no\n");
    assert!(lacking.code == 2 && lacking.err.contains("there is no column \"bp\""), "{}", lacking.err);
}

#[test]
fn a_name_with_control_characters_is_refused_without_printing_them() {
    let wrong = predicted([2, 2], &SCHEMA.replace("\"yes\"", "\"\\u001b[2J\""), ROWS);
    assert!(wrong.code == 2 && wrong.err.contains("contains a control character"), "{}", wrong.err);
    let broken = predicted([2, 2], &SCHEMA.replace("centre = 50", "cen\u{1b}[2Jtre = 50"), ROWS);
    assert!(broken.code == 2 && !broken.err.contains('\u{1b}'), "{:?}", broken.err);
}
