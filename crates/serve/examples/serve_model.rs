//! A server of one model as a process of its own, as the tests of the models need it: a model takes
//! its whole process over (it forks, and owns the signals). Not for use; that is `joust serve`.
//!
//! `serve_model MODEL DIR|--fixed=BYTES LOG|off [SETTING=VALUE ...] [--fault=SPEC ...]` writes its address to standard
//! output, and serves.

use std::error::Error;
use std::io::Write as _;

use joust_serve::config::Content;
use joust_serve::models::{self, Settings};
use joust_serve::{Config, Service};

const FAULT: &str = "--fault=";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, content, log, settings @ ..] = args.as_slice() else {
        return Err(
            "serve_model MODEL DIR|--fixed=BYTES LOG|off [SETTING=VALUE|--fault=SPEC ...]".into()
        );
    };
    let model = models::by_name(model).ok_or_else(|| format!("no model {model}"))?;
    let content = match content.strip_prefix("--fixed=") {
        Some(bytes) => Content::Fixed(bytes.parse()?),
        None => Content::Directory(content.into()),
    };
    let mut config = Config::new(model, content);
    config.listen = "127.0.0.1:0".parse()?;
    config.access_log.file = (log != "off").then(|| log.into());
    let faults = settings.iter().filter_map(|typed| typed.strip_prefix(FAULT));
    config.faults = faults.map(str::parse).collect::<Result<_, _>>()?;
    config.apply(set(model, settings)?)?;
    let service = Service::bind(config)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", service.address())?;
    out.flush()?;
    Ok(service.run()?)
}

fn set(model: &models::Model, typed: &[String]) -> Result<Settings, Box<dyn Error>> {
    let mut settings = Settings::defaults(model);
    for pair in typed.iter().filter(|typed| !typed.starts_with(FAULT)) {
        let (name, value) = pair.split_once('=').ok_or("settings are NAME=VALUE")?;
        settings.set(name, value)?;
    }
    Ok(settings)
}
