//! `joust man` and `joust completions`: the command-line definitions as manual pages and shell completions.

use std::path::PathBuf;

use clap_complete::Shell;
use miette::miette;

use crate::output::{self, Destination};
use crate::trouble::{Ended, Trouble};

/// Write the manual pages: joust.1, and one for each subcommand
#[derive(clap::Args)]
#[command(after_help = "To read one: joust man ~/.local/share/man/man1 && man joust-load")]
pub struct Man {
    /// Folder for the pages, created if missing; without it, joust.1 is printed
    dir: Option<PathBuf>,
}

/// Print the completions for a shell
#[derive(clap::Args)]
#[command(
    after_help = "bash: joust completions bash > ~/.local/share/bash-completion/completions/joust\n\
                  zsh: joust completions zsh > a folder of $fpath, as _joust\n\
                  fish: joust completions fish > ~/.config/fish/completions/joust.fish"
)]
pub struct Completions {
    /// Shell that will read the completions
    shell: Shell,
}

pub fn man(args: &Man, command: clap::Command) -> Result<Ended, Trouble> {
    // The pages of `joust help` would repeat the others.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        output::stdout(&page(command).1)?;
        return Ok(Ended::Well);
    };
    std::fs::create_dir_all(dir).map_err(|error| {
        Trouble::failed(miette!(
            help = "name a folder that you may write to",
            "cannot create {}: {error}",
            dir.display()
        ))
    })?;
    let subcommands: Vec<_> = command.get_subcommands().cloned().collect();
    for each in std::iter::once(command).chain(subcommands) {
        let (name, text) = page(each);
        output::write(&Destination::File(dir.join(name)), &text)?;
    }
    Ok(Ended::Well)
}

/// File name and text of one page.
fn page(command: clap::Command) -> (String, Vec<u8>) {
    let page = clap_mangen::Man::new(command).manual("joust");
    let mut text = Vec::new();
    page.render(&mut text).expect("memory takes all that is written");
    (page.get_filename(), text)
}

pub fn completions(args: &Completions, mut command: clap::Command) -> Result<Ended, Trouble> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "joust", &mut text);
    output::stdout(&text)?;
    Ok(Ended::Well)
}
