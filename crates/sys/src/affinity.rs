//! Which CPUs a thread may run on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs the calling thread may run on, in rising order.
///
/// # Errors
/// The kernel has more CPUs than a `CpuSet` holds (1024).
pub fn allowed() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect())
}

/// Pins the calling thread, and the threads and processes it will start, to `cpus`.
///
/// # Errors
/// EINVAL if none of them exists or is allowed to this process.
pub fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus.iter().filter(|&&cpu| (cpu as usize) < CpuSet::MAX_CPU) {
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_stays_where_it_was_put() {
        let cpu = *allowed().unwrap().last().unwrap();
        std::thread::spawn(move || {
            pin(&[cpu]).unwrap();
            assert_eq!(allowed().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_cpu_at_all_is_refused() {
        assert!(pin(&[]).is_err());
        assert!(pin(&[1023]).is_err());
    }
}
