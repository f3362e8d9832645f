//! Owns the way from the cells of a table to rows of results, also of a table that lies on its side, and what is
//! known of a published board. Start reading at [`of`].

use super::Table;
use super::cells::Cell;
use super::columns::{Column, Role};
use crate::printed::figure::Figure;
use crate::printed::row::{LoadKind, Origin, Phase, Row};

/// Where a table stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) source: usize,
    pub(super) name: &'a str,
}

/// CPUs of the servers of HttpArena's board (its README: 64 of them for the server).
const LEAGUE_CPUS: f64 = 64.0;

/// The rows of a table, if it is one of results: with a rate or a latency in at least one of them.
pub(super) fn of(table: &Table, place: Place) -> Vec<Row> {
    let as_written = read(table, place);
    if !as_written.is_empty() {
        return as_written;
    }
    read(&on_its_side(table), place)
}

fn read(table: &Table, place: Place) -> Vec<Row> {
    let columns = columns(table);
    let is_league = is_league(table);
    let rows = table.body.iter().enumerate().map(|(at, cells)| {
        let line = Line { columns: &columns, header: &table.header, cells };
        let mut row = line.row(table, place);
        if row.name.is_empty() {
            row.name = format!("row {}", at + 1);
        }
        if is_league { of_league(row, place) } else { row }
    });
    let rows: Vec<Row> = rows.collect();
    let rows = rows.into_iter().filter(|row| {
        row.rate.is_some() || row.total().mean.is_some() || !row.percentiles.is_empty()
    });
    let mut rows: Vec<Row> = rows.collect();
    if is_at_a_fixed_rate(&rows) {
        rows.iter_mut().for_each(|row| row.load.closed = Some(false));
    }
    rows
}

/// Columns by their names. Without one of servers, the first that means nothing else and holds words is it.
fn columns(table: &Table) -> Vec<Column> {
    let mut columns: Vec<Column> = table.header.iter().map(|name| Column::named(name)).collect();
    if columns.iter().all(|column| column.role != Role::Server) {
        let holds_words = |at: usize| {
            table.body.iter().all(|row| row.get(at).is_none_or(|cell| Cell::read(cell).is_none()))
        };
        let first = (0..columns.len().min(2))
            .find(|&at| columns[at].role == Role::Other && holds_words(at));
        if let Some(first) = first {
            columns[first].role = Role::Server;
        }
    }
    columns
}

/// The table with rows for columns: one with a server a column has names of metrics in front.
fn on_its_side(table: &Table) -> Table {
    let height = table.header.len();
    let all = || std::iter::once(&table.header).chain(&table.body);
    let turned = |at: usize| -> Vec<String> {
        all().map(|row| row.get(at).cloned().unwrap_or_default()).collect()
    };
    let mut header = turned(0);
    if let Some(corner) = header.first_mut() {
        "server".clone_into(corner);
    }
    Table { title: table.title.clone(), header, body: (1..height).map(turned).collect() }
}

/// One row of a table with its columns.
#[derive(Clone, Copy)]
struct Line<'a> {
    columns: &'a [Column],
    header: &'a [String],
    cells: &'a [String],
}

impl Line<'_> {
    /// The first cell of that role that can be read.
    fn first<T>(&self, role: Role, read: impl Fn(&str, Column) -> Option<T>) -> Option<T> {
        self.columns
            .iter()
            .zip(self.cells)
            .filter(|(column, _)| column.role == role)
            .find_map(|(column, cell)| read(cell, *column))
    }

    fn plain(&self, role: Role) -> Option<Figure> {
        self.first(role, |cell, _| Cell::read(cell)?.plain())
    }

    fn count(&self, role: Role) -> Option<u64> {
        self.plain(role).map(|figure| figure.value as u64)
    }

    fn seconds(&self, role: Role) -> Option<Figure> {
        self.first(role, |cell, column| Cell::read(cell)?.seconds(column.unit))
    }

    fn bytes(&self, role: Role) -> Option<Figure> {
        self.first(role, |cell, column| Cell::read(cell)?.bytes(column.unit))
    }

    fn row(&self, table: &Table, place: Place) -> Row {
        let server = self.first(Role::Server, |cell, _| Some(cell.to_owned()));
        let server = server.filter(|name| !name.is_empty());
        let percentiles = self.percentiles();
        let median = percentiles.iter().find(|(percent, _)| *percent == 50.0).map(|(_, at)| *at);
        let total = Phase {
            name: Phase::TOTAL,
            mean: self.seconds(Role::Mean),
            sd: self.seconds(Role::Deviation),
            median,
            min: self.seconds(Role::Min),
            max: self.seconds(Role::Max),
        };
        let statuses: Vec<(u8, u64)> =
            (2..=5).filter_map(|class| Some((class, self.count(Role::Status(class))?))).collect();
        let of_classes = |classes: &[u8]| {
            let counts = statuses.iter().filter(|(class, _)| classes.contains(class));
            let counts: Vec<u64> = counts.map(|(_, count)| *count).collect();
            (!counts.is_empty()).then(|| counts.into_iter().fold(0, u64::saturating_add))
        };
        let complete = of_classes(&[2, 3, 4, 5]).map(|sum| Figure::exact(sum as f64));
        let is_fixed_rate = self.plain(Role::RateRatio).is_some();
        Row {
            name: server.clone().unwrap_or_default(),
            source: place.source,
            origin: Origin::Table,
            server,
            workload: self.workload(table),
            load: LoadKind {
                closed: is_fixed_rate.then_some(false),
                full: !is_fixed_rate,
                ..LoadKind::default()
            },
            connections: self.plain(Role::Connections),
            pipeline: self.plain(Role::Pipeline).filter(|pipeline| pipeline.value >= 1.0),
            threads: self.count(Role::Threads),
            duration: self.seconds(Role::Duration),
            is_duration_nominal: true,
            complete: complete.or_else(|| self.plain(Role::Complete)),
            failed: self.count(Role::Failed),
            bad_status: of_classes(&[4, 5]).or_else(|| self.count(Role::BadStatus)),
            has_errors_in_rate: true,
            timeouts: self.count(Role::Timeouts),
            reconnects: self.count(Role::Reconnects),
            rate: self.first(Role::Rate, |cell, _| Cell::read(cell)?.rate()),
            bytes: self.bytes(Role::Bytes),
            bytes_rate: self.bytes(Role::BytesRate),
            phases: vec![total],
            percentiles,
            server_cpus_busy: self.first(Role::ServerCpu, |cell, _| Cell::read(cell)?.percent()),
            server_cpus: self.plain(Role::ServerCpus).map(|cpus| cpus.value),
            ..Row::default()
        }
    }

    fn percentiles(&self) -> Vec<(f64, Figure)> {
        let columns = self.columns.iter().zip(self.cells);
        let read = columns.filter_map(|(column, cell)| match column.role {
            Role::Percentile(percent) => Some((percent, Cell::read(cell)?.seconds(column.unit)?)),
            _ => None,
        });
        let mut read: Vec<(f64, Figure)> = read.collect();
        read.sort_by(|one, other| one.0.total_cmp(&other.0));
        read
    }

    /// The heading, and every cell that tells one workload from another.
    fn workload(&self, table: &Table) -> String {
        let columns = self.columns.iter().zip(self.header).zip(self.cells);
        let told = columns.filter(|((column, _), _)| column.role == Role::Workload);
        let told = told.map(|((_, name), cell)| format!("{name} {cell}"));
        let title = Some(table.title.clone()).filter(|title| !title.is_empty());
        title.into_iter().chain(told).collect::<Vec<_>>().join(", ")
    }
}

/// Rows of one server or of many that all have one rate within a hundredth, though latencies differ: it was
/// ordered.
fn is_at_a_fixed_rate(rows: &[Row]) -> bool {
    let rates: Vec<f64> = rows.iter().filter_map(|row| Some(row.rate?.value)).collect();
    let means = rows.iter().filter_map(|row| Some(row.total().mean?.value));
    let spread = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values
            .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        if low > 0.0 { high / low } else { f64::INFINITY }
    };
    rates.len() > 2
        && spread(&mut rates.iter().copied()) < 1.01
        && spread(&mut means.into_iter()) > 1.2
}

/// The board of HttpArena: its rows are objects with these names.
fn is_league(table: &Table) -> bool {
    ["framework", "rps", "avg_latency", "p99_latency"]
        .iter()
        .all(|name| table.header.iter().any(|known| known == name))
}

/// What is known of a row of the board by the name of its profile, which is the name of its file.
fn of_league(row: Row, place: Place) -> Row {
    let file = place.name.rsplit('/').next().unwrap_or(place.name);
    let profile = file.split('.').next().unwrap_or(file);
    let words: Vec<&str> = profile.split(['-', '_']).collect();
    let has = |word: &str| words.contains(&word);
    let is_fixed_rate = row.load.closed == Some(false) || has("latency");
    let is_short_lived = words.windows(2).any(|pair| pair == ["limited", "conn"]);
    let streams = ["h2", "h2c", "h3", "grpc", "ws", "echo", "stream"].iter().any(|word| has(word));
    // Its rate is that of 2xx replies.
    let has_errors_in_rate = match (row.complete, row.bad_status, row.duration, row.rate) {
        (Some(all), Some(bad), Some(duration), Some(rate)) if bad > 0 => {
            let good = (all.value - bad as f64) / duration.value;
            rate.value > good + 0.5 * bad as f64 / duration.value
        }
        _ => false,
    };
    Row {
        origin: Origin::League,
        workload: profile.to_owned(),
        load: LoadKind {
            closed: Some(!is_fixed_rate),
            streams,
            reconnects: is_short_lived,
            full: !is_fixed_rate,
        },
        server_cpus: Some(LEAGUE_CPUS),
        has_errors_in_rate,
        ..row
    }
}

#[cfg(test)]
mod tests {
    use crate::printed::row::{Origin, Row};
    use crate::printed::table::find;

    const LEAGUE: &str = r#"[{"framework": "a", "language": "C", "rps": 400000,
        "avg_latency": "1.28ms", "p99_latency": "3.1ms", "cpu": "6300.0%", "memory": "1MiB",
        "connections": 512, "threads": 64, "duration": "5s", "pipeline": 1,
        "bandwidth": "36MB/s", "reconnects": 0, "status_2xx": 2000000, "status_3xx": 0,
        "status_4xx": 0, "status_5xx": 0}]"#;

    fn league(profile: &str) -> Row {
        find(LEAGUE, 0, &format!("board/{profile}.json")).remove(0)
    }

    #[test]
    fn a_row_of_the_board_says_its_load_by_its_profile() {
        let row = league("baseline-512");
        assert_eq!((row.origin, row.name.as_str()), (Origin::League, "a"));
        assert_eq!(row.load.closed, Some(true));
        assert_eq!(row.may_be_in_flight().unwrap().value, 512.0);
        assert!((row.server_cpus_busy.unwrap().value - 63.0).abs() < 1e-9);
        assert_eq!(row.complete.unwrap().value, 2e6);
        assert!(league("limited-conn-512").load.reconnects);
        assert_eq!(league("latency-512").load.closed, Some(false));
        for profile in ["baseline-h2-512", "json-h2c-512", "static-h3-64"] {
            assert_eq!(league(profile).may_be_in_flight(), None, "{profile}");
        }
    }

    #[test]
    fn a_table_on_its_side_is_turned() {
        let text = "| | nginx | h2o |\n|--|--|--|\n| Requests/sec | 20,000 | 30,000 |\n\
                    | Mean latency | 3.2 ms | 2.1 ms |\n| Connections | 64 | 64 |\n";
        let rows = find(text, 0, "paste");
        assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["nginx", "h2o"]);
        assert_eq!(rows[1].rate.unwrap().value, 30_000.0);
        assert!((rows[1].total().mean.unwrap().value - 2.1e-3).abs() < 1e-12);
    }

    #[test]
    fn a_table_without_results_has_no_rows() {
        assert_eq!(find("| a | b |\n|--|--|\n| x | 1 |\n", 0, "paste"), []);
        assert_eq!(find("name,age\nx,1\n", 0, "paste"), []);
    }

    #[test]
    fn a_fixed_rate_is_no_closed_loop() {
        let text = "server,rps,latency\na,1000,1.0ms\nb,1001,2.0ms\nc,999,9.0ms\n";
        assert!(find(text, 0, "paste").iter().all(|row| row.load.closed == Some(false)));
    }
}
