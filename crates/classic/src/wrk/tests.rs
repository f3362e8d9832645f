//! Writing wrk's report and parsing it back, its layout with fixed figures, and its footnotes.

use std::path::PathBuf;

use proptest::prelude::*;
use record::{
    Asking, AtEnd, Carrier, Interval, LoadPlan, LoadRecord, Outcome, Sample, Seats, Turn,
};
use units::{Bytes, Nanos};

use super::figures::{Errors, Figures};
use super::flags::{self, Flags};
use super::printer::Wrk;
use super::stats::Stats;
use super::{command, footnotes, read, text};
use crate::command::testing::{World, args};
use crate::command::{
    Call, Chosen, CommandOutcome, ExitMessage, Finished, Printer as _, Run, Stream,
};

fn flags(line: &str) -> Flags {
    let args = args(line);
    flags::parse(&Call {
        program: "wrk",
        args: &args,
        own: &Chosen::default(),
        world: &World::default(),
    })
    .expect("a command line")
}

/// The run for a command line, in a world with one script.
fn asked(line: &str, script: &'static str) -> Result<Run, ExitMessage> {
    let world = World { files: [("x.lua", script.as_bytes())].into(), ..World::default() };
    let args = args(line);
    match command(&Call { program: "wrk", args: &args, own: &Chosen::default(), world: &world }) {
        CommandOutcome::Run(run) => Ok(*run),
        CommandOutcome::Exit(said) => Err(said),
    }
}

/// A load with these replies, each `(microseconds, how many)`, over one second.
fn record(replies: &[(u64, u64)]) -> LoadRecord {
    let mut record = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
    let mut interval = Interval::new(Nanos::ZERO, Nanos::from_millis(100));
    for (micros, count) in replies {
        for _ in 0..*count {
            interval.service.record(Nanos::from_micros(*micros));
        }
        interval.ok += count;
    }
    record.latencies.service.merge(&interval.service);
    record.requests.ok = interval.ok;
    record.requests.done = interval.ok;
    record.bytes.read = 66 * interval.ok;
    record.seconds = 1.0;
    record.intervals = vec![interval];
    record
}

fn finished(record: &LoadRecord) -> Finished<'_> {
    Finished { record, began: Nanos::ZERO, local_time: &|_| unreachable!("no clock is read") }
}

/// The layout is that of Debian's wrk, for a run with these figures.
#[test]
fn a_run_is_printed_as_wrk_prints_it() {
    let mut record = record(&[(100, 98), (300, 1), (32_767, 1)]);
    record.status.insert(200, 97);
    record.status.insert(404, 3);
    record.errors.connect_refused = 1;
    record.errors.reset_after_first_byte = 2;
    let mut wrk = Wrk::new(flags("-t1 -c10 -d1 -T10 --latency http://h/x"), String::new(), None);
    assert_eq!(
        wrk.opening().on(Stream::Out),
        "Running 1s test @ http://h/x\n  1 threads and 10 connections\n"
    );
    let closing = wrk.closing(&finished(&record));
    let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
        Latency   428.67us    3.27ms  32.77ms   99.00%\n    \
        Req/Sec     1.00k     0.00     1.00k   100.00%\n  \
        Latency Distribution\n     50%  100.00us\n     75%  100.00us\n     90%  100.00us\n     \
        99%   32.77ms\n  \
        100 requests in 1.00s, 6.45KB read\n  \
        Socket errors: connect 1, read 2, write 0, timeout 0\n  \
        Non-2xx or 3xx responses: 3\nRequests/sec:    100.00\nTransfer/sec:      6.45KB\n";
    assert_eq!(closing.texts.on(Stream::Out), expected);
    assert_eq!((closing.code, wrk.afterwards()), (0, None));
    let notes = closing.footnotes.join("\n");
    assert!(
        notes.contains("counts 3 replies with a status of 400 or above; without them it is 97.00")
    );
    assert!(!notes.contains("as a timeout"), "{notes}");
}

#[test]
fn nothing_is_printed_as_c_prints_it() {
    let flags = flags("-L http://h/");
    let figures = Figures { runtime: 1_000_000, ..Figures::default() };
    let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
        Latency     0.00us    0.00us   0.00us    -nan%\n    \
        Req/Sec     0.00      0.00     0.00      -nan%\n  \
        Latency Distribution\n     50%    0.00us\n     75%    0.00us\n     90%    0.00us\n     \
        99%    0.00us\n  \
        0 requests in 1.00s, 0.00B read\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n";
    assert_eq!(text::report(&flags, &figures), expected);
}

#[test]
fn latencies_from_the_timeout_on_are_dropped_and_the_true_maximum_is_said() {
    let record = record(&[(900_000, 3), (2_500_000, 2)]);
    let flags = flags("-t1 -c5 -d1 -T2 http://h/");
    let figures = Figures::new(&flags, &record, None);
    assert_eq!((figures.complete, figures.errors.timeout, figures.n_measured), (5, 2, 3));
    assert!(figures.latency.max() < 1_000_000, "{}", figures.latency.max());
    let notes = footnotes::footnotes(&flags, &figures, &record).join("\n");
    assert!(notes.contains("2 replies took 2s (--timeout) or longer"), "{notes}");
    assert!(notes.contains("the true maximum is 2.50s"), "{notes}");
}

#[test]
fn what_the_correction_added_is_said_with_what_was_measured() {
    let record = record(&[(1_000, 400), (600_000, 1)]);
    let flags = flags("-t1 -c1 -d1 http://h/");
    let figures = Figures::new(&flags, &record, None);
    // One request every 2.49 ms: values are added from 600 ms down to one interval.
    assert_eq!((figures.n_measured, figures.n_added), (401, 239));
    let notes = footnotes::footnotes(&flags, &figures, &record).join("\n");
    assert!(notes.contains("239 added to the 401 that were measured"), "{notes}");
    assert!(notes.contains("the mean is 2.49ms and the 99th percentile 1.00ms"), "{notes}");
}

#[test]
fn silence_connecting_and_what_never_came_are_said() {
    let mut record = record(&[(50, 100)]);
    let first = record.intervals[0].clone();
    let silent = |n: u64| Interval::new(Nanos::from_millis(100 * n), first.length);
    let mut last = first.clone();
    last.start = Nanos::from_millis(400);
    record.intervals = vec![first.clone(), silent(1), silent(2), silent(3), last];
    (record.connects, record.connections) = (7, 2);
    record.latencies.connect.record(Nanos::from_micros(400));
    record.raw = vec![Sample {
        due: Nanos::ZERO,
        sent: Nanos(1),
        first_byte: Nanos::ZERO,
        done: Nanos::from_secs(3),
        bytes_read: 0,
        bytes_body: 0,
        status: 0,
        outcome: Outcome::Unanswered,
        conn: 0,
        bytes_head: 0,
        carrier: Carrier::Fresh,
        at_end: AtEnd::Lost,
        request: 0,
    }];
    let flags = flags("-t1 -c2 -d1 http://h/");
    let figures = Figures::new(&flags, &record, None);
    let notes = footnotes::footnotes(&flags, &figures, &record).join("\n");
    for part in [
        "no reply came for 300.00ms in a row",
        "7 connections were made, in 400",
        "(--timeout) or longer at the end, which wrk counts nowhere: 1",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("as a timeout"), "{notes}");
}

#[test]
fn what_one_may_not_expect_is_said_before() {
    let notes = footnotes::before(&flags("-t3 -c8 -H A:b https://h/")).join("\n");
    assert!(
        notes.contains("of 8 connections wrk opens 6: as many for each of 3 threads"),
        "{notes}"
    );
    assert!(notes.contains("leaves out -H 'A:b'") && notes.contains("no certificate"), "{notes}");
    assert!(footnotes::before(&flags("http://h/")).is_empty());
}

#[test]
fn without_a_script_the_plan_is_all() {
    let run = asked("-t2 -c5 -d3 -H Cookie:x http://h:81/a?b", "").unwrap();
    assert!(run.scenario.is_none());
    let plan = &run.plan;
    assert_eq!((plan.connections, plan.threads), (4, 2));
    assert_eq!(plan.stop.duration, Some(Nanos::from_secs(3)));
    let expected = b"GET /a?b HTTP/1.1\r\nHost: h:81\r\n\r\n";
    assert_eq!(plan.requests[0].verbatim.as_deref(), Some(&expected[..]));
    let explained = crate::command::explain(plan);
    assert!(explained.starts_with("joust load 'http://h:81/a?b' -c 4 -d 3s -t 2 "), "{explained}");
}

#[test]
fn a_script_that_changes_the_request_only_needs_no_users() {
    let script = "wrk.method = 'POST'; wrk.body = 'a=1'; wrk.headers['Content-Type'] = 'x/y'";
    let run = asked("-s x.lua http://h/", script).unwrap();
    assert!(run.scenario.is_none());
    let request = &run.plan.requests[0];
    let expected =
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Type: x/y\r\n\r\na=1";
    assert_eq!(request.verbatim.as_deref(), Some(&expected[..]));
    assert_eq!((request.method.as_str(), request.body.as_slice()), ("POST", &b"a=1"[..]));
    assert_eq!(request.headers, [("Content-Type".to_owned(), "x/y".to_owned())]);
    for script in [
        "function request() return wrk.format() end",
        "function delay() return 1 end",
        "function response() end",
        "function setup(thread) if not one then thread.addr = wrk.lookup('127.0.0.1', '2')[1] end \
         one = true end",
        "function init() wrk.path = '/' .. tostring({}):match('0x%x+') end",
    ] {
        assert!(asked("-s x.lua http://h/", script).unwrap().scenario.is_some(), "{script}");
    }
}

/// The first request of a thread's first user, and its first turn.
fn first_asked(run: &Run, thread: u32) -> (String, Turn) {
    let scenario = run.scenario.as_ref().expect("users");
    let mut users = scenario.users(Seats { thread, first: thread, n: 1 });
    let mut asking = Asking::new(1);
    let turn = users.first(thread);
    users.ask(thread, &mut asking);
    (String::from_utf8(asking.bytes().to_vec()).unwrap(), turn)
}

#[test]
fn each_thread_asks_what_its_own_init_made_of_the_request() {
    let script = "local n = 0; function setup(thread) n = n + 1; thread:set('id', n) end; \
        function init() wrk.path = '/' .. id end";
    let run = asked("-t 2 -s x.lua http://h/", script).unwrap();
    for (thread, path) in [(0, "GET /1 "), (1, "GET /2 ")] {
        let (bytes, _) = first_asked(&run, thread);
        assert!(bytes.starts_with(path), "{bytes}");
    }
}

/// Without a script there is one state, but requests that are sent together still need users.
#[test]
fn a_request_behind_a_header_is_asked_by_every_thread() {
    let args = ["-t2", "-H", "X: a\r\n\r\nGET /b HTTP/1.1", "http://h/"].map(str::to_owned);
    let (own, world) = (Chosen::default(), World::default());
    let call = Call { program: "wrk", args: &args, own: &own, world: &world };
    let CommandOutcome::Run(run) = command(&call) else { panic!("it runs") };
    for thread in [0, 1] {
        let (bytes, _) = first_asked(&run, thread);
        assert_eq!(bytes.matches("GET /").count(), 2, "{bytes}");
    }
}

#[test]
fn a_pause_is_whatever_a_script_says() {
    let cases = [
        ("1", Nanos::from_millis(1)),
        ("2.9", Nanos::from_millis(2)),
        ("-1", Nanos::ZERO),
        ("0/0", Nanos::ZERO),
        ("math.huge", Nanos(u64::MAX)),
        ("1e18", Nanos(u64::MAX)),
    ];
    for (millis, pause) in cases {
        let script = format!("function delay() return {millis} end").leak();
        let run = asked("-s x.lua http://h/", script).unwrap();
        assert_eq!(first_asked(&run, 0).1, Turn::After(pause), "{millis}");
    }
}

#[test]
fn a_script_that_was_compiled_is_not_loaded() {
    for script in [
        "\u{1b}LJ\u{2}",
        "assert(loadstring(string.dump(function() end)))",
        "assert(load(string.dump(function() end)))",
        "local all = string.dump(function() end); \
            assert(load(function() local now = all; all = nil; return now end))",
    ] {
        let mut run = asked("-t 1 -s x.lua http://h/", script).unwrap();
        let said = run.printer.opening().on(Stream::Err);
        assert!(said.contains("attempt to load chunk with wrong mode"), "{script}: {said}");
    }
    let script = "x = 1; assert(loadstring('x = x + 1'))(); assert(load('x = x + y', 'z', 'b', \
        { x = 5, y = 6 }))(); assert(load(function() end)); assert(x == 2)";
    let mut run = asked("-s x.lua http://h/", script).unwrap();
    assert_eq!(run.printer.opening().on(Stream::Err), "");
}

/// The message on stderr instead of running, and the exit code.
fn refused(line: &str, script: &'static str) -> (String, u8) {
    let Err(said) = asked(line, script) else { panic!("it runs: {script}") };
    (said.texts.on(Stream::Err), said.code)
}

#[test]
fn what_ends_wrk_before_its_first_request_is_told_as_wrk_tells_it() {
    let cases = [
        ("error('boom')", ""),
        ("function setup() error('boom') end", "x.lua:1: boom"),
        ("function init() error('boom') end", "x.lua:1: boom"),
        ("function init() error({}) end", "?"),
        ("function request() error('boom', 0) end", "boom"),
        (
            "function init() local x; x.y = 1 end",
            "x.lua:1: attempt to index local 'x' (a nil value)",
        ),
        (
            "function setup(t) t:set('f', print) end",
            "x.lua:1: cannot transfer 'function' to thread",
        ),
        ("function setup(t) t.x = 1 end", "x.lua:1: cannot set 'number' on thread"),
        (
            "function init() wrk.connect(3) end",
            "x.lua:1: bad argument #1 to '?' (wrk.addr expected, got number)",
        ),
    ];
    for (script, why) in cases {
        if why.is_empty() {
            let mut run = asked("-t1 -c1 -s x.lua http://h/", script).expect("wrk runs on");
            assert_eq!(run.printer.opening().on(Stream::Err), "x.lua: x.lua:1: boom\n".repeat(2));
            continue;
        }
        let text = format!("PANIC: unprotected error in call to Lua API ({why})\n");
        assert_eq!(refused("-t1 -c1 -s x.lua http://h/", script), (text, 1), "{script}");
    }
    let cases = [
        ("http://x.invalid/", "unable to resolve x.invalid:http Name or service not known\n"),
        ("foo://h/", "unable to resolve h:foo Servname not supported for ai_socktype\n"),
        ("http://h:1/", "unable to connect to h:1 Connection refused\n"),
    ];
    for (line, text) in cases {
        assert_eq!(refused(line, ""), (text.to_owned(), 1), "{line}");
    }
    let script = "function init() pcall(wrk.lookup, 'x.invalid', 'http') end";
    let text = "unable to resolve x.invalid:http Name or service not known\n".to_owned();
    assert_eq!(refused("-s x.lua http://h/", script), (text, 1), "whoever catches it");
    let script = "function request() return 'hello\\r\\n\\r\\n' end";
    let text = "invalid HTTP method at 1:1\n".to_owned();
    assert_eq!(refused("-s x.lua http://h/", script), (text, 1));
    let unread = asked("-t2 -c2 -s none.lua http://h/", "").expect("wrk runs on");
    let line = "none.lua: cannot open none.lua: No such file or directory\n";
    let Run { mut printer, .. } = unread;
    assert_eq!(printer.opening().on(Stream::Err), line.repeat(3));
}

/// A script reports what it sees by its first request.
fn seen(line: &str, script: &'static str) -> String {
    let run = match asked(line, script) {
        Ok(run) => run,
        Err(said) => panic!("{script}: {said:?}"),
    };
    let request = run.plan.requests[0].verbatim.clone().unwrap();
    String::from_utf8(request).unwrap()
}

#[test]
fn a_script_sees_what_it_sees_in_wrk() {
    let line = "-t1 -c1 -H A:1 -s x.lua http://h:8080/a?b#c one -- -two";
    let cases = [
        (
            "wrk.path = '/' .. wrk.scheme .. wrk.host .. wrk.port .. type(wrk.port) .. wrk.path",
            "/httph8080string/a?b#c",
        ),
        (
            "function init(args) wrk.path = args[0] .. #args .. args[1] .. args[2] end",
            "http://h:8080/a?b#c2one-two",
        ),
        (
            "function setup(t) t:set('x', {1, {y = 'z'}, k = true}) end \
          function init() wrk.path = '/' .. x[1] .. x[2].y .. tostring(x.k) end",
            "/1ztrue",
        ),
        (
            "function setup(t) t:set('x', nil); t:set('y', 2.5); wrk.p = t:get('wrk') end \
          function init() wrk.path = type(x) .. y .. tostring(wrk.thread:get('y')) end",
            "",
        ),
        (
            "function setup(t) t.addr = wrk.lookup('127.0.0.2', '81')[1] end \
          function init() wrk.path = '/' .. tostring(wrk.thread.addr) .. type(wrk.thread.addr) end",
            "/127.0.0.2:81userdata",
        ),
        (
            "wrk.path = '/' .. tostring(wrk.connect(wrk.lookup('h', '1')[1])) .. tostring(wrk.connect(wrk.lookup('h', 'http')[1]))",
            "/falsetrue",
        ),
        (
            "function init() wrk.path = '/' .. type(wrk.thread) .. wrk.thread.foo .. type(wrk.thread.get) end",
            "/userdatafoofunction",
        ),
        ("wrk.path = '/' .. tostring(require('wrk') == wrk)", "/true"),
    ];
    for (script, path) in cases {
        if path.is_empty() {
            // Functions cannot pass from one state to another, and `wrk` contains many.
            let (text, _) = refused(line, script);
            assert!(text.contains("cannot transfer 'function' to thread"), "{text}");
            continue;
        }
        let request = seen(line, script);
        assert!(request.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{script}: {request}");
    }
}

#[test]
fn a_request_is_formatted_from_what_is_given_and_from_the_defaults() {
    let line = "-t1 -c1 -s x.lua http://[::1]:81/";
    let cases = [
        ("", "GET / HTTP/1.1\r\nHost: [::1]:81\r\n\r\n"),
        (
            "function request() return wrk.format('PUT', '/x', {B = 2, a = 'y'}, 'abc') end",
            "PUT /x HTTP/1.1\r\nHost: [::1]:81\r\nB: 2\r\nContent-Length: 3\r\na: y\r\n\r\nabc",
        ),
        (
            "wrk.headers.Host = 'other'; wrk.path = '/y' function request() return wrk.format('HEAD') end",
            "HEAD /y HTTP/1.1\r\nHost: other\r\n\r\n",
        ),
        (
            "wrk.body = 'abc' function request() wrk.format(); wrk.body = nil; return wrk.format() end",
            "GET / HTTP/1.1\r\nHost: [::1]:81\r\n\r\n",
        ),
    ];
    for (script, request) in cases {
        assert_eq!(seen(line, script), request, "{script}");
    }
}

fn spans() -> impl Strategy<Value = Stats> {
    prop::collection::vec((0..5_000_000u64, 1..50u64), 0..30).prop_map(Stats::of)
}

fn all_figures() -> impl Strategy<Value = Figures> {
    let errors = [0..3u64, 0..100, 0..3, 0..5000, 0..1000];
    (spans(), spans(), 0..10_000_000u64, 0..u64::MAX >> 8, errors, 1..7_200_000_000u64).prop_map(
        |(latency, rates, complete, bytes, [connect, read, write, status, timeout], runtime)| {
            let errors = Errors { connect, read, write, status, timeout };
            Figures { latency, rates, complete, bytes, errors, runtime, ..Figures::default() }
        },
    )
}

/// Whether the read value is within the precision of two decimals in its unit.
fn is_near(read: f64, written: f64) -> bool {
    (read - written).abs() <= written * 0.006 + 0.005
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        figures in all_figures(),
        has_percentiles in any::<bool>(),
        threads in 1..9u32,
        connections in 9..2000u32,
    ) {
        let latency = if has_percentiles { "--latency" } else { "" };
        let flags = flags(&format!("-t {threads} -c {connections} {latency} http://h:81/x?y"));
        let written = text::opening(&flags) + &text::report(&flags, &figures);
        let mut reports = read::read_reports(&written).expect("it is a report of wrk");
        prop_assert_eq!(reports.len(), 1);
        let report = reports.remove(0);
        prop_assert_eq!(&report.missing, &Vec::<&str>::new());
        prop_assert_eq!(report.url.as_deref(), Some("http://h:81/x?y"));
        prop_assert_eq!(report.threads, Some(threads.into()));
        prop_assert_eq!(report.concurrency, Some(connections.into()));
        prop_assert_eq!(report.requests.complete, Some(figures.complete));
        let errors = &figures.errors;
        let is_told = errors.connect + errors.read + errors.write + errors.timeout > 0;
        for (kind, count) in [
            ("connect", errors.connect),
            ("read", errors.read),
            ("write", errors.write),
            ("timeout", errors.timeout),
        ] {
            prop_assert_eq!(report.errors.get(kind).copied(), is_told.then_some(count));
        }
        prop_assert_eq!(report.requests.non_2xx, (errors.status > 0).then_some(errors.status));
        let micros = |span: Option<Nanos>| span.map_or(-1.0, |span| span.0 as f64 / 1000.0);
        let total = &report.times.total;
        prop_assert!(is_near(micros(report.duration), figures.runtime as f64));
        prop_assert!(is_near(micros(total.mean), figures.latency.mean()), "{}", written);
        prop_assert!(is_near(micros(total.sd), figures.latency.sd()), "{}", written);
        prop_assert!(is_near(micros(total.max), figures.latency.max() as f64), "{}", written);
        let Bytes(bytes) = report.traffic.received.unwrap();
        prop_assert!(is_near(bytes as f64, figures.bytes as f64 + 0.5));
        prop_assert_eq!(report.percentiles.len(), if has_percentiles { 4 } else { 0 });
        for (percent, span) in &report.percentiles {
            let value = figures.latency.percentile(*percent) as f64;
            prop_assert!(is_near(micros(Some(*span)), value), "{}", written);
        }
    }
}

#[test]
fn a_script_s_name_is_as_typed() {
    assert_eq!(flags("-s ./a.lua http://h/").script, Some(PathBuf::from("./a.lua")));
}
