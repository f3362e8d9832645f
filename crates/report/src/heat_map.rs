//! The heat map of latency over time: columns are spans of the load, rows steps of service time on a logarithmic scale,
//! colour is the share of the column's requests. It shows what percentiles hide: bands, stalls, warm-up, drift. Must
//! not know the page it stands in. Start reading at [`HeatMap::of`].

use record::{LoadRecord, Visit};
use units::Nanos;

use crate::drawing::Drawing;
use crate::maps::{HEIGHT, LEVELS, PLOT_X, PLOT_Y, Stroke, axes, fields};
use crate::svg::{Anchor, Scale, Svg};

/// Columns and rows at most: smaller ones could not be seen.
const COLUMNS_MAX: usize = 61;
const ROWS: usize = 44;
/// Shares of a column's requests from which on the next colour is used; the first colour is for any request at all.
const SHARES: [f64; LEVELS] = [0.0, 0.001, 0.01, 0.05, 0.15, 0.35];
/// What kernels and programs wait for: delayed ACK (40 ms), the least retransmission timeout (200 ms), the first
/// retransmission of a SYN (1 s), and its second (3 s).
pub(crate) const GUIDES_MS: [f64; 4] = [40.0, 200.0, 1000.0, 3000.0];

/// Requests by when they ended and how long they took.
#[derive(Debug, Default)]
pub(crate) struct HeatMap {
    spans: Vec<LoadSpan>,
    /// Where measuring begins.
    cut: Nanos,
}

/// A span of the load.
#[derive(Debug)]
struct LoadSpan {
    start: Nanos,
    length: Nanos,
    /// Requests by service time.
    counts: Vec<(Nanos, u64)>,
}

impl HeatMap {
    /// Of one load; `cut` is where measuring begins.
    pub(crate) fn of(load: &LoadRecord, cut: Nanos) -> Self {
        let span = |interval: &record::Interval| LoadSpan {
            start: interval.start,
            length: interval.length,
            counts: interval.service.buckets().collect(),
        };
        Self { spans: load.intervals.iter().map(span).collect(), cut }
    }

    /// Of a visit; `None` without a load.
    pub(crate) fn of_visit(visit: &Visit) -> Option<Self> {
        Some(Self::of(visit.load.as_ref()?, visit.cut))
    }

    /// Least and greatest service time in milliseconds; `None` without requests.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let all = || self.spans.iter().flat_map(|span| &span.counts);
        let millis = |(span, _): &(Nanos, u64)| span.as_millis_f64().max(1e-6);
        let low = all().map(millis).reduce(f64::min)?;
        Some((low, all().map(millis).reduce(f64::max)?))
    }

    /// The drawing, with a vertical axis from `low` to `high` milliseconds, which maps that are compared share.
    pub(crate) fn drawing(&self, name: &str, (low, high): (f64, f64)) -> Option<Drawing> {
        let end = self.spans.iter().map(|span| span.start + span.length).max()?;
        let x = Scale::linear((0.0, end.as_secs_f64()), PLOT_X);
        let y = Scale::log((low / 1.05, high * 1.05), (PLOT_Y.1, PLOT_Y.0));
        let mut svg = Svg::default();
        axes(&mut svg, &x, &y);
        let height = (PLOT_Y.1 - PLOT_Y.0) / ROWS as f64;
        fields(&mut svg, height, &self.strokes(&x, &y, end));
        guides(&mut svg, &y);
        if self.cut > Nanos::ZERO {
            let at = x.at(self.cut.as_secs_f64());
            svg.line("cut", (at, PLOT_Y.0), (at, PLOT_Y.1));
        }
        let about = format!(
            "Service time of {name} over {} of load: from {} to {}.",
            end,
            Nanos((low * 1e6) as u64),
            Nanos((high * 1e6) as u64)
        );
        Some(Drawing { svg, height: HEIGHT, about })
    }

    /// By colour.
    fn strokes(&self, x: &Scale, y: &Scale, end: Nanos) -> Vec<Vec<Stroke>> {
        let n_columns = self.spans.len().clamp(1, COLUMNS_MAX);
        let mut grid = vec![[0u64; ROWS]; n_columns];
        let rows = (PLOT_Y.1 - PLOT_Y.0) / ROWS as f64;
        for LoadSpan { start, length, counts } in &self.spans {
            // A span belongs to every column that it covers: a column without requests is one in which none ended.
            let place = |at: u64| at as f64 / end.0.max(1) as f64 * n_columns as f64;
            let first = (place(start.0) as usize).min(n_columns - 1);
            let last = (place(start.0 + length.0).ceil() as usize).clamp(first + 1, n_columns);
            for (span, count) in counts {
                let at = (y.at(span.as_millis_f64().max(1e-6)) - PLOT_Y.0) / rows;
                for column in &mut grid[first..last] {
                    column[(at as usize).min(ROWS - 1)] += count;
                }
            }
        }
        let mut levels = vec![Vec::new(); LEVELS];
        let width = end.as_secs_f64() / n_columns as f64;
        let totals: Vec<u64> = grid.iter().map(|column| column.iter().sum()).collect();
        for (row, middle) in (0..ROWS).map(|row| (row, PLOT_Y.0 + (row as f64 + 0.5) * rows)) {
            // Neighbours of one colour are one stroke.
            let level_of = |column: usize| level(grid[column][row], totals[column]);
            let mut column = 0;
            while column < n_columns {
                let (level, first) = (level_of(column), column);
                while column < n_columns && level_of(column) == level {
                    column += 1;
                }
                let Some(level) = level else { continue };
                let from = x.at(first as f64 * width);
                levels[level].push((from, middle, x.at(column as f64 * width) - from));
            }
        }
        levels
    }
}

/// The colour of a count; `None` for none.
fn level(count: u64, of: u64) -> Option<usize> {
    let share = count as f64 / of.max(1) as f64;
    (count > 0).then(|| SHARES.iter().rposition(|least| share > *least).unwrap_or(0))
}

fn guides(svg: &mut Svg, y: &Scale) {
    for guide in GUIDES_MS.into_iter().filter(|guide| y.holds(*guide)) {
        let at = y.at(guide);
        svg.line("guide", (PLOT_X.0, at), (PLOT_X.1, at));
        let text = Nanos((guide * 1e6) as u64).to_string();
        svg.text("t guided", (PLOT_X.1, at - 2.0), Anchor::End, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colour_is_the_share_of_the_columns_requests() {
        assert_eq!(level(0, 100), None);
        assert_eq!(level(1, 1_000_000), Some(0));
        assert_eq!(level(2, 100), Some(2));
        assert_eq!(level(100, 100), Some(5));
    }

    #[test]
    fn a_stall_is_drawn_where_it_was_and_neighbours_are_one_stroke() {
        let column = |second: u64, stalls: u64| {
            let counts = [(Nanos::from_millis(1), 99), (Nanos::from_millis(200), stalls)];
            LoadSpan {
                start: Nanos::from_secs(second),
                length: Nanos::from_secs(1),
                counts: counts.into_iter().filter(|(_, count)| *count > 0).collect(),
            }
        };
        let spans = vec![column(0, 0), column(1, 1), column(2, 0), column(3, 0)];
        let map = HeatMap { spans, cut: Nanos::ZERO };
        let range = map.range().unwrap();
        assert_eq!(range, (1.0, 200.0));
        let x = Scale::linear((0.0, 4.0), PLOT_X);
        let y = Scale::log(range, (PLOT_Y.1, PLOT_Y.0));
        let strokes = map.strokes(&x, &y, Nanos::from_secs(4));
        let quarter = (PLOT_X.1 - PLOT_X.0) / 4.0;
        assert_eq!(strokes[5].len(), 1, "1 ms, in all columns");
        assert!((strokes[5][0].2 - 4.0 * quarter).abs() < 1e-6);
        // 1 % is not above 1 %.
        let [(from, at, length)] = strokes[1][..] else { panic!("{strokes:?}") };
        assert!((from - (PLOT_X.0 + quarter)).abs() < 1e-6 && (length - quarter).abs() < 1e-6);
        assert!(at < PLOT_Y.0 + 3.0, "the longest is at the top");
        let drawing = map.drawing("nginx", range).unwrap();
        let drawn =
            drawing.svg.finish("map", (crate::maps::WIDTH, drawing.height), "t", &drawing.about);
        assert_eq!(drawn.matches("class=\"guide\"").count(), 2, "40 ms and 200 ms");
    }
}
