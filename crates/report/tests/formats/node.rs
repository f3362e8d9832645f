//! Formats read by packages of npm, where they are installed (`scripts/peers.sh`): the readers that people use. Start
//! reading at [`read`].

use std::path::PathBuf;
use std::process::Command;

use crate::all;

/// Exit code of a script that finds a package missing.
const MISSING: i32 = 77;

/// Runs a script over files, which it finds as `pairs` of name and path. It must end without an error, for each.
fn read(package: &str, script: &str, files: &[(String, Vec<u8>)]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let modules = std::env::var_os("JOUST_TEST_MODULES")
        .map_or_else(|| home.join(".cache/joust-tests/node_modules"), PathBuf::from);
    let program = format!(
        r#"
        const assert = require("node:assert"), fs = require("node:fs");
        let library;
        try {{ library = require({package:?}); }} catch (error) {{ console.log(error.message); process.exit({MISSING}); }}
        const args = process.argv.slice(2), folder = args.shift(), pairs = [];
        while (args.length) pairs.push([args.shift(), args.shift()]);
        for (const [name, path] of pairs) {{
            try {{ {script} }} catch (error) {{ error.message = name + ": " + error.message; throw error; }}
        }}
        console.log("read", pairs.length);
        "#
    );
    let path = folder.path().join("read.cjs");
    std::fs::write(&path, program).expect("the folder is ours");
    let mut command = Command::new("node");
    command.env("NODE_PATH", &modules).arg(path).arg(folder.path());
    for (index, (name, bytes)) in files.iter().enumerate() {
        let path = folder.path().join(format!("{index}.json"));
        std::fs::write(&path, bytes).expect("the folder is ours");
        command.arg(name).arg(path);
    }
    let Ok(output) = command.output() else {
        return skips::note("node is not installed (scripts/peers.sh brings it)");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(MISSING) {
        let why = said.lines().next().unwrap_or_default();
        return skips::note(format_args!("{why} (scripts/peers.sh brings it)"));
    }
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && trouble.is_empty(), "{said}{trouble}");
    assert!(said.ends_with(&format!("read {}\n", files.len())), "{said}");
}

#[test]
fn k6_html_reporter_shows_every_metric_of_the_summary() {
    let script = r#"
        const summary = JSON.parse(fs.readFileSync(path, "utf8"));
        // k6 prints a percentile of any two requests; what has too few is left out here, and this reader needs all.
        const isWhole = (metric) => metric.type !== "trend" || ["avg", "med", "p(90)", "p(95)"].every((figure) => figure in metric.values);
        assert(name !== "load: a load" || Object.values(summary.metrics).every(isWhole));
        summary.metrics = Object.fromEntries(Object.entries(summary.metrics).filter(([, metric]) => isWhole(metric)));
        fs.writeFileSync(path, JSON.stringify(summary));
        const out = folder + "/" + pairs.findIndex((pair) => pair[1] === path) + "-html";
        library.generateSummaryReport({ jsonFile: path, output: out });
        const page = fs.readFileSync(out + "/report.html", "utf8");
        for (const metric of Object.keys(summary.metrics)) {
            assert(metric === "checks" || page.includes(metric), metric);
        }
        assert(!/NaN|undefined|\[object/.test(page.replace(/<script[\s\S]*?<\/script>/g, "")), "a figure is missing");
        if (name === "load: a load") {
            for (const check of summary.root_group.checks) assert(page.includes(check.name.slice(0, 3)), check.name);
            assert(summary.root_group.checks.length >= 2);
        }
    "#;
    read("k6-html-reporter", script, &all("k6-summary"));
}

#[test]
fn k6_junit_makes_a_test_case_of_every_goal() {
    let script = r#"
        const summary = JSON.parse(fs.readFileSync(path, "utf8"));
        const xml = library.jUnit(summary);
        assert(xml.includes("<testsuites"), xml);
        const count = (xml.match(/<testcase/g) || []).length;
        assert(count >= summary.root_group.checks.length, xml);
    "#;
    read("k6-junit", script, &all("k6-summary"));
}
