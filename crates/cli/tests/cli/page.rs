//! Reads the examples in `docs/json.md`.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde_json::Value;

/// The example in a section of the document.
pub(crate) fn shown(section: &str) -> Value {
    let page = include_str!("../../../../docs/json.md");
    let body =
        page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}")).1;
    let block = body.split_once("```json\n").unwrap().1.split_once("```").unwrap().0;
    serde_json::from_str(block).unwrap()
}

/// Fails if two values do not have the same fields; null and empty values are not compared.
pub(crate) fn same_fields(path: &str, shown: &Value, printed: &Value) {
    match (shown, printed) {
        (Value::Object(shown), Value::Object(printed)) => {
            let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(shown), names(printed), "fields of {path}");
            shown
                .iter()
                .for_each(|(name, value)| same_fields(&format!("{path}.{name}"), value, &printed[name]));
        }
        (Value::Array(shown), Value::Array(printed)) => {
            if let (Some(shown), Some(printed)) = (shown.first(), printed.first()) {
                same_fields(&format!("{path}[0]"), shown, printed);
            }
        }
        _ => {}
    }
}
