//! `joust serve`: what is typed becomes a configuration, and the configuration a server.

use std::net::SocketAddr;
use std::path::PathBuf;

use miette::miette;
use serve::config::{AccessLogConfig, Content, LogFormat};
use serve::models::{ALL, Model, Settings};
use serve::{Config, Service};
use units::Bytes;

use crate::output;
use crate::trouble::{Ended, Trouble};

/// Serve a directory, under a concurrency model of your choice
#[derive(clap::Args)]
#[command(
    after_help = "SIGTERM drains: what is being answered is answered. SIGINT stops at once. `joust models` describes the models and their settings."
)]
pub struct Args {
    /// The directory
    #[arg(required_unless_present = "fixed", conflicts_with = "fixed")]
    dir: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(short, long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The concurrency model
    #[arg(short, long, value_name = "NAME", default_value = ALL[0].name)]
    model: String,
    /// A setting of the model, by its original name; repeatable
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Answer every path with a page of this size from memory: the ceiling
    #[arg(long, value_name = "BYTES")]
    fixed: Option<Bytes>,
    /// A line for each request, appended to this file; off: none
    #[arg(long, value_name = "FILE|off", default_value = "off")]
    access_log: String,
    /// What the line holds
    #[arg(long, value_name = "common|combined", default_value = "common")]
    log_format: String,
    /// List directories that have no index file
    #[arg(long)]
    listing: bool,
    /// CPUs to run on, as in 0 or 2,3
    #[arg(long, value_delimiter = ',', value_name = "CPU")]
    cpus: Vec<u32>,
}

pub fn main(args: Args) -> Result<Ended, Trouble> {
    let config = config(args)?;
    let model = config.model.name;
    let service = Service::bind(config).map_err(failed)?;
    output::stdout(format!("{model} serves http://{}/\n", service.address()).as_bytes())?;
    service.run().map_err(failed)?;
    Ok(Ended::Well)
}

/// The model of that name.
pub fn model(name: &str) -> Result<&'static Model, Trouble> {
    serve::models::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|model| model.name).collect();
        Trouble::usage(miette!(
            help = format!("the models are {}", names.join(", ")),
            "there is no concurrency model `{name}`"
        ))
    })
}

fn config(args: Args) -> Result<Config, Trouble> {
    let content = match (args.fixed, args.dir) {
        (Some(bytes), _) => Content::Fixed(bytes),
        (None, Some(dir)) => Content::Directory(dir),
        (None, None) => unreachable!("clap requires one of the two"),
    };
    let mut config = Config::new(model(&args.model)?, content);
    let mut settings = Settings::defaults(config.model);
    for pair in &args.set {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Trouble::usage(miette!("`{pair}` is no setting: write --set KEY=VALUE"))
        })?;
        settings.set(name, value).map_err(|error| Trouble::usage(miette!("{error}")))?;
    }
    config.apply(settings).map_err(|error| Trouble::usage(miette!("{error}")))?;
    config.listen = args.listen;
    config.listing = args.listing;
    config.cpus = args.cpus;
    config.access_log = AccessLogConfig {
        file: (args.access_log != "off").then(|| args.access_log.into()),
        format: match args.log_format.as_str() {
            "combined" => LogFormat::Combined,
            _ => LogFormat::Common,
        },
    };
    Ok(config)
}

fn failed(error: serve::ServeError) -> Trouble {
    Trouble::failed(miette!("{error}"))
}
