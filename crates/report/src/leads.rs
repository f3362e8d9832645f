//! Owns the sentence about all cells of a run: who leads in how many of them, and where that changes. Must not know
//! layout. Start reading at [`leads`].

use record::{Metric, RunRecord};

use crate::cell_names;
use crate::cells::CellView;
use crate::figures::{counted, listed};
use crate::first_place::{at_least, named};
use crate::order::Order;
use crate::wording::{Reading, plain};

/// Most groups of cells that are named; further ones are counted.
const GROUPS_MAX: usize = 4;
/// Most contenders that are compared with a reference one by one.
const CONTENDERS_MAX: usize = 6;

/// Who is in first place in a cell.
#[derive(Debug, Clone, PartialEq)]
enum First {
    /// One contender; and if it is ahead of all others, its smallest proved lead.
    Lead(String, Option<f64>),
    /// Several.
    Share(Vec<String>),
    /// Nobody is proved ahead of anybody.
    Open,
    /// Nothing may be said.
    Silent,
}

impl First {
    fn in_cell(view: &CellView) -> Self {
        let readings: Vec<Reading> = view.run.verdicts.iter().map(Reading::new).collect();
        let order = Order::new(view.ranking.metric, &readings, view.ranking.order());
        let name = |&index: &usize| view.standings.get(index).map(|one| one.name.clone());
        if order.compared.is_empty() {
            return Self::Silent;
        }
        if order.readings.iter().all(|one| one.ahead().is_none()) {
            return Self::Open;
        }
        match order.first().as_slice() {
            [only] => {
                let others = order.compared.iter().filter(|&index| index != only);
                let leads: Option<Vec<f64>> = others.map(|&o| order.lead(*only, o)).collect();
                let least = leads.and_then(|leads| leads.into_iter().reduce(f64::min));
                Self::Lead(name(only).unwrap_or_default(), least)
            }
            first => Self::Share(first.iter().filter_map(name).collect()),
        }
    }

    fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Lead(one, _), Self::Lead(two, _)) => one == two,
            (one, two) => one == two,
        }
    }

    /// "nginx leads", "nginx and h2o lead, undecided between them".
    fn says(&self) -> String {
        match self {
            Self::Lead(name, _) => format!("{name} leads"),
            Self::Share(names) => format!("{} lead, undecided between them", named(names)),
            Self::Open => "nobody is proved ahead".to_owned(),
            Self::Silent => "there is no answer".to_owned(),
        }
    }
}

/// Who leads in how many cells; if each was compared only with a reference, who is ahead of that.
pub(crate) fn leads(record: &RunRecord, cells: &[CellView]) -> Option<String> {
    match record.plan.reference {
        Some(reference) => against(record, cells, reference),
        None => firsts(record, cells),
    }
}

/// Who is first in how many cells, and in which.
fn firsts(record: &RunRecord, cells: &[CellView]) -> Option<String> {
    if cells.is_empty() {
        return None;
    }
    let mut groups: Vec<(First, Vec<usize>)> = Vec::new();
    for (cell, view) in cells.iter().enumerate() {
        let first = First::in_cell(view);
        match groups.iter_mut().find(|(known, _)| known.is_alike(&first)) {
            Some((known, cells)) => {
                if let (First::Lead(_, known), First::Lead(_, lead)) = (known, first) {
                    *known = known.zip(lead).map(|(known, lead)| known.min(lead));
                }
                cells.push(cell);
            }
            None => groups.push((first, vec![cell])),
        }
    }
    groups.sort_by_key(|(first, cells)| {
        let is_answer = matches!(first, First::Lead(..) | First::Share(_));
        (!is_answer, std::cmp::Reverse(cells.len()))
    });
    let metrics: Vec<Metric> = cells.iter().map(|view| view.ranking.metric).collect();
    let by = match metrics.iter().all(|metric| *metric == metrics[0]) {
        true => format!("By {}", metrics[0].info().quantity),
        false => "By the metric that ranks each cell".to_owned(),
    };
    Some(format!("{by} {}.", told(record, &groups, cells.len())))
}

fn told(record: &RunRecord, groups: &[(First, Vec<usize>)], all: usize) -> String {
    if let [(only, _)] = groups {
        let lead = match only {
            First::Lead(_, Some(lead)) => format!(", {} ahead of each other one", at_least(*lead)),
            _ => String::new(),
        };
        if *only == First::Silent {
            return format!("there is no answer in any of {all} cells");
        }
        let cells = if all == 2 { "both cells".to_owned() } else { format!("all {all} cells") };
        return format!("{} in {cells}{lead}", only.says());
    }
    let one = |(at, (first, cells)): (usize, &(First, Vec<usize>))| {
        let of = if at == 0 { format!(" of {all} cells") } else { String::new() };
        let place = cell_names::named(&record.plan, cells);
        format!("{} in {}{of} ({place})", first.says(), cells.len())
    };
    let mut parts: Vec<String> = groups.iter().enumerate().take(GROUPS_MAX).map(one).collect();
    let rest: usize = groups.iter().skip(GROUPS_MAX).map(|(_, cells)| cells.len()).sum();
    if rest > 0 {
        parts.push(format!("in {} it is yet another", counted(rest as u64, "further cell")));
    }
    parts.join("; ")
}

/// Who is ahead of the reference and who behind it, in how many cells.
fn against(record: &RunRecord, cells: &[CellView], reference: usize) -> Option<String> {
    let named = |index: usize| Some(plain(&record.plan.contenders.get(index)?.name));
    let mut parts = Vec::new();
    for index in (0..record.plan.contenders.len()).filter(|index| *index != reference) {
        let sides: Vec<ReferenceSide> = cells
            .iter()
            .filter_map(|view| side(view, &named(index)?, &named(reference)?))
            .collect();
        let counted = |side: ReferenceSide| sides.iter().filter(|one| **one == side).count();
        let counts = [
            (ReferenceSide::Ahead, "ahead"),
            (ReferenceSide::Behind, "behind"),
            (ReferenceSide::Open, "undecided"),
        ];
        let counts = counts.map(|(side, word)| (counted(side), word));
        let said: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{word} in {count}"))
            .collect();
        if !said.is_empty() {
            parts.push(format!("{} is {}", named(index)?, listed(&said)));
        }
    }
    let more = parts.len().saturating_sub(CONTENDERS_MAX);
    parts.truncate(CONTENDERS_MAX);
    if more > 0 {
        parts.push(format!("{more} more are below"));
    }
    let (name, all) = (named(reference)?, cells.len());
    (!parts.is_empty()).then(|| format!("Against {name}, of {all} cells: {}.", parts.join("; ")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceSide {
    Ahead,
    Behind,
    Open,
}

/// On which side of the reference a contender is in a cell; `None` if they were not compared there.
fn side(view: &CellView, name: &str, reference: &str) -> Option<ReferenceSide> {
    let at = |name: &str| view.standings.iter().position(|one| one.name == name);
    let (this, that) = (at(name)?, at(reference)?);
    let of_metric = view.run.verdicts.iter().filter(|pair| pair.metric == view.ranking.metric);
    let reading = of_metric.map(Reading::new).find(|one| one.is_between(this, that))?;
    Some(match reading.ahead() {
        Some(ahead) if ahead == this => ReferenceSide::Ahead,
        Some(_) => ReferenceSide::Behind,
        None => ReferenceSide::Open,
    })
}

#[cfg(test)]
mod tests {
    use record::{PairVerdict, Verdict};
    use units::Share;

    use super::*;
    use crate::cells::cells;
    use crate::testdata;

    /// The made-up run of three cells, where `say` gives the verdict of a pair on throughput.
    fn said(say: impl Fn(&PairVerdict) -> Verdict, reference: Option<usize>) -> String {
        let mut run = testdata::celled();
        run.findings.clear();
        run.plan.reference = reference;
        run.verdicts.retain(|pair| pair.metric == Metric::Throughput);
        run.verdicts.retain(|pair| reference.is_none_or(|one| [pair.a, pair.b].contains(&one)));
        run.verdicts.iter_mut().for_each(|pair| pair.verdict = say(pair));
        leads(&run, &cells(&run)).unwrap()
    }

    /// The first of a pair is twice as fast.
    fn twice() -> Verdict {
        Verdict::Ratio { ratio: 2.0, low: 1.9, high: 2.1 }
    }

    fn open() -> Verdict {
        Verdict::Undecided { more_blocks: Some(9), margin: Share(0.02) }
    }

    /// `twice` for the contender with the lower index.
    fn lower_wins(pair: &PairVerdict) -> Verdict {
        if pair.a < pair.b { twice() } else { twice().turned() }
    }

    #[test]
    fn one_that_leads_everywhere_is_named_with_its_least_lead() {
        let text = "By requests/s joust reactor leads in all 3 cells, at least 1.90x ahead of each other one.";
        assert_eq!(said(lower_wins, None), text);
    }

    #[test]
    fn where_the_winner_changes_is_told() {
        let changing = |pair: &PairVerdict| match pair.cell {
            1 => lower_wins(pair).turned(),
            _ => lower_wins(pair),
        };
        let text = "By requests/s joust reactor leads in 2 of 3 cells (connections=1|100); joust worker \
                    leads in 1 (connections=10).";
        assert_eq!(said(changing, None), text);
    }

    #[test]
    fn cells_in_which_nothing_is_proved_or_said_are_counted_apart() {
        let mixed = |pair: &PairVerdict| match pair.cell {
            0 => lower_wins(pair),
            1 => open(),
            _ => Verdict::Withheld { reason: "bodies differ".to_owned() },
        };
        let text = "By requests/s joust reactor leads in 1 of 3 cells (connections=1); nobody is proved \
                    ahead in 1 (connections=10); there is no answer in 1 (connections=100).";
        assert_eq!(said(mixed, None), text);
    }

    #[test]
    fn where_all_are_held_against_one_each_is_counted_against_it() {
        let say = |pair: &PairVerdict| if pair.cell == 0 { open() } else { lower_wins(pair) };
        let text = "Against joust prefork, of 3 cells: joust reactor is ahead in 2 and undecided in 1; \
                    joust worker is behind in 1 and undecided in 1.";
        assert_eq!(said(say, Some(1)), text);
    }
}
