//! Which servers there are on a machine: found, missing, too old; and what is said of each. Programs
//! that print a version stand in for servers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use joust_lab::adapters::{self, Search};
use joust_lab::study::{self, Form};

/// A folder with a program of that name that prints that line, and a search of it alone.
fn machine(program: &str, prints: &str) -> (tempfile::TempDir, Search) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(program);
    // A name of its own until it is whole: a program that is being written may not be started.
    std::fs::write(&path, format!("#!/bin/sh\necho '{prints}'\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = Search { joust: PathBuf::from("/nonexistent"), dirs: vec![dir.path().into()] };
    (dir, search)
}

/// Adapter, program, what an old one prints, what one that will do prints.
const VERSIONS: &[(&str, &str, &str, &str)] = &[
    ("apache", "apache2", "Server version: Apache/2.2.22 (Unix)", "Server version: Apache/2.4.1"),
    ("nginx", "nginx", "nginx version: nginx/1.18.0", "nginx version: nginx/1.22.1"),
    ("lighttpd", "lighttpd", "lighttpd/1.4.28 (ssl)", "lighttpd/1.4.69 (ssl)"),
    ("h2o", "h2o", "h2o version 1.7.3", "h2o version 2.2.5"),
    ("caddy", "caddy", "v2.4.6 h1:abc=", "2.6.2"),
];

#[test]
fn a_version_that_is_too_old_is_refused_with_what_it_lacks_and_where_it_lies() {
    for (name, program, old, new) in VERSIONS {
        let adapter = adapters::named(name).unwrap();
        let (dir, search) = machine(program, old);
        let missing = adapter.installed(&search).unwrap_err();
        let path = dir.path().join(program).display().to_string();
        for word in ["too old", path.as_str(), adapter.minimum.unwrap().version] {
            assert!(missing.reason.contains(word), "{}", missing.reason);
        }
        let (_dir, search) = machine(program, new);
        let found = adapter.installed(&search).unwrap();
        assert!(found.binary.ends_with(program), "{found:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_missing_with_the_command_that_brings_it() {
    let empty = tempfile::tempdir().unwrap();
    let search = Search { joust: "/nonexistent".into(), dirs: vec![empty.path().into()] };
    for adapter in adapters::ALL {
        match adapter.name {
            "command" | "url" => assert!(adapter.installed(&search).is_ok(), "{}", adapter.name),
            name => {
                let missing = adapter.installed(&search).unwrap_err();
                assert_eq!(missing.reason, format!("{name} is not installed"));
                let installs = missing.remedy.starts_with("apt-get install ");
                assert!(installs || name == "joust", "{}", missing.remedy);
            }
        }
    }
}

#[test]
fn a_program_that_prints_no_version_is_not_taken_for_the_server() {
    let (_dir, search) = machine("nginx", "hello");
    assert!(adapters::named("nginx").unwrap().installed(&search).is_err());
}

#[test]
fn a_load_that_leaves_this_machine_is_said_beforehand() {
    let with = |url: &str| {
        let text = format!(
            "name = \"a\"\nquestion = \"b\"\n[workload]\npage = 1\nconnections = 1\n\
             [[contender]]\nname = \"far\"\nserver = \"url\"\nsettings.url = \"{url}\"\n\
             [[contender]]\nname = \"near\"\nserver = \"joust\"\n"
        );
        adapters::notes(&study::parse("a.toml", &text, Form::Full).unwrap())
    };
    for near in ["http://127.0.0.1:80", "http://localhost", "http://[::1]:8080/a"] {
        assert_eq!(with(near), [""; 0], "{near}");
    }
    for far in ["http://10.0.0.7:80", "http://example.org"] {
        let notes = with(far);
        assert!(notes.len() == 1 && notes[0].starts_with("far: the load goes to "), "{notes:?}");
    }
}
