//! Words of a command line and the studies that they become, read back by the parser of study files.

use record::{Plan, SettingValue};
use units::Share;

use super::*;
use crate::study::{Form, parse};

fn listed(words: &[&str], wishes: Wishes) -> Result<Brief, BriefError> {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Brief::new(&Who::Listed(words), Wishes { cwd: "/here".into(), ..wishes })
}

fn plan(brief: &Brief, form: Form) -> Plan {
    let text = brief.text();
    parse("study.toml", &text, form).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// What was typed, and each contender's name, server and settings.
type Row = (&'static [&'static str], &'static [(&'static str, &'static str, &'static str)]);

const ROWS: &[Row] = &[
    (&["nginx", "lighttpd"], &[("nginx", "nginx", ""), ("lighttpd", "lighttpd", "")]),
    (
        &["nginx[worker_processes=2, sendfile=off]", "nginx"],
        &[
            ("nginx sendfile=off worker_processes=2", "nginx", "sendfile=off worker_processes=2"),
            ("nginx", "nginx", ""),
        ],
    ),
    (&["nginx", "nginx"], &[("nginx 1", "nginx", ""), ("nginx 2", "nginx", "")]),
    (
        &["joust[model=prefork]", "nginx[sendfile=off]"],
        &[("joust prefork", "joust", "model=prefork"), ("nginx", "nginx", "sendfile=off")],
    ),
    (
        &["joust[model=prefork]", "joust[model=reactor,KeepAliveTimeout=9]"],
        &[
            ("joust prefork", "joust", "model=prefork"),
            ("joust KeepAliveTimeout=9 reactor", "joust", "KeepAliveTimeout=9 model=reactor"),
        ],
    ),
    (
        &["python3 -m http.server {port} -d {docroot}", "http://127.0.0.1:9000/"],
        &[
            ("python3", "command", "command=python3 -m http.server {port} -d {docroot} cwd=/here"),
            ("127.0.0.1:9000", "url", "url=http://127.0.0.1:9000/"),
        ],
    ),
    (
        &["./old {port}", "./bin/new {port}"],
        &[
            ("old", "command", "command=./old {port} cwd=/here"),
            ("new", "command", "command=./bin/new {port} cwd=/here"),
        ],
    ),
    (
        &["python3 a.py {port}", "python3 b.py {port}"],
        &[
            ("python3 a.py", "command", "command=python3 a.py {port} cwd=/here"),
            ("python3 b.py", "command", "command=python3 b.py {port} cwd=/here"),
        ],
    ),
    (
        &["http://a:1/x", "http://a:1/y"],
        &[("a:1/x", "url", "url=http://a:1/x"), ("a:1/y", "url", "url=http://a:1/y")],
    ),
    (
        &["command[command='python3 \"a b.py\"',port=8000]", "h2o"],
        &[
            ("python3", "command", "command=python3 \"a b.py\" cwd=/here port=8000"),
            ("h2o", "h2o", ""),
        ],
    ),
];

#[test]
fn words_become_the_contenders_that_they_mean() {
    for (words, expected) in ROWS {
        let plan = plan(&listed(words, Wishes::default()).unwrap(), Form::Full);
        let seen: Vec<(String, String, String)> = plan
            .contenders
            .iter()
            .map(|one| {
                let settings = one.settings.iter().map(|(key, value)| format!("{key}={value}"));
                let settings = settings.collect::<Vec<_>>().join(" ");
                (one.name.clone(), one.server.clone(), settings)
            })
            .collect();
        let seen: Vec<_> =
            seen.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
        assert_eq!(&seen[..], *expected, "{words:?}");
    }
    let numbers = plan(&listed(ROWS[1].0, Wishes::default()).unwrap(), Form::Full);
    assert_eq!(numbers.contenders[0].settings["worker_processes"], SettingValue::Number(2));
}

#[test]
fn each_wish_stands_in_the_study_and_the_rest_is_chosen() {
    let plain = plan(&listed(&["nginx", "lighttpd"], Wishes::default()).unwrap(), Form::Full);
    let work = &plain.cells[0].workload;
    assert_eq!((work.connections, work.page, work.keep_alive), (10, Bytes(3361), true));
    assert_eq!((plain.budget, plain.visit.measure), (BUDGET, MEASURE_MAX));
    assert_eq!((plain.name.as_str(), plain.metrics[0]), ("nginx-lighttpd", Metric::Throughput));
    let wishes = Wishes {
        connections: Some(7),
        budget: Some(Nanos::from_secs(9)),
        page: Some(Bytes(100)),
        target: Some("/".into()),
        rate: Some(PerSecond(250.0)),
        no_keep_alive: true,
        metrics: vec!["server_cpu".into(), "p50".into()],
        set: vec!["visit.measure=300ms".into(), "timeout=2s".into(), "margin=5%".into()],
        seed: Some(4),
        ..Wishes::default()
    };
    let brief = listed(&["nginx", "lighttpd"], wishes).unwrap();
    let full = plan(&brief, Form::Full);
    let work = &full.cells[0].workload;
    assert_eq!((work.connections, work.page, work.keep_alive), (7, Bytes(100), false));
    assert_eq!((work.target.as_str(), work.rate), ("/", Some(PerSecond(250.0))));
    assert_eq!((full.visit.measure, work.timeout), (Nanos::from_millis(300), Nanos::from_secs(2)));
    assert_eq!((full.margin, full.seed), (Share(0.05), 4));
    assert_eq!(full.metrics, [Metric::ServerCpu, Metric::P50]);
    assert_eq!(full.budget, Nanos::from_secs(9));
    assert_eq!(plan(&brief, Form::Short).budget, Nanos::from_secs(3));
}

#[test]
fn where_one_closes_every_connection_nobody_keeps_any_and_the_study_says_by_whom() {
    let mut brief = listed(&["nginx", "lighttpd"], Wishes::default()).unwrap();
    brief.close_as(vec!["lighttpd".into()]);
    let work = plan(&brief, Form::Full).cells[0].workload.clone();
    assert_eq!((work.keep_alive, work.connections), (false, 4));
    assert!(brief.text().contains("closed after each reply by: lighttpd"), "{}", brief.text());
}

#[test]
fn a_server_that_does_not_serve_the_page_is_asked_for_its_root() {
    let pair = Who::Pair { base: "./old {port}".into(), candidate: "nginx".into() };
    let brief = Brief::new(&pair, Wishes { cwd: "/".into(), ..Wishes::default() }).unwrap();
    let plan = plan(&brief, Form::Full);
    assert_eq!(plan.cells[0].workload.target, "/");
    assert_eq!(
        (brief.names(), brief.bound_to_loopback()),
        (vec!["base", "candidate"], vec!["base"])
    );
}

#[test]
fn a_longer_budget_gives_more_visits_and_a_shorter_one_shorter_visits() {
    let measure = |seconds: u64, rate: Option<f64>| {
        let budget = Some(Nanos::from_secs(seconds));
        let wishes = Wishes { budget, rate: rate.map(PerSecond), ..Wishes::default() };
        plan(&listed(&["nginx", "lighttpd"], wishes).unwrap(), Form::Full).visit.measure
    };
    let rows = [(1, None, 100), (10, None, 200), (45, None, 500), (600, None, 500)];
    let open = [(600, Some(200.0), 2000), (600, Some(1250.0), 800), (600, Some(1e5), 500)];
    for (seconds, rate, ms) in rows.into_iter().chain(open) {
        assert_eq!(measure(seconds, rate), Nanos::from_millis(ms), "{seconds} {rate:?}");
    }
    let words = ["nginx", "lighttpd", "apache", "h2o", "caddy"];
    let five = plan(&listed(&words, Wishes::default()).unwrap(), Form::Full);
    assert_eq!(five.budget, Nanos::from_secs(75));
}

#[test]
fn a_rate_too_low_for_p99_makes_the_median_the_primary_metric() {
    let brief = |rate: f64, set: &[&str], metrics: &[&str]| {
        let all = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect();
        let (set, metrics) = (all(set), all(metrics));
        let wishes = Wishes { rate: Some(PerSecond(rate)), set, metrics, ..Wishes::default() };
        listed(&["nginx", "lighttpd"], wishes).unwrap()
    };
    let primary = |brief: &Brief| plan(brief, Form::Full).metrics[0];
    // Visits are measured for 45 s / 2 / 24 at most, in steps of 10 ms: 930 ms.
    for (rate, set, expected) in [
        (395.0, &[][..], Metric::P50),
        (396.0, &[], Metric::P99),
        (50.0, &["visit.measure=10s"], Metric::P99),
        (50.0, &["measure=7s"], Metric::P50),
    ] {
        let brief = brief(rate, set, &[]);
        assert_eq!(primary(&brief), expected, "{rate} {set:?}");
        let plan = plan(&brief, Form::Full);
        assert_eq!(plan.metrics.contains(&Metric::P99), expected == Metric::P99, "{rate} {set:?}");
        let note = brief.note_on_p99(&plan);
        let says = |note: &String| note.starts_with("The primary metric is p50 instead of p99: at");
        assert_eq!(note.as_ref().map(says), (expected == Metric::P50).then_some(true), "{note:?}");
    }
    let asked = brief(50.0, &[], &["p99"]);
    assert_eq!(primary(&asked), Metric::P99, "what is asked for by name stays");
    let note = asked.note_on_p99(&plan(&asked, Form::Full)).unwrap();
    assert!(note.starts_with("p99 will have no verdict: at 50/s a visit of 930ms"), "{note}");
}

#[test]
fn what_is_mistyped_is_named_with_the_way_out() {
    let of = |words: &[&str], wishes: Wishes| {
        let BriefError { message, help } = listed(words, wishes).map(drop).unwrap_err();
        format!("{message}; {help}")
    };
    let words: &[(&[&str], &[&str])] = &[
        (&["ngnix", "lighttpd"], &["`ngnix`", "did you mean `nginx`", "Servers are joust, apache"]),
        (&["zzz", "lighttpd"], &["`zzz`", "Servers are joust, apache", "{port}"]),
        (&["nginx"], &["at least two", "got one: nginx", "joust load"]),
        (
            &["python3 -m http.server", "nginx"],
            &["no {port}", "port=8000", "http://127.0.0.1:PORT/"],
        ),
        (&["sh -c 'x {port}", "nginx"], &["not closed"]),
        (&["127.0.0.1:9000", "nginx"], &["did you mean http://127.0.0.1:9000/?"]),
        (&["https://a/", "nginx"], &["plain HTTP", "joust load"]),
        (&["nginx[worker=2]", "nginx"], &["worker", "joust servers nginx"]),
        (&["nginx[worker_processes]", "nginx"], &["NAME=VALUE", "worker_processes=2"]),
        (&["nginx[worker_processes=x]", "nginx"], &["worker_processes", "whole number"]),
        (&["nginx[sendfile=on,sendfile=off]", "nginx"], &["set twice"]),
        (&["studies/quick.toml", "nginx"], &["must be the only argument", "one study at a time"]),
        (&["", "nginx"], &["not a known server"]),
    ];
    for (typed, says) in words {
        let said = of(typed, Wishes::default());
        says.iter()
            .for_each(|word| assert!(said.contains(word), "{typed:?}: no `{word}` in {said}"));
    }
    let set = |text: &str| Wishes { set: vec![text.into()], ..Wishes::default() };
    let metric = |all: &[&str]| Wishes {
        metrics: all.iter().map(|name| (*name).to_owned()).collect(),
        ..Wishes::default()
    };
    let wishes: [(Wishes, &[&str]); 14] = [
        (Wishes { connections: Some(0), ..Wishes::default() }, &["-c must be from 1", "got 0"]),
        (Wishes { connections: Some(60_001), ..Wishes::default() }, &["60000, got 60001"]),
        (
            Wishes { budget: Some(Nanos(0)), ..Wishes::default() },
            &["-d must be at least 1s, got 0s"],
        ),
        (
            Wishes { page: Some(Bytes(0)), ..Wishes::default() },
            &["--page must be from 1 B", "got 0 B"],
        ),
        (
            Wishes { page: Some(Bytes(10_000_000_000)), ..Wishes::default() },
            &["to 4 GB, got 10 GB"],
        ),
        (Wishes { target: Some("x".into()), ..Wishes::default() }, &["--target /x"]),
        (Wishes { seed: Some(u64::MAX), ..Wishes::default() }, &["--seed must be at most"]),
        (metric(&["cpu"]), &["no metric `cpu`"]),
        (
            metric(&["foo"]),
            &["no metric `foo`", "there is: throughput, server_cpu, p50, p99, memory"],
        ),
        (metric(&["p50", "p50"]), &["named twice"]),
        (metric(&["capacity"]), &["goals"]),
        (set("x"), &["KEY=VALUE", "visit.measure=1s"]),
        (set("visit.measur=1s"), &["`visit.measur`", "did you mean `visit.measure`?"]),
        (set("name=x"), &["no key `name`"]),
    ];
    for (wishes, says) in wishes {
        let said = of(&["nginx", "lighttpd"], wishes);
        says.iter().for_each(|word| assert!(said.contains(word), "no `{word}` in {said}"));
    }
    let page = Wishes { page: Some(Bytes(9)), ..Wishes::default() };
    let said = of(&["http://a/", "./x {port}"], page);
    assert!(said.contains("--page") && said.contains("{docroot}"), "{said}");
}
