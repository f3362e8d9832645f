//! joust: compares web servers and says whether the result can be trusted. Owns argv, the
//! subcommands, exit codes and stdout; contains no algorithm. One file per subcommand.

#[cfg(feature = "fleet")]
mod agent;
mod classic;
mod compare;
mod doctor;
#[cfg(feature = "fleet")]
mod fleet;
#[cfg(feature = "history-database")]
mod history;
mod load;
mod manual;
mod metric;
mod models;
mod output;
mod printed;
mod progress;
mod report;
#[cfg(feature = "history-database")]
mod reports_site;
mod run;
mod run_file;
mod screen;
mod serve;
mod servers;
mod terminal;
mod trouble;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use trouble::{Ended, Trouble};

/// Puts web servers head to head and says whether the answer can be believed.
///
/// With no study, `joust run` compares the web servers that are installed on this machine.
#[derive(Parser)]
#[command(name = "joust", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success, 1 failure, 2 usage error, 3 run incomplete or every verdict \
                  withheld, 4 the load generator was the bottleneck, 99 a goal was missed or a \
                  regression was found."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Load(Box<load::Args>),
    #[cfg(feature = "fleet")]
    Fleet(fleet::Args),
    #[cfg(feature = "fleet")]
    Agent(agent::Args),
    Serve(Box<serve::Args>),
    Report(report::Args),
    Compare(compare::Args),
    #[cfg(feature = "history-database")]
    History(history::Args),
    Doctor(doctor::Args),
    Models(models::Args),
    Servers(servers::Args),
    Man(manual::Man),
    Completions(manual::Completions),
}

fn main() -> ExitCode {
    if let Some(code) = classic::called(std::env::args_os().collect()) {
        return code;
    }
    #[cfg(feature = "history-database")]
    if let Some(code) = reports_site::called() {
        return code;
    }
    let cli = Cli::from_arg_matches(&whole().get_matches()).unwrap_or_else(|error| error.exit());
    let ended = match cli.command {
        Command::Run(args) => run::main(&args),
        Command::Load(args) => load::main(&args),
        #[cfg(feature = "fleet")]
        Command::Fleet(args) => fleet::main(&args),
        #[cfg(feature = "fleet")]
        Command::Agent(args) => agent::main(&args),
        Command::Serve(args) => serve::main(*args),
        Command::Report(args) => report::main(&args),
        Command::Compare(args) => compare::main(&args),
        #[cfg(feature = "history-database")]
        Command::History(args) => history::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::Models(args) => models::main(&args),
        Command::Servers(args) => servers::main(&args),
        Command::Man(args) => manual::man(&args, whole()),
        Command::Completions(args) => manual::completions(&args, whole()),
    };
    ended.unwrap_or_else(Trouble::show).into()
}

/// The complete command line: our subcommands, and the classic tools.
fn whole() -> clap::Command {
    classic::with_subcommands(Cli::command())
}

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        Self::from(ended as u8)
    }
}
