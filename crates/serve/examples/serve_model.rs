//! A server of one model in a process of its own, for the tests of the models: a model takes over its whole process (it
//! forks, and owns the signals). Not for use; that is `joust serve`.
//!
//! `serve_model MODEL DIR|--fixed=BYTES LOG|off [SETTING=VALUE ...] [--fault=SPEC ...] [--status=PATH]
//! [--config=TOML]` writes its address to standard output, and serves.

use std::error::Error;
use std::io::Write as _;

use joust_serve::{CommandLine, Service};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, content, log, more @ ..] = args.as_slice() else {
        return Err("serve_model MODEL DIR|--fixed=BYTES LOG|off \
                    [SETTING=VALUE|--fault=SPEC|--config=TOML ...]"
            .into());
    };
    let mut typed = CommandLine {
        model: Some(model.clone()),
        listen: Some("127.0.0.1:0".parse()?),
        access_log: Some(log.clone()),
        ..CommandLine::default()
    };
    match content.strip_prefix("--fixed=") {
        Some(bytes) => typed.fixed = Some(bytes.parse()?),
        None => typed.directory = Some(content.into()),
    }
    let mut file = "";
    for one in more {
        if let Some(fault) = one.strip_prefix("--fault=") {
            typed.fault.push(fault.to_owned());
        } else if let Some(path) = one.strip_prefix("--status=") {
            typed.status = Some(path.to_owned());
        } else if let Some(text) = one.strip_prefix("--config=") {
            file = text;
        } else {
            typed.set.push(one.clone());
        }
    }
    let service = Service::bind(typed.resolve_with("--config", file)?)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", service.address())?;
    out.flush()?;
    Ok(service.run()?)
}
