//! `joust servers`: the servers that studies can run, which of them are on this machine, and the
//! settings of each.

use std::path::PathBuf;

use lab::adapters::{self, Adapter, Found, Missing, Search, SettingSpec};
use miette::{IntoDiagnostic as _, miette};
use serde_json::{Value, json};

use crate::output;
use crate::trouble::{Ended, Trouble};

/// List the servers that studies can run, what is installed, and their settings
#[derive(clap::Args)]
#[command(
    after_help = "A contender of a study names a server: [[contender]] with server = \"nginx\" and settings.NAME = VALUE. docs/adding-a-server.md says how to add a server."
)]
pub struct Args {
    /// Show only this server, with its settings
    server: Option<String>,
    /// Print JSON, with the settings of each
    #[arg(long)]
    json: bool,
}

/// A server, and whether it is installed.
struct Row {
    adapter: &'static Adapter,
    found: Result<Found, Missing>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let joust = std::env::current_exe().into_diagnostic().map_err(Trouble::failed)?;
    let search = Search::new(joust);
    let chosen = match &args.server {
        Some(name) => {
            vec![adapters::named(name).map_err(|error| Trouble::usage(miette!("{error}")))?]
        }
        None => adapters::ALL.to_vec(),
    };
    let look = |adapter: &'static Adapter| Row { adapter, found: adapter.installed(&search) };
    let rows: Vec<Row> = chosen.into_iter().map(look).collect();
    let text = match (args.json, &args.server) {
        (true, _) => json_of(&rows),
        (false, None) => table(&rows),
        (false, Some(_)) => rows.iter().map(one).collect(),
    };
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

/// A line for each server: name, version or what is missing, path or how to get it.
fn table(rows: &[Row]) -> String {
    let lines: Vec<Vec<String>> = rows.iter().map(|row| line(row).to_vec()).collect();
    let titles = ["server", "version", "program, or how to get it"];
    let remark = "`joust servers NAME` lists the settings of one.";
    report::rows_text(&titles, &lines, remark, &crate::terminal::report_options())
}

fn line(row: &Row) -> [String; 3] {
    let (state, place) = match &row.found {
        Ok(found) if found.binary == PathBuf::new() => {
            ("always there".to_owned(), row.adapter.about.to_owned())
        }
        Ok(found) => (found.version.clone(), found.binary.display().to_string()),
        Err(missing) => (not_usable(row.adapter, missing), missing.remedy.clone()),
    };
    [row.adapter.name.to_owned(), state, place]
}

/// The reason without the name, which precedes it.
fn not_usable(adapter: &Adapter, missing: &Missing) -> String {
    let reason = missing.reason.strip_prefix(adapter.name).unwrap_or(&missing.reason);
    reason.trim_start().trim_start_matches("is ").to_owned()
}

fn one(row: &Row) -> String {
    let adapter = row.adapter;
    let [name, state, place] = line(row);
    let mut facts = vec![("version", state)];
    match &row.found {
        Ok(found) if found.binary == PathBuf::new() => {}
        Ok(_) => facts.push(("program", place)),
        Err(_) => facts.push(("how to get it", place)),
    }
    if !adapter.package.is_empty() {
        facts.push(("Debian package", adapter.package.to_owned()));
    }
    if let Some(minimum) = adapter.minimum {
        facts.push(("minimum version", format!("{}, for {}", minimum.version, minimum.lack)));
    }
    if adapter.hands_on {
        let text = "passed on unchanged; `joust models` lists them";
        facts.push(("further settings", text.to_owned()));
    }
    let setting = |SettingSpec { name, preset, about, kind, .. }: &SettingSpec| {
        (format!("{name} = {preset} ({})", kind.wanted()), (*about).to_owned())
    };
    // Some begin with their own name.
    let about = adapter
        .about
        .strip_prefix(adapter.name)
        .map_or(adapter.about, |rest| rest.strip_prefix(": ").unwrap_or(adapter.about));
    let terms = adapter.settings.iter().map(setting).collect();
    let listed = report::Listed { title: format!("{name}: {about}"), facts, terms };
    report::listed_text(&listed, &crate::terminal::report_options())
}

fn json_of(rows: &[Row]) -> String {
    let all: Vec<Value> = rows.iter().map(row_json).collect();
    let mut text = serde_json::to_string_pretty(&json!({ "servers": all }))
        .expect("strings and lists are JSON");
    text.push('\n');
    text
}

fn row_json(row: &Row) -> Value {
    let setting = |spec: &SettingSpec| {
        json!({
            "name": spec.name,
            "also": spec.aliases,
            "preset": spec.preset,
            "takes": spec.kind.wanted(),
            "about": spec.about,
        })
    };
    let settings: Vec<Value> = row.adapter.settings.iter().map(setting).collect();
    let adapter = row.adapter;
    let mut value = json!({
        "name": adapter.name,
        "about": adapter.about,
        "package": adapter.package,
        "installed": row.found.is_ok(),
        "settings": settings,
    });
    let mut add = |key: &str, text: String| value[key] = Value::String(text);
    match &row.found {
        Ok(found) => {
            add("version", found.version.clone());
            add("program", found.binary.display().to_string());
        }
        Err(missing) => {
            add("reason", missing.reason.clone());
            add("remedy", missing.remedy.clone());
        }
    }
    value
}
