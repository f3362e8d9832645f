//! Measures the doctor: how often it finds planted faults, whether the share that it reports follows the dose, and how
//! often it alarms without a fault. `make prove` writes `docs/doctor-proof.md`. Start reading at [`main`]; the faults
//! are in `plants`.
//!
//! | variable | meaning |
//! |---|---|
//! | `JOUST_PROVE_SEEDS` | trials of each plant at either strength (default 20) |
//! | `JOUST_PROVE_VISITS` | clean visits, quiet and with a busy neighbour each (default 200) |
//! | `JOUST_PROVE_ONLY` | a part of the names of the planted checks, or `clean` (visits); other rows of the page stay |
//! | `JOUST_PROVE_PAGE` | where the page is written (default: not written) |
//! | `JOUST_BENCH_BINARY` | the `joust` under test (default: the one that cargo built) |
//!
//! Every trial of a load runs in its own network namespace with only a loopback interface, so network counters belong
//! to the trial. This needs root; without it the bench reports that and ends.

#[path = "../beside/mod.rs"]
mod beside;
mod clean;
mod namespace;
mod page;
mod plants;
mod runs;
mod trial;

use std::path::PathBuf;

use beside::Outcome;

/// The value of `JOUST_PROVE_ONLY` for visits without a planted fault.
const CLEAN: &str = "clean";

/// How much is measured.
pub struct Effort {
    pub seeds: u64,
    pub visits: u64,
    pub only: String,
    pub joust: PathBuf,
    /// Where the page is, or will be written.
    pub page: Option<PathBuf>,
}

fn main() -> Outcome<()> {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => {
            text.parse().map_err(|_| format!("{name} must be a whole number, got `{text}`"))
        }
        Err(_) => Ok(default),
    };
    let joust = std::env::var("JOUST_BENCH_BINARY");
    let effort = Effort {
        seeds: number("JOUST_PROVE_SEEDS", 20)?,
        visits: number("JOUST_PROVE_VISITS", 200)?,
        only: std::env::var("JOUST_PROVE_ONLY").unwrap_or_default(),
        joust: joust.map_or_else(|_| env!("CARGO_BIN_EXE_joust").into(), PathBuf::from),
        page: std::env::var_os("JOUST_PROVE_PAGE").map(PathBuf::from),
    };
    let is_asked = |check: &str| check.contains(&effort.only);
    let mut checks = plants::ALL.iter().map(|plant| plant.check);
    let mut checks_of_runs = runs::ALL.iter().map(|plant| plant.check);
    let with_clean = effort.only.is_empty() || effort.only == CLEAN;
    if !with_clean && !checks.any(is_asked) && !checks_of_runs.any(is_asked) {
        let only = &effort.only;
        return Err(format!(
            "JOUST_PROVE_ONLY must be `{CLEAN}` or part of the name of a check in docs/doctor-proof.md, got `{only}`"
        )
        .into());
    }
    namespace::check()?;
    let mut proof = page::Proof::begin(&effort);
    for plant in plants::ALL.iter().filter(|plant| is_asked(plant.check)) {
        let found = trial::prove(plant, &effort);
        println!("{}", page::line(&found));
        proof.found.push(found);
    }
    for plant in runs::ALL.iter().filter(|plant| is_asked(plant.check)) {
        let found = runs::prove(plant, &effort);
        println!("{}", page::line(&found));
        proof.found.push(found);
    }
    if effort.visits > 0 && with_clean {
        for neighbour in [clean::Neighbour::None, clean::Neighbour::Busy] {
            let alarms = clean::alarms(neighbour, &effort)?;
            println!("{}", page::alarms_line(&alarms));
            proof.alarms.push(alarms);
        }
    }
    let text = proof.page();
    match &effort.page {
        Some(path) => std::fs::write(path, text)?,
        None => println!("\n{text}"),
    }
    proof.verdict()
}
