//! What a file says of itself decides whether it is read.

use joust_record::{LoadRecord, ReadError, RunRecord};

#[test]
fn another_version_is_refused_by_name_whatever_its_shape() {
    let error = RunRecord::from_json(r#"{"format":"joust-run/99","new":true}"#).unwrap_err();
    assert!(matches!(error, ReadError::Version { .. }));
    assert!(error.to_string().contains("joust-run/99"), "{error}");
}

#[test]
fn what_is_no_record_is_refused_with_the_place() {
    for text in ["", "[]", "not json", "{}", r#"{"format":"joust-load/1"}"#] {
        let error = LoadRecord::from_json(text).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{text}: {error}");
    }
}
