//! Every installed server starts, answers and ends in a network namespace as it does on loopback, and
//! nothing of it is left.

use std::fs;
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use joust_lab::adapters::{self, Search};
use joust_lab::netns::Net;
use joust_lab::oracle;
use joust_lab::server::{self, Conditions, Running, Start};
use record::{LoadPlan, LoadStop, NetworkKind, Settings};
use units::{Bytes, Nanos};

/// Generous: the machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);
const SERVERS: [&str; 3] = ["nginx", "apache", "lighttpd"];

#[test]
fn a_server_in_a_namespace_answers_the_load_across_the_pair_and_leaves_nothing() {
    let scratch = server::scratch().unwrap();
    let docroot = server::site(scratch.path(), &[Bytes(3000)]).unwrap();
    for name in SERVERS {
        let adapter = adapters::named(name).unwrap();
        let Some(found) = (adapter.find)(&Search::new("/nonexistent/joust")) else {
            skips::note(format_args!("{name} is not installed (scripts/peers.sh)"));
            continue;
        };
        let net = Net::fresh();
        if let Some(reason) = &net.facts().reason {
            return skips::note(reason);
        }
        assert_eq!(net.facts().kind, NetworkKind::Veth);
        let settings = Settings::default();
        let start = Start {
            adapter,
            found: &found,
            settings: &settings,
            docroot: &docroot,
            cpus: &[],
            connections: 4,
            scratch: scratch.path(),
            target: "/index.html",
            timeout: PATIENCE.into(),
            interrupt: &joust_lab::server::UNINTERRUPTED,
        };
        let conditions = Conditions { padding: 100, ..Conditions::over(net.clone()) };
        let running = Running::start_under(&start, &conditions).unwrap();
        let addr = running.addr();
        assert!(!addr.ip().is_loopback(), "{addr}");
        // nginx writes the name of its process over its environment.
        if name != "nginx" {
            let environment =
                fs::read(format!("/proc/{}/environ", running.pid().unwrap())).unwrap();
            let environment = String::from_utf8_lossy(&environment);
            assert!(environment.contains(&"x".repeat(100)), "{name}: {environment}");
        }
        assert!(!running.facts().parity.is_empty(), "{name}'s configuration was read back");
        let asked = net.at_client(|| oracle::ask(addr, start.target, PATIENCE.into())).unwrap();
        assert_eq!(asked.unwrap().bytes, 3000);
        let load = net.at_client(|| load(addr)).unwrap();
        let ok: u64 = load.intervals.iter().map(|interval| interval.ok).sum();
        assert_eq!(ok, 200, "{name}");
        running.stop().unwrap();
        let free = net.at_server(|| TcpListener::bind(addr).is_ok()).unwrap();
        assert!(free, "{name} has left its port");
        assert_eq!(server::running(), [0; 0]);
    }
}

/// Two hundred requests, each on a connection of its own.
fn load(addr: std::net::SocketAddr) -> record::LoadRecord {
    let plan = LoadPlan {
        connections: 4,
        keep_alive: false,
        stop: LoadStop { requests: Some(200), duration: None },
        timeout: Nanos::from(PATIENCE),
        ..LoadPlan::get(addr, "/index.html")
    };
    load::run(&plan, &load::Control::new(&AtomicBool::new(false))).unwrap()
}
