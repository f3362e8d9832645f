//! Owns what the columns of a table mean, by the words in their names. Start reading at [`Column::named`].

use super::cells::time_unit;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Server,
    /// Requests a second.
    Rate,
    /// Achieved over asked: the load has a fixed rate.
    RateRatio,
    Mean,
    Deviation,
    Min,
    Max,
    /// Percent.
    Percentile(f64),
    Connections,
    Pipeline,
    Threads,
    Duration,
    Complete,
    Failed,
    Timeouts,
    /// Replies of one class of status, 2 to 5.
    Status(u8),
    /// Replies that are not 2xx.
    BadStatus,
    Reconnects,
    Bytes,
    BytesRate,
    ServerCpu,
    ServerCpus,
    /// It tells one workload from another (a path, a size, a protocol).
    Workload,
    /// It tells nothing that is looked at here.
    Other,
}

/// A column's meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Column {
    pub(super) role: Role,
    /// Unit of its cells that have none of their own: seconds or bytes.
    pub(super) unit: Option<f64>,
}

impl Column {
    /// The column of that name.
    pub(super) fn named(name: &str) -> Self {
        let name = name.to_lowercase().replace(['µ', 'μ'], "u");
        let words: Vec<&str> = name
            .split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '%'))
            .filter(|word| !word.is_empty())
            .collect();
        let name = Name { whole: &name, words: &words };
        let role = name.role();
        let unit = match role {
            Role::Bytes | Role::BytesRate => name.byte_unit(),
            // "req/s" has an s, but only times have units of time.
            _ => words.iter().rev().find_map(|word| time_unit(word)),
        };
        Self { role, unit }
    }
}

struct Name<'a> {
    whole: &'a str,
    words: &'a [&'a str],
}

impl Name<'_> {
    fn has(&self, wanted: &[&str]) -> bool {
        self.words.iter().any(|word| wanted.contains(word))
    }

    fn says(&self, wanted: &[&str]) -> bool {
        wanted.iter().any(|part| self.whole.contains(part))
    }

    fn role(&self) -> Role {
        self.of_counts()
            .or_else(|| self.of_rates())
            .or_else(|| self.of_times())
            .or_else(|| self.of_setting())
            .unwrap_or(Role::Other)
    }

    fn of_counts(&self) -> Option<Role> {
        let status = self.words.iter().find_map(|word| {
            let class = word.strip_suffix("xx")?.parse().ok()?;
            (1..=5).contains(&class).then_some(class)
        });
        match status {
            Some(2) if self.has(&["non"]) => return Some(Role::BadStatus),
            Some(class) => return Some(Role::Status(class)),
            None => {}
        }
        if self.has(&["ratio"]) && self.has(&["rate"]) {
            return Some(Role::RateRatio);
        }
        if self.has(&["timeout", "timeouts"]) {
            return Some(Role::Timeouts);
        }
        if self.has(&["failed", "failures", "errors", "error", "fail", "success", "availability"]) {
            let is_share = self.has(&["rate", "%", "success", "availability"]);
            return Some(if is_share { Role::Other } else { Role::Failed });
        }
        self.has(&["reconnects", "reconnections"]).then_some(Role::Reconnects)
    }

    fn of_rates(&self) -> Option<Role> {
        let of_bytes = self.byte_unit().is_some() || self.has(&["bandwidth", "transfer"]);
        let a_second = self.says(&["/s", "per second", "per_sec", "per sec", "throughput"]);
        if of_bytes && self.has(&["input", "sent", "memory", "mem", "ram", "rss", "size"]) {
            return Some(Role::Other);
        }
        if of_bytes {
            let is_rate = a_second || self.has(&["bandwidth", "rate"]);
            return Some(if is_rate { Role::BytesRate } else { Role::Bytes });
        }
        if self.has(&["rps", "qps", "tps", "throughput", "rate"]) {
            return Some(Role::Rate);
        }
        let requests = ["req", "reqs", "request", "requests", "r", "hits", "trans", "transactions"];
        (a_second && self.has(&requests)).then_some(Role::Rate)
    }

    fn of_times(&self) -> Option<Role> {
        if let Some(percent) = self.words.iter().find_map(|word| percentile(word)) {
            return Some(Role::Percentile(percent));
        }
        let is_of_requests = self.has(&["requests", "cpu", "memory", "mem", "connections"]);
        match () {
            () if self.has(&["median"]) => Some(Role::Percentile(50.0)),
            () if self.has(&["stdev", "stddev", "sd", "std", "deviation"]) => Some(Role::Deviation),
            () if self.has(&["max", "longest", "slowest", "worst"]) && !is_of_requests => {
                Some(Role::Max)
            }
            () if self.has(&["min", "shortest", "fastest"]) && !is_of_requests => Some(Role::Min),
            () if self.has(&["latency", "avg", "average", "mean"]) && !is_of_requests => {
                Some(Role::Mean)
            }
            () if self.says(&["response time", "time per request", "response_time"]) => {
                Some(Role::Mean)
            }
            () if self.has(&["duration", "elapsed", "runtime", "seconds"])
                || self.says(&["time taken", "test time"]) =>
            {
                Some(Role::Duration)
            }
            () => None,
        }
    }

    fn of_setting(&self) -> Option<Role> {
        let alone = |wanted: &[&str]| self.words.len() == 1 && self.has(wanted);
        match () {
            () if self.has(&["pipeline", "pipelining", "depth", "streams"]) => Some(Role::Pipeline),
            () if self.has(&["connections", "concurrency", "conns", "clients", "users", "vus"])
                || alone(&["c", "connection"]) =>
            {
                Some(Role::Connections)
            }
            () if self.has(&["threads"]) => Some(Role::Threads),
            () if self.has(&["cpus", "cores"]) => Some(Role::ServerCpus),
            () if self.has(&["cpu"]) => Some(Role::ServerCpu),
            () if self.has(&["framework", "server", "name", "implementation", "contender"])
                || alone(&["library", "program", "service", "tool", "software", "webserver"]) =>
            {
                Some(Role::Server)
            }
            () if self.has(&["requests", "completed", "complete", "transactions", "hits"])
                || alone(&["n", "count", "total"]) =>
            {
                Some(Role::Complete)
            }
            () if self.has(WORKLOAD_WORDS) => Some(Role::Workload),
            () => None,
        }
    }

    fn byte_unit(&self) -> Option<f64> {
        self.words.iter().find_map(|word| match *word {
            "bytes" | "b" => Some(1.0),
            "kb" | "kbytes" | "kbyte" => Some(1e3),
            "kib" => Some(1024.0),
            "mb" | "mbytes" => Some(1e6),
            "mib" => Some(1_048_576.0),
            "gb" => Some(1e9),
            "gib" => Some(1_073_741_824.0),
            _ => None,
        })
    }
}

/// Words of columns that tell one workload from another.
const WORKLOAD_WORDS: &[&str] = &[
    "path",
    "url",
    "file",
    "size",
    "payload",
    "body",
    "protocol",
    "scenario",
    "case",
    "test",
    "workload",
    "endpoint",
    "profile",
    "workers",
    "keepalive",
    "tls",
    "machine",
    "host",
];

/// "p99", "99%", "99th", "p99.9", "p999" as a percentage.
fn percentile(word: &str) -> Option<f64> {
    let (is_marked, digits) = match word.strip_prefix('p') {
        Some(digits) => (true, digits),
        None => (false, word),
    };
    let bare = digits.trim_end_matches("th").trim_end_matches("st").trim_end_matches('%');
    let is_marked = is_marked || bare.len() < digits.len();
    let percent: f64 = bare.parse().ok()?;
    match bare {
        "999" => Some(99.9),
        "9999" => Some(99.99),
        _ if is_marked && percent > 0.0 && percent < 100.0 => Some(percent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_known_by_their_words() {
        for (name, role) in [
            ("Requests/sec", Role::Rate),
            ("req/s", Role::Rate),
            ("rps", Role::Rate),
            ("Throughput (req/s)", Role::Rate),
            ("Throughput (MB/s)", Role::BytesRate),
            ("Transfer/sec", Role::BytesRate),
            ("bandwidth", Role::BytesRate),
            ("input_bw", Role::Other),
            ("avg_latency", Role::Mean),
            ("Mean latency (ms)", Role::Mean),
            ("p99_latency", Role::Percentile(99.0)),
            ("99.9%", Role::Percentile(99.9)),
            ("P999 (us)", Role::Percentile(99.9)),
            ("Median [ms]", Role::Percentile(50.0)),
            ("Max", Role::Max),
            ("Stdev", Role::Deviation),
            ("connections", Role::Connections),
            ("c", Role::Connections),
            ("Concurrency Level", Role::Connections),
            ("pipeline", Role::Pipeline),
            ("duration", Role::Duration),
            ("Total requests", Role::Complete),
            ("Failed requests", Role::Failed),
            ("error rate", Role::Other),
            ("status_4xx", Role::Status(4)),
            ("Non-2xx", Role::BadStatus),
            ("cpu", Role::ServerCpu),
            ("cores", Role::ServerCpus),
            ("memory (MB)", Role::Other),
            ("rate_ratio", Role::RateRatio),
            ("framework", Role::Server),
            ("Web server", Role::Server),
            ("language", Role::Other),
            ("path", Role::Workload),
        ] {
            assert_eq!(Column::named(name).role, role, "{name}");
        }
    }

    #[test]
    fn a_column_may_say_the_unit_of_its_cells() {
        assert_eq!(Column::named("Mean latency (ms)").unit, Some(1e-3));
        assert_eq!(Column::named("p99 [us]").unit, Some(1e-6));
        assert_eq!(Column::named("latency").unit, None);
        assert_eq!(Column::named("Throughput (MB/s)").unit, Some(1e6));
    }
}
