//! The load over real sockets, against small servers of std threads whose behaviour is known. Owns
//! the facts that only a kernel can prove; what time and chance decide is proved in `simulated.rs`.
//! Start reading at [`Server`].

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use joust_load::{Control, FetchError, LoadError, LoadOptions, fetch, run};
use record::{Engine, LoadPlan, LoadRecord};
use units::{Bytes, Nanos};

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A server that hands each connection to a function on its own thread. It lives as long as the
/// test's process, since its threads wait in accept.
struct Server {
    addr: SocketAddr,
    accepted: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
}

impl Server {
    fn start(serve: impl Fn(&mut Conn) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (accepted, requests) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (n_accepted, n_requests, serve) = (accepted.clone(), requests.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (serve, requests) = (serve.clone(), n_requests.clone());
                n_accepted.fetch_add(1, Ordering::SeqCst);
                let mut conn = Conn { stream: stream.unwrap(), buf: Vec::new(), requests };
                std::thread::spawn(move || serve(&mut conn));
            }
        });
        Self { addr, accepted, requests }
    }

    fn plan(&self, change: impl FnOnce(&mut LoadOptions)) -> LoadPlan {
        let mut options = LoadOptions::new(format!("http://{}/x", self.addr));
        options.draft.stop.requests = Some(200);
        change(&mut options);
        options.plan().unwrap()
    }
}

struct Conn {
    stream: TcpStream,
    buf: Vec<u8>,
    requests: Arc<AtomicU64>,
}

impl Conn {
    /// Reads a request's head and `n_body` bytes; its text, or `None` at the end.
    fn request(&mut self, n_body: usize) -> Option<String> {
        loop {
            if let Some(at) = self.buf.windows(4).position(|four| four == b"\r\n\r\n")
                && self.buf.len() >= at + 4 + n_body
            {
                let rest = self.buf.split_off(at + 4 + n_body);
                let request = std::mem::replace(&mut self.buf, rest);
                self.requests.fetch_add(1, Ordering::SeqCst);
                return Some(String::from_utf8_lossy(&request).into_owned());
            }
            let mut bytes = [0; 65_536];
            let n_read = self.stream.read(&mut bytes).ok().filter(|n| *n > 0)?;
            self.buf.extend_from_slice(&bytes[..n_read]);
        }
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    fn reset(&mut self) {
        sys::socket::reset_on_close(&self.stream).unwrap();
    }
}

fn load(plan: &LoadPlan) -> LoadRecord {
    let interrupt = AtomicBool::new(false);
    run(plan, &Control::new(&interrupt)).unwrap()
}

const ENGINES: [Engine; 2] = [Engine::Epoll, Engine::Uring];

/// `None` where this kernel does not have the engine.
fn load_if_there(plan: &LoadPlan) -> Option<LoadRecord> {
    let interrupt = AtomicBool::new(false);
    match run(plan, &Control::new(&interrupt)) {
        Err(error) if plan.engine == Engine::Uring => {
            skips::note(format_args!("no io_uring here: {error}"));
            None
        }
        record => Some(record.unwrap()),
    }
}

/// Answers every request with `reply`.
fn always(reply: &'static [u8]) -> Server {
    Server::start(move |conn| {
        while conn.request(0).is_some() {
            conn.reply(reply)
        }
    })
}

#[test]
fn counts_agree_with_the_servers() {
    let server = always(REPLY);
    let plan = server.plan(|o| {
        (o.draft.connections, o.draft.threads, o.draft.stop.requests) = (9, 2, Some(3000));
        // The one that every kernel has.
        o.draft.engine = Engine::Epoll;
    });
    let record = load(&plan);
    assert_eq!((record.engine.as_str(), record.requests.ok), ("epoll", 3000));
    assert_eq!(server.requests.load(Ordering::SeqCst), 3000);
    assert_eq!(record.connects, 9);
    assert_eq!(server.accepted.load(Ordering::SeqCst), 9);
    assert_eq!(record.bytes.read, 3000 * REPLY.len() as u64);
    assert_eq!(record.bytes.body, 3000 * 5);
    assert_eq!(record.status, [(200, 3000)].into());
    assert!(record.cpu_us_per_request.unwrap() > 0.0);
    assert!(record.client.busiest() > 0.0);
    assert_eq!(record.client.connections_open_max, 9);
}

#[test]
fn without_keep_alive_the_client_says_so_and_closes() {
    let server = Server::start(|conn| {
        let Some(request) = conn.request(0) else { return };
        assert!(request.contains("\r\nConnection: close\r\n"), "{request}");
        conn.reply(REPLY);
        // A server that ignores it: the client closes all the same, or this would never end.
        assert_eq!(conn.request(0), None);
    });
    let record = load(&server.plan(|o| (o.draft.connections, o.draft.keep_alive) = (4, false)));
    assert_eq!((record.requests.ok, record.connects), (200, 200));
    assert_eq!(server.accepted.load(Ordering::SeqCst), 200);
}

#[test]
fn a_delay_of_the_server_is_what_is_measured() {
    let delay = Duration::from_millis(20);
    let server = Server::start(move |conn| {
        while conn.request(0).is_some() {
            std::thread::sleep(delay);
            conn.reply(REPLY);
        }
    });
    let record =
        load(&server.plan(|o| (o.draft.connections, o.draft.stop.requests) = (4, Some(100))));
    let service = &record.latencies.service;
    let shortest = record.raw.iter().map(|sample| sample.done - sample.sent).min().unwrap();
    assert!(shortest >= delay.into(), "{shortest} is shorter than the server's delay");
    // The scheduler of a loaded machine may add to it; only the simulator can say how much is ours.
    let median = service.quantile(0.5).unwrap();
    assert!(median < Nanos::from_millis(500), "{median}");
}

#[test]
fn a_closed_port_refuses_every_request() {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut options = LoadOptions::new(format!("http://{addr}/"));
    (options.draft.connections, options.draft.stop.requests) = (2, Some(6));
    let plan = options.plan().unwrap();
    let record = load(&plan);
    assert_eq!((record.errors.connect_refused, record.requests.failed), (6, 6));
    let error = fetch(&plan).unwrap_err();
    assert!(error.to_string().contains("refused; nothing listens"), "{error}");
}

#[test]
fn resets_and_closes_are_told_apart_before_and_after_the_first_byte() {
    type End = fn(&mut Conn);
    let ends: [(End, [u64; 4]); 4] = [
        (|conn| conn.reset(), [20, 0, 0, 0]),
        (|conn| conn.stream.shutdown(Shutdown::Both).unwrap(), [0, 0, 20, 0]),
        (
            |conn| {
                conn.reply(&REPLY[..30]);
                // Read by the client before the reset overtakes it: it never speaks again.
                std::thread::sleep(Duration::from_millis(30));
                conn.reset();
            },
            [0, 20, 0, 0],
        ),
        (
            |conn| {
                conn.reply(&REPLY[..REPLY.len() - 1]);
                conn.stream.shutdown(Shutdown::Both).unwrap();
            },
            [0, 0, 0, 20],
        ),
    ];
    for (index, (end, expected)) in ends.into_iter().enumerate() {
        let server = Server::start(move |conn| {
            if conn.request(0).is_some() {
                end(conn);
            }
        });
        for engine in ENGINES {
            let plan = server.plan(|o| {
                (o.draft.connections, o.draft.stop.requests, o.draft.engine) =
                    (4, Some(20), engine);
            });
            let Some(record) = load_if_there(&plan) else { continue };
            let errors = &record.errors;
            let got = [
                errors.reset_before_first_byte,
                errors.reset_after_first_byte,
                errors.closed_before_first_byte,
                errors.closed_after_first_byte,
            ];
            assert_eq!((got, errors.total()), (expected, 20), "case {index}, {engine:?}");
        }
    }
}

#[test]
fn a_reply_and_a_close_that_come_together_fail_nobody() {
    // The server does not say that it closes. FIN comes in the same segment as the reply or just
    // after; where the next request was sent in between, that request is reset.
    let server = Server::start(|conn| {
        if conn.request(0).is_some() {
            conn.reply(b"HTTP/1.1 200 OK\r\n\r\nuntil close");
        }
    });
    let record = load(&server.plan(|o| o.draft.connections = 4));
    assert_eq!((record.requests.ok, record.connects), (200, 200));
    assert_eq!(record.bytes.body, 200 * 11);
}

/// A server that closes every connection after 10 replies and does not say so; some of the closes cross
/// with the next request.
#[test]
fn kept_connections_that_are_closed_unannounced_fail_no_request() {
    for (engine, pipeline) in ENGINES.into_iter().flat_map(|engine| [(engine, 1), (engine, 4)]) {
        let server = Server::start(|conn| {
            for _ in 0..10 {
                if conn.request(0).is_none() {
                    return;
                }
                conn.reply(REPLY);
            }
        });
        let plan = server.plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.engine) = (4, Some(5000), engine);
            (o.draft.pipeline, o.url) = (pipeline, format!("{}?{{seq}}", o.url));
        });
        let Some(record) = load_if_there(&plan) else { continue };
        assert_eq!(record.requests.started, 5000, "{engine:?}");
        assert_eq!(
            record.requests.ok, 5000,
            "{engine:?}, pipeline {pipeline}: {:?}",
            record.errors
        );
        let ends = &record.connection_ends;
        let after_ten = ends.replies.get(&10).copied().unwrap_or(0);
        assert!(ends.announced == 0 && after_ten > 0, "{engine:?}: {ends:?}");
        if pipeline == 1 {
            // The last connection of each slot may be in the midst; one that is closed with a request
            // unread is reset, and the request retried.
            let told = after_ten + record.requests.retried;
            assert!(told + 4 >= record.connects, "{engine:?}: {ends:?}");
        }
    }
}

#[test]
fn the_kernel_is_asked_about_connections_over_tcp_alone() {
    for engine in ENGINES {
        for keep_alive in [true, false] {
            let server = always(REPLY);
            let plan = server.plan(|o| {
                (o.draft.connections, o.draft.keep_alive) = (4, keep_alive);
                o.draft.engine = engine;
            });
            let Some(record) = load_if_there(&plan) else { continue };
            let tcp = &record.tcp;
            assert_eq!((tcp.connections, tcp.looked_at), (record.connects, record.connects));
            assert_eq!(record.connects, if keep_alive { 4 } else { 200 });
            assert_eq!(tcp.timeouts.is_some(), tcp.timeout_time.is_some());
            assert_eq!(record.connection_ends, record::ConnectionEnds::default());
        }
        let path = std::env::temp_dir().join(format!("joust-real-{}-{engine:?}", process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).is_ok_and(|n_read| n_read > 0) {
                    stream.write_all(REPLY).ok();
                }
            }
        });
        let mut options = LoadOptions::new("http://x/");
        options.unix = Some(path.clone());
        (options.draft.connections, options.draft.stop.requests) = (1, Some(20));
        options.draft.engine = engine;
        let record = load_if_there(&options.plan().unwrap());
        std::fs::remove_file(&path).unwrap();
        let Some(record) = record else { continue };
        assert_eq!((record.requests.ok, record.tcp.looked_at), (20, 0));
        assert_eq!((record.tcp.connections, record.tcp.timeouts), (1, None));
    }
}

/// A server that takes the next request and resets the connection instead of a reply.
#[test]
fn a_request_is_sent_once_more_as_it_was_and_never_a_third_time() {
    for engine in ENGINES {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hears = heard.clone();
        let server = Server::start(move |conn| {
            if let Some(first) = conn.request(0) {
                hears.lock().unwrap().push(first);
                conn.reply(REPLY);
                let second = conn.request(0);
                hears.lock().unwrap().extend(second);
                conn.reset();
            }
        });
        let plan = server.plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.engine) = (2, Some(100), engine);
            o.url = format!("{}?{{seq}}-{{rand}}", o.url);
        });
        let Some(record) = load_if_there(&plan) else { continue };
        // Each connection serves one and loses the next, which is the first on the one after it.
        assert_eq!((record.requests.ok, record.errors.total()), (100, 0), "{:?}", record.errors);
        assert_eq!(record.requests.retried, 98);
        let mut heard = heard.lock().unwrap().clone();
        assert_eq!(heard.len(), 198);
        heard.sort_unstable();
        heard.dedup();
        assert_eq!(heard.len(), 100, "the second time its values are the same");
        let post = LoadPlan { requests: vec![post(&plan)], ..plan };
        let record = load(&post);
        let lost = record.errors.reset_before_first_byte;
        // Every other one of each connection, whichever of the two began and ended with one that was served.
        assert!((48..=50).contains(&lost), "{:?}", record.errors);
        assert_eq!((record.requests.retried, record.requests.failed), (0, lost));
    }
}

#[test]
fn a_tls_handshake_that_hangs_is_no_timeout_of_connecting() {
    let hangs = Server::start(|conn| {
        std::io::copy(&mut conn.stream, &mut std::io::sink()).ok();
    });
    for engine in ENGINES {
        let mut plan = hangs.plan(|o| {
            (o.url, o.draft.tls.insecure) = (o.url.replace("http:", "https:"), true);
            (o.draft.connections, o.draft.stop.requests, o.draft.engine) = (2, Some(2), engine);
        });
        plan.timeout = Nanos::from_millis(150);
        let Some(record) = load_if_there(&plan) else { continue };
        let errors = &record.errors;
        assert_eq!((errors.tls_timeout, errors.total()), (2, 2), "{engine:?}: {errors:?}");
        assert_eq!(record.connects, 2, "TCP was there at once");
        let error = fetch(&plan).unwrap_err().to_string();
        assert!(error.contains("complete the TLS handshake within 150ms"), "{error}");
    }
}

/// The request of a plan as one that may not be sent twice.
fn post(plan: &LoadPlan) -> record::RequestPlan {
    record::RequestPlan { method: "POST".to_owned(), ..plan.requests[0].clone() }
}

#[test]
fn timeouts_of_waiting_and_of_reading_are_told_apart() {
    for (reply, waiting) in [(&b""[..], 3), (&REPLY[..12], 0)] {
        let server = always(reply);
        let plan = server.plan(|o| {
            (o.draft.connections, o.draft.stop.requests, o.draft.timeout) =
                (3, Some(3), Nanos::from_secs(1));
        });
        let record = load(&plan);
        let errors = &record.errors;
        assert_eq!((errors.timeout_waiting, errors.timeout_reading), (waiting, 3 - waiting));
        let times = record.raw.iter().map(|sample| sample.done - sample.sent);
        assert!(times.min().unwrap() >= plan.timeout, "never early");
    }
}

#[test]
fn a_full_backlog_times_out_connecting() {
    let listener =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    listener.listen(0).unwrap();
    let addr = listener.local_addr().unwrap().as_socket().unwrap();
    // A backlog of 0 holds one connection; the SYNs of the others are dropped.
    let held: Vec<TcpStream> = (0..4)
        .filter_map(|_| TcpStream::connect_timeout(&addr, Duration::from_millis(50)).ok())
        .collect();
    let mut options = LoadOptions::new(format!("http://{addr}/"));
    (options.draft.connections, options.draft.stop.requests) = (2, Some(2));
    options.draft.timeout = Nanos::from_millis(150);
    let record = load(&options.plan().unwrap());
    assert_eq!(record.errors.connect_timeout, 2, "{:?}, {} held", record.errors, held.len());
}

#[test]
fn garbage_and_wrong_lengths_are_told_apart() {
    let server = always(b"SSH-2.0-OpenSSH_9.6\r\n");
    let record = load(&server.plan(|o| o.draft.stop.requests = Some(10)));
    assert_eq!(record.errors.protocol, 10);

    let server = always(REPLY);
    let mut plan = server.plan(|o| o.draft.stop.requests = Some(10));
    plan.verify.length = Some(Bytes(6));
    assert_eq!(load(&plan).errors.wrong_length, 10);
    plan.verify.length = Some(Bytes(5));
    assert_eq!(load(&plan).requests.ok, 10);
}

#[test]
fn large_replies_and_large_requests_come_through_whole() {
    const BODY: usize = 3_000_000;
    let server = Server::start(|conn| {
        while conn.request(BODY).is_some() {
            let mut reply =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes();
            reply.resize(reply.len() + BODY, b'x');
            conn.reply(&reply);
        }
    });
    let mut plan = server.plan(|o| {
        (o.draft.connections, o.draft.stop.requests) = (3, Some(12));
        (o.method, o.body) = ("POST".to_owned(), vec![b'y'; BODY]);
    });
    plan.verify.length = Some(Bytes(BODY as u64));
    let record = load(&plan);
    assert_eq!(record.requests.ok, 12, "{:?}", record.errors);
    assert_eq!(record.bytes.body, 12 * BODY as u64);
    assert!(record.bytes.written > 12 * BODY as u64);
    let fetched = fetch(&plan).unwrap();
    assert_eq!((fetched.status, fetched.body.len()), (200, BODY));
}

#[test]
fn a_reply_before_the_request_is_wholly_sent_is_taken() {
    let server = Server::start(|conn| {
        // Refuses the body without reading it, as a server with a limit does.
        let mut first = [0; 100];
        conn.stream.read_exact(&mut first).unwrap();
        conn.reply(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        std::thread::sleep(Duration::from_millis(100));
    });
    let plan = server.plan(|o| {
        (o.draft.connections, o.draft.stop.requests) = (2, Some(4));
        (o.method, o.body) = ("POST".to_owned(), vec![b'y'; 20_000_000]);
    });
    let record = load(&plan);
    assert_eq!((record.errors.unexpected_status, record.requests.failed), (4, 4));
    assert_eq!(record.status, [(413, 4)].into());
}

#[test]
fn a_fetch_returns_head_and_body_as_they_came() {
    let server = always(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
          HTTP/1.1 404 Not Found\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n\
          3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
    );
    let fetched = fetch(&server.plan(|_| ())).unwrap();
    assert_eq!(fetched.status, 404);
    assert_eq!(fetched.head, "HTTP/1.1 404 Not Found\nX-A: b\nTransfer-Encoding: chunked");
    assert_eq!(fetched.body, b"abcde");
}

#[test]
fn a_fetch_that_fails_says_where() {
    let silent = always(b"").plan(|o| o.draft.timeout = Nanos::from_millis(100));
    let error = fetch(&silent).unwrap_err();
    assert!(matches!(error, FetchError::Timeout { phase: "begin its reply", .. }), "{error}");
    let stops = always(&REPLY[..20]).plan(|o| o.draft.timeout = Nanos::from_secs(1));
    let error = fetch(&stops).unwrap_err();
    assert!(matches!(error, FetchError::Timeout { phase: "complete its reply", .. }), "{error}");
    let cuts = Server::start(|conn| {
        conn.request(0);
        conn.reply(&REPLY[..20]);
    });
    let error = fetch(&cuts.plan(|_| ())).unwrap_err();
    assert!(matches!(error, FetchError::Cut { read: Bytes(20), .. }), "{error}");
    let error = fetch(&always(b"nonsense\r\n\r\n").plan(|_| ())).unwrap_err();
    assert!(matches!(error, FetchError::Protocol { .. }), "{error}");
}

#[test]
fn a_load_can_be_watched_and_interrupted() {
    let server = always(REPLY);
    let plan = server.plan(|o| {
        (o.draft.stop.requests, o.draft.stop.duration) = (None, Some(Nanos::from_secs(600)));
        o.draft.interval = Nanos::from_millis(20);
    });
    let (interrupt, n_seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = |_: &record::Interval| {
        if n_seen.fetch_add(1, Ordering::Relaxed) == 4 {
            interrupt.store(true, Ordering::Relaxed);
        }
    };
    let record = run(&plan, &Control::new(&interrupt).watching(&watch)).unwrap();
    assert!(record.interrupted && record.requests.ok > 0 && record.seconds < 60.0);
    assert_eq!(n_seen.load(Ordering::Relaxed), record.intervals.len() as u64);
}

#[test]
fn what_the_machine_cannot_do_is_refused_before_the_start() {
    let mut options = LoadOptions::new("http://127.0.0.1:1/");
    (options.draft.connections, options.draft.stop.requests) = (1_000_000, Some(1));
    let interrupt = AtomicBool::new(false);
    let limit = sys::socket::raise_file_limit().unwrap();
    if limit < 1_000_000 {
        let error = run(&options.plan().unwrap(), &Control::new(&interrupt)).unwrap_err();
        assert!(matches!(error, LoadError::Files { .. }), "{error}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }
    (options.draft.connections, options.draft.cpus) = (1, vec![1023]);
    let error = run(&options.plan().unwrap(), &Control::new(&interrupt)).unwrap_err();
    assert!(matches!(error, LoadError::Pin { cpu: 1023, .. }), "{error}");
}
