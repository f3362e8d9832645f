//! Owns the way from the report of a tool to a row: which of its figures mean what, and to how many digits the
//! tool prints each. Start reading at [`rows`].

use classic::{Report, Steps, Summary};
use units::{Bytes, Nanos, PerSecond};

use super::figure::Figure;
use super::row::{LoadKind, Origin, Phase, Row, Source};

/// Rows of the reports in one source.
pub(super) fn rows(reports: Vec<Report>, index: usize, source: &Source) -> Vec<Row> {
    let many = reports.len() > 1;
    let mut before = 0;
    let mut rows: Vec<Row> = Vec::new();
    for (at, report) in reports.into_iter().enumerate() {
        let heading = source.text.get(before..report.place.start).and_then(heading);
        before = report.place.end;
        let mut name = match many {
            true => format!("{}, report {} ({})", source.name, at + 1, report.tool),
            false => format!("{} ({})", source.name, report.tool),
        };
        let mut row = row(report, &source.name);
        if let Some(heading) = heading.filter(|_| many) {
            name = format!("{heading} ({})", row.tool().unwrap_or_default());
            row.server = Some(stem(&heading).to_owned());
        }
        rows.push(Row { name, source: index, ..row });
    }
    rows
}

/// The last heading in what stands between two reports: a line of Markdown, or one that ends in a colon.
fn heading(between: &str) -> Option<String> {
    let bare = |line: &str| line.trim_matches(|c: char| "#=*- \t:".contains(c)).to_owned();
    let lines = between.lines().map(str::trim).filter(|line| line.len() <= HEADING_MAX);
    let heads = lines.filter(|line| {
        line.starts_with('#')
            || line.starts_with("==")
            || (line.ends_with(':') && !line.contains(' '))
    });
    heads.map(bare).rfind(|head| !head.is_empty())
}

/// Longest line that is taken for a heading.
const HEADING_MAX: usize = 60;

fn row(report: Report, source_name: &str) -> Row {
    let tool = report.tool;
    let print = Print { tool, steps: report.steps, in_ticks: is_in_ticks(&report) };
    let requests = &report.requests;
    let errors = |kinds: &[&str]| {
        kinds
            .iter()
            .filter_map(|kind| report.errors.get(*kind).copied())
            .fold(0, u64::saturating_add)
    };
    let bytes = match tool {
        // Bodies only, which is what their throughput is of.
        "siege" | "http_load" | "oha" => report.traffic.bodies,
        _ => report.traffic.received,
    };
    let times = &report.times;
    let phases = [
        ("connect", times.connect),
        ("processing", times.processing),
        ("waiting", times.waiting),
        ("sending", times.sending),
        ("receiving", times.receiving),
        ("blocked", times.blocked),
        (Phase::TOTAL, times.total),
        ("life of the connection", times.connection),
    ];
    Row {
        origin: Origin::Report(tool),
        server: server(&report, source_name),
        workload: path(&report),
        load: load(&report),
        connections: connections(&report).map(|n| Figure::exact(n as f64)),
        pipeline: streams(&report).map(|n| Figure::exact(n as f64)),
        threads: report.threads.or(report.ordered.threads),
        duration: report.duration.map(|time| print.duration(time)),
        complete: requests.complete.map(|n| Figure::exact(n as f64)),
        failed: requests.failed,
        bad_status: requests.non_2xx,
        has_errors_in_rate: tool != "siege",
        timeouts: Some(errors(&["timeout", "timeouts", "client-timo"])),
        rate: report.rate.map(|rate| print.rate(rate)),
        bytes: bytes.map(|bytes| print.bytes(bytes)),
        bytes_rate: report.traffic.rate.and_then(|rate| print.bytes_rate(rate)),
        phases: phases.into_iter().filter_map(|(name, of)| print.phase(name, of)).collect(),
        percentiles: (report.percentiles.iter())
            .map(|(percent, time)| (*percent, print.time(*time)))
            .collect(),
        in_flight: report.concurrency_mean.map(|mean| Figure::rounded(mean, 0.01)),
        report: Some(Box::new(report)),
        ..Row::default()
    }
}

/// Who was measured: by the server's own word, or by where it listened, or by the name of the file.
fn server(report: &Report, source_name: &str) -> Option<String> {
    let host = report.url.as_deref().map(|url| split(url).0.to_owned());
    match (&report.server_software, host) {
        (Some(name), Some(host)) => Some(format!("{name} at {host}")),
        (Some(name), None) => Some(name.clone()),
        (None, host) => {
            let stem = stem(source_name);
            match host {
                Some(host) => Some(format!("{stem}, {host}")),
                None => Some(stem.to_owned()),
            }
        }
    }
}

/// A file's name without folder, ending and the number of a run: "nginx-c64-2.txt" is one of nginx.
fn stem(source_name: &str) -> &str {
    let file = source_name.rsplit('/').next().unwrap_or(source_name);
    let mut stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    loop {
        let bare = stem.trim_end_matches(|c: char| c.is_ascii_digit());
        let unmarked = bare.trim_end_matches(['c', 'n', 'r', 'k', 't']);
        let cut = unmarked.trim_end_matches(['-', '_']);
        let is_run = bare.len() < stem.len() && cut.len() < unmarked.len() && !cut.is_empty();
        if !is_run {
            return stem;
        }
        stem = cut;
    }
}

fn split(url: &str) -> (&str, &str) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    (&url[..end], &url[end..])
}

/// The path, and what else makes loads of one tool unlike those of another.
fn path(report: &Report) -> String {
    let path = report.url.as_deref().map_or("", |url| split(url).1);
    let kept = match report.requests.kept_alive {
        Some(_) if report.tool == "ab" => " -k",
        _ => "",
    };
    format!("{} {path}{kept}", report.tool)
}

/// Connections at once, as printed or as the command line orders.
fn connections(report: &Report) -> Option<u64> {
    match report.tool {
        // What is printed is the most that there were at once, not what was ordered.
        "httperf" | "http_load" => None,
        // Users, that may be thinking.
        "k6" => report.users.max,
        _ => report.concurrency.or(report.ordered.concurrency),
    }
}

/// Requests on a connection of h2load at once, where its command line is there.
fn streams(report: &Report) -> Option<u64> {
    let command = report.ordered.command.as_deref().filter(|_| report.tool == "h2load")?;
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("-m").or(word.strip_prefix("--max-concurrent-streams"))
        {
            Some("") => words.next(),
            Some(value) => Some(value.trim_start_matches('=')),
            None => continue,
        };
        return value.and_then(|value| value.parse().ok());
    }
    Some(1)
}

fn load(report: &Report) -> LoadKind {
    let command = report.ordered.command.as_deref().unwrap_or("");
    let has = |flags: &[&str]| command.split_whitespace().any(|word| flags.contains(&word));
    let closed = match report.tool {
        "http_load" | "httperf" | "wrk2" => Some(false),
        _ if report.ordered.rate.is_some() => Some(false),
        "ab" | "wrk" | "h2load" | "weighttp" => Some(true),
        // Whether a rate was asked for stands on the command line only.
        "hey" | "oha" if !command.is_empty() => Some(!has(&["-q"])),
        // With a pause between requests unless it is called with -b.
        "siege" if has(&["-b", "--benchmark"]) => Some(true),
        _ => None,
    };
    // How many streams h2load opens is not printed.
    let is_streaming = report.tool == "h2load" && streams(report).is_none();
    LoadKind { closed, streams: is_streaming, full: false, ..LoadKind::default() }
}

/// siege before 4.1.7 has a clock of 10 ms and prints seconds to 0.01.
fn is_in_ticks(report: &Report) -> bool {
    let total = &report.times.total;
    let shown = [total.mean, total.min, total.max];
    shown.iter().flatten().all(|time| time.0.is_multiple_of(TICK.0))
}

const TICK: Nanos = Nanos(10_000_000);

/// To how many digits a tool prints.
#[derive(Debug, Clone, Copy)]
struct Print {
    tool: &'static str,
    /// As far as the report shows them.
    steps: Steps,
    in_ticks: bool,
}

/// Digits that are assumed of a tool whose printing is not known here.
const DIGITS_UNKNOWN: i32 = 3;

impl Print {
    /// A time of a request: the unit of many tools changes with the time, and so does the step.
    fn time(self, time: Nanos) -> Figure {
        let secs = time.as_secs_f64();
        match self.tool {
            // Rounded; old ones cut it off.
            "ab" => Figure::rounded_or_cut(secs, 1e-3),
            "siege" if self.in_ticks => Figure::rounded(secs, 1e-2),
            "siege" => Figure::rounded(secs, 1e-5),
            "wrk" | "wrk2" | "k6" => Figure::rounded(secs, 0.01 * unit_of(secs)),
            "h2load" if secs < 1e-3 => Figure::rounded_or_cut(secs, 1e-6),
            "h2load" => Figure::rounded_or_cut(secs, 0.01 * unit_of(secs)),
            "hey" | "httperf" => Figure::rounded(secs, 1e-4),
            "http_load" => Figure::significant(secs, 6),
            "weighttp" => Figure::rounded_or_cut(secs, 1e-6),
            "oha" => match self.steps.time {
                Some(step) => Figure::rounded_or_cut(secs, step.as_secs_f64()),
                None => Figure::rounded_or_cut(secs, 1e-4),
            },
            _ => Figure::significant(secs, DIGITS_UNKNOWN),
        }
    }

    /// Standard deviation: ab prints it to 0.1 ms.
    fn deviation(self, time: Nanos) -> Figure {
        match self.tool {
            "ab" => Figure::rounded(time.as_secs_f64(), 1e-4),
            _ => self.time(time),
        }
    }

    /// How long the load took.
    fn duration(self, time: Nanos) -> Figure {
        match self.steps.duration {
            Some(step) => {
                let printed = Figure::rounded_or_cut(time.as_secs_f64(), step.as_secs_f64());
                // With -D its rates are of the whole seconds that were ordered.
                let whole = printed.value.floor();
                let low = if self.tool == "h2load" && whole > 0.0 { whole } else { printed.low };
                Figure { low: low.min(printed.low), ..printed }
            }
            None => self.time(time),
        }
    }

    fn rate(self, rate: PerSecond) -> Figure {
        match self.steps.rate {
            Some(step) => Figure::rounded_or_cut(rate.0, step.0),
            None => Figure::significant(rate.0, DIGITS_UNKNOWN),
        }
    }

    fn bytes(self, bytes: Bytes) -> Figure {
        let n = bytes.0 as f64;
        match self.steps.bytes {
            Some(Bytes(0 | 1)) => Figure::exact(n),
            Some(step) => Figure::rounded_or_cut(n, step.0 as f64),
            None => Figure::significant(n, DIGITS_UNKNOWN),
        }
    }

    /// `None` where it is of other bytes than those that are counted.
    fn bytes_rate(self, rate: PerSecond) -> Option<Figure> {
        let step = self.steps.traffic_rate.filter(|_| self.tool != "httperf")?;
        Some(Figure::rounded_or_cut(rate.0, step.0))
    }

    fn phase(self, name: &'static str, of: Summary) -> Option<Phase> {
        let time = |time: Option<Nanos>| time.map(|time| self.time(time));
        // httperf's median is the middle of a step of 1 ms.
        let median = match self.tool {
            "httperf" => of.median.map(|median| Figure::rounded(median.as_secs_f64(), 2e-3)),
            _ => time(of.median),
        };
        // hey and oha take the shortest of new connections only, and the mean of all requests.
        let is_of_new = name == "connect" && matches!(self.tool, "hey" | "oha");
        let phase = Phase {
            name,
            mean: time(of.mean),
            sd: of.sd.map(|sd| self.deviation(sd)),
            median,
            min: time(of.min).filter(|_| !is_of_new),
            max: time(of.max),
        };
        (of != Summary::default()).then_some(phase)
    }
}

/// The unit that wrk and h2load print a time in, in seconds.
fn unit_of(secs: f64) -> f64 {
    match secs {
        s if s < 1e-3 => 1e-6,
        s if s < 1.0 => 1e-3,
        s if s < 60.0 => 1.0,
        s if s < 3600.0 => 60.0,
        _ => 3600.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Row> {
        let source = Source { name: "paste".to_owned(), text: text.to_owned() };
        rows(classic::read_any(text).unwrap(), 0, &source)
    }

    fn of(text: &str) -> Row {
        all(text).remove(0)
    }

    #[test]
    fn the_digits_of_each_tool_are_known() {
        let row = of("Running 1s test @ http://127.0.0.1:8080/\n  1 threads and 2 connections\n  \
                      Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
                      Latency    80.00us   20.00us   1.41ms   90.00%\n  \
                      25532 requests in 1.02s, 7.89MB read\n\
                      Requests/sec:  25039.03\nTransfer/sec:      7.74MB");
        let mean = row.total().mean.unwrap();
        assert!((mean.high - mean.low - 1e-8).abs() < 1e-9, "{mean:?}");
        let duration = row.duration.unwrap();
        assert!((duration.high - duration.low - 0.015).abs() < 1e-4, "{duration:?}");
        assert_eq!(row.connections, Some(Figure::exact(2.0)));
        assert_eq!(row.load.closed, Some(true));
    }

    #[test]
    fn reports_below_headings_are_of_those_servers() {
        let wrk = crate::printed::testdata::WRK;
        let rows = all(&format!("# nginx\n```\n{wrk}```\n\n# h2o\n{wrk}\ncaddy:\n{wrk}"));
        let names: Vec<_> = rows.iter().map(|row| row.server.as_deref().unwrap()).collect();
        assert_eq!(names, ["nginx", "h2o", "caddy"]);
        assert_eq!(rows[1].name, "h2o (wrk)");
    }

    #[test]
    fn a_file_is_named_for_its_server() {
        for (file, name) in [
            ("nginx.txt", "nginx"),
            ("out/nginx-c64.txt", "nginx"),
            ("nginx_2.log", "nginx"),
            ("nginx-c64-r3.txt", "nginx"),
            ("lighttpd2.txt", "lighttpd2"),
            ("wrk2.txt", "wrk2"),
            ("64.txt", "64"),
        ] {
            assert_eq!(stem(file), name, "{file}");
        }
    }
}
