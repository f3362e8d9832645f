//! `make bench-load`: our load generator beside its peers and beside a bare loop that parses nothing, on the same
//! server, alternating, many times. The server has one CPU, the generator the other. Each block runs ours and each
//! opponent of its row once, in random order. A ratio is paired by block and printed with its interval, next to the bar
//! that it must clear.
//!
//! Start reading at [`ROWS`]. `JOUST_BENCH_BLOCKS` and `JOUST_BENCH_SECONDS` shorten it, `JOUST_BENCH_ROWS` (names,
//! separated by commas) chooses rows, `JOUST_BENCH_BINARY` measures another joust, and `JOUST_BENCH_EARLIER` (the path
//! of an earlier joust) adds that one as an opponent to every row.

#[path = "../beside/mod.rs"]
mod beside;
mod floor;
mod generators;
mod servers;
mod session;
mod summary;

use std::path::PathBuf;

use beside::compare::Bar;
use beside::{CLIENT_CPU, Outcome, SEED, SERVER_CPU};
use generators::Generator;
use servers::Serving;

/// One workload, and the opponents on it.
struct Row {
    /// For `JOUST_BENCH_ROWS`.
    name: &'static str,
    serving: Serving,
    /// Length of the body.
    page_bytes: u32,
    connections: u32,
    /// Whether connections are reused.
    keep_alive: bool,
    opponents: &'static [Opponent],
}

/// Another generator, and the required ratios of our figures to its.
#[derive(Clone, Copy)]
struct Opponent {
    generator: &'static Generator,
    bars: Bars,
}

/// Required ratios of ours to the opponent's; `None`: no bar.
#[derive(Clone, Copy)]
struct Bars {
    requests_per_s: Option<Bar>,
    cpu_per_request: Option<Bar>,
}

/// An opponent for comparison only.
const NO_BAR: Bars = Bars { requests_per_s: None, cpu_per_request: None };
/// More requests per second, with less CPU time.
const AHEAD: Bars =
    Bars { requests_per_s: Some(Bar::AtLeast(1.0)), cpu_per_request: Some(Bar::AtMost(1.0)) };

impl Row {
    /// The same with an earlier joust among the opponents. Leaked, because the table of rows is static, too.
    fn beside_earlier(&'static self) -> &'static Self {
        let mut opponents = self.opponents.to_vec();
        opponents.push(Opponent { generator: &generators::EARLIER, bars: NO_BAR });
        Box::leak(Box::new(Self { opponents: opponents.leak(), ..*self }))
    }
}

const fn cheaper(share: f64) -> Bars {
    Bars { requests_per_s: None, cpu_per_request: Some(Bar::AtMost(share)) }
}

const ROWS: &[Row] = &[
    Row {
        name: "small",
        serving: Serving::OursFromMemory,
        page_bytes: 3361,
        connections: 100,
        keep_alive: true,
        opponents: &[
            Opponent {
                generator: &generators::WRK,
                bars: Bars {
                    requests_per_s: Some(Bar::AtLeast(1.30)),
                    cpu_per_request: Some(Bar::AtMost(0.80)),
                },
            },
            Opponent { generator: &generators::H2LOAD, bars: AHEAD },
            Opponent { generator: &generators::AB, bars: AHEAD },
            Opponent { generator: &generators::HEY, bars: AHEAD },
            Opponent { generator: &generators::BARE_LOOP, bars: NO_BAR },
        ],
    },
    Row {
        name: "100KB",
        serving: Serving::Nginx,
        page_bytes: 100_000,
        connections: 20,
        keep_alive: true,
        opponents: &[
            Opponent { generator: &generators::WRK, bars: cheaper(0.50) },
            Opponent { generator: &generators::BARE_LOOP, bars: NO_BAR },
        ],
    },
    Row {
        name: "3MB",
        serving: Serving::Nginx,
        page_bytes: 3_000_000,
        connections: 20,
        keep_alive: true,
        opponents: &[
            Opponent { generator: &generators::WRK, bars: cheaper(0.25) },
            Opponent { generator: &generators::BARE_LOOP, bars: NO_BAR },
        ],
    },
    // Every run leaves ports in TIME_WAIT: some 14,000 after the first, and no more after the next, half of Linux's
    // range. Waiting for them would take a minute per run. wrk on used and on fresh addresses in turn, six pairs on a
    // busy machine: 2 % apart in the median, too few for a firm conclusion. So the bench does not wait, the order is
    // random, and the count before each run is printed.
    Row {
        name: "connect",
        serving: Serving::Nginx,
        page_bytes: 3361,
        connections: 100,
        keep_alive: false,
        opponents: &[Opponent {
            generator: &generators::WRK,
            bars: Bars { requests_per_s: Some(Bar::AtLeast(1.25)), cpu_per_request: None },
        }],
    },
];

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` calls every bench with --test; speed is not a test, but reading a report is.
    if args.iter().any(|arg| arg == "--test") {
        return generators::read_kept_reports();
    }
    if let [first, rest @ ..] = args.as_slice()
        && first == floor::ARGUMENT
    {
        return floor::run(rest);
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("this bench needs two CPUs, one for the server, one for the generator".into());
    }
    let settings = Settings::from_environment()?;
    summary::print_preface(&settings);
    let mut met = Vec::new();
    for row in &settings.rows {
        let blocks = session::meet(row, &settings)?;
        let figures = summary::figures(row, &blocks)?;
        summary::print_row(row, &blocks, &figures);
        met.push((*row, figures));
    }
    summary::print_table(&settings, &met);
    Ok(())
}

/// Settings from the environment.
struct Settings {
    blocks: u32,
    /// Length of each run.
    seconds: u32,
    rows: Vec<&'static Row>,
    /// The joust under test, as generator and as server.
    joust: PathBuf,
    /// Another joust as an opponent in every row.
    earlier: Option<PathBuf>,
    /// This program.
    bench: PathBuf,
}

impl Settings {
    fn from_environment() -> Outcome<Self> {
        let earlier = beside::earlier()?;
        let rows = beside::rows_named(ROWS, |row| row.name)?;
        let rows = match earlier {
            Some(_) => rows.into_iter().map(Row::beside_earlier).collect(),
            None => rows,
        };
        Ok(Self {
            blocks: beside::number("JOUST_BENCH_BLOCKS", 12)?,
            seconds: beside::number("JOUST_BENCH_SECONDS", 3)?,
            rows,
            joust: beside::joust(env!("CARGO_BIN_EXE_joust"))?,
            earlier,
            bench: std::env::current_exe()?,
        })
    }
}
