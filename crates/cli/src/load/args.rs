//! The command line of `joust load`, one struct for each group of the help. Each struct has a method (`apply`) that
//! applies its flags to the plan and destructures every field: a forgotten flag does not compile. Start reading at
//! [`Args`].

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{
    NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
};
use clap::{ArgGroup, ValueEnum, value_parser};
use load::source::FORMATS;
use load::{LoadOptions, PacingError};
use record::{
    Bodies, Goal, GoalError, HttpVersion, LoadPlan, LoadStop, Pick, RATE_LAWS, RateLaw, Spread,
    Stage, TlsPlan, TlsVersions, Verify, parse_goals,
};
use report::StreamFormat;
use units::{Bytes, Nanos, PerSecond, Share};

use super::verify::VerifyBodies;
use crate::output::Destination;

/// Enough for an interval of 5 % over four decades, if every rate near the limit is tried three times.
const TRIES_MAX: u32 = 40;

/// The text below the options of -h.
const BRIEFLY: &str = "\
Without -n and -d the load lasts 10 seconds; with both, it ends by whichever comes first.
Exit codes: 0 done, 1 failed, 2 usage, 3 interrupted, 4 the target rate was not reached, or the \
generator was the limit (--strict), 99 a goal was broken (--slo). --help says more.";

/// The text below those of --help, and in the manual.
const AT_LENGTH: &str = "\
Without -n and -d the load lasts 10 seconds; with both, it ends by whichever comes first. \
Rates are written 500/s, 5k/s or 0.5/s, times 250us, 50ms, 10s or 2m, sizes 3361 or 100KB, shares 1% \
or 0.01. A time without a unit is seconds (-d 10); in goals (--slo, --search) a time has its unit.

Placeholders in the URL, in values of header fields and in the body: {seq} a number that no other \
request has, {rand} a random number, {rand:LOW-HIGH} one within bounds, {csv:FILE:COLUMN} the values \
of a column, row by row.

Examples:
  joust load http://127.0.0.1:8080/ -c 100 -d 30s
  joust load http://127.0.0.1:8080/ -r 5k/s --arrivals poisson --slo 'p99<10ms,errors<0.1%'
  joust load http://127.0.0.1:8080/ --search 'p99<10ms' -d 5s
  joust load http://127.0.0.1:8080/ --from urls.txt --json -
  joust load --merge agent-1.json agent-2.json

Exit codes:
  0   done
  1   failed, or nothing was answered
  2   usage
  3   interrupted
  4   the target rate was not reached; with --strict, the generator was the limit
  99  a goal was broken (--slo)";

/// Load a web server: every request stamped, errors told apart, open or closed loop
#[derive(clap::Args)]
#[command(after_help = BRIEFLY, after_long_help = AT_LENGTH)]
pub struct Args {
    /// URL to load, as in http://127.0.0.1:8080/index.html; with --from, the base of lines without a
    /// host
    #[arg(required_unless_present_any = ["from", "curl", "merge"])]
    pub url: Option<String>,
    #[command(flatten)]
    pub size: Size,
    #[command(flatten)]
    pub pace: Pace,
    #[command(flatten)]
    pub requests: Requests,
    #[command(flatten)]
    pub connections: Connections,
    #[command(flatten)]
    pub tls: Tls,
    #[command(flatten)]
    pub checks: Checks,
    #[command(flatten)]
    pub generator: Generator,
    #[command(flatten)]
    pub fleet: super::fleet::Fleet,
    #[command(flatten)]
    pub output: Output,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Size")]
pub struct Size {
    /// Concurrent connections over all threads
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub connections: u32,
    /// End after this many requests
    #[arg(short = 'n', long, value_name = "N")]
    pub requests: Option<u64>,
    /// End after this time, as in 10 (seconds), 500ms or 2m
    #[arg(short, long, value_name = "TIME", value_parser = Nanos::from_flag)]
    pub duration: Option<Nanos>,
    /// Threads; the connections are divided among them
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
}

impl Size {
    pub fn apply(&self, draft: &mut LoadPlan) {
        let Self { connections, requests, duration, threads } = *self;
        draft.stop = LoadStop { requests, duration };
        (draft.connections, draft.threads) = (connections, threads);
    }
}

#[derive(clap::Args)]
#[command(
    next_help_heading = "Pace (unless set: the next request as soon as a connection is free)"
)]
#[group(multiple = true)]
#[command(group = ArgGroup::new("law"))]
#[command(group = ArgGroup::new("open").multiple(true))]
#[command(group = ArgGroup::new("at_a_rate").multiple(true))]
#[command(group = ArgGroup::new("at_instants").multiple(true))]
// A group, because clap waives an argument's `requires` if another argument conflicts with it, but not a group's.
#[command(group = ArgGroup::new("searched"))]
pub struct Pace {
    /// Open loop: send at this rate, however slow the server is, as in 500/s or 5k/s
    #[arg(short, long, value_parser = load::parse_rate, groups = ["law", "open", "at_a_rate"])]
    pub rate: Option<PerSecond>,
    /// Distribution of the time between requests of --rate and --search
    #[arg(
        long,
        value_name = "LAW",
        value_parser = rate_laws(),
        default_value = RATE_LAWS[0].name,
        requires = "at_a_rate"
    )]
    pub arrivals: &'static RateLaw,
    /// Open loop: change the rate from A to B, over the whole duration or TIME
    #[arg(long, value_name = "A:B[:TIME]", value_parser = ramp, groups = ["law", "open"])]
    pub ramp: Option<Ramp>,
    /// Open loop: one rate after the other, as in 1k/s:10s,5k/s:30s
    #[arg(long, value_name = "RATE:TIME,...", value_parser = stages, groups = ["law", "open"])]
    pub stages: Option<Stages>,
    /// Open loop: send at the instants of a file (one a line) or of an access log; without -d, to its end
    #[arg(long, value_name = "FILE", groups = ["law", "open", "at_instants"])]
    pub replay: Option<PathBuf>,
    /// Open loop: send each request of --from at its recorded time
    #[arg(long, requires = "of_a_file", groups = ["law", "open", "at_instants"])]
    pub as_recorded: bool,
    /// Replay faster by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "at_instants")]
    pub speed: f64,
    /// Open loop: maximum number of requests that wait for a connection; more are dropped and counted
    #[arg(long, value_name = "REQUESTS", default_value_t = 1_000_000, requires = "open")]
    pub queue: u64,
    /// Closed loop: pause of each connection between a reply and its next request; exp:TIME makes the
    /// pauses random, with this mean
    #[arg(long, value_name = "TIME|exp:TIME", value_parser = load::parse_think, group = "law")]
    pub think: Option<(Nanos, Spread)>,
    /// Find the highest rate at which these goals hold, as in 'p99<10ms,errors<0.1%'; -d is the time of
    /// each try
    #[arg(
        long,
        value_name = "GOALS",
        groups = ["law", "open", "at_a_rate", "searched"],
        conflicts_with_all = ["requests", "slo"]
    )]
    pub search: Option<Goals>,
    /// Width of the interval that --search aims for
    #[arg(long, value_name = "SHARE", default_value = "5%", requires = "searched")]
    pub precision: Share,
    /// Maximum rate that --search tries
    #[arg(long, value_name = "RATE", value_parser = load::parse_rate, requires = "searched")]
    pub rate_max: Option<PerSecond>,
    /// Maximum number of tries of --search
    #[arg(
        long,
        value_name = "N",
        default_value_t = TRIES_MAX,
        value_parser = value_parser!(u32).range(1..),
        requires = "searched"
    )]
    pub tries: u32,
}

impl Pace {
    /// The law itself may need files: see `pacing` in `plan`.
    pub fn apply(&self, draft: &mut LoadPlan) {
        let Self {
            queue,
            rate: _,
            arrivals: _,
            ramp: _,
            stages: _,
            replay: _,
            as_recorded: _,
            speed: _,
            think: _,
            search: _,
            precision: _,
            rate_max: _,
            tries: _,
        } = *self;
        draft.queue_max = queue;
    }
}

/// From one rate to another, and the time it takes if it is given.
#[derive(Debug, Clone)]
pub struct Ramp {
    pub from: PerSecond,
    pub to: PerSecond,
    pub over: Option<Nanos>,
}

/// One rate after the other.
#[derive(Debug, Clone)]
pub struct Stages(pub Vec<Stage>);

/// Goals that must hold together.
#[derive(Debug, Clone)]
pub struct Goals(pub Vec<Goal>);

impl FromStr for Goals {
    type Err = GoalError;

    fn from_str(typed: &str) -> Result<Self, GoalError> {
        parse_goals(typed).map(Self)
    }
}

#[derive(clap::Args)]
#[command(next_help_heading = "Requests")]
#[group(multiple = true)]
#[command(group = ArgGroup::new("with_a_body").multiple(true))]
#[command(group = ArgGroup::new("of_a_file"))]
pub struct Requests {
    /// Request method [default: GET, or POST with --body]
    #[arg(short = 'X', long, conflicts_with_all = ["from", "curl"])]
    pub method: Option<String>,
    /// A further header field, as in 'Accept: text/html'; repeatable
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Request body: the text itself, or @FILE; the method is then POST unless -X names another
    #[arg(long, value_name = "TEXT|@FILE", group = "with_a_body", conflicts_with_all = ["from", "curl"])]
    pub body: Option<String>,
    /// Requests of a file, - for stdin; its format is recognised
    #[arg(short, long, value_name = "FILE", groups = ["with_a_body", "of_a_file"])]
    pub from: Option<PathBuf>,
    /// Format of --from
    #[arg(long, value_name = "FORMAT", requires = "of_a_file", value_parser = format_names())]
    pub format: Option<String>,
    /// A curl command line, pasted, in quotes
    #[arg(long, value_name = "COMMAND", group = "with_a_body", conflicts_with_all = ["from", "url"])]
    pub curl: Option<String>,
    /// Choose among the requests at random, by their weights, instead of in order
    #[arg(long, requires = "of_a_file", conflicts_with = "as_recorded")]
    pub shuffle: bool,
    /// Credentials for basic authentication; the URL may have them too
    #[arg(short, long, value_name = "USER:PASSWORD")]
    pub user: Option<String>,
    /// Each connection sends back the cookies that were set on it
    #[arg(long)]
    pub cookies: bool,
    /// Follow up to N redirects of each request, which counts once, from its first send to its last
    /// reply
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(load::FOLLOW_MAX)))]
    pub follow: Option<u32>,
    /// Wait for 100 Continue before a body, at most a second
    #[arg(long, requires = "with_a_body")]
    pub expect_continue: bool,
    /// Send HTTP/1.0 requests
    #[arg(long = "http1.0")]
    pub http1_0: bool,
}

impl Requests {
    /// `from`, `format`, `curl` and `body` may need files: see `plan`.
    pub fn apply(&self, options: &mut LoadOptions) {
        let Self {
            method,
            headers,
            body,
            from: _,
            format: _,
            curl: _,
            shuffle,
            user,
            cookies,
            follow,
            expect_continue,
            http1_0,
        } = self;
        // As in curl: a body is sent with POST, unless another method is named.
        let unnamed = if body.is_some() { "POST" } else { "GET" };
        method.as_deref().unwrap_or(unnamed).clone_into(&mut options.method);
        options.headers.clone_from(headers);
        options.user.clone_from(user);
        let draft = &mut options.draft;
        draft.pick = if *shuffle { Pick::AtRandom } else { Pick::InOrder };
        draft.version = if *http1_0 { HttpVersion::Http10 } else { HttpVersion::Http11 };
        draft.follow = follow.unwrap_or(0);
        (draft.cookies, draft.expect_continue) = (*cookies, *expect_continue);
    }
}

#[derive(clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct Connections {
    /// Open a new connection for each request; the generator closes it
    #[arg(long)]
    pub no_keepalive: bool,
    /// Count a request as failed when the server closes a kept connection before it answers, instead of
    /// sending it once more
    #[arg(long)]
    pub no_retry: bool,
    /// Close each connection after this many requests
    #[arg(long, value_name = "REQUESTS", conflicts_with = "no_keepalive")]
    pub requests_per_connection: Option<u64>,
    /// Maximum number of requests in flight on one connection
    #[arg(long, value_name = "REQUESTS", default_value_t = 1)]
    pub pipeline: u32,
    /// Maximum wait, separately for connecting, for the first byte and for the rest of the reply
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = Nanos::from_flag)]
    pub timeout: Nanos,
    /// Connect to another address than the URL's, as in curl; parts may be empty; repeatable
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    pub connect_to: Vec<String>,
    /// Send requests through an HTTP proxy, and those for https through a tunnel (CONNECT)
    #[arg(
        long,
        value_name = "http://[USER:PASSWORD@]HOST:PORT",
        conflicts_with_all = ["connect_to", "unix"]
    )]
    pub proxy: Option<String>,
    /// Local addresses, separated by commas and used in turn: each has its own 28,000 ports
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub source: Vec<IpAddr>,
    /// Connect to a unix socket instead of the URL's host
    #[arg(long, value_name = "PATH", conflicts_with_all = ["connect_to", "source"])]
    pub unix: Option<PathBuf>,
}

impl Connections {
    pub fn apply(&self, options: &mut LoadOptions) {
        let Self {
            no_keepalive,
            no_retry,
            requests_per_connection,
            pipeline,
            timeout,
            connect_to,
            proxy,
            source,
            unix,
        } = self;
        options.proxy.clone_from(proxy);
        options.unix.clone_from(unix);
        let draft = &mut options.draft;
        (draft.keep_alive, draft.retry) = (!no_keepalive, !no_retry);
        draft.requests_per_connection = *requests_per_connection;
        (draft.pipeline, draft.timeout) = (*pipeline, *timeout);
        draft.connect_to.clone_from(connect_to);
        draft.sources.clone_from(source);
    }
}

#[derive(clap::Args)]
#[command(next_help_heading = "TLS (https)")]
pub struct Tls {
    /// Trust only these authorities (PEM)
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long, conflicts_with = "cacert")]
    pub insecure: bool,
    /// The client's certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// The client's key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Offer one version only: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = tls_version)]
    pub tls_version: Option<TlsVersions>,
    /// Share of connections that offer to resume a session [default: 100%]
    #[arg(long, value_name = "SHARE")]
    pub tls_resume: Option<Share>,
}

impl Tls {
    pub fn apply(&self, draft: &mut LoadPlan) {
        let Self { cacert, insecure, cert, key, tls_version, tls_resume } = self;
        draft.tls = TlsPlan {
            ca: cacert.clone(),
            insecure: *insecure,
            client: cert.clone().zip(key.clone()),
            versions: tls_version.unwrap_or(TlsVersions::Both),
            resume: tls_resume.map_or(1.0, |share| share.0),
        };
    }

    /// The typed flags that have no meaning without TLS.
    pub fn typed(&self) -> Vec<&'static str> {
        let typed = [
            ("--cacert", self.cacert.is_some()),
            ("--insecure", self.insecure),
            ("--cert", self.cert.is_some()),
            ("--tls-version", self.tls_version.is_some()),
            ("--tls-resume", self.tls_resume.is_some()),
        ];
        typed.into_iter().filter(|(_, is_typed)| *is_typed).map(|(flag, _)| flag).collect()
    }
}

#[derive(clap::Args)]
#[command(next_help_heading = "Checks and gates")]
pub struct Checks {
    /// Statuses that count as good
    #[arg(long, value_name = "STATUS|LOW-HIGH", default_value = "200-399", value_parser = statuses)]
    pub expect_status: (u16, u16),
    /// Length of every body, as in 3361 or 100KB
    #[arg(long, value_name = "BYTES")]
    pub expect_length: Option<Bytes>,
    /// A header field that every reply must have, with this value if one is given; repeatable
    #[arg(long, value_name = "NAME[: VALUE]", value_parser = expected_field)]
    pub expect_header: Vec<(String, Option<String>)>,
    /// Text that every body must contain
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub expect_body: Option<String>,
    /// Compare bodies with those fetched three times before the load: none, length, or hash (the
    /// length of all, and the SHA-256 of a sample that costs under 1% of the generator's CPU time);
    /// hash=1% hashes that share. hash=SHA256 and file=PATH also say what the body must be; they take
    /// a share too, as in file=PATH,share=1% [default: hash]
    #[arg(long, value_name = "none|length|hash[=SHARE|=SHA256]|file=PATH", value_parser = verify)]
    pub verify: Option<VerifyBodies>,
    /// Goals, as in 'p99<5ms' or 'rate>1k/s,errors<0.01%'; exit code 99 if one is broken;
    /// repeatable
    #[arg(long, value_name = "GOALS", value_delimiter = ',')]
    pub slo: Vec<Goal>,
    /// Exit with 4 if the generator was the limit, not the server
    #[arg(long)]
    pub strict: bool,
}

impl Checks {
    pub fn apply(&self, draft: &mut LoadPlan) {
        // `strict` only concerns the exit code.
        let Self {
            expect_status,
            expect_length,
            expect_header,
            expect_body,
            verify,
            slo,
            strict: _,
        } = self;
        draft.verify = Verify {
            status_min: expect_status.0,
            status_max: expect_status.1,
            length: *expect_length,
            headers: expect_header.clone(),
            contains: expect_body.clone(),
            bodies: verify.as_ref().map_or(Bodies::Sample, |verify| verify.bodies),
        };
        draft.goals.clone_from(slo);
    }
}

#[derive(clap::Args)]
#[command(next_help_heading = "Generator")]
pub struct Generator {
    /// Kernel interface for sockets; auto uses io_uring if the kernel allows it
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Engine::Auto)]
    pub engine: Engine,
    /// Clock that stamps replies: the generator's when it wakes up, or the kernel's when packets arrive
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t = Stamps::WakeUp)]
    pub stamps: Stamps,
    /// CPUs to pin the threads to, in turn, as in 1 or 2,3
    #[arg(long, value_delimiter = ',', value_name = "CPU")]
    pub cpus: Vec<u32>,
    /// Spin instead of sleeping while waiting: latencies do not include the wake-up of an idle CPU, but
    /// each thread uses a whole CPU
    #[arg(long)]
    pub busy_poll: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Generator {
    pub fn apply(&self, draft: &mut LoadPlan) {
        let Self { engine, stamps, ref cpus, busy_poll, seed } = *self;
        draft.engine = match engine {
            Engine::Auto => record::Engine::Auto,
            Engine::Uring => record::Engine::Uring,
            Engine::Epoll => record::Engine::Epoll,
        };
        draft.stamps = match stamps {
            Stamps::WakeUp => record::Stamps::WakeUp,
            Stamps::Kernel => record::Stamps::Kernel,
        };
        draft.cpus.clone_from(cpus);
        (draft.busy_poll, draft.seed) = (busy_poll, seed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    Auto,
    Uring,
    Epoll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stamps {
    #[value(name = "wakeup")]
    WakeUp,
    Kernel,
}

#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// No live screen and no report; --json still writes
    #[arg(short, long)]
    pub quiet: bool,
    /// A progress line instead of the live screen
    #[arg(long)]
    pub plain: bool,
    /// Write the record of the load as one JSON object; - is stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<Destination>,
    /// Write one line per interval (100 ms) while the load runs: CSV if the name ends in .csv, otherwise
    /// a JSON object; - is stdout, and the report then goes to stderr
    #[arg(long, value_name = "FILE", conflicts_with = "search")]
    pub stream: Option<Destination>,
    /// Format of --stream, regardless of the file name
    #[arg(long, value_name = "FORMAT", value_enum, requires = "stream")]
    pub stream_format: Option<StreamAs>,
    /// Serve the figures so far as OpenMetrics text at http://ADDR:PORT/metrics while the load runs; port 0 picks a free
    /// port
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub metrics_listen: Option<SocketAddr>,
    /// Merge records that `joust load --json` wrote into one, and report it; no request is sent
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = [
            "url", "Size", "Pace", "Requests", "Connections", "Tls", "Generator", "expect_status",
            "expect_length", "expect_header", "expect_body", "verify", "raw", "stream", "plain", "metrics_listen",
        ]
    )]
    pub merge: Vec<PathBuf>,
    /// Maximum number of single requests kept in the record
    #[arg(long, value_name = "REQUESTS", default_value_t = 10_000)]
    pub raw: u32,
}

impl Output {
    /// The other flags only concern the destinations of the record and the report.
    pub fn apply(&self, draft: &mut LoadPlan) {
        draft.raw_max = self.raw;
    }
}

/// As [`StreamFormat`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StreamAs {
    Csv,
    Ndjson,
}

impl StreamAs {
    pub fn format(self) -> StreamFormat {
        match self {
            Self::Csv => StreamFormat::Csv,
            Self::Ndjson => StreamFormat::Ndjson,
        }
    }
}

fn listen_address(typed: &str) -> Result<SocketAddr, String> {
    typed.parse().map_err(|_| "it must be ADDR:PORT, as in 127.0.0.1:9464 or [::1]:9464".to_owned())
}

fn ramp(typed: &str) -> Result<Ramp, PacingError> {
    load::parse_ramp(typed).map(|(from, to, over)| Ramp { from, to, over })
}

fn stages(typed: &str) -> Result<Stages, PacingError> {
    load::parse_stages(typed).map(Stages)
}

fn expected_field(typed: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match typed.split_once(':') {
        None => (typed.trim(), None),
        Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
    };
    let is_name = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    match is_name {
        true => Ok((name.to_owned(), value)),
        false => Err("write it as in ETag or 'X-Cache: HIT'".to_owned()),
    }
}

fn rate_laws() -> impl TypedValueParser<Value = &'static RateLaw> {
    let value = |law: &&'static RateLaw| PossibleValue::new(law.name).help(law.about);
    let law_of = |name: String| {
        let found = RATE_LAWS.into_iter().find(|law| law.name == name);
        found.expect("the parser allows these names alone")
    };
    PossibleValuesParser::new(RATE_LAWS.iter().map(value)).map(law_of)
}

fn format_names() -> PossibleValuesParser {
    let value = |format: &&load::source::Format| PossibleValue::new(format.name).help(format.about);
    PossibleValuesParser::new(FORMATS.iter().map(value))
}

fn tls_version(typed: &str) -> Result<TlsVersions, String> {
    match typed {
        "1.2" => Ok(TlsVersions::Only12),
        "1.3" => Ok(TlsVersions::Only13),
        _ => Err("it is 1.2 or 1.3".to_owned()),
    }
}

fn statuses(typed: &str) -> Result<(u16, u16), String> {
    let (low, high) = typed.split_once('-').unwrap_or((typed, typed));
    let status = |text: &str| text.trim().parse::<u16>().ok();
    match (status(low), status(high)) {
        (Some(low), Some(high)) => Ok((low, high)),
        _ => Err("write it as in 200 or 200-299".to_owned()),
    }
}

fn verify(typed: &str) -> Result<VerifyBodies, String> {
    typed.parse()
}
