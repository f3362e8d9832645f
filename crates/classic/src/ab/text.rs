//! ab's text output: the opening and the report. Owns labels, widths and roundings. Start reading
//! at [`report`].

use std::fmt::Write as _;

use super::figures::{Figures, Row, Times, round_ms, sorted_totals};
use super::flags::{Flags, banner};
use super::server::Server;

const PERCENTS: [usize; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// What ab prints before its first request.
pub(super) fn opening(flags: &Flags) -> String {
    let mut text = banner(flags.html.is_some());
    if flags.html.is_none() {
        let through = match &flags.proxy {
            Some((host, port)) => format!("[through {host}:{port}] "),
            None => String::new(),
        };
        let end = if flags.heartbeat().is_some() { "\n" } else { "..." };
        text += &format!("Benchmarking {} {through}(be patient){end}", flags.url.host);
    }
    text
}

/// The whole report.
pub(super) fn report(flags: &Flags, server: &Server, figures: &Figures) -> String {
    let mut text = subject(flags, server, figures);
    counts(&mut text, flags, figures).expect(WRITES);
    if !figures.times.is_empty() {
        connection_times(&mut text, flags, &figures.times).expect(WRITES);
        if flags.percentiles && figures.times.len() > 1 {
            percentiles(&mut text, &figures.times).expect(WRITES);
        }
    }
    text
}

const WRITES: &str = "a string takes all that is written";

/// The lines about server, document and load.
fn subject(flags: &Flags, server: &Server, figures: &Figures) -> String {
    let url = &flags.url;
    let (software, host, port) = (&server.software, &url.host, url.port);
    let mut text = format!(
        "\n\nServer Software:        {software}\nServer Hostname:        {host}\n\
         Server Port:            {port}\n"
    );
    for (label, value) in [
        ("SSL/TLS Protocol:       ", &server.protocol),
        ("Server Temp Key:        ", &server.temporary_key),
        ("TLS Server Name:        ", &server.tls_name),
    ] {
        if let Some(value) = value {
            text += &format!("{label}{value}\n");
        }
    }
    let length = match flags.any_length {
        true => "Variable".to_owned(),
        false => format!("{} bytes", figures.document),
    };
    text + &format!("\nDocument Path:          {}\nDocument Length:        {length}\n\n", url.path)
}

fn counts(text: &mut String, flags: &Flags, figures: &Figures) -> std::fmt::Result {
    let seconds = figures.taken as f64 / 1e6;
    writeln!(text, "Concurrency Level:      {}", flags.concurrency)?;
    writeln!(text, "Time taken for tests:   {seconds:.3} seconds")?;
    writeln!(text, "Complete requests:      {}", figures.done)?;
    writeln!(text, "Failed requests:        {}", figures.failed)?;
    if figures.failed > 0 {
        let Figures { receive, length, exceptions, .. } = figures;
        writeln!(
            text,
            "   (Connect: 0, Receive: {receive}, Length: {length}, Exceptions: {exceptions})"
        )?;
    }
    if figures.non_2xx > 0 {
        writeln!(text, "Non-2xx responses:      {}", figures.non_2xx)?;
    }
    if flags.keep_alive {
        writeln!(text, "Keep-Alive requests:    {}", figures.kept_alive)?;
    }
    writeln!(text, "Total transferred:      {} bytes", figures.read)?;
    if flags.body.is_some() {
        writeln!(text, "Total body sent:        {}", figures.posted)?;
    }
    writeln!(text, "HTML transferred:       {} bytes", figures.bodies)?;
    if figures.taken == 0 || figures.done == 0 {
        return Ok(());
    }
    let done = figures.done as f64;
    let kbytes = |bytes: u64| bytes as f64 / 1024.0 / seconds;
    writeln!(text, "Requests per second:    {:.2} [#/sec] (mean)", done / seconds)?;
    let mean = f64::from(flags.concurrency) * seconds * 1000.0 / done;
    writeln!(text, "Time per request:       {mean:.3} [ms] (mean)")?;
    let across = seconds * 1000.0 / done;
    writeln!(
        text,
        "Time per request:       {across:.3} [ms] (mean, across all concurrent requests)"
    )?;
    writeln!(text, "Transfer rate:          {:.2} [Kbytes/sec] received", kbytes(figures.read))?;
    if flags.body.is_some() {
        writeln!(text, "                        {:.2} kb/s sent", kbytes(figures.posted))?;
        let total = kbytes(figures.read + figures.posted);
        writeln!(text, "                        {total:.2} kb/s total")?;
    }
    Ok(())
}

/// The name of a row in a warning, its label, and its span.
type TimeRow = (&'static str, &'static str, fn(&Times) -> u64);

const TIME_ROWS: [TimeRow; 4] = [
    ("Connect:   ", "the initial connection time", |times| times.connect),
    ("Processing:", "the processing time", |times| times.total - times.connect),
    ("Waiting:   ", "the waiting time", |times| times.wait),
    ("Total:     ", "the total time", |times| times.total),
];

fn connection_times(text: &mut String, flags: &Flags, times: &[Times]) -> std::fmt::Result {
    text.push_str("\nConnection Times (ms)\n");
    let rows = TIME_ROWS.map(|(label, name, span)| (label, name, Row::of(times, span)));
    if !flags.confidence {
        text.push_str("              min   avg   max\n");
        for (label, _, row) in rows {
            let [min, mean, max] = [row.min, row.mean, row.max].map(round_ms);
            writeln!(text, "{label} {min:>5} {mean:>5}{max:>5}")?;
        }
        return Ok(());
    }
    text.push_str("              min  mean[+/-sd] median   max\n");
    for (label, _, row) in &rows {
        let [min, mean, median, max] = [row.min, row.mean, row.median, row.max].map(round_ms);
        let sd = row.sd / 1000.0;
        writeln!(text, "{label} {min:>5} {mean:>4} {sd:>5.1} {median:>6} {max:>7}")?;
    }
    for (_, name, row) in rows {
        // In whole milliseconds, although the deviation has decimals.
        let apart = (round_ms(row.mean) as f64 - round_ms(row.median) as f64).abs();
        let sd = row.sd / 1000.0;
        if apart > 2.0 * sd {
            writeln!(
                text,
                "ERROR: The median and mean for {name} are more than twice the standard\n       \
                 deviation apart. These results are NOT reliable."
            )?;
        } else if apart > sd {
            writeln!(
                text,
                "WARNING: The median and mean for {name} are not within a normal deviation\n        \
                 These results are probably not that reliable."
            )?;
        }
    }
    Ok(())
}

fn percentiles(text: &mut String, times: &[Times]) -> std::fmt::Result {
    text.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    let totals = sorted_totals(times);
    for percent in PERCENTS {
        match percent {
            100 => {
                let longest = round_ms(totals[totals.len() - 1]);
                writeln!(text, " 100%  {longest:>5} (longest request)")?;
            }
            _ => writeln!(
                text,
                "  {percent}%  {:>5}",
                round_ms(totals[totals.len() * percent / 100])
            )?,
        }
    }
    Ok(())
}
