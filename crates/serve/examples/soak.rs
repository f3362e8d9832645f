//! Runs a server with several faults at once, under each model in turn. Eight clients send requests all the time, and
//! connect again whenever they are disconnected. Checks whether the server leaves anything behind: file descriptors,
//! processes, memory.
//!
//! `soak REQUESTS TIME [MODEL ...]`, as in `soak 1000000 10m`: this number of requests under each model, or as many as
//! the time allows. Ends with 1 if something has grown. `cargo build -p joust-serve --examples` builds the server it
//! starts. Owns nothing that is used elsewhere: its test is `tests/soak.rs`.

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use units::Nanos;

#[path = "../tests/support/soak.rs"]
mod soak;
#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [requests, time, models @ ..] = args.as_slice() else {
        return Err("soak REQUESTS TIME [MODEL ...]".into());
    };
    let (requests, time) = (requests.parse()?, Duration::from(time.parse::<Nanos>()?));
    let mut out = std::io::stdout();
    let mut ended = ExitCode::SUCCESS;
    let is_asked = |model: &&str| models.is_empty() || models.iter().any(|typed| typed == model);
    for model in support::models().filter(is_asked) {
        let soaked = soak::soak(model, requests, time);
        let cut = if soaked.answered() < requests { "; the time was over" } else { "" };
        writeln!(out, "{model:<13} {soaked}{cut}")?;
        if let Err(what) = soaked.grown() {
            writeln!(out, "{model:<13} {what}")?;
            ended = ExitCode::FAILURE;
        }
    }
    Ok(ended)
}
