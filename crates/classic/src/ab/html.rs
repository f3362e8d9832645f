//! ab's report as HTML tables (-w). Start reading at [`report`].

use super::figures::{Figures, round_ms};
use super::flags::{Flags, Html};
use super::server::Server;

/// The whole table.
pub(super) fn report(flags: &Flags, html: &Html, server: &Server, figures: &Figures) -> String {
    let table = Table(html);
    let mut text = format!("\n\n<table {}>\n", html.table);
    for (label, value) in facts(flags, server, figures) {
        text += &match label {
            // The kinds of failures are below their number, over all columns.
            "" => table.wide(&value),
            _ => table.row(label, &value),
        };
    }
    text += &rates(&table, flags, figures);
    text += &times(&table, figures);
    text + "</table>\n"
}

struct Table<'a>(&'a Html);

impl Table<'_> {
    fn row(&self, label: &str, value: &str) -> String {
        let Html { row, cell, .. } = self.0;
        format!(
            "<tr {row}><th colspan=2 {cell}>{label}</th><td colspan=2 {cell}>{value}</td></tr>\n"
        )
    }

    fn wide(&self, value: &str) -> String {
        let Html { row, cell, .. } = self.0;
        format!("<tr {row}><td colspan=4 {cell} >   {value}</td></tr>\n")
    }

    fn below(&self, value: &str) -> String {
        let Html { row, cell, .. } = self.0;
        format!(
            "<tr {row}><td colspan=2 {cell}>&nbsp;</td><td colspan=2 {cell}>{value}</td></tr>\n"
        )
    }
}

fn facts(flags: &Flags, server: &Server, figures: &Figures) -> Vec<(&'static str, String)> {
    let url = &flags.url;
    let length = match flags.any_length {
        true => "Variable".to_owned(),
        false => format!("{} bytes", figures.document),
    };
    let mut facts = vec![
        ("Server Software:", server.software.clone()),
        ("Server Hostname:", url.host.clone()),
        ("Server Port:", url.port.to_string()),
        ("Document Path:", url.path.clone()),
        ("Document Length:", length),
        ("Concurrency Level:", flags.concurrency.to_string()),
        ("Time taken for tests:", format!("{:.3} seconds", figures.taken as f64 / 1e6)),
        ("Complete requests:", figures.done.to_string()),
        ("Failed requests:", figures.failed.to_string()),
    ];
    if figures.failed > 0 {
        let Figures { length, exceptions, .. } = figures;
        facts.push(("", format!("(Connect: 0, Length: {length}, Exceptions: {exceptions})")));
    }
    if figures.non_2xx > 0 {
        facts.push(("Non-2xx responses:", figures.non_2xx.to_string()));
    }
    if flags.keep_alive {
        facts.push(("Keep-Alive requests:", figures.kept_alive.to_string()));
    }
    facts.push(("Total transferred:", format!("{} bytes", figures.read)));
    if flags.body.is_some() {
        facts.push(("Total body sent:", figures.posted.to_string()));
    }
    facts.push(("HTML transferred:", format!("{} bytes", figures.bodies)));
    facts
}

fn rates(table: &Table<'_>, flags: &Flags, figures: &Figures) -> String {
    if figures.taken == 0 {
        return String::new();
    }
    let seconds = figures.taken as f64 / 1e6;
    let kbytes = |bytes: u64| bytes as f64 / 1024.0 / seconds;
    let rate = format!("{:.2}", figures.done as f64 / seconds);
    let received = format!("{:.2} kb/s received", kbytes(figures.read));
    let mut text =
        table.row("Requests per second:", &rate) + &table.row("Transfer rate:", &received);
    if flags.body.is_some() {
        let total = kbytes(figures.read + figures.posted);
        text += &table.below(&format!("{:.2} kb/s sent", kbytes(figures.posted)));
        text += &table.below(&format!("{total:.2} kb/s total"));
    }
    text
}

/// Means come from sums that were rounded to milliseconds; "Processing" is the difference of the other two rows, even
/// for the extremes.
fn times(table: &Table<'_>, figures: &Figures) -> String {
    let times = &figures.times;
    let n = times.len() as u64;
    if n == 0 {
        return String::new();
    }
    let Html { row, cell, .. } = table.0;
    let least = |spans: &mut dyn Iterator<Item = u64>| round_ms(spans.min().unwrap_or(0));
    let most = |spans: &mut dyn Iterator<Item = u64>| round_ms(spans.max().unwrap_or(0));
    let mean = |spans: &mut dyn Iterator<Item = u64>| round_ms(spans.sum()) / n;
    let connects = || times.iter().map(|times| times.connect);
    let totals = || times.iter().map(|times| times.total);
    let connect = [least(&mut connects()), mean(&mut connects()), most(&mut connects())];
    let total = [least(&mut totals()), mean(&mut totals()), most(&mut totals())];
    let processing = [0, 1, 2].map(|at| total[at] - connect[at]);
    let mut text = format!("<tr {row}><th {cell} colspan=4>Connection Times (ms)</th></tr>\n");
    text += &format!(
        "<tr {row}><th {cell}>&nbsp;</th> <th {cell}>min</th>   <th {cell}>avg</th>   \
         <th {cell}>max</th></tr>\n"
    );
    for (label, values) in [("Connect:", connect), ("Processing:", processing), ("Total:", total)] {
        let cells = values.map(|value| format!("<td {cell}>{value:>5}</td>")).concat();
        text += &format!("<tr {row}><th {cell}>{label}</th>{cells}</tr>\n");
    }
    text
}
