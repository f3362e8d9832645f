//! A site with everything that siege's users may encounter: pages with parts, redirects, cookies, challenges, statuses,
//! connections that end early.

use std::time::Duration;

use crate::scripted::{Connection, Scripted};

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

pub struct Site(Scripted);

impl Site {
    pub fn start() -> Self {
        Self(Scripted::start(serve))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.0.addr())
    }

    /// Every complete request so far.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.0.asked();
        asked.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }
}

fn serve(connection: &mut Connection) {
    while let Some((text, _)) = connection.request() {
        let keeps = text.contains("Connection: keep-alive");
        // Also in the form of a request to a proxy.
        let target = text.split(' ').nth(1).unwrap_or_default();
        let target = target.strip_prefix("http://foo.test:80").unwrap_or(target);
        let path = target.split('?').next().unwrap_or_default();
        match path {
            "/close" => return,
            "/cut" => {
                return connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
            }
            "/slow" => std::thread::sleep(Duration::from_millis(300)),
            _ => {}
        }
        let (status, fields, body) = answer(path, &text, connection.port());
        let carried = if keeps { "keep-alive" } else { "close" };
        let is_chunked = path == "/chunked";
        let length = match is_chunked {
            true => "Transfer-Encoding: chunked".to_owned(),
            false => format!("Content-Length: {}", body.len()),
        };
        let head =
            format!("HTTP/1.1 {status} X\r\n{fields}{length}\r\nConnection: {carried}\r\n\r\n");
        let has_body = !text.starts_with("HEAD") && ![204, 304].contains(&status);
        let body = match (has_body, is_chunked) {
            (false, _) => String::new(),
            (true, false) => body,
            (true, true) => format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
        };
        connection.send((head + &body).as_bytes());
        if !keeps {
            return;
        }
    }
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
