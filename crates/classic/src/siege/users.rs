//! siege's users: each goes through its URLs, follows redirects, answers challenges, keeps cookies, fetches the parts
//! of pages, and pauses. Owns their turns, and what counts as a transaction. Start reading at [`User::request_ended`].
//!
//! In siege a redirect is a nested call: a transaction is counted when it returns, and if the last request of a chain
//! fails, none of the chain is counted. [`Link`] represents such a call.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::{
    Answer, Asking, Origin, Outcome, Scenario, Seats, ServerAddress, Turn, Users, WantedBodies,
    Wants,
};
use units::Nanos;

use super::auth::{Asker, Challenge};
use super::cookies::Jar;
use super::figures::{UserTotals, is_server_error};
use super::heads::{Head, page};
use super::html::Parts;
use super::lines::{self, Reply};
use super::request::{self, Own};
use super::settings::{Reps, Settings};
use super::text::{NotifyLevel, notify};
use super::urls::{Scheme, Url};
use crate::command::{Clock, Network, Stream};

/// Least time between two URLs that cannot even be started, so that other users have their turn and the load can end.
const VAIN: Nanos = Nanos::from_millis(1);

/// Most bytes of a page that are searched for parts. With -p there is one user, and a page is printed unchanged: then
/// only memory is the limit.
const PAGE_MAX: usize = 4 << 20;

/// The state that all users share.
pub(super) struct Battle {
    pub(super) settings: Settings,
    pub(super) urls: Vec<Url>,
    login_urls: Vec<Url>,
    network: Arc<dyn Network>,
    clock: Clock,
    state: Mutex<State>,
}

/// Their common counts and output.
#[derive(Default)]
pub(super) struct State {
    pub(super) tally: UserTotals,
    pub(super) said: Vec<(Stream, String)>,
    next_login: usize,
    /// Cached addresses of hosts.
    hosts: HashMap<(String, u16), Option<SocketAddr>>,
}

impl Battle {
    pub(super) fn new(
        settings: Settings,
        urls: Vec<Url>,
        login_urls: Vec<Url>,
        network: Arc<dyn Network>,
        clock: Clock,
    ) -> Self {
        Self { settings, urls, login_urls, network, clock, state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no user panics while it counts")
    }

    fn say(&self, stream: Stream, text: String) {
        self.state().said.push((stream, text));
    }

    fn address(&self, host: &str, port: u16) -> io::Result<SocketAddr> {
        let key = (host.to_owned(), port);
        let unknown = || io::Error::other("Name or service not known");
        if let Some(known) = self.state().hosts.get(&key) {
            return known.ok_or_else(unknown);
        }
        let all = self.network.lookup(host, port).unwrap_or_default();
        // siege tries the next address if one refuses; a user here has only one.
        let answers = |addr: &&SocketAddr| all.len() > 1 && self.network.connect(**addr).is_ok();
        let found = all.iter().find(answers).or(all.first()).copied();
        self.state().hosts.insert(key, found);
        found.ok_or_else(unknown)
    }
}

/// The connected host: that of the URL, or the proxy.
fn peer<'a>(battle: &'a Battle, url: &'a Url) -> (&'a str, u32) {
    match &battle.settings.proxy {
        Some(proxy) => (proxy, battle.settings.proxy_port.unsigned_abs()),
        None => (&url.host, url.port),
    }
}

/// An IPv6 address without its brackets, or a host unchanged.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// The origin of a URL's requests.
///
/// # Errors
/// The port is invalid, or the resolver does not know the host.
pub(super) fn place(battle: &Battle, url: &Url) -> io::Result<Origin> {
    let (host, port) = peer(battle, url);
    let known = u16::try_from(port).ok().filter(|port| *port > 0);
    let port = known.ok_or(io::ErrorKind::AddrNotAvailable)?;
    let place = ServerAddress::Inet(battle.address(bare(host), port)?);
    let tls_name = (url.scheme == Scheme::Https).then(|| bare(&url.host).to_owned());
    Ok(Origin { place, host: format!("{}:{}", url.host, url.port), tls_name })
}

/// All users of a siege.
pub(super) struct Besiegers {
    battle: Arc<Battle>,
    /// The origin in the plan.
    origin: Origin,
}

impl Besiegers {
    pub(super) fn new(battle: Arc<Battle>, origin: Origin) -> Self {
        Self { battle, origin }
    }
}

impl Scenario for Besiegers {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        let battle = &*self.battle;
        let users = (seats.first..seats.first + seats.n).map(|id| User::new(battle, id)).collect();
        Box::new(Crew { battle, first: seats.first, users, origins: vec![self.origin.clone()] })
    }
}

/// The users of one thread.
struct Crew<'a> {
    battle: &'a Battle,
    first: u32,
    users: Vec<User<'a>>,
    /// In order of their numbers.
    origins: Vec<Origin>,
}

impl Crew<'_> {
    fn user(&mut self, id: u32) -> usize {
        (id - self.first) as usize
    }
}

impl Users for Crew<'_> {
    fn wants(&self) -> Wants {
        let settings = &self.battle.settings;
        let bodies = match (settings.print, settings.parser) {
            (true, _) => WantedBodies::All,
            (false, true) => WantedBodies::Html,
            (false, false) => WantedBodies::None,
        };
        Wants { heads: true, bodies, bytes_max: (!settings.print).then_some(PAGE_MAX) }
    }

    fn first(&mut self, user: u32) -> Turn {
        let index = self.user(user);
        self.users[index].begin()
    }

    fn ask(&mut self, user: u32, asking: &mut Asking) {
        let index = self.user(user);
        let user = &mut self.users[index];
        let Some(origin) = user.make_ready() else {
            if let Turn::After(pause) = user.end_of_chain(false) {
                asking.again(pause.max(VAIN));
            }
            return;
        };
        asking.origin = match self.origins.iter().position(|other| *other == origin) {
            Some(number) => number as u32,
            None => {
                self.origins.push(origin.clone());
                asking.add_origin(origin)
            }
        };
        asking.request(&user.request(), user.url.id as u32);
    }

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        let index = self.user(answer.sample.conn);
        self.users[index].request_ended(answer)
    }
}

/// Why a request follows another: a nested call in siege.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Redirect,
    Credentials,
    ProxyCredentials,
}

/// One user.
struct User<'a> {
    battle: &'a Battle,
    id: u32,
    /// URLs that it has finished, and the next one.
    done: i64,
    at: usize,
    /// Whether it goes through its URLs: not before, nor at a login URL.
    is_walking: bool,
    is_part: bool,
    /// The current or last requested URL.
    url: Url,
    /// What -g, -p and -D print about it, once it is sent.
    shown: Vec<(Stream, String)>,
    chain: Vec<Link>,
    parts: Parts,
    server: Asker,
    proxy: Asker,
    server_bids: i32,
    proxy_bids: i32,
    jar: Jar,
    random: Pcg64Mcg,
}

impl<'a> User<'a> {
    fn new(battle: &'a Battle, id: u32) -> Self {
        let each = battle.urls.len() / battle.settings.users.max(1).unsigned_abs() as usize;
        let at = if battle.settings.reps == Reps::Once { 0 } else { id as usize * each };
        Self {
            battle,
            id,
            done: 0,
            at,
            is_walking: false,
            is_part: false,
            url: Url::default(),
            shown: Vec::new(),
            chain: Vec::new(),
            parts: Parts::default(),
            server: Asker::default(),
            proxy: Asker::default(),
            server_bids: 0,
            proxy_bids: 0,
            jar: Jar::default(),
            random: Pcg64Mcg::seed_from_u64(id.into()),
        }
    }

    fn begin(&mut self) -> Turn {
        let logins = &self.battle.login_urls;
        if !logins.is_empty() {
            let mut state = self.battle.state();
            let url = logins[state.next_login % logins.len()].clone();
            state.next_login += 1;
            self.url = url;
            return Turn::after(Nanos::ZERO);
        }
        self.go_on()
    }

    /// The request for the next URL; -g, -p and -D print it.
    fn request(&mut self) -> Vec<u8> {
        let settings = &self.battle.settings;
        let (method, target) = (self.url.method.0, request::target(settings, &self.url));
        let nonce = self.random.random();
        let own = Own {
            authorization: self.server.value(method, &target, nonce),
            proxy_authorization: self.proxy.value(method, &target, nonce),
            cookie: self.jar.value(&self.url.host),
        };
        let bytes = request::bytes(settings, &self.url, &own);
        if settings.debug {
            let (host, port) = (&self.url.host, self.url.port);
            let line = format!("browser.c:909 good socket connection:  {host}:{port}");
            self.shown.push((Stream::Err, notify(NotifyLevel::Debug, &line)));
            for line in ["874 attempting connection to", "889 creating new socket:    "] {
                let line = format!("browser.c:{line} {host}:{port}");
                self.battle.say(Stream::Err, notify(NotifyLevel::Debug, &line));
            }
        }
        let shows = settings.debug || settings.get || settings.print;
        let text = String::from_utf8_lossy(&bytes);
        if shows && self.url.method.posts() {
            self.shown.push((Stream::Out, format!("{text}\n\n")));
        } else if shows && !settings.quiet {
            self.shown.push((Stream::Out, format!("{text}\n")));
        }
        bytes
    }

    /// Handles the result of its request, and decides the next turn.
    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        let sample = answer.sample;
        if sample.outcome == Outcome::Unanswered {
            return Turn::Leaves;
        }
        self.battle.state().tally.heard += 1;
        let shown = std::mem::take(&mut self.shown);
        if sample.sent > Nanos::ZERO {
            self.battle.state().said.extend(shown);
        }
        if sample.bytes_head == 0 {
            self.battle.state().tally.hidden.without_reply += 1;
            return self.heard_nothing(sample.outcome);
        }
        let head = Head::read(answer.head);
        let settings = &self.battle.settings;
        if settings.cookies {
            for line in head.all("set-cookie") {
                self.jar.keep(line, &self.url.host);
            }
        }
        self.show(answer, &head);
        let status = status(answer);
        if status == 418 {
            return self.heard_no_http(answer);
        }
        let refresh = self.take_apart(answer, &head);
        if !settings.zero_ok && sample.bytes_body == 0 {
            self.battle.state().tally.hidden.without_reply += 1;
            return self.end_of_chain(false);
        }
        self.count(answer, &head);
        match status {
            200 if refresh.as_ref().is_some_and(|url| url.len() > 2) => {
                let next = self.url.resolve(&refresh.unwrap_or_default());
                self.follow(Link::Redirect, next)
            }
            301..=303 | 307 => match head.last("location").filter(|_| settings.follow) {
                Some(location) => {
                    let next = self.redirected(location, status == 307);
                    self.follow(Link::Redirect, next)
                }
                None => self.end_of_chain(true),
            },
            401 => self.challenged(&head, Link::Credentials),
            407 => self.challenged(&head, Link::ProxyCredentials),
            _ => self.end_of_chain(!is_server_error(status)),
        }
    }

    /// Handles a reply without a head.
    fn heard_nothing(&mut self, outcome: Outcome) -> Turn {
        let why = match outcome {
            Outcome::ConnectRefused => "unable to connect sock.c:282: Connection refused",
            Outcome::ConnectTimeout | Outcome::TlsTimeout => {
                "unable to connect sock.c:282: Connection timed out"
            }
            Outcome::ConnectFailed => "unable to connect sock.c:282: Network is unreachable",
            Outcome::Tls => {
                let text = notify(NotifyLevel::Error, "Failed to make an SSL connection: 5");
                self.battle.say(Stream::Err, text);
                return self.end_of_chain(false);
            }
            Outcome::FdExhausted => "unable to connect sock.c:282: Too many open files",
            Outcome::PortExhausted => {
                "unable to connect sock.c:282: Cannot assign requested address"
            }
            _ => return self.end_of_chain(false),
        };
        let text = notify(NotifyLevel::Error, &format!("socket: {why}"));
        self.battle.say(Stream::Err, text);
        self.end_of_chain(false)
    }

    /// siege's own status 418 for a reply that is not HTTP: a failed transaction.
    fn heard_no_http(&mut self, answer: &Answer<'_>) -> Turn {
        let settings = &self.battle.settings;
        let seconds =
            super::figures::seconds(settings.style, answer.sample.due, answer.sample.done);
        let mut state = self.battle.state();
        state.tally.hits += 1;
        state.tally.time += seconds;
        state.tally.hidden.client_errors += 1;
        drop(state);
        self.line(418, 0, seconds, "HTTP/1.1");
        self.end_of_chain(false)
    }

    /// What -g, -D and -p print about a reply.
    fn show(&self, answer: &Answer<'_>, head: &Head<'_>) {
        let settings = &self.battle.settings;
        let is_empty = head.last("content-length") == Some("0");
        if settings.get && !settings.quiet || settings.debug {
            let end = if is_empty { "" } else { "\n" };
            let text = String::from_utf8_lossy(answer.head);
            self.battle.say(Stream::Out, format!("{text}{end}"));
        }
        if settings.print {
            self.battle.say(Stream::Out, page(answer.body, head) + "\n");
        }
    }

    /// Finds the parts of a page; returns the target of a refresh.
    fn take_apart(&mut self, answer: &Answer<'_>, head: &Head<'_>) -> Option<String> {
        let kind = head.last("content-type").unwrap_or_default();
        let is_page = kind
            .split(';')
            .next()
            .is_some_and(|kind| kind.trim_end().eq_ignore_ascii_case("text/html"));
        if !self.battle.settings.parser || !is_page || status(answer) >= 300 {
            return None;
        }
        // With framing in it, the body is not decompressed.
        let page = match self.shows_framing(head) {
            true => String::from_utf8_lossy(answer.body).into_owned(),
            false => page(answer.body, head),
        };
        let n_left_out = self.parts.find(&page, &self.url);
        self.battle.state().tally.hidden.left_out += n_left_out;
        self.parts.take_redirect().map(|url| url.whole)
    }

    /// Whether chunk framing is read as part of the reply's body.
    fn shows_framing(&self, head: &Head<'_>) -> bool {
        !self.battle.settings.chunked && head.is_chunked()
    }

    fn count(&self, answer: &Answer<'_>, head: &Head<'_>) {
        let sample = answer.sample;
        let mut state = self.battle.state();
        let tally = &mut state.tally;
        let status = status(answer);
        let bytes = match self.shows_framing(head) {
            true => sample.bytes_read.saturating_sub(sample.bytes_head.into()),
            false => sample.bytes_body,
        };
        let seconds = tally.add(self.battle.settings.style, sample, status, bytes);
        let is_whole = matches!(sample.outcome, Outcome::Ok | Outcome::UnexpectedStatus);
        tally.hidden.cut += u64::from(!is_whole);
        tally.hidden.further += u64::from(self.is_part || !self.chain.is_empty());
        drop(state);
        self.line(status, bytes, seconds, head.protocol());
    }

    fn line(&self, status: u16, bytes: u64, seconds: f64, protocol: &str) {
        let settings = &self.battle.settings;
        if !settings.verbose || settings.get || settings.print || settings.debug {
            return;
        }
        let reply = Reply { user: self.id, url: &self.url, protocol, status, bytes, seconds };
        let line = lines::reply(settings, &reply, &*self.battle.clock);
        self.battle.say(Stream::Out, line);
    }

    fn redirected(&self, location: &str, repeats: bool) -> Url {
        let mut next = self.url.resolve(location);
        if next.host.is_empty() {
            next.host.clone_from(&self.url.host);
        }
        if repeats {
            next.method = self.url.method;
            next.body.clone_from(&self.url.body);
            next.content_type.clone_from(&self.url.content_type);
        }
        next
    }

    /// Repeats a request with credentials, as often as allowed.
    fn challenged(&mut self, head: &Head<'_>, link: Link) -> Turn {
        let settings = &self.battle.settings;
        let is_proxy = link == Link::ProxyCredentials;
        let (name, asker, bids) = match is_proxy {
            true => ("proxy-authenticate", &mut self.proxy, &mut self.proxy_bids),
            false => ("www-authenticate", &mut self.server, &mut self.server_bids),
        };
        *bids += 1;
        if *bids >= settings.attempts {
            return self.end_of_chain(true);
        }
        let challenge = Challenge::read(head.all(name));
        let realm = challenge.realm.clone().unwrap_or_else(|| "(null)".to_owned());
        let unknown = challenge.unknown_algorithm().map(str::to_owned);
        let logins = if is_proxy { &settings.proxy_logins } else { &settings.logins };
        if !asker.answer(logins, challenge) {
            let (whose, kind, directive) = match is_proxy {
                true => ("a proxy", " HTTP", "proxy-login"),
                false => ("an", "", "login"),
            };
            let text = format!(
                "ERROR: Unable to respond to {whose} authorization challenge\n       in the \
                 following{kind} realm: '{realm}'\n       Did you set {directive} credentials in \
                 the conf file?\n"
            );
            self.battle.say(Stream::Err, text);
            return self.end_of_chain(false);
        }
        if let Some(name) = unknown {
            let text = format!(
                "invalid call to __get_h_a1 algorithm is [{name}]\nerror calling __get_h_a1\n"
            );
            self.battle.say(Stream::Err, text);
        }
        self.chain.push(link);
        Turn::after(Nanos::ZERO)
    }

    fn follow(&mut self, link: Link, url: Url) -> Turn {
        self.chain.push(link);
        self.url = url;
        Turn::after(Nanos::ZERO)
    }

    /// The last request of a chain has ended: then all of the chain counts, or none.
    fn end_of_chain(&mut self, is_ok: bool) -> Turn {
        self.close_chain(is_ok);
        self.go_on()
    }

    fn close_chain(&mut self, is_ok: bool) {
        let mut state = self.battle.state();
        if is_ok {
            state.tally.hits += 1 + self.chain.len() as u64;
        } else {
            let repeated = self.chain.iter().filter(|link| **link == Link::Credentials).count();
            for _ in 0..repeated {
                state.said.push((Stream::Err, "ERROR from http_request\n".to_owned()));
            }
            // A failed login is not counted.
            state.tally.failed += u64::from(self.is_walking);
        }
        self.chain.clear();
    }

    /// Continues with the next request.
    fn go_on(&mut self) -> Turn {
        let mut pause = Nanos::ZERO;
        let Some(url) = self.next(&mut pause) else { return Turn::Leaves };
        self.url = url;
        let paused = &mut self.battle.state().tally.hidden.paused;
        *paused = paused.saturating_add(pause);
        Turn::after(pause)
    }

    /// A part of the page, or, after a pause, the next URL.
    fn next(&mut self, pause: &mut Nanos) -> Option<Url> {
        let settings = &self.battle.settings;
        if self.is_walking {
            while let Some(url) = self.parts.pop() {
                let host = url.host.to_lowercase();
                let is_left_out = |part: &String| host.contains(&part.to_lowercase());
                let is_known = matches!(url.scheme, Scheme::Http | Scheme::Https);
                if is_known && !settings.no_follow.iter().any(is_left_out) {
                    (self.server_bids, self.is_part) = (0, true);
                    return Some(url);
                }
            }
            *pause = self.pause();
            let failed = self.battle.state().tally.failed;
            let settings = &self.battle.settings;
            if settings.failures > 0 && failed >= settings.failures.unsigned_abs().into() {
                return None;
            }
            self.done += 1;
            self.at += 1;
        }
        (self.is_walking, self.is_part, self.server_bids) = (true, false, 0);
        let n = self.battle.urls.len();
        let settings = &self.battle.settings;
        if settings.limit(n).is_some_and(|limit| self.done >= limit) {
            return None;
        }
        if settings.internet {
            // Rounded and not truncated, as in siege: the first URL has half a share, the last one and a half.
            self.at = ((self.random.random::<f64>() * n as f64 + 0.5) as usize).min(n - 1);
        } else if self.at >= n {
            self.at = 0;
            if settings.expire {
                self.jar.clear();
            }
        }
        Some(self.battle.urls[self.at].clone())
    }

    /// The origin of its URL; prints a message if there is none.
    fn make_ready(&mut self) -> Option<Origin> {
        if matches!(self.url.scheme, Scheme::Unsupported | Scheme::Ftp) {
            if self.battle.settings.verbose {
                let text = "UNSPPRTD 501   0.00 secs:       0 bytes ==> PROTOCOL NOT SUPPORTED BY \
                    SIEGE\n";
                self.battle.say(Stream::Err, notify(NotifyLevel::Error, text));
            }
            return None;
        }
        match place(self.battle, &self.url) {
            Ok(origin) => Some(origin),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                let (_, port) = peer(self.battle, &self.url);
                let text = format!("invalid port number {port} in sock.c:142");
                self.battle.say(Stream::Err, notify(NotifyLevel::Error, &text));
                None
            }
            Err(error) => {
                let text = "Address resolution failed at sock.c:158 with the following error:";
                let text = notify(NotifyLevel::Error, text)
                    + &notify(NotifyLevel::Error, &error.to_string());
                self.battle.say(Stream::Err, text);
                None
            }
        }
    }

    /// From 1 second in whole seconds, rounded; below in microseconds.
    fn pause(&mut self) -> Nanos {
        let delay = self.battle.settings.delay;
        if delay >= 1.0 {
            Nanos::from_secs_f64((self.random.random::<f64>() * delay + 0.5).floor())
        } else if delay >= 0.001 {
            // Below 1 s.
            Nanos::from_micros((self.random.random::<f64>() * delay * 1e6) as u64)
        } else {
            Nanos::ZERO
        }
    }
}

/// The status of a reply, even if it is cut off after its head; without a status it counts as good.
fn status(answer: &Answer<'_>) -> u16 {
    if answer.sample.status == 0 { 200 } else { answer.sample.status }
}
