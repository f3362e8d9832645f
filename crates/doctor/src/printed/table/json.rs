//! Owns tables written as JSON: an array of objects, alone or in an object. Start reading at [`table`].

use serde_json::{Map, Value};

use super::Table;

/// The first array of objects in a text that is JSON as a whole, as a table.
pub(super) fn table(text: &str) -> Option<Table> {
    let value: Value = serde_json::from_str(text.trim()).ok()?;
    let objects = array(&value)?;
    let mut header: Vec<String> = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if !header.contains(name) {
            header.push(name.clone());
        }
    }
    let cells = |object: &&Map<String, Value>| {
        header.iter().map(|name| object.get(name).map_or(String::new(), cell)).collect()
    };
    let body = objects.iter().map(cells).collect();
    Some(Table { title: String::new(), header, body })
}

fn array(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    match value {
        Value::Array(all) => {
            let objects: Vec<_> = all.iter().filter_map(Value::as_object).collect();
            (!objects.is_empty()).then_some(objects)
        }
        Value::Object(object) => object.values().find_map(array),
        _ => None,
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_become_rows_under_the_names_of_all() {
        let found = table(r#"{"results": [{"a": 1, "b": "x"}, {"a": 2.50, "c": null}]}"#).unwrap();
        assert_eq!(found.header, ["a", "b", "c"]);
        assert_eq!(found.body, [["1", "x", ""], ["2.5", "", ""]]);
        assert_eq!(table("[1, 2]"), None);
        assert_eq!(table("no JSON"), None);
    }
}
