//! What the benches beside peers share: the ratio of two figures by block with its bar, processes pinned to a CPU with
//! their CPU time, and the description of the machine. Must not know what is compared. Start reading at
//! [`compare::Compared`].

#![allow(dead_code, reason = "each bench is a program of its own and uses its part")]

pub mod compare;
pub mod http;
pub mod machine;
pub mod process;
pub mod server;

use std::error::Error;

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The server's CPU, and the generator's.
pub const SERVER_CPU: &str = "0";
pub const CLIENT_CPU: &str = "1";

/// Seed of the order in each block.
pub const SEED: u64 = 1;

/// A positive integer from the environment.
pub fn number(name: &str, unless_set: u32) -> Result<u32, String> {
    match std::env::var(name) {
        Ok(text) => match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{name}={text}: a whole number above 0 is wanted")),
        },
        Err(_) => Ok(unless_set),
    }
}

/// The rows that `JOUST_BENCH_ROWS` names, or all if the list is empty.
pub fn rows_named<T>(rows: &'static [T], name: fn(&T) -> &'static str) -> Outcome<Vec<&'static T>> {
    let list = std::env::var("JOUST_BENCH_ROWS").unwrap_or_default();
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let known: Vec<&str> = rows.iter().map(name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        let known = known.join(", ");
        return Err(format!("JOUST_BENCH_ROWS: no row `{unknown}`; there are {known}").into());
    }
    Ok(rows.iter().filter(|row| names.is_empty() || names.contains(&name(row))).collect())
}

/// The joust under test: the one built with the bench, or `JOUST_BENCH_BINARY`.
pub fn joust(built: &str) -> Outcome<std::path::PathBuf> {
    Ok(program_named("JOUST_BENCH_BINARY")?.unwrap_or_else(|| built.into()))
}

/// An earlier joust that is compared with the one under test in every row: `JOUST_BENCH_EARLIER`.
pub fn earlier() -> Outcome<Option<std::path::PathBuf>> {
    program_named("JOUST_BENCH_EARLIER")
}

/// The program whose path is in the environment.
fn program_named(variable: &str) -> Outcome<Option<std::path::PathBuf>> {
    let Some(path) = std::env::var_os(variable).map(std::path::PathBuf::from) else {
        return Ok(None);
    };
    if !path.is_file() {
        return Err(format!(
            "{variable} must be the absolute path of a program (cargo runs benches in crates/cli), got {}",
            path.display()
        )
        .into());
    }
    Ok(Some(path))
}
