//! Owns the plain data that travels between the parts: what was planned, what was measured, what
//! was found. It is the only file format. Must not know how to produce or show any of it.
//! Start reading at [`RunRecord`] (a whole experiment) or [`LoadRecord`] (one load on one server).
//!
//! ```
//! let goals = joust_record::parse_goals("p99<10ms,errors<0.1%").unwrap();
//! assert_eq!(goals.len(), 2);
//! assert!(joust_record::parse_goals("p99").is_err());
//! ```
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | study | an experiment as a person writes it: question, contenders, workload |
//! | contender | a server with its settings, one of those compared |
//! | cell | one point of the workload, at which contenders are compared |
//! | block | one visit to each contender in each cell, in random order |
//! | visit | a fresh start of one server, warm-up cut off, one measurement: the unit of replication |
//! | request | one HTTP request and what came of it; `started = done + unanswered`, `done = ok + failed` |
//! | due, sent, first byte, done | the four instants of a request, in nanoseconds since the start of the load |
//! | service time | done - sent: what the server and the network took |
//! | response time | done - due: what a user who meant to ask at `due` had to wait; it includes connecting |
//! | closed loop | each connection asks again when its reply is complete; open loop: requests are due at times that do not depend on replies |
//! | keep-alive | more than one request on a connection |
//! | goodput | requests/s that ended with outcome `ok` |
//! | backlog | connections the kernel holds for a listening socket until they are accepted |
//! | ceiling | a limit that is not the server's: the generator, the link |
//! | goal | a bound that a load is to keep, as in `p99<5ms` |
//! | finding | an artifact that a check of the doctor saw, with its evidence |
//! | verdict | what may be said of a pair of contenders, in one of six wordings |

mod analysis;
mod balance;
mod bodies;
mod by_request;
mod client;
mod comparison;
mod doubt;
mod facts;
mod finding;
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
mod upgrade;
mod verdict;
mod visit;

pub use analysis::Analysis;
pub use balance::Imbalance;
pub use bodies::{BodiesVerified, WrongBody};
pub use by_request::{REQUEST_ROWS_MAX, RequestFigures, RequestRows};
pub use client::{ToolClaims, ToolRun};
pub use comparison::{
    Basis, ChangeJudgement, Comparison, Direction, RunChange, RunEstimate, RunName,
};
pub use doubt::{GENERATOR_BUSY, GeneratorLimit, RateMissed};
pub use facts::{Facts, Snapshot};
pub use finding::{Certainty, Finding, Severity};
pub use goal::{Edge, Figure, Goal, GoalError, Phase, parse_goals};
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
    ByteCounts, ClientUse, LoadPart, LoadRecord, OpenLoop, RequestCounts, ThreadUse, TlsUse,
};
pub use load_plan::{
    Bodies, Column, Engine, ExpectedBody, HttpVersion, LoadPlan, LoadStop, Origin, Pick,
    RequestPlan, ServerAddress, Share, Stamps, TlsPlan, TlsVersions, Verify, is_idempotent,
};
pub use machine::{
    Calm, Course, Disturbance, Foreign, MachineSeries, Network, NetworkKind, Prepared,
    ProcessesUse, Side, Surroundings,
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
pub use queue::QueueGrowth;
pub use ranking::{RankedContender, Ranking};
pub use redirects::{Proxy, Redirect, Redirects, is_redirect};
pub use run::{ContenderFacts, Ending, RunRecord, Skipped};
pub use sample::{AtEnd, Carrier, ErrorCounts, Outcome, Sample};
pub use scalability::{Coefficient, Scalability};
pub use scenario::{
    Answer, Asking, Scenario, Seats, Turn, UserRequest, Users, WantedBodies, Wants,
};
pub use seal::Integrity;
pub use search::{Limit, SearchEnding, SearchRecord, Try, TryOutcome};
pub use shift::{Band, Explanation, Modes, Part, Shift, ShiftPoint, StallMode};
pub use verdict::{BoundCause, Estimate, PairVerdict, ShortOf, Verdict};
pub use visit::{ServerUse, Settled, Visit, VisitState};
