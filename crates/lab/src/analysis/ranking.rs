//! Owns the ranking of a cell's contenders as groups that cannot be told apart. Must not know how a
//! pair was told apart: it asks the verdicts. Start reading at [`ranking`].

use record::{Metric, PairVerdict, RankedContender, Ranking, Verdict};
use units::Share;

use super::{CellVisits, better, mean};

/// The ranking of one cell by one metric, from its visits and from the verdicts of its pairs. `None`
/// where fewer than two can be ranked.
///
/// Two are told apart where their verdict is a ratio or a bound; "no difference" and "undecided" do
/// not tell them apart. Where not every pair is compared nobody is ranked. Whoever has most withheld pairs is not ranked, until no pair is withheld: a
/// place among others would say what the verdict does not.
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
    let shares = stats::best_shares(&rows, better(metric), of.seed)?;
    let levels: Vec<f64> = rows.iter().map(|row| mean(row)).collect();
    let mut order: Vec<usize> = (0..ranked.len()).collect();
    order.sort_by(|&a, &b| match better(metric) {
        stats::Better::Higher => levels[b].total_cmp(&levels[a]),
        stats::Better::Lower => levels[a].total_cmp(&levels[b]),
    });
    let told_apart = |a: usize, b: usize| {
        let is_pair = |pair: &&&PairVerdict| {
            [(pair.a, pair.b), (pair.b, pair.a)].contains(&(ranked[a], ranked[b]))
        };
        let verdict = pairs.iter().find(is_pair).map(|pair| &pair.verdict);
        verdict.is_some_and(Verdict::tells_apart)
    };
    let groups = stats::indistinct_groups(&order, told_apart)?;
    let first = *order.first()?;
    let letters = |at: usize| {
        let holds = groups.iter().enumerate().filter(|(_, group)| group.contains(&at));
        holds.map(|(group, _)| stats::group_letter(group)).collect::<String>()
    };
    let places: Vec<RankedContender> = order
        .iter()
        .map(|&at| RankedContender {
            contender: ranked[at],
            to_first: (levels[at] - levels[first]).exp(),
            letters: letters(at),
            best: Share(shares[at]),
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

/// Those left when, again and again, all who have most withheld pairs have gone.
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
