//! `joust siege` beside the real siege: the same arguments against servers that answer alike. Layouts, and all
//! determined figures, are compared exactly. Owns the cases; they are data. Both use only the test's own home folder.
//! Start reading at [`Field::compare`].

mod site;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use self::site::Site;
use super::{Server, joust};

/// What the real siege writes to a home folder, except for JSON.
const CONF: &str = "verbose = true\ncolor = off\nparser = true\nconnection = close\nlimit = 255\n\
    protocol = HTTP/1.1\nchunked = true\nconcurrent = 1\naccept-encoding = gzip, deflate\n\
    nofollow = ads.test\nlogin = u:p:R\n";

/// Longest run of either tool.
const LIMIT: &str = "20";

fn has_siege() -> bool {
    let found = Command::new("siege").arg("-V").env("HOME", "/nonexistent").output().is_ok();
    if !found {
        skips::note("no siege here; scripts/peers.sh brings it");
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Real,
    Ours,
}

/// A home folder of the test, and a configuration file.
struct Field {
    folder: tempfile::TempDir,
}

/// Both outputs and the exit code, masked; lines of stdout are sorted, because users run in parallel.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stdout: Vec<String>,
    stderr: String,
    code: Option<i32>,
}

impl Field {
    fn new(conf: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".siege")).unwrap();
        let field = Self { folder };
        field.write(".siege/siege.conf", &format!("{CONF}{conf}"));
        field
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn command(&self, tool: Tool, words: &[String]) -> Command {
        let mut command = match tool {
            Tool::Real => Command::new("siege"),
            Tool::Ours => joust(&["siege", "--no-footnotes"]),
        };
        command.args(words).stdin(Stdio::null()).current_dir(self.folder.path());
        command.env("HOME", self.folder.path()).env_remove("SIEGERC");
        command
    }

    /// The same with a time limit: siege continues after errors that stop other tools.
    fn bounded(&self, tool: Tool, words: &[String]) -> Command {
        let inner = self.command(tool, words);
        let mut command = Command::new("timeout");
        command.arg(LIMIT).arg(inner.get_program()).args(inner.get_args());
        command.stdin(Stdio::null()).current_dir(self.folder.path());
        command.env("HOME", self.folder.path()).env_remove("SIEGERC");
        command
    }

    fn run(&self, tool: Tool, words: &[String]) -> Output {
        self.bounded(tool, words).output().expect("it starts")
    }

    /// Runs both against what `line` names: `URL` is a site's; words with blanks are quoted. The requests must be equal
    /// too.
    fn compare(&self, line: &str, site: Option<&Site>) {
        let url = site.map(Site::url).unwrap_or_default();
        let words = words(&line.replace("URL", &url));
        let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| {
            let seen = seen(&self.run(tool, &words));
            let mut asked = site.map(Site::asked).unwrap_or_default();
            // The answer to a digest challenge contains something random.
            for request in &mut asked {
                if let Some(at) = request.find(", response=") {
                    request.truncate(at);
                }
            }
            asked.sort();
            (seen, asked)
        });
        assert_eq!(ours.0.stdout, real.0.stdout, "siege {line}: stdout (ours left, siege's right)");
        assert_eq!(ours.0.stderr, real.0.stderr, "siege {line}: stderr");
        assert_eq!(ours.0.code, real.0.code, "siege {line}: exit code");
        assert_eq!(ours.1, real.1, "siege {line}: requests");
    }
}

/// Splits at blanks, except inside quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Labels with measured numbers.
const MEASURED: [&str; 14] = [
    "Elapsed time:",
    "Response time:",
    "Transaction rate:",
    "Throughput:",
    "Concurrency:",
    "Longest transaction:",
    "Shortest transaction:",
    "\"elapsed_time\":",
    "\"response_time\":",
    "\"transaction_rate\":",
    "\"throughput\":",
    "\"concurrency\":",
    "\"longest_transaction\":",
    "\"shortest_transaction\":",
];

/// Measured numbers and times are replaced by their width.
fn masked(line: &str) -> String {
    let is_measured =
        MEASURED.iter().any(|label| line.trim_start_matches(['\t', '{']).starts_with(label));
    let mut masked = String::new();
    for word in line.split_inclusive([' ', ',', '\t', ']']) {
        let number = word.trim_end_matches([' ', ',', ']']);
        let is_span = number.split_once('.').is_some_and(|(whole, part)| {
            part.len() == 2
                && !whole.is_empty()
                && [whole, part].iter().all(|d| d.bytes().all(|b| b.is_ascii_digit()))
        });
        let is_row = line.contains("HTTP/1.1");
        let is_date = number.len() == 10 && number.matches('-').count() == 2;
        let is_clock = number.matches(':').count() == 2 && number.len() <= 12;
        let is_day = number.len() == 4 && number.starts_with('[');
        match () {
            () if is_span && is_measured => masked += &format!("<{}>", number.len().max(4)),
            () if is_span && is_row => masked += &word.replace(number, "#.##"),
            () if is_date || is_clock || is_day => masked += &format!("<{}>", word.len()),
            () => masked += word,
        }
    }
    match is_measured {
        // The blanks before a number are part of its width.
        true => {
            let end = masked.find(':').map_or(0, |at| at + 1);
            let unit = masked.rfind('>').map_or(masked.len(), |at| at + 1);
            format!("{}<{}>{}", &masked[..end], line.len() - (masked.len() - unit), &masked[unit..])
        }
        false => masked,
    }
}

fn seen(output: &Output) -> Seen {
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(without_errno).map(masked).collect()
    };
    let mut stdout = lines(&output.stdout);
    stdout.sort();
    Seen { stdout, stderr: lines(&output.stderr).join("\n"), code: output.status.code() }
}

/// A line about a name that has no address, without what siege puts at its end: the text of errno, which then holds
/// whatever the name services of the machine left there.
fn without_errno(line: &str) -> &str {
    let said = ["with the following error:", "Name or service not known"];
    let end = said.iter().find_map(|said| Some(line.find(said)? + said.len()));
    end.map_or(line, |end| &line[..end])
}

#[test]
fn masks_leave_what_is_counted() {
    let line = "HTTP/1.1 200     0.25 secs:     960 bytes ==> GET  /page";
    assert_eq!(masked(line), "HTTP/1.1 200     #.## secs:     960 bytes ==> GET  /page");
    assert_eq!(masked("Transactions:\t\t          17 hits"), "Transactions:\t\t          17 hits");
    let [short, long] =
        ["Elapsed time:\t\t        0.04 secs", "Elapsed time:\t\t     1234.56 secs"];
    assert_eq!(masked(short), masked(long));
    assert_ne!(masked(short), masked("Elapsed time:\t\t        0.04 ms"));
    assert_ne!(masked(short), masked("Elapsed time:\t\t       0.04 secs"));
}

#[test]
fn users_do_what_siege_s_users_do() {
    if !has_siege() {
        return;
    }
    let site = Site::start();
    let field = Field::new("");
    let urls = "# a file\nX=$(Y)\nX=other\nY=plain\nURL/a\nURL/$(X)\n\nURL/b POST x=1&y=2\nURL/c PUT <body.txt\n\
        URL/d POST <body.json\nURL/e DELETE\nURL/to-path\nURL/f f#g\n";
    field.write("urls", &urls.replace("URL", &site.url()));
    let cookies = "URL/plain\nURL/cookie\nURL/plain?x\nURL/plain\n";
    field.write("cookies", &cookies.replace("URL", &site.url()));
    field.write("body.txt", "a=1\n\n");
    field.write("body.json", "{}\n\n");
    let lines = [
        "-r1 URL/plain",
        "-c3 -r5 URL/plain",
        "-r1 URL/page.html",
        "-c2 -r2 URL/page.html",
        "-r1 URL/nested.html",
        "-r1 URL/refresh.html",
        "-r1 --no-parser URL/page.html",
        "-r2 URL/to-path",
        "-r1 URL/to-url",
        "-r1 URL/to-name",
        "-r1 URL/to-same",
        "-r1 'URL/to-same POST a=1'",
        "-r1 'URL/to-path POST a=1'",
        "-r1 URL/to-308",
        "-r1 URL/to-chain",
        "-r1 URL/to-error",
        "-r1 URL/to-half",
        "-r1 URL/half.html",
        "-r1 --no-follow URL/to-path",
        // One user each: siege's users share the header line with credentials, and a user that begins when another has
        // ended may get its thread's number, and so its cookies.
        "-r2 URL/login",
        "-r1 URL/digest",
        "-r2 URL/closed",
        "-r4 -f cookies",
        "-c3 -r4 -f urls",
        "-c2 -r once -f urls",
        "-r0 URL/plain",
        "-r1 -T '' 'URL/plain POST a'",
        "-r1 URL/204",
        "-r1 URL/304",
        "-r2 URL/403",
        "-r2 URL/404",
        "-r2 URL/408",
        "-r1 URL/418",
        "-r2 URL/500",
        "-c2 -r2 URL/503",
        "-r1 URL/510",
        "-r1 URL/none",
        "-r1 URL/chunked",
        "-r2 URL/close",
        "-r2 URL/cut",
        "-r3 -b -d5 URL/plain",
        "-r2 -d0.01 URL/plain",
        "-r1 -A me -T text/x -H 'Accept: x/y' -H 'Host: foo' 'URL/plain POST a=1'",
        "-r1 -H 'X: y' -H 'Accept: x/y' 'URL/plain?a=b c&d=%41#frag'",
        "-r1 'URL/plain POST <nofile'",
        "-r1 -Q --foo URL/plain",
        "--rep=2 --conc 2 URL/plain",
    ];
    for line in lines {
        println!("{line}");
        field.compare(line, Some(&site));
    }
    assert!(!Path::new(&field.path("siege.log")).exists());
}

#[test]
fn a_proxy_and_a_login_are_met_as_siege_meets_them() {
    if !has_siege() {
        return;
    }
    let site = Site::start();
    let port = site.url().rsplit(':').next().unwrap().to_owned();
    let field = Field::new(&format!(
        "proxy-host = 127.0.0.1\nproxy-port = {port}\nproxy-login = u:p:R\nproxy-login = x:y\n"
    ));
    for line in [
        "-r2 http://foo.test/plain",
        "-r1 http://foo.test/page.html",
        "-r1 'http://foo.test/plain POST a=1'",
        "-r1 http://foo.test/login",
        "-r2 http://foo.test/proxied",
        "-g http://foo.test/plain",
        "-C",
    ] {
        println!("{line}");
        field.compare(line, Some(&site));
    }
    for urls in ["URL/cookie", "URL/login", "URL/to-path", "URL/500", "http://127.0.0.1:1/"] {
        println!("login-url {urls}");
        let field = Field::new(&format!("login-url = {}\n", urls.replace("URL", &site.url())));
        field.compare("-r2 URL/plain", Some(&site));
    }
}

#[test]
fn every_layout_is_siege_s() {
    if !has_siege() {
        return;
    }
    let site = Site::start();
    let confs = [
        "",
        "display-id = true\nfullurl = true\n",
        "timestamp = true\ncolor = on\n",
        "csv = true\n",
        "csv = true\ndisplay-id = true\ntimestamp = true\n",
        "json_output = true\n",
        "quiet = true\n",
        "verbose = false\n",
        "protocol = HTTP/1.0\n",
        "accept-encoding = \n",
        "chunked = false\n",
    ];
    for conf in confs {
        let field = Field::new(conf);
        for line in
            ["-r1 URL/to-path", "-r1 URL/500", "-r1 URL/chunked", "-m x -r1 URL/404 -lx.log"]
        {
            println!("{conf:?}: {line}");
            field.compare(line, Some(&site));
        }
    }
    let field = Field::new("");
    for line in [
        "-j -c2 -r2 URL/plain",
        "-j -D -r1 URL/plain",
        "-q -r1 URL/plain",
        "-g URL/plain",
        "-g URL/to-path",
        "-g 'URL/plain POST a=1'",
        "-g -q URL/plain",
        "-p URL/plain",
        "-p URL/none",
        "-D -r1 URL/plain",
    ] {
        println!("{line}");
        field.compare(line, Some(&site));
    }
    // As shipped: -g uses HEAD.
    Field::new("gmethod = HEAD\n").compare("-g URL/plain", Some(&site));
}

#[test]
fn what_siege_says_instead_of_running_is_said() {
    if !has_siege() {
        return;
    }
    let field = Field::new("");
    field.write("empty", "# nothing\n");
    field.write("other", "concurrent = 3\ntime = 5S\ndelay = 2\nconnection = keep-alive\n");
    let long = format!("-H 'a: {}' http://127.0.0.1:1/", "x".repeat(2100));
    let lines = [
        "-V",
        "-h",
        "-C",
        "-R other -C",
        "-R other -C -c7 -r3 -b -i -v -q -j -d3 -m m http://h/",
        "-R empty -C",
        "-R nonexistent -C",
        "",
        "-f nonexistent",
        "-f empty",
        "-g",
        "-c",
        "-H nocolon http://127.0.0.1:1/",
        &long,
        "-r1 http://127.0.0.1:1/",
        "-c2 -r2 http://127.0.0.1:1/",
        "-r1 http://[::1]:1/",
        "-r1 http://127.0.0.1:0/",
        "-r2 http://127.0.0.1:65536/",
        "-r1 gopher://127.0.0.1/",
        "-r1 localhost:1/",
        "-r1 http://nonexistent.invalid/",
    ];
    for line in lines {
        println!("{line}");
        field.compare(line, None);
    }
    let field = Field::new("failures = 3\n");
    field.compare("-r9 http://127.0.0.1:1/ -lx.log", None);
}

#[test]
fn the_log_has_siege_s_rows() {
    if !has_siege() {
        return;
    }
    let site = Site::start();
    let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| {
        let field = Field::new("show-logfile = false\nfailures = 2\n");
        for line in ["-r2 URL/plain -la.log", "-m mark -r1 URL/404 -la.log", "-r3 URL/500 -la.log"]
        {
            field.run(tool, &words(&line.replace("URL", &site.url())));
        }
        let log = std::fs::read_to_string(field.path("a.log")).unwrap();
        let shape = |row: &str| -> String {
            let mut fields: Vec<String> = row.split(',').map(str::to_owned).collect();
            let is_row = fields.len() == 10 && !row.contains("Date");
            for (at, field) in fields.iter_mut().enumerate().filter(|_| is_row) {
                // Only counts and data are determined.
                if ![1, 3, 8, 9].contains(&at) {
                    *field = field.len().to_string();
                }
            }
            fields.join(",")
        };
        log.lines().map(shape).collect::<Vec<_>>()
    });
    assert_eq!(ours, real);
    assert_eq!(ours.len(), 6, "a heading, three rows, two marks: {ours:?}");
}

#[test]
fn a_log_that_cannot_be_written_is_no_error_of_the_run() {
    if !has_siege() {
        return;
    }
    let site = Site::start();
    Field::new("").compare("-r1 -m x -l/nonexistent/x.log URL/plain", Some(&site));
}

/// Neither the number of requests by then nor their times are determined.
fn without_counts(seen: &Seen) -> (String, Option<i32>) {
    let counts = ["Transactions:", "Data transferred:", "Successful"];
    let lines =
        seen.stderr.lines().filter(|line| !counts.iter().any(|label| line.starts_with(label)));
    (lines.collect::<Vec<_>>().join("\n"), seen.code)
}

#[test]
fn a_time_limit_ends_it_and_ctrl_c_too() {
    if !has_siege() {
        return;
    }
    let site = Site::start();
    let field = Field::new("");
    for line in ["-t5S -r0 URL/plain", "-t5S -r once URL/plain"] {
        field.compare(line, Some(&site));
    }
    // siege itself may end one second early.
    for line in ["-t2S URL/slow", "-c2 -t2S -r2 URL/slow", "-q -t2S URL/slow"] {
        let words = words(&line.replace("URL", &site.url()));
        let [real, ours] =
            [Tool::Real, Tool::Ours].map(|tool| without_counts(&seen(&field.run(tool, &words))));
        assert_eq!(ours, real, "{line}");
    }
    let interrupted = |tool: Tool| {
        let words = ["-r30".to_owned(), format!("{}/slow", site.url())];
        let mut command = field.command(tool, &words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Requests of earlier runs do not count.
        site.asked();
        let mut asked = 0;
        crate::reload::until("its second request", || {
            asked += site.asked().len();
            asked > 1
        });
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        let (stderr, _) = without_counts(&seen(&child.wait_with_output().unwrap()));
        stderr
    };
    let [real, ours] = [Tool::Real, Tool::Ours].map(interrupted);
    assert_eq!(ours, real);
    assert!(ours.contains("\nLifting the server siege...\n"), "{ours}");
}

#[test]
fn kept_connections_and_https_are_reported_alike() {
    if !has_siege() {
        return;
    }
    let field = Field::new("connection = keep-alive\n");
    let site = Site::start();
    for line in ["-c2 -r5 URL/plain", "-r2 URL/page.html", "-r1 URL/to-path"] {
        field.compare(line, Some(&site));
    }
    let field = Field::new("");
    for args in [&["--fixed", "3000"][..], &["--fixed", "3000", "--tls-self-signed"]] {
        let server = Server::start(args);
        let url = server.url.trim_end_matches('/');
        field.compare(&format!("-c2 -r5 {url}/x"), None);
        field.compare(&format!("-c1 -r2 -j {url}/x"), None);
    }
}

/// As scripts do it: Python's json, and the tool that many people have for it.
#[test]
fn json_is_read_by_those_who_read_siege_s() {
    let site = Site::start();
    let field = Field::new("");
    for style in ["4.0.7", "4.1.7"] {
        let line = format!("-j -c2 -r3 --version-style {style} {}/to-path", site.url());
        let output = field.run(Tool::Ours, &words(&line));
        let text = String::from_utf8(output.stdout).unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).expect(&text);
        assert_eq!((&read["transactions"], &read["failed_transactions"]), (&12.into(), &0.into()));
        assert_eq!(read.as_object().unwrap().len(), 12);
        let program = "import json,sys; d=json.load(sys.stdin); print(d['transactions'], \
            d['availability'], d['successful_transactions'])";
        let mut child = Command::new("python3")
            .args(["-c", program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is part of every machine that tests joust");
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        let said = child.wait_with_output().unwrap().stdout;
        assert_eq!(String::from_utf8(said).unwrap(), "12 100.0 12\n");
    }
}

#[test]
fn footnotes_say_what_the_report_hides() {
    let site = Site::start();
    let field = Field::new("");
    let urls = ["/500", "/404", "/to-path", "/cut"].map(|path| site.url() + path).join("\n");
    field.write("urls", &urls);
    let output = joust(&["siege", "-r4", "-d0.01", "-f", &field.path("urls")])
        .env("HOME", field.folder.path())
        .env_remove("SIEGERC")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    for told in [
        "joust: 1 answer with 500 to 509 or 408 count as failed",
        "joust: 1 answer with another status from 400 on count as transactions",
        "joust: 1 answer broke off; siege counts each as complete",
        "joust: 1 answer came of redirects, credentials and parts of pages",
        "joust: users paused ",
        "joust: siege's clock has steps of 10 ms and its response time is a mean: the load took ",
        " ms\n",
    ] {
        assert!(stderr.contains(told), "{told}: {stderr}");
    }
    let report = stderr.split("joust: ").next().unwrap();
    assert!(report.ends_with("Shortest transaction:\t        0.00\n \n"), "{report}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("joust: "));
}

#[test]
fn the_newer_layout_is_asked_for_by_a_flag_of_ours_and_no_home_is_touched() {
    let site = Site::start();
    let home = tempfile::tempdir().unwrap();
    let link = home.path().join("siege");
    std::os::unix::fs::symlink(joust(&[]).get_program(), &link).unwrap();
    let conf = home.path().join("conf");
    std::fs::write(&conf, "concurrent = 2\nreps = 3\n").unwrap();
    let output = Command::new(&link)
        .args(["--no-footnotes", "--version-style=4.1.7", &format!("{}/plain", site.url())])
        .env("HOME", home.path())
        .env("SIEGERC", &conf)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("** SIEGE 4.1.7\n** Preparing 2 concurrent users"), "{stderr}");
    assert!(stderr.contains("\nTransactions:\t\t        6    hits\n"), "{stderr}");
    assert!(stderr.ends_with(" ms\n \n"), "{stderr}");
    assert!(!home.path().join(".siege").exists());
    let refused = Command::new(&link).arg("--version-style=3").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = "joust: --version-style is 4.0.7 or 4.1.7, not `3`\n";
    assert_eq!(String::from_utf8_lossy(&refused.stderr), said);
}

/// A line of the load is printed while the load still runs.
#[test]
fn replies_are_told_as_they_come() {
    let site = Site::start();
    let field = Field::new("");
    let words = words(&format!("-t3S {}/slow", site.url()));
    let mut child = field.command(Tool::Ours, &words).stdout(Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(2900), "only at the end");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
}
