//! What a load measured for each of its requests, by name, if its plan has several. Owns the names and which of them
//! have a row of their own; must not know how requests are chosen. Start reading at [`RequestRows`].

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use stats::Histogram;

use crate::latency::LatencyMillis;
use crate::load_plan::{LoadPlan, RequestPlan};

/// Most names with a row of their own; all others share the last row. Each row has a histogram on each thread of the
/// generator.
pub const REQUEST_ROWS_MAX: usize = 20;

/// The figures of requests with one name. Summed over all rows, each count equals that of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestFigures {
    /// Method and URL as planned, with unfilled placeholders; "others" for several names.
    pub name: String,
    /// Number of names: 1, or more for "others".
    pub n_names: u64,
    /// Requests that ended, successfully or not.
    pub done: u64,
    /// Of them: successful.
    pub ok: u64,
    /// Of them: failed.
    pub failed: u64,
    /// Still in flight when the load ended.
    pub unanswered: u64,
    /// Bytes of replies, heads and chunk framing included.
    pub bytes_read: u64,
    /// Of bodies only.
    pub bytes_body: u64,
    /// Due to done, `ok` requests.
    pub response_ms: LatencyMillis,
    /// The distribution behind it.
    #[serde(with = "crate::stored")]
    pub response: Histogram,
}

impl RequestFigures {
    /// An empty row for that number of names.
    pub fn new(name: String, n_names: u64) -> Self {
        Self {
            name,
            n_names,
            done: 0,
            ok: 0,
            failed: 0,
            unanswered: 0,
            bytes_read: 0,
            bytes_body: 0,
            response_ms: LatencyMillis::default(),
            response: Histogram::new(),
        }
    }

    /// Adds the figures of the same requests from elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.done += other.done;
        self.ok += other.ok;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.bytes_read += other.bytes_read;
        self.bytes_body += other.bytes_body;
        self.response.merge(&other.response);
    }

    /// Updates the figures from the distribution.
    #[must_use]
    pub fn summed_up(mut self) -> Self {
        self.response_ms = LatencyMillis::from(&self.response);
        self.response.pack();
        self
    }
}

/// The row in which each request of a plan counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRows {
    /// The names, and how many each row stands for, in the order of the plan, "others" last. Empty if the plan has only
    /// one request.
    pub names: Vec<(String, u64)>,
    /// Row of each request of the plan, by index.
    pub row_of: Vec<u8>,
}

impl RequestRows {
    /// If there are too many names, the most frequent ones have rows; of equally frequent ones, the first.
    pub fn of(plan: &LoadPlan) -> Self {
        if plan.requests.len() < 2 {
            return Self { names: Vec::new(), row_of: Vec::new() };
        }
        let mut index_of: HashMap<String, usize> = HashMap::new();
        let mut weights: Vec<(String, u64)> = Vec::new();
        let mut name_of = Vec::with_capacity(plan.requests.len());
        for request in &plan.requests {
            let index = *index_of.entry(plan.name_of(request)).or_insert_with_key(|name| {
                weights.push((name.clone(), 0));
                weights.len() - 1
            });
            weights[index].1 += u64::from(request.weight);
            name_of.push(index);
        }
        let mut ranked: Vec<usize> = (0..weights.len()).collect();
        ranked.sort_by_key(|&index| (std::cmp::Reverse(weights[index].1), index));
        let mut shown = ranked[..ranked.len().min(REQUEST_ROWS_MAX)].to_vec();
        shown.sort_unstable();
        let others = shown.len() as u8;
        let mut rows = vec![others; weights.len()];
        shown.iter().enumerate().for_each(|(row, &index)| rows[index] = row as u8);
        let mut names: Vec<(String, u64)> =
            shown.iter().map(|&index| (weights[index].0.clone(), 1)).collect();
        let n_others = (weights.len() - shown.len()) as u64;
        if n_others > 0 {
            names.push(("others".to_owned(), n_others));
        }
        Self { names, row_of: name_of.into_iter().map(|index| rows[index]).collect() }
    }
}

impl LoadPlan {
    /// The name of a request of the plan: method and target, and the server if there are several.
    pub fn name_of(&self, request: &RequestPlan) -> String {
        let RequestPlan { method, target, .. } = request;
        match self.origins.get(request.origin as usize) {
            Some(origin) if self.origins.len() > 1 => {
                let scheme = if origin.tls_name.is_some() { "https" } else { "http" };
                format!("{method} {scheme}://{}{target}", origin.host)
            }
            _ => format!("{method} {target}"),
        }
    }

    /// The names of the requests with these indexes; empty if the plan has only one request.
    pub fn names_of(&self, indexes: impl Iterator<Item = u32>) -> BTreeMap<u32, String> {
        if self.requests.len() < 2 {
            return BTreeMap::new();
        }
        let name = |index| Some((index, self.name_of(self.requests.get(index as usize)?)));
        let mut indexes: Vec<u32> = indexes.collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes.into_iter().filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(requests: &[(&str, u32)]) -> LoadPlan {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        let request =
            |&(target, weight): &(&str, u32)| RequestPlan { weight, ..RequestPlan::get(target) };
        plan.requests = requests.iter().map(request).collect();
        plan
    }

    #[test]
    fn requests_of_one_name_share_a_row_and_one_request_has_none() {
        let rows = RequestRows::of(&plan(&[("/a", 1), ("/b", 1), ("/a", 1)]));
        assert_eq!(rows.row_of, [0, 1, 0]);
        assert_eq!(rows.names, [("GET /a".to_owned(), 1), ("GET /b".to_owned(), 1)]);
        let rows = RequestRows::of(&plan(&[("/a", 1)]));
        assert!(rows.names.is_empty() && rows.row_of.is_empty());
    }

    #[test]
    fn names_beyond_the_bound_share_the_last_row_and_the_most_asked_have_their_own() {
        let targets: Vec<String> = (0..30).map(|n| format!("/{n}")).collect();
        let weighted: Vec<(&str, u32)> = targets
            .iter()
            .enumerate()
            .map(|(n, target)| (target.as_str(), if n >= 25 { 9 } else { 1 }))
            .collect();
        let rows = RequestRows::of(&plan(&weighted));
        assert_eq!(rows.names.len(), REQUEST_ROWS_MAX + 1);
        assert_eq!(rows.names.last(), Some(&("others".to_owned(), 10)));
        assert_eq!((rows.row_of[0], rows.row_of[14], rows.row_of[29]), (0, 14, 19));
        assert!(rows.row_of[15..25].iter().all(|&row| row == 20), "{:?}", rows.row_of);
    }

    #[test]
    fn a_name_has_the_server_where_there_are_several() {
        let mut plan = plan(&[("/a", 1), ("/b", 1)]);
        plan.origins.push(plan.origins[0].clone());
        plan.origins[1].tls_name = Some("x".to_owned());
        plan.requests[1].origin = 1;
        let names: Vec<String> = plan.names_of([1, 0, 1, 7].into_iter()).into_values().collect();
        assert_eq!(names, ["GET http://127.0.0.1:80/a", "GET https://127.0.0.1:80/b"]);
    }
}
