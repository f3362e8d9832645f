//! Owns the ranking of a cell's contenders in groups that cannot be told apart. Must not know how a pair is told
//! apart: it uses the verdicts. Start reading at [`ranking`].

use record::{Metric, PairVerdict, RankedContender, Ranking, Verdict};
use units::Share;

use super::CellVisits;

/// The ranking of one cell by one metric, from its visits and the verdicts of its pairs. `None` if fewer than two
/// contenders can be ranked.
///
/// A verdict tells two contenders apart if it is a ratio or a bound; "no difference" and "undecided" do not. If not
/// every pair is compared, there is no ranking. The contenders with the most withheld pairs are left out until no
/// pair is withheld: a rank for them would claim more than their verdicts do.
pub fn ranking(of: &CellVisits<'_>, verdicts: &[&PairVerdict], metric: Metric) -> Option<Ranking> {
    let pairs: Vec<&PairVerdict> =
        verdicts.iter().copied().filter(|pair| pair.metric == metric).collect();
    let ranked = rankable(&pairs, of.contenders.clone());
    let is_compared =
        |a: usize, b: usize| pairs.iter().any(|pair| [(a, b), (b, a)].contains(&(pair.a, pair.b)));
    let compared_all = ranked.iter().all(|&a| ranked.iter().all(|&b| a == b || is_compared(a, b)));
    if ranked.len() < 2 || !compared_all {
        return None;
    }
    let rows = of.logs(&ranked, metric);
    let chances = stats::best_chances(&rows, metric.info().better, of.seed)?;
    let (order, levels) = order(&rows, metric.info().better)?;
    let told_apart = |a: usize, b: usize| {
        let is_pair = |pair: &&&PairVerdict| {
            [(pair.a, pair.b), (pair.b, pair.a)].contains(&(ranked[a], ranked[b]))
        };
        let verdict = pairs.iter().find(is_pair).map(|pair| &pair.verdict);
        verdict.is_some_and(Verdict::tells_apart)
    };
    let groups = stats::indistinct_groups(&order, told_apart)?;
    let letters = |at: usize| {
        let holds = groups.iter().enumerate().filter(|(_, group)| group.contains(&at));
        holds.map(|(group, _)| stats::group_letter(group)).collect::<String>()
    };
    let places: Vec<RankedContender> = order
        .iter()
        .map(|&at| RankedContender {
            contender: ranked[at],
            to_first: levels[at].exp(),
            letters: letters(at),
            best: Share(chances[at]),
        })
        .collect();
    Some(Ranking {
        cell: of.cell,
        metric,
        blocks: rows[0].len() as u32,
        overlapping: places.iter().any(|place| place.letters.len() > 1),
        places,
        unranked: of.contenders.iter().copied().filter(|one| !ranked.contains(one)).collect(),
    })
}

/// Rows, best first, and each row's log ratio to the first: the centre of a pair's ratio, as in a verdict, so that
/// one wild visit does not move it.
fn order(rows: &[Vec<f64>], better: stats::Better) -> Option<(Vec<usize>, Vec<f64>)> {
    let to = |first: usize| -> Option<Vec<f64>> {
        let over = |row: &Vec<f64>| {
            let logs: Vec<f64> = row.iter().zip(&rows[first]).map(|(one, of)| one - of).collect();
            Some(stats::Paired::of_logs(&logs).ok()?.centre_ln)
        };
        rows.iter().map(over).collect()
    };
    let lead = |levels: &[f64], row: usize| match better {
        stats::Better::Higher => levels[row],
        stats::Better::Lower => -levels[row],
    };
    let best = |levels: &[f64]| {
        (0..rows.len()).max_by(|&a, &b| lead(levels, a).total_cmp(&lead(levels, b)))
    };
    // Robust centres do not add up exactly, so the leader over one row may trail another by a hair. Each turn finds a
    // better first row, and the number of turns is bounded.
    let mut first = 0;
    for _ in 0..rows.len() {
        let levels = to(first)?;
        let next = best(&levels)?;
        if lead(&levels, next) <= 0.0 {
            break;
        }
        first = next;
    }
    let levels = to(first)?;
    let mut order: Vec<usize> = (0..rows.len()).filter(|row| *row != first).collect();
    order.sort_by(|&a, &b| lead(&levels, b).total_cmp(&lead(&levels, a)));
    order.insert(0, first);
    Some((order, levels))
}

/// The contenders that remain after those with the most withheld pairs are removed, again and again.
fn rankable(pairs: &[&PairVerdict], mut left: Vec<usize>) -> Vec<usize> {
    loop {
        let withheld = |one: usize| {
            let is_of = |pair: &&&PairVerdict| {
                let both = [pair.a, pair.b];
                both.contains(&one)
                    && both.iter().all(|of| left.contains(of))
                    && matches!(pair.verdict, Verdict::Withheld { .. })
            };
            pairs.iter().filter(is_of).count()
        };
        let most = left.iter().map(|one| withheld(*one)).max().unwrap_or(0);
        if most == 0 {
            return left;
        }
        left = left.iter().copied().filter(|one| withheld(*one) < most).collect();
    }
}
