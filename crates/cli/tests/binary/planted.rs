//! Servers for tests: one in this process that answers as the test says and records its requests,
//! and nginx if it is installed. Owns their start and end. Start reading at [`Planted::start`].

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A request as received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The number of its connection, from 0.
    pub(crate) conn: usize,
    /// The client's address; `None` for unix sockets.
    pub(crate) peer: Option<IpAddr>,
    /// Request line and fields.
    pub(crate) head: String,
    /// With the length from Content-Length.
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The value of a field; names are case-sensitive here.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let value = |line: &'_ str| line.split_once(": ").filter(|(n, _)| *n == name).is_some();
        let line = self.head.lines().find(|line| value(line))?;
        line.split_once(": ").map(|(_, value)| value)
    }

    /// Method and target.
    pub(crate) fn line(&self) -> &str {
        let line = self.head.lines().next().unwrap_or_default();
        line.rsplit_once(' ').map_or(line, |(line, _)| line)
    }
}

/// The bytes to send for a request.
type Answer = dyn Fn(&Seen) -> Vec<u8> + Send + Sync;

/// A server in this process: one thread per connection, until the test's process ends.
pub(crate) struct Planted {
    addr: Option<SocketAddr>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Planted {
    /// On a free port of 127.0.0.1.
    pub(crate) fn start(answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", answer).expect("loopback is there")
    }

    /// On an address, if this machine has it.
    pub(crate) fn start_on(
        addr: &str,
        answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static,
    ) -> Option<Self> {
        let listener = TcpListener::bind(addr).ok()?;
        let addr = listener.local_addr().expect("it is bound");
        let accept = move || {
            let (stream, from) = listener.accept().expect("a connection is accepted");
            // Replies are written in one piece, and pipelined ones must not wait for each other.
            stream.set_nodelay(true).expect("it is TCP");
            (stream, Some(from.ip()))
        };
        Some(Self { addr: Some(addr), seen: serve(accept, Arc::new(answer)) })
    }

    /// On a unix socket.
    pub(crate) fn start_at(
        path: &Path,
        answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).expect("the socket is new");
        let accept = move || (listener.accept().expect("a connection is accepted").0, None);
        Self { addr: None, seen: serve(accept, Arc::new(answer)) }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr.expect("it is no unix socket")
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.addr())
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no handler panics with it").clone()
    }

    /// The same, and forgets them.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().expect("no handler panics with it"))
    }
}

/// A reply with that body, and fields that each end in a line end.
pub(crate) fn reply(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}", body.len()).into_bytes()
}

fn serve<S: Read + Write + Send + 'static>(
    accept: impl Fn() -> (S, Option<IpAddr>) + Send + 'static,
    answer: Arc<Answer>,
) -> Arc<Mutex<Vec<Seen>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&seen);
    std::thread::spawn(move || {
        for conn in 0.. {
            let (stream, peer) = accept();
            let (seen, answer) = (Arc::clone(&all), Arc::clone(&answer));
            std::thread::spawn(move || {
                let mut wire = Wire { stream, bytes: Vec::new() };
                while let Some((head, body)) = wire.request() {
                    let one = Seen { conn, peer, head, body };
                    let mut bytes = answer(&one);
                    if one.head.starts_with("HEAD ") {
                        bytes.truncate(end_of_head(&bytes).unwrap_or(bytes.len()));
                    }
                    seen.lock().expect("no handler panics with it").push(one);
                    if wire.stream.write_all(&bytes).is_err() {
                        break;
                    }
                }
            });
        }
    });
    seen
}

struct Wire<S> {
    stream: S,
    bytes: Vec<u8>,
}

impl<S: Read + Write> Wire<S> {
    /// The next head and body; `None` if the client has gone.
    fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let end = loop {
            match end_of_head(&self.bytes) {
                Some(end) => break end,
                None => self.read()?,
            }
        };
        let head: Vec<u8> = self.bytes.drain(..end).collect();
        let head = String::from_utf8(head).expect("heads are text");
        if head.contains("100-continue") {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |length| length.parse().expect("a length"));
        while self.bytes.len() < length {
            self.read()?;
        }
        Some((head, self.bytes.drain(..length).collect()))
    }

    fn read(&mut self) -> Option<()> {
        let mut buf = [0; 4096];
        let n = self.stream.read(&mut buf).ok().filter(|n| *n > 0)?;
        self.bytes.extend_from_slice(&buf[..n]);
        Some(())
    }
}

fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// The program, if it is installed; sbin is not on the PATH of an ordinary user. Otherwise notes
/// what is skipped.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders.map(|folder| folder.join(program)).find(|file| file.is_file());
    if found.is_none() {
        skips::note(format_args!("{program} is not installed (scripts/peers.sh brings it)"));
    }
    found
}

/// nginx with TLS, serving a folder; ends with the test.
pub(crate) struct Nginx {
    child: Child,
    /// The port of 127.0.0.1 on which it speaks TLS.
    pub(crate) port: u16,
}

impl Nginx {
    /// Serves `dir`/site with `dir`/cert.pem and `dir`/key.pem; `None` if it is not installed.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let program = installed("nginx")?;
        // Another process may take the free port before nginx binds it.
        (0..5).find_map(|_| Self::start_once(&program, dir)).or_else(|| {
            panic!("{}", std::fs::read_to_string(dir.join("nginx.err")).unwrap_or_default())
        })
    }

    fn start_once(program: &Path, dir: &Path) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let at = dir.display();
        let config = format!(
            "daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/nginx.err;\n\
             events {{}}\n\
             http {{ access_log off; client_body_temp_path {at}/t1; proxy_temp_path {at}/t2;\n\
             fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;\n\
             server {{ listen 127.0.0.1:{free} ssl; keepalive_requests 100000; root {at}/site;\n\
             ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem;\n\
             ssl_session_cache shared:joust:1m; ssl_protocols TLSv1.2 TLSv1.3; }} }}\n"
        );
        let file = dir.join("nginx.conf");
        std::fs::write(&file, config).expect("the folder is ours");
        let mut command = Command::new(program);
        let command = command.arg("-p").arg(dir).arg("-c").arg(&file);
        let command = command.arg("-e").arg(dir.join("nginx.err"));
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let mut nginx = Self { child, port: free };
        let give_up = Instant::now() + Duration::from_secs(20);
        while nginx.child.try_wait().ok()?.is_none() && Instant::now() < give_up {
            if std::net::TcpStream::connect(("127.0.0.1", free)).is_ok() {
                return Some(nginx);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Both fail if it has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder with the files of [`certificate`]; `None` if they cannot be made here.
pub(crate) fn with_certificate() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().expect("there is room");
    certificate(dir.path()).map(|()| dir)
}

/// Makes `dir`/cert.pem and `dir`/key.pem, for localhost and 127.0.0.1, as docs/load.md does.
pub(crate) fn certificate(dir: &Path) -> Option<()> {
    let program = installed("openssl")?;
    let mut command = Command::new(program);
    let command = command.current_dir(dir).args(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem \
         -out cert.pem -days 7 -subj /CN=joust-test -addext \
         subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE"
            .split_whitespace(),
    );
    let output = command.output().expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}
