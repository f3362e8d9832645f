//! Owns tables whose cells are separated by commas, semicolons, tabs or runs of spaces. Start reading at
//! [`tables`].

use super::Table;

/// How the cells of a line are told apart.
const SEPARATIONS: [fn(&str) -> Vec<String>; 4] =
    [|line| quoted(line, '\t'), |line| quoted(line, ','), |line| quoted(line, ';'), spaced];

/// Every block of lines that have the same number of cells, at least two, under the separation that makes the
/// most of them. The first line of a block is its header.
pub(super) fn tables(text: &str) -> Vec<Table> {
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let found = SEPARATIONS.map(|split| blocks(&lines, split));
    let cells = |tables: &[Table]| {
        tables.iter().map(|table| table.header.len() * table.body.len()).sum::<usize>()
    };
    found.into_iter().max_by_key(|tables| cells(tables)).unwrap_or_default()
}

fn blocks(lines: &[&str], split: fn(&str) -> Vec<String>) -> Vec<Table> {
    let mut found: Vec<Table> = Vec::new();
    let mut open = Table::default();
    for line in lines {
        let cells = split(line);
        if !open.header.is_empty() && cells.len() == open.header.len() {
            open.body.push(cells);
            continue;
        }
        found.push(std::mem::take(&mut open));
        if cells.len() > 1 {
            open.header = cells;
        }
    }
    found.push(open);
    found.retain(|table| !table.header.is_empty() && !table.body.is_empty());
    found
}

/// Cells between separators; one in double quotes may hold separators (RFC 4180).
fn quoted(line: &str, separator: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => cells.push(String::new()),
            c => cells.last_mut().expect("there is always a cell").push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Cells between two spaces or more, as `column -t` and most terminals show them.
fn spaced(line: &str) -> Vec<String> {
    let cells = line.trim().split("  ").map(str::trim).filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_found_by_what_it_makes() {
        for text in [
            "name,req/s\nnginx,\"12,345\"\nh2o,2\n",
            "# made by hand\nname\treq/s\nnginx\t12,345\nh2o\t2\n",
            "name;req/s\nnginx;12,345\nh2o;2",
            "name     req/s\nnginx    12,345\nh2o      2\n",
        ] {
            let found = tables(text);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].header, ["name", "req/s"]);
            assert_eq!(found[0].body, [["nginx", "12,345"], ["h2o", "2"]]);
        }
        assert_eq!(tables("only prose\n\nand more"), []);
    }
}
