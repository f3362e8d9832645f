//! The results, in words, rows and one Markdown table. Must not know how they were measured. Start
//! reading at [`figures`].

use crate::beside::compare::{Compared, count_bars, median, ratio};
use crate::beside::machine::machine;
use crate::generators::{BARE_LOOP, OURS};
use crate::session::{Block, Shown, generators};
use crate::{Opponent, Outcome, Row, Settings};

/// The figures of one row: ours against each of its opponents, in their order.
pub struct Figures {
    against: Vec<Against>,
}

/// Ours over one opponent.
struct Against {
    opponent: &'static Opponent,
    requests_per_s: Compared,
    cpu_us_per_request: Compared,
    server_busy: Compared,
}

/// Compares ours, which comes first in each block, with each opponent.
pub fn figures(row: &Row, blocks: &[Block]) -> Outcome<Figures> {
    let against = |(index, opponent): (usize, &'static Opponent)| {
        let compare = |of: fn(&Shown) -> f64, bar| Compared::of(blocks, (0, index + 1), of, bar);
        Ok(Against {
            opponent,
            requests_per_s: compare(|shown| shown.requests_per_s, opponent.bars.requests_per_s)?,
            cpu_us_per_request: compare(
                |shown| shown.cpu_us_per_request,
                opponent.bars.cpu_per_request,
            )?,
            server_busy: compare(|shown| shown.server_busy, None)?,
        })
    };
    let against: Outcome<Vec<Against>> = row.opponents.iter().enumerate().map(against).collect();
    Ok(Figures { against: against? })
}

fn described(row: &Row) -> String {
    let length = match row.page_bytes {
        3_000_000 => "3 MB".to_owned(),
        bytes if bytes % 1000 == 0 => format!("{} KB", bytes / 1000),
        bytes => format!("{bytes} B"),
    };
    let kept = if row.keep_alive { "keep-alive" } else { "new connection for each request" };
    format!("{length}, {} connections, {kept}; {}", row.connections, row.serving.name())
}

/// Prints what will run, before the first run.
pub fn print_preface(settings: &Settings) {
    let Settings { blocks, seconds, joust, .. } = settings;
    println!("{} beside its peers: {blocks} blocks, each run {seconds} s", joust.display());
    println!(
        "ratios are joust load over the other, by block, with 95 % intervals; a bar is reached"
    );
    println!("by the estimate; CPU time is of the whole process, its start and report included");
    println!("requests/s are each tool's own:");
    for generator in [&OURS].into_iter().chain(peers(settings)) {
        println!("  {:<12} {}", generator.name, generator.window);
    }
}

/// Every opponent of the session once.
fn peers(settings: &Settings) -> Vec<&'static crate::Generator> {
    let mut peers: Vec<&'static crate::Generator> = Vec::new();
    for opponent in settings.rows.iter().flat_map(|row| row.opponents) {
        if peers.iter().all(|peer| peer.name != opponent.generator.name) {
            peers.push(opponent.generator);
        }
    }
    peers
}

/// Prints one row while the session runs.
pub fn print_row(row: &Row, blocks: &[Block], figures: &Figures) {
    println!("\n{}: {}", row.name, described(row));
    for (index, generator) in generators(row).iter().enumerate() {
        let median = |of: fn(&Shown) -> f64| median(blocks, index, of);
        print!(
            "  {:<12} {:>9.0} requests/s {:>9.2} CPU us/request   itself {:>3.0} %, server {:>3.0} % busy",
            generator.name,
            median(|shown| shown.requests_per_s),
            median(|shown| shown.cpu_us_per_request),
            100.0 * median(|shown| shown.own_busy),
            100.0 * median(|shown| shown.server_busy),
        );
        // Ports in TIME_WAIT are the only effect of such runs on the next.
        match row.keep_alive {
            true => println!(),
            false => println!("   {:>6.0} in TIME_WAIT before", median(|shown| shown.time_wait)),
        }
    }
    for against in &figures.against {
        println!("  over {}", against.opponent.generator.name);
        println!("    requests/s       {}", against.requests_per_s.verdict());
        println!("    CPU per request  {}", against.cpu_us_per_request.verdict());
    }
    print_floor(row, blocks, figures);
}

/// Our distance from the bare loop, and the distance of the row's first opponent.
fn print_floor(row: &Row, blocks: &[Block], figures: &Figures) {
    let is_floor = |against: &Against| against.opponent.generator.name == BARE_LOOP.name;
    let Some(at) = figures.against.iter().position(is_floor) else { return };
    let floor = &figures.against[at];
    let over_first = |of| ratio(blocks, at + 1, 1, of).map_or(f64::NAN, |ratio| ratio.ratio);
    println!(
        "  the bare loop, which parses nothing: {:.2} x {}'s requests/s for {:.2} of its CPU time; \
         we have {:.0} % of the bare loop's requests/s for {:.2} x its CPU time",
        over_first(|shown| shown.requests_per_s),
        row.opponents[0].generator.name,
        over_first(|shown| shown.cpu_us_per_request),
        100.0 * floor.requests_per_s.ratio.ratio,
        floor.cpu_us_per_request.ratio.ratio,
    );
}

/// The whole session as Markdown, for the README.
pub fn print_table(settings: &Settings, met: &[(&Row, Figures)]) {
    println!("\n{}, {} blocks of {} s.\n", machine(PACKAGES), settings.blocks, settings.seconds);
    println!(
        "| workload; server | against | requests/s, ours : theirs | ratio | CPU us per request, \
         ours : theirs | ratio | server busy, ours : theirs |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (row, figures) in met {
        for against in &figures.against {
            let (rate, cpu) = (&against.requests_per_s, &against.cpu_us_per_request);
            println!(
                "| {} | {} | {:.0} : {:.0} | {} | {:.2} : {:.2} | {} | {:.0} % : {:.0} % |",
                described(row),
                against.opponent.generator.name,
                rate.median_ours,
                rate.median_theirs,
                rate.verdict(),
                cpu.median_ours,
                cpu.median_theirs,
                cpu.verdict(),
                100.0 * against.server_busy.median_ours,
                100.0 * against.server_busy.median_theirs,
            );
        }
    }
    let against = met.iter().flat_map(|(_, figures)| &figures.against);
    let compared = against.flat_map(|it| [&it.requests_per_s, &it.cpu_us_per_request]);
    println!("\n{}", count_bars(compared));
}

/// The peers' packages.
const PACKAGES: &[&str] =
    &["wrk", "nghttp2-client", "apache2-utils", "hey", "nginx-light", "nginx"];
