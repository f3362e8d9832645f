//! What another load tool (ab, wrk, siege ...) reported about a load that it made, and the resources it used. Owns the
//! data; must not know how a report is read or a tool is run. Start reading at [`ToolRun`]. Our own generator's use is
//! in [`crate::ClientUse`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, PerSecond};

/// A load that another tool made: its report and our own figures.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolRun {
    /// Its name ("wrk").
    pub tool: String,
    /// Its version as it prints it ("4.1.0"); empty if it prints none.
    pub version: String,
    /// Program and arguments, as one could type them in a shell.
    pub command: String,
    /// Its figures of the load; they are not checked or corrected here.
    pub claimed: ToolClaims,
    /// How its counts differ from ours, one sentence each.
    pub counts_differently: Vec<String>,
    /// Requested settings that it does not support, and what was used instead.
    pub notes: Vec<String>,
    /// CPU time that its processes used, user and system, from its start to its end.
    pub cpu: Nanos,
    /// Wall time from its start to its end: longer than the load, because it includes startup and printing.
    pub wall: Nanos,
    /// Peak of its resident memory.
    pub memory_max: Bytes,
    /// How it ended ("exit status 0").
    pub ended: String,
    /// The report as it was printed.
    pub report: String,
}

impl ToolRun {
    /// Share of the available CPU time of this many CPUs that it used, 0 to 1. A tool near 1 measured itself.
    pub fn busy(&self, cpus: u32) -> f64 {
        let had = self.wall.0 as f64 * f64::from(cpus.max(1));
        if had == 0.0 { 0.0 } else { self.cpu.0 as f64 / had }
    }
}

/// The figures of a tool's report; `None` is what it does not report, which is never the same as 0.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolClaims {
    /// How long the load took.
    pub duration: Option<Nanos>,
    /// Requests that ended, as this tool counts them.
    pub requests_done: Option<u64>,
    /// Requests that failed, as this tool counts them. Tools differ in whether `requests_done` includes them.
    pub requests_failed: Option<u64>,
    /// Replies with a status other than 2xx.
    pub requests_non_2xx: Option<u64>,
    /// Requests a second.
    pub rate: Option<PerSecond>,
    /// Bytes received; tools differ in whether they include heads.
    pub bytes: Option<Bytes>,
    /// Mean time of a request.
    pub latency_mean: Option<Nanos>,
    /// Its standard deviation.
    pub latency_sd: Option<Nanos>,
    /// Shortest.
    pub latency_min: Option<Nanos>,
    /// Longest.
    pub latency_max: Option<Nanos>,
    /// Percentiles, each (percent, time), ascending by percent.
    pub percentiles: Vec<(f64, Nanos)>,
    /// Errors by the tool's own name for their kind; only kinds that it printed.
    pub errors: BTreeMap<String, u64>,
}

impl ToolClaims {
    /// The time of one percentile, if the tool printed it.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let at = self.percentiles.iter().find(|(printed, _)| *printed == percent)?;
        Some(at.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_does_not_say_stays_unsaid_in_the_file() {
        let run = ToolRun {
            tool: "wrk".to_owned(),
            claimed: ToolClaims {
                requests_done: Some(7),
                percentiles: vec![(50.0, Nanos::from_millis(2)), (99.0, Nanos::from_millis(9))],
                ..ToolClaims::default()
            },
            cpu: Nanos::from_secs(1),
            wall: Nanos::from_secs(2),
            ..ToolRun::default()
        };
        let text = serde_json::to_string(&run).unwrap();
        let back: ToolRun = serde_json::from_str(&text).unwrap();
        assert_eq!(back, run);
        assert_eq!(back.claimed.requests_failed, None);
        assert_eq!(back.claimed.percentile(99.0), Some(Nanos::from_millis(9)));
        assert_eq!(back.claimed.percentile(99.9), None);
        assert_eq!((back.busy(1), ToolRun::default().busy(1)), (0.5, 0.0));
    }

    #[test]
    fn a_file_with_fewer_fields_is_read() {
        let run: ToolRun = serde_json::from_str(r#"{"tool": "ab"}"#).unwrap();
        assert_eq!(run, ToolRun { tool: "ab".to_owned(), ..ToolRun::default() });
    }
}
