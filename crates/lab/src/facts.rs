//! Owns reading what the machine is and what its counters say, as text; users of the numbers parse them. A fact that
//! cannot be read is absent, never zero. Does not judge: `doctor` does.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use doctor::machine::{MachineTexts, OF_CGROUPS, Unread, needs, needs_twice};
use record::Facts;

/// Time between the two readings of counters that grow.
const BETWEEN_READINGS: Duration = Duration::from_millis(500);
/// Most bytes that are read of a file; the list of a kernel's modules has some hundred thousand.
const BYTES_MAX: u64 = 1 << 20;
/// Most files that one pattern may match, such as the processes of a large machine.
const FILES_MAX: usize = 8192;

/// Contents of the files that the doctor's topics need; some are read again half a second later. Changes nothing.
pub fn machine_texts() -> MachineTexts {
    let twice = needs_twice();
    let once = needs().into_iter().filter(|need| !twice.contains(need));
    let mut texts = MachineTexts { first: read_all(once), ..MachineTexts::default() };
    texts.first.extend(read_all(twice.iter().copied()));
    std::thread::sleep(BETWEEN_READINGS);
    texts.second = read_all(twice.iter().copied());
    texts
}

type Texts = BTreeMap<String, Result<String, Unread>>;

fn read_all<'a>(needs: impl Iterator<Item = &'a str>) -> Texts {
    let mut texts = Texts::new();
    for need in needs {
        match need.strip_prefix(OF_CGROUPS) {
            Some(file) => {
                for path in crate::cgroup::own_files(file).iter().filter(|path| path.is_file()) {
                    texts.insert(format!("{OF_CGROUPS}{}", path.display()), read_text(path));
                }
            }
            None => {
                for path in meant_by(need) {
                    let text = read_text(Path::new(&path));
                    texts.insert(path, text);
                }
            }
        }
    }
    texts
}

/// The paths that a pattern matches; a `*` in one of its names matches any text.
fn meant_by(pattern: &str) -> Vec<String> {
    let Some((head, tail)) = pattern.split_once('*') else { return vec![pattern.to_owned()] };
    let (folder, begins) = head.rsplit_once('/').unwrap_or(("", head));
    let (ends, rest) = tail.find('/').map_or((tail, ""), |at| tail.split_at(at));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let fits = |name: &String| {
        name.len() >= begins.len() + ends.len() && name.starts_with(begins) && name.ends_with(ends)
    };
    let paths = names.filter(fits).map(|name| format!("{folder}/{name}{rest}"));
    paths.take(FILES_MAX).collect()
}

fn read_text(path: &Path) -> Result<String, Unread> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unread::Absent),
        Err(error) => Err(Unread::Because(error.to_string())),
    }
}

/// What this machine is.
pub fn gather() -> Facts {
    let sysctl = |name: &str| read(&format!("/proc/sys/{name}"));
    let cpu0 = "/sys/devices/system/cpu/cpu0";
    let named: [(&str, Option<String>); 18] = [
        ("kernel", sysctl("kernel/osrelease")),
        ("os", os_release(&read("/etc/os-release").unwrap_or_default())),
        ("cpu_model", field(&read("/proc/cpuinfo").unwrap_or_default(), "model name")),
        ("cpus", read("/sys/devices/system/cpu/online")),
        ("cpu_threads_per_core", threads_per_core()),
        ("memory", field(&read("/proc/meminfo").unwrap_or_default(), "MemTotal")),
        ("clocksource", read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("governor", read(&format!("{cpu0}/cpufreq/scaling_governor"))),
        ("virtualization", virtualization()),
        ("somaxconn", sysctl("net/core/somaxconn")),
        ("tcp_max_syn_backlog", sysctl("net/ipv4/tcp_max_syn_backlog")),
        ("port_range", sysctl("net/ipv4/ip_local_port_range")),
        ("tcp_tw_reuse", sysctl("net/ipv4/tcp_tw_reuse")),
        // It matters more for long replies than most servers do: bbr paces them, over loopback too.
        ("tcp_congestion_control", sysctl("net/ipv4/tcp_congestion_control")),
        ("fd_limit", fd_limit(&read("/proc/self/limits").unwrap_or_default())),
        ("files_max", sysctl("fs/file-max")),
        ("load_average", read("/proc/loadavg")),
        ("server_cpu_accounting", Some(crate::tree::method_here().to_string())),
    ];
    let known = named.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?)));
    Facts { named: known.collect() }
}

/// The text on one line with single spaces; `None` if it is empty.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = if text.lines().count() > 1 {
        text
    } else {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    (!text.is_empty()).then_some(text)
}

/// A "name : value" line of /proc/cpuinfo or /proc/meminfo.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    })
}

fn os_release(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// "1024 (hard 1048576)".
fn fd_limit(limits: &str) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace();
    Some(format!("{} (hard {})", numbers.next()?, numbers.next()?))
}

fn threads_per_core() -> Option<String> {
    let list = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")?;
    Some(crate::cpus::parse_list(&list).len().to_string())
}

/// As reported by the container's manager, the firmware or the hypervisor's CPU flag.
fn virtualization() -> Option<String> {
    let container = fs::metadata("/.dockerenv").is_ok().then(|| "docker".to_owned());
    let container = read("/run/systemd/container").or(container);
    let firmware =
        ["sys_vendor", "product_name"].map(|name| read(&format!("/sys/class/dmi/id/{name}")));
    let firmware = firmware.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let flags = field(&read("/proc/cpuinfo")?, "flags").unwrap_or_default();
    let machine = match flags.split(' ').any(|flag| flag == "hypervisor") {
        true if firmware.is_empty() => "virtual machine".to_owned(),
        true => format!("virtual machine ({firmware})"),
        false => "none seen".to_owned(),
    };
    Some(
        container
            .map_or(machine.clone(), |container| format!("container ({container}) on {machine}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_linux_has_is_there() {
        let facts = gather().named;
        for name in ["kernel", "cpus", "memory", "somaxconn", "port_range", "fd_limit"] {
            assert!(facts.contains_key(name), "{name} in {facts:?}");
        }
        assert!(facts.values().all(|text| !text.is_empty() && !text.ends_with('\n')));
    }

    #[test]
    fn a_pattern_is_looked_up_and_a_missing_file_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().to_str().unwrap();
        for name in ["cpu0", "cpu12", "cpufreq", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("cpu0/value"), "7\n").unwrap();
        let mut meant = meant_by(&format!("{top}/cpu*/value"));
        meant.sort_unstable();
        let expected = ["cpu0", "cpu12", "cpufreq"].map(|name| format!("{top}/{name}/value"));
        assert_eq!(meant, expected);
        assert_eq!(read_text(Path::new(&expected[0])), Ok("7\n".to_owned()));
        assert_eq!(read_text(Path::new(&expected[1])), Err(Unread::Absent));
        let folder = read_text(folder.path());
        assert!(matches!(folder, Err(Unread::Because(why)) if why.contains("directory")));
        assert_eq!(meant_by("/no/such/folder/*/x"), [""; 0]);
    }

    #[test]
    fn this_machine_says_what_every_linux_says() {
        let lines = doctor::machine::look(&machine_texts());
        for name in ["cpus", "steal", "other_load", "memory", "file_descriptors", "accept_backlog"]
        {
            let line = lines.iter().find(|line| line.topic.name == name).unwrap();
            assert!(line.state.is_ok(), "{name}: {:?}", line.state);
        }
    }

    #[test]
    fn texts_are_taken_apart() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files   1024   4096   files\n";
        assert_eq!(fd_limit(limits).unwrap(), "1024 (hard 4096)");
        assert_eq!(os_release("NAME=x\nPRETTY_NAME=\"Debian 12\"\n").unwrap(), "Debian 12");
        assert_eq!(field("MemTotal:   16 kB\n", "MemTotal").unwrap(), "16 kB");
    }
}
