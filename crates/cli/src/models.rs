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
    let models = match &args.model {
        Some(name) => vec![crate::serve::model(name)?],
        None => ALL.to_vec(),
    };
    models.iter().for_each(|model| describe(&mut text, model));
    // One that a model has with a default of its own stands with that model.
    let restates = |model: &&Model, name| model.settings.iter().any(|own| own.name == name);
    let is_common = |spec: &&SettingSpec| !models.iter().all(|model| restates(model, spec.name));
    text.push_str("Settings that every model has, unless they stand above with another default:\n");
    COMMON.iter().filter(is_common).for_each(|spec| setting(&mut text, spec));
    text.push_str(
        "\nHow long a client may wait and how much it may send is in `joust serve --print-config`, table \
         [limits]:\n  --set limits.head_timeout=20s\n",
    );
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
    model.settings.iter().for_each(|spec| setting(text, spec));
    text.push('\n');
}

fn setting(text: &mut String, spec: &SettingSpec) {
    let SettingSpec { name, about, kind } = spec;
    put(text, format_args!("  --set {name}={}\n      {about}\n", kind.default()));
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to memory does not fail");
}
