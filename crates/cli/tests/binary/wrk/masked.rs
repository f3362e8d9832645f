//! Separates what is determined in wrk's output from what is measured. Owns the masks: a measured figure becomes its
//! width, so that layouts can be compared exactly; must not touch anything determined.

/// Which figures are determined in a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// None: only whether a count is 0 is compared.
    Measured,
    /// Requests, bytes and errors.
    Determined,
}

/// wrk's output with the port and measured figures masked.
pub fn output(text: &str, port: Option<u16>, counts: Counts) -> String {
    let text = match port {
        Some(port) => text.replace(&port.to_string(), "PORT"),
        None => text.to_owned(),
    };
    let lines: Vec<String> = text.lines().map(|line| masked(line, counts)).collect();
    lines.join("\n")
}

fn masked(line: &str, counts: Counts) -> String {
    if let Some(rest) = line.strip_prefix("    Latency   ") {
        return format!("    Latency   {}", columns(rest, &[8, 10, 9]));
    }
    if let Some(rest) = line.strip_prefix("    Req/Sec   ") {
        let columns = columns(rest, &[8, 10, 9]);
        // A script that stops everything may do so before wrk samples the rate for the first time.
        let is_either = counts == Counts::Determined;
        let columns = if is_either { columns.replace("    -nan%", "<8>%") } else { columns };
        return format!("    Req/Sec   {columns}");
    }
    if line.len() > 8 && line[..8].ends_with("%") && line[..7].trim().parse::<u8>().is_ok() {
        return format!("{}{}", &line[..8], columns(&line[8..], &[10]));
    }
    if let Some(rest) = line.strip_prefix("Requests/sec:") {
        return format!("Requests/sec:<{}>", width(rest, 10));
    }
    if let Some(rest) = line.strip_prefix("Transfer/sec:") {
        let is_bytes = rest.ends_with('B');
        return format!("Transfer/sec:<{}>{is_bytes}", width(rest.trim_end_matches('B'), 11));
    }
    if line.starts_with("wrk ") && line.contains("[epoll]") {
        return format!("wrk VERSION {}", &line[line.find('[').unwrap_or(0)..]);
    }
    if line.contains(" requests in ") && line.ends_with("B read") {
        return requests(line, counts);
    }
    let is_count = line.starts_with("  Socket errors:") || line.starts_with("  Non-2xx");
    if is_count && counts == Counts::Measured { present(line) } else { line.to_owned() }
}

/// Fields of fixed widths, each a number with two decimals, a unit, and blanks for a shorter unit; then the share, if
/// there is one.
fn columns(text: &str, widths: &[usize]) -> String {
    let mut masked = String::new();
    let mut rest = text;
    for &width in widths {
        let Some((field, behind)) = rest.split_at_checked(width) else { return text.to_owned() };
        if !is_amount(field) {
            return text.to_owned();
        }
        masked += &format!("<{width}>");
        rest = behind;
    }
    match rest.strip_suffix('%') {
        Some(share) if share.len() == 8 && !share.ends_with("nan") => masked + "<8>%",
        _ => masked + rest,
    }
}

fn is_amount(field: &str) -> bool {
    let n_blanks = field.len() - field.trim_end().len();
    let digits = field.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let n_letters = field.trim().len() - digits.len();
    let has_two_decimals = digits.split_once('.').is_some_and(|(_, part)| part.len() == 2);
    has_two_decimals && n_letters + n_blanks == 2 && digits.parse::<f64>().is_ok()
}

/// The width of a right-aligned number in a column.
fn width(text: &str, usual: usize) -> String {
    if text.len() == usual { usual.to_string() } else { text.to_owned() }
}

/// `  # requests in #, #B read`.
fn requests(line: &str, counts: Counts) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let [a, b, n, requests, within, time, bytes, read] = words.as_slice() else {
        return line.to_owned();
    };
    let letters = |text: &str| text.trim_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let time = if letters(time) < 4 { "#," } else { time };
    match counts {
        Counts::Determined => [a, b, n, requests, within, time, bytes, read].join(" "),
        Counts::Measured => {
            let is_none = if *n == "0" { "0" } else { "#" };
            let bytes = if *bytes == "0.00B" { bytes } else { "#B" };
            [a, b, is_none, requests, within, time, bytes, read].join(" ")
        }
    }
}

/// Counts that are not 0 become `#`.
fn present(line: &str) -> String {
    let word = |word: &str| {
        let digits = word.trim_end_matches(',');
        let is_some = digits.parse::<u64>().is_ok_and(|count| count > 0);
        if is_some { word.replace(digits, "#") } else { word.to_owned() }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_measured_is_masked_by_its_width_and_what_is_determined_stays() {
    let text = "Running 1s test @ http://127.0.0.1:4711/\n    Latency   844.95us    2.45ms  27.54ms   \
        93.47%\n    Req/Sec     6.00      0.00     6.00    100.00%\n     50%   42.00us\n  7 requests in \
        1.03s, 2.56KB read\n  Socket errors: connect 0, read 3, write 0, timeout 0\n\
        Requests/sec:     39.94\nTransfer/sec:      2.50KB";
    let expected = "Running 1s test @ http://127.0.0.1:PORT/\n    Latency   <8><10><9><8>%\n    \
        Req/Sec   <8><10><9><8>%\n     50%<10>\n  # requests in #, #B read\n  Socket errors: connect 0, \
        read #, write 0, timeout 0\nRequests/sec:<10>\nTransfer/sec:<11>true";
    assert_eq!(output(text, Some(4711), Counts::Measured), expected);
    let kept = output(text, Some(4711), Counts::Determined);
    assert!(kept.contains("  7 requests in #, 2.56KB read\n"), "{kept}");
    assert!(kept.contains("read 3,"), "{kept}");
    let moved = "    Latency    844.95us    2.45ms  27.54ms   93.47%";
    assert_eq!(masked(moved, Counts::Measured), moved, "a column that is not in its place is seen");
    let nothing = "    Latency     0.00us    0.00us   0.00us    -nan%";
    assert_eq!(masked(nothing, Counts::Measured), "    Latency   <8><10><9>    -nan%");
}
