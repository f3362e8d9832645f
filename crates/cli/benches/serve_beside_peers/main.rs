//! `make bench-serve`: our server beside its peers, on the same page, under the same load, alternating, many times. The
//! server has one CPU, the generator the other. All servers of a row run from its beginning to its end, so that each is
//! warm; only one is loaded at a time. Each block loads ours and each opponent once, in random order. A ratio is paired
//! by block and printed with its interval, next to the bar that it must clear.
//!
//! The score is the CPU time of the server per request, because on two CPUs the generator may limit the throughput. For
//! CGI it is requests/s.
//!
//! Start reading at [`ROWS`]. `JOUST_BENCH_BLOCKS` and `JOUST_BENCH_SECONDS` shorten it, `JOUST_BENCH_ROWS` (names,
//! separated by commas) chooses rows, `JOUST_BENCH_BINARY` measures another joust, and `JOUST_BENCH_EARLIER` (the path
//! of an earlier joust) adds its server as an opponent to every row.

#[path = "../beside/mod.rs"]
mod beside;
mod contenders;
mod idle;
mod servers;
mod session;
mod summary;

use std::path::PathBuf;

use beside::Outcome;
use beside::compare::Bar;
use contenders::Contender;

/// One workload, and the servers on it.
struct Row {
    /// For `JOUST_BENCH_ROWS`.
    name: &'static str,
    page: Page,
    connections: u32,
    /// Whether connections are reused.
    keep_alive: bool,
    score: Score,
    ours: &'static Contender,
    opponents: &'static [Opponent],
}

/// The requested page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    /// A file of that size.
    File(u32),
    /// A program that prints 1 KB.
    Program,
}

/// The figure that decides a row.
#[derive(Clone, Copy)]
enum Score {
    /// CPU time of all processes of the server.
    CpuPerRequest,
    RequestsPerSecond,
}

/// Another server, and the required ratio of our score to its.
#[derive(Clone, Copy)]
struct Opponent {
    contender: &'static Contender,
    bar: Option<Bar>,
}

impl Row {
    /// The same with the server of an earlier joust among the opponents. Leaked, because the table of rows is static,
    /// too.
    fn beside_earlier(&'static self) -> &'static Self {
        let name = format!("earlier {}", self.ours.name).leak();
        let contender = Box::leak(Box::new(Contender { name, is_earlier: true, ..*self.ours }));
        let mut opponents = self.opponents.to_vec();
        opponents.push(Opponent { contender, bar: None });
        Box::leak(Box::new(Self { opponents: opponents.leak(), ..*self }))
    }
}

const fn at_most(contender: &'static Contender, share: f64) -> Opponent {
    Opponent { contender, bar: Some(Bar::AtMost(share)) }
}

const fn at_least(contender: &'static Contender, times: f64) -> Opponent {
    Opponent { contender, bar: Some(Bar::AtLeast(times)) }
}

/// A row about CPU time per request for a file.
const fn cpu(
    name: &'static str,
    page_bytes: u32,
    connections: u32,
    ours: &'static Contender,
    opponents: &'static [Opponent],
) -> Row {
    let page = Page::File(page_bytes);
    let score = Score::CpuPerRequest;
    Row { name, page, connections, keep_alive: true, score, ours, opponents }
}

use contenders::{
    APACHE_EVENT, APACHE_PREFORK, APACHE_WORKER, EVENT, H2O, LIGHTTPD, NGINX, POLLER, PREFORK,
    REACTOR, TOMCAT, URING, WORKER,
};

const ROWS: &[Row] = &[
    cpu(
        "small",
        3361,
        100,
        &REACTOR,
        const { &[at_most(&LIGHTTPD, 0.88), at_most(&H2O, 0.88), at_most(&NGINX, 0.66)] },
    ),
    cpu(
        "small-uring",
        3361,
        100,
        &URING,
        const {
            &[
                at_most(&LIGHTTPD, 0.82),
                at_most(&H2O, 0.82),
                Opponent { contender: &REACTOR, bar: None },
            ]
        },
    ),
    cpu(
        "medium",
        36_907,
        100,
        &REACTOR,
        const { &[at_most(&NGINX, 1.0), at_most(&LIGHTTPD, 1.0), at_most(&H2O, 1.0)] },
    ),
    cpu("large", 3_000_000, 20, &REACTOR, const { &[at_most(&NGINX, 1.0)] }),
    Row {
        keep_alive: false,
        ..cpu(
            "connect",
            3361,
            100,
            &REACTOR,
            const { &[at_most(&H2O, 0.95), at_most(&NGINX, 0.95)] },
        )
    },
    cpu("prefork", 3361, 100, &PREFORK, const { &[at_most(&APACHE_PREFORK, 0.35)] }),
    cpu("worker", 3361, 100, &WORKER, const { &[at_most(&APACHE_WORKER, 0.35)] }),
    cpu("event", 3361, 100, &EVENT, const { &[at_most(&APACHE_EVENT, 0.35)] }),
    cpu("poller", 3361, 100, &POLLER, const { &[at_most(&TOMCAT, 0.50)] }),
    Row {
        name: "cgi",
        page: Page::Program,
        connections: 10,
        keep_alive: true,
        score: Score::RequestsPerSecond,
        ours: &REACTOR,
        opponents: const { &[at_least(&APACHE_WORKER, 1.2), at_least(&LIGHTTPD, 1.2)] },
    },
];

fn main() -> Outcome<()> {
    // `cargo test --benches` calls every bench with --test; a speed measurement is not a test.
    if std::env::args().any(|arg| arg == "--test") {
        return Ok(());
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("this bench needs two CPUs, one for the server, one for the generator".into());
    }
    let settings = Settings {
        blocks: beside::number("JOUST_BENCH_BLOCKS", 12)?,
        seconds: beside::number("JOUST_BENCH_SECONDS", 2)?,
        joust: beside::joust(env!("CARGO_BIN_EXE_joust"))?,
        earlier: beside::earlier()?,
    };
    summary::print_preface(&settings);
    let mut met = Vec::new();
    for row in beside::rows_named(ROWS, |row| row.name)? {
        let row = if settings.earlier.is_some() { row.beside_earlier() } else { row };
        let blocks = session::meet(row, &settings)?;
        let figures = summary::figures(row, &blocks)?;
        summary::print_row(row, &blocks, &figures);
        met.push((row, figures));
    }
    let memory = idle::memory(&settings)?;
    summary::print_table(&settings, &met, &memory);
    Ok(())
}

/// Settings from the environment.
struct Settings {
    blocks: u32,
    /// Length of each run.
    seconds: u32,
    /// The joust under test, as server and as generator.
    joust: PathBuf,
    /// Another joust whose server is an opponent in every row.
    earlier: Option<PathBuf>,
}
