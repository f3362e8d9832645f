//! The planted artifacts, one record each. Start reading at [`ALL`].

/// An artifact that a single load can show.
pub struct Plant {
    /// The check that must find it.
    pub check: &'static str,
    /// The planted fault, at full strength.
    pub what: &'static str,
    /// How it is planted at full strength.
    pub full: Way,
    /// How it is planted at half of that; `None` if the artifact has no dose.
    pub half: Option<Way>,
    /// The share that must be reported at full strength; `None` if it depends on the machine. At half strength half of
    /// the share reported at full strength is expected.
    pub share: Option<f64>,
}

/// One way to plant an artifact. `{seed}` in any word is replaced by the number of the trial.
pub struct Way {
    /// Shell commands that run in the namespace first.
    pub setup: &'static [&'static str],
    /// Additional arguments of `joust serve`.
    pub serve: &'static [&'static str],
    /// Additional arguments of `joust load`.
    pub load: &'static [&'static str],
    /// The command that starts the server ("taskset -c 0").
    pub serve_by: &'static [&'static str],
    /// The command that starts the generator ("prlimit --nofile=64").
    pub load_by: &'static [&'static str],
    /// What happens to the processes during the load.
    pub during: During,
    /// Shell commands that run at the end.
    pub after: &'static [&'static str],
}

/// What happens to the processes during the load.
#[derive(Clone, Copy)]
pub enum During {
    Nothing,
    /// The server is stopped `times` times for `millis`, at equal intervals.
    ServerStops {
        millis: u64,
        times: u32,
    },
    /// The same for the generator.
    LoadStops {
        millis: u64,
        times: u32,
    },
    /// The server is killed half-way.
    ServerDies,
}

const PLAIN: Way = Way {
    setup: &[],
    serve: &[],
    load: &[],
    serve_by: &[],
    load_by: &[],
    during: During::Nothing,
    after: &[],
};

const fn serve(words: &'static [&'static str]) -> Way {
    Way { serve: words, ..PLAIN }
}

/// A program that uses all of CPU 0 for the length of a trial.
const BUSY_CPU_0: &str = "{ taskset -c 0 timeout 4 sh -c 'while :; do :; done' >/dev/null 2>&1 & \
                          echo $! >/run/joust-prove.pid; }";
const END_BUSY: &str = "kill $(cat /run/joust-prove.pid); rm /run/joust-prove.pid";

/// Starts a command under a CPU quota, with version 1 or 2 of cgroups.
const UNDER_QUOTA: &str = "\
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then \
        mkdir -p /sys/fs/cgroup/joust-prove && cd /sys/fs/cgroup/joust-prove && echo '20000 100000' > cpu.max; \
    else \
        mkdir -p /sys/fs/cgroup/cpu/joust-prove && cd /sys/fs/cgroup/cpu/joust-prove && echo 20000 > cpu.cfs_quota_us; \
    fi && echo $$ > cgroup.procs && exec \"$@\"";

/// Every plant, by the name of its check.
pub const ALL: &[Plant] = &[
    Plant {
        check: "accept_queue_overflow",
        what: "a backlog of 1, the server stopped for 300 ms three times in a load of 3 s, a connection for each request",
        full: Way {
            serve: &["-s", "ListenBacklog=1", "--model", "iterative"],
            load: &["--no-keepalive", "-c", "50", "-d", "3s"],
            during: During::ServerStops { millis: 300, times: 3 },
            ..PLAIN
        },
        half: None,
        share: None,
    },
    Plant {
        check: "bodies_change_under_load",
        what: "bodies are zeros after 2,000 of 4,000 answers",
        full: Way {
            load: &["-n", "4000", "--verify", "hash=100%"],
            ..serve(&["--fault", "body=zeros,after:2000"])
        },
        half: Some(Way {
            load: &["-n", "4000", "--verify", "hash=100%"],
            ..serve(&["--fault", "body=zeros,after:3000"])
        }),
        share: Some(0.5),
    },
    Plant {
        check: "bursts_of_replies",
        what: "answers leave only at multiples of 50 ms",
        full: serve(&["--fault", "batch=50ms"]),
        half: None,
        share: None,
    },
    Plant {
        check: "coordinated_omission",
        what: "no byte leaves for 300 ms in every 600 ms",
        full: serve(&["--fault", "pause=every:600ms,for:300ms"]),
        half: None,
        share: None,
    },
    Plant {
        check: "cpu_quota",
        what: "the generator may use 20 ms of CPU time in each 100 ms",
        full: Way {
            load_by: &["sh", "-c", UNDER_QUOTA, "sh"],
            after: &[
                "rmdir /sys/fs/cgroup/cpu/joust-prove /sys/fs/cgroup/joust-prove 2>/dev/null || true",
            ],
            ..PLAIN
        },
        half: None,
        share: None,
    },
    Plant {
        check: "cut_off_at_the_end",
        what: "answers take 500 ms, and the load ends after 1.8 s",
        full: Way { load: &["-d", "1800ms"], ..serve(&["--fault", "delay=500ms"]) },
        half: None,
        share: None,
    },
    Plant {
        check: "delayed_ack",
        what: "head and body in two sends without TCP_NODELAY",
        full: serve(&["--fault", "nodelay=off"]),
        half: None,
        share: None,
    },
    Plant {
        check: "errors_as_speed",
        what: "5 % of the answers are 503",
        full: serve(&["--fault", "status=503:5%,seed={seed}"]),
        half: Some(serve(&["--fault", "status=503:2.5%,seed={seed}"])),
        share: Some(0.05),
    },
    Plant {
        check: "fixed_delay_dominates",
        what: "each answer takes 20 ms",
        full: serve(&["--fault", "delay=20ms"]),
        half: None,
        share: None,
    },
    Plant {
        check: "generator_limit",
        what: "one thread of the generator hashes bodies of 1 MB",
        full: Way { load: &["-t", "1", "--verify", "hash=100%"], ..serve(&["--fixed", "1000000"]) },
        half: None,
        share: None,
    },
    Plant {
        check: "keep_alive_not_honoured",
        what: "connections end after 100 answers",
        full: serve(&["--fault", "keepalive=100"]),
        half: None,
        share: None,
    },
    Plant {
        check: "late_sends",
        what: "an open loop on a CPU that another program keeps busy",
        full: Way {
            setup: &[BUSY_CPU_0],
            load: &["--rate", "5k", "-t", "1", "-c", "200"],
            load_by: &["taskset", "-c", "0"],
            after: &[END_BUSY],
            ..PLAIN
        },
        half: None,
        share: None,
    },
    Plant {
        check: "link_ceiling",
        what: "a link of 50 Mbit/s",
        full: Way {
            setup: &["tc qdisc add dev lo root tbf rate 50mbit burst 64kb latency 50ms"],
            ..serve(&["--fixed", "20000"])
        },
        half: None,
        share: None,
    },
    Plant {
        check: "local_ports_exhausted",
        what: "10 local ports for 20 connections, one for each request",
        full: Way {
            setup: &["sysctl -q -w net.ipv4.ip_local_port_range='40000 40009'"],
            load: &["--no-keepalive"],
            ..PLAIN
        },
        half: None,
        share: None,
    },
    Plant {
        check: "packet_loss",
        what: "1 of 200 segments with data is dropped, by chance",
        full: Way {
            setup: &[
                "nft add table inet prove",
                "nft add chain inet prove input '{ type filter hook input priority 0; }'",
                "nft add rule inet prove input tcp sport 8080 meta length gt 1000 numgen random mod 200 == 0 drop",
            ],
            ..PLAIN
        },
        half: Some(Way {
            setup: &[
                "nft add table inet prove",
                "nft add chain inet prove input '{ type filter hook input priority 0; }'",
                "nft add rule inet prove input tcp sport 8080 meta length gt 1000 numgen random mod 400 == 0 drop",
            ],
            ..PLAIN
        }),
        share: Some(0.005),
    },
    Plant {
        check: "rate_not_reached",
        what: "10,000 requests/s asked, of 10 connections with a delay of 5 ms each",
        full: Way { load: &["--rate", "10k", "-c", "10"], ..serve(&["--fault", "delay=5ms"]) },
        half: None,
        share: None,
    },
    Plant {
        check: "request_retransmitted",
        what: "a backlog of 1, the server stopped for 250 ms five times, as many clients as its queue holds and three more",
        full: Way {
            serve: &["-s", "ListenBacklog=1", "--model", "iterative"],
            load: &["--no-keepalive", "-c", "6", "-d", "3s"],
            during: During::ServerStops { millis: 250, times: 5 },
            ..PLAIN
        },
        half: None,
        share: None,
    },
    Plant {
        check: "shared_cpus",
        what: "server and generator on the same CPUs, with as many threads each",
        full: Way { load: &["-t", "2", "-c", "64"], ..serve(&["--model", "thread"]) },
        half: None,
        share: None,
    },
    Plant {
        check: "silent_at_end",
        what: "the server is killed half-way",
        full: Way { during: During::ServerDies, ..PLAIN },
        half: None,
        share: Some(0.5),
    },
    Plant {
        check: "stalls_of_a_fixed_time",
        what: "1 % of the answers are held for 200 ms",
        full: serve(&["--fault", "stall=1%,200ms,seed={seed}"]),
        half: Some(serve(&["--fault", "stall=0.5%,200ms,seed={seed}"])),
        share: Some(0.01),
    },
    Plant {
        check: "stop_the_world_pauses",
        what: "no byte leaves for 100 ms in every 500 ms",
        full: serve(&["--fault", "pause=every:500ms,for:100ms"]),
        half: Some(serve(&["--fault", "pause=every:500ms,for:50ms"])),
        share: None,
    },
    Plant {
        check: "synchronised_arrivals",
        what: "the generator is stopped for 30 ms, 40 times, at a rate of 5,000 requests/s",
        full: Way {
            load: &["--rate", "5k"],
            during: During::LoadStops { millis: 30, times: 40 },
            ..PLAIN
        },
        half: None,
        share: None,
    },
    Plant {
        check: "truncated_latencies",
        what: "1 % of the answers are held for 600 ms, and the timeout is 500 ms",
        full: Way {
            load: &["--timeout", "500ms"],
            ..serve(&["--fault", "stall=1%,600ms,seed={seed}"])
        },
        half: Some(Way {
            load: &["--timeout", "500ms"],
            ..serve(&["--fault", "stall=0.5%,600ms,seed={seed}"])
        }),
        share: Some(0.01),
    },
    Plant {
        check: "unserved_connections",
        what: "8 slots of 1.5 s each for 32 connections",
        full: Way {
            load: &["-c", "32"],
            ..serve(&["--fault", "slots=8", "--fault", "delay=1500ms"])
        },
        half: None,
        share: None,
    },
    Plant {
        check: "visits_too_short",
        what: "one request on each of 100 connections",
        full: Way { load: &["-n", "100", "-c", "100"], ..PLAIN },
        half: None,
        share: None,
    },
    Plant {
        check: "warm_up_inside",
        what: "the first 2,000 answers take 5 ms longer",
        full: serve(&["--fault", "warmup=2000,5ms"]),
        half: None,
        share: None,
    },
    Plant {
        check: "wrong_reference",
        what: "the first answer is empty",
        full: serve(&["--fault", "empty-first"]),
        half: None,
        share: None,
    },
];
