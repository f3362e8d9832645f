//! What `joust serve` may still do while it serves: the user of its processes, what they can open, and that reloads and
//! rotations still work. Start reading at [`whoever_serves_is_the_user_and_the_supervisor_is_not`].

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::reload::{Site, children, models, until};
use crate::{joust, said};

const NOBODY: &str = "65534";

pub(crate) fn is_root() -> bool {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        skips::note("only root can give rights up");
    }
    is_root
}

/// All descendants of a process.
fn descendants(pid: u32) -> Vec<u32> {
    children(pid).into_iter().flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// The words of a line of /proc/PID/status; empty if the process is gone.
fn status(pid: u32, line: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|text| text.strip_prefix(line)).unwrap_or_default();
    line.split_whitespace().map(str::to_owned).collect()
}

/// A directory that everybody may read, with a page of that size.
pub(crate) fn content(site: &Site, name: &str, bytes: usize) -> String {
    let path = site.file(name);
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("page"), vec![b'x'; bytes]).unwrap();
    let mode = |path: &Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    mode(&path);
    mode(path.parent().unwrap());
    path.to_str().unwrap().to_owned()
}

#[test]
fn whoever_serves_is_the_user_and_the_supervisor_is_not() {
    if !is_root() {
        return;
    }
    for model in models() {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        let log = site.file("access");
        let config = |name: &str| {
            let path = content(&site, name, 20);
            format!(
                "model = \"{model}\"\ndirectory = \"{path}\"\nuser = \"nobody\"\n[access_log]\nfile = \"{}\"\n",
                log.display()
            )
        };
        site.reload(&config("private"));
        site.until("the new answer", || site.answers() == Some(20));
        let check = || {
            until("one generation", || site.generations().len() == 1);
            let serving = descendants(site.server.child.id());
            for pid in &serving {
                let uids = status(*pid, "Uid:");
                assert!(uids.iter().all(|uid| uid == NOBODY), "{model}: {uids:?}");
                let gids = status(*pid, "Gid:");
                assert!(!gids.contains(&"0".to_owned()), "{model}: {gids:?}");
                assert!(!status(*pid, "Groups:").contains(&"0".to_owned()), "{model}");
            }
        };
        check();
        assert_eq!(status(site.server.child.id(), "Uid:")[0], "0");
        // Rotation: the serving processes could not create the file.
        let before = site.file("access.1");
        assert_eq!(std::fs::metadata(&log).unwrap().uid().to_string(), NOBODY);
        std::fs::rename(&log, &before).unwrap();
        site.server.signal("USR1");
        until("the new log", || {
            assert_eq!(site.answers(), Some(20), "{model}");
            std::fs::metadata(&log).is_ok_and(|facts| facts.len() > 0)
        });
        // A directory that the earlier serving processes could not have opened.
        let next = config("next");
        std::fs::write(site.file("next/page"), vec![b'x'; 30]).unwrap();
        site.reload(&next);
        site.until("the new answer", || site.answers() == Some(30));
        check();
        site.ends_well();
    }
}

#[test]
fn processes_that_serve_are_confined_and_a_reload_to_another_directory_is_served() {
    for model in models() {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        if site.errors().contains("has no Landlock") {
            skips::note("this kernel has no Landlock");
            return;
        }
        site.says("confined to what is served, by Landlock");
        let confined = |pid| status(pid, "NoNewPrivs:") == ["1"];
        for (name, bytes) in [("first", 20), ("second", 30)] {
            let path = content(&site, name, bytes);
            site.reload(&format!("model = \"{model}\"\ndirectory = \"{path}\"\n"));
            site.until("the new answer", || site.answers() == Some(bytes));
            until("one generation", || site.generations().len() == 1);
            let serving = descendants(site.server.child.id());
            assert!(serving.iter().all(|pid| confined(*pid) || status(*pid, "Uid:").is_empty()));
        }
        assert!(!confined(site.server.child.id()), "the supervisor is free");
        site.reload(&format!("model = \"{model}\"\nfixed = 40\nconfine = \"off\"\n"));
        site.until("the new answer", || site.answers() == Some(40));
        until("one generation", || site.generations().len() == 1);
        assert!(!descendants(site.server.child.id()).into_iter().any(confined), "{model}");
        site.ends_well();
    }
}

/// A password file is read again when it changes: by the process that serves, from its current place.
#[test]
fn a_confined_server_follows_no_link_out_of_what_it_was_given() {
    for (model, confine) in [("prefork", "on"), ("reactor", "on"), ("reactor", "off")] {
        let site = Site::start("model = \"reactor\"\nfixed = 10\n");
        if site.errors().contains("has no Landlock") {
            skips::note("this kernel has no Landlock");
            return;
        }
        let (file, other) = (site.file("given/passwords"), site.file("other/passwords"));
        let line = "x:$2y$04$abcdefghijklmnopqrstuuGZGnF7dPr8wVXVdYxZyKcPVtPUCEfQ6\n";
        for path in [&file, &other] {
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            std::fs::write(path, line).unwrap();
        }
        let path = content(&site, "site", 20);
        // One process, because each caches what it has read.
        let one = match model {
            "prefork" => {
                "[settings]\nStartServers = 1\nMinSpareServers = 1\nMaxRequestWorkers = 1\nServerLimit = 1\n"
            }
            _ => "",
        };
        site.reload(&format!(
            "model = \"{model}\"\ndirectory = \"{path}\"\nconfine = \"{confine}\"\n{one}\
             [[rule]]\nprefix = \"/\"\nauth = {{ realm = \"r\", file = \"{}\" }}\n",
            file.display()
        ));
        let answer = || {
            let fields = "Authorization: Basic eDp5\r\nConnection: close\r\n";
            site.status(fields)
        };
        until("a wrong password", || answer() == Some(401));
        std::fs::remove_file(&file).unwrap();
        until("no file", || answer() == Some(500));
        symlink(&other, &file).unwrap();
        if confine == "off" {
            until("the file elsewhere is read", || answer() == Some(401));
        } else {
            let start = std::time::Instant::now();
            // Longer than the interval at which it checks again.
            while start.elapsed() < std::time::Duration::from_millis(2500) {
                assert_eq!(answer(), Some(500), "{model}: the file elsewhere is read");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, line).unwrap();
            until("the file of its place is read", || answer() == Some(401));
        }
        site.ends_well();
    }
}

#[test]
fn a_user_that_cannot_be_had_is_refused_with_the_reason() {
    let args = ["serve", "--fixed", "10", "--listen", "127.0.0.1:0", "--user"];
    let refused = |user: &str| said(&joust(&args).arg(user).output().unwrap());
    assert!(refused("no-such-user").contains("there is no user"), "{}", refused("no-such-user"));
    let mut command = joust(&args);
    command.arg("nobody");
    if is_root() {
        command.uid(NOBODY.parse().unwrap()).gid(NOBODY.parse().unwrap()).current_dir("/");
    }
    match command.output() {
        Ok(output) => {
            let said = said(&output);
            assert!(!output.status.success() && said.contains("only root"), "{said}");
        }
        Err(error) => skips::note(format_args!("nobody may not run the binary: {error}")),
    }
    let alone = said(&joust(&["serve", "--fixed", "10", "--group", "nogroup"]).output().unwrap());
    assert!(alone.contains("needs `user`"), "{alone}");
}

#[test]
fn root_that_serves_is_warned_once_and_with_programs_nothing_is_confined() {
    let site = Site::start("model = \"reactor\"\nfixed = 10\n");
    if is_root() {
        site.says("serves as root");
        assert_eq!(site.errors().matches("serves as root").count(), 1);
    }
    let programs = content(&site, "programs", 1);
    site.reload(&format!(
        "model = \"reactor\"\nfixed = 20\n[[gateway]]\npath = \"/cgi/\"\nkind = \"cgi\"\nroot = \"{programs}\"\n"
    ));
    site.until("the new answer", || site.answers() == Some(20));
    site.says("not confined: CGI programs would inherit the limits");
    site.ends_well();
}
