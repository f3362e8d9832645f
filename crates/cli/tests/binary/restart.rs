//! `joust serve` after its serving process is killed: another replaces it, up to a limit, and nothing of the old one is
//! left. Start reading at [`freeze`].

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::reload::{Client, Notifying, Site, children, fixed, is_alive, kill, models, until};

/// Stops a process until it is killed.
fn freeze(pid: u32) {
    kill("STOP", pid);
    let is_stopped = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['T', 'Z', 'X']))
    };
    // Its threads stop one after the other.
    until("every thread is stopped", || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
        tasks.into_iter().flatten().flatten().all(is_stopped)
    });
}

/// A client that has sent a request and waits.
fn asks(address: &str) -> TcpStream {
    let mut client = Client::to(address).unwrap().stream;
    client.write_all(b"GET /page HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
    client
}

fn is_answered(mut client: TcpStream) -> bool {
    let mut answer = String::new();
    client.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
}

#[test]
fn who_waits_is_answered_by_the_process_after_one_that_was_killed() {
    let queues = "[settings]\naccept = \"reuseport\"\nworker_processes = 3\n";
    let several = format!("{}{queues}", fixed("reactors", 10));
    for config in models().map(|model| fixed(model, 10)).chain([several]) {
        let site = Site::start(&config);
        assert_eq!(site.answers(), Some(10));
        let killed = site.generations()[0];
        // First the process that starts the others: a child that started later would accept a client.
        freeze(killed);
        let below = children(killed);
        below.iter().for_each(|&pid| freeze(pid));
        // Nobody accepts them, so they wait in the kernel.
        let waiting: Vec<_> = (0..8).map(|_| asks(&site.address())).collect();
        kill("KILL", killed);
        for client in waiting {
            assert!(is_answered(client), "{config}: {}", site.errors());
        }
        site.says(
            "was killed by signal 9; another one was started (restart 1 of at most 5 within 10s)",
        );
        for pid in below.into_iter().chain([killed]) {
            until("the end of what was there before", || !is_alive(pid));
        }
        assert_eq!(site.answers(), Some(10), "{config}");
        let now = site.generations();
        assert!(now.len() == 1 && now[0] != killed, "{config}: {now:?}");
        site.ends_well();
    }
}

#[test]
fn clients_that_wait_take_no_descriptor_that_a_new_process_needs_to_begin() {
    for (model, settings) in [("uring", "rings = 12"), ("reactors", "worker_processes = 12")] {
        if !models().any(|runs| runs == model) {
            continue;
        }
        let site = Site::start(&format!("{}[settings]\n{settings}\n", fixed(model, 10)));
        assert_eq!(site.answers(), Some(10));
        let killed = site.generations()[0];
        let held = std::fs::read_dir(format!("/proc/{killed}/fd")).unwrap().count() as u64;
        // Enough for a process to serve, and for a few connections.
        let limit = rustix::process::Rlimit { current: Some(held + 6), maximum: Some(held + 6) };
        let server = rustix::process::Pid::from_raw(site.server.child.id() as i32);
        rustix::process::prlimit(server, rustix::process::Resource::Nofile, limit).unwrap();
        freeze(killed);
        // They stay open after their answers, so that their descriptors remain in use.
        let mut waiting: Vec<_> = (0..32).map(|_| Client::to(&site.address()).unwrap()).collect();
        for client in &mut waiting {
            client.stream.write_all(b"GET /page HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
            client.stream.set_nonblocking(true).unwrap();
        }
        kill("KILL", killed);
        until("an answer", || waiting.iter().any(|client| client.stream.peek(&mut [0]).is_ok()));
        drop(waiting);
        until("room for others", || site.answers() == Some(10));
        assert_eq!(site.generations().len(), 1, "{model}: {}", site.errors());
        let errors = site.errors();
        assert_eq!(errors.matches("another one was started").count(), 1, "{model}: {errors}");
        site.ends_well();
    }
}

#[test]
fn a_process_that_is_killed_under_load_is_made_up_for_and_the_port_is_never_closed() {
    for model in ["reactors", "prefork"] {
        let site = Site::start(&fixed(model, 10));
        let mut answered = 0;
        for _ in 0..3 {
            until("an answer", || site.answers() == Some(10));
            // A child of the killed process may have answered before it ended itself.
            until("a process that serves", || !site.generations().is_empty());
            let killed = site.generations()[0];
            kill("KILL", killed);
            // Accepted connections may be lost, but a new one can always be made.
            let clients: Vec<_> = (0..16).map(|_| asks(&site.address())).collect();
            answered += clients
                .into_iter()
                .filter(|client| is_answered(client.try_clone().unwrap()))
                .count();
            // Otherwise the end would come while one is dead.
            until("another process", || {
                site.generations().first().is_some_and(|now| *now != killed)
            });
        }
        assert!(answered > 0, "{model}");
        site.ends_well();
    }
}

#[test]
fn a_process_that_is_killed_again_and_again_ends_the_server_and_leaves_nothing() {
    for model in ["reactors", "prefork"] {
        let mut site = Site::start(&fixed(model, 10));
        let (mut killed, mut below) = (Vec::new(), Vec::new());
        until("the end of the server", || {
            if let Some(pid) = site.generations().into_iter().find(|pid| !killed.contains(pid)) {
                below.extend(children(pid));
                kill("KILL", pid);
                killed.push(pid);
            }
            site.server.child.try_wait().unwrap().is_some()
        });
        assert_eq!(site.server.child.wait().unwrap().code(), Some(1), "{model}");
        assert!(killed.len() > 5, "{model}: {killed:?}");
        // Without the frame and the line breaks of a terminal.
        let errors: Vec<_> = site.errors().split_whitespace().map(str::to_owned).collect();
        let errors = errors.join(" ").replace("│ ", "");
        let said = "killed by signal 9; it was restarted 5 times within 10s, which is the maximum";
        // In the error log, and at the end of the program.
        assert_eq!(errors.matches(said).count(), 2, "{model}: {errors}");
        for pid in below.into_iter().chain(killed) {
            until("the end of every process", || !is_alive(pid));
        }
        until("a closed port", || TcpStream::connect(site.address()).is_err());
    }
}

#[test]
fn any_signal_that_kills_is_told_and_a_reload_meanwhile_holds() {
    let site = Site::start(&fixed("reactor", 10));
    assert_eq!(site.answers(), Some(10));
    kill("ABRT", site.generations()[0]);
    site.says("was killed by signal 6; another one was started");
    kill("KILL", site.generations()[0]);
    site.reload(&fixed("reactor", 20));
    site.until("the new answer", || site.answers() == Some(20));
    until("one process", || site.generations().len() == 1);
    site.ends_well();
}

#[test]
fn a_process_that_is_killed_in_its_drain_ends_the_server_and_leaves_no_port_that_is_deaf() {
    for model in models() {
        // More than the kernel buffers for a client that does not read, which keeps the drain from ending.
        let mut site = Site::start(&fixed(model, 20_000_000));
        let address = site.address();
        let mut client = asks(&address);
        client.read_exact(&mut [0]).unwrap();
        let serving = site.generations()[0];
        kill("TERM", serving);
        until("no connection begins", || {
            let address = address.parse().unwrap();
            TcpStream::connect_timeout(&address, std::time::Duration::from_millis(30)).is_err()
        });
        kill("KILL", serving);
        until("the end of the server", || site.server.child.try_wait().unwrap().is_some());
        assert_eq!(site.server.child.wait().unwrap().code(), Some(1), "{model}");
        until("a port that refuses", || {
            let refused = TcpStream::connect(&address).err();
            refused.is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        });
    }
}

#[test]
fn the_process_number_stays_and_the_service_manager_hears_of_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let pid_file = dir.path().join("joust.pid");
    let config = format!("listen = \"127.0.0.1:0\"\nfixed = 10\npid_file = {pid_file:?}\n");
    let mut server = Notifying::start(&config);
    assert!(server.told().starts_with("READY=1\n"));
    kill("KILL", children(server.child.id())[0]);
    assert_eq!(server.told(), "STATUS=starts the process that serves again");
    assert!(server.told().starts_with("READY=1\n"));
    let number = std::fs::read_to_string(&pid_file).unwrap();
    assert_eq!(number, format!("{}\n", server.child.id()));
    kill("TERM", server.child.id());
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(!pid_file.exists());
}

#[test]
fn applications_that_were_spawned_end_with_a_killed_process_and_are_there_again() {
    let spawn = "spawn = { command = [\"/bin/sleep\", \"600\"], count = 2 }";
    let gateway = format!("[[gateway]]\nextension = \".x\"\nkind = \"fastcgi\"\n{spawn}\n");
    let site = Site::start(&format!("directory = \".\"\n{gateway}"));
    let applications = || -> Vec<u32> {
        let wardens = site.generations().into_iter().flat_map(children);
        wardens.flat_map(children).collect()
    };
    until("two applications", || applications().len() == 2);
    let before = applications();
    kill("KILL", site.generations()[0]);
    for pid in before {
        until("the end of the first applications", || !is_alive(pid));
    }
    until("two others", || applications().len() == 2);
    site.ends_well();
}
