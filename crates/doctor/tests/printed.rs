//! Printed results from outside: real reports of sound loads, and made-up ones in the formats of tools, must leave
//! the doctor silent whatever their numbers are; with one figure bent, it must speak. Start reading at
//! [`sound_reports_of_real_tools_are_silent`].
//!
//! The reports in `sound` were made with Debian 12's tools against nginx 1.22 on loopback, while other work kept the
//! machine's two CPUs busy; their command lines stand above them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use joust_doctor::printed::{self, PrintedFinding, Source};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

fn examine(sources: Vec<Source>) -> Vec<PrintedFinding> {
    printed::examine(&printed::read(sources).expect("it is readable"))
}

fn of(text: &str) -> Vec<PrintedFinding> {
    examine(vec![Source { name: "paste".to_owned(), text: text.to_owned() }])
}

fn told(findings: &[PrintedFinding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.seen.evidence.as_str()).collect()
}

#[test]
fn sound_reports_of_real_tools_are_silent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sound");
    let mut sources: Vec<Source> = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry is readable").path();
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a report is text");
        let source = Source { name, text };
        assert_eq!(told(&examine(vec![source.clone()])), [""; 0], "{}", source.name);
        sources.push(source);
    }
    assert!(sources.len() > 12, "only {} reports found", sources.len());
    // Together they are compared too; nothing is certain about one server under unlike loads.
    let together = examine(sources);
    let certain: Vec<&PrintedFinding> = together
        .iter()
        .filter(|finding| finding.seen.certainty == record::Certainty::Confirmed)
        .collect();
    assert!(certain.is_empty(), "{certain:?}");
}

/// A closed loop that was played: latencies in seconds, ascending.
struct Loop {
    connections: usize,
    seconds: f64,
    latencies: Vec<f64>,
}

impl Loop {
    /// Connections that ask again as soon as they are answered; latencies are lognormal.
    fn play(random: &mut Pcg64Mcg) -> Self {
        let connections = 1usize << random.random_range(0..8);
        let each = random.random_range(100..400).max(800 / connections);
        let seconds = random.random_range(1.2..12.0);
        let (typical, spread) = (seconds / each as f64, random.random_range(0.05..0.7));
        let mut latencies = Vec::new();
        for _ in 0..connections {
            let mut now = 0.0;
            loop {
                // The sum of twelve is normal enough.
                let normal: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                let latency = typical * (spread * normal).exp();
                now += latency;
                if now > seconds {
                    break;
                }
                latencies.push(latency);
            }
        }
        latencies.sort_by(f64::total_cmp);
        Self { connections, seconds, latencies }
    }

    fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    fn mean(&self) -> f64 {
        self.latencies.iter().sum::<f64>() / self.latencies.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = self.latencies.iter().map(|latency| (latency - mean).powi(2)).sum::<f64>();
        (squares / (self.latencies.len() - 1) as f64).sqrt()
    }

    fn quantile(&self, percent: f64) -> f64 {
        let rank = (self.latencies.len() as f64 * percent / 100.0) as usize;
        self.latencies[rank.min(self.latencies.len() - 1)]
    }
}

/// ab's report; the mean of Total is `mean` times as large as it was.
fn ab(load: &Loop, mean: f64) -> String {
    let (n, rate) = (load.latencies.len(), load.rate());
    let millis = |seconds: f64| (seconds * 1e3).round();
    let mut text = format!(
        "This is ApacheBench, Version 2.3 <$Revision$>\nServer Software:        x\n\
         Server Hostname:        h\nServer Port:            80\n\nDocument Path:          /\n\
         Document Length:        1000 bytes\n\nConcurrency Level:      {}\n\
         Time taken for tests:   {:.3} seconds\nComplete requests:      {n}\nFailed requests:        0\n\
         Total transferred:      {} bytes\nHTML transferred:       {} bytes\n\
         Requests per second:    {rate:.2} [#/sec] (mean)\n\
         Time per request:       {:.3} [ms] (mean)\n\
         Time per request:       {:.3} [ms] (mean, across all concurrent requests)\n\
         Transfer rate:          {:.2} [Kbytes/sec] received\n\nConnection Times (ms)\n\
         \x20             min  mean[+/-sd] median   max\n",
        load.connections,
        load.seconds,
        n * 1237,
        n * 1000,
        load.connections as f64 / rate * 1e3,
        1e3 / rate,
        rate * 1237.0 / 1024.0,
    );
    writeln!(
        text,
        "Total:     {} {} {:.1} {} {}\n\nPercentage of the requests served within a certain time (ms)",
        millis(load.latencies[0]),
        millis(load.mean() * mean),
        load.deviation() * 1e3,
        millis(load.quantile(50.0)),
        millis(load.quantile(100.0)),
    )
    .unwrap();
    for percent in [50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 100.0] {
        writeln!(text, " {percent:3}%  {}", millis(load.quantile(percent))).unwrap();
    }
    text
}

/// hey's report.
fn hey(load: &Loop, mean: f64) -> String {
    let mut text = format!(
        "$ hey -z 5s -c {} http://h/\n\nSummary:\n  Total:\t{:.4} secs\n  Slowest:\t{:.4} secs\n  \
         Fastest:\t{:.4} secs\n  Average:\t{:.4} secs\n  Requests/sec:\t{:.4}\n\n\nLatency distribution:\n",
        load.connections,
        load.seconds,
        load.quantile(100.0),
        load.latencies[0],
        load.mean() * mean,
        load.rate(),
    );
    for percent in [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0] {
        writeln!(text, "  {percent}% in {:.4} secs", load.quantile(percent)).unwrap();
    }
    let n = load.latencies.len();
    write!(text, "\nStatus code distribution:\n  [200]\t{n} responses\n").unwrap();
    text
}

/// A table of somebody, with as many decimals as they like.
fn table(load: &Loop, mean: f64, random: &mut Pcg64Mcg) -> String {
    let decimals = random.random_range(0..4);
    let (unit, scale) = [("ms", 1e3), ("us", 1e6)][random.random_range(0..2)];
    let time = |seconds: f64| format!("{:.decimals$}", seconds * scale);
    let rate_decimals = random.random_range(0..3);
    format!(
        "| server | connections | req/s | mean ({unit}) | sd ({unit}) | p50 ({unit}) | p99 ({unit}) | \
         max ({unit}) | duration | requests |\n|---|---|---|---|---|---|---|---|---|---|\n\
         | a | {} | {:.rate_decimals$} | {} | {} | {} | {} | {} | {:.1} s | {} |\n",
        load.connections,
        load.rate(),
        time(load.mean() * mean),
        time(load.deviation()),
        time(load.quantile(50.0)),
        time(load.quantile(99.0)),
        time(load.quantile(100.0)),
        load.seconds,
        load.latencies.len(),
    )
}

#[test]
fn made_up_loads_in_any_numbers_are_silent() {
    for seed in 0..300 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let load = Loop::play(&mut random);
        let texts = [ab(&load, 1.0), hey(&load, 1.0), table(&load, 1.0, &mut random)];
        for text in texts {
            assert_eq!(told(&of(&text)), [""; 0], "seed {seed}:\n{text}");
        }
    }
}

/// From this mean on a figure of ab, in whole milliseconds, is known to 3 %.
const MILLIS_TELLING: f64 = 0.03;

#[test]
fn a_mean_that_is_bent_breaks_littles_law_in_any_numbers() {
    let mut bent = 0;
    for seed in 0..300 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let load = Loop::play(&mut random);
        // With few connections, the tool's own delays may be as much.
        if load.mean() < MILLIS_TELLING || load.connections < 16 {
            continue;
        }
        let factor = if seed % 2 == 0 { 0.6 } else { 1.5 };
        let texts = [ab(&load, factor), hey(&load, factor), table(&load, factor, &mut random)];
        for text in texts {
            let found = of(&text);
            let has = found.iter().any(|finding| finding.check.name == "littles_law");
            assert!(has, "seed {seed}:\n{text}");
            bent += 1;
        }
    }
    assert!(bent > 30, "only {bent} reports were bent");
}

#[test]
fn damaged_text_never_makes_it_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sound");
    let mut texts: Vec<String> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| fs::read_to_string(entry.expect("readable").path()).expect("text"))
        .collect();
    let load = Loop::play(&mut Pcg64Mcg::seed_from_u64(1));
    texts.push(table(&load, 1.0, &mut Pcg64Mcg::seed_from_u64(2)));
    texts.push("server;connections;rps;mean_ms\na;1;812;1.23\nb;8;9120;0.87\n".to_owned());
    for seed in 0..1500 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut text: Vec<char> = texts[seed as usize % texts.len()].chars().collect();
        for _ in 0..random.random_range(1..12) {
            let at = random.random_range(0..text.len());
            // Digits, so that figures become others and huge ones.
            let with = ['9', '0', '-', '.', '9', '\n', '|'][random.random_range(0..7)];
            match random.random_range(0..3) {
                0 => text[at] = with,
                1 => (0..random.random_range(1..20)).for_each(|_| text.insert(at, with)),
                _ => drop(text.remove(at)),
            }
        }
        let source = Source { name: "damaged".to_owned(), text: text.into_iter().collect() };
        if let Ok(printed) = printed::read(vec![source]) {
            let findings = printed::examine(&printed);
            let _ = printed::survivals(&printed, &findings);
        }
    }
}
