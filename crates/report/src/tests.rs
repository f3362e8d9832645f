//! What holds for every output, over every made-up run. Start reading at [`hostile_runs`].

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use record::{BoundCause, Ending, Finding, RunRecord, Verdict};

use crate::cells::cells;
use crate::{Detail, OUTPUTS, Options, Render, contenders, output, pairs, testdata, wording};

const MARKUP: &str = "<script>alert('1')</script>\"&\u{1b}[2J\u{0}|`*_";

/// Runs that a careless output would stumble over, each with a name for a failing test; made once.
fn hostile_runs() -> &'static [(&'static str, RunRecord)] {
    static RUNS: LazyLock<Vec<(&str, RunRecord)>> = LazyLock::new(make_hostile_runs);
    &RUNS
}

fn make_hostile_runs() -> Vec<(&'static str, RunRecord)> {
    let mut incomplete = testdata::run_with(3);
    incomplete.ending = Ending::Incomplete { reason: "interrupted (Ctrl-C)".to_owned() };
    let mut nobody = testdata::all_failed();
    (nobody.plan.contenders, nobody.contenders, nobody.visits) = (vec![], vec![], vec![]);
    vec![
        ("eight contenders", testdata::run()),
        ("two contenders", testdata::run_with(2)),
        ("three cells", testdata::celled()),
        ("twenty cells", testdata::grid()),
        ("twelve contenders", testdata::run_with(12)),
        ("all visits failed", testdata::all_failed()),
        ("no contender at all", nobody),
        ("incomplete", incomplete),
        ("not finite", not_finite()),
        ("huge and tiny", huge_and_tiny()),
        ("markup in every text", markup_everywhere()),
        ("long names", long_names()),
    ]
}

/// A run with every number that a file could contain and that is not finite.
fn not_finite() -> RunRecord {
    let mut record = testdata::run_with(4);
    record.seconds = f64::NAN;
    for (index, visit) in record.visits.iter_mut().enumerate() {
        visit.rate_per_s = Some([f64::NAN, f64::INFINITY, 0.0, -1.0][index % 4]);
    }
    for (index, pair) in record.verdicts.iter_mut().enumerate() {
        let bad = [f64::NAN, f64::INFINITY, 0.0][index % 3];
        pair.verdict = Verdict::Ratio { ratio: bad, low: 0.0, high: f64::INFINITY };
        if let Some(estimate) = &mut pair.estimate {
            (estimate.ratio, estimate.low, estimate.high) = (bad, bad, bad);
        }
    }
    record
}

fn huge_and_tiny() -> RunRecord {
    let mut record = testdata::run_with(5);
    for (index, visit) in record.visits.iter_mut().enumerate() {
        visit.rate_per_s = Some([1e-9, 1e15, 3.0][index % 3]);
    }
    for (index, pair) in record.verdicts.iter_mut().enumerate() {
        let ratio = [1e-12, 1e12, 1.000_000_1][index % 3];
        let (low, high) = (ratio * 0.999, ratio * 1.001);
        pair.verdict = match index % 4 {
            0 => Verdict::AtLeast { ratio, cause: BoundCause::Ceiling },
            1 => Verdict::Withheld { reason: "a reason that takes many words ".repeat(12) },
            _ => Verdict::Ratio { ratio, low, high },
        };
    }
    record
}

fn markup_everywhere() -> RunRecord {
    let mut record = testdata::run_with(3);
    let hostile = || MARKUP.to_owned();
    record.plan.name = hostile();
    record.plan.question = hostile();
    (record.joust, record.started) = (hostile(), hostile());
    record.facts.named.insert(hostile(), hostile());
    for (index, contender) in record.plan.contenders.iter_mut().enumerate() {
        contender.name = format!("{MARKUP}{index}");
        contender.settings.insert(hostile(), record::SettingValue::Text(hostile()));
    }
    for facts in &mut record.contenders {
        (facts.version, facts.command, facts.head) = (hostile(), hostile(), hostile());
        facts.files.push((hostile(), hostile()));
        facts.parity.insert(hostile(), hostile());
        facts.body_sha256 = hostile();
    }
    for skipped in &mut record.skipped {
        (skipped.name, skipped.reason, skipped.remedy) = (hostile(), hostile(), hostile());
    }
    for Finding { check, evidence, meaning, remedy, .. } in &mut record.findings {
        (*check, *evidence, *meaning, *remedy) = (hostile(), hostile(), hostile(), hostile());
    }
    let failed = record::VisitState::Failed { reason: hostile(), log_tail: hostile() };
    record.visits[0].state = failed;
    record.verdicts[0].verdict = Verdict::Withheld { reason: hostile() };
    record
}

fn long_names() -> RunRecord {
    let mut record = testdata::run_with(7);
    for (index, contender) in record.plan.contenders.iter_mut().enumerate() {
        contender.name = format!("{index}{}", "-an-endless-name".repeat(8));
    }
    record
}

fn render(name: &str, record: &RunRecord) -> String {
    render_with(name, record, &Options::default())
}

fn render_with(name: &str, record: &RunRecord, options: &Options) -> String {
    let output = output(name).expect("a known output");
    let bytes = output.run.as_ref().expect("it shows runs").bytes(record, options);
    String::from_utf8(bytes).expect("it is text")
}

#[test]
fn names_and_extensions_are_unique() {
    let names: BTreeSet<&str> = OUTPUTS.iter().map(|output| output.name).collect();
    let extensions: BTreeSet<&str> = OUTPUTS.iter().map(|output| output.extension).collect();
    assert_eq!((names.len(), extensions.len()), (OUTPUTS.len(), OUTPUTS.len()));
}

#[test]
fn no_output_prints_what_is_not_a_number() {
    for (which, record) in hostile_runs() {
        for output in OUTPUTS.iter().filter(|one| matches!(one.run, Some(Render::Text(_)))) {
            let bytes = render(output.name, record);
            assert!(bytes.ends_with('\n'), "{which} as {}", output.name);
            let words = bytes.split(|c: char| !c.is_ascii_alphanumeric());
            let bad: Vec<&str> =
                words.filter(|w| ["NaN", "inf", "infx", "NaNx"].contains(w)).collect();
            assert!(bad.is_empty(), "{which} as {}: {bad:?}\n{bytes}", output.name);
        }
    }
}

#[test]
fn text_keeps_within_the_terminal() {
    for (which, record) in hostile_runs() {
        for width in [40, 60, 80, 120, 200] {
            for (colour, unicode) in [(false, false), (true, true)] {
                for detail in [Detail::Short, Detail::Full] {
                    let options = Options { width, colour, unicode, detail };
                    fits(which, record, &options);
                }
            }
        }
    }
}

fn fits(which: &str, record: &RunRecord, options: &Options) {
    let text = render_with("text", record, options);
    for line in text.lines() {
        let shown = crate::columns::width(&without_colour(line));
        assert!(shown <= options.width, "{which} at {}: {line}\n{text}", options.width);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_line_is_wider_than_the_terminal(
        width in 40usize..=200,
        (unicode, is_full) in any::<(bool, bool)>(),
        names in prop::collection::vec(".{0,60}", 4),
        word in ".{0,80}",
    ) {
        let mut run = testdata::run_with(4);
        run.plan.question = word.clone();
        for (contender, name) in run.plan.contenders.iter_mut().zip(names) {
            contender.name = name;
        }
        for finding in &mut run.findings {
            finding.evidence = word.clone();
        }
        let detail = if is_full { Detail::Full } else { Detail::Short };
        fits("any name", &run, &Options { width, unicode, colour: false, detail });
    }
}

#[test]
fn text_without_unicode_is_drawn_in_ascii() {
    for run in [testdata::run(), testdata::grid(), testdata::all_failed()] {
        let options = Options { unicode: false, detail: Detail::Full, ..Options::default() };
        let text = render_with("text", &run, &options);
        let other: String = text.chars().filter(|c| !c.is_ascii()).collect();
        assert_eq!(other, "");
    }
}

/// A run of 50 contenders, one of whose visits failed, was skipped or is missing.
fn fifty() -> RunRecord {
    let mut run = testdata::run_with(50);
    run.contenders[3].skipped_in = Some(1);
    run
}

#[test]
fn a_chart_shows_the_best_of_fifty_and_counts_the_others() {
    let run = fifty();
    let text = render("text", &run);
    assert!(text.contains("  and 26 more, see the table below"), "{text}");
    for width in [40, 60, 80, 120] {
        for unicode in [false, true] {
            fits("fifty", &run, &Options { width, unicode, ..Options::default() });
        }
    }
}

#[test]
fn narrow_text_of_a_fixed_run() {
    let narrow = |width, unicode| {
        let options = Options { width, unicode, ..Options::default() };
        render_with("text", &testdata::run_with(3), &options)
    };
    insta::assert_snapshot!("text_at_40", narrow(40, true));
    insta::assert_snapshot!("text_at_60_in_ascii", narrow(60, false));
    insta::assert_snapshot!("text_at_120", narrow(120, true));
}

#[test]
fn wide_names_are_aligned_by_columns() {
    let mut run = testdata::run_with(3);
    run.plan.contenders[0].name = "\u{670d}\u{52a1}\u{5668}".repeat(9);
    run.plan.contenders[1].name = "\u{670d}\u{52a1}".to_owned();
    let options = Options { width: 80, ..Options::default() };
    insta::assert_snapshot!("text_of_wide_names", render_with("text", &run, &options));
}

#[test]
fn a_run_that_its_user_stopped_says_so_and_who_was_skipped() {
    let mut run = testdata::run_with(3);
    run.ending = Ending::Stopped { blocks: 4 };
    run.contenders[1].skipped_in = Some(2);
    for name in ["text", "markdown", "html"] {
        let page = render(name, &run).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.contains("stopped by the user after block 4"), "{name}: {page}");
        assert!(page.contains("by the user in block 3"), "{name}: {page}");
    }
    let text = render("text", &run);
    assert!(text.contains("skipped by the user: joust prefork in block 3"), "{text}");
}

#[test]
fn text_from_outside_does_not_command_the_terminal() {
    let text = render("text", &markup_everywhere());
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
}

#[test]
fn an_incomplete_run_says_so_before_anything_else() {
    let mut record = testdata::run_with(3);
    record.ending = Ending::Incomplete { reason: "interrupted (Ctrl-C)".to_owned() };
    let text = render("text", &record);
    let second = text.lines().nth(1).unwrap();
    assert_eq!(second, "  incomplete: interrupted (Ctrl-C); based on 12 visits");
    for name in ["markdown", "html", "picture"] {
        let bytes = render(name, &record);
        let alarm = bytes.find("incomplete: interrupted").expect("it says so");
        let after = bytes.find("joust reactor").expect("it names a contender");
        let is_title = name == "picture";
        assert!(alarm < after || is_title, "{name}");
    }
}

#[test]
fn page_and_picture_are_well_formed() {
    for (which, record) in hostile_runs() {
        for name in ["html", "picture"] {
            let bytes = without_scripts(&render(name, record));
            well_formed(&bytes).unwrap_or_else(|error| panic!("{which} as {name}: {error}"));
        }
    }
}

#[test]
fn the_page_asks_for_nothing_outside_of_itself() {
    for (which, record) in hostile_runs() {
        for name in ["html", "picture"] {
            let bytes = without_scripts(&render(name, record));
            // A link within the page makes no request.
            let outward = |tag: &&str| !tag.contains(" href=\"#");
            for tag in tags(&bytes).into_iter().filter(outward) {
                for asking in [" src=", " href=", "xlink:", "srcset=", " data=", "<script", "<link"]
                {
                    assert!(!tag.contains(asking), "{which} as {name}: {tag}");
                }
            }
            for asking in ["@import", "url(", "@font-face"] {
                assert!(!style(&bytes).contains(asking), "{which} as {name}: {asking}");
            }
        }
    }
}

#[test]
fn markup_in_a_name_stays_text() {
    for name in ["html", "markdown", "picture"] {
        let bytes = render(name, &markup_everywhere());
        let bytes = if name == "html" { without_scripts(&bytes) } else { bytes };
        assert!(!without_code(&bytes).contains("<script"), "{name}");
        assert!(bytes.contains("&lt;script"), "{name} lost the name");
        assert!(!bytes.chars().any(|c| c.is_control() && c != '\n'), "{name}");
    }
}

#[test]
fn the_page_and_the_text_give_the_same_figures() {
    for record in [testdata::run(), testdata::run_with(2)] {
        let (html, text) = (unescaped(&render("html", &record)), render("text", &record));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let table = contenders::table(&cells(&record)[0]);
        for cell in table.rows.iter().flat_map(|row| row.cells()).map(|cell| &cell.text) {
            assert!(html.contains(&format!(">{cell}<")), "`{cell}` is not in the page");
            assert!(text.contains(cell.as_str()), "`{cell}` is not in the text\n{text}");
        }
        for reading in record.verdicts.iter().map(wording::Reading::new) {
            let said = pairs::said(&reading);
            assert!(html.contains(&format!("<td>{said}</td>")), "`{said}` is not in the page");
            let ratio = reading.ratio_and_interval().expect("every made-up pair has an estimate");
            assert!(html.contains(&ratio), "`{ratio}` is not in the page");
        }
    }
}

#[test]
fn evidence_and_meaning_of_a_finding_do_not_run_into_one_sentence() {
    let record = testdata::run();
    let page = unescaped(&render("html", &record));
    for finding in &record.findings {
        assert!(page.contains(&format!("<p>{}</p>", finding.evidence)), "{}", finding.evidence);
        let meaning = format!("<p><b>Why it misleads</b> {}</p>", finding.meaning);
        assert!(page.contains(&meaning), "{meaning}");
    }
}

#[test]
fn text_of_a_fixed_run() {
    insta::assert_snapshot!(render("text", &testdata::run()));
}

#[test]
fn text_of_a_run_that_failed() {
    insta::assert_snapshot!(render("text", &testdata::all_failed()));
}

#[test]
fn markdown_of_a_fixed_run() {
    insta::assert_snapshot!(render("markdown", &testdata::run_with(4)));
}

fn without_colour(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest)).collect::<String>()
}

/// Without code spans and indented code, which Markdown shows as they are.
fn without_code(markdown: &str) -> String {
    let lines = markdown.lines().filter(|line| !line.starts_with("      "));
    lines.flat_map(|line| line.split('`').step_by(2)).collect()
}

fn unescaped(html: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#x2f;", "/"),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&quot;", "\""),
    ];
    let all = entities.iter().fold(html.to_owned(), |text, (from, to)| text.replace(from, to));
    all.replace("&amp;", "&")
}

/// A page without its four scripts, the data among them: what they may do, its policy says.
fn without_scripts(page: &str) -> String {
    let parts: Vec<&str> = page.split("<script").collect();
    if parts.len() > 1 {
        assert_eq!(parts.len(), 5, "a name made a script");
    }
    let rest = |part: &&str| part.split_once("</script>").expect("a script ends").1.to_owned();
    std::iter::once(parts[0].to_owned()).chain(parts[1..].iter().map(rest)).collect()
}

fn style(page: &str) -> &str {
    let (_, after) = page.split_once("<style>").expect("a style sheet");
    after.split_once("</style>").expect("an end of it").0
}

/// Every tag, from `<` to `>`, the style sheet's content left out.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).filter_map(|part| Some(&part[..=part.find('>')?])).collect()
}

/// A check of what a parser of XML would insist on: tags nest and close, attributes are quoted, ids
/// are unique, no bare ampersand.
fn well_formed(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut ids = BTreeSet::new();
    for part in page.split('<').skip(1) {
        let (tag, text) = part.split_once('>').ok_or(format!("`<` without `>`: {part}"))?;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.starts_with('!') {
            continue;
        } else if tag.starts_with('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("</{name}> closes {last:?}"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        if tag.matches('"').count() % 2 != 0 {
            return Err(format!("odd quotes in <{tag}>"));
        }
        if let Some((_, id)) = tag.split_once(" id=\"") {
            let id = id.split('"').next().unwrap_or_default();
            if !ids.insert(id) {
                return Err(format!("id {id} twice"));
            }
        }
        let after_ampersand = text.split('&').skip(1);
        for entity in after_ampersand.filter(|_| name != "style") {
            let known = ["lt;", "gt;", "amp;", "quot;", "#39;", "#x27;", "#x2f;"];
            if !known.iter().any(|k| entity.starts_with(k)) {
                return Err(format!("bare ampersand: &{entity}"));
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("not closed: {open:?}")) }
}

#[test]
fn cells_are_shown_one_by_one_and_printed_figures_beside_todays() {
    let run = testdata::celled();
    for name in ["text", "markdown", "html"] {
        let options = Options { width: 200, detail: Detail::Full, ..Options::default() };
        let page = render_with(name, &run, &options);
        let cells: Vec<usize> =
            ["connections=1,", "connections=1 ", "connections=1<", "connections=1:"]
                .iter()
                .map(|text| page.matches(text).count())
                .collect();
        assert!(cells.iter().sum::<usize>() > 0, "{name}");
        for part in [
            "connections=10",
            "connections=100",
            "20.5",
            "2.00x",
            "its second version",
            "Scalability",
        ] {
            assert!(page.contains(part), "{name} has no {part}");
        }
    }
    let third = &run.plan.contenders[2].name;
    let last = &cells(&run)[2];
    for table in crate::extras::of_cell(last) {
        let cells = table.rows.iter().flat_map(|row| row.cells());
        assert!(cells.clone().all(|cell| cell.text != *third), "{third} takes no part there");
    }
    let page = render("markdown", &run);
    // 99 000 in the log over 100 000 claimed; 600 ms over 99 000 requests.
    for part in ["0.9900x", "6.06", "| ab |", "1 % at 41.5", "83 %", "1.7 %", "98"] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    let csv = render("csv", &run);
    let last = csv.lines().filter(|line| line.starts_with("connections=100,")).count();
    assert_eq!(last, run.visits.iter().filter(|visit| visit.cell == 2).count());
}

#[test]
fn text_of_several_cells() {
    insta::assert_snapshot!(render("text", &testdata::celled()));
}

/// Two screens of a usual terminal: two lines a cell, and what was seen and run.
#[test]
fn a_short_text_of_twenty_cells_can_be_read() {
    let run = testdata::grid();
    let text = render("text", &run);
    assert!(text.lines().count() <= 90, "{}\n{text}", text.lines().count());
    let full = Options { detail: Detail::Full, ..Options::default() };
    let full = render_with("text", &run, &full);
    for cell in &run.plan.cells {
        assert_eq!(text.matches(&format!("  {}: ", cell.name)).count(), 1, "{text}");
        assert!(full.contains(&format!("Cell {}", cell.name)), "{}", cell.name);
    }
    for check in ["generator_limit", "two_clusters"] {
        let heading = format!("  {check} (");
        assert_eq!(text.matches(&heading).count(), 1, "once for all cells: {text}");
        assert_eq!(full.matches(&heading).count(), 1, "{full}");
    }
    assert!(text.contains("joust reactor at every cell"), "{text}");
    let seen = run.findings[0].evidence.as_str();
    let unwrapped = full.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(unwrapped.matches(seen).count(), 20, "each cell has its evidence in full");
}

#[test]
fn requests_that_were_sent_once_more_are_shown_in_every_output_and_only_where_there_are_any() {
    let mut run = testdata::run();
    for output in ["text", "markdown", "html"] {
        assert!(!render(output, &run).contains("Retried requests"), "{output}");
    }
    let loads = run.visits.iter_mut().filter(|one| one.contender == 1);
    loads.filter_map(|one| one.load.as_mut()).for_each(|load| load.requests.retried = 7);
    for output in ["text", "markdown", "html"] {
        let shown = render(output, &run);
        assert!(shown.contains("Retried requests"), "{output}");
    }
}

#[test]
fn a_short_text_hides_nothing_that_limits_an_answer() {
    let mut run = testdata::celled();
    run.ending = Ending::Incomplete { reason: "interrupted (Ctrl-C)".to_owned() };
    let at_ten = |one: &&mut record::Visit| one.cell == 1 && one.contender == 1;
    let visit = run.visits.iter_mut().find(at_ten).unwrap();
    let requests = &mut visit.load.as_mut().unwrap().requests;
    requests.failed = 7;
    let lost = run.visits.iter_mut().rev().find(at_ten).unwrap();
    let (reason, log_tail) = ("it hung".to_owned(), "last words".to_owned());
    lost.state = record::VisitState::Failed { reason, log_tail };
    for pair in run.verdicts.iter_mut().filter(|pair| pair.cell == 2) {
        pair.verdict = Verdict::Withheld { reason: "bodies differ".to_owned() };
    }
    let text = render("text", &run).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "incomplete: interrupted",
        "generator_limit makes throughput a bound in 1 of 3 cells",
        "(>=85,238)",
        ">= marks a lower bound",
        "requests failed: joust prefork 7",
        "1 of 12 visits failed",
        "at connections=10: it hung",
        "last words",
        "withheld: bodies differ",
        "two_clusters (suspected; joust prefork at connections=10)",
        "Not shown here: the figures, pairs and quantiles of each of 3 cells",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let order = ["incomplete:", "The doctor:", "Findings", "Answer", "Printed elsewhere", "Run "];
    let places: Vec<Option<usize>> = order.iter().map(|part| text.find(part)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
}

#[test]
fn the_contents_of_the_page_lead_to_its_sections() {
    let page = render("html", &testdata::grid());
    let targets: Vec<&str> =
        page.split(" href=\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(targets.len() >= 2 * 20 + 4, "{targets:?}");
    for target in targets {
        assert!(page.contains(&format!(" id=\"{target}\"")), "{target}");
    }
}
