//! Owns the plain data that travels between the parts: what was planned, what was measured, what
//! was found. It is the only file format, and knows neither how data is made nor how it is shown.
//! Start reading at [`RunRecord`] (a whole experiment), [`LoadRecord`] (one load on one server) or
//! [`METRICS`] (what contenders are compared by).
//!
//! ```
//! let goals = joust_record::parse_goals("p99<10ms,errors<0.1%").unwrap();
//! assert_eq!(goals.len(), 2);
//! assert!(joust_record::parse_goals("p99").is_err());
//! ```
//!
//! # Glossary
//!
//! One meaning a word, in code, messages and documents. This list stands in `crates/record/src/lib.rs`, and as
//! a page in `docs/glossary.md`: `cargo test -p joust-record --test glossary` says how that is made from it.
//!
//! ## An experiment
//!
//! | term | meaning |
//! |---|---|
//! | study | an experiment as a person writes it: a question, contenders, a workload |
//! | run | a study carried out once; its record is `run.json` |
//! | contender | a server with its settings, one of those that are compared |
//! | adapter | what knows one server: how it is found, configured, started and ended |
//! | parity | whether contenders do the same work for a request: their switches, as stated and as observed |
//! | workload | what contenders are asked: page, connections, threads, keep-alive, rate |
//! | axis | a part of the workload that a study varies, such as the number of connections |
//! | cell | one point of the workload, at which contenders are compared |
//! | block | one visit to each contender in each cell, in random order |
//! | visit | a fresh start of one server, warm-up cut off, one measurement: the unit of replication |
//! | calibration workload | a fixed piece of work, timed on the server's CPUs before each visit: it shows a disturbed machine |
//! | disturbed | of a visit: the machine did other work meanwhile; the visit is repeated |
//! | reference | the contender that others are compared with |
//! | A/A | a comparison of a contender with its own copy: what differs is noise |
//!
//! ## A request
//!
//! | term | meaning |
//! |---|---|
//! | request | one HTTP request and its outcome; `started = done + unanswered`, `done = ok + failed` |
//! | reply | what the server sends for a request: head and body |
//! | due, sent, first byte, done | the four instants of a request, in nanoseconds since the start of the load |
//! | service time | done - sent: what the server and the network took |
//! | response time | done - due: how long a user waits who asks at `due`; it includes connecting |
//! | queue time | due - sent: the wait for a connection, connecting, and the generator's own delay |
//! | in flight | sent and not yet done |
//! | outcome | how a request ended: `ok`, or the kind of its failure |
//! | goodput | requests/s that ended with outcome `ok` |
//! | keep-alive | more than one request on a connection |
//! | pipelining | a request is sent on a connection before the reply to the one before it is complete |
//! | retry | a request is sent again because the server closed its keep-alive connection before the first byte |
//!
//! ## A load
//!
//! | term | meaning |
//! |---|---|
//! | load | what the generator does to one server: connections, requests, their instants |
//! | generator | `joust load`, or the part of it that runs within a visit |
//! | closed loop | each connection sends its next request when its reply is complete: a slow server gets fewer requests |
//! | open loop | requests are due at instants that do not depend on replies |
//! | arrival law | when requests of an open loop are due: constant, Poisson, a ramp, stages, a replay |
//! | coordinated omission | requests that a closed loop does not send while the server stalls, and so does not measure |
//! | warm-up | the first part of a load, cut off before anything is measured |
//! | window | the part of a load whose requests count in the rate |
//! | interval | of a load: a stretch of it with its own counts; of an estimate: the values that agree with the data |
//! | goal | a bound that a load has to meet, such as `p99<5ms` |
//! | capacity | the highest rate at which a server meets the goals, found by a search |
//! | ceiling | a limit that is not the server's: the generator, the link |
//!
//! ## A server
//!
//! | term | meaning |
//! |---|---|
//! | concurrency model | who waits for what in a server: processes, threads, event loops and what they share |
//! | worker | a process or thread that serves connections |
//! | event loop | a thread that waits for many connections at once and serves those that are ready |
//! | loop group | event loops of one process that share a port |
//! | handoff queue | passes connections from the thread that accepts them to one that serves them |
//! | answer thread | a thread to which an event loop gives work that could block it |
//! | parked connection | an idle keep-alive connection that no worker holds |
//! | run queue | connections of an event loop that are ready and wait for their turn |
//! | socket I/O | reading and writing a connection's socket, as an exchange asks for it |
//! | exchange | the state machine of one connection: bytes in, and what it wants next |
//! | backlog | connections that the kernel holds for a listening socket until they are accepted |
//! | thundering herd | many threads wake up for one connection, and all but one in vain |
//! | reap | to collect the exit status of a child process that has ended |
//! | gateway | what passes a request to another program: CGI, FastCGI, a proxy |
//!
//! ## An answer
//!
//! | term | meaning |
//! |---|---|
//! | metric | a quantity that contenders are compared by; all are in [`METRICS`] |
//! | pair | two contenders in one cell |
//! | estimate | the ratio of a pair with its interval: a robust centre over blocks |
//! | verdict | what may be said of a pair by a metric, in one of six wordings |
//! | told apart | p after Holm is below 0.02 and the interval excludes 1 |
//! | undecided | neither told apart nor shown to be alike: more blocks are needed |
//! | no difference | the 90 % interval lies within the margin |
//! | bound | a ratio is at least, or at most, so much: a limit that is not the server's, or a wide interval |
//! | withheld | nothing may be said of a pair, because a finding voids a side or too many visits failed |
//! | margin | differences below it do not matter to the study |
//! | family | the comparisons that Holm's correction covers: all pairs and cells of a metric |
//! | ranking | contenders best first, with letters: those that share a letter were not told apart |
//! | finding | an artifact that a check of the doctor saw, with its evidence, meaning and remedy |
//! | check | one rule of the doctor; its name is that of the artifact |
//! | regression | a metric is worse by more than the margin, with its whole interval |
//! | noise floor | the variation between visits that should be equal |

mod analysis;
mod attribution;
mod balance;
mod bodies;
mod by_request;
mod client;
mod comparison;
mod completions;
mod doubt;
mod facts;
mod finding;
mod fleet;
mod goal;
mod hex;
mod history;
mod interval;
mod journal;
mod json;
mod judgement;
mod latency;
mod load;
mod load_plan;
mod machine;
mod memory;
mod metric;
mod noise_floor;
mod outlier;
mod pacing;
mod plan;
mod progress;
mod proxy;
mod queue;
mod ranking;
mod redirects;
mod run;
mod sample;
mod scalability;
mod scenario;
mod seal;
mod search;
mod shift;
mod stored;
mod tcp;
mod upgrade;
mod user_skip;
mod verdict;
mod visit;

pub use analysis::Analysis;
pub use attribution::{Attributed, AttributedPart, Attribution, Cause};
pub use balance::Imbalance;
pub use bodies::{BodiesVerified, WrongBody};
pub use by_request::{REQUEST_ROWS_MAX, RequestFigures, RequestRows};
pub use client::{ToolClaims, ToolRun};
pub use comparison::{
    Basis, ChangeJudgement, Comparison, Direction, RunChange, RunEstimate, RunName,
};
pub use completions::Completions;
pub use doubt::{GENERATOR_BUSY, GeneratorLimit, RateMissed};
pub use facts::Facts;
pub use finding::{Certainty, Finding, Question, Severity};
pub use fleet::{FleetAgent, FleetGap, FleetUse};
pub use goal::{Goal, GoalError, LatencyFigure, LimitEdge, RequestSpan, parse_goals};
pub use hex::hex;
pub use history::{
    HistoryChange, HistoryMachine, HistoryPoint, HistoryRecord, HistoryRun, HistorySeries,
};
pub use interval::Interval;
pub use journal::{Journal, Setup};
pub use json::ReadError;
pub use judgement::Judgement;
pub use latency::{LATENCY_QUANTILES, Latencies, LatencyMillis};
pub use load::{
    ByteCounts, ClientUse, LoadPart, LoadRecord, OpenLoop, PartFinding, RequestCounts, ThreadUse,
    TlsUse,
};
pub use load_plan::{
    Bodies, Column, Engine, ExpectedBody, HttpVersion, LoadPlan, LoadStop, Origin, Pick,
    RequestPlan, ServerAddress, Share, Stamps, TlsPlan, TlsVersions, Verify, is_idempotent,
};
pub use machine::{
    Calm, Course, Descriptors, Disturbance, Foreign, MachineSeries, Network, NetworkKind,
    NetworkSide, Prepared, ProcessesUse, Surroundings,
};
pub use memory::{CgroupCounter, CgroupMemory, MemoryAccount, MemoryMethod, unlike_memory};
pub use metric::{METRICS, Metric, MetricFactor, MetricInfo, MetricKind, MetricUnit};
pub use noise_floor::{NoiseFloor, NoiseSource};
pub use outlier::OutlyingVisit;
pub use pacing::{Pacing, RATE_LAWS, RateLaw, Spread, Stage};
pub use plan::{
    Blocks, Cell, Change, Contender, CpuLayout, Plan, Published, PublishedFigure, SearchPlan,
    SettingValue, Settings, VisitPlan, Workload,
};
pub use progress::{PairSoFar, Progress};
pub use proxy::Proxy;
pub use queue::QueueGrowth;
pub use ranking::{RankedContender, Ranking};
pub use redirects::{Redirect, Redirects, is_redirect};
pub use run::{ContenderFacts, Ending, RunRecord, Skipped};
pub use sample::{AtEnd, Carrier, ErrorCounts, Outcome, Sample};
pub use scalability::{Coefficient, Scalability};
pub use scenario::{
    Answer, Asking, Scenario, Seats, Turn, UserRequest, Users, WantedBodies, Wants,
};
pub use seal::Integrity;
pub use search::{Limit, SearchEnding, SearchRecord, Try, TryOutcome};
pub use shift::{Band, CauseShare, Explanation, Modes, Shift, ShiftPoint, StallMode};
pub use tcp::{ConnectionEnds, TcpUse};
pub use user_skip::UserSkip;
pub use verdict::{BoundCause, Estimate, PairVerdict, ShortOf, Verdict};
pub use visit::{ServerUse, Settled, Visit, VisitState};
