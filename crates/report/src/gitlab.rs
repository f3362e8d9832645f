//! GitLab's metrics report (`artifacts:reports:metrics`): of OpenMetrics the lines with samples. GitLab compares values
//! as texts, so they have three significant digits: more would show noise as a change. Its reader takes a `#` anywhere
//! for the start of a comment and splits at spaces like a shell, so labels have neither `#` nor quotes of their own.
//! Start reading at [`OUTPUT`].

use std::fmt::Write as _;

use crate::measured::{Measured, of_load, of_run};
use crate::open_metrics::families;
use crate::{Options, Output, Render, Written};

/// metrics.txt.
pub(crate) static OUTPUT: Output = Output {
    name: "gitlab",
    extension: "metrics.txt",
    about: "GitLab's metrics report, for merge requests",
    written: Written::OnRequest,
    run: Some(Render::Text(|record, _: &Options| metrics(of_run(record)))),
    load: Some(Render::Text(|record, _: &Options| metrics(of_load(record)))),
};

fn metrics(measured: Vec<Measured>) -> String {
    let measured: Vec<Measured> = measured.into_iter().map(without_marks).collect();
    let mut page = String::new();
    for family in families(&measured) {
        for (labels, value) in family.samples {
            let _ = writeln!(page, "{}{{{labels}}} {}", family.name, three_digits(value));
        }
    }
    page + "# EOF\n"
}

fn without_marks(one: Measured) -> Measured {
    let [cell, contender] = [&one.cell, &one.contender].map(|name| readable(name));
    Measured { cell, contender, ..one }
}

/// The name with look-alikes of the characters that GitLab would not read.
fn readable(name: &str) -> String {
    let readable = |c| match c {
        '#' => '\u{ff03}',
        '"' => '\u{201d}',
        '\\' => '\u{ff3c}',
        c => c,
    };
    name.chars().map(readable).collect()
}

fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}
