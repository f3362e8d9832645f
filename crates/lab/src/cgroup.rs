//! Owns the cgroup that a server runs in for one visit. It lists its processes, and counts the CPU time of every
//! process that was ever in it. Version 2 also kills all of them at once. It counts memory if the machine already
//! does. If no cgroup can be made (not root, a container with /sys read-only), `tree` uses another way.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use record::{CgroupCounter, CgroupMemory};
use units::{Bytes, Nanos};

/// A cgroup of our own; [`Cgroup::remove`] removes it.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
    version: Version,
    /// A second cgroup, for the memory controller of version 1, if that has its own hierarchy.
    memory: Option<PathBuf>,
}

/// Which of the kernel's two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// `cpu.stat`, in microseconds; it exists without any controller enabled.
    Two,
    /// The controller cpuacct, `cpuacct.usage`, in nanoseconds.
    One,
}

impl Cgroup {
    /// Makes a cgroup below our own. Prefers version 2, which can end its processes without a race against their
    /// forks.
    pub(crate) fn create() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let ours = fs::read_to_string("/proc/self/cgroup").ok()?;
        [Version::Two, Version::One].into_iter().find_map(|version| {
            let name = name();
            let dir = own_dir(version, "cpuacct", &mounts, &ours)?.join(&name);
            fs::create_dir(&dir).ok()?;
            let memory = memory_dir(&mounts, &ours).map(|parent| parent.join(&name));
            let memory = memory.filter(|dir| fs::create_dir(dir).is_ok());
            let cgroup = Self { dir, version, memory };
            let usable = cgroup.cpu().is_ok() && cgroup.joined().is_ok();
            if !usable {
                cgroup.remove();
            }
            usable.then_some(cgroup)
        })
    }

    /// Which interface it has.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Its folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its folder, if a guardian can end everything in it.
    pub(crate) fn killable_dir(&self) -> Option<&Path> {
        self.dir.join("cgroup.kill").exists().then_some(self.dir.as_path())
    }

    /// The files through which a process joins ("0" stands for the process that writes).
    pub(crate) fn joined(&self) -> io::Result<Vec<File>> {
        let dirs = [Some(&self.dir), self.memory.as_ref()].into_iter().flatten();
        let file = |dir: &PathBuf| File::options().write(true).open(dir.join("cgroup.procs"));
        dirs.map(file).collect()
    }

    /// The highest memory use that it counted so far; `None` if it counts none.
    pub(crate) fn memory_peak(&self) -> Option<CgroupMemory> {
        let counters = [
            (CgroupCounter::MaxUsageInBytes, self.memory.as_ref(), "memory.max_usage_in_bytes"),
            (CgroupCounter::Peak, Some(&self.dir), "memory.peak"),
        ];
        counters.into_iter().find_map(|(counter, dir, file)| {
            let peak = fs::read_to_string(dir?.join(file)).ok()?.trim().parse().ok()?;
            Some(CgroupMemory { counter, peak: Bytes(peak) })
        })
    }

    /// User and system CPU time of all processes that ran in it, including ended ones.
    pub(crate) fn cpu(&self) -> io::Result<Nanos> {
        let not_a_number = || io::Error::new(io::ErrorKind::InvalidData, "no CPU time in it");
        let nanos = match self.version {
            Version::Two => {
                let text = fs::read_to_string(self.dir.join("cpu.stat"))?;
                let micros = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
                micros.and_then(|micros| micros.trim().parse::<u64>().ok()).map(|us| us * 1000)
            }
            Version::One => fs::read_to_string(self.dir.join("cpuacct.usage"))?.trim().parse().ok(),
        };
        nanos.map(Nanos).ok_or_else(not_a_number)
    }

    /// Its processes, without zombies.
    pub(crate) fn pids(&self) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.dir.join("cgroup.procs"))?;
        Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    /// Ends all its processes at once. False if the kernel has no such call (version 1, or before 5.14): then signal
    /// each.
    pub(crate) fn kill(&self) -> bool {
        self.version == Version::Two && fs::write(self.dir.join("cgroup.kill"), "1").is_ok()
    }

    /// Removes its folders. The last process may still be exiting, so it retries for a second; true when they are
    /// gone.
    pub(crate) fn remove(&self) -> bool {
        remove_dir(&self.dir) & self.memory.as_deref().is_none_or(remove_dir)
    }
}

fn remove_dir(dir: &Path) -> bool {
    for _ in 0..1000 {
        match fs::remove_dir(dir) {
            Ok(()) => return true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    false
}

/// The cgroup of version 1 that counts our memory. `None` if that is the root, which counts nothing: counting would
/// slow the server down, and without us nothing would count.
fn memory_dir(mounts: &str, ours: &str) -> Option<PathBuf> {
    let dir = own_dir(Version::One, "memory", mounts, ours)?;
    dir.parent().is_some_and(|above| above.join("memory.limit_in_bytes").exists()).then_some(dir)
}

/// The beginning of our cgroups' names.
const PREFIX: &str = "joust-";

/// Unique among all processes of this machine, ended ones included, and among the visits of this process, so that a
/// leftover cgroup is never mistaken for one in use.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let me = std::process::id();
    let started = crate::proc_stat::stat(me).map_or(0, |stat| stat.started);
    format!("{PREFIX}{me}-{started}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Removes the cgroups below ours that an ended joust left behind, and returns their number. Only empty ones can be
/// removed, so this ends no process.
pub(crate) fn sweep() -> u32 {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let ours = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let dirs = [Version::Two, Version::One];
    let dirs = dirs.iter().filter_map(|&version| own_dir(version, "cpuacct", &mounts, &ours));
    let dirs = dirs.chain(memory_dir(&mounts, &ours));
    let entries = dirs.filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
    let left = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_left));
    left.filter(|entry| fs::remove_dir(entry.path()).is_ok()).count() as u32
}

/// Whether a name is that of a cgroup whose joust has ended.
fn is_left(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let numbers: Vec<u64> = rest.split('-').map_while(|number| number.parse().ok()).collect();
    let [pid, started, _] = numbers[..] else { return false };
    crate::proc_stat::stat(pid as u32).is_none_or(|stat| stat.started != started)
}

/// Whether joust made this cgroup.
pub(crate) fn is_ours(dir: &Path) -> bool {
    let named = dir.file_name().and_then(|name| name.to_str());
    named.is_some_and(|name| name.starts_with(PREFIX)) && dir.join("cgroup.procs").exists()
}

/// Files that say how often a CPU quota stopped us: `cpu.stat` of our cgroup and of those above it, as far up as they
/// can be seen.
pub(crate) fn quota_files() -> Vec<PathBuf> {
    let files = own_files("cpu.stat");
    let counts =
        |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.contains("nr_throttled"));
    files.into_iter().filter(counts).collect()
}

/// A controller's file ("cpu.max") in our cgroup and in those above it, as far up as they can be seen, whether it
/// exists or not.
pub(crate) fn own_files(file: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let ours = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let controller = file.split('.').next().unwrap_or_default();
    let dirs =
        [Version::Two, Version::One].map(|version| own_dir(version, controller, &mounts, &ours));
    let levels = dirs.iter().flatten().flat_map(|dir| dir.ancestors());
    levels.map(|dir| dir.join(file)).collect()
}

/// The folder of the cgroup that we are in: from a line of `/proc/self/mountinfo`
/// (`ID PARENT DEV ROOT POINT OPTIONS - TYPE SOURCE SUPER_OPTIONS`, proc_pid_mountinfo(5)) and one of
/// `/proc/self/cgroup` (`ID:CONTROLLERS:PATH`, cgroups(7)). `controller` is that of version 1.
fn own_dir(version: Version, controller: &str, mounts: &str, ours: &str) -> Option<PathBuf> {
    let path = ours.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let fits = match version {
            Version::Two => controllers.is_empty(),
            Version::One => controllers.split(',').any(|name| name == controller),
        };
        fits.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
        let fits = match version {
            Version::Two => kind == "cgroup2",
            Version::One => kind == "cgroup" && options.split(',').any(|name| name == controller),
        };
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let inside = Path::new(path).strip_prefix(root).ok()?;
        fits.then(|| Path::new(point).join(inside))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn only_cgroups_of_a_joust_that_is_gone_are_left() {
        let me = std::process::id();
        let started = crate::proc_stat::stat(me).unwrap().started;
        assert!(!is_left(&name()), "its joust is here");
        assert!(is_left(&format!("joust-{me}-{}-0", started + 1)), "another had that number");
        for other in ["joust-7", "joust-x-1-2", "joust-1-2-3-4", "user.slice", "joust-"] {
            assert!(!is_left(other), "{other}");
        }
    }

    #[test]
    fn an_empty_cgroup_of_a_joust_that_is_gone_is_removed() {
        let Some(cgroup) = Cgroup::create() else {
            return skips::note("no cgroup can be made here");
        };
        let me = std::process::id();
        let left = cgroup.dir.with_file_name(format!("{PREFIX}{me}-1-0"));
        fs::create_dir(&left).unwrap();
        assert!(sweep() >= 1);
        assert!(!left.exists());
        assert!(cgroup.dir.exists(), "its joust is here");
        assert!(cgroup.remove());
    }

    #[test]
    fn our_folder_is_found_in_either_version() {
        let ours = "9:name=systemd:/a\n2:cpu,cpuacct:/jobs/7\n0::/user.slice\n";
        let dir = |version| own_dir(version, "cpuacct", MOUNTS, ours).unwrap();
        assert_eq!(dir(Version::Two), Path::new("/sys/fs/cgroup/unified/user.slice"));
        assert_eq!(dir(Version::One), Path::new("/sys/fs/cgroup/cpu,cpuacct/jobs/7"));
    }

    #[test]
    fn a_container_that_shows_a_part_of_the_tree_is_understood() {
        let mounts = "50 40 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let dir = own_dir(Version::Two, "cpu", mounts, "0::/docker/abc/init\n");
        assert_eq!(dir.unwrap(), Path::new("/sys/fs/cgroup/init"));
        assert_eq!(own_dir(Version::Two, "cpu", mounts, "0::/../other\n"), None);
    }
}
