//! Owns the cgroup that a server runs in for one visit: it counts the CPU time of every process that
//! ever was in it, names those that are, and with version 2 ends them all at once. Absent where we
//! may not make one (not root, a container with /sys read-only); `tree` has another way then.
//! Must not know servers.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use units::Nanos;

/// A cgroup of our own; removed by [`Cgroup::remove`].
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
    version: Version,
}

/// Which of the kernel's two interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// `cpu.stat`, in microseconds; there without any controller enabled.
    Two,
    /// The controller cpuacct, `cpuacct.usage`, in nanoseconds.
    One,
}

impl Cgroup {
    /// A new cgroup below the one that we are in; version 2 where both can be had, since it can end
    /// its processes without a race against their forks.
    pub(crate) fn create() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let ours = fs::read_to_string("/proc/self/cgroup").ok()?;
        [Version::Two, Version::One].into_iter().find_map(|version| {
            let cgroup = Self { dir: own_dir(version, &mounts, &ours)?.join(name()), version };
            fs::create_dir(&cgroup.dir).ok()?;
            let usable = cgroup.cpu().is_ok() && cgroup.procs().is_ok();
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

    /// Its folder, where a guardian can end all that is in it.
    pub(crate) fn killable_dir(&self) -> Option<&Path> {
        self.dir.join("cgroup.kill").exists().then_some(self.dir.as_path())
    }

    /// The file by which a process joins ("0": the one that writes).
    pub(crate) fn procs(&self) -> io::Result<File> {
        File::options().write(true).open(self.dir.join("cgroup.procs"))
    }

    /// CPU time, user and system, of all that ran in it, ended ones included.
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

    /// Processes in it; zombies are not among them.
    pub(crate) fn pids(&self) -> io::Result<Vec<u32>> {
        let text = fs::read_to_string(self.dir.join("cgroup.procs"))?;
        Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
    }

    /// Ends all processes in it at once. False where the kernel has no such call (version 1, or
    /// before 5.14): then signal each.
    pub(crate) fn kill(&self) -> bool {
        self.version == Version::Two && fs::write(self.dir.join("cgroup.kill"), "1").is_ok()
    }

    /// Removes the folder. The last process may be in the middle of leaving, so it is tried for a
    /// second; true when it is gone.
    pub(crate) fn remove(&self) -> bool {
        for _ in 0..1000 {
            match fs::remove_dir(&self.dir) {
                Ok(()) => return true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return true,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        false
    }
}

/// Unique among the processes of this machine and the visits of this one.
fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("joust-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// The folder of the cgroup that we are in: from a line of `/proc/self/mountinfo`
/// (`ID PARENT DEV ROOT POINT OPTIONS - TYPE SOURCE SUPER_OPTIONS`, proc_pid_mountinfo(5)) and one of
/// `/proc/self/cgroup` (`ID:CONTROLLERS:PATH`, cgroups(7)).
fn own_dir(version: Version, mounts: &str, ours: &str) -> Option<PathBuf> {
    let path = ours.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let fits = match version {
            Version::Two => controllers.is_empty(),
            Version::One => controllers.split(',').any(|name| name == "cpuacct"),
        };
        fits.then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut filesystem = filesystem.split(' ');
        let (kind, options) = (filesystem.next()?, filesystem.nth(1)?);
        let fits = match version {
            Version::Two => kind == "cgroup2",
            Version::One => kind == "cgroup" && options.split(',').any(|name| name == "cpuacct"),
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
    fn our_folder_is_found_in_either_version() {
        let ours = "9:name=systemd:/a\n2:cpu,cpuacct:/jobs/7\n0::/user.slice\n";
        let dir = |version| own_dir(version, MOUNTS, ours).unwrap();
        assert_eq!(dir(Version::Two), Path::new("/sys/fs/cgroup/unified/user.slice"));
        assert_eq!(dir(Version::One), Path::new("/sys/fs/cgroup/cpu,cpuacct/jobs/7"));
    }

    #[test]
    fn a_container_that_shows_a_part_of_the_tree_is_understood() {
        let mounts = "50 40 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let dir = own_dir(Version::Two, mounts, "0::/docker/abc/init\n");
        assert_eq!(dir.unwrap(), Path::new("/sys/fs/cgroup/init"));
        assert_eq!(own_dir(Version::Two, mounts, "0::/../other\n"), None);
    }
}
