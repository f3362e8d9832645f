//! The results, in words, rows and one Markdown table. Must not know how they were measured. Start
//! reading at [`figures`].

use super::beside::Outcome;
use super::beside::compare::{Compared, count_bars, median};
use super::beside::machine::machine;
use super::idle::{MEMORY_MAX, Memory};
use super::session::{Block, Shown, contenders};
use super::{Opponent, Page, Row, Score, Settings};

/// The peers' packages.
const PACKAGES: &[&str] = &["nginx-light", "nginx", "lighttpd", "h2o", "apache2", "tomcat10"];

/// The figures of one row: ours against each of its opponents, in their order.
pub struct Figures {
    against: Vec<Against>,
}

/// Ours over one opponent; the bar applies to the score.
struct Against {
    opponent: &'static Opponent,
    requests_per_s: Compared,
    cpu_us_per_request: Compared,
}

/// Compares ours, which comes first in each block, with each opponent.
pub fn figures(row: &Row, blocks: &[Block]) -> Outcome<Figures> {
    let against = |(index, opponent): (usize, &'static Opponent)| {
        let pair = (0, index + 1);
        let (of_rate, of_cpu) = match row.score {
            Score::RequestsPerSecond => (opponent.bar, None),
            Score::CpuPerRequest => (None, opponent.bar),
        };
        Ok(Against {
            opponent,
            requests_per_s: Compared::of(blocks, pair, |shown| shown.requests_per_s, of_rate)?,
            cpu_us_per_request: Compared::of(
                blocks,
                pair,
                |shown: &Shown| shown.cpu_us_per_request,
                of_cpu,
            )?,
        })
    };
    let against: Outcome<Vec<Against>> = row.opponents.iter().enumerate().map(against).collect();
    Ok(Figures { against: against? })
}

fn described(row: &Row) -> String {
    let page = match row.page {
        Page::Program => "CGI, 1 KB".to_owned(),
        Page::File(3_000_000) => "3 MB".to_owned(),
        Page::File(bytes) => format!("{bytes} B"),
    };
    let kept = if row.keep_alive { "keep-alive" } else { "a connection each request" };
    format!("{page}, {} connections, {kept}", row.connections)
}

/// Prints what will run, before the first run.
pub fn print_preface(settings: &Settings) {
    let Settings { blocks, seconds, joust, .. } = settings;
    println!("{} beside its peers: {blocks} blocks, each run {seconds} s", joust.display());
    println!(
        "ratios are ours over the other, by block, with 95 % intervals; a bar is reached by the"
    );
    println!("estimate; CPU time is of all processes of a server, by the kernel's count");
}

/// Prints one row while the session runs.
pub fn print_row(row: &Row, blocks: &[Block], figures: &Figures) {
    println!("\n{}: {}", row.name, described(row));
    for (index, contender) in contenders(row).iter().enumerate() {
        let median = |of: fn(&Shown) -> f64| median(blocks, index, of);
        println!(
            "  {:<16} {:>9.0} requests/s {:>9.2} CPU us/request   {:>3.0} % busy   p99 {:>8.2} ms",
            contender.name,
            median(|shown| shown.requests_per_s),
            median(|shown| shown.cpu_us_per_request),
            100.0 * median(|shown| shown.server_busy),
            median(|shown| shown.p99_ms),
        );
    }
    for against in &figures.against {
        println!("  over {}", against.opponent.contender.name);
        println!("    requests/s       {}", against.requests_per_s.verdict());
        println!("    CPU per request  {}", against.cpu_us_per_request.verdict());
    }
}

/// The whole session as Markdown, for the README.
pub fn print_table(settings: &Settings, met: &[(&Row, Figures)], memory: &Memory) {
    println!("\n{}, {} blocks of {} s.\n", machine(PACKAGES), settings.blocks, settings.seconds);
    println!(
        "| workload | ours | against | CPU us per request, ours : theirs | ratio | requests/s, ours \
         : theirs | ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (row, figures) in met {
        for against in &figures.against {
            let (rate, cpu) = (&against.requests_per_s, &against.cpu_us_per_request);
            println!(
                "| {} | {} | {} | {:.2} : {:.2} | {} | {:.0} : {:.0} | {} |",
                described(row),
                row.ours.name,
                against.opponent.contender.name,
                cpu.median_ours,
                cpu.median_theirs,
                cpu.verdict(),
                rate.median_ours,
                rate.median_theirs,
                rate.verdict(),
            );
        }
    }
    let Memory { connections, idle_bytes, bare_bytes } = memory;
    let word = if *idle_bytes < MEMORY_MAX { "reached" } else { "MISSED" };
    println!(
        "\n{connections} idle kept-alive connections, reactor: {:.1} MB ({:.1} MB before the first), \
         under {:.0} MB: {word}",
        *idle_bytes as f64 / 1e6,
        *bare_bytes as f64 / 1e6,
        MEMORY_MAX as f64 / 1e6,
    );
    let against = met.iter().flat_map(|(_, figures)| &figures.against);
    let compared = against.flat_map(|it| [&it.requests_per_s, &it.cpu_us_per_request]);
    println!("{}, the memory not counted", count_bars(compared));
}
