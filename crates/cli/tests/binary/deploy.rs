//! deploy/kubernetes: the manifests are what the types of the API know, so that a misspelt or misplaced field fails here.
//! No cluster runs them. Start reading at [`manifests`].

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::Value;

use crate::docs::root;

/// Every document of every file, with the file's name.
fn manifests() -> Vec<(String, Value)> {
    let folder = root().join("deploy/kubernetes");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let yaml = files.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let documents = yaml.flat_map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let each: Vec<Value> = text
            .split("\n---\n")
            .map(|one| {
                serde_saphyr::from_str(one).unwrap_or_else(|error| panic!("{name}: {error}"))
            })
            .collect();
        each.into_iter().map(move |one| (name.clone(), one))
    });
    documents.collect()
}

/// What the typed form of a manifest has lost, as paths.
fn lost(manifest: &Value) -> Result<Vec<String>, String> {
    fn typed<T: serde::de::DeserializeOwned + serde::Serialize>(
        of: &Value,
    ) -> Result<Value, String> {
        let typed: T = serde_json::from_value(of.clone()).map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(typed).expect("plain data serialises"))
    }
    let known = match manifest["kind"].as_str() {
        Some("Secret") => typed::<Secret>(manifest)?,
        Some("Service") => typed::<Service>(manifest)?,
        Some("StatefulSet") => typed::<StatefulSet>(manifest)?,
        Some("Job") => typed::<Job>(manifest)?,
        Some("NetworkPolicy") => typed::<NetworkPolicy>(manifest)?,
        other => return Err(format!("{other:?} is no kind that is checked here")),
    };
    let mut paths = Vec::new();
    compare(manifest, &known, "", &mut paths);
    Ok(paths)
}

fn compare(written: &Value, known: &Value, path: &str, lost: &mut Vec<String>) {
    match (written, known) {
        (Value::Object(written), Value::Object(known)) => {
            for (key, value) in written {
                match known.get(key) {
                    Some(known) => compare(value, known, &format!("{path}.{key}"), lost),
                    None => lost.push(format!("{path}.{key}")),
                }
            }
        }
        (Value::Array(written), Value::Array(known)) if written.len() == known.len() => {
            for (index, (written, known)) in written.iter().zip(known).enumerate() {
                compare(written, known, &format!("{path}[{index}]"), lost);
            }
        }
        _ if written == known => {}
        _ => lost.push(format!("{path}: {written} became {known}")),
    }
}

#[test]
fn every_field_is_one_of_the_api() {
    let all = manifests();
    assert!(all.len() >= 5, "the manifests are there: {}", all.len());
    for (name, manifest) in &all {
        assert_eq!(lost(manifest), Ok(Vec::new()), "{name}");
    }
    // A misspelt field, and one at the wrong place, are noticed.
    let (_, job) = all.iter().find(|(_, one)| one["kind"] == "Job").unwrap();
    let mut wrong = job.clone();
    wrong["spec"]["backoffLimitPerIndx"] = 0.into();
    wrong["spec"]["restartPolicy"] = "Never".into();
    let paths = lost(&wrong).unwrap();
    assert_eq!(paths, [".spec.backoffLimitPerIndx", ".spec.restartPolicy"]);
}

#[test]
fn agents_are_started_as_joust_knows_it() {
    let all = manifests();
    let (_, job) = all.iter().find(|(_, one)| one["kind"] == "Job").unwrap();
    let command = job["spec"]["template"]["spec"]["containers"][0]["command"].as_array().unwrap();
    let words: Vec<&str> = command.iter().filter_map(Value::as_str).collect();
    assert_eq!(words[..2], ["joust", "agent"]);
    let help = crate::stdout(&crate::output(&["agent", "--help"]));
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        assert!(help.contains(flag), "{flag} is none of joust agent:\n{help}");
    }
    // Of an agent that fails there is no second one, which would be another.
    assert_eq!(job["spec"]["backoffLimitPerIndex"], 0);
    assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
}
