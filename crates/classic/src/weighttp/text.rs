//! What weighttp 0.4 prints. Owns its lines and its roundings. Start reading at [`report`].

use super::workers::{Counts, part};

/// What it prints before the first request.
pub(super) fn opening(requests: u64, clients: u32, threads: u32) -> String {
    let mut text = "starting benchmark...\n".to_owned();
    text += &spawning(requests, clients, threads);
    text
}

/// One line per thread.
pub(super) fn spawning(requests: u64, clients: u32, threads: u32) -> String {
    let line = |thread| {
        let clients = part(clients.into(), threads, thread);
        let requests = part(requests, threads, thread);
        let number = thread + 1;
        format!(
            "spawning thread #{number}: {clients} concurrent requests, {requests} total requests\n"
        )
    };
    (0..threads).map(line).collect()
}

/// The lines of progress that are due between `told` and `done` requests of `todo`, which are those of thread 1 only.
pub(super) fn progress(told: u64, done: u64, todo: u64) -> String {
    let every = (todo / 10).max(1);
    let next = told / every + 1;
    let percent = |nth| nth * every * 100 / todo;
    (next..=done / every).map(|nth| format!("progress: {:>3}% done\n", percent(nth))).collect()
}

/// The report. `micros` is the duration; rates are truncated to whole numbers, and the number of errored requests is
/// always 0: weighttp forgets to add them up.
pub(super) fn report(requests: u64, counts: &Counts, micros: u64) -> String {
    let (secs, millis) = (micros / 1_000_000, micros / 1000 % 1000);
    let seconds = (micros as f64 / 1e6).max(1e-6);
    let per_s = (counts.done as f64 / seconds) as u64;
    let kbytes = (counts.bytes as f64 / seconds / 1024.0) as u64;
    let Counts { started, done, succeeded, failed, classes, bytes, bodies, .. } = counts;
    let [c2, c3, c4, c5] = classes;
    format!(
        "\nfinished in {secs} sec, {millis} millisec and {} microsec, {per_s} req/s, {kbytes} kbyte/s\n\
         requests: {requests} total, {started} started, {done} done, {succeeded} succeeded, {failed} \
         failed, 0 errored\n\
         status codes: {c2} 2xx, {c3} 3xx, {c4} 4xx, {c5} 5xx\n\
         traffic: {bytes} bytes total, {} bytes http, {bodies} bytes data\n",
        micros % 1000,
        bytes - bodies,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quirk: progress covers thread 1, each tenth of its share, rounded down.
    #[test]
    fn progress_is_told_each_tenth_of_a_share() {
        let percents = |todo| -> Vec<String> {
            let text = progress(0, todo, todo);
            text.lines().map(|line| line["progress:".len()..line.len() - 6].to_owned()).collect()
        };
        assert_eq!(percents(10).len(), 10);
        assert_eq!((percents(100)[0].as_str(), percents(100)[9].as_str()), ("  10", " 100"));
        assert_eq!(percents(3), ["  33", "  66", " 100"]);
        let of_25: Vec<u64> = percents(25).iter().map(|p| p.trim().parse().unwrap()).collect();
        assert_eq!(of_25, [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96], "each second one");
        assert_eq!(progress(0, 9, 100), "");
        assert_eq!(progress(9, 21, 100), "progress:  10% done\nprogress:  20% done\n");
        assert_eq!(progress(20, 29, 100), "");
    }
}
