//! Owns how figures are put into the sentences of findings. Start reading at [`count`].

use units::Share;

/// A count with its noun: "1 visit", "12 visits". The plural takes an s.
pub(crate) fn count(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(n))
}

/// A number with a comma between thousands: "36,887".
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, with as many digits as a small one needs: "97 %", "0.0021 %". What is more
/// than nothing and less than all never reads as either.
pub(crate) fn percent(share: f64) -> String {
    match share {
        _ if share > 0.0 && share < 1e-6 => "less than 0.0001 %".to_owned(),
        _ if share > 0.0 && share < 0.001 => format!("{:.4} %", share * 100.0),
        _ if share > 0.9995 && share < 1.0 => "more than 99.9 %".to_owned(),
        _ => Share(share).to_string(),
    }
}

/// "a", "a and b", "a, b and c".
pub(crate) fn list(parts: &[impl AsRef<str>]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lists_and_shares_read_as_in_a_sentence() {
        assert_eq!(count(1, "visit"), "1 visit");
        assert_eq!(count(36_887, "request"), "36,887 requests");
        assert_eq!(grouped(1_000_000), "1,000,000");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(percent(0.97), "97 %");
        assert_eq!(percent(0.000_021), "0.0021 %");
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_to_all() {
        for (share, text) in [
            (0.0, "0 %"),
            (2e-7, "less than 0.0001 %"),
            (1e-6, "0.0001 %"),
            (0.9994, "99.9 %"),
            (0.9998, "more than 99.9 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text, "{share}");
        }
    }
}
