//! `joust ab` beside the real ab: the same arguments against servers that answer alike. Layouts,
//! and all determined figures, are compared exactly. Owns the cases; they are data. Start reading
//! at [`compare`].

mod masked;
pub(super) mod scripted;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use self::scripted::Manner;
use super::{Server, joust};

/// Whether there is an ab here to compare with; notes the skipped test if not.
fn has_ab() -> bool {
    let found = Command::new("ab").arg("-V").output().is_ok();
    if !found {
        skips::note("no ab here; scripts/peers.sh brings it");
    }
    found
}

/// The two programs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Real,
    Ours,
}

impl Tool {
    fn command(self, line: &str) -> Command {
        let words = line.split_whitespace();
        let mut command = match self {
            Self::Real => Command::new("ab"),
            Self::Ours => joust(&["ab", "--no-footnotes"]),
        };
        command.args(words).stdin(Stdio::null());
        command
    }

    fn run(self, line: &str) -> Output {
        self.command(line).output().expect("it starts")
    }
}

/// Both outputs and the exit code, masked.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn seen(output: &Output, port: impl Into<Option<u16>>) -> Seen {
    let port = port.into();
    let text = |bytes: &[u8]| masked::report(&String::from_utf8_lossy(bytes), port);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Seen { stdout, stderr, code: output.status.code() }
}

/// Runs both, each against a fresh server; `line` has `URL` for `http://` or `https://`, address
/// and port.
fn compare<S>(line: &str, start: impl Fn() -> (S, u16, &'static str)) {
    let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| {
        let (_server, port, scheme) = start();
        let line = line.replace("URL", &format!("{scheme}://127.0.0.1:{port}"));
        seen(&tool.run(&line), port)
    });
    assert_eq!(ours.stdout, real.stdout, "ab {line}: stdout (ours left, ab's right)");
    assert_eq!(ours.stderr, real.stderr, "ab {line}: stderr");
    assert_eq!(ours.code, real.code, "ab {line}: exit code");
}

fn served(args: &[&str]) -> (Server, u16, &'static str) {
    let server = Server::start(&[&["--fixed", "500"], args].concat());
    let port = server.url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let scheme = if server.url.starts_with("https") { "https" } else { "http" };
    (server, port, scheme)
}

fn scripted(manner: Manner) -> (crate::scripted::Scripted, u16, &'static str) {
    let server = manner.start();
    let port = server.port();
    (server, port, "http")
}

#[test]
fn a_sound_server_is_reported_as_ab_reports_it() {
    if !has_ab() {
        return;
    }
    let lines = [
        "URL/",
        "-n 1 URL/x?y=1&z",
        "-n 20 -c 2 URL/",
        "-n 150 -c 3 URL/",
        "-n 151 -c 3 URL/",
        "-n 1234 -c 10 URL/",
        "-n 400 -q URL/",
        "-kn100 -c1 URL/",
        "-n 99 -c 1 -k URL/",
        "-n 20 -c 2 -d URL/",
        "-n 20 -c 2 -S URL/",
        "-n 20 -c 2 -d -S URL/",
        "-n 20 -l URL/",
        "-n 20 -i URL/",
        "-n 20 -i -k URL/",
        "-n 5 -m OPTIONS URL/",
        "-n 5 -c 2 -w URL/",
        "-n 200 -c 2 -w URL/",
        "-n 5 -w -k -l URL/",
        "-n 5 -x border=1 -y a=1 -z b=2 URL/",
        "-n 7 -H Accept:text/x -H User-Agent:me -C a=1 URL/",
        "-n 7 -A u:p -P u:p URL/",
        "-n 7 -r URL/",
        "-n 7 -s 5 URL/",
        "-n 3 -v 1 URL/",
        "-t 5 -n 30 URL/",
        "-n 6 -B 127.0.0.1 URL/",
        "-n 2 -- URL/",
    ];
    for line in lines {
        compare(line, || served(&[]));
    }
}

#[test]
fn a_faulty_server_is_reported_as_ab_reports_it() {
    if !has_ab() {
        return;
    }
    let cases: [(&str, &[&str]); 7] = [
        ("-n 50 URL/", &["--fault", "status=503:20%"]),
        ("-n 50 -w URL/", &["--fault", "status=503:20%"]),
        ("-n 50 URL/", &["--fault", "length=wrong:20%"]),
        ("-n 50 -l URL/", &["--fault", "length=wrong:20%"]),
        ("-n 101 -k URL/", &["--fault", "keepalive=10"]),
        ("-n 20 -k -w URL/", &["--fault", "keepalive=3"]),
        ("-n 9 -k URL/", &["--fault", "empty-first"]),
    ];
    for (line, faults) in cases {
        compare(line, || served(faults));
    }
}

#[test]
fn whatever_ends_a_connection_is_counted_as_ab_counts_it() {
    if !has_ab() {
        return;
    }
    let manners = [
        (Manner::Plain, "-n 10 URL/"),
        (Manner::Plain, "-n 10 -k URL/"),
        (Manner::Plain, "-n 1 -v 2 -i URL/"),
        (Manner::Plain, "-n 1 -v 3 -i URL/"),
        (Manner::Nameless, "-n 1 -v 3 -i URL/"),
        (Manner::ResetBefore, "-n 10 URL/"),
        (Manner::ResetBefore, "-n 10 -r URL/"),
        (Manner::ResetBefore, "-n 10 -k URL/"),
        (Manner::ResetWithin, "-n 10 URL/"),
        (Manner::ResetWithin, "-n 10 -r URL/"),
        (Manner::CutOff, "-n 10 URL/"),
        (Manner::CutOff, "-n 10 -k URL/"),
        (Manner::NoReply, "-n 10 URL/"),
        (Manner::NoReply, "-n 10 -k URL/"),
        (Manner::NoReply, "-n 10 -w URL/"),
        (Manner::Hangs, "-n 10 -s 1 URL/"),
        (Manner::Hangs, "-n 10 -s 1 -r -k URL/"),
        (Manner::Chunked, "-n 10 URL/"),
        (Manner::Chunked, "-n 10 -k URL/"),
        (Manner::Unbounded, "-n 10 URL/"),
        (Manner::Unbounded, "-n 10 -k URL/"),
        (Manner::Lengths, "-n 10 URL/"),
        (Manner::Lengths, "-n 10 -k -l URL/"),
        (Manner::Nameless, "-n 10 URL/"),
        (Manner::Nameless, "-n 10 -i -k URL/"),
    ];
    for (manner, line) in manners {
        println!("{manner:?}: {line}");
        compare(line, || scripted(manner));
    }
}

#[test]
fn bodies_are_sent_and_counted_as_ab_does() {
    if !has_ab() {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a=1&b=2\n").unwrap();
    let file = file.path().display();
    for flags in ["-p FILE", "-u FILE", "-p FILE -T text/csv -w", "-p FILE -m PATCH"] {
        let line = format!("-n 10 {} URL/", flags.replace("FILE", &file.to_string()));
        compare(&line, || scripted(Manner::Plain));
    }
}

#[test]
fn https_is_reported_as_ab_reports_it() {
    if !has_ab() {
        return;
    }
    for line in ["-n 5 URL/", "-n 5 -k -f TLS1.2 URL/", "-n 5 -I URL/", "-n 5 -w URL/"] {
        compare(line, || served(&["--tls-self-signed"]));
    }
    // By name, which TLS then sends.
    let (_server, port, _) = served(&["--tls-self-signed"]);
    let line = format!("-n 2 https://localhost:{port}/");
    let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| seen(&tool.run(&line), port));
    assert_eq!(ours, real);
    assert!(ours.stdout.contains("TLS Server Name:        localhost\n"), "{}", ours.stdout);
}

#[test]
fn what_ab_says_instead_of_running_is_said() {
    if !has_ab() {
        return;
    }
    let lines = [
        "",
        "-h",
        "-V",
        "-w -V",
        "-Q",
        "-n",
        "-n 0 http://h/",
        "-n 20 http://127.0.0.1",
        "-n 2 -c 3 http://127.0.0.1/",
        "-c 0 http://127.0.0.1/",
        "-c -1 http://127.0.0.1/",
        "http://127.0.0.1/ -n 3",
        "-p /nonexistent http://127.0.0.1/",
        "-i -u /dev/null http://127.0.0.1/",
        "-n 2 http://nonexistent.invalid/",
        "-n 20 -c 2 http://127.0.0.1:1/",
        "-n 21 -c 2 -r http://127.0.0.1:1/",
        "-n 3 -X 127.0.0.1:1 http://h/x",
    ];
    for line in lines {
        let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| seen(&tool.run(line), None));
        assert_eq!(ours, real, "ab {line}");
    }
}

#[test]
fn the_request_is_ab_s_byte_for_byte() {
    if !has_ab() {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, b"a=1&b=2\n\0\xff").unwrap();
    let file = file.path().display().to_string();
    let lines = [
        "URL/",
        "URL/a?b=c&d#e",
        "-k URL/",
        "-i URL/",
        "-m PROPFIND URL/x",
        "-C a=1 -C b=2 URL/",
        "-A u:p -P v:q URL/",
        "-H X-A:1 -H x-b:2 URL/",
        "-H hOsT:other URL/",
        "-H Accept:text/x -H USER-AGENT:me URL/",
        "-k -C c=1 -A u:p -H X:y URL/",
        "-p FILE URL/",
        "-u FILE -T application/x-www-form-urlencoded URL/",
        "-k -p FILE -C c=1 -A u:p -H X:y -m PATCH URL/",
        "-X PROXY http://example.test:81/x?y",
        "-X PROXY -k -P u:p http://example.test/",
        "-T text/x URL/",
    ];
    let server = Manner::Plain.start();
    let place = format!("127.0.0.1:{}", server.port());
    for line in lines {
        let line = line.replace("URL", &format!("http://{place}")).replace("PROXY", &place);
        let line = line.replace("FILE", &file);
        let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| {
            let output = tool.run(&line);
            assert!(output.status.success(), "ab {line}: {output:?}");
            server.asked()
        });
        assert_eq!(real.len(), 1, "ab {line}");
        let text = |asked: &[Vec<u8>]| String::from_utf8_lossy(&asked[0]).into_owned();
        assert_eq!(ours, real, "ab {line}: {} {}", text(&ours), text(&real));
    }
}

/// A header with a space in its value cannot be in the lines of other tests.
#[test]
fn arguments_reach_ab_as_they_are_and_footnotes_stay_out_of_them() {
    let server = Manner::Lengths.start();
    let url = format!("http://127.0.0.1:{}/", server.port());
    let line = ["ab", "-n", "6", "-H", "X: a  b", &url];
    let output = joust(&line).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = "joust: ab counts 2 answers as failed because their length differs from the first; \
        all were complete (-l accepts them)\n";
    assert!(stderr.contains(told), "{stderr}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("joust: "));
    assert!(server.asked()[0].windows(10).any(|part| part == b"X: a  b\r\nH"));
    let explained = joust(&[&line[..], &["--explain"]].concat()).output().unwrap();
    let expected = format!(
        "joust load {url} -c 1 -n 6 --http1.0 --no-keepalive --timeout 30s -H 'X: a  b' \
         -H 'User-Agent: ApacheBench/2.3' -H 'Accept: */*'\n"
    );
    assert_eq!(String::from_utf8_lossy(&explained.stdout), expected);
    assert!(server.asked().is_empty(), "nothing is sent for an explanation");
}

#[test]
fn the_name_of_the_program_chooses_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("ab");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_joust"), &link).unwrap();
    let output = Command::new(&link).arg("-n0").output().unwrap();
    assert_eq!(output.stderr, b"Invalid number of requests\n\n");
    let output = Command::new(&link).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let complaint = format!("{}: wrong number of arguments\nUsage: ", link.display());
    assert!(stderr.starts_with(&complaint), "{stderr}");
}

#[test]
fn a_time_limit_ends_it_and_ctrl_c_too() {
    if !has_ab() {
        return;
    }
    let slow = || served(&["--fault", "delay=150ms"]);
    for tool in [Tool::Real, Tool::Ours] {
        let (_server, port, _) = slow();
        let line = format!("-n 9 -t 1 -c 1 http://127.0.0.1:{port}/");
        let output = tool.run(&line);
        let seen = seen(&output, port);
        assert_eq!(seen.code, Some(0));
        assert!(seen.stderr.starts_with("Finished "), "{}", seen.stderr);
        assert!(seen.stdout.contains("(be patient)\n\n\nServer Software:        joust\n"));
    }
    let interrupted = |tool: Tool, flags: &str| {
        let (_server, port, _) = slow();
        let mut command = tool.command(&format!("-n 500 {flags} http://127.0.0.1:{port}/"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(700));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        let Seen { stdout, stderr, code } = seen(&child.wait_with_output().unwrap(), port);
        // The number of requests by then is not determined.
        let counts = |line: &&str| !line.contains(" requests:") && !line.contains("transferred:");
        (stdout.lines().filter(counts).collect::<Vec<_>>().join("\n"), stderr, code)
    };
    for flags in ["", "-q", "-w"] {
        let [real, ours] = [Tool::Real, Tool::Ours].map(|tool| interrupted(tool, flags));
        assert_eq!(ours, real, "{flags}");
        assert_eq!(ours.2, Some(1));
    }
}

#[test]
fn files_have_ab_s_rows_and_gnuplot_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let run = |tool: Tool, name: &str| {
        let (_server, port, _) = served(&["--fault", "delay=2ms"]);
        let (csv, tsv) = (path(&format!("{name}.csv")), path(&format!("{name}.tsv")));
        let output = tool.run(&format!("-n 40 -c 4 -e {csv} -g {tsv} http://127.0.0.1:{port}/"));
        assert!(output.status.success());
        [csv, tsv].map(|file| std::fs::read_to_string(file).unwrap())
    };
    let [csv, tsv] = run(Tool::Ours, "ours");
    assert_eq!((csv.lines().count(), tsv.lines().count()), (102, 41));
    let totals: Vec<u64> =
        tsv.lines().skip(1).map(|row| row.split('\t').nth(4).unwrap().parse().unwrap()).collect();
    assert!(totals.is_sorted() && totals[0] >= 2, "by total time, in milliseconds: {totals:?}");
    if has_ab() {
        let shape = |text: &str| -> Vec<String> {
            // Three decimals each, with any integer part.
            let row = |line: &str| match line.split_once(',') {
                Some((percent, time)) => {
                    let decimals = time.split_once('.').map_or(time, |(_, part)| part);
                    format!("{percent},{}", decimals.len())
                }
                None => line.to_owned(),
            };
            text.lines().map(row).collect()
        };
        let [real_csv, real_tsv] = run(Tool::Real, "real");
        assert_eq!(shape(&csv), shape(&real_csv));
        let fields = |text: &str| -> Vec<usize> {
            text.lines().map(|row| row.split('\t').map(str::len).take(2).sum()).collect()
        };
        assert_eq!(fields(&tsv), fields(&real_tsv));
        assert_eq!(tsv.lines().next(), real_tsv.lines().next());
    }
    plot(Path::new(&path("ours.tsv")), 40);
    let refused = Tool::Ours.run("-g /nonexistent/x -n 1 http://127.0.0.1:1/");
    assert_eq!(refused.status.code(), Some(111), "there is no report, and so no file");
}

/// The line of a hundred tutorials, and gnuplot's reading of the column.
fn plot(tsv: &Path, n_rows: u32) {
    let commands = format!(
        "set terminal dumb; set datafile separator '\\t'; \
         stats '{0}' every ::2 using 5 name 'A' nooutput; print 'rows ', A_records; \
         plot '{0}' every ::2 using 5 title 'response time' with lines",
        tsv.display()
    );
    let Ok(output) = Command::new("gnuplot").args(["-e", &commands]).output() else {
        return skips::note("no gnuplot here; scripts/peers.sh brings it");
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    // `every ::2` skips the heading and the first request, as in tutorials.
    let rows = format!("rows {}", n_rows - 1);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&rows), "{said}");
}

/// As found in scripts and answers: they read the rate, a percentile, and failures.
#[test]
fn awk_reads_the_report_as_it_reads_ab_s() {
    let (_server, port, _) = served(&["--fault", "delay=2ms"]);
    let output = Tool::Ours.run(&format!("-n 40 -c 4 http://127.0.0.1:{port}/"));
    let report = String::from_utf8(output.stdout).unwrap();
    let awk = |program: &str| {
        let mut child = Command::new("awk")
            .arg(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("awk is part of every system");
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, report.as_bytes()).unwrap();
        drop(stdin);
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let rate: f64 = awk("/Requests per second/ {print $4}").parse().unwrap();
    assert!(rate > 0.0);
    let p95: u64 = awk("$1 == \"95%\" {print $2}").parse().unwrap();
    assert!(p95 >= 2);
    assert_eq!(
        awk("/^Failed requests:/ {f=$3} /^Complete requests:/ {c=$3} END {print c, f}"),
        "40 0"
    );
}
