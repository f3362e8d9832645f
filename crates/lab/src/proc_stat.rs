//! Owns what `/proc/PID/stat` says of a process (proc_pid_stat(5)). Start reading at [`stat`].

use std::fs;

/// Fields of `/proc/PID/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// Faults that needed a disk.
    pub(crate) faults_major: u64,
    /// utime + stime, in ticks.
    pub(crate) own_ticks: u64,
    /// cutime + cstime, in ticks: ended children that were waited for.
    pub(crate) reaped_ticks: u64,
    pub(crate) threads: u32,
    /// When it started, in ticks since boot. Its number and this together identify a process: no other process ever
    /// has both.
    pub(crate) started: u64,
}

pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name, in parentheses, may itself hold spaces and parentheses: the last one ends it.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let numbers: Vec<i64> = fields.map_while(|field| field.trim().parse().ok()).take(19).collect();
    // numbers[0] is field 4 of the manual page.
    let field = |number: usize| numbers.get(number - 4).map(|&n| n.max(0) as u64);
    Some(Stat {
        state,
        parent: field(4)? as u32,
        group: field(5)? as u32,
        session: field(6)? as u32,
        faults_major: field(12)?,
        own_ticks: field(14)? + field(15)?,
        reaped_ticks: field(16)? + field(17)?,
        threads: field(20)? as u32,
        started: field(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (a) b) (c) S 7 42 40 0 -1 0 1 2 3 4 11 22 33 44 20 0 5 0 100 0 0";
        let stat = parse_stat(text).unwrap();
        let expected = Stat {
            state: b'S',
            parent: 7,
            group: 42,
            session: 40,
            faults_major: 3,
            own_ticks: 33,
            reaped_ticks: 77,
            threads: 5,
            started: 100,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn what_is_not_a_stat_line_is_nothing() {
        for text in ["", "1 (x", "1 (x) ", "1 (x) S 1 2"] {
            assert_eq!(parse_stat(text), None, "{text}");
        }
    }
}
