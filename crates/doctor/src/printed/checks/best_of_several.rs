//! Owns the check that the best of several runs is not shown as what a server does. Start reading at [`look`].

use record::{Certainty, Question, Severity};

use crate::printed::check::{Conclusion, Effect, PrintedCheck, Seen};
use crate::printed::row::{Origin, Printed, Source};
use crate::words;

/// See the module.
pub(crate) const ITEM: PrintedCheck = PrintedCheck {
    name: "best_of_several",
    severity: Severity::Bound,
    question: Question::DoesItReproduce,
    title: "the best of several runs is shown",
    meaning: "the best of three runs lies 0.85 standard deviations above the mean, and rewards the server whose runs \
              differ most",
    detection: "The text says so (best of, fastest of, highest of), or it is a board that is known to: HttpArena takes \
                the best of three runs of 5 s",
    remedy: "ask for all runs, or their median",
    example: "\"We ran each test five times and took the best of them\"",
    source: "order statistics of the normal law: E max of 3 = 0.846 sd; HttpArena, scripts/benchmark.sh",
    touches: &[(Conclusion::Rate, Effect::AtMost)],
    look,
};

/// Words that say it, before "of", "run" or "result".
const SUPERLATIVES: &[&str] = &["best", "fastest", "highest"];
/// Words after "best of" that make it a choice among runs.
const CHOICES: &[&str] = &[
    "two", "three", "four", "five", "six", "ten", "several", "them", "runs", "n", "k", "these",
    "all",
];

fn look(printed: &Printed) -> Vec<Seen> {
    let of_sources = printed.sources.iter().enumerate().filter_map(|(index, source)| {
        let rows: Vec<usize> =
            printed.indexed().filter(|(_, row)| row.source == index).map(|(at, _)| at).collect();
        let is_league = rows.iter().all(|&at| printed.rows[at].origin == Origin::League);
        match said(source) {
            Some(words) => Some((rows, format!("{}: the text says \"{words}\"", source.name))),
            None if is_league && !rows.is_empty() => {
                let rows_of = words::count(rows.len() as u64, "row");
                let told = format!(
                    "{}: {rows_of} of a board that shows the best of three runs",
                    source.name
                );
                Some((rows, told))
            }
            None => None,
        }
    });
    let seen = of_sources.map(|(rows, evidence)| Seen {
        certainty: Certainty::Confirmed,
        rows,
        share: None,
        evidence,
    });
    seen.collect()
}

/// The words that say it, where they stand.
fn said(source: &Source) -> Option<String> {
    let text = source.text.to_lowercase();
    let all: Vec<&str> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
        .collect();
    let at = all.windows(3).position(|three| {
        let is_choice = three[2].parse::<u32>().is_ok() || CHOICES.contains(&three[2]);
        SUPERLATIVES.contains(&three[0]) && three[1] == "of" && is_choice
    })?;
    Some(all[at..at + 3].join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed::testdata::{AB, evidence, of, printed};

    #[test]
    fn other_words_are_silent() {
        assert_eq!(look(&printed(AB)), []);
        let text =
            format!("We take the median of five runs, which is the best of what we know.\n{AB}");
        assert_eq!(look(&printed(&text)), []);
    }

    #[test]
    fn what_the_text_says_is_quoted() {
        let text = format!("Each test ran 5 times; shown is the best of five.\n{AB}");
        assert_eq!(evidence(&look(&printed(&text))), ["paste: the text says \"best of five\""]);
    }

    #[test]
    fn the_board_is_known_to() {
        let row = r#"[{"framework": "a", "rps": 100000, "avg_latency": "1.00ms", "p99_latency": "3.1ms"}]"#;
        let told = "x.json: 1 row of a board that shows the best of three runs";
        assert_eq!(evidence(&look(&of(&[("x.json", row)]))), [told]);
    }
}
