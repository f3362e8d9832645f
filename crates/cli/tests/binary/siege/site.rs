//! A site with all that siege's users meet: pages with parts, redirects, cookies, challenges, statuses,
//! connections that end early. Owns its threads; they end with it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const PAGE: &str = r#"<html><head>
<link rel="stylesheet" href="/s.css"><link href='/i.ico' rel='icon'><link rel=stylesheet href=/t.css>
<script src="/j.js"></script><script>var x="<img src=/in-script.png>";</script>
</head><body background="/bg.png"><!-- <img src="/comment.png"> -->
<img src="/a.png"><img alt="x y" src='/b.png'><img src=/c.png><IMG SRC="/d.png"/><img src="">
<img src="e.png"><img src="./f.png"><img src="../g.png"><img src="data:image/png;base64,xxx">
<iframe src="/frame.html"></iframe><embed src="/embed.swf"><a href="/link.html">l</a><img src="/a.png">
<img
src="/line.png"><img src = "/spaces.png"><img src="/q.png?x=1&amp;y=2"><img srcset="/ss.png 2x" src="/k">
<img src="http://ads.test/x.png"></body></html>"#;

const NESTED: &str = r#"<img src="/page.html"><img src="/plain">"#;
const REFRESH: &str = r#"<meta http-equiv="refresh" content="0; url=/plain"><img src="/a.png">"#;

pub struct Site {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let (keep, ended) = (Arc::clone(&asked), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let keep = Arc::clone(&keep);
                std::thread::spawn(move || serve(stream, addr.port(), &keep));
            }
        });
        Self { addr, asked, over, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Every request so far, whole.
    pub fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // One more connection wakes the thread that accepts.
        TcpStream::connect(self.addr).ok();
        self.thread.take().map(JoinHandle::join);
    }
}

fn serve(stream: TcpStream, port: u16, asked: &Mutex<Vec<Vec<u8>>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(request) = request(&mut reader) {
        let text = String::from_utf8_lossy(&request).into_owned();
        asked.lock().unwrap().push(request);
        let keeps = text.contains("Connection: keep-alive");
        // Also as a proxy is asked.
        let target = text.split(' ').nth(1).unwrap_or_default();
        let target = target.strip_prefix("http://foo.test:80").unwrap_or(target);
        let path = target.split('?').next().unwrap_or_default();
        match path {
            "/close" => break,
            "/cut" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").ok();
                break;
            }
            "/slow" => std::thread::sleep(Duration::from_millis(300)),
            _ => {}
        }
        let (status, fields, body) = answer(path, &text, port);
        let connection = if keeps { "keep-alive" } else { "close" };
        let is_chunked = path == "/chunked";
        let length = match is_chunked {
            true => "Transfer-Encoding: chunked".to_owned(),
            false => format!("Content-Length: {}", body.len()),
        };
        let head =
            format!("HTTP/1.1 {status} X\r\n{fields}{length}\r\nConnection: {connection}\r\n\r\n");
        let has_body = !text.starts_with("HEAD") && ![204, 304].contains(&status);
        let body = match (has_body, is_chunked) {
            (false, _) => String::new(),
            (true, false) => body,
            (true, true) => format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
        };
        stream.write_all((head + &body).as_bytes()).ok();
        if !keeps {
            break;
        }
    }
    stream.shutdown(Shutdown::Both).ok();
}

fn answer(path: &str, request: &str, port: u16) -> (u16, String, String) {
    let html = "Content-Type: text/html; charset=utf-8\r\n".to_owned();
    let to = |place: &str| format!("Location: {place}\r\n");
    let bare = |status: u16, body: &str| (status, String::new(), body.to_owned());
    match path {
        "/page.html" => (200, html, PAGE.to_owned()),
        "/nested.html" => (200, html, NESTED.to_owned()),
        "/refresh.html" => (200, html, REFRESH.to_owned()),
        "/to-path" => (302, to("/plain"), String::new()),
        "/to-url" => (302, to(&format!("http://127.0.0.1:{port}/plain")), "moved".to_owned()),
        "/to-name" => (301, to("plain"), "moved".to_owned()),
        "/to-same" => (307, to("/plain"), "moved".to_owned()),
        "/to-308" => (308, to("/plain"), "moved".to_owned()),
        "/to-chain" => (303, to("/to-path"), "m".to_owned()),
        "/to-half" => (302, to(".\u{e9}"), "m".to_owned()),
        "/half.html" => (200, html, "<img src=\".\u{e9}\">".to_owned()),
        "/proxied" if request.contains("Proxy-Authorization: Basic dTpw\r\n") => bare(200, "in"),
        "/proxied" => {
            (407, "Proxy-Authenticate: Basic realm=\"R\"\r\n".to_owned(), "no".to_owned())
        }
        "/to-error" => (302, to("/500"), "m".to_owned()),
        "/cookie" => (200, "Set-Cookie: a=1; path=/\r\n".to_owned(), "c".to_owned()),
        "/login" if request.contains("Authorization: Basic dTpw\r\n") => bare(200, "in"),
        "/login" => (401, "WWW-Authenticate: Basic realm=\"R\"\r\n".to_owned(), "no".to_owned()),
        "/closed" => (401, "WWW-Authenticate: Basic realm=\"R\"\r\n".to_owned(), "no".to_owned()),
        "/digest" if request.contains("Authorization: Digest ") => bare(200, "in"),
        "/digest" => {
            let challenge = "Digest realm=\"R\", nonce=\"n\", qop=\"auth\", algorithm=MD5";
            (401, format!("WWW-Authenticate: {challenge}\r\n"), "no".to_owned())
        }
        "/none" => bare(200, ""),
        _ => match path[1..].parse() {
            Ok(status) => (status, html, "<img src=/a.png>".to_owned()),
            Err(_) => bare(200, "ten bytes."),
        },
    }
}

/// A head, and a body of the length that it tells.
fn request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut request).ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&request).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |digits| digits.trim().parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    request.extend(body);
    Some(request)
}
