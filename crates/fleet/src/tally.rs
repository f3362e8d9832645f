//! What the controller has of a run: windows of all agents, each added once, whatever order they come in. Owns the
//! sums and what is missing from them. Start reading at [`Tally`].
//!
//! Counts and histograms add up, so the sum does not depend on the order. A message that comes twice is known by its
//! number. Two different messages with one number are a fault of the agent, and are counted, not chosen between.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use record::Interval;
use stats::HistogramSum;
use units::Nanos;

use crate::coverage::{Cell, Coverage, WINDOW};
use crate::ids::Id;
use crate::message::{AgentTotals, Content, FrameError, Message, Part, Window};

/// Windows whose latencies are summed bucket by bucket, 0.5 MB each; others are packed, 10 KB each.
const OPEN_MAX: usize = 16;
/// Windows after the planned end in which replies may come that were in flight. They are in the sums, and no cell waits
/// for them.
const AFTER_MAX: u32 = 600;

/// What is expected of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The run.
    pub run: Id,
    /// Those that have a share.
    pub agents: BTreeSet<Id>,
    /// Fencing numbers that were in force: one, or more after a take-over.
    pub epochs: BTreeSet<u64>,
    /// Windows of a whole load.
    pub windows: u32,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is in the sums now.
    Added,
    /// It was in them already.
    Again,
    /// Another message had its number: the first stays.
    Conflicts,
    /// Of another run, of an agent that has no share, of a controller that was not in force, or after the end.
    Foreign,
}

/// Latencies that are not in the sum of their window yet.
#[derive(Debug, Default)]
struct OpenLatencies {
    service: HistogramSum,
    response: HistogramSum,
}

/// The windows of a run so far.
#[derive(Debug)]
pub struct Tally {
    expected: Expected,
    /// The sums, without what is in `open`.
    windows: BTreeMap<u32, Interval>,
    /// Latencies of windows that messages come of, the last used at the end.
    open: VecDeque<(u32, OpenLatencies)>,
    agents: BTreeMap<Id, OfAgent>,
    conflicts: u64,
    foreign: u64,
}

/// The last window of an agent, for people who watch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latest {
    /// Number of the window.
    pub number: u32,
    /// Requests of it that ended well, a second.
    pub rate_per_s: f64,
    /// How late its requests were sent, on average: response time less service time.
    pub lateness: Option<Nanos>,
}

/// What came of one agent.
#[derive(Debug, Default)]
struct OfAgent {
    /// Number of each message, and a digest of it.
    messages: BTreeMap<u64, u64>,
    cells: Vec<Cell>,
    started: u64,
    done: u64,
    clock_error_max: Nanos,
    /// Of those that came by themselves; figures of it are made when somebody asks.
    latest: Option<Box<Window>>,
    /// Parts of its record.
    parts: BTreeMap<u32, Part>,
    /// The last that it sends.
    totals: Option<AgentTotals>,
}

impl Tally {
    /// Nothing has come yet.
    pub fn new(expected: Expected) -> Self {
        let cells = || vec![Cell::Missing; expected.windows as usize];
        let agents = expected.agents.iter();
        let agents =
            agents.map(|id| (id.clone(), OfAgent { cells: cells(), ..OfAgent::default() }));
        Self {
            agents: agents.collect(),
            windows: BTreeMap::new(),
            open: VecDeque::new(),
            conflicts: 0,
            foreign: 0,
            expected,
        }
    }

    /// Adds a message, as it came. `late`: it came after its agent's load should have been reported.
    ///
    /// # Errors
    /// It is no message, and nothing of it was used.
    pub fn take(&mut self, message: &[u8], late: bool) -> Result<Taken, FrameError> {
        let Message { from, content } = Message::decode(message)?;
        let digest = digest(message);
        let is_in_time = match &content {
            Content::Window(window) => window.number < self.expected.windows + AFTER_MAX,
            Content::Part(_) | Content::Totals(_) => true,
        };
        let is_ours = is_in_time
            && from.run == self.expected.run
            && self.expected.epochs.contains(&from.epoch);
        let Some(agent) = self.agents.get_mut(&from.agent).filter(|_| is_ours) else {
            self.foreign += 1;
            return Ok(Taken::Foreign);
        };
        if let Some(known) = agent.messages.get(&from.seq) {
            let is_same = *known == digest;
            self.conflicts += u64::from(!is_same);
            return Ok(if is_same { Taken::Again } else { Taken::Conflicts });
        }
        agent.messages.insert(from.seq, digest);
        // After a take-over an agent asks the new controller first; until then it knows no error.
        if from.clock_error < Nanos::MAX {
            agent.clock_error_max = agent.clock_error_max.max(from.clock_error);
        }
        match content {
            Content::Window(window) => {
                agent.add(&window, late);
                self.add(window.number, &window.happened);
                // What is read back afterwards nobody watches.
                if !late {
                    self.keep(&from.agent, window);
                }
            }
            Content::Part(part) => {
                agent.parts.insert(part.index, part);
            }
            Content::Totals(totals) => {
                agent.totals = Some(AgentTotals { messages: from.seq + 1, ..totals });
            }
        }
        Ok(Taken::Added)
    }

    fn keep(&mut self, agent: &Id, window: Box<Window>) {
        let agent = self.agents.get_mut(agent).expect("a window of it was added");
        if agent.latest.as_ref().is_none_or(|latest| latest.number <= window.number) {
            agent.latest = Some(window);
        }
    }

    fn add(&mut self, number: u32, happened: &Interval) {
        let start = Nanos(u64::from(number) * WINDOW.0);
        let sum =
            self.windows.entry(number).or_insert_with(|| Interval::packed(start, Nanos::ZERO));
        // Parts of a window may come in any order.
        sum.length = sum.length.max(happened.end().saturating_sub(start));
        sum.merge_counts(happened);
        let known = self.open.iter().position(|(open, _)| *open == number);
        let (_, mut latencies) = known
            .and_then(|index| self.open.remove(index))
            .unwrap_or_else(|| (number, OpenLatencies::default()));
        latencies.service.add(&happened.service);
        latencies.response.add(&happened.response);
        self.open.push_back((number, latencies));
        if self.open.len() > OPEN_MAX {
            let (longest_unused, _) = self.open[0];
            self.close(longest_unused);
        }
    }

    /// Puts the latencies of a window into its sum.
    fn close(&mut self, number: u32) {
        let index = self.open.iter().position(|(open, _)| *open == number);
        let Some((_, latencies)) = index.and_then(|index| self.open.remove(index)) else {
            return;
        };
        let sum = self.windows.get_mut(&number).expect("a window that is open was added");
        sum.service.merge(&latencies.service.into_histogram());
        sum.response.merge(&latencies.response.into_histogram());
    }

    /// A controller that took over commands with this fencing number.
    pub fn also_of(&mut self, epoch: u64) {
        self.expected.epochs.insert(epoch);
    }

    /// An agent's load ended with this many windows: no more of them are expected.
    pub fn ended(&mut self, agent: &Id, windows: u32) {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.cells.truncate(windows as usize);
        }
    }

    /// What an agent says that it sent, once that has come.
    pub fn totals(&self, agent: &Id) -> Option<AgentTotals> {
        self.agents.get(agent)?.totals
    }

    /// The compressed record of an agent, once all of its parts are here.
    pub fn record(&self, agent: &Id) -> Option<Vec<u8>> {
        let parts = &self.agents.get(agent)?.parts;
        let of = parts.first_key_value()?.1.of;
        let is_whole = parts.len() == of as usize && parts.values().all(|part| part.of == of);
        is_whole.then(|| parts.values().flat_map(|part| &part.bytes).copied().collect())
    }

    /// The highest number of a window of which something is here.
    pub fn last_window(&self) -> Option<u32> {
        self.windows.last_key_value().map(|(number, _)| *number)
    }

    /// How many agents a window is of so far; `None` if nothing of it came.
    pub fn agents_of(&self, number: u32) -> Option<usize> {
        let has = |agent: &&OfAgent| {
            agent.cells.get(number as usize).is_some_and(|cell| *cell != Cell::Missing)
        };
        self.windows.contains_key(&number).then(|| self.agents.values().filter(has).count())
    }

    /// The sum of one window.
    pub fn window(&mut self, number: u32) -> Option<&Interval> {
        self.close(number);
        self.windows.get(&number)
    }

    /// The sum of all agents in each window, in order.
    pub fn windows(&mut self) -> impl Iterator<Item = (u32, &Interval)> {
        while let Some((number, _)) = self.open.front() {
            let number = *number;
            self.close(number);
        }
        self.windows.iter().map(|(number, sum)| (*number, sum))
    }

    /// What is there of each agent and window.
    pub fn coverage(&self) -> Coverage {
        let rows = self.agents.iter().map(|(id, agent)| (id.clone(), agent.cells.clone()));
        Coverage { rows: rows.collect() }
    }

    /// Numbers of messages that are missing of an agent, of those that it says it sent; at most `most` of them.
    pub fn missing(&self, agent: &Id, totals: AgentTotals, most: usize) -> Vec<u64> {
        let Some(known) = self.agents.get(agent) else { return Vec::new() };
        (0..totals.messages).filter(|seq| !known.messages.contains_key(seq)).take(most).collect()
    }

    /// Whether all of an agent's messages are here, and add up to what it says.
    pub fn is_whole(&self, agent: &Id, totals: AgentTotals) -> bool {
        self.agents.get(agent).is_some_and(|known| {
            known.messages.len() as u64 == totals.messages
                && known.messages.keys().next_back().is_none_or(|last| *last < totals.messages)
                && (known.started, known.done) == (totals.started, totals.done)
        })
    }

    /// The last window of an agent that came by itself.
    pub fn latest(&self, agent: &Id) -> Option<Latest> {
        self.agents.get(agent)?.latest.as_deref().map(Latest::of)
    }

    /// The largest error of an agent's clock in any of its windows.
    pub fn clock_error(&self, agent: &Id) -> Option<Nanos> {
        self.agents.get(agent).map(|known| known.clock_error_max)
    }

    /// Messages whose number another message had.
    pub fn conflicts(&self) -> u64 {
        self.conflicts
    }

    /// Messages that were not of this run.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }
}

impl OfAgent {
    fn add(&mut self, window: &Window, late: bool) {
        // A window that is more than the agent says it had: its totals will differ.
        if let Some(cell) = self.cells.get_mut(window.number as usize) {
            *cell = match (*cell, late) {
                (Cell::Missing, true) => Cell::Late,
                (Cell::Missing, false) => Cell::Received,
                (known, _) => known,
            };
        }
        self.started += window.happened.started;
        self.done += window.done();
    }
}

impl Latest {
    fn of(window: &Window) -> Self {
        let Interval { ok, length, response, service, .. } = &window.happened;
        let lateness = response.mean().zip(service.mean());
        Self {
            number: window.number,
            rate_per_s: *ok as f64 / length.as_secs_f64().max(1e-9),
            lateness: lateness.map(|(response, service)| response.saturating_sub(service)),
        }
    }
}

/// Tells a message that comes again from another one with its number; of those, one in four thousand million is not
/// told apart.
fn digest(message: &[u8]) -> u64 {
    u64::from(crc32fast::hash(message)) << 32 | message.len() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::Sender;
    use crate::message::tests::window;

    fn expected(windows: u32) -> Expected {
        let agents = ["a-1", "a-2", "a-3"].map(|id| id.parse().unwrap());
        Expected {
            run: "r-1".parse().unwrap(),
            agents: agents.into(),
            epochs: [1, 2].into(),
            windows,
        }
    }

    fn sums(tally: &mut Tally) -> Vec<(u32, Interval)> {
        tally.windows().map(|(number, sum)| (number, sum.clone())).collect()
    }

    proptest! {
        /// Order, messages that come twice and late parts of a window change nothing.
        #[test]
        fn the_sum_is_the_same_in_whatever_order_messages_come(
            micros in prop::collection::vec(prop::collection::vec(1u64..5_000_000, 0..6), 60),
            order in Just((0..120usize).map(|n| n % 60).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            // Three agents, ten windows, two parts of each window.
            let messages: Vec<Message> = micros
                .iter()
                .enumerate()
                .map(|(n, micros)| {
                    let agent = ["a-1", "a-2", "a-3"][n % 3];
                    let seq = n as u64 / 3;
                    window(agent, seq, (seq / 2) as u32, micros)
                })
                .collect();
            let (mut straight, mut shuffled) = (Tally::new(expected(10)), Tally::new(expected(10)));
            for message in &messages {
                prop_assert_eq!(straight.take(&message.encode(), false).unwrap(), Taken::Added);
            }
            let again = order.iter().filter(|&&n| shuffled.take(&messages[n].encode(), false).unwrap() == Taken::Again).count();
            prop_assert_eq!(again, 60);
            prop_assert_eq!(sums(&mut straight), sums(&mut shuffled));
            prop_assert_eq!(straight.coverage(), shuffled.coverage());
            let ok: u64 = sums(&mut straight).iter().map(|(_, sum)| sum.ok).sum();
            prop_assert_eq!(ok, micros.iter().map(|one| one.len() as u64).sum::<u64>());
            let of_one = |at: usize| messages.iter().skip(at).step_by(3);
            let totals = AgentTotals {
                messages: 20,
                windows: 10,
                started: of_one(0).map(|one| one.window().happened.started).sum(),
                done: of_one(0).map(|one| one.window().done()).sum(),
                interrupted: false,
            };
            prop_assert!(shuffled.is_whole(&"a-1".parse().unwrap(), totals));
        }
    }

    #[test]
    fn two_messages_with_one_number_are_a_fault_and_the_first_stays() {
        let mut tally = Tally::new(expected(3));
        tally.take(&window("a-1", 0, 0, &[5]).encode(), false).unwrap();
        assert_eq!(
            tally.take(&window("a-1", 0, 0, &[5, 6]).encode(), false).unwrap(),
            Taken::Conflicts
        );
        assert_eq!((tally.conflicts(), sums(&mut tally)[0].1.ok), (1, 1));
    }

    #[test]
    fn strangers_are_not_added() {
        let mut tally = Tally::new(expected(3));
        let mine = window("a-1", 0, 0, &[5]);
        let from = |from: Sender| Message { from, ..mine.clone() };
        for foreign in [
            from(Sender { run: "r-2".parse().unwrap(), ..mine.from.clone() }),
            from(Sender { agent: "a-9".parse().unwrap(), ..mine.from.clone() }),
            from(Sender { epoch: 3, ..mine.from.clone() }),
            window("a-1", 0, 3 + AFTER_MAX, &[5]),
        ] {
            assert_eq!(tally.take(&foreign.encode(), false).unwrap(), Taken::Foreign);
        }
        assert_eq!((tally.foreign(), sums(&mut tally).len()), (4, 0));
    }

    #[test]
    fn what_ends_after_the_last_window_is_in_the_sums_and_in_no_cell() {
        let (mut tally, id) = (Tally::new(expected(1)), "a-1".parse().unwrap());
        for number in 0..2 {
            tally.take(&window("a-1", number.into(), number, &[5]).encode(), false).unwrap();
        }
        assert_eq!((sums(&mut tally).len(), tally.coverage().rows[&id].len()), (2, 1));
        let totals =
            AgentTotals { messages: 2, windows: 1, started: 4, done: 4, interrupted: false };
        assert!(tally.is_whole(&id, totals));
    }

    #[test]
    fn what_an_agent_says_it_sent_and_what_came_are_compared() {
        let mut tally = Tally::new(expected(4));
        let id = "a-1".parse().unwrap();
        for seq in [0, 1, 3] {
            tally.take(&window("a-1", seq, seq as u32, &[5]).encode(), seq == 3).unwrap();
        }
        let totals =
            AgentTotals { messages: 4, windows: 4, started: 8, done: 8, interrupted: false };
        assert_eq!(tally.missing(&id, totals, 10), [2]);
        assert!(!tally.is_whole(&id, totals));
        tally.take(&window("a-1", 2, 2, &[5]).encode(), true).unwrap();
        assert!(tally.is_whole(&id, totals));
        assert!(!tally.is_whole(&id, AgentTotals { done: 9, ..totals }), "sums differ");
        let cells = &tally.coverage().rows[&id];
        assert_eq!(cells[..], [Cell::Received, Cell::Received, Cell::Late, Cell::Late]);
    }
}
