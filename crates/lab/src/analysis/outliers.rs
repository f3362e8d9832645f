//! Owns which visits lie far from the others, so that a reader can look at them. Must not know their weight: the
//! estimates handle that. Start reading at [`outliers`].

use std::collections::{BTreeMap, BTreeSet};

use record::{Metric, OutlyingVisit};

use super::CellVisits;

/// A contender and a block.
type ContenderBlock = (usize, u32);

/// The outlying visits of one cell by one metric, by contender and block.
///
/// A block is suspect if the ratio of a pair in it lies far from that of the other blocks ([`stats::outlying`]). A
/// slow minute of the machine slows both visits, so it makes no block suspect. Of the two visits, the odd one is the
/// one that differs more from its contender's other visits, after correction for the rest of the block.
pub fn outliers(of: &CellVisits<'_>, metric: Metric) -> Vec<OutlyingVisit> {
    let values: BTreeMap<ContenderBlock, f64> = of
        .usable()
        .into_iter()
        .filter_map(|(place, visit)| Some((place, visit.value(metric).filter(|v| *v > 0.0)?)))
        .collect();
    let usual = |contender: &usize| {
        let own = values.iter().filter(|((one, _), _)| one == contender).map(|(_, value)| *value);
        Some((*contender, stats::median(&own.collect::<Vec<_>>())?))
    };
    let usual: BTreeMap<usize, f64> = of.contenders.iter().filter_map(usual).collect();
    // How far each visit lies from its contender's usual value.
    let own: BTreeMap<ContenderBlock, f64> = values
        .iter()
        .filter_map(|(place, value)| Some((*place, (value / usual.get(&place.0)?).ln())))
        .collect();
    let odd: BTreeSet<ContenderBlock> =
        of.pairs.iter().flat_map(|&(a, b)| suspect(&own, a, b)).map(|two| odd(&own, two)).collect();
    let named = |(contender, block): ContenderBlock| OutlyingVisit {
        cell: of.cell,
        metric,
        contender,
        block,
        value: values[&(contender, block)],
        usual: usual[&contender],
        off: off(&own, (contender, block)).exp(),
    };
    odd.into_iter().map(named).collect()
}

/// Both visits of the blocks in which the ratio of a over b is outlying.
fn suspect(own: &BTreeMap<ContenderBlock, f64>, a: usize, b: usize) -> Vec<[ContenderBlock; 2]> {
    let of_a = own.iter().filter(|((contender, _), _)| *contender == a);
    let (both, logs): (Vec<[ContenderBlock; 2]>, Vec<f64>) = of_a
        .filter_map(|(&(_, block), log)| {
            Some(([(a, block), (b, block)], log - own.get(&(b, block))?))
        })
        .unzip();
    stats::outlying(&logs).into_iter().map(|index| both[index]).collect()
}

/// Of two visits of a block, the one that is further off. If the block has no others, both are equally far off; then
/// it is the one further from its contender's usual value.
fn odd(own: &BTreeMap<ContenderBlock, f64>, two: [ContenderBlock; 2]) -> ContenderBlock {
    let distance = |place: ContenderBlock| (off(own, place).abs(), own[&place].abs());
    let [a, b] = two.map(distance);
    let is_tie = (a.0 - b.0).abs() < 1e-9;
    let a_is_further = if is_tie { a.1 >= b.1 } else { a.0 > b.0 };
    two[usize::from(!a_is_further)]
}

/// How far a visit lies from its contender's usual value, minus what the other visits of its block do.
fn off(own: &BTreeMap<ContenderBlock, f64>, (contender, block): ContenderBlock) -> f64 {
    let others = own.iter().filter(|((one, at), _)| *at == block && *one != contender);
    let others: Vec<f64> = others.map(|(_, log)| *log).collect();
    own[&(contender, block)] - stats::median(&others).unwrap_or(0.0)
}
