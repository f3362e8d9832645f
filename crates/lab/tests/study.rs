//! Study files: what is right becomes a whole plan, and what is wrong is pointed at.

use std::collections::{BTreeMap, BTreeSet};

use joust_lab::study::{self, Form, StudyError};
use record::{Bodies, Metric, SettingValue};
use units::{Bytes, Nanos, Share};

const GOOD: &str = r#"name = "two-loops"
question = "Which event loop is faster?"
metrics = ["p99", "throughput"]
margin = "5%"
budget = "2m"
seed = 7

[workload]
page = "3KB"
connections = 100
keep_alive = false
threads = 2
timeout = "3s"

[blocks]
min = 10
max = 20
half_width = 0.03

[visit]
warm_up = "500ms"
measure = "2s"

[[contender]]
name = "nginx"
server = "nginx"
settings = { worker_processes = 2 }

[[contender]]
name = "lighttpd"
server = "lighttpd"
"#;

fn refused(text: &str) -> StudyError {
    study::parse("my.toml", text, Form::Full).expect_err(text)
}

#[test]
fn every_key_reaches_the_plan() {
    let plan = study::parse("my.toml", GOOD, Form::Full).unwrap();
    assert_eq!((plan.name.as_str(), plan.seed), ("two-loops", 7));
    assert_eq!(plan.question, "Which event loop is faster?");
    assert_eq!(plan.metrics, [Metric::P99, Metric::Throughput]);
    assert_eq!((plan.margin, plan.budget), (Share(0.05), Nanos::from_secs(120)));
    let work = &plan.cells[0].workload;
    assert_eq!((work.page, work.connections, work.threads), (Bytes(3000), 100, 2));
    assert_eq!((work.keep_alive, work.timeout), (false, Nanos::from_secs(3)));
    let blocks = &plan.blocks;
    assert_eq!((blocks.min, blocks.max, blocks.half_width), (10, 20, Share(0.03)));
    assert_eq!(plan.visit.warm_up, Nanos::from_millis(500));
    assert_eq!(plan.visit.measure, Nanos::from_secs(2));
    let servers: Vec<&str> = plan.contenders.iter().map(|c| c.server.as_str()).collect();
    assert_eq!(servers, ["nginx", "lighttpd"]);
    assert_eq!(plan.contenders[0].settings["worker_processes"], SettingValue::Number(2));
}

#[test]
fn bodies_are_verified_unless_a_study_says_off() {
    for (typed, expected) in [
        ("", Bodies::Sample),
        ("verify = \"auto\"", Bodies::Sample),
        ("verify = \"off\"", Bodies::None),
        ("verify = \"10%\"", Bodies::Hash(0.1)),
        ("verify = 1", Bodies::Hash(1.0)),
    ] {
        let text = GOOD.replace("threads = 2", &format!("threads = 2\n{typed}"));
        let plan = study::parse("my.toml", &text, Form::Full).unwrap();
        assert_eq!(plan.cells[0].workload.verify, expected, "{typed}");
    }
}

#[test]
fn the_built_in_study_is_right() {
    let plan = study::quick();
    assert_eq!(plan.name, "quick");
    assert_eq!(
        (plan.cells[0].workload.page, plan.cells[0].workload.connections),
        (Bytes(3361), 64)
    );
    assert_eq!(plan.metrics[0], Metric::Throughput);
    assert_eq!(plan.contenders.len(), 10);
    assert!(plan.budget < Nanos::from_secs(90));
}

/// A mistake: what is replaced in the good study by what, the line and column that must be pointed
/// at, and words that must be in the message or its help.
struct Mistake {
    good: &'static str,
    bad: &'static str,
    place: (usize, usize),
    says: &'static [&'static str],
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        good: "connections = 100",
        bad: "conections = 100",
        place: (10, 1),
        says: &["unknown key `conections` in [workload]", "did you mean `connections`"],
    },
    Mistake {
        good: "connections = 100",
        bad: "connections = 100\nverify = \"sometimes\"",
        place: (11, 10),
        says: &["`verify` is", "\"off\", \"auto\"", "\"1%\""],
    },
    Mistake {
        good: "connections = 100",
        bad: "connections = 100\nverify = 0",
        place: (11, 10),
        says: &["`verify` is", "above 0 and at most 1"],
    },
    Mistake {
        good: "connections = 100",
        bad: "connections = 100\nrate = 0",
        place: (11, 8),
        says: &["`rate`", "no request would be due"],
    },
    Mistake {
        good: "connections = 100",
        bad: "connections = 100\nrate = \"99999999999/s\"",
        place: (11, 8),
        says: &["`rate`", "at most"],
    },
    Mistake {
        good: "timeout = \"3s\"",
        bad: "timeout = \"3s\"\n[[axis]]\nover = \"page\"\nvalues = [\"1KB\", \"900GB\"]",
        place: (16, 18),
        says: &["`page` must be at most"],
    },
    Mistake {
        good: "seed = 7",
        bad: "sede = 7",
        place: (6, 1),
        says: &["`sede`", "did you mean `seed`"],
    },
    Mistake {
        good: "keep_alive = false",
        bad: "keep_alive = \"no\"",
        place: (11, 14),
        says: &["`keep_alive` is \"no\"", "true or false"],
    },
    Mistake {
        good: "timeout = \"3s\"",
        bad: "timeout = 3",
        place: (13, 11),
        says: &["`timeout`", "10s"],
    },
    Mistake { good: "timeout = \"3s\"", bad: "timeout = \"0s\"", place: (13, 11), says: &["zero"] },
    Mistake {
        good: "page = \"3KB\"",
        bad: "page = \"3 pages\"",
        place: (9, 8),
        says: &["3 pages", "36.9KB"],
    },
    Mistake {
        good: "connections = 100",
        bad: "connections = 0",
        place: (10, 15),
        says: &["from 1 to 60000"],
    },
    Mistake {
        good: "threads = 2",
        bad: "threads = 200",
        place: (12, 11),
        says: &["more threads (200) than connections (100)"],
    },
    Mistake {
        good: "max = 20",
        bad: "max = 5",
        place: (17, 7),
        says: &["`max` must be at least `min` (10), got 5"],
    },
    Mistake {
        good: "half_width = 0.03",
        bad: "half_width = 0",
        place: (18, 14),
        says: &["never ends"],
    },
    Mistake {
        good: "measure = \"2s\"",
        bad: "measure = \"20ms\"",
        place: (22, 11),
        says: &["shorter than 100ms"],
    },
    Mistake {
        good: "margin = \"5%\"",
        bad: "margin = \"80%\"",
        place: (4, 10),
        says: &["at most 50 %"],
    },
    Mistake {
        good: "[\"p99\", \"throughput\"]",
        bad: "[\"p99\", \"troughput\"]",
        place: (3, 19),
        says: &["no metric `troughput`", "did you mean `throughput`"],
    },
    Mistake {
        good: "[\"p99\", \"throughput\"]",
        bad: "[\"p99\", \"p99\"]",
        place: (3, 19),
        says: &["named twice"],
    },
    Mistake {
        good: "budget = \"2m\"",
        bad: "budget = \"2s\"",
        place: (1, 1),
        says: &["does not hold two visits of 2.5s"],
    },
    Mistake {
        good: "name = \"two-loops\"",
        bad: "name = \"../loops\"",
        place: (1, 8),
        says: &["`name` must be letters, digits, hyphens and underscores"],
    },
    Mistake {
        good: "name = \"lighttpd\"",
        bad: "name = \"nginx\"",
        place: (30, 8),
        says: &["must be unique and not empty, got `nginx`"],
    },
    Mistake {
        good: "server = \"lighttpd\"",
        bad: "server = \"lighthttpd\"",
        place: (31, 10),
        says: &["lighthttpd", "did you mean `lighttpd`"],
    },
    Mistake {
        good: "worker_processes = 2",
        bad: "worker_proceses = 2",
        place: (27, 14),
        says: &["contender `nginx`", "worker_proceses", "worker_processes"],
    },
    Mistake {
        good: "worker_processes = 2",
        bad: "worker_processes = [2]",
        place: (27, 33),
        says: &["must be a number, a text or true/false"],
    },
    Mistake {
        good: "server = \"lighttpd\"\n",
        bad: "",
        place: (29, 1),
        says: &["[[contender]] has no `server`", "server = \"nginx\""],
    },
    Mistake {
        good: "[[contender]]\nname = \"lighttpd\"\nserver = \"lighttpd\"\n",
        bad: "",
        place: (1, 1),
        says: &["at least two contenders, got 1"],
    },
    Mistake {
        good: "connections = 100\n",
        bad: "",
        place: (8, 1),
        says: &["[workload] has no `connections`", "connections = 64"],
    },
    Mistake {
        good: "question = \"Which event loop is faster?\"\n",
        bad: "",
        place: (1, 1),
        says: &["no `question`"],
    },
    Mistake {
        good: "seed = 7",
        bad: "declared = [\"workers: as they come\", \"sendfil\"]",
        place: (6, 38),
        says: &["must name a parity switch, got `sendfil`", "did you mean `sendfile`?"],
    },
    Mistake {
        good: "seed = 7",
        bad: "axis = [{ over = \"connectoins\", values = [1, 2] }]",
        place: (6, 18),
        says: &["applies to no contender", "did you mean `connections`?"],
    },
    Mistake {
        good: "seed = 7",
        bad: "axis = [{ over = \"worker_conections\", values = [64, 128] }]",
        place: (6, 18),
        says: &["applies to no contender", "did you mean `worker_connections`?"],
    },
    Mistake {
        good: "seed = 7",
        bad: "declared = [\"workers because they differ\"]",
        place: (6, 13),
        says: &["put a colon before the reason: \"workers: why\""],
    },
    Mistake {
        good: "metrics = [\"p99\", \"throughput\"]",
        bad: "metrics = []",
        place: (3, 11),
        says: &["`metrics` must name", "leave it out for all"],
    },
    // The workload closes connections, but not lighttpd's form of it.
    Mistake {
        good: "server = \"lighttpd\"",
        bad: "server = \"lighttpd\"\nwork = { keep_alive = true }\n[search]\ngoals = \"connect.p99<1s\"",
        place: (34, 9),
        says: &["a search cannot have the goal connect.p99<1s", "`keep_alive = false`"],
    },
    Mistake { good: "seed = 7", bad: "seed = ", place: (6, 8), says: &[] },
    Mistake { good: "seed = 7", bad: "margin = 0.1", place: (6, 1), says: &["duplicate key"] },
];

#[test]
fn a_mistake_is_pointed_at_and_the_way_out_named() {
    for Mistake { good, bad, place, says } in MISTAKES {
        assert!(GOOD.contains(good), "{good}");
        let error = refused(&GOOD.replacen(good, bad, 1));
        assert_eq!(error.file, "my.toml");
        assert_eq!(error.place(), *place, "{bad}: {error}");
        let said = format!("{error} {}", error.help.as_deref().unwrap_or_default());
        for words in *says {
            assert!(said.contains(words), "{bad}: `{words}` is not in: {said}");
        }
    }
}

#[test]
fn a_name_fits_into_a_folder_s() {
    let named = |length: usize| GOOD.replace("two-loops", &"a".repeat(length));
    assert!(study::parse("my.toml", &named(100), Form::Full).is_ok());
    let error = refused(&named(101));
    assert_eq!(error.message, "a name of 101 characters is too long");
    assert!(error.help.is_some_and(|help| help.contains("at most 100")));
}

#[test]
fn an_error_of_the_lab_carries_file_line_and_column() {
    let error = refused(&GOOD.replacen("seed", "sede", 1));
    let text = joust_lab::LabError::from(error).to_string();
    assert!(text.starts_with("my.toml:6:1: unknown key `sede`"), "{text}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = study::read("no/such/study.toml".as_ref(), Form::Full).unwrap_err().to_string();
    assert!(error.contains("no/such/study.toml"), "{error}");
}

const AXES: &str = r#"
name = "axes"
question = "?"
reference = "threaded max-thread=8"

[workload]
page = "3KB"

[[axis]]
over = "connections"
values = [10, 100, 1000]
with = { threads = [1, 2, 4] }
short = [10, 1000]

[[axis]]
over = "keep_alive"
values = [false, true]

[[axis]]
over = "max-thread"
values = [4, 8]
with = { max-request = [40, 80] }
of = ["threaded"]

[[contender]]
name = "one thread"
server = "joust"
settings = { model = "pool", max-thread = 1 }
only = { keep_alive = [false] }

[[contender]]
name = "threaded"
server = "joust"
settings = { model = "pool" }

[contender.work]
timeout = "9s"

[published]
source = "a paper"
machine = "a machine"
claim = "eight is better"
figures = [["threaded max-thread=4", "connections=10, keep_alive=true", 12.5],
           ["one thread", "connections=100, keep_alive=false", 3]]

[short]
budget = "4m"
measure = "200ms"
min = 3
"#;

#[test]
fn axes_are_crossed_and_what_goes_along_is_paired() {
    let plan = study::parse("my.toml", AXES, Form::Full).unwrap();
    let names: Vec<&str> = plan.cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "connections=10, keep_alive=false",
            "connections=10, keep_alive=true",
            "connections=100, keep_alive=false",
            "connections=100, keep_alive=true",
            "connections=1000, keep_alive=false",
            "connections=1000, keep_alive=true",
        ]
    );
    let names: Vec<&str> = plan.contenders.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["one thread", "threaded max-thread=4", "threaded max-thread=8"]);
    assert_eq!(plan.contenders[0].cells, [0, 2, 4]);
    let settings = &plan.contenders[2].settings;
    assert_eq!(settings["max-request"], record::SettingValue::Number(80));
    let work = plan.work(4, 2);
    assert_eq!((work.connections, work.threads, work.keep_alive), (1000, 4, false));
    assert_eq!((work.timeout, plan.work(4, 0).timeout), (Nanos::from_secs(9), Nanos::from_secs(5)));
    assert_eq!((plan.pairs(0), plan.pairs(1)), (vec![(0, 2), (1, 2)], vec![(1, 2)]));
    assert_eq!(plan.visits_per_block(), 3 * 3 + 3 * 2);
    let figures = &plan.published.unwrap().figures;
    let places: Vec<_> = figures.iter().map(|f| (f.contender, f.cell, f.value)).collect();
    assert_eq!(places, [(1, 1, 12.5), (0, 2, 3.0)]);
}

#[test]
fn the_short_form_keeps_the_values_and_times_that_it_names() {
    let plan = study::parse("my.toml", AXES, Form::Short).unwrap();
    assert_eq!(plan.cells.len(), 4);
    assert_eq!(plan.cells[3].workload.connections, 1000);
    assert_eq!((plan.budget, plan.visit.measure), (Nanos::from_secs(240), Nanos::from_millis(200)));
    assert_eq!((plan.blocks.min, plan.blocks.max), (3, 40));
    assert_eq!(plan.published.unwrap().figures.len(), 1, "the figure of a cell that is left out");
}

#[test]
fn what_is_wrong_with_an_axis_is_said_where_it_stands() {
    let cases: &[(&str, &str, &str)] = &[
        ("over = \"keep_alive\"", "over = \"conections\"", "must name an axis that makes cells"),
        ("threads = [1, 2, 4]", "threads = [1, 2]", "`threads` has 2 values, `connections` has 3"),
        ("short = [10, 1000]", "short = [10, 11]", "`11` is not one of the axis' values"),
        ("values = [false, true]", "values = [false, 3]", "must be true or false"),
        ("values = [false, true]", "values = [false, false]", "appears twice"),
        (
            "only = { keep_alive = [false] }",
            "only = { rate = [1] }",
            "must name an axis that makes cells, got `rate`",
        ),
        (
            "only = { keep_alive = [false] }",
            "only = { keep_alive = [3] }",
            "leaves this contender without a cell",
        ),
        ("only = { keep_alive = [false] }", "only = [3]", "must be a table"),
        ("of = [\"threaded\"]", "of = [\"threadd\"]", "applies to no contender"),
        ("of = [\"threaded\"]", "as = \"cells\"", "a setting of a server makes contenders"),
        (
            "reference = \"threaded max-thread=8\"",
            "reference = \"threaded\"",
            "must name a contender, got `threaded`",
        ),
        (
            "\"one thread\", \"connections=100,",
            "\"one thread\", \"connections=99,",
            "there is no cell",
        ),
        ("with = { threads = [1, 2, 4] }", "with = { threads = [11, 2, 4] }", "more threads (11)"),
        (
            "values = [4, 8]",
            "values = [4, 4.5]",
            "`max-thread` must be a number, a text or true/false",
        ),
    ];
    for (from, to, says) in cases {
        assert!(AXES.contains(from), "{from}");
        let error = study::parse("my.toml", &AXES.replacen(from, to, 1), Form::Full).expect_err(to);
        let text = format!("{error} {}", error.help.clone().unwrap_or_default());
        assert!(text.contains(says), "{to}: {text}");
    }
}

const PROGRAM: &str = r#"
name = "program"
question = "?"

[workload]
page = 3361
connections = 4
timeout = "10s"
sleep = "6s"

[visit]
warm_up = "6s"
measure = "30s"

[short]
sleep = "200ms"
warm_up = "200ms"
measure = "1s"

[[contender]]
name = "loop"
server = "joust"
settings = { cgi = true }

[[contender]]
name = "lighttpd"
server = "lighttpd"
settings = { cgi = true }

[published]
source = "a paper"
machine = "a machine"
claim = "both wait"
figures = [["loop", "", 0.66]]
figures_of.memory = [["loop", "", "32MB"], ["lighttpd", "", 1000]]
figures_of.p50 = [["loop", "", 6071.5, "one loop"]]
"#;

#[test]
fn a_program_that_sleeps_is_what_is_asked_for() {
    let plan = study::parse("my.toml", PROGRAM, Form::Full).unwrap();
    assert_eq!(plan.sleeps(), [Nanos::from_secs(6)]);
    assert_eq!(plan.target(0, 1), "/cgi-bin/sleep-6s");
    let plan = study::parse("my.toml", PROGRAM, Form::Short).unwrap();
    assert_eq!(plan.sleeps(), [Nanos::from_millis(200)]);
    assert_eq!(plan.target(0, 0), "/cgi-bin/sleep-200ms");
}

#[test]
fn figures_of_several_metrics_are_read_in_their_units() {
    let plan = study::parse("my.toml", PROGRAM, Form::Full).unwrap();
    let figures = plan.published.unwrap().figures;
    let mut read: Vec<_> =
        figures.iter().map(|one| (one.contender, one.metric, one.value)).collect();
    read.sort_by_key(|one| (one.1, one.0));
    let expected = [
        (0, Metric::Throughput, 0.66),
        (0, Metric::P50, 6071.5),
        (0, Metric::Memory, 32e6),
        (1, Metric::Memory, 1000.0),
    ];
    assert_eq!(read, expected);
}

#[test]
fn what_a_program_that_sleeps_does_not_go_with_is_refused() {
    let cases: &[(&str, &str, &str)] = &[
        ("timeout = \"10s\"", "timeout = \"6s\"", "raise `timeout`"),
        ("timeout = \"10s\"", "timeout = \"10s\"\ntarget = \"/x\"", "leave out one of the two"),
        ("measure = \"30s\"", "measure = \"23s\"", "write measure = \"24s\""),
        ("sleep = \"6s\"\n", "sleep = \"2m\"\n", "from 1ms to 60s"),
        ("sleep = \"6s\"\n", "", "needs a single `sleep` to replace"),
        ("settings = { cgi = true }\n\n[[", "\n[[", "does not run programs"),
        (
            "server = \"lighttpd\"\nsettings = { cgi = true }",
            "server = \"nginx\"",
            "those that do: joust",
        ),
        ("figures_of.p50", "figures_of.p51", "did you mean `p50`"),
        ("\"32MB\"", "\"32 cats\"", "32 cats"),
        ("\"32MB\"", "0", "a row of"),
    ];
    for (from, to, says) in cases {
        assert!(PROGRAM.contains(from), "{from}");
        let text = PROGRAM.replacen(from, to, 1);
        let error = study::parse("my.toml", &text, Form::Full).expect_err(to);
        let text = format!("{error} {}", error.help.clone().unwrap_or_default());
        assert!(text.contains(says), "{to}: {text}");
    }
}

#[test]
fn only_may_name_several_sets_of_cells() {
    let several = "only = [{ keep_alive = [false], connections = [10] }, { connections = [1000] }]";
    let text = AXES.replacen("only = { keep_alive = [false] }", several, 1);
    let text = text.replacen(
        "connections=100, keep_alive=false\", 3",
        "connections=10, keep_alive=false\", 3",
        1,
    );
    let plan = study::parse("my.toml", &text, Form::Full).unwrap();
    assert_eq!(plan.contenders[0].cells, [0, 4, 5]);
}

/// Keys that the page documents, by the heading they stand under: rows that begin with a key.
fn documented(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut under = "";
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            under = heading.trim_start_matches('#').trim();
        }
        let key = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |"));
        if let Some((key, _)) = key {
            keys.entry(under.to_owned()).or_default().insert(key.to_owned());
        }
    }
    keys
}

#[test]
fn the_page_of_studies_has_every_key_of_the_schema_and_no_other() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/studies.md");
    let documented = documented(&std::fs::read_to_string(page).unwrap());
    let schema = study::schema();
    let sections = [
        ("The study", ""),
        ("`[workload]`", "/properties/workload"),
        ("`[[axis]]`", "/properties/axis/items"),
        ("`[[contender]]`", "/properties/contender/items"),
        ("`[search]`", "/properties/search"),
        ("`[blocks]`", "/properties/blocks"),
        ("`[visit]`", "/properties/visit"),
        ("`[short]`", "/properties/short"),
        ("`[published]`", "/properties/published"),
    ];
    // A table that the schema gains needs its section here and on the page.
    let tables = |value: &serde_json::Value| value.pointer("/properties").is_some();
    let top = schema["properties"].as_object().unwrap();
    let count = top.values().filter(|one| tables(one) || tables(&one["items"])).count();
    assert_eq!(count + 1, sections.len());
    for (heading, at) in sections {
        let keys = schema.pointer(&format!("{at}/properties")).unwrap().as_object().unwrap();
        let keys: BTreeSet<String> = keys.keys().cloned().collect();
        assert_eq!(documented.get(heading), Some(&keys), "docs/studies.md, {heading}");
    }
}
