//! Owns whose maps a cell shows: of each contender, those of the visit whose rate lies in the middle. Start reading at
//! [`heat_maps`].

use record::Visit;

use crate::cells::CellView;
use crate::drawing::Drawing;
use crate::heat_map::HeatMap;
use crate::offsets::offsets;
use crate::standing::Standing;

/// A map, and whose it is.
pub(crate) type MapOf<'s> = (&'s Standing, Drawing);

/// Service time over the visit; all maps have the same axis.
pub(crate) fn heat_maps<'s>(view: &CellView, ordered: &[&'s Standing]) -> Vec<MapOf<'s>> {
    let maps: Vec<(&Standing, HeatMap)> = ordered
        .iter()
        .filter_map(|one| Some((*one, HeatMap::of_visit(middle_visit(view, one)?)?)))
        .collect();
    let ranges = || maps.iter().filter_map(|(_, map)| map.range());
    let low = ranges().map(|range| range.0).fold(f64::INFINITY, f64::min);
    let high = ranges().map(|range| range.1).fold(0.0, f64::max);
    let drawn = |(standing, map): &(&'s Standing, HeatMap)| {
        Some((*standing, map.drawing(&standing.name, (low, high))?))
    };
    maps.iter().filter_map(drawn).collect()
}

/// Completions within each second.
pub(crate) fn offset_maps<'s>(view: &CellView, ordered: &[&'s Standing]) -> Vec<MapOf<'s>> {
    let drawn = |standing: &&'s Standing| {
        let load = middle_visit(view, standing)?.load.as_ref()?;
        Some((*standing, offsets(load, &standing.name)?))
    };
    ordered.iter().filter_map(drawn).collect()
}

/// The measured visit of a contender whose rate is the (lower) median of its rates.
fn middle_visit<'a>(view: &'a CellView, standing: &Standing) -> Option<&'a Visit> {
    let mut visits: Vec<&Visit> =
        view.run.measured(standing.index).filter(|visit| visit.load.is_some()).collect();
    let rate = |visit: &Visit| visit.rate_per_s.unwrap_or(0.0);
    visits.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    visits.get(visits.len().saturating_sub(1) / 2).copied()
}
