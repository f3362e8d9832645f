//! Makes a plan from the flags of 0.5: the request byte for byte, and its server. Owns the order of its header fields.
//! Start reading at [`plan`].

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use record::{LoadPlan, LoadStop, Origin, RequestPlan, ServerAddress, Verify};
use units::Nanos;

use super::super::flags::{default_port, host_field, scheme};
use super::super::{TIMEOUT, tls};
use super::flags::{Flags, fatal};
use crate::command::{Call, ExitMessage};

/// Longest head: weighttp's buffer.
const HEAD_MAX: usize = 8192;

/// A URL as 0.5 parses it.
struct Url<'a> {
    is_tls: bool,
    host: &'a str,
    port: u16,
    path: &'a str,
}

/// The plan, and the request as sent.
///
/// # Errors
/// What weighttp prints before its first request.
pub(super) fn plan(flags: &Flags, call: &Call<'_>) -> Result<(LoadPlan, Vec<u8>), ExitMessage> {
    let url = parse_url(&flags.url)?;
    if url.is_tls && flags.proxy.is_some() {
        // It would need a tunnel, which weighttp does not support.
        return Err(fatal("no ssl support yet"));
    }
    let place = place(flags, &url, call)?;
    let host = host(&url);
    let head = head(flags, &url)?;
    let mut bytes = head.into_bytes();
    let body = flags.body.clone().unwrap_or_default();
    bytes.extend_from_slice(&body);
    let sources = sources(flags, call)?;
    let field = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    let cookies = flags.cookies.iter().map(|cookie| ("Cookie".to_owned(), cookie.clone()));
    let request = RequestPlan {
        method: flags.method.clone(),
        headers: flags.headers.iter().filter_map(field).chain(cookies).collect(),
        body,
        verbatim: Some(bytes.clone()),
        ..RequestPlan::get(url.path)
    };
    let addr = match &place {
        ServerAddress::Inet(addr) => *addr,
        ServerAddress::Unix(_) => SocketAddr::from(([127, 0, 0, 1], url.port)),
    };
    let plan = LoadPlan {
        url: format!("{}://{host}{}", if url.is_tls { "https" } else { "http" }, url.path),
        origins: vec![Origin { place, host, tls_name: url.is_tls.then(|| url.host.to_owned()) }],
        tls: tls(),
        requests: vec![request],
        connections: flags.clients,
        threads: flags.threads,
        keep_alive: flags.keep_alive,
        pipeline: flags.pipeline,
        sources,
        stop: LoadStop { requests: Some(flags.requests), duration: flags.time_limit },
        timeout: TIMEOUT,
        drain: Nanos::ZERO,
        // Successes are counted from the samples.
        verify: Verify { status_min: 0, status_max: 999, ..Verify::default() },
        raw_max: u32::try_from(flags.requests).unwrap_or(u32::MAX).saturating_add(flags.clients),
        ..LoadPlan::get(addr, url.path)
    };
    Ok((plan, bytes))
}

/// The first colon ends the host, wherever it is.
fn parse_url(whole: &str) -> Result<Url<'_>, ExitMessage> {
    let (is_tls, rest) = scheme(whole);
    let (host, port, path) = match rest.split_once(':') {
        Some((host, behind)) => {
            let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            let port = behind[..end].parse().ok().filter(|port| *port > 0);
            (host, port.ok_or_else(|| fatal("could not parse URI"))?, &behind[end..])
        }
        None => {
            let slash = rest.find('/').unwrap_or(rest.len());
            (&rest[..slash], default_port(is_tls), &rest[slash..])
        }
    };
    Ok(Url { is_tls, host, port, path: if path.is_empty() { "/" } else { path } })
}

fn host(url: &Url<'_>) -> String {
    host_field(url.is_tls, url.host, url.port)
}

fn place(flags: &Flags, url: &Url<'_>, call: &Call<'_>) -> Result<ServerAddress, ExitMessage> {
    let (host, port) = match &flags.proxy {
        Some(path) if path.starts_with('/') => return Ok(ServerAddress::Unix(path.into())),
        Some(proxy) => match proxy.rsplit_once(':') {
            Some((host, digits)) => {
                let port = digits.parse().ok().filter(|port| *port > 0);
                let wrong = || fatal(&format!("could not parse -X proxy: {proxy}"));
                (host, port.ok_or_else(wrong)?)
            }
            None => (proxy.as_str(), 80),
        },
        None => (url.host, url.port),
    };
    let found = call.world.resolve(host, port).unwrap_or_default();
    let addr = found.into_iter().find(|addr| addr.is_ipv6() == flags.ipv6);
    let unknown = || fatal(&format!("could not resolve hostname: {host}"));
    Ok(ServerAddress::Inet(addr.ok_or_else(unknown)?))
}

fn sources(flags: &Flags, call: &Call<'_>) -> Result<Vec<IpAddr>, ExitMessage> {
    let Some(typed) = &flags.bind else { return Ok(Vec::new()) };
    let resolve = |name: &str| {
        let found = call.world.resolve(name, 0).unwrap_or_default();
        let addr = found.into_iter().find(|addr| addr.is_ipv6() == flags.ipv6);
        let unknown = || fatal(&format!("could not resolve local bind address: {name}"));
        addr.map(|addr| addr.ip()).ok_or_else(unknown)
    };
    typed.split(',').map(resolve).collect()
}

/// Request line, then fields in weighttp's order.
fn head(flags: &Flags, url: &Url<'_>) -> Result<String, ExitMessage> {
    let named = |name: &str| -> Vec<&String> {
        let is_it = |line: &&String| {
            line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
        };
        flags.headers.iter().filter(is_it).collect()
    };
    if named("Host:").len() > 1 {
        return Err(fatal("duplicate Host header"));
    }
    if !named("Connection:").is_empty() {
        let text = "Connection request header not allowed; use -k param to enable keep-alive";
        return Err(fatal(text));
    }
    let through_proxy = flags.proxy.as_ref().is_some_and(|proxy| !proxy.starts_with('/'));
    let target = if through_proxy { &flags.url } else { url.path };
    let typed_host = named("Host:").first().copied();
    let mut lines = vec![format!("{} {target} HTTP/1.1", flags.method)];
    lines.push(typed_host.cloned().unwrap_or_else(|| format!("Host: {}", host(url))));
    if !flags.keep_alive {
        lines.push("Connection: close".to_owned());
    }
    if let Some(body) = &flags.body {
        let has_length = !named("Content-Length:").is_empty();
        match !named("Transfer-Encoding:").is_empty() {
            true if has_length => {
                let text = "Content-Length must be omitted if Transfer-Encoding provided";
                return Err(fatal(text));
            }
            false if !has_length => lines.push(format!("Content-Length: {}", body.len())),
            _ => {}
        }
        let content_type = match &flags.content_type {
            Some(typed) => Some(typed.as_str()),
            None => named("Content-Type:").is_empty().then_some("text/plain"),
        };
        lines.extend(content_type.map(|content_type| format!("Content-Type: {content_type}")));
    }
    lines.extend(flags.headers.iter().filter(|line| Some(*line) != typed_host).cloned());
    let basic = |name: &str, typed: &String| format!("{name}: Basic {}", STANDARD.encode(typed));
    lines.extend(flags.authorization.iter().map(|typed| basic("Authorization", typed)));
    lines.extend(flags.proxy_authorization.iter().map(|typed| basic("Proxy-Authorization", typed)));
    if named("User-Agent:").is_empty() {
        lines.push("User-Agent: weighttp/0.5".to_owned());
    }
    lines.extend(flags.cookies.iter().map(|cookie| format!("Cookie: {cookie}")));
    let head = lines.join("\r\n") + "\r\n\r\n";
    if head.len() >= HEAD_MAX {
        return Err(fatal("request too large"));
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use crate::command::Chosen;
    use crate::command::Stream;
    use crate::command::testing::World;

    use super::super::flags;
    use super::*;

    fn planned(words: &[&str]) -> Result<LoadPlan, String> {
        let world = World { files: [("body", &b"a=1"[..])].into(), ..World::default() };
        let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let call =
            Call { program: "weighttp", args: &args, own: &Chosen::default(), world: &world };
        let flags = flags::parse(&call).expect("a command line");
        plan(&flags, &call).map(|(plan, _)| plan).map_err(|said| said.texts.on(Stream::Err))
    }

    fn request(words: &[&str]) -> String {
        let plan = planned(words).unwrap();
        String::from_utf8(plan.requests[0].verbatim.clone().unwrap()).unwrap()
    }

    #[test]
    fn the_request_is_that_of_0_5() {
        assert_eq!(
            request(&["-n", "1", "h:81/x"]),
            "GET /x HTTP/1.1\r\nHost: h:81\r\nConnection: close\r\nUser-Agent: weighttp/0.5\r\n\r\n"
        );
        let words = ["-n1", "-k", "-pbody", "-Au:p", "-Pv:q", "-CA=1", "-HX: y", "-Hhost: z", "h"];
        assert_eq!(
            request(&words),
            "POST / HTTP/1.1\r\nhost: z\r\nContent-Length: 3\r\nContent-Type: text/plain\r\nX: y\r\n\
             Authorization: Basic dTpw\r\nProxy-Authorization: Basic djpx\r\n\
             User-Agent: weighttp/0.5\r\nCookie: A=1\r\n\r\na=1"
        );
        let through = request(&["-n1", "-k", "-Xp:99", "-i", "http://h/x"]);
        assert!(through.starts_with("HEAD http://h/x HTTP/1.1\r\nHost: h\r\n"), "{through}");
    }

    #[test]
    fn places_are_addresses_proxies_and_unix_sockets() {
        let place = |words: &[&str]| planned(words).map(|plan| plan.origins[0].place.clone());
        let inet = |port| ServerAddress::Inet(([127, 0, 0, 1], port).into());
        assert_eq!(place(&["-n1", "h:81"]), Ok(inet(81)));
        assert_eq!(place(&["-n1", "-Xp:99", "h:81"]), Ok(inet(99)));
        assert_eq!(place(&["-n1", "-X/run/s", "h"]), Ok(ServerAddress::Unix("/run/s".into())));
        let plan = planned(&["-n9", "-B127.0.0.2,127.0.0.3", "-K3", "h"]).unwrap();
        assert_eq!((plan.sources.len(), plan.pipeline), (2, 3));
        let said = |text: &str| Err(format!("\nerror: {text}\n\n"));
        assert_eq!(place(&["-n1", "-Xp:x", "h"]), said("could not parse -X proxy: p:x"));
        assert_eq!(place(&["-n1", "h/a:b"]), said("could not parse URI"));
        assert!(place(&["-n1", "-HConnection: close", "h"]).is_err());
    }
}
