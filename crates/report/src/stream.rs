//! A load as a stream of lines, one an interval, while it runs: for a dashboard, a plot, a script. Owns the
//! columns and their two forms; must not know who reads them. Start reading at [`COLUMNS`].

use record::Interval;
use stats::Histogram;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// Comma-separated, the names in the first line; a figure that cannot be given is empty.
    Csv,
    /// A JSON object a line; a figure that cannot be given is null.
    Ndjson,
}

/// What stands in a column.
enum Value {
    Count(u64),
    Figure(Option<f64>),
}

/// A column: its name, and what it has of an interval.
struct Column {
    name: &'static str,
    of: fn(&Interval) -> Value,
}

/// All columns, in order. New ones are added only at the end, and none is ever removed.
static COLUMNS: [Column; 17] = [
    Column { name: "start_s", of: |it| Value::Figure(Some(it.start.as_secs_f64())) },
    Column { name: "end_s", of: |it| Value::Figure(Some(it.end().as_secs_f64())) },
    Column { name: "started", of: |it| Value::Count(it.started) },
    Column { name: "ok", of: |it| Value::Count(it.ok) },
    Column { name: "failed", of: |it| Value::Count(it.errors.total()) },
    Column { name: "ok_per_s", of: |it| Value::Figure(Some(ok_per_s(it))) },
    Column { name: "response_p50_ms", of: |it| quantile(&it.response, 0.5) },
    Column { name: "response_p90_ms", of: |it| quantile(&it.response, 0.9) },
    Column { name: "response_p99_ms", of: |it| quantile(&it.response, 0.99) },
    Column {
        name: "response_max_ms",
        of: |it| Value::Figure(it.response.max().map(units::Nanos::as_millis_f64)),
    },
    Column { name: "bytes_read", of: |it| Value::Count(it.bytes_read) },
    Column { name: "status_1xx", of: |it| statuses(it, 1) },
    Column { name: "status_2xx", of: |it| statuses(it, 2) },
    Column { name: "status_3xx", of: |it| statuses(it, 3) },
    Column { name: "status_4xx", of: |it| statuses(it, 4) },
    Column { name: "status_5xx", of: |it| statuses(it, 5) },
    Column { name: "client_cpu_s", of: |it| Value::Figure(Some(it.client_cpu.as_secs_f64())) },
];

impl StreamFormat {
    /// The text before the first interval, ending in a newline; may be empty.
    pub fn header(self) -> String {
        match self {
            Self::Csv => {
                COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>().join(",") + "\n"
            }
            Self::Ndjson => String::new(),
        }
    }

    /// The line of an interval, ending in a newline.
    pub fn line(self, interval: &Interval) -> String {
        let each = COLUMNS.iter().map(|column| {
            let value = (column.of)(interval);
            match self {
                Self::Csv => number(&value).unwrap_or_default(),
                Self::Ndjson => {
                    format!("\"{}\":{}", column.name, number(&value).unwrap_or("null".to_owned()))
                }
            }
        });
        let each = each.collect::<Vec<_>>().join(",");
        match self {
            Self::Csv => each + "\n",
            Self::Ndjson => format!("{{{each}}}\n"),
        }
    }
}

/// As CSV and JSON both write it.
fn number(value: &Value) -> Option<String> {
    match value {
        Value::Count(count) => Some(count.to_string()),
        Value::Figure(figure) => figure.filter(|figure| figure.is_finite()).map(|f| f.to_string()),
    }
}

/// To three decimals: further digits are noise.
fn ok_per_s(interval: &Interval) -> f64 {
    let seconds = interval.length.as_secs_f64();
    if seconds > 0.0 { (interval.ok as f64 / seconds * 1e3).round() / 1e3 } else { 0.0 }
}

fn quantile(histogram: &Histogram, q: f64) -> Value {
    Value::Figure(histogram.quantile(q).map(units::Nanos::as_millis_f64))
}

fn statuses(interval: &Interval, class: u16) -> Value {
    let of_class = interval.status.range(100 * class..100 * (class + 1));
    Value::Count(of_class.map(|(_, count)| count).sum())
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    fn interval() -> Interval {
        let mut interval = Interval::new(Nanos::from_millis(300), Nanos::from_millis(100));
        (interval.started, interval.ok, interval.bytes_read) = (103, 100, 350_000);
        interval.errors.unexpected_status = 2;
        interval.status = [(200, 99), (204, 1), (404, 1), (503, 1)].into();
        interval.client_cpu = Nanos::from_micros(4500);
        (1..=100).for_each(|n| interval.response.record(Nanos::from_micros(1000 + n)));
        interval
    }

    #[test]
    fn csv_has_the_names_once_and_leaves_empty_what_cannot_be_given() {
        insta::assert_snapshot!(StreamFormat::Csv.header() + &StreamFormat::Csv.line(&interval()), @r#"
        start_s,end_s,started,ok,failed,ok_per_s,response_p50_ms,response_p90_ms,response_p99_ms,response_max_ms,bytes_read,status_1xx,status_2xx,status_3xx,status_4xx,status_5xx,client_cpu_s
        0.3,0.4,103,100,2,1000,1.050623,1.090559,,1.100799,350000,0,100,0,1,1,0.0045
        "#);
    }

    #[test]
    fn each_json_line_is_an_object_with_the_same_names() {
        let line = StreamFormat::Ndjson.line(&interval());
        let expected = "{\"start_s\":0.3,\"end_s\":0.4,\"started\":103,\"ok\":100,\"failed\":2,\"ok_per_s\":1000,";
        assert!(line.starts_with(expected), "{line}");
        assert!(line.contains(",\"response_p99_ms\":null,"), "100 requests bear no p99: {line}");
        let names = COLUMNS.iter().filter(|column| line.contains(&format!("\"{}\":", column.name)));
        assert_eq!(names.count(), COLUMNS.len(), "{line}");
        assert!(line.ends_with("}\n") && StreamFormat::Ndjson.header().is_empty());
    }

    #[test]
    fn an_interval_of_nothing_is_a_line_of_zeros() {
        let line = StreamFormat::Csv.line(&Interval::new(Nanos::ZERO, Nanos::ZERO));
        assert_eq!(line, "0,0,0,0,0,0,,,,,0,0,0,0,0,0,0\n");
    }
}
