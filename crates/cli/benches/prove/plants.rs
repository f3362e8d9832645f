//! What is planted: one record an artifact. Start reading at [`ALL`].

/// An artifact that a load alone can show.
pub struct Plant {
    /// The check that must find it.
    pub check: &'static str,
    /// What is planted, at full strength.
    pub what: &'static str,
    /// How it is planted at full strength.
    pub full: Way,
    /// How it is planted at half of that; `None` where the artifact has no dose.
    pub half: Option<Way>,
    /// The share that must be reported at full strength; `None` where it depends on the machine. At half strength
    /// half of what was reported at full strength is expected.
    pub share: Option<f64>,
}

/// One way to plant an artifact. `{seed}` in any word stands for the number of the trial.
pub struct Way {
    /// Commands of a shell that are run in the namespace before anything is started.
    pub setup: &'static [&'static str],
    /// Further words of `joust serve`.
    pub serve: &'static [&'static str],
    /// Further words of `joust load`.
    pub load: &'static [&'static str],
    /// What the generator is started by ("prlimit --nofile=64").
    pub load_by: &'static [&'static str],
    /// What is done to the server while it is loaded.
    pub during: During,
}

/// What is done to the server while it is loaded.
#[derive(Clone, Copy)]
pub enum During {
    Nothing,
    /// It is stopped for that many milliseconds, so often, at equal distances.
    Stops {
        millis: u64,
        times: u32,
    },
}

const PLAIN: Way = Way { setup: &[], serve: &[], load: &[], load_by: &[], during: During::Nothing };

const fn serve(words: &'static [&'static str]) -> Way {
    Way { serve: words, ..PLAIN }
}

/// Every plant, by the name of its check.
pub const ALL: &[Plant] = &[
    Plant {
        check: "accept_queue_overflow",
        what: "a backlog of 1, the server stopped for 300 ms three times, a connection for each request",
        full: Way {
            serve: &["-s", "ListenBacklog=1", "--model", "iterative"],
            load: &["--no-keepalive", "-c", "50"],
            during: During::Stops { millis: 300, times: 3 },
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
        check: "keep_alive_not_honoured",
        what: "connections end after 100 answers",
        full: serve(&["--fault", "keepalive=100"]),
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
        share: Some(0.2),
    },
    Plant {
        check: "unserved_connections",
        what: "8 slots of 1 s each for 32 connections",
        full: Way {
            load: &["-c", "32"],
            ..serve(&["--fault", "slots=8", "--fault", "delay=1500ms"])
        },
        half: None,
        share: None,
    },
];
