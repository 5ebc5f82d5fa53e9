//! Any table with a column of labels; another column may name the owner of each row.

use super::labelled_rows::Rows;
use super::load::{LoadError, Loaded};
use crate::decode::table::{LARGEST_TABLE, Layout, Table};
use crate::decode::{Flaw, Source};
use crate::table::{Columns, Decimal, Inferred, Kind, Profiles, Request, Schema, Standard, infer};
use fedtvd_core::train::{Augment, Samples, Values};
use std::path::Path;
use std::sync::Arc;

/// The table behind a data set.
#[derive(Clone, Debug)]
pub struct TableData {
    /// Its schema, as it was given or made.
    pub schema: Schema,
    /// The rows as the schema reads them, if centres and scales are still to be computed from the clients' rows. Until
    /// then the samples are standardised with those of all training rows.
    pub columns: Option<Columns>,
    /// The row in the file of each sample; the first one after the names is 1.
    pub rows: Vec<u64>,
}

impl Loaded {
    /// The same table with these centres and scales of its open columns.
    pub fn standardised(&self, standards: &[Standard]) -> Result<Self, LoadError> {
        let open = self.table.as_ref().and_then(|table| Some((table, table.columns.as_ref()?)));
        let Some((table, columns)) = open else { return Ok(self.clone()) };
        let schema = table.schema.with_standards(standards);
        let old = &self.samples;
        let values = Values::Floats(columns.inputs(&schema)?);
        let mut samples =
            Samples::new(old.shape(), old.classes(), values, old.labels().to_vec(), old.train_rows())?;
        if old.augments() {
            samples = samples.augmented(Augment { crop: 0, flip: true });
        }
        let table = TableData { schema, columns: None, rows: table.rows.clone() };
        Ok(Self { samples: Arc::new(samples), table: Some(Arc::new(table)), ..self.clone() })
    }
}

/// Opens a table; its layout is found in the file unless there is a schema.
pub fn open_table(path: &Path, layout: &Layout) -> Result<Table, Flaw> {
    Table::read(&mut Source::open(path)?, LARGEST_TABLE, layout)
}

/// Reads a table with a schema that is made from it.
pub(crate) fn load(path: &Path, label: &str, group: Option<&str>, test: f64) -> Result<Loaded, LoadError> {
    let wrong = |reason: String| LoadError::Table { file: path.display().to_string(), reason };
    let table = open_table(path, &Layout::default())?;
    let profiles = Profiles::of(&table, label, group)?;
    let ignored = group.filter(|group| table.column(group).is_some());
    let ignored = ignored.map(str::to_owned).into_iter().collect();
    let request = Request { label: label.to_owned(), ignored, ..Request::default() };
    let Inferred { schema, notes: remarks, doubt, .. } = infer(&[profiles], &request).map_err(wrong)?;
    if let Some(doubt) = doubt {
        return Err(wrong(format!(
            "{doubt}; remove the separators, or name a schema with decimal = \",\" (data.schema; fedtvd data schema makes one)"
        )));
    }
    let rows = Rows::read(table, &schema, group, test)?;
    let schema = schema.with_standards(&rows.columns.pooled(&schema, rows.train));
    let notes = [vec![decisions(&schema)], rows.left_out.clone(), remarks, rows.columns.notes()].concat();
    let samples = Arc::new(rows.samples(&schema)?);
    let Rows { groups, rows, .. } = rows;
    let class_names = schema.class_names();
    let table = Some(Arc::new(TableData { schema, columns: None, rows }));
    Ok(Loaded { samples, normal: Vec::new(), groups, class_names, notes, table })
}

/// Reads a table with a schema.
pub fn load_table(path: &Path, schema: &Schema, group: Option<&str>, test: f64) -> Result<Loaded, LoadError> {
    let rows = Rows::read(open_table(path, &schema.layout())?, schema, group, test)?;
    let standards = rows.columns.pooled(schema, rows.train);
    let samples = Arc::new(rows.samples(&schema.with_standards(&standards))?);
    let notes = [rows.left_out.as_slice(), &rows.columns.notes()].concat();
    let Rows { groups, rows, columns, .. } = rows;
    let columns = (!standards.is_empty()).then_some(columns);
    let table = Some(Arc::new(TableData { schema: schema.clone(), columns, rows }));
    Ok(Loaded { samples, normal: Vec::new(), groups, class_names: schema.class_names(), notes, table })
}

/// What was decided about a table without a schema.
fn decisions(schema: &Schema) -> String {
    let named = |wanted: fn(&Kind) -> bool| {
        let wanted = schema.columns.iter().filter(|column| wanted(&column.kind));
        let name = |name: &'_ str| if name.is_empty() { "(no name)".to_owned() } else { name.to_owned() };
        let names: Vec<String> = wanted.map(|column| name(&column.name)).collect();
        let more = if names.len() > 10 { format!(" and {} more", names.len() - 10) } else { String::new() };
        (names.len(), names[..names.len().min(10)].join(", ") + &more)
    };
    let parts = [
        ("numbers", named(|kind| matches!(kind, Kind::Number(_)))),
        ("categories", named(|kind| matches!(kind, Kind::Category(_)))),
        ("left out", named(|kind| *kind == Kind::Ignored)),
    ];
    let parts = parts.into_iter().filter(|(_, (count, _))| *count > 0);
    let parts: Vec<String> = parts.map(|(what, (_, names))| format!("{what}: {names}")).collect();
    let commas = if schema.decimal == Decimal::Comma { "decimal commas; " } else { "" };
    format!(
        "data.schema is not set, so a schema was made; {commas}{}; label: {} ({} classes)",
        parts.join("; "),
        schema.label.column,
        schema.label.classes.len()
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::split::Groups;
    use crate::table::example::SCHEMA;
    use std::io::Write;

    pub(crate) fn read(text: &str, label: &str, group: Option<&str>) -> Result<Loaded, LoadError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        load(file.path(), label, group, 0.5)
    }

    pub(crate) const TEXT: &str =
        "age,ward,town,sick\n1,a,Ulm,yes\n3,a,Rio,no\n5,b,Ulm,yes\n7,b,?,no\n9,a,Ulm,yes\n2,a,Rio,no\n";

    #[test]
    fn labels_owners_numbers_and_categories_are_distinguished() {
        let loaded = read(TEXT, "sick", Some("ward")).unwrap();
        assert_eq!(loaded.class_names, ["no", "yes"]);
        assert_eq!(
            loaded.groups.unwrap(),
            Groups { names: vec!["a".into(), "b".into()], of: vec![0, 0, 1, 1] }
        );
        // Of ward a the second of each class is for testing: ages 9 and 2.
        assert_eq!(loaded.samples.labels(), [1, 0, 1, 0, 1, 0]);
        assert_eq!((loaded.samples.train_rows(), loaded.samples.shape()), (4, [3, 1, 1]));
        let mut row = [0.0; 3];
        loaded.samples.read(4, &mut row);
        // Training ages 1, 3, 5, 7: mean 4, deviation sqrt(5); then Rio, Ulm.
        assert_eq!(row, [(5.0 / 5.0_f64.sqrt()) as f32, 0.0, 1.0]);
        assert_eq!(
            loaded.notes,
            [
                "data.schema is not set, so a schema was made; numbers: age; categories: town; left out: ward; label: \
                 sick (2 classes)",
                "town: 1 of 6 are missing; their one-hot inputs are all 0"
            ]
        );
        assert_eq!(loaded.table.unwrap().rows, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn numbers_as_labels_are_in_the_order_of_numbers() {
        let text = format!("x,label\n{}", (0..12).map(|i| format!("{i},{i}\n")).collect::<String>());
        assert_eq!(read(&text, "label", None).unwrap().class_names[9..], ["9", "10", "11"]);
    }

    #[test]
    fn one_typo_does_not_turn_a_column_of_numbers_into_categories() {
        let text = |typo: &str| {
            let age = |row: usize| if row == 16 { typo.to_owned() } else { (20 + row % 50).to_string() };
            let rows: String = (0..200).map(|row| format!("{},{}\n", age(row), row % 2)).collect();
            format!("age,label\n{rows}")
        };
        assert_eq!(read(&text("45"), "label", None).unwrap().samples.shape(), [1, 1, 1]);
        let error = read(&text("45y"), "label", None).unwrap_err().to_string();
        let end = ": row 17 (line 18), column \"age\": \"45y\" is not a number; correct it, or say in the schema \
                   that the column is a category or that not_numbers = \"missing\"";
        assert!(error.ends_with(end), "{error}");
    }

    #[test]
    fn a_column_of_identifiers_is_left_out_with_a_note() {
        let rows: String = (0..99).map(|row| format!("p{row},{},{}\n", row % 7, row % 2)).collect();
        let loaded = read(&format!("id,x,label\n{rows}"), "label", None).unwrap();
        assert_eq!(loaded.samples.shape(), [1, 1, 1]);
        assert!(loaded.notes[0].contains("; left out: id;"), "{:?}", loaded.notes);
    }

    #[test]
    fn semicolons_and_decimal_commas_read_as_commas_and_points_do() {
        let points = "x,town,label\n1.5,a,0\n2.5,b,1\n4,a,0\n8,b,1\n";
        let commas = "x;town;label\n1,5;a;0\n2,5;b;1\n4;a;0\n8;b;1\n";
        let values = |text: &str| {
            let loaded = read(text, "label", None).unwrap();
            let Values::Floats(floats) = loaded.samples.values().clone() else {
                panic!("a table has floats")
            };
            floats
        };
        assert_eq!(values(points), values(commas));
    }

    /// Reads a table with a schema, all rows for training.
    fn with(schema: &str, text: &str) -> Result<Loaded, LoadError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        load_table(file.path(), &schema.parse().unwrap(), None, 0.0)
    }

    fn inputs(loaded: &Loaded) -> Vec<f32> {
        match loaded.samples.values() {
            Values::Floats(floats) => floats.clone(),
            Values::Bytes(..) => panic!("a table has floats"),
        }
    }

    #[test]
    fn rows_are_matched_by_the_names_of_columns() {
        let one = with(SCHEMA, "age,town,id,sick\n60,Rio,7,no\n40,Ulm,8,yes\n").unwrap();
        let other = with(SCHEMA, "sick;extra;town;age\nno;x;Rio;60.0\n1.0;y;Ulm;40\n").unwrap();
        assert_eq!(inputs(&one), [1.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(inputs(&one), inputs(&other));
        assert_eq!((one.samples.labels(), other.samples.labels()), ([0, 1].as_slice(), [0, 1].as_slice()));
        assert_eq!(other.notes, ["columns that the schema does not have are left out: extra"]);
    }

    #[test]
    fn missing_unknown_and_clipped_values_are_where_the_schema_puts_them() {
        let text = "age,town,sick\n-1,Oslo,no\n,Rio,no\n170,?,no\n50,Ulm,yes\n";
        let loaded = with(SCHEMA, text).unwrap();
        assert_eq!(
            inputs(&loaded),
            [
                [0.0, 1.0, 0.0, 0.0, 1.0],
                [0.0, 1.0, 1.0, 0.0, 0.0],
                [7.0, 0.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, 1.0, 0.0]
            ]
            .concat()
        );
        assert_eq!(
            loaded.notes,
            [
                "age: 2 of 4 are missing; the centre replaces them, and a missing-value indicator is added",
                "age: 1 of 4 are outside the bounds and are clipped",
                "town: 1 of 4 are missing; their one-hot inputs are all 0",
                "town: 1 of 4 are unknown, such as \"Oslo\"",
            ]
        );
    }

    #[test]
    fn what_a_schema_does_not_allow_is_refused_with_row_column_and_value() {
        let refused = |schema: &str, text: &str| with(schema, text).unwrap_err().to_string();
        let strict = SCHEMA.replace("\"input\"", "\"refuse\"").replace("\"indicator\"", "\"refuse\"");
        for (schema, text, end) in [
            (
                SCHEMA,
                "age,town,sick\n1,Rio,no\n4x,Rio,no\n",
                "row 2 (line 3), column \"age\": \"4x\" is not a number; correct it, or say in the schema that the column is a category or that not_numbers = \"missing\"",
            ),
            (
                SCHEMA,
                "age,town,sick\n1,Rio,maybe\n",
                "row 1 (line 2), column \"sick\": \"maybe\" is not a class; the classes are no, yes",
            ),
            (
                SCHEMA,
                "town,sick,id\nRio,no,3\n",
                "there is no column \"age\"; its columns are town, sick, id",
            ),
            (
                &strict,
                "age,town,sick\n1,Oslo,no\n",
                "column \"town\": \"Oslo\" is unknown; the categories are Rio, Ulm",
            ),
            (
                &strict,
                "age,town,sick\n?,Rio,no\n",
                "column \"age\": \"?\" is a missing value, which the schema does not allow here",
            ),
        ] {
            let error = refused(schema, text);
            assert!(error.ends_with(end), "{error}");
        }
        let lenient = SCHEMA.replace("scale = 10.0", "scale = 10.0\nnot_numbers = \"missing\"");
        assert_eq!(inputs(&with(&lenient, "age,town,sick\n4x,Rio,no\n").unwrap())[..2], [0.0, 1.0]);
    }

    #[test]
    fn a_value_whose_input_would_be_infinite_is_named_with_its_row_line_column_and_text() {
        let fixed = SCHEMA.replace("bounds = [0.0, 120.0]\n", "");
        let text = "age,town,sick\n60,Rio,no\n\n1e39,Rio,no\n40,Ulm,yes\n-2e40,Ulm,no\n";
        let error = with(&fixed.replace("scale = 10.0", "scale = 1.0"), text).unwrap_err().to_string();
        let why = "is too far from the centre 50 for a scale of 1: its input would be infinite; correct it, or set bounds in \
                   the schema";
        let end = format!(": row 4 (line 6), column \"age\": \"-2e40\" {why}");
        assert!(error.ends_with(&end), "{error}");
        // With centres and scales that come later, too.
        let open = fixed.replace("centre = 50.0\nscale = 10.0\n", "");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.replace("-2e40", "7").as_bytes()).unwrap();
        let loaded = load_table(file.path(), &open.parse().unwrap(), None, 0.0).unwrap();
        let standardised = |scale| loaded.standardised(&[Standard { centre: 50.0, scale }]);
        assert!(standardised(10.0).is_ok());
        let error = standardised(1.0).unwrap_err().to_string();
        assert!(error.ends_with(&format!(": row 2 (line 4), column \"age\": \"1e39\" {why}")), "{error}");
        // The file may be gone by then.
        drop(file);
        let error = standardised(1.0).unwrap_err().to_string();
        assert!(error.ends_with(&format!("column \"age\": 1e39 in row 2 {why}")), "{error}");
        // What replaces a missing value is a number of the schema.
        let far = SCHEMA.replace("bounds = [0.0, 120.0]\n", "").replace("\"indicator\"", "1e40");
        let error = with(&far, "age,town,sick\n?,Rio,no\n").unwrap_err().to_string();
        assert!(error.contains("column \"age\": missing = 1e40 is too far from the centre 50"), "{error}");
    }

    #[test]
    fn a_listed_class_is_a_class_even_if_it_is_spelled_as_a_missing_value() {
        let schema =
            SCHEMA.replace("\"\", \"?\"", "\"\", \"NA\"").replace("[\"no\",", "[\"no\", \"NA\", \"unseen\",");
        let loaded = with(&schema, "age,town,sick\n60,Rio,NA\n40,Ulm,yes\n41,Ulm,\n42,Ulm,no\n").unwrap();
        assert_eq!(loaded.samples.labels(), [1, 3, 0]);
        assert_eq!(
            loaded.notes,
            [
                "sick: 1 of 4 are missing; these rows are left out, since it is data.label",
                "sick: no row is of class unseen"
            ]
        );
    }

    #[test]
    fn numbers_that_may_have_a_thousands_separator_are_refused_without_a_schema() {
        let table = |prices: [&str; 3]| {
            let rows: String =
                (0..30).map(|row| format!("{};{};{}\n", prices[row % 3], row % 7, row % 2)).collect();
            read(&format!("price;age;label\n{rows}"), "label", None)
        };
        let error = table(["2,592", "931", "12,000"]).unwrap_err().to_string();
        let end = ": column \"price\": \"2,592\" may be 2.592 with a decimal comma or 2592 with a thousands separator; remove \
                   the separators, or name a schema with decimal = \",\" (data.schema; fedtvd data schema makes one)";
        assert!(error.ends_with(end), "{error}");
        // These are no thousands.
        for fraction in ["2,5", "0,592", "1234,567"] {
            let loaded = table(["2,592", "931", fraction]).unwrap();
            assert!(
                loaded.notes[0].contains("a schema was made; decimal commas; numbers: price, age;"),
                "{:?}",
                loaded.notes
            );
        }
    }

    #[test]
    fn a_number_with_the_other_decimal_mark_is_refused_with_the_key_that_reads_it() {
        let refused = |schema: &str, value: &str| {
            with(schema, &format!("age;town;sick\n{value};Rio;no\n")).unwrap_err().to_string()
        };
        let error = refused(SCHEMA, "1,5");
        assert!(
            error.contains(
                "\"1,5\" is not a number with a decimal point; if it has a decimal comma, set decimal = \",\""
            ),
            "{error}"
        );
        let error = refused(&format!("decimal = \",\"\n{SCHEMA}"), "1.5");
        assert!(
            error.contains(
                "\"1.5\" is not a number with a decimal comma; if it has a decimal point, set decimal = \".\""
            ),
            "{error}"
        );
    }

    #[test]
    fn columns_that_look_like_identifiers_are_inputs_with_a_note() {
        let rows: String = (0..40)
            .map(|row| format!("{row},{},{}.5,{},{}\n", 1000 + 7 * row, row, row / 2, row % 2))
            .collect();
        let loaded = read(&format!(",patient,x,age,label\n{rows}"), "label", None).unwrap();
        assert_eq!(
            loaded.notes,
            [
                "data.schema is not set, so a schema was made; numbers: (no name), patient, x, age; label: label (2 classes)",
                "the column without a name has a different whole number in every row; if these identify rows, leave it out: \
                 kind = \"ignored\" in a schema (data.schema; fedtvd data schema --ignore makes one)",
                "the column \"patient\" has a different whole number in every row; if these identify rows, leave it out: \
                 kind = \"ignored\" in a schema (data.schema; fedtvd data schema --ignore makes one)",
            ]
        );
        let rows: String = (0..40).map(|row| format!("{},{}\n", row / 2, row % 2)).collect();
        let loaded = read(&format!(",label\n{rows}"), "label", None).unwrap();
        assert!(
            loaded.notes[1]
                .starts_with("the column without a name is an input; if it is an index, leave it out: "),
            "{:?}",
            loaded.notes
        );
    }

    #[test]
    fn equal_numbers_are_one_class_also_with_a_decimal_comma() {
        let loaded =
            read("x;ward;label\n1,5;1;1\n2,5;1,0;0\n3,5;2;1,0\n4,5;2,0;0,0\n", "label", Some("ward"))
                .unwrap();
        assert_eq!(
            (loaded.class_names, loaded.groups.unwrap().names),
            (vec!["0".into(), "1".into()], vec!["1".into(), "2".into()])
        );
    }

    #[test]
    fn open_columns_are_standardised_later_with_given_centres_and_scales() {
        let open = SCHEMA.replace("centre = 50.0\nscale = 10.0\n", "");
        let text = "age,town,sick\n60,Rio,no\n40,Ulm,yes\n";
        let loaded = with(&open, text).unwrap();
        // Until then with those of all rows: mean 50, deviation 10.
        assert_eq!(inputs(&loaded), inputs(&with(SCHEMA, text).unwrap()));
        let fixed = loaded.standardised(&[Standard { centre: 20.0, scale: 20.0 }]).unwrap();
        assert_eq!((inputs(&fixed)[0], inputs(&fixed)[5]), (2.0, 1.0));
        assert_eq!(fixed.table.unwrap().schema.open().count(), 0);
    }
}
