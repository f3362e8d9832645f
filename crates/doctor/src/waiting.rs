//! Owns how much of a load's silences something waited for a CPU: what tells a server that paused from a scheduler
//! that let it wait. Start reading at [`in_silences`].
//!
//! The kernel's counter (PSI) is read five times a second, and a silence may be shorter than that. A load that keeps
//! its CPUs busy makes something wait most of the time, silences apart. So the counter's steps are taken apart by
//! least squares: a rate of waiting while replies came, and another in silences.

use record::MachineSeries;
use units::Nanos;

use crate::timeline::{Silence, Timeline};

/// Ticks of /proc/stat a second (USER_HZ, fixed in the kernel's interface).
const TICKS_PER_S: f64 = 100.0;
/// Readings that two rates can be told from.
const READINGS_MIN: usize = 4;
/// How far silences must be spread unevenly over readings: determinant over the product of the sums of squares, 0
/// where each reading has the same share of silence.
const UNEVEN_MIN: f64 = 0.01;
/// Chance with which the share of waiting is above the limit that is taken for it.
const ABOVE: f64 = 0.025;

/// In about that many seconds of the silences, or fewer, something waited for a CPU, or the hypervisor had it. `None`
/// where the kernel's counter could not be read.
pub(crate) fn in_silences(
    series: &MachineSeries,
    timeline: &Timeline,
    silences: &[Silence],
) -> Option<f64> {
    let silent: f64 = silences.iter().map(|one| one.length.as_secs_f64()).sum();
    let waited = waited(series)?;
    let end = timeline.from + timeline.length();
    let inside = series.at.windows(2).zip(&waited);
    let inside = inside.filter(|(edge, _)| edge[0] >= timeline.from && edge[1] <= end);
    let readings: Vec<Reading> = inside
        .map(|(edge, &waited)| {
            let silent: f64 = silences.iter().map(|one| one.overlap(edge[0], edge[1])).sum();
            let length = (edge[1] - edge[0]).as_secs_f64();
            Reading { talking: (length - silent).max(0.0), silent, waited }
        })
        .collect();
    let share = share_in_silences(&readings);
    let at_most = share.map_or_else(|| waited.iter().sum(), |share| share * silent);
    Some(f64::min(at_most, silent))
}

/// Seconds of what happened between two readings.
struct Reading {
    talking: f64,
    silent: f64,
    waited: f64,
}

/// Upper limit of the share of silences with waiting, 0 to 1; `None` where the readings cannot tell.
fn share_in_silences(readings: &[Reading]) -> Option<f64> {
    let sum = |of: &dyn Fn(&Reading) -> f64| readings.iter().map(of).sum::<f64>();
    let talking = sum(&|one| one.talking * one.talking);
    let silent = sum(&|one| one.silent * one.silent);
    let both = sum(&|one| one.talking * one.silent);
    let determinant = talking * silent - both * both;
    if readings.len() < READINGS_MIN || determinant <= UNEVEN_MIN * talking * silent {
        return None;
    }
    let in_talking = sum(&|one| one.talking * one.waited);
    let in_silent = sum(&|one| one.silent * one.waited);
    let rate = (in_talking * silent - in_silent * both) / determinant;
    let share = (in_silent * talking - in_talking * both) / determinant;
    let off = sum(&|one| (one.waited - rate * one.talking - share * one.silent).powi(2));
    let variance = off / (readings.len() - 2) as f64;
    let error = (variance * talking / determinant).sqrt();
    let errors = stats::t_quantile(1.0 - ABOVE, (readings.len() - 2) as f64);
    Some((share + errors * error).clamp(0.0, 1.0))
}

/// Seconds after each reading in which something waited for a CPU, or the hypervisor had one.
fn waited(series: &MachineSeries) -> Option<Vec<f64>> {
    const COUNTER: &str = "pressure.cpu.some_us";
    // Known, and it never moved: nobody waited.
    series.change(COUNTER)?;
    let steps = series.counters.values().map(|course| course.steps.len()).max();
    let mut waited = vec![0.0; steps.unwrap_or(0)];
    for (name, course) in &series.counters {
        let second = match name.as_str() {
            COUNTER => 1e6,
            name if name.ends_with(".steal_ticks") => TICKS_PER_S,
            _ => continue,
        };
        let steps = waited.iter_mut().zip(&course.steps);
        steps.for_each(|(all, step)| *all += *step as f64 / second);
    }
    Some(waited)
}

impl Silence {
    /// Seconds of it between two times.
    pub(crate) fn overlap(&self, from: Nanos, until: Nanos) -> f64 {
        let end = (self.from + self.length).min(until);
        end.saturating_sub(self.from.max(from)).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use record::Course;

    use super::*;

    const READING: Nanos = Nanos::from_millis(200);

    /// Readings in which something waited for that many milliseconds each.
    fn series(waited_ms: &[i64]) -> MachineSeries {
        let steps = waited_ms.iter().map(|ms| ms * 1000).collect();
        MachineSeries {
            at: (0..=waited_ms.len() as u64).map(|n| Nanos(n * READING.0)).collect(),
            sources: ["pressure.cpu".to_owned()].into(),
            counters: [("pressure.cpu.some_us".to_owned(), Course { first: 0, steps })].into(),
            ..MachineSeries::default()
        }
    }

    fn timeline(readings: usize) -> Timeline {
        let counts = vec![1; readings * 200];
        Timeline { from: Nanos::ZERO, bin: Nanos::from_millis(1), counts }
    }

    /// A silence in each third reading.
    fn silences(readings: usize, ms: u64) -> Vec<Silence> {
        let starts = (0..readings as u64).step_by(3);
        let of =
            |n| Silence { from: Nanos(n * READING.0 + 10_000_000), length: Nanos::from_millis(ms) };
        starts.map(of).collect()
    }

    #[test]
    fn waiting_while_replies_come_is_none_of_the_silences() {
        let waited: Vec<i64> = (0..12).map(|n| if n % 3 == 0 { 50 } else { 100 } + n % 2).collect();
        let at_most = in_silences(&series(&waited), &timeline(12), &silences(12, 100)).unwrap();
        assert!(at_most < 0.05 * 0.4, "{at_most}");
    }

    #[test]
    fn waiting_in_silences_is_all_of_them() {
        let waited: Vec<i64> = (0..12).map(|n| if n % 3 == 0 { 102 } else { 3 } + n % 2).collect();
        let at_most = in_silences(&series(&waited), &timeline(12), &silences(12, 100)).unwrap();
        assert!((0.36..=0.4).contains(&at_most), "{at_most}");
    }

    #[test]
    fn where_readings_cannot_tell_all_waiting_is_the_silences() {
        let each: Vec<Silence> = (0..12)
            .map(|n| Silence { from: Nanos(n * READING.0), length: Nanos::from_millis(50) })
            .collect();
        let at_most = in_silences(&series(&[100; 12]), &timeline(12), &each).unwrap();
        assert_eq!(at_most, 0.6);
        // Noise as large as what is asked for.
        let noisy = [10, 190, 5, 180, 20, 170, 190, 0, 160, 10, 190, 30];
        let at_most = in_silences(&series(&noisy), &timeline(12), &silences(12, 100)).unwrap();
        assert!(at_most > 0.2, "{at_most}");
        let mut unknown = series(&noisy);
        unknown.sources.clear();
        assert_eq!(in_silences(&unknown, &timeline(12), &silences(12, 100)), None);
    }

    #[test]
    fn time_that_the_hypervisor_had_is_waiting() {
        let mut stolen = series(&[0; 12]);
        let steps = (0..12).map(|n| if n % 3 == 0 { 10 } else { 0 }).collect();
        stolen.counters.insert("cpu.0.steal_ticks".to_owned(), Course { first: 0, steps });
        let at_most = in_silences(&stolen, &timeline(12), &silences(12, 100)).unwrap();
        assert!(at_most > 0.39, "{at_most}");
    }
}
