//! What was found, in words, rows and one Markdown table. Must not know how it was measured.
//! Start reading at [`figures`].

use std::process::Command;

use crate::generators::{BARE_LOOP, OURS};
use crate::session::{Block, Shown, generators};
use crate::{Bar, Opponent, Outcome, Row, SEED, Settings};

/// Of one row: ours against each of its opponents, in their order.
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

/// One figure of both.
struct Compared {
    median_ours: f64,
    median_theirs: f64,
    ratio: Ratio,
    bar: Option<Bar>,
}

/// Paired by block, with its 95 % interval.
struct Ratio {
    ratio: f64,
    interval: Option<(f64, f64)>,
}

/// Compares ours, which stand first in each block, with each opponent.
pub fn figures(row: &Row, blocks: &[Block]) -> Outcome<Figures> {
    let against = |(index, opponent): (usize, &'static Opponent)| {
        let compare = |of: fn(&Shown) -> f64, bar| compared(blocks, index + 1, of, bar);
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

fn compared(
    blocks: &[Block],
    theirs: usize,
    of: fn(&Shown) -> f64,
    bar: Option<Bar>,
) -> Outcome<Compared> {
    Ok(Compared {
        median_ours: median(blocks, 0, of),
        median_theirs: median(blocks, theirs, of),
        ratio: ratio(blocks, 0, theirs, of)?,
        bar,
    })
}

fn median(blocks: &[Block], index: usize, of: fn(&Shown) -> f64) -> f64 {
    let values: Vec<f64> = blocks.iter().map(|block| of(&block[index])).collect();
    stats::median(&values).unwrap_or(f64::NAN)
}

fn ratio(blocks: &[Block], over: usize, under: usize, of: fn(&Shown) -> f64) -> Outcome<Ratio> {
    let pairs: Vec<(f64, f64)> =
        blocks.iter().map(|block| (of(&block[over]), of(&block[under]))).collect();
    let paired = stats::Paired::of(&pairs, SEED)?;
    let interval = paired.interval.map(|interval| (interval.low, interval.high));
    Ok(Ratio { ratio: paired.ratio, interval })
}

impl Compared {
    /// The estimate decides; the interval says how sure that is. `None` without a bar.
    fn reached(&self) -> Option<bool> {
        self.bar.map(|bar| match bar {
            Bar::AtLeast(bar) => self.ratio.ratio >= bar,
            Bar::AtMost(bar) => self.ratio.ratio <= bar,
        })
    }

    /// `1.310x [1.280, 1.340], at least 1.30: reached`.
    fn verdict(&self) -> String {
        let bar = match self.bar {
            Some(Bar::AtLeast(bar)) => format!(", at least {bar:.2}"),
            Some(Bar::AtMost(bar)) => format!(", at most {bar:.2}"),
            None => String::new(),
        };
        let word = match self.reached() {
            Some(true) => ": reached",
            Some(false) => ": MISSED",
            None => "",
        };
        format!("{}{bar}{word}", self.ratio.text())
    }
}

impl Ratio {
    fn text(&self) -> String {
        match self.interval {
            Some((low, high)) => format!("{:.3}x [{low:.3}, {high:.3}]", self.ratio),
            None => format!("{:.3}x [too few blocks]", self.ratio),
        }
    }
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

/// What is run, before the first of it.
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

/// All of one row, for who reads along.
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
        // Ports in TIME_WAIT are the one thing that runs of this kind leave to the next.
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

/// How far from the bare loop we are, and how far it is from the row's first opponent.
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
    println!("\n{}, {} blocks of {} s.\n", machine(), settings.blocks, settings.seconds);
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
    let bars: Vec<bool> = compared.filter_map(Compared::reached).collect();
    let reached = bars.iter().filter(|reached| **reached).count();
    println!("\n{} bars: {reached} reached, {} missed", bars.len(), bars.len() - reached);
}

/// The machine, its kernel, the peers' packages and the day.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let models: Vec<&str> = cpus.lines().filter(|line| line.starts_with("model name")).collect();
    let model =
        models.first().and_then(|line| line.split_once(": ")).map_or("unknown CPU", |it| it.1);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{} x {model}, server on one CPU and generator on another; Linux {}; {}; {}",
        models.len(),
        kernel.trim(),
        packages(),
        jiff::Zoned::now().date(),
    )
}

/// The peers' versions, as Debian names them.
fn packages() -> String {
    let asked = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${Version}, "])
        .args(["wrk", "nghttp2-client", "apache2-utils", "hey", "nginx-light", "nginx"])
        .output();
    let text = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    match text.trim_end_matches(", ") {
        "" => "versions of the peers unknown".to_owned(),
        known => known.to_owned(),
    }
}
