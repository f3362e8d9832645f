//! Owns the division of the machine's CPUs between server and generator.
//!
//! The server gets the upper half of the cores, the generator the lower half with CPU 0. The boot CPU handles most
//! device interrupts, timers and housekeeping, and the kernel charges that time to the process that runs there. On
//! the generator's side it shows as counted lateness; on the server's side it would look like the server's own CPU
//! time, which is a result. Loopback's softirq work runs where the sender runs, so it is divided fairly in either
//! case.
//! Two hardware threads of one core share its units, so a core is split only if it is the only one. With an odd
//! number of cores the generator gets the extra one: it must not be the limit.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use record::CpuLayout;

/// How the CPUs that this process may use are divided.
///
/// # Errors
/// The kernel has more than 1024 CPUs.
pub fn layout() -> io::Result<CpuLayout> {
    Ok(divide(&with_cores()?))
}

/// The CPUs that this process may use, in rising order, each with the lowest CPU of its core.
fn with_cores() -> io::Result<Vec<(u32, u32)>> {
    let allowed = sys::affinity::allowed()?;
    let siblings = |cpu: u32| {
        let dir = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let text = std::fs::read_to_string(Path::new(&dir)).unwrap_or_default();
        parse_list(text.trim()).first().copied().unwrap_or(cpu)
    };
    Ok(allowed.iter().map(|&cpu| (cpu, siblings(cpu))).collect())
}

/// How they are divided if the generator runs on other machines: the lab keeps the core of CPU 0, or of the lowest that
/// it may use, because its own work and the machine's must not count as the server's; servers get the rest.
///
/// # Errors
/// The kernel has more than 1024 CPUs.
pub fn without_generator() -> io::Result<CpuLayout> {
    Ok(keep_a_core(&with_cores()?))
}

fn keep_a_core(cpus: &[(u32, u32)]) -> CpuLayout {
    let core = cpus.iter().min().map(|&(_, core)| core);
    let (mut kept, mut left): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for &(cpu, of) in cpus {
        if Some(of) == core { kept.push(cpu) } else { left.push(cpu) }
    }
    if left.is_empty() && kept.len() > 1 {
        // A single core: splitting its hardware threads is better than sharing one.
        left = kept.split_off(1);
    }
    // With one CPU, the lab's own work is all that the server shares it with.
    let server = if left.is_empty() { kept.clone() } else { left };
    CpuLayout { server, client: kept, shared: false }
}

/// Divides CPUs, each given with the number of its core.
fn divide(cpus: &[(u32, u32)]) -> CpuLayout {
    let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(cpu, core) in cpus {
        cores.entry(core).or_default().push(cpu);
    }
    let mut units: Vec<Vec<u32>> = cores.into_values().collect();
    if let [only] = units.as_slice() {
        // A single core: splitting its hardware threads is better than sharing one.
        units = only.iter().map(|&cpu| vec![cpu]).collect();
    }
    let server_units = units.len() / 2;
    let sorted = |units: &[Vec<u32>]| {
        let mut cpus = units.concat();
        cpus.sort_unstable();
        cpus
    };
    if server_units == 0 {
        let all = sorted(&units);
        return CpuLayout { server: all.clone(), client: all, shared: true };
    }
    let (client, server) = units.split_at(units.len() - server_units);
    CpuLayout { server: sorted(server), client: sorted(client), shared: false }
}

/// Reads the kernel's list format: "0-2,5" is 0, 1, 2 and 5. Anything that is not a number is left out.
pub(crate) fn parse_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().take(4096).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(cpus: &[(u32, u32)]) -> (Vec<u32>, Vec<u32>, bool) {
        let layout = divide(cpus);
        (layout.server, layout.client, layout.shared)
    }

    #[test]
    fn the_lab_keeps_one_core_and_servers_get_the_others_whole() {
        let kept = |cpus: &[(u32, u32)]| {
            let CpuLayout { server, client, shared } = keep_a_core(cpus);
            assert!(!shared, "no generator shares it");
            (server, client)
        };
        // Two cores of two threads, numbered as most machines do.
        let threads = [(0, 0), (1, 1), (2, 0), (3, 1)];
        assert_eq!(kept(&threads), (vec![1, 3], vec![0, 2]));
        assert_eq!(kept(&[(4, 4), (5, 5), (6, 6)]), (vec![5, 6], vec![4]));
        assert_eq!(kept(&[(0, 0), (1, 0)]), (vec![1], vec![0]));
        assert_eq!(kept(&[(1, 1)]), (vec![1], vec![1]));
    }

    #[test]
    fn server_and_generator_never_share_where_there_are_two() {
        assert_eq!(divided(&[(0, 0)]), (vec![0], vec![0], true));
        assert_eq!(divided(&[(0, 0), (1, 1)]), (vec![1], vec![0], false));
        assert_eq!(divided(&[(2, 2), (5, 5), (7, 7)]), (vec![7], vec![2, 5], false));
    }

    #[test]
    fn threads_of_a_core_stay_together_unless_there_is_only_one() {
        let two_cores = [(0, 0), (1, 1), (2, 0), (3, 1)];
        assert_eq!(divided(&two_cores), (vec![1, 3], vec![0, 2], false));
        assert_eq!(divided(&[(0, 0), (1, 0)]), (vec![1], vec![0], false));
    }

    #[test]
    fn the_kernels_lists_are_read() {
        assert_eq!(parse_list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(parse_list(""), [0; 0]);
    }

    #[test]
    fn this_machine_has_a_layout_of_cpus_that_are_allowed() {
        let allowed = sys::affinity::allowed().unwrap();
        let layout = layout().unwrap();
        assert!(!layout.server.is_empty() && !layout.client.is_empty());
        assert!(layout.server.iter().chain(&layout.client).all(|cpu| allowed.contains(cpu)));
        assert_eq!(layout.shared, allowed.len() < 2);
    }
}
