//! `joust models`: the concurrency models of our server, with the declarations of each.

use std::fmt::Write as _;

use serve::models::{ALL, COMMON, Model, SettingSpec};

use crate::output;
use crate::trouble::{Ended, Trouble};

/// List the concurrency models of `joust serve`, their settings and what each declares
#[derive(clap::Args)]
pub struct Args {
    /// Show only this model
    model: Option<String>,
}

pub fn main(args: &Args) -> Result<Ended, Trouble> {
    let mut text = String::new();
    let models = match &args.model {
        Some(name) => vec![crate::serve::model(name)?],
        None => ALL.to_vec(),
    };
    models.iter().for_each(|model| describe(&mut text, model));
    // A setting for which a model has its own default is listed with that model.
    let restates = |model: &&Model, name| model.settings.iter().any(|own| own.name == name);
    let is_common = |spec: &&SettingSpec| !models.iter().all(|model| restates(model, spec.name));
    text.push_str("Settings of every model, unless listed above with another default:\n");
    COMMON.iter().filter(is_common).for_each(|spec| setting(&mut text, spec));
    text.push_str(
        "\nLimits on the time and the bytes of a client are in table [limits] of `joust serve \
         --print-config`:\n  --set limits.head_timeout=20s\n",
    );
    output::stdout(text.as_bytes())?;
    Ok(Ended::Well)
}

fn describe(text: &mut String, model: &Model) {
    let declares = &model.declares;
    let rows = [
        ("accept order", declares.accept_order),
        ("keep-alive held by", declares.keep_alive_holder),
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
