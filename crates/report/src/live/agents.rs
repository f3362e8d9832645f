//! The agents of a fleet on the live screen: a table with the worst first, as long as there is room, and how many more
//! there are. Start reading at [`draw`].

use std::cmp::Ordering;

use ratatui::style::Style;
use record::Share;
use units::Nanos;

use super::{BOLD, CAUTION, CHART_ROWS_MIN, FAILED, FAINT, Rows, put, put_right};
use crate::figures::{NONE, listed, significant};
use crate::wording::plain;

/// Where an agent is in a run, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentState {
    /// Its load is over, and all of its result was sent.
    Finished,
    /// Its load is over, and its result is being sent.
    Reporting,
    /// It loads.
    Running,
    /// It will begin at the agreed instant.
    Committed,
    /// It can begin.
    Ready,
    /// It fetches the plan and asks for the run clock.
    Preparing,
    /// It has not answered yet.
    Silent,
    /// It was not heard for some seconds.
    Suspect,
    /// It does not take part: it refused the plan, left the run, or its load failed.
    Failed,
    /// It was not heard for so long that it counts as lost.
    Lost,
}

impl AgentState {
    /// As people and labels have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Reporting => "reporting",
            Self::Running => "running",
            Self::Committed => "committed",
            Self::Ready => "ready",
            Self::Preparing => "preparing",
            Self::Silent => "no answer yet",
            Self::Suspect => "suspect",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }

    /// Whether the agent was heard a short time ago.
    pub fn is_heard(self) -> bool {
        !matches!(self, Self::Silent | Self::Suspect | Self::Lost)
    }

    fn style(self) -> Style {
        match self {
            Self::Failed | Self::Lost => FAILED,
            Self::Suspect => CAUTION,
            _ => Style::new(),
        }
    }
}

/// An agent as it stands while a load runs.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFigures {
    /// Its name.
    pub name: String,
    /// Its part of the load.
    pub share: Share,
    /// Where it is.
    pub state: AgentState,
    /// Requests that ended well in its last window; `None` before that.
    pub rate_per_s: Option<f64>,
    /// How late its requests were sent, on average over its last window: response time less service time.
    pub lateness: Option<Nanos>,
    /// Largest error of its clock.
    pub clock_error: Option<Nanos>,
}

impl AgentFigures {
    /// The order of the table.
    pub(super) fn worse_first(&self, other: &Self) -> Ordering {
        let rank = |one: &Self| (one.state, one.lateness, one.clock_error);
        rank(other).cmp(&rank(self)).then_with(|| self.name.cmp(&other.name))
    }
}

/// A column: title, width with the gap before it, and text.
type Column = (&'static str, u16, fn(&AgentFigures) -> String);

/// Beside name and state, in the order in which they give way to a narrow terminal, the last first.
static COLUMNS: [Column; 4] = [
    ("requests/s", 12, |agent| agent.rate_per_s.map_or(NONE.to_owned(), significant)),
    ("lateness", 10, |agent| span(agent.lateness)),
    ("clock error", 13, |agent| span(agent.clock_error)),
    ("share", 12, |agent| format!("{}/{}", agent.share.index + 1, agent.share.of)),
];

const NAME: u16 = 17;
const STATE: u16 = 13;

/// Takes rows for the agents, so that both charts keep theirs.
pub(super) fn draw(page: &mut Rows<'_>, agents: &[AgentFigures]) {
    if agents.is_empty() {
        return;
    }
    let room = usize::from(page.left.height.saturating_sub(2 * CHART_ROWS_MIN));
    let room = room.min(usize::from(page.left.height / 2));
    // A title, and a last line if not all have one.
    let shown = if agents.len() < room { agents.len() } else { room.saturating_sub(2) };
    if shown == 0 {
        one_line(page, agents, "");
        return;
    }
    title(page);
    agents[..shown].iter().for_each(|agent| row(page, agent));
    if shown < agents.len() {
        one_line(page, &agents[shown..], " more");
    }
}

fn title(page: &mut Rows<'_>) {
    let Some(mut line) = page.top() else { return };
    put(page.buffer, line, "agent", FAINT);
    line.x += NAME.min(line.width);
    line.width = line.width.saturating_sub(NAME);
    put(page.buffer, line, "state", FAINT);
    cells(page, line, |(title, _, _)| ((*title).to_owned(), FAINT));
}

fn row(page: &mut Rows<'_>, agent: &AgentFigures) {
    let Some(mut line) = page.top() else { return };
    let name: String = plain(&agent.name).chars().take(usize::from(NAME) - 1).collect();
    put(page.buffer, line, &name, BOLD);
    line.x += NAME.min(line.width);
    line.width = line.width.saturating_sub(NAME);
    put(page.buffer, line, agent.state.word(), agent.state.style());
    cells(page, line, |(_, _, text)| (text(agent), Style::new()));
}

/// The columns after the state that fit.
fn cells(
    page: &mut Rows<'_>,
    line: ratatui::layout::Rect,
    of: impl Fn(&Column) -> (String, Style),
) {
    let mut x = line.x + STATE.min(line.width);
    for column in &COLUMNS {
        if x + column.1 > line.right() {
            return;
        }
        let (text, style) = of(column);
        put_right(page.buffer, ratatui::layout::Rect { x, width: column.1, ..line }, &text, style);
        x += column.1;
    }
}

/// How many there are in each state.
fn one_line(page: &mut Rows<'_>, agents: &[AgentFigures], more: &str) {
    let Some(line) = page.top() else { return };
    let states = agents.chunk_by(|one, next| one.state == next.state);
    let states: Vec<String> =
        states.map(|all| format!("{} {}", all.len(), all[0].state.word())).collect();
    let agent = if agents.len() == 1 { "agent" } else { "agents" };
    let text = format!("{}{more} {agent}: {}", agents.len(), listed(&states));
    put(page.buffer, line, &text, agents[0].state.style());
}

fn span(span: Option<Nanos>) -> String {
    span.map_or_else(|| NONE.to_owned(), |span| span.to_string())
}
