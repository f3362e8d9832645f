//! Every server that is installed, started and ended several times: it leaves no process, no port, no
//! cgroup and no file. One test in a process of its own, because it looks at all that this process
//! has.

mod starts;

use std::io::Write as _;

/// `make bench-lab-starts` does a hundred.
const ROUNDS: usize = 3;

#[test]
fn every_server_leaves_nothing_however_often_it_is_started() {
    let test = std::env::current_exe().unwrap();
    let rows = starts::all(ROUNDS, test.ancestors().nth(2).unwrap().join("joust"));
    let mut ran = 0;
    for row in &rows {
        assert_eq!(row.forced, 0, "{} had to be killed", row.name);
        assert!(row.ready.is_empty() || row.ended.len() == ROUNDS, "{}", row.name);
        ran += usize::from(!row.ready.is_empty());
    }
    let skipped = rows.len() - ran;
    let line = format!("{ran} ways to run a server, {skipped} skipped (scripts/peers.sh)\n");
    // Past the harness, which holds back what the print macros write.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert!(ran > 0, "not even the stand-in ran");
}
