//! The generators: how each is called for a workload, and how its report is read. Each loads from
//! one thread on one CPU, for the same time. Must not know what they are compared for.
//!
//! The rate is the tool's own, over its own window, so that neither start-up nor the report affects
//! it. CPU time is not measured here: the kernel counts it for all alike (`session`). Start reading
//! at [`Generator`].

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::{CLIENT_CPU, Outcome, floor};

/// A load generator.
pub struct Generator {
    pub name: &'static str,
    pub command: fn(&Call) -> Command,
    /// `None` if the text is not a report.
    pub read: fn(&str) -> Option<Report>,
    /// The window of its requests/s.
    pub window: &'static str,
    /// A report that it once wrote, shortened, and its figures: the reader's test.
    kept: (&'static str, Report),
}

/// The workload that a generator is called for.
pub struct Call<'a> {
    pub joust: &'a Path,
    /// An earlier joust; always set when [`EARLIER`] is called.
    pub earlier: Option<&'a Path>,
    /// This program, which also contains the bare loop.
    pub bench: &'a Path,
    pub addr: SocketAddr,
    pub path: &'a str,
    pub url: String,
    pub connections: String,
    pub seconds: u32,
    /// Always `true` for h2load and the bare loop.
    pub keep_alive: bool,
}

/// The figures of a generator's report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    pub answered: f64,
    pub failed: f64,
    pub requests_per_s: f64,
}

impl Call<'_> {
    fn pinned(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", CLIENT_CPU]).arg(program);
        command
    }

    fn duration(&self) -> String {
        format!("{}s", self.seconds)
    }
}

/// `joust load` with its defaults: the engine chosen by itself, bodies verified by length, one in a
/// thousand by hash. (It sends three requests before the load, which count in its CPU time.)
pub static OURS: Generator = Generator {
    name: "joust load",
    command: |call| joust_load(call, call.joust),
    read: |text| {
        let record: serde_json::Value = serde_json::from_str(text).ok()?;
        Some(Report {
            answered: record["requests"]["ok"].as_f64()?,
            failed: record["requests"]["failed"].as_f64()?,
            requests_per_s: record["rate_per_s"].as_f64()?,
        })
    },
    window: "from its first request to the end of -d, replies of the drain not counted",
    kept: (
        r#"{"requests":{"done":26343,"ok":26343,"failed":0,"drained":100},"rate_per_s":26243.0}"#,
        Report { answered: 26343.0, failed: 0.0, requests_per_s: 26243.0 },
    ),
};

/// `joust load` of another build, to show the effect of our changes in one session.
pub static EARLIER: Generator = Generator {
    name: "earlier joust",
    command: |call| joust_load(call, call.earlier.expect("JOUST_BENCH_EARLIER names it")),
    ..OURS
};

fn joust_load(call: &Call<'_>, joust: &Path) -> Command {
    let mut command = call.pinned(joust);
    command.args(["load", &call.url, "--quiet", "--json", "-", "-t", "1"]);
    command.args(["-c", &call.connections, "-d", &call.duration()]);
    if !call.keep_alive {
        command.arg("--no-keepalive");
    }
    command
}

pub static WRK: Generator = Generator {
    name: "wrk",
    command: |call| {
        let mut command = call.pinned("wrk");
        command.args(["-t", "1", "-c", &call.connections, "-d", &call.duration()]);
        if !call.keep_alive {
            command.args(["-H", "Connection: close"]);
        }
        command.arg(&call.url);
        command
    },
    read: |text| {
        let errors = word_after(text, "Non-2xx or 3xx responses:").unwrap_or(0.0);
        // `Socket errors: connect 0, read 3, write 0, timeout 0`; the line is missing without
        // errors.
        let broken = text.lines().find_map(|line| line.trim().strip_prefix("Socket errors:"));
        Some(Report {
            answered: word_before(text, " requests in ")?,
            failed: errors + broken.map_or(0.0, numbers_in),
            requests_per_s: word_after(text, "Requests/sec:")?,
        })
    },
    window: "from its threads' start to their end",
    kept: (
        "  20162 requests in 1.03s, 68.86MB read\n\
         \x20 Socket errors: connect 0, read 3, write 0, timeout 2\n\
         Requests/sec:  19526.28\n",
        Report { answered: 20162.0, failed: 5.0, requests_per_s: 19526.28 },
    ),
};

pub static H2LOAD: Generator = Generator {
    name: "h2load",
    command: |call| {
        let mut command = call.pinned("h2load");
        // --h1: HTTP/1.1, which keeps its connections.
        command.args(["--h1", "-t", "1", "-c", &call.connections]);
        command.args(["-D", &call.seconds.to_string(), &call.url]);
        command
    },
    read: |text| {
        let bad = [" failed,", " errored,", " timeout"].map(|what| word_before(text, what));
        Some(Report {
            answered: word_before(text, " succeeded,")?,
            failed: bad.into_iter().sum::<Option<f64>>()?,
            requests_per_s: word_before(text, " req/s,")?,
        })
    },
    window: "-D",
    kept: (
        "finished in 1.01s, 18683.00 req/s, 63.80MB/s\n\
         requests: 18683 total, 18783 started, 18683 done, 18680 succeeded, 3 failed, 1 errored, 0 timeout\n",
        Report { answered: 18680.0, failed: 4.0, requests_per_s: 18683.0 },
    ),
};

pub static AB: Generator = Generator {
    name: "ab",
    command: |call| {
        let mut command = call.pinned("ab");
        command.args(["-q", "-c", &call.connections]);
        // -n after -t, because -t alone ends after 50,000 requests; this is more than anyone makes
        // in a second.
        command.args(["-t", &call.seconds.to_string()]);
        command.args(["-n", &(call.seconds * 1_000_000).to_string()]);
        if call.keep_alive {
            command.arg("-k");
        }
        command.arg(&call.url);
        command
    },
    read: |text| {
        let answered = word_after(text, "Complete requests:")?;
        // With -k, replies on connections that the server closed are not part of the workload.
        let not_kept = word_after(text, "Keep-Alive requests:").map_or(0.0, |kept| answered - kept);
        Some(Report {
            answered,
            failed: word_after(text, "Failed requests:")?
                + word_after(text, "Non-2xx responses:").unwrap_or(0.0)
                + not_kept,
            requests_per_s: word_after(text, "Requests per second:")?,
        })
    },
    window: "from its first connect to its last reply",
    kept: (
        "Complete requests:      21585\n\
         Failed requests:        0\n\
         Keep-Alive requests:    21580\n\
         Requests per second:    21580.02 [#/sec] (mean)\n",
        Report { answered: 21585.0, failed: 5.0, requests_per_s: 21580.02 },
    ),
};

pub static HEY: Generator = Generator {
    name: "hey",
    command: |call| {
        let mut command = call.pinned("hey");
        command.env("GOMAXPROCS", "1");
        command.args(["-c", &call.connections, "-z", &call.duration()]);
        if !call.keep_alive {
            command.arg("-disable-keepalive");
        }
        command.arg(&call.url);
        command
    },
    read: |text| {
        let requests_per_s = word_after(text, "Requests/sec:")?;
        // Its lists of statuses and of errors are limited to a million; the rate covers all. `[404]
        // 3 responses` and `[3] Get "http...` are its two kinds of failure.
        let bad = text.lines().filter(|line| line.trim().starts_with('['));
        let bad = bad.filter(|line| {
            !line.trim().starts_with("[200]")
                && (line.ends_with("responses") || line.contains("http"))
        });
        Some(Report {
            answered: (requests_per_s * word_after(text, "Total:")?).round(),
            failed: bad.count() as f64,
            requests_per_s,
        })
    },
    window: "from its workers' start to their end",
    kept: (
        "  Total:\t1.0119 secs\n  Requests/sec:\t16886.3355\n\n\
         Response time histogram:\n  0.000 [1]\t|\n  0.005 [9642]\t|\n\n\
         Status code distribution:\n  [200]\t17086 responses\n  [404]\t1 responses\n\n\
         Error distribution:\n  [3]\tGet \"http://127.0.0.1:1/\": EOF\n",
        Report { answered: 17087.0, failed: 2.0, requests_per_s: 16886.3355 },
    ),
};

/// See [`floor`].
pub static BARE_LOOP: Generator = Generator {
    name: "bare loop",
    command: |call| {
        let mut command = call.pinned(call.bench);
        command.args([floor::ARGUMENT, &call.addr.to_string(), call.path]);
        command.args([&call.connections, &call.seconds.to_string()]);
        command
    },
    read: |text| {
        let (answered, seconds) = text.trim().split_once(' ')?;
        let answered: f64 = answered.parse().ok()?;
        let requests_per_s = answered / seconds.parse::<f64>().ok()?;
        Some(Report { answered, failed: 0.0, requests_per_s })
    },
    window: "from its last connect on",
    kept: ("3000 1.5\n", Report { answered: 3000.0, failed: 0.0, requests_per_s: 2000.0 }),
};

/// Tests each reader on a report of its tool.
pub fn read_kept_reports() -> Outcome<()> {
    for generator in [&OURS, &WRK, &H2LOAD, &AB, &HEY, &BARE_LOOP] {
        let (text, said) = generator.kept;
        let read = (generator.read)(text);
        if read != Some(said) {
            return Err(
                format!("{}: read {read:?} from a report of {said:?}", generator.name).into()
            );
        }
        if let Some(read) = (generator.read)("no report\n") {
            return Err(format!("{}: read {read:?} from no report", generator.name).into());
        }
    }
    Ok(())
}

/// The number that follows a label.
fn word_after(text: &str, label: &str) -> Option<f64> {
    text.split_once(label)?.1.split_whitespace().next()?.parse().ok()
}

/// The number before a label.
fn word_before(text: &str, label: &str) -> Option<f64> {
    text.split_once(label)?.0.split_whitespace().next_back()?.parse().ok()
}

/// Sum of all numbers of a line.
fn numbers_in(line: &str) -> f64 {
    line.split(|symbol: char| !symbol.is_ascii_digit())
        .filter_map(|word| word.parse::<f64>().ok())
        .sum()
}
