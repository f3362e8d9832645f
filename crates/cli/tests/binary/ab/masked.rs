//! Separates what is determined in ab's output from what is measured. Owns the masks: a measured figure becomes its
//! width or its decimals, so that layouts can be compared exactly; must not touch anything determined.

/// Labels of lines with a left-aligned number with decimals.
const LEFT: [&str; 6] = [
    "Time taken for tests:",
    "Requests per second:",
    "Time per request:",
    "Transfer rate:",
    "                        ",
    // -w
    "<tr",
];

/// Labels of rows with right-aligned numbers.
const RIGHT: [&str; 4] = ["Connect:", "Processing:", "Waiting:", "Total: "];

/// A report with the port and measured figures masked. Warnings about means and medians depend on measurements, and are
/// removed.
pub fn report(text: &str, port: Option<u16>) -> String {
    let text = match port {
        Some(port) => text.replace(&port.to_string(), "PORT"),
        None => text.to_owned(),
    };
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("WARNING: The median") || line.starts_with("ERROR: The median") {
            lines.next();
            continue;
        }
        kept.push(masked(line));
    }
    kept.join("\n")
}

fn masked(line: &str) -> String {
    let is_percent = line.len() > 5 && line.starts_with(' ') && line[..5].contains('%');
    if RIGHT.iter().any(|label| line.starts_with(label)) {
        columns(line)
    } else if is_percent {
        let end = line.find('%').map_or(0, |at| at + 1);
        line[..end].to_owned() + &columns(&line[end..])
    } else if LEFT.iter().any(|label| line.starts_with(label)) {
        decimals(line)
    } else {
        line.to_owned()
    }
}

/// Numbers with the blanks before them are replaced by their total width.
fn columns(line: &str) -> String {
    let mut masked = String::new();
    let mut number = String::new();
    for c in line.chars().chain(['\n']) {
        if c == ' ' && !number.trim().is_empty() || !(c == ' ' || c == '.' || c.is_ascii_digit()) {
            masked += &width(&number);
            number.clear();
        }
        if c == ' ' || c == '.' || c.is_ascii_digit() {
            number.push(c);
        } else if c != '\n' {
            masked.push(c);
        }
    }
    masked
}

fn width(number: &str) -> String {
    let has_digits = number.contains(|c: char| c.is_ascii_digit());
    if has_digits { format!("<{}>", number.len()) } else { number.to_owned() }
}

/// Numbers with a point become `#` and as many decimals; those in cells of 5 become their width.
fn decimals(line: &str) -> String {
    if line.starts_with("<tr") && line.contains(">    ") {
        return line.chars().map(|c| if c.is_ascii_digit() { ' ' } else { c }).collect();
    }
    let mut masked = String::new();
    for word in line.split_inclusive([' ', '>', '<']) {
        let number = word.trim_end_matches([' ', '<']);
        match number.split_once('.') {
            Some((whole, part)) if [whole, part].iter().all(|d| is_digits(d)) => {
                masked += &format!("#.{}{}", "#".repeat(part.len()), &word[number.len()..]);
            }
            _ => masked += word,
        }
    }
    masked
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[test]
fn what_is_measured_is_masked_by_its_width_and_what_is_counted_stays() {
    let text = "Server Port:            4711\nTime taken for tests:   0.123 seconds\n\
        Complete requests:      20\nWARNING: The median and mean for x\n        not\n\
        Connect:        0    1   2.4      0       8\n  50%      0\n 100%     12 (longest request)\n\
        Transfer rate:          9.50 [Kbytes/sec] received\n";
    let expected = "Server Port:            PORT\nTime taken for tests:   #.### seconds\n\
        Complete requests:      20\nConnect:<9><5><6><7><8>\n  50%<7>\n 100%<7> (longest request)\n\
        Transfer rate:          #.## [Kbytes/sec] received";
    assert_eq!(report(text, Some(4711)), expected);
    assert_eq!(masked("<td colspan=2 x>1.50 kb/s"), "<td colspan=2 x>1.50 kb/s");
    assert_eq!(masked("<tr ><td x>1.50 kb/s</td>"), "<tr ><td x>#.## kb/s</td>");
}
