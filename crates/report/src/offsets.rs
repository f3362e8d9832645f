//! The map of completions within each second: seconds from left to right, the instant within the second from bottom to
//! top, colour is how many good replies were complete then. Timers that fire each second, batches and silences are
//! lines and gaps in it, which no percentile shows. Must not know the page it stands in. Start reading at [`offsets`].

use record::LoadRecord;
use units::Nanos;

use crate::drawing::Drawing;
use crate::maps::{HEIGHT, LEVELS, PLOT_X, PLOT_Y, axes, fields};
use crate::svg::{Anchor, Scale, Svg};

const ROWS: usize = 50;
const COLUMNS_MAX: usize = 120;
/// With fewer seconds there is nothing to compare.
const SECONDS_MIN: usize = 3;
/// Counts from which on the next colour is used, as a share of the mean of a field: a field without replies is blank.
const RATIOS: [f64; LEVELS] = [0.0, 0.25, 0.6, 0.9, 1.2, 2.0];

/// The drawing of a load; `None` if it is too short, or its record does not say when replies came.
pub(crate) fn offsets(load: &LoadRecord, name: &str) -> Option<Drawing> {
    let bin = load.completions.bin;
    if bin == Nanos::ZERO || bin > Nanos::from_millis(1000 / ROWS as u64) {
        return None;
    }
    let grid = grid(bin, &load.completions.counts);
    let seconds = grid.len();
    if seconds < SECONDS_MIN {
        return None;
    }
    let total: u64 = grid.iter().flatten().sum();
    let mean = total as f64 / (seconds * ROWS) as f64;
    let x = Scale::linear((0.0, seconds as f64), PLOT_X);
    let y = Scale::linear((0.0, 1000.0), (PLOT_Y.1, PLOT_Y.0));
    let mut svg = Svg::default();
    axes(&mut svg, &x, &y);
    let height = (PLOT_Y.1 - PLOT_Y.0) / ROWS as f64;
    let mut levels = vec![Vec::new(); LEVELS];
    for (second, column) in grid.iter().enumerate() {
        for (row, count) in column.iter().enumerate().filter(|(_, count)| **count > 0) {
            let ratio = *count as f64 / mean;
            let level = RATIOS.iter().rposition(|least| ratio > *least).unwrap_or(0);
            let at = PLOT_Y.1 - (row as f64 + 0.5) * height;
            let from = x.at(second as f64);
            levels[level].push((from, at, x.at(second as f64 + 1.0) - from));
        }
    }
    fields(&mut svg, height, &levels);
    let whole = load.completions.counts.len() as u64 * bin.0 / 1_000_000_000;
    let cut = if whole > seconds as u64 {
        format!("the first {seconds} of {whole} seconds")
    } else {
        String::new()
    };
    svg.text("t guided", (PLOT_X.1, PLOT_Y.1 + 27.0), Anchor::End, &cut);
    let silent = grid.iter().flatten().filter(|count| **count == 0).count();
    let about = format!(
        "Completed replies of {name} by the instant within each of {seconds} seconds: {silent} of {} fields of {} ms \
         are without a reply. {cut}",
        seconds * ROWS,
        1000 / ROWS
    );
    Some(Drawing { svg, height: HEIGHT, about })
}

/// Replies by second and by part of the second. Of a long load, the first seconds that there is room for.
fn grid(bin: Nanos, counts: &[u32]) -> Vec<[u64; ROWS]> {
    let second = 1_000_000_000;
    // The last second is not whole.
    let seconds = (counts.len() as u64 * bin.0 / second) as usize;
    let mut grid = vec![[0; ROWS]; seconds.min(COLUMNS_MAX)];
    for (index, count) in counts.iter().enumerate() {
        let at = index as u64 * bin.0;
        let row = (at % second) as usize * ROWS / second as usize;
        if let Some(column) = grid.get_mut((at / second) as usize) {
            column[row] += u64::from(*count);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use record::Completions;

    use super::*;

    #[test]
    fn what_happens_each_second_is_a_line_and_every_reply_has_its_field() {
        let mut completions = Completions::new();
        for second in 0..5 {
            for millis in (0..1000).filter(|millis| !(400..500).contains(millis)) {
                completions.record(Nanos::from_millis(1000 * second + millis));
            }
        }
        let grid = grid(completions.bin, &completions.counts);
        assert_eq!((grid.len(), grid.iter().flatten().sum::<u64>()), (5, 4500));
        assert!(grid.iter().all(|second| second[20..25].iter().all(|count| *count == 0)));
        let mut load = crate::testdata::load();
        load.completions = completions;
        let drawing = offsets(&load, "nginx").unwrap();
        assert!(
            drawing.about.contains("25 of 250 fields of 20 ms are without a reply"),
            "{}",
            drawing.about
        );
        load.completions.counts.truncate(2500);
        assert!(offsets(&load, "nginx").is_none(), "two whole seconds are too few");
    }
}
