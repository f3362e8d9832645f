//! Owns the topic of a limit on CPU time, set on a cgroup of either version. Start reading at [`look`].

use super::{Change, MachineState, MachineTexts, Mend, Topic};
use crate::words;

/// See the module.
pub(super) const ITEM: Topic = Topic {
    name: "cpu_quota",
    title: "limit on CPU time of a cgroup (cpu.max, cpu.cfs_quota_us)",
    effect: "everything stops for the rest of each period when the limit is reached, which shows as pauses of up to \
             100 ms",
    needs: &["cgroup:cpu.max", "cgroup:cpu.cfs_quota_us", "cgroup:cpu.cfs_period_us"],
    needs_twice: &[],
    look,
};

fn look(texts: &MachineTexts) -> Result<MachineState, String> {
    let new = texts.of_cgroups("cpu.max").filter_map(|(path, text)| {
        let (quota, period) = text.split_once(' ')?;
        Some(Level::of(path, quota, period, "max"))
    });
    let old = texts.of_cgroups("cpu.cfs_quota_us").map(|(path, quota)| {
        let beside = path.replace("cfs_quota_us", "cfs_period_us");
        let period = texts.of_cgroups("cpu.cfs_period_us").find(|(at, _)| *at == beside);
        Level::of(path, quota, period.map_or("", |(_, period)| period), "-1")
    });
    let levels: Vec<Level> = new.chain(old).collect();
    if levels.is_empty() {
        // The root of either version has no such file.
        return Err("no cgroup that joust runs in has cpu.max or cpu.cfs_quota_us, or none can be seen; a limit \
                    further up would show as throttled time in a run"
            .to_owned());
    }
    let tight: Vec<&Level> = levels.iter().filter(|level| level.share.is_some()).collect();
    let Some(tightest) = tight.iter().filter_map(|level| level.share).reduce(f64::min) else {
        return MachineState::fine("no limit");
    };
    let advice =
        "of a container: docker update --cpus; of a service: CPUQuota= of systemd".to_owned();
    let changes = tight.iter().map(|level| level.lift.clone()).collect();
    let seen = format!("{} of one CPU", words::percent(tightest));
    MachineState::worth_changing(seen, Mend { advice, changes })
}

/// The limit of one cgroup.
struct Level {
    /// CPUs' worth of time; `None`: no limit.
    share: Option<f64>,
    lift: Change,
}

impl Level {
    fn of(path: &str, quota: &str, period: &str, unlimited: &str) -> Self {
        let (limit, length) = (quota.parse::<f64>(), period.parse::<f64>());
        let share = match (limit, length) {
            (Ok(quota), Ok(period)) if quota > 0.0 && period > 0.0 => Some(quota / period),
            _ => None,
        };
        let today = if unlimited == "max" { format!("{quota} {period}") } else { quota.to_owned() };
        let mend = Mend::write(path, &today, unlimited);
        Self { share, lift: mend.changes.into_iter().next().expect("it writes one file") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;

    #[test]
    fn a_limit_of_either_version_is_worth_changing() {
        let two = "cgroup:/sys/fs/cgroup/a/cpu.max";
        assert_eq!(planted::fine(&ITEM, &[(two, "max 100000\n")]), "no limit");
        let (seen, run) = planted::mended(&ITEM, &[(two, "20000 100000\n")]);
        let lifts = "echo \"max\" > /sys/fs/cgroup/a/cpu.max";
        assert_eq!((seen.as_str(), run.as_str()), ("20 % of one CPU", lifts));
        let quota = "cgroup:/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us";
        let period = ("cgroup:/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
        assert_eq!(planted::fine(&ITEM, &[(quota, "-1"), period]), "no limit");
        let (seen, run) = planted::mended(&ITEM, &[(quota, "150000"), period]);
        let lifts = "echo \"-1\" > /sys/fs/cgroup/cpu/a/cpu.cfs_quota_us";
        assert_eq!((seen.as_str(), run.as_str()), ("150 % of one CPU", lifts));
    }
}
