//! `joust serve` with hosts that have their own logs: across rotation, reload and the loss of rights, and what
//! `--check-config` reports about hosts. Start reading at [`each_host_keeps_its_log_over_rotation_and_reload`].

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::reload::{Site, models, until};
use crate::rights::{content, is_root};
use crate::{output, said};

/// A host's answer to a request for that target, on a connection of its own.
pub(crate) fn answer(address: &str, host: &str, target: &str) -> String {
    let mut conn = TcpStream::connect(address).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    conn.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    conn.read_to_string(&mut answer).unwrap();
    answer
}

fn lines(site: &Site, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(site.file(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Under root, the serving processes run as another user who cannot create the files; on a kernel with Landlock they
/// are confined.
#[test]
fn each_host_keeps_its_log_over_rotation_and_reload() {
    for model in models() {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        let path = content(&site, "site", 20);
        let user = if is_root() { "user = \"nobody\"\n" } else { "" };
        let config = |a: &str| {
            let log = |name: &str| site.file(name).display().to_string();
            format!(
                "model = \"{model}\"\ndirectory = \"{path}\"\n{user}\
                 [access_log]\nfile = \"{}\"\nformat = \"top %V %U\"\n\
                 [[host]]\nnames = [\"a.test\"]\ndirectory = \"{path}\"\n\
                 access_log = {{ file = \"{}\", format = \"a %V %U\" }}\n\
                 [[host]]\nnames = [\"b.test\"]\ndirectory = \"{path}\"\n\
                 access_log = {{ file = \"{}\" }}\n",
                log("top.log"),
                log(a),
                log("b.log"),
            )
        };
        site.reload(&config("a.log"));
        site.until("the new answer", || site.answers() == Some(20));
        let address = site.address();
        let ask = |round: u32| {
            for host in ["a.test", "b.test"] {
                let answer = answer(&address, host, &format!("/page?{round}"));
                assert!(answer.starts_with("HTTP/1.1 200"), "{model}: {answer}");
            }
        };
        ask(1);
        until("lines of both", || {
            lines(&site, "a.log").len() == 1 && lines(&site, "b.log").len() == 1
        });
        for name in ["a.log", "b.log"] {
            std::fs::rename(site.file(name), site.file(&format!("{name}.1"))).unwrap();
        }
        site.server.signal("USR1");
        until("new files", || site.file("a.log").exists() && site.file("b.log").exists());
        site.says("reopens the logs");
        ask(2);
        until("lines of both", || {
            lines(&site, "a.log").len() == 1 && lines(&site, "b.log").len() == 1
        });
        assert_eq!(lines(&site, "a.log.1"), ["a a.test /page"], "{model}");
        assert_eq!(lines(&site, "b.log.1"), ["top b.test /page"], "{model}");
        // The last line shows that the serving process may write to the log.
        if is_root() {
            assert_ne!(std::fs::metadata(site.file("b.log")).unwrap().uid(), 0, "{model}");
        }
        site.reload(&config("other.log"));
        until("the new log", || {
            ask(3);
            !lines(&site, "other.log").is_empty()
        });
        site.ends_well();
    }
}

#[test]
fn a_log_that_cannot_be_opened_again_is_told_of_and_written_on() {
    for model in ["fork", "prefork", "reactors"] {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        std::fs::create_dir(site.file("logs")).unwrap();
        let log = site.file("logs/a.log");
        site.reload(&format!(
            "model = \"{model}\"\nfixed = 10\n[[host]]\nnames = [\"a.test\"]\nfixed = 20\n\
             access_log = {{ file = {log:?}, format = \"%U\" }}\n"
        ));
        let served =
            || answer(&site.address(), "a.test", "/page").contains("Content-Length: 20\r\n");
        until("the new answer", served);
        std::fs::rename(site.file("logs"), site.file("moved")).unwrap();
        site.server.signal("USR1");
        site.says("cannot reopen the log");
        let before = lines(&site, "moved/a.log").len();
        until("lines in the file of before", || {
            served() && lines(&site, "moved/a.log").len() > before
        });
        // When the folder is there again, the next signal repairs it.
        std::fs::rename(site.file("moved/a.log"), site.file("moved/a.log.1")).unwrap();
        std::fs::rename(site.file("moved"), site.file("logs")).unwrap();
        site.server.signal("USR1");
        until("lines in the new file", || served() && !lines(&site, "logs/a.log").is_empty());
        site.ends_well();
    }
}

/// The page is where the serving processes cannot read it: they are another user (under root) and confined.
#[test]
fn an_error_page_that_only_the_supervisor_can_read_is_shown_and_follows_a_reload() {
    for model in ["prefork", "reactor", "reactors"] {
        let site = Site::start(&format!("model = \"{model}\"\nfixed = 10\n"));
        let path = content(&site, "site", 20);
        let (folder, page) = (site.file("private"), site.file("private/404.html"));
        std::fs::create_dir(&folder).unwrap();
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&folder, closed).unwrap();
        let user = if is_root() { "user = \"nobody\"\n" } else { "" };
        let config = format!(
            "model = \"{model}\"\ndirectory = \"{path}\"\n{user}[errors]\n404 = {{ file = {page:?} }}\n"
        );
        for text in ["first", "second"] {
            std::fs::write(&page, text).unwrap();
            site.reload(&config);
            until("the page", || answer(&site.address(), "test", "/none").ends_with(text));
        }
        // Without the page nothing changes.
        std::fs::remove_file(&page).unwrap();
        site.server.signal("HUP");
        site.says("404.html as an error page: No such file");
        let told = answer(&site.address(), "test", "/none");
        assert!(told.starts_with("HTTP/1.1 404") && told.ends_with("second"), "{model}: {told}");
        site.ends_well();
    }
}

#[test]
fn what_is_wrong_with_hosts_is_found_by_a_check_with_its_table_and_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("joust.toml");
    let good = dir.path().display().to_string();
    let check = |config: &str| {
        std::fs::write(&file, config).unwrap();
        let output = output(&["serve", "--config", file.to_str().unwrap(), "--check-config"]);
        (output.status.code(), said(&output))
    };
    let (status, all) = check(&format!(
        "fixed = 1\n[[rule]]\nprefix = \"/x\"\nauth = {{ realm = \"r\", file = \"/none/users\" }}\n\
         [[host]]\nnames = [\"a.test\", \"www.a.test\"]\ndirectory = \"/none/a\"\n\
         access_log = {{ file = \"/none/log/a\" }}\nerrors = {{ 500 = {{ file = \"{good}\" }} }}\n\
         [[host]]\nnames = [\"b.test\"]\ndirectory = \"{good}/joust.toml\"\n\
         access_log = {{ file = \"{good}\" }}\n\
         [[host]]\nnames = [\"c.test\"]\ndirectory = \"{good}\"\n\
         [tls]\n[[tls.certificate]]\nchain = \"/none/c.pem\"\nkey = \"/none/c.pem\"\n\
         [[tls.certificate]]\nchain = \"{good}/joust.toml\"\nkey = \"{good}/joust.toml\"\n"
    ));
    assert_eq!(status, Some(2), "{all}");
    let expected = [
        "[[host]] a.test: directory /none/a does not exist: check the path",
        "[[host]] a.test: cannot write the access log /none/log/a:",
        "[[host]] a.test: cannot use",
        "as an error page: it is not a regular file",
        "[[host]] b.test: ",
        "joust.toml is not a directory",
        "[[host]] b.test: cannot write the access log",
        "cannot use the password file /none/users",
        "[[tls.certificate]]: cannot read /none/c.pem",
        "[[tls.certificate]]: cannot use the certificate",
    ];
    for expected in expected {
        assert!(all.contains(expected), "{expected} is not in {all}");
    }
    // Settings that all hosts share are reported once.
    assert_eq!(all.matches("/none/users").count(), 1, "{all}");
    assert!(!dir.path().join("log").exists());
    let twice = "[[host]]\nnames = [\"a.test\"]\nfixed = 1\n\
                 [[host]]\nnames = [\"A.TEST.\"]\nfixed = 1\n";
    let (status, said) = check(twice);
    assert_eq!(status, Some(2), "{said}");
    assert!(
        said.contains("joust.toml:1: ") && said.contains("`a.test` is in the `names` of two hosts"),
        "{said}"
    );
    let (status, said) = check(&format!("[[host]]\nnames = [\"a\"]\ndirectory = \"{good}\"\n"));
    assert_eq!((status, &said[..]), (Some(0), ""));
}
