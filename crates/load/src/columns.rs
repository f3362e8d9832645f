//! A column of a CSV file (RFC 4180), for the placeholder `{csv:FILE:COLUMN}`. Start reading at
//! [`read_column`].

use record::Column;

use crate::placeholders::ALL_ROWS;

/// Most rows that a column may have.
pub const ROWS_MAX: usize = 10_000_000;

/// Why a column cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// A quote is open at the end of the file, or something follows a closing one.
    #[error(
        "{file}:{line}: a quoted field must end with `\"` before a comma or the end of the line; \
         write a quote inside it twice"
    )]
    Quote {
        /// The file.
        file: String,
        /// Line in which the row begins, from 1.
        line: usize,
    },
    /// No such column.
    #[error(
        "{file} has no column `{column}`: its first row has {names}; name one of them, or give the \
         number of a column, from 1"
    )]
    NoColumn {
        /// The file.
        file: String,
        /// What was asked for.
        column: String,
        /// The names that are there.
        names: String,
    },
    /// A row that ends before the column.
    #[error("{file}:{line}: this row has no column `{column}`: give it one, or remove the row")]
    ShortRow {
        /// The file.
        file: String,
        /// Line in which the row begins, from 1.
        line: usize,
        /// The column.
        column: String,
    },
    /// No rows with values.
    #[error(
        "{file} has no values for `{column}`: its first row is read as the names of the columns; if that \
         row holds values, write the number of the column and `:all`, as in {{csv:{file}:1:all}}"
    )]
    Empty {
        /// The file.
        file: String,
        /// The column.
        column: String,
    },
    /// Too many rows.
    #[error("{file} has more than {ROWS_MAX} rows: split it")]
    TooLong {
        /// The file.
        file: String,
    },
}

/// The values of a column. The first row has the names of columns and no values, as in most tools
/// that read such files. A column is asked for by its name, or by its number from 1; a name wins over
/// a number. `2:all` is column 2 of a file without names, whose first row is a value like the others.
///
/// # Errors
/// See [`ColumnError`].
pub fn read_column(text: &str, file: &str, column: &str) -> Result<Column, ColumnError> {
    let owned = || (file.to_owned(), column.to_owned());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = Rows { file, rest: text, line: 1 };
    let empty = || ColumnError::Empty { file: file.to_owned(), column: column.to_owned() };
    let (line, first) = rows.next().ok_or_else(empty)??;
    let of_all = column.strip_suffix(ALL_ROWS).and_then(|rest| rest.strip_suffix(':'));
    let named = first.iter().position(|name| name == column && of_all.is_none());
    let number = of_all.unwrap_or(column).parse::<usize>().ok().filter(|&number| number > 0);
    let Some(index) = named.or(number.map(|number| number - 1)) else {
        let (file, column) = owned();
        let names = first.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return Err(ColumnError::NoColumn { file, column, names });
    };
    let mut values = Vec::new();
    let first = of_all.is_some().then_some(Ok((line, first)));
    for row in first.into_iter().chain(rows) {
        let (line, mut row) = row?;
        if index >= row.len() {
            let (file, column) = owned();
            return Err(ColumnError::ShortRow { file, line, column });
        }
        if values.len() == ROWS_MAX {
            return Err(ColumnError::TooLong { file: file.to_owned() });
        }
        values.push(row.swap_remove(index));
    }
    if values.is_empty() {
        return Err(empty());
    }
    let (file, name) = owned();
    Ok(Column { file, name, values })
}

/// The rows of a text, each with the line in which it begins. Empty lines are passed over.
struct Rows<'a> {
    file: &'a str,
    rest: &'a str,
    line: usize,
}

impl Iterator for Rows<'_> {
    type Item = Result<(usize, Vec<String>), ColumnError>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) =
            self.rest.strip_prefix("\r\n").or_else(|| self.rest.strip_prefix('\n'))
        {
            (self.rest, self.line) = (rest, self.line + 1);
        }
        if self.rest.is_empty() {
            return None;
        }
        let line = self.line;
        let row = self.row().map(|row| (line, row));
        let quote = || {
            self.rest = "";
            ColumnError::Quote { file: self.file.to_owned(), line }
        };
        Some(row.ok_or_else(quote))
    }
}

impl Rows<'_> {
    /// The fields of a row; `None` if a quote is not as it should be.
    fn row(&mut self) -> Option<Vec<String>> {
        let mut fields = Vec::new();
        loop {
            let field = match self.rest.strip_prefix('"') {
                Some(quoted) => self.quoted(quoted)?,
                None => {
                    let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
                    let (field, rest) = self.rest.split_at(end);
                    self.rest = rest;
                    let is_last = !rest.starts_with(',');
                    if is_last { field.strip_suffix('\r').unwrap_or(field) } else { field }
                        .to_owned()
                }
            };
            fields.push(field);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                continue;
            }
            let ended = self.rest.strip_prefix('\n').or_else(|| self.rest.strip_prefix("\r\n"));
            match ended {
                Some(rest) => (self.rest, self.line) = (rest, self.line + 1),
                None if self.rest.is_empty() => {}
                None => return None,
            }
            return Some(fields);
        }
    }

    /// A field after its opening quote.
    fn quoted(&mut self, mut rest: &str) -> Option<String> {
        let mut field = String::new();
        let after = loop {
            let (part, after) = rest.split_once('"')?;
            field.push_str(part);
            match after.strip_prefix('"') {
                Some(more) => {
                    field.push('"');
                    rest = more;
                }
                None => break after,
            }
        };
        self.line += field.matches('\n').count();
        let start = self.rest.len() - after.len();
        self.rest = &self.rest[start..];
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USERS: &str = "name,\"pass\"\"word\",3\r\nann,\"a,b\",x\r\n\r\n\"b\no\"\"b\",,\n";

    fn values(text: &str, column: &str) -> Vec<String> {
        read_column(text, "u.csv", column).unwrap().values
    }

    #[test]
    fn columns_are_named_by_the_first_row_or_counted() {
        assert_eq!(values(USERS, "name"), ["ann", "b\no\"b"]);
        assert_eq!(values(USERS, "pass\"word"), ["a,b", ""]);
        assert_eq!(values(USERS, "2"), ["a,b", ""], "the names are no values");
        assert_eq!(values(USERS, "2:all"), ["pass\"word", "a,b", ""]);
        assert_eq!(values(USERS, "3:all"), ["3", "x", ""], "a number, whatever the names");
        assert_eq!(values(USERS, "3"), ["x", ""], "a name wins");
        assert_eq!(values("\u{feff}a\n1", "a"), ["1"]);
        assert_eq!(values("a,b", "2:all"), ["b"]);
    }

    #[test]
    fn what_is_missing_is_named_with_its_line() {
        let cases = [
            ("a,b\n1,2\n3", "b", "u.csv:3: this row has no column `b`"),
            ("a,b\n1,2", "c", "has no column `c`: its first row has `a`, `b`"),
            ("a,b\n1,2", "0", "has no column `0`"),
            ("a\n", "a", "has no values"),
            ("", "a", "has no values"),
            ("a,b", "2", "as in {csv:u.csv:1:all}"),
            ("a,b\n1,2", "3:all", "has no column `3:all`"),
            ("a\n1\n\"2", "a", "u.csv:3: a quoted field must end"),
            ("a\n\"1\n2\"\n\"2\"x\n", "a", "u.csv:4: a quoted field must end"),
        ];
        for (text, column, part) in cases {
            let error = read_column(text, "u.csv", column).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_table_that_was_written_by_the_rules_reads_back(
            rows in prop::collection::vec(prop::collection::vec("[a, \"\r\n1é]{0,5}", 3), 1..6),
            end in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",");
            let lines: Vec<String> = rows.iter().map(line).collect();
            let text = format!("x,y,z{end}{}{end}", lines.join(end));
            for (index, name) in ["x", "y", "z"].into_iter().enumerate() {
                let expected: Vec<&String> = rows.iter().map(|row| &row[index]).collect();
                let got = values(&text, name);
                prop_assert_eq!(got.iter().collect::<Vec<_>>(), expected);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a1,\"\r\n]{0,30}", column in "[a12]") {
            drop(read_column(&text, "u.csv", &column));
        }
    }
}
