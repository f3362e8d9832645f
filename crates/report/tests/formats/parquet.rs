//! Parquet read by DuckDB, and its snapshot as DuckDB shows it.

use crate::{all, python};

#[test]
fn parquet_is_read_by_duckdb_with_its_types_and_nulls() {
    let script = r#"
for name, path in pairs:
    table = duckdb.sql(f"select * from read_parquet('{path}')")
    columns = dict(zip(table.columns, map(str, table.types)))
    rows = table.fetchall()
    assert columns['contender' if name.startswith('run') else 'outcome'] == 'VARCHAR', columns
    if name == 'run: all visits failed':
        rates = duckdb.sql(f"select count(*), count(rate_per_s), count(started) from read_parquet('{path}')")
        assert rates.fetchall() == [(9, 0, 0)], rates
    if name == 'run: two contenders':
        assert columns['rate_per_s'] == 'DOUBLE' and columns['block'] == 'BIGINT', columns
        sql = f"select contender, count(*), min(rate_per_s) > 0 from read_parquet('{path}') group by 1 order by 1"
        assert duckdb.sql(sql).fetchall() == [('joust prefork', 4, True), ('joust reactor', 4, True)]
    if name == 'load: a load':
        sql = f"select outcome, service_ms, first_byte_ms, status from read_parquet('{path}') order by done_ns"
        assert duckdb.sql(sql).fetchall() == [('ok', 0.75, 0.5, 200), ('timeout_waiting', 4998.5, None, None)]
"#;
    python::read("duckdb", script, &all("parquet"));
}

#[test]
fn samples_of_a_run_know_their_visit() {
    let script = r#"
for name, path in pairs:
    table = duckdb.sql(f"from read_parquet('{path}')")
    columns = dict(zip(table.columns, map(str, table.types)))
    if name == 'run: with samples':
        assert columns['is_after_cut'] == 'BOOLEAN', columns
        counts = 'count(*), count(distinct contender), count(distinct block), sum(is_after_cut::int)'
        sql = f"select {counts} from read_parquet('{path}')"
        assert duckdb.sql(sql).fetchall() == [(24, 3, 4, 12)], duckdb.sql(sql)
    elif name.startswith('run'):
        assert 'attempt' in columns, columns
"#;
    python::read("duckdb", script, &all("samples-parquet"));
}

#[test]
fn figures_are_a_long_table() {
    let script = r#"
for name, path in pairs:
    columns = duckdb.sql(f"from read_parquet('{path}')").columns
    assert columns[:6] == ['cell', 'contender', 'name', 'unit', 'better', 'value'], columns
    if name == 'run: all visits failed':
        assert duckdb.sql(f"select count(value) from read_parquet('{path}')").fetchall() == [(0,)]
"#;
    python::read("duckdb", script, &all("figures-parquet"));
}
