//! Formats read by packages of Python, where they are installed (`scripts/peers.sh`): the readers that people use.
//! Start reading at [`read`].

use std::path::PathBuf;
use std::process::Command;

use crate::all;

/// Exit code of a script that finds a package missing.
const MISSING: i32 = 77;

/// Where `scripts/peers.sh` puts the packages: for the machine, or beside the build if it may not write there.
fn packages() -> Vec<PathBuf> {
    let binary = std::env::current_exe().unwrap_or_default();
    let beside = binary.ancestors().nth(3).map(|target| target.join("joust-test-python"));
    [Some(PathBuf::from("/usr/local/lib/joust-test-python")), beside]
        .into_iter()
        .flatten()
        .collect()
}

/// Runs a script over files, which it finds by its arguments: name and path of each in turn. It must say how many it
/// read. A missing package is reported as a skipped test.
pub(crate) fn read(imports: &str, script: &str, files: &[(String, Vec<u8>)]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let head = format!(
        "import sys\ntry:\n    import {imports}\nexcept ImportError as error:\n    print(error)\n    \
         sys.exit({MISSING})\npairs = list(zip(sys.argv[1::2], sys.argv[2::2]))\n"
    );
    let mut command = Command::new("python3");
    command.arg("-c").arg(head + script + "\nprint('read', len(pairs))\n");
    command.env("PYTHONPATH", std::env::join_paths(packages()).expect("paths without colons"));
    for (index, (name, bytes)) in files.iter().enumerate() {
        let path = folder.path().join(index.to_string());
        std::fs::write(&path, bytes).expect("the folder is ours");
        command.arg(name).arg(path);
    }
    let Ok(output) = command.output() else {
        return skips::note("python3 is not installed (scripts/peers.sh brings it)");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(MISSING) {
        return skips::note(format_args!("{} (scripts/peers.sh brings it)", said.trim()));
    }
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{trouble}");
    assert!(said.ends_with(&format!("read {}\n", files.len())), "{said}");
}

#[test]
fn open_metrics_is_read_by_the_parser_of_prometheus_own_client() {
    let script = r#"
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for name, path in pairs:
    families = list(text_string_to_metric_families(open(path, newline='').read()))
    if name in ('run: two contenders', 'load: a load'):
        names = {family.name for family in families}
        wanted = 'joust_p99_seconds' if name.startswith('run') else 'joust_response_p99_seconds'
        assert wanted in names and 'joust_requests_per_second' not in names, names
        assert 'joust_rate_requests_per_second' in names, names
    for family in families:
        assert family.type == 'gauge' and family.documentation, (name, family)
        for sample in family.samples:
            assert sample.value == sample.value, (name, sample)
"#;
    read("prometheus_client", script, &all("openmetrics"));
}

#[test]
fn gitlab_metrics_are_read_as_gitlab_reads_them_and_as_open_metrics() {
    let script = r#"
import re
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for name, path in pairs:
    text = open(path, newline='').read()
    list(text_string_to_metric_families(text))
    seen = {}
    for line in text.split('\n'):
        # Gitlab::Ci::Parsers::Metrics::Generic: no comments, split like a shell.
        words = shlex.split(re.sub('#.*$', '', line))
        if not words:
            continue
        assert len(words) == 2, (name, words)
        assert words[0] not in seen, (name, words)
        seen[words[0]] = float(words[1])
    if name == 'run: two contenders':
        assert 'joust_rate_requests_per_second{contender=joust reactor}' in seen, seen
"#;
    read("shlex, prometheus_client", script, &all("gitlab"));
}

#[test]
fn bencher_metrics_fit_the_schema_that_bencher_publishes() {
    let script = r#"
import json
# https://bencher.dev/docs/reference/bencher-metric-format
number = {'type': 'number'}
metric = {'type': 'object', 'required': ['value'],
          'properties': {'value': number, 'lower_value': number, 'upper_value': number}}
measures = {'type': 'object', 'patternProperties': {'.+': metric}}
schema = {'$schema': 'http://json-schema.org/draft-07/schema', 'type': 'object',
          'patternProperties': {'.+': measures}}
validator = jsonschema.Draft7Validator(schema)
for name, path in pairs:
    benchmarks = json.load(open(path))
    validator.validate(benchmarks)
    for benchmark, measures in benchmarks.items():
        assert len(benchmark) <= 1024 and all(len(measure) <= 64 for measure in measures), name
        for metric in measures.values():
            assert set(metric) <= {'value', 'lower_value', 'upper_value'}, (name, metric)
"#;
    read("jsonschema", script, &all("bencher"));
}

#[test]
fn json_fits_the_schema_of_the_docs() {
    let mut files = all("json");
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures.schema.json");
    files.push(("the schema".to_owned(), std::fs::read(schema).expect("the schema is there")));
    let script = r#"
import json
schema = json.load(open(pairs[-1][1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for name, path in pairs[:-1]:
    def refuse(word):
        raise ValueError((name, word))
    validator.validate(json.load(open(path), parse_constant=refuse))
"#;
    read("jsonschema", script, &files);
}

#[test]
fn a_histogram_log_is_read_by_the_reader_for_python() {
    let script = r#"
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
for name, path in pairs:
    tags = {}
    reader = HistogramLogReader(path, HdrHistogram(1, 3600 * 1000 * 1000 * 1000, 3))
    while True:
        histogram = reader.get_next_interval_histogram()
        if histogram is None:
            break
        tags[histogram.get_tag()] = tags.get(histogram.get_tag(), 0) + histogram.get_total_count()
    reader.close()
    if name == 'load: a load':
        assert tags == {'response': 1500, 'service': 1500}, tags
    if name == 'run: two contenders':
        assert tags == {'joust_reactor': 6000, 'joust_prefork': 6000}, tags
    if name == 'run: hostile names':
        assert len(tags) > 4, tags
"#;
    read("hdrh.histogram, hdrh.log", script, &all("hlog"));
}

#[test]
fn junit_is_read_by_the_parser_for_python() {
    let script = r#"
for name, path in pairs:
    report = junitparser.JUnitXml.fromfile(path)
    cases = [case for suite in report for case in suite]
    assert cases and all(case.name and case.classname for case in cases), name
    results = [type(result).__name__ for case in cases for result in case.result]
    assert results.count('Failure') == report.failures, name
    assert results.count('Error') == report.errors, name
"#;
    read("junitparser", script, &all("junit"));
}
