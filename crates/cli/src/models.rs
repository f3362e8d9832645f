//! `joust models`: the concurrency models of our server, and what each declares of itself.

use std::fmt::Write as _;

use serve::models::{ALL, COMMON, Model, SettingSpec};

use crate::output;
use crate::trouble::{Ended, Trouble};

/// List the concurrency models of `joust serve`, their settings and what each declares
#[derive(clap::Args)]
pub struct Args {
    /// Only this one
    model: Option<String>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let mut text = String::new();
    match &args.model {
        Some(name) => describe(&mut text, crate::serve::model(name)?),
        None => ALL.iter().for_each(|model| describe(&mut text, model)),
    }
    text.push_str("Settings that every model has:\n");
    settings(&mut text, COMMON);
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

fn describe(text: &mut String, model: &Model) {
    let declares = &model.declares;
    let rows = [
        ("accept order", declares.accept_order),
        ("kept-alive held by", declares.keep_alive_holder),
        ("backlog", declares.backlog),
        ("concurrency", declares.concurrency),
        ("at saturation", declares.saturation),
    ];
    put(text, format_args!("{}: {}\n", model.name, model.about));
    for (what, says) in rows {
        put(text, format_args!("  {what:<20} {says}\n"));
    }
    settings(text, model.settings);
    text.push('\n');
}

fn settings(text: &mut String, specs: &[SettingSpec]) {
    for spec in specs {
        let SettingSpec { name, about, kind } = spec;
        put(text, format_args!("  --set {name}={}\n      {about}\n", kind.default()));
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to memory does not fail");
}
