//! Owns tables in Markdown, several in a text and with prose around them. Start reading at [`tables`].

use super::Table;

/// Every table of a text.
pub(super) fn tables(text: &str) -> Vec<Table> {
    let lines: Vec<&str> = text.lines().map(|line| line.trim_start_matches(['>', ' '])).collect();
    let mut found = Vec::new();
    let mut title = String::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        if let Some(heading) = line.strip_prefix('#') {
            title = heading.trim_matches(['#', ' ']).to_owned();
        }
        let is_ruled = lines.get(at + 1).is_some_and(|next| is_rule(next));
        if !(line.contains('|') && is_ruled) {
            at += 1;
            continue;
        }
        let rest = &lines[at + 2..];
        let body: Vec<Vec<String>> =
            rest.iter().take_while(|row| row.contains('|')).map(|row| cells(row)).collect();
        at += 2 + body.len();
        found.push(Table { title: title.clone(), header: cells(line), body });
    }
    found
}

/// `|---|:--:|`.
fn is_rule(line: &str) -> bool {
    let is_of_rule = |c: char| matches!(c, '|' | '-' | ':' | '+' | ' ');
    line.contains('-') && line.contains('|') && line.trim().chars().all(is_of_rule)
}

fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let line = line.strip_suffix('|').unwrap_or(line);
    line.split('|').map(bare).collect()
}

/// Without what marks it up: `[nginx](http://...)` is nginx.
fn bare(cell: &str) -> String {
    let cell = cell.trim().trim_matches(['*', '_', '`']);
    let link = cell.strip_prefix('[').and_then(|rest| rest.split_once("]("));
    link.map_or(cell, |(text, _)| text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_tables_with_prose_are_found_under_their_headings() {
        let text = "# Small\nWe ran it.\n\n| a | b |\n|---|--:|\n| [x](y) | **1** |\n| z | 2 |\n\n\
                    ## Large\n> a | b\n> --|--\n> q | 3\nEnd | of it";
        let found = tables(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0].title, "Small");
        assert_eq!(found[0].body, [["x", "1"], ["z", "2"]]);
        assert_eq!(found[1].title, "Large");
        assert_eq!(found[1].body[0], ["q", "3"]);
    }
}
