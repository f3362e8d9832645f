//! Makes a plan from http_load's flags: the requests byte for byte, their servers, their start and the end of the load.
//! Owns the order of header fields. Start reading at [`plan`].

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rand::RngExt as _;
use record::{
    HttpVersion, LoadPlan, LoadStop, Origin, Pacing, Pick, RequestPlan, ServerAddress, TlsPlan,
    Verify,
};
use units::{Nanos, PerSecond};

use super::checksum::Checksums;
use super::flags::{End, Flags, Start, Timer, fatal, refused};
use super::random::random;
use super::urls::{self, Url};
use crate::command::{Call, ExitMessage};

/// The value of User-Agent.
pub(super) const USER_AGENT: &str = "http_load 12mar2006";

/// Most connections of -rate: select(2) supports files below 1024, of which 3 are standard streams.
pub(super) const SLOTS: u32 = 1021;

/// Longest path and host: http_load's buffers.
const PART_MAX: usize = 500;

/// Most samples kept if the number of fetches is not known in advance: some 400 MB.
const KEPT_MAX: u32 = 4_000_000;

/// Most instants of -jitter.
const INSTANTS_MAX: u64 = 10_000_000;

/// The planned load.
pub(super) struct Planned {
    pub(super) plan: LoadPlan,
    pub(super) footnotes: Vec<String>,
    pub(super) subject: Subject,
    /// For -checksum.
    pub(super) scenario: Option<Checksums>,
}

/// The subject of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) program: String,
    pub(super) flags: Flags,
    /// As written in the file.
    pub(super) urls: Vec<String>,
    pub(super) any_tls: bool,
}

/// The plan, and how it differs from http_load.
///
/// # Errors
/// What http_load prints before its first fetch.
pub(super) fn plan(flags: Flags, call: &Call<'_>) -> Result<Planned, ExitMessage> {
    let urls = urls::read_urls(&flags.url_file, call)?;
    let any_tls = urls.iter().any(|url| url.is_tls);
    if any_tls && flags.cipher.is_some() {
        let why = "joust's TLS (rustls) has its own list of safe cipher suites; leave it out";
        return Err(refused(call, "-cipher", why));
    }
    let (origins, requests) = requests(&flags, &urls, call)?;
    let sources = match &flags.sip_file {
        Some(path) => urls::read_addresses(path, call)?,
        None => Vec::new(),
    };
    let Some(pacing) = pacing(&flags) else {
        let why = format!("joust draws at most {INSTANTS_MAX} instants beforehand");
        return Err(refused(call, "-jitter for this long", &why));
    };
    let first = origins[0].place.clone();
    let ServerAddress::Inet(addr) = first else { unreachable!("http_load knows no others") };
    let connections = match (flags.start, flags.end) {
        (Start::Parallel(n), End::Fetches(fetches)) => n.min(fetches),
        (Start::Parallel(n), End::Seconds(_)) => n,
        (Start::Rate(_), _) => SLOTS,
    };
    let (stop, raw_max) = match flags.end {
        End::Fetches(n) => (LoadStop { requests: Some(n.into()), duration: None }, n),
        End::Seconds(n) => {
            (LoadStop { requests: None, duration: Some(Nanos::from_secs(n.into())) }, KEPT_MAX)
        }
    };
    let mut plan = LoadPlan {
        url: urls[0].whole.clone(),
        origins,
        n_requests: requests.len() as u64,
        pick: if requests.len() > 1 { Pick::AtRandom } else { Pick::InOrder },
        requests,
        version: HttpVersion::Http10,
        connections,
        keep_alive: false,
        sources: sources.iter().map(|source| (*source).into()).collect(),
        // http_load does not verify certificates or offer sessions.
        tls: TlsPlan { insecure: true, resume: 0.0, ..TlsPlan::default() },
        stop,
        timeout: Nanos::from_secs(flags.timeout.into()).max(Nanos::from_millis(1)),
        drain: Nanos::ZERO,
        pacing,
        // http_load ignores the status: every complete reply counts.
        verify: Verify { status_min: 0, status_max: 999, ..Verify::default() },
        raw_max: raw_max.saturating_add(connections),
        ..LoadPlan::get(addr, "/")
    };
    let scenario = flags.checksum.then(|| Checksums::of(&plan.requests, flags.end));
    if scenario.is_some() {
        // One request represents them all.
        plan.requests.truncate(1);
    }
    let footnotes = footnotes(&urls);
    let whole = urls.into_iter().map(|url| url.whole).collect();
    let subject = Subject { program: call.program.to_owned(), flags, urls: whole, any_tls };
    Ok(Planned { plan, footnotes, subject, scenario })
}

fn footnotes(urls: &[Url]) -> Vec<String> {
    let mut notes = Vec::new();
    if urls.iter().any(|url| url.is_tls) {
        notes
            .push("http_load verifies no certificate, so none was verified here either".to_owned());
        notes.push(
            "http_load does nothing else during a TLS handshake; here other fetches continue"
                .to_owned(),
        );
    }
    let n_cut = urls.iter().filter(|url| url.path.len() > PART_MAX).count();
    if n_cut > 0 {
        notes.push(format!(
            "http_load truncates paths to {PART_MAX} bytes: {n_cut} paths were truncated here"
        ));
    }
    notes
}

/// The origins, each once, and a request for each URL.
fn requests(
    flags: &Flags,
    urls: &[Url],
    call: &Call<'_>,
) -> Result<(Vec<Origin>, Vec<RequestPlan>), ExitMessage> {
    let mut numbers = BTreeMap::new();
    let mut origins: Vec<Origin> = Vec::new();
    let mut requests = Vec::new();
    for url in urls {
        let key = (url.is_tls, url.host.as_str(), url.port);
        let origin = match numbers.get(&key) {
            Some(number) => *number,
            None => {
                let (host, port) = match &flags.proxy {
                    Some((host, port)) => (host, *port),
                    None => (&url.host, url.port),
                };
                let addr = resolve(host, port, call)?;
                // An address in place of the name: TLS then sends no name, like http_load.
                let tls_name = url.is_tls.then(|| addr.ip().to_string());
                let (place, host) = (ServerAddress::Inet(addr), url.host.clone());
                origins.push(Origin { place, host, tls_name });
                let number = origins.len() as u32 - 1;
                numbers.insert(key, number);
                number
            }
        };
        requests.push(request(url, origin, flags.proxy.is_some()));
    }
    Ok((origins, requests))
}

/// The first IPv4 address, else the first.
fn resolve(host: &str, port: u16, call: &Call<'_>) -> Result<SocketAddr, ExitMessage> {
    let found = call.world.resolve(host, port).map_err(|error| {
        let text = error.to_string();
        let reason = text.rsplit(": ").next().unwrap_or_default();
        fatal(call, &format!("getaddrinfo {host} - {reason}"))
    })?;
    let version_4 = found.iter().find(|addr| addr.is_ipv4());
    let missing = || fatal(call, &format!("no valid address found for host {host}"));
    version_4.or(found.first()).copied().ok_or_else(missing)
}

fn request(url: &Url, origin: u32, through_proxy: bool) -> RequestPlan {
    let cut = |text: &str| {
        let end = (0..=PART_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text[..end.unwrap_or(0)].to_owned()
    };
    let (host, path) = (cut(&url.host), cut(&url.path));
    let target = match through_proxy {
        true => {
            let scheme = if url.is_tls { "https" } else { "http" };
            format!("{scheme}://{host}:{}{path}", url.port)
        }
        false => path.clone(),
    };
    let head =
        format!("GET {target} HTTP/1.0\r\nHost: {}\r\nUser-Agent: {USER_AGENT}\r\n\r\n", url.host);
    RequestPlan {
        origin,
        headers: vec![("User-Agent".to_owned(), USER_AGENT.to_owned())],
        verbatim: Some(head.into_bytes()),
        ..RequestPlan::get(path)
    }
}

/// `None` if there would be too many instants.
fn pacing(flags: &Flags) -> Option<Pacing> {
    let Start::Rate(timer) = flags.start else { return Some(Pacing::Closed) };
    if !timer.jitters {
        return Some(Pacing::Constant { rate: PerSecond(timer.rate()) });
    }
    let instants = instants(timer, flags.end)?;
    Some(Pacing::Replay { instants })
}

/// The instants of a timer with jitter: first after its period, then after a random whole number of milliseconds
/// between its bounds; with a period of 1 the interval may be 0.
fn instants(timer: Timer, end: End) -> Option<Vec<Nanos>> {
    let (low, high) = timer.jitter_ms();
    let mut random = random();
    let mut instants = Vec::new();
    let mut at_ms = u64::from(timer.period_ms());
    loop {
        let is_over = match end {
            End::Fetches(n) => instants.len() == n as usize,
            End::Seconds(n) => at_ms >= u64::from(n) * 1000,
        };
        // At least one: a replay without instants is not a law.
        if is_over && !instants.is_empty() {
            return Some(instants);
        }
        if instants.len() as u64 == INSTANTS_MAX {
            return None;
        }
        instants.push(Nanos::from_millis(at_ms));
        at_ms += u64::from(random.random_range(low..=high));
    }
}

#[cfg(test)]
mod tests {
    use crate::command::Chosen;
    use crate::command::Stream;
    use crate::command::testing::{World, args};

    use super::super::flags;
    use super::*;

    fn planned(line: &str, urls: &'static [u8]) -> Result<Planned, ExitMessage> {
        let ips: &[u8] = b"127.0.0.1\n127.0.0.2\n";
        let world = World { files: [("urls", urls), ("ips", ips)].into(), ..World::default() };
        let args = args(line);
        let call =
            Call { program: "http_load", args: &args, own: &Chosen::default(), world: &world };
        plan(flags::parse(&call)?, &call)
    }

    fn sent(plan: &LoadPlan) -> Vec<String> {
        let bytes = |request: &RequestPlan| request.verbatim.clone().expect("all are verbatim");
        plan.requests.iter().map(|request| String::from_utf8(bytes(request)).unwrap()).collect()
    }

    #[test]
    fn requests_are_http_load_s_and_origins_are_looked_up_once() {
        let urls = b"http://a:81/x?y\nhttps://b/\nhttp://a:81/z\n";
        let plan = planned("-p 2 -f 5 urls", urls).unwrap().plan;
        let agent = "User-Agent: http_load 12mar2006\r\n\r\n";
        let expected = [
            format!("GET /x?y HTTP/1.0\r\nHost: a\r\n{agent}"),
            format!("GET / HTTP/1.0\r\nHost: b\r\n{agent}"),
            format!("GET /z HTTP/1.0\r\nHost: a\r\n{agent}"),
        ];
        assert_eq!(sent(&plan), expected, "no port in Host");
        assert_eq!(plan.requests.iter().map(|r| r.origin).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(plan.origins[1].tls_name.as_deref(), Some("127.0.0.1"), "no name is sent");
        assert_eq!((plan.pick, plan.connections, plan.keep_alive), (Pick::AtRandom, 2, false));
    }

    #[test]
    fn a_proxy_gets_the_whole_url_with_its_port() {
        let plan = planned("-proxy p -p 2 -f 5 urls", b"http://a/x\nhttps://b/y").unwrap().plan;
        assert!(sent(&plan)[0].starts_with("GET http://a:80/x HTTP/1.0\r\nHost: a\r\n"));
        assert!(sent(&plan)[1].starts_with("GET https://b:443/y HTTP/1.0\r\nHost: b\r\n"));
        let place = ServerAddress::Inet(([127, 0, 0, 1], 80).into());
        assert!(plan.origins.iter().all(|origin| origin.place == place));
    }

    #[test]
    fn sources_and_ciphers_and_hosts() {
        let plan = planned("-sip ips -p 1 -f 1 urls", b"http://a/").unwrap().plan;
        assert_eq!(plan.sources.len(), 2);
        let said = |line, urls| planned(line, urls).err().unwrap().texts.on(Stream::Err);
        let cipher = "http_load: -cipher is not supported: ";
        assert!(said("-ci fastsec -p 1 -f 1 urls", b"https://a/").starts_with(cipher));
        assert!(planned("-ci fastsec -p 1 -f 1 urls", b"http://a/").is_ok(), "changes nothing");
        assert_eq!(
            said("-p 1 -f 1 urls", b"http://x.invalid/"),
            "http_load: getaddrinfo x.invalid - Name or service not known\n"
        );
        assert_eq!(said("-p 1 -f 1 none", b""), "none: No such file or directory\n");
    }

    /// A quirk: for rates above 500 all intervals are 1 ms, and with -jitter 0 or 1 ms.
    #[test]
    fn rates_are_those_of_whole_milliseconds() {
        let pacing = |line: &str| {
            let line = format!("{line} -seconds 2 urls");
            planned(&line, b"http://a/").unwrap().plan.pacing
        };
        assert_eq!(pacing("-rate 600"), Pacing::Constant { rate: PerSecond(1000.0) });
        assert_eq!(pacing("-rate 5"), Pacing::Constant { rate: PerSecond(5.0) });
        let Pacing::Replay { instants } = pacing("-rate 600 -jitter") else { panic!("instants") };
        assert_eq!(instants[0], Nanos::from_millis(1));
        assert!(instants.is_sorted() && instants.last().unwrap() < &Nanos::from_secs(2));
        assert!((3800..4200).contains(&instants.len()), "{} in 2 s", instants.len());
        let Pacing::Replay { instants } = pacing("-rate 10 -j") else { panic!("instants") };
        let gaps: Vec<u64> =
            instants.windows(2).map(|pair| (pair[1].0 - pair[0].0) / 1_000_000).collect();
        assert!(gaps.iter().all(|gap| (90..=110).contains(gap)), "{gaps:?}");
    }

    /// A quirk: http_load has 500 bytes for a path.
    #[test]
    fn a_long_path_is_cut() {
        let urls = format!("http://a/{}", "x".repeat(600)).into_bytes().leak();
        let planned = planned("-p 1 -f 1 urls", urls).unwrap();
        assert_eq!(sent(&planned.plan)[0].find(" HTTP/1.0"), Some(4 + 500));
        assert!(planned.footnotes[0].contains("truncates paths to 500 bytes"));
    }
}
