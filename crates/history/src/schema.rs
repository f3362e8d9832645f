//! Owns the tables and the migration of older databases. Must not know the queries. Start reading at [`MIGRATIONS`]: a
//! released migration is never changed, only followed by another.

use rusqlite::{Connection, TransactionBehavior};

/// "jous": identifies our databases among those of other programs.
pub(crate) const APPLICATION: i32 = 0x6a6f_7573;

/// The migration at index i turns schema i into schema i + 1; schema 0 is an empty database.
pub(crate) const MIGRATIONS: &[&str] = &[
    // A run is identified by the content of its file, so that the file may be moved and added again. Figures repeat the
    // names of contenders and cells: a hundred runs take less than a megabyte.
    "CREATE TABLE run (
        id INTEGER PRIMARY KEY,
        content_sha256 TEXT NOT NULL UNIQUE,
        path BLOB NOT NULL,
        study TEXT NOT NULL,
        started TEXT NOT NULL,
        -- That instant, seconds since 1970: starts are in local time, whose text does not sort.
        instant INTEGER NOT NULL,
        seconds REAL NOT NULL,
        joust TEXT NOT NULL,
        cpu_model TEXT NOT NULL,
        cpus TEXT NOT NULL,
        kernel TEXT NOT NULL,
        cells INTEGER NOT NULL,
        blocks INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX run_by_study ON run (study, instant);
    CREATE TABLE contender (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        version TEXT NOT NULL,
        configuration_sha256 TEXT NOT NULL,
        PRIMARY KEY (run, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE figure (
        run INTEGER NOT NULL,
        contender INTEGER NOT NULL,
        cell TEXT NOT NULL,
        work TEXT NOT NULL,
        metric TEXT NOT NULL,
        mean REAL NOT NULL,
        low REAL,
        high REAL,
        n INTEGER NOT NULL,
        withheld TEXT,
        PRIMARY KEY (run, contender, cell, metric),
        FOREIGN KEY (run, contender) REFERENCES contender (run, place) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;",
];

/// Why a database must not be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It belongs to another program.
    Foreign,
    /// A newer joust wrote it.
    Newer { found: i64 },
}

/// Migrates the database to the newest of `migrations`; does nothing if it is up to date.
pub(crate) fn migrate(
    connection: &mut Connection,
    migrations: &[&str],
) -> rusqlite::Result<Result<(), Unusable>> {
    let known = migrations.len() as i64;
    // One transaction, so that both reads see the same state: another process may be creating the database, and a mix
    // of its old and new state would look like another program's.
    let look = connection.transaction()?;
    let (state_now, version_now) = (state(&look, known)?, version(&look)?);
    drop(look);
    if version_now == known {
        return Ok(state_now);
    }
    // Checked again inside the transaction: another process may have migrated it meanwhile.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Err(unusable) = state(&transaction, known)? {
        return Ok(Err(unusable));
    }
    let done = version(&transaction)? as usize;
    for migration in &migrations[done..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(Ok(()))
}

fn state(connection: &Connection, known: i64) -> rusqlite::Result<Result<(), Unusable>> {
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let found = version(connection)?;
    Ok(match application == APPLICATION {
        false if tables > 0 || application != 0 => Err(Unusable::Foreign),
        _ if found > known => Err(Unusable::Newer { found }),
        _ => Ok(()),
    })
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "CREATE TABLE one (x INTEGER) STRICT; INSERT INTO one VALUES (7);";
    const SECOND: &str = "ALTER TABLE one ADD COLUMN y INTEGER NOT NULL DEFAULT 8;";

    #[test]
    fn an_older_schema_is_brought_forward_and_keeps_what_it_held() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert_eq!(migrate(&mut connection, &[FIRST]), Ok(Ok(())));
        assert_eq!(version(&connection), Ok(1));
        for _ in 0..2 {
            assert_eq!(migrate(&mut connection, &[FIRST, SECOND]), Ok(Ok(())));
            let row = connection.query_row("SELECT x, y FROM one", [], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            });
            assert_eq!((row, version(&connection)), (Ok((7, 8)), Ok(2)));
        }
        assert_eq!(migrate(&mut connection, &[FIRST]), Ok(Err(Unusable::Newer { found: 2 })));
    }

    #[test]
    fn a_migration_that_fails_leaves_the_schema_before_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &[FIRST]).unwrap().unwrap();
        let bad = "ALTER TABLE one ADD COLUMN z INTEGER; CREATE TABLE one (x);";
        assert!(migrate(&mut connection, &[FIRST, bad]).is_err());
        assert_eq!(version(&connection), Ok(1));
        assert!(connection.prepare("SELECT z FROM one").is_err());
    }

    #[test]
    fn the_database_of_another_program_is_left_alone() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert_eq!(migrate(&mut connection, MIGRATIONS), Ok(Err(Unusable::Foreign)));
    }
}
