//! Starts and ends every server of this machine a hundred times, or as often as the first argument
//! says; prints how long both take, and fails where anything is left.

#![allow(clippy::print_stdout, reason = "it is a program for the terminal")]

#[path = "../tests/starts/mod.rs"]
mod starts;

use units::Nanos;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(100, |n| n.parse().expect("a number of rounds"));
    let own = std::env::current_exe().expect("this program has a path");
    let beside = own.ancestors().nth(2).expect("examples lie beside joust").join("joust");
    println!(
        "{:<24} {:>6} {:>10} {:>10} {:>10} {:>10} {:>6}",
        "server", "rounds", "ready", "slowest", "ended", "slowest", "killed"
    );
    for row in starts::all(rounds, beside) {
        let Some(slowest) = row.ready.last() else {
            println!("{:<24} is not installed", row.name);
            continue;
        };
        let median = |sorted: &[Nanos]| sorted[sorted.len() / 2].to_string();
        let ended = row.ended.last().expect("each start has an end");
        println!(
            "{:<24} {:>6} {:>10} {:>10} {:>10} {:>10} {:>6}",
            row.name,
            row.ready.len(),
            median(&row.ready),
            slowest.to_string(),
            median(&row.ended),
            ended.to_string(),
            row.forced,
        );
    }
    println!("nothing is left: no process, port, cgroup or file");
}
