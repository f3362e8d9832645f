//! `joust serve` as a process: configuration, signals, what is left behind.

use crate::{Server, output, said, stdout};

#[test]
fn the_printed_configuration_is_read_back_the_same() {
    let args = ["serve", "--fixed", "10", "--model", "prefork", "--set", "MaxSpareServers=12"];
    let first = stdout(&output(&[&args[..], &["--print-config"]].concat()));
    assert!(first.contains("MaxSpareServers"), "{first}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("joust.toml");
    std::fs::write(&file, &first).unwrap();
    let again = output(&["serve", "--config", file.to_str().unwrap(), "--print-config"]);
    assert_eq!(stdout(&again), first, "{}", said(&again));
}

#[test]
fn planted_faults_are_printed_and_read_back_and_others_refused() {
    let args = ["serve", "--fixed", "10", "--fault", "delay=5ms", "--fault", "stall=1%,200ms"];
    let first = stdout(&output(&[&args[..], &["--print-config"]].concat()));
    assert!(first.contains("fault = [\"delay=5ms\", \"stall=1%,200ms\"]"), "{first}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("joust.toml");
    std::fs::write(&file, &first).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(stdout(&output(&["serve", "--config", file, "--print-config"])), first);
    let other = ["serve", "--config", file, "--fault", "pause=at:1s,for:1s", "--print-config"];
    let replaced = stdout(&output(&other));
    assert!(replaced.contains("fault = [\"pause=at:1s,for:1s\"]"), "{replaced}");
    let twice = ["--fault", "pause=every:2s,for:1s", "--fault", "pause=every:3s,for:2s"];
    for (faults, hint) in
        [(&["--fault", "dely=5ms"][..], "did you mean `delay`?"), (&twice, "for ever")]
    {
        let refused = output(&[&["serve", "--fixed", "10"][..], faults].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(said(&refused).contains(hint), "{}", said(&refused));
    }
}

#[test]
fn either_signal_ends_every_model_and_frees_the_port() {
    for model in ["reactor", "reactors", "prefork", "worker", "pool"] {
        for signal in ["TERM", "INT"] {
            let mut server = Server::start(&["--fixed", "10", "--model", model]);
            let addr = server.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
            server.signal(signal);
            let status = server.child.wait().unwrap();
            assert_eq!(status.code(), Some(0), "{model} after {signal}");
            let refused = std::net::TcpStream::connect(&addr).is_err();
            assert!(refused, "{model} still listens on {addr} after {signal}");
        }
    }
}

#[test]
fn lines_of_the_log_that_a_full_disk_took_are_counted_over_all_children() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stderr");
    for model in ["reactor", "reactors", "prefork", "worker", "pool"] {
        let args = ["--fixed", "10", "--model", model, "--access-log", "/dev/full"];
        let stderr = std::fs::File::create(&file).unwrap();
        let server = Server::start_saying(&args, stderr.into());
        let load =
            output(&["load", &server.url, "-n", "37", "-c", "3", "--verify", "none", "--quiet"]);
        assert!(load.status.success(), "{}", said(&load));
        assert_eq!(server.drain(), Some(0), "{model}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("37 lines of the access log"), "{model} said: {text}");
    }
}

#[test]
fn a_setting_is_shown_with_one_default() {
    let shown = |model| stdout(&output(&["models", model])).matches("--set ListenBacklog=").count();
    assert_eq!((shown("poller"), shown("reactor")), (1, 1));
    let poller = stdout(&output(&["models", "poller"]));
    assert!(poller.contains("--set ListenBacklog=100\n"), "{poller}");
}

#[test]
fn the_models_are_described() {
    let text = stdout(&output(&["models"]));
    for word in [
        "reactors",
        "poller",
        "worker_connections",
        "prefork",
        "worker",
        "pool",
        "MaxConnectionsPerChild",
        "max-request",
    ] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}
