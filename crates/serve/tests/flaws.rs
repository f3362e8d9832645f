//! Planted faults that make an answer wrong, or change who may answer when: each to the byte and the
//! nanosecond in simulated time, and as a client sees it under the models.
//! Start reading at [`Client::answer`].

mod support;

use std::io::Read as _;
use std::time::{Duration, Instant};

use joust_serve::CommandLine;
use site::exchange::{Close, Want};
use site::fault::Fault;
use support::simulated::{BODY_BYTES, Client, REQUEST, START, ms, service};
use support::{FIXED, GET, Response, Server, Setup, eventually, models as all_models};
use sys::clock;
use units::Nanos;

const HEAD: &[u8] = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";

/// An answer in simulated time.
struct Answer {
    head: String,
    body: Vec<u8>,
    /// After the request.
    held: Nanos,
    /// How the connection is closed after it, if it is.
    closed: Option<Close>,
}

impl Answer {
    fn status(&self) -> &str {
        &self.head[9..12]
    }

    fn length(&self) -> usize {
        self.field("Content-Length: ").unwrap().parse().unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name))
    }
}

impl Client<'_> {
    /// Asks `at` and takes the answer.
    fn answer(&mut self, at: Nanos, request: &[u8]) -> Answer {
        self.now = at;
        self.send(request);
        let pieces = self.pieces();
        let held = pieces[0].0 - at;
        let bytes = pieces.into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>().concat();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let now = self.now;
        let closed = match self.exchange.want(|| now) {
            Want::Close(how) => Some(how),
            _ => None,
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        Answer { head, body: bytes[end..].to_vec(), held, closed }
    }
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn keepalive_closes_after_so_many_answers_and_says_nothing() {
    let service = service(&["keepalive=3"]);
    for _ in 0..2 {
        let mut client = Client::new(&service, START);
        for nth in 1..=3 {
            let answer = client.answer(START, REQUEST);
            assert_eq!((answer.status(), answer.body.len()), ("200", BODY_BYTES));
            assert_eq!(answer.field("Connection: "), None);
            assert_eq!(answer.closed, (nth == 3).then_some(Close::Linger));
        }
    }
}

/// Requests after the last answer are not answered, and must not cause a reset that destroys it.
#[test]
fn keepalive_counts_pipelined_requests_one_by_one() {
    let service = service(&["keepalive=2"]);
    let mut client = Client::new(&service, START);
    client.send(&REQUEST.repeat(3));
    assert_eq!(client.pieces().len(), 2);
    assert!(matches!(client.exchange.want(|| START), Want::Close(Close::Linger)));
}

#[test]
fn churn_counts_the_answers_of_a_process_on_all_its_connections() {
    let service = service(&["churn=5"]);
    let mut clients = [(); 3].map(|()| Client::new(&service, START));
    for nth in 1..=30 {
        let client = &mut clients[nth % 3];
        let ends = client.answer(START, REQUEST).closed.is_some();
        assert_eq!(ends, nth % 5 == 0, "{nth}");
        if ends {
            *client = Client::new(&service, START);
        }
    }
}

#[test]
fn status_gives_its_share_an_error_sooner_than_the_others() {
    let service = service(&["status=503:25%", "delay=5ms"]);
    let mut client = Client::new(&service, START);
    let mut failed = 0;
    for n in 0..1000 {
        let answer = client.answer(START + ms(10 * n), REQUEST);
        assert_eq!(answer.closed, None);
        assert_eq!(answer.length(), answer.body.len());
        match answer.status() {
            "200" => assert_eq!((answer.held, answer.body.len()), (ms(5), BODY_BYTES)),
            "503" => {
                assert!(answer.held == Nanos::ZERO && answer.body.len() < 400);
                assert_eq!(answer.field("Retry-After: "), Some("1"));
                failed += 1;
            }
            other => panic!("{other}"),
        }
    }
    // Binomial: 250 with a standard deviation of 13.7; five of those on either side.
    assert!((182..318).contains(&failed), "{failed}");
    let answer = Client::new(&service, START).answer(START, HEAD);
    assert!(answer.body.is_empty());
}

#[test]
fn length_is_one_too_long_for_its_share_and_the_connection_ends_behind_it() {
    let service = service(&["length=wrong:20%"]);
    let mut client = Client::new(&service, START);
    let mut wrong = 0;
    for _ in 0..1000 {
        let answer = client.answer(START, REQUEST);
        assert_eq!((answer.status(), answer.body.len()), ("200", BODY_BYTES));
        let is_wrong = answer.length() == BODY_BYTES + 1;
        assert!(is_wrong || answer.length() == BODY_BYTES);
        assert_eq!(answer.closed, is_wrong.then_some(Close::Linger));
        if is_wrong {
            wrong += 1;
            client = Client::new(&service, START);
        }
    }
    // Binomial: 200 with a standard deviation of 12.6; five of those on either side.
    assert!((137..263).contains(&wrong), "{wrong}");
    let service = support::simulated::service(&["length=wrong:100%"]);
    let mut client = Client::new(&service, START);
    let answer = client.answer(START, HEAD);
    assert_eq!((answer.length(), answer.closed), (BODY_BYTES, None), "of HEAD nobody could see it");
}

#[test]
fn only_the_first_answer_of_a_connection_is_empty() {
    let service = service(&["empty-first"]);
    for first in [REQUEST, HEAD] {
        let mut client = Client::new(&service, START);
        let lengths = [first, REQUEST, REQUEST, REQUEST].map(|request| {
            let answer = client.answer(START, request);
            assert_eq!((answer.status(), answer.closed), ("200", None));
            (answer.length(), answer.body.len())
        });
        let whole = (BODY_BYTES, BODY_BYTES);
        assert_eq!(lengths, [(0, 0), whole, whole, whole]);
    }
}

#[test]
fn encoding_is_gzip_and_its_content_is_the_same() {
    let plain = Client::new(&service(&["delay=1ns"]), START).answer(START, REQUEST).body;
    let service = service(&["encoding=gzip"]);
    let mut client = Client::new(&service, START);
    // A repeated page is sent in another way than a first one.
    for _ in 0..4 {
        let answer = client.answer(START, REQUEST);
        assert_eq!(answer.field("Content-Encoding: "), Some("gzip"));
        assert_eq!(answer.length(), answer.body.len());
        assert!(unzipped(&answer.body) == plain && answer.body.len() < BODY_BYTES);
    }
    let answer = client.answer(START, b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-4\r\n\r\n");
    assert_eq!((answer.status(), answer.field("Content-Encoding: ")), ("206", None));
    assert_eq!(answer.body, plain[1..5]);
}

#[test]
fn flaws_of_one_answer_go_together() {
    let service = service(&["encoding=gzip", "length=wrong:100%", "nodelay=off", "delay=3ms"]);
    let answer = Client::new(&service, START).answer(START, REQUEST);
    assert_eq!((answer.length(), answer.held), (answer.body.len() + 1, ms(3)));
    assert_eq!(unzipped(&answer.body).len(), BODY_BYTES);
}

#[test]
fn answers_leave_at_multiples_of_a_batchs_time_only() {
    let service = service(&["batch=50ms"]);
    let mut client = Client::new(&service, START);
    let left = [0, 1, 49, 50, 51, 99, 100, 1_000_020].map(|at| {
        let held = client.answer(START + ms(at), REQUEST).held;
        ms(at) + held
    });
    assert_eq!(left, [0, 50, 50, 50, 100, 100, 100, 1_000_050].map(ms));
    // Another hold runs before, and a pause is not cut short.
    let faults =
        ["batch=50ms", "delay=20ms", "stall=100%,40ms,phase=body", "pause=at:1s,for:120ms"];
    let service = support::simulated::service(&faults);
    let mut client = Client::new(&service, START);
    client.now = START + ms(10);
    client.send(REQUEST);
    let left: Vec<Nanos> = client.pieces().into_iter().map(|(at, _)| at - START).collect();
    assert_eq!(left, [ms(50), ms(100)]);
    assert_eq!(client.answer(START + ms(990), REQUEST).held, ms(130));
}

#[test]
fn slots_serve_in_the_order_of_arrival_and_no_more_at_once() {
    let service = service(&["slots=2", "delay=10ms"]);
    let mut clients = [(); 6].map(|()| Client::new(&service, START));
    let at = [0, 0, 0, 1, 25, 100];
    let left: Vec<Nanos> = std::iter::zip(&mut clients, at)
        .map(|(client, at)| ms(at) + client.answer(START + ms(at), REQUEST).held)
        .collect();
    // Two servers with one queue, calculated by hand.
    assert_eq!(left, [10, 10, 20, 20, 35, 110].map(ms));
}

#[test]
fn a_request_that_would_wait_for_over_a_minute_for_a_slot_is_refused() {
    let service = service(&["slots=1", "delay=40s"]);
    let answers: Vec<(Nanos, String)> = (0..4)
        .map(|_| Client::new(&service, START).answer(START, REQUEST))
        .map(|answer| (answer.held, answer.status().to_owned()))
        .collect();
    let secs = |s, status: &str| (Nanos::from_secs(s), status.to_owned());
    assert_eq!(answers, [secs(40, "200"), secs(80, "200"), secs(0, "503"), secs(0, "503")]);
}

#[test]
fn without_nodelay_head_and_body_are_two_sends_at_the_same_instant() {
    let service = service(&["nodelay=off"]);
    let mut client = Client::new(&service, START);
    for _ in 0..4 {
        client.send(REQUEST);
        let pieces = client.pieces();
        let [(_, head), (at, body)] = &pieces[..] else { panic!("{}", pieces.len()) };
        assert!(head.ends_with(b"\r\n\r\n"));
        assert_eq!((*at, body.len()), (START, BODY_BYTES));
    }
}

/// Measured in CPU time, which a loaded machine does not change.
#[test]
fn every_second_seed_is_slower_by_what_was_said() {
    let cost_of = |seed: u64| {
        let service = service(&[&format!("mode=pid,cost:20ms,seed={seed}")]);
        let mut client = Client::new(&service, START);
        let before = clock::thread_cpu();
        (0..10).for_each(|_| assert_eq!(client.answer(START, REQUEST).held, Nanos::ZERO));
        clock::thread_cpu() - before
    };
    for seed in [1, 7] {
        assert!(cost_of(seed) >= ms(200));
    }
    for seed in [2, 8] {
        assert!(cost_of(seed) < ms(200));
    }
}

#[test]
fn body_is_zeros_of_the_right_length_after_so_many_answers() {
    let service = service(&["body=zeros,after:5"]);
    let mut client = Client::new(&service, START);
    let right = client.answer(START, REQUEST).body;
    assert!(right.len() == BODY_BYTES && right.iter().any(|byte| *byte != 0));
    for nth in 1..10 {
        let answer = client.answer(START, REQUEST);
        assert_eq!((answer.status(), answer.length()), ("200", BODY_BYTES));
        let expected = if nth < 5 { right.clone() } else { vec![0; BODY_BYTES] };
        assert!(answer.body == expected, "{nth}");
    }
    assert!(client.answer(START, HEAD).body.is_empty());
}

#[test]
fn what_is_no_fault_is_refused_with_the_way_out() {
    let cases = [
        ("churn=0", "must be whole, from 1"),
        ("churn", "the number of answers is missing"),
        ("keepalive=x", "must be whole, from 1"),
        ("nodelay=on", "`on` is not off"),
        ("nodelay", "`off` is missing"),
        ("mode=tid", "`tid` is not pid"),
        ("mode=pid,cost:1s", "longer than 100"),
        ("status=200:5%", "must be 400 to 599"),
        ("status=503", "the share is missing"),
        ("status=503:0%", "not above 0"),
        ("length=5%", "it needs wrong:SHARE"),
        ("length=wrong:101%", "share"),
        ("body=ones", "`ones` is not zeros"),
        ("body=zeros,after:x", "must be whole, from 1"),
        ("body=zeros,3000", "`3000` has no meaning"),
        ("empty-first=2", "`2` has no meaning"),
        ("emptyfirst", "did you mean `empty-first`?"),
        ("encoding=br", "`br` is not gzip"),
        ("batch=0s", "must be longer than 0"),
        ("batch=61s", "longer than 60"),
        ("slots=5000", "from 1 to 4096"),
    ];
    for (typed, hint) in cases {
        let error = typed.parse::<Fault>().unwrap_err();
        assert!(error.contains(hint), "{typed}: {error}");
    }
    let fault = ["slots=2", "delay=1ms", "slots=3"].map(str::to_owned).into();
    let typed = CommandLine { fault, fixed: Some(units::Bytes(1)), ..CommandLine::default() };
    let error = typed.resolve_with("", "").unwrap_err().to_string();
    assert!(error.contains("`slots=2` and `slots=3` exclude each other"), "{error}");
}

/// What a client of one connection at a time sees: of each answer, whether a new connection was needed,
/// the status, what its head says of its length, and its body's.
fn transcript(server: &Server, n: usize) -> Vec<(bool, u16, String, usize)> {
    let mut conn = server.connect();
    let mut seen = Vec::new();
    while seen.len() < n {
        let (mut answer, mut is_new) = (conn.ask_whatever(GET), false);
        while answer.is_none() {
            (conn, is_new) = (server.connect(), true);
            answer = conn.ask_whatever(GET);
        }
        let Response { head, body } = answer.unwrap();
        let length = head.lines().find(|line| line.starts_with("Content-Length")).unwrap();
        let status = head[9..12].parse().unwrap();
        seen.push((is_new, status, length.to_owned(), body.len()));
    }
    seen
}

#[test]
fn the_same_requests_get_the_same_wrong_answers_under_every_model() {
    let faults = &[
        "status=503:10%",
        "length=wrong:10%",
        "keepalive=7",
        "empty-first",
        "encoding=gzip",
        "delay=exp:50us",
        "slots=1",
    ];
    let setup = Setup { faults, settings: &["MaxKeepAliveRequests=0"], ..FIXED };
    let mut first = None;
    for model in all_models() {
        let seen = transcript(&Server::start(model, setup), 120);
        let expected = first.get_or_insert_with(|| seen.clone());
        assert_eq!(*expected, seen, "{model}");
    }
    let seen = first.unwrap();
    assert!(seen.iter().any(|(.., status, _, _)| *status == 503));
    let lengths = |is_new| seen.iter().filter(move |one| one.0 == is_new && one.1 == 200);
    assert!(lengths(true).count() > 10 && lengths(true).all(|one| one.3 == 0));
    assert!(lengths(false).skip(1).all(|one| one.3 > 0));
}

#[test]
fn a_large_file_is_coded_and_cut_short_from_the_disk() {
    let site = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(site.path().join("index.html"), &content).unwrap();
    let setup = Setup { content: site.path().to_str().unwrap(), ..FIXED };
    for model in ["prefork", "reactor"] {
        let server = Server::start(model, Setup { faults: &["encoding=gzip"], ..setup });
        assert!(unzipped(&server.connect().ask(GET).body) == content, "{model}");
        let server = Server::start(model, Setup { faults: &["length=wrong:100%"], ..setup });
        let answer = server.connect().ask_whatever(GET).unwrap();
        assert!(answer.head.contains("Content-Length: 3000001\r\n"), "{model}");
        assert!(answer.body == content, "{model}");
    }
}

/// The client's kernel acknowledges at once on a new connection; later, after 40 ms.
#[test]
fn without_nodelay_a_kept_connection_comes_to_wait_for_a_delayed_acknowledgement() {
    for model in
        ["prefork", "reactor", "uring"].into_iter().filter(|model| support::runs_here(model))
    {
        let server = Server::start(model, Setup { faults: &["nodelay=off"], ..FIXED });
        let mut conn = server.connect();
        let took = (0..50).map(|_| {
            let sent = Instant::now();
            assert_eq!(conn.ask(GET).body.len(), BODY_BYTES, "{model}");
            sent.elapsed()
        });
        let fastest = took.skip(40).min().unwrap();
        assert!(fastest >= Duration::from_millis(20), "{model}: {fastest:?}");
    }
}

#[test]
fn a_batch_lets_nothing_out_between_two_instants() {
    for model in all_models() {
        let server = Server::start(model, Setup { faults: &["batch=100ms"], ..FIXED });
        let mut conn = server.connect();
        conn.ask(GET);
        let start = Instant::now();
        for _ in 0..5 {
            assert_eq!(conn.ask(GET).status(), 200, "{model}");
        }
        // The first may have waited for less than a whole period.
        assert!(start.elapsed() > Duration::from_millis(400), "{model}");
    }
}

#[test]
fn slots_bound_what_several_clients_get() {
    for model in all_models().filter(|model| support::two_at_once(model).is_some()) {
        let faults = &["slots=2", "delay=40ms"];
        let server = Server::start(model, Setup { faults, ..FIXED });
        let mut conns: Vec<_> = (0..5).map(|_| server.connect()).collect();
        let start = Instant::now();
        for _ in 0..2 {
            conns.iter_mut().for_each(|conn| conn.send(GET));
            assert!(conns.iter_mut().all(|conn| conn.response().status() == 200), "{model}");
        }
        // Ten requests of 40 ms, two at a time.
        assert!(start.elapsed() >= Duration::from_millis(200), "{model}");
    }
}

#[test]
fn a_process_that_is_worn_out_is_replaced_and_nobody_else_suffers() {
    let threaded = &["StartServers=2", "ThreadsPerChild=2", "MaxRequestWorkers=16"][..];
    for (model, settings) in [
        ("prefork", &["StartServers=2", "MinSpareServers=2", "MaxSpareServers=4"][..]),
        ("worker", threaded),
        ("event", threaded),
        ("fork", &[][..]),
    ] {
        let server = Server::start(model, Setup { faults: &["churn=5"], settings, ..FIXED });
        eventually("children are there", || server.children().len() >= 2 || model == "fork");
        let first = server.children();
        let seen = transcript(&server, 60);
        assert!(seen.iter().all(|(_, status, _, length)| (*status, *length) == (200, BODY_BYTES)));
        eventually("those of the beginning are gone", || {
            !first.iter().any(|pid| support::is_alive(*pid))
        });
        if ["prefork", "fork"].contains(&model) {
            let new: Vec<usize> = (0..60).filter(|&n| seen[n].0).collect();
            assert_eq!(new, (1..12).map(|n| 5 * n).collect::<Vec<_>>(), "{model}");
        }
    }
}
