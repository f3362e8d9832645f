//! The status page: under every model it tells what was done, as a page and as text for Prometheus, and only to clients
//! that may see it. Start reading at [`every_model_tells_what_it_has_served`].

mod support;

use support::{FIXED, GET, Server, Setup, models as all_models};

const AT: &str = "--status=/server-status";

fn get(target: &str, accept: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
}

fn body(server: &Server, target: &str, accept: &str) -> (String, String) {
    let response = server.connect().ask(&get(target, accept));
    assert_eq!(response.status(), 200, "{}", response.head);
    (response.head, String::from_utf8(response.body).unwrap())
}

/// One sample of a metric without labels, after checking every line against the format: HELP, then
/// TYPE, then samples of that name only, each name once.
fn samples(text: &str) -> std::collections::HashMap<String, f64> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let (mut family, mut typed) = (String::new(), false);
    let mut found = std::collections::HashMap::new();
    let mut families = std::collections::HashSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, about) = help.split_once(' ').unwrap();
            assert!(
                is_name(name) && !about.is_empty() && families.insert(name.to_owned()),
                "{line}"
            );
            (family, typed) = (name.to_owned(), false);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(name == family && !typed, "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            typed = true;
        } else {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let name = key.split_once('{').map_or(key, |(name, labels)| {
                let labels = labels.strip_suffix('}').unwrap();
                for label in labels.split(',') {
                    let (label, value) = label.split_once('=').unwrap();
                    assert!(is_name(label) && value.len() > 2, "{line}");
                    assert!(value.starts_with('"') && value.ends_with('"'), "{line}");
                }
                name
            });
            assert!(typed && name == family, "{line}");
            assert!(found.insert(key.to_owned(), value.parse().unwrap()).is_none(), "{line}");
        }
    }
    found
}

#[test]
fn every_model_tells_what_it_has_served() {
    for model in all_models() {
        let server = Server::start(model, Setup { settings: &[AT], ..FIXED });
        let mut conn = server.connect();
        for _ in 0..10 {
            assert_eq!(conn.ask(GET).status(), 200, "{model}");
        }
        drop(conn);
        let (head, text) =
            body(&server, "/server-status", "text/plain;version=0.0.4;q=0.3,*/*;q=0.1");
        assert!(head.contains("text/plain; version=0.0.4"), "{model}: {head}");
        assert!(head.contains("Cache-Control: no-store"), "{model}: {head}");
        let of = samples(&text);
        assert!(of["joust_requests_total"] >= 10.0, "{model}: {text}");
        // The last answer arrives before its server has come back from sending it.
        support::eventually("all answers are sent", || {
            let (_, text) = body(&server, "/server-status?format=prometheus", "*/*");
            samples(&text)["joust_sent_bytes_total"] >= 33_610.0
        });
        assert_eq!(of["joust_connections_accepted_total"], 2.0, "{model}: {text}");
        // A child may answer before its parent has counted it.
        let forks = ["fork", "prefork", "worker", "event"].contains(&model);
        support::eventually("the children are counted", || {
            let (_, text) = body(&server, "/server-status?format=prometheus", "*/*");
            (samples(&text)["joust_processes_spawned_total"] > 0.0) == forks
        });
        // The same in a page, and by query.
        let (_, page) = body(&server, "/server-status", "text/html,*/*");
        assert!(page.contains("Scoreboard") && page.contains(model), "{model}");
        let (_, again) = body(&server, "/server-status?format=prometheus", "text/html");
        assert!(samples(&again)["joust_requests_total"] >= 12.0, "{model}");
    }
}

#[test]
fn connections_that_have_ended_are_not_held_any_more() {
    for model in all_models() {
        let server = Server::start(model, Setup { settings: &[AT], ..FIXED });
        for _ in 0..20 {
            assert_eq!(server.connect().ask(support::GET_CLOSE).status(), 200, "{model}");
        }
        support::eventually("only the connection that asks is open", || {
            let (_, text) = body(&server, "/server-status?format=prometheus", "*/*");
            samples(&text)["joust_connections"] == 1.0
        });
    }
}

#[test]
fn connections_whose_keep_alive_is_over_are_not_held_any_more() {
    for model in all_models() {
        let settings = &[AT, "KeepAliveTimeout=100ms"];
        let server = Server::start(model, Setup { settings, ..FIXED });
        let mut kept: Vec<_> = (0..2).map(|_| server.connect()).collect();
        for conn in &mut kept {
            assert_eq!(conn.ask(GET).status(), 200, "{model}");
            support::eventually("its time is over", || conn.has_ended());
        }
        support::eventually(&format!("only who asks is connected: {model}"), || {
            let (_, text) = body(&server, "/server-status?format=prometheus", "*/*");
            samples(&text)["joust_connections"] == 1.0
        });
    }
}

#[test]
fn what_waits_for_a_thread_is_on_the_page() {
    let cases: [(&str, &[&str]); 3] = [
        ("pool", &[AT, "max-thread=1"]),
        ("poller", &[AT, "maxThreads=1", "minSpareThreads=1"]),
        ("reactor-pool", &[AT, "server.worker-threads=1"]),
    ];
    for (model, settings) in cases {
        let faults = &["delay=300ms"];
        let server = Server::start(model, Setup { settings, faults, ..FIXED });
        // The first is with the only thread; the page is next, and then two more.
        let asked =
            [GET, &get("/server-status?format=prometheus", "*/*"), GET, GET].map(|request| {
                let mut conn = server.connect();
                conn.send(request);
                // So that they come in this order.
                std::thread::sleep(std::time::Duration::from_millis(20));
                conn
            });
        let [_, page, ..] = asked.map(|mut conn| conn.response());
        let text = String::from_utf8(page.body).unwrap();
        let waiting = samples(&text)["joust_queue_length"];
        // The loop of reactor-pool may not have taken the first one back yet.
        assert!((2.0..=3.0).contains(&waiting), "{model}: {text}");
        support::eventually("nothing waits any more", || {
            let (_, text) = body(&server, "/server-status?format=prometheus", "*/*");
            samples(&text)["joust_queue_length"] == 0.0
        });
    }
}

#[test]
fn kept_alive_connections_that_were_closed_to_make_room_are_counted() {
    let closed = |server: &Server| {
        let (_, text) = body(server, "/server-status?format=prometheus", "*/*");
        samples(&text)["joust_keepalive_closed_total"]
    };
    let settings = &[AT, "worker_processes=1", "worker_connections=16"];
    let server = Server::start("reactors", Setup { settings, ..FIXED });
    let _kept: Vec<_> = (0..20)
        .map(|_| {
            let mut conn = server.connect();
            assert_eq!(conn.ask(GET).status(), 200);
            conn
        })
        .collect();
    // One at a time for each that comes, and then for those that ask for the page.
    let n_closed = closed(&server);
    assert!((4.0..16.0).contains(&n_closed), "{n_closed}");

    let settings = &[AT, "ServerLimit=1", "ThreadsPerChild=2", "MaxRequestWorkers=2"];
    let more = ["StartServers=1", "MinSpareThreads=1", "KeepAliveTimeout=5m"];
    let settings = [&settings[..], &more].concat();
    let server = Server::start("event", Setup { settings: &settings, ..FIXED });
    let mut kept: Vec<_> = (0..2).map(|_| server.connect()).collect();
    kept.iter_mut().for_each(|conn| assert_eq!(conn.ask(GET).status(), 200));
    // Both threads work, and a kept-alive client asks again.
    let mut begun: Vec<_> = (0..2).map(|_| server.connect()).collect();
    begun.iter_mut().for_each(|conn| conn.send("GET / HTTP"));
    std::thread::sleep(std::time::Duration::from_millis(200));
    kept[0].send(GET);
    support::eventually("one is closed", || kept.iter_mut().any(|conn| conn.has_ended()));
    drop(begun);
    // Most often both: what has just been answered may still be with its thread.
    let n_closed = closed(&server);
    assert_eq!(
        kept.iter_mut().filter_map(|conn| conn.has_ended().then_some(1.0)).sum::<f64>(),
        n_closed
    );
}

#[test]
fn the_path_is_exact_and_without_one_there_is_none() {
    let asks = |settings| {
        let server = Server::start("reactor", Setup { settings, ..FIXED });
        ["/server-status", "/server-status/", "/server-statuses", "/x"].map(|target| {
            let response = server.connect().ask(&get(target, "*/*"));
            String::from_utf8(response.body).unwrap().contains("Scoreboard")
        })
    };
    assert_eq!(asks(&[AT]), [true, false, false, false]);
    assert_eq!(asks(&[]), [false; 4]);
}
