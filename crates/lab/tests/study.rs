//! Study files: what is right becomes a whole plan, and what is wrong is pointed at.

use joust_lab::study::{self, StudyError};
use record::{Metric, SettingValue};
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
    study::parse("my.toml", text).expect_err(text)
}

#[test]
fn every_key_reaches_the_plan() {
    let plan = study::parse("my.toml", GOOD).unwrap();
    assert_eq!((plan.name.as_str(), plan.seed), ("two-loops", 7));
    assert_eq!(plan.question, "Which event loop is faster?");
    assert_eq!(plan.metrics, [Metric::P99, Metric::Throughput]);
    assert_eq!((plan.margin, plan.budget), (Share(0.05), Nanos::from_secs(120)));
    let work = &plan.workload;
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
fn the_built_in_study_is_right() {
    let plan = study::quick();
    assert_eq!(plan.name, "quick");
    assert_eq!((plan.workload.page, plan.workload.connections), (Bytes(3361), 64));
    assert_eq!(plan.metrics[0], Metric::Throughput);
    assert_eq!(plan.contenders.len(), 9);
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
        says: &["more threads than the 100 connections"],
    },
    Mistake {
        good: "max = 20",
        bad: "max = 5",
        place: (17, 7),
        says: &["`max` is 5, fewer than `min`, 10"],
    },
    Mistake {
        good: "half_width = 0.03",
        bad: "half_width = 0",
        place: (18, 14),
        says: &["never be done"],
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
        says: &["cannot name the results' folder"],
    },
    Mistake {
        good: "name = \"lighttpd\"",
        bad: "name = \"nginx\"",
        place: (30, 8),
        says: &["`nginx` is taken"],
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
        says: &["no number, text or true/false"],
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
        says: &["at least two contenders, this has 1"],
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
fn an_error_of_the_lab_carries_file_line_and_column() {
    let error = refused(&GOOD.replacen("seed", "sede", 1));
    let text = joust_lab::LabError::from(error).to_string();
    assert!(text.starts_with("my.toml:6:1: unknown key `sede`"), "{text}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = study::read("no/such/study.toml".as_ref()).unwrap_err().to_string();
    assert!(error.contains("no/such/study.toml"), "{error}");
}
