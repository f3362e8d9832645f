//! Redirects that are followed: users make the plan's own requests, and each goes on where its reply says, up to as
//! many times as the plan allows. Owns the chain of one request. Start reading at [`Followers::request_ended`].
//!
//! A request and all requests that it is redirected to count as one: due and sent are those of the first, done and
//! the status those of the last reply. The scenario exists only if the plan asks for it, so that a load without
//! `--follow` pays nothing.
//!
//! Cost of a request: two copies of its bytes. Cost of a redirect: its head is kept and searched, and the next
//! request is written into memory that its user keeps. A new host is looked up once for all threads, and its thread
//! waits for that. Names are kept, whether they were found or not ([`HOSTS_MAX`]).

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use rand::SeedableRng as _;
use rand_pcg::Pcg64Mcg;
use record::{
    Answer, Asking, LoadPlan, Origin, Outcome, Scenario, Seats, ServerAddress, Turn, Users, Wants,
    is_redirect,
};

use crate::connect_to::ConnectTo;
use crate::cookies::Jar;
use crate::location::{self, Hop};
use crate::picker::{self, Picker};
use crate::prepared::{Fill, Prepared};
use crate::shares::{ThreadShare, thread_shares};
use crate::url::{self, UrlTarget};

/// Most hosts that are looked up, and most origins of a thread in addition to the plan's. Redirects to further hosts
/// are not followed, so that a server that names new hosts for ever fills no memory.
const HOSTS_MAX: usize = 256;

/// Follows the redirects of a plan.
pub(crate) struct Follow<'a> {
    plan: &'a LoadPlan,
    connect_to: Vec<ConnectTo>,
    hosts: Mutex<HashMap<(String, u16), Option<SocketAddr>>>,
}

impl<'a> Follow<'a> {
    pub(crate) fn new(plan: &'a LoadPlan) -> Self {
        let rule = |typed: &String| typed.parse().expect("the plan's rules were read before");
        let connect_to = plan.connect_to.iter().map(rule).collect();
        Self { plan, connect_to, hosts: Mutex::default() }
    }

    /// The address that a redirect leads to; `None` if it cannot be found.
    fn place(&self, target: &UrlTarget) -> Option<ServerAddress> {
        if let Some(proxy) = &self.plan.proxy {
            return Some(ServerAddress::Inet(proxy.addr));
        }
        if let ServerAddress::Unix(path) = &self.plan.origin().place {
            return Some(ServerAddress::Unix(path.clone()));
        }
        let elsewhere = self.connect_to.iter().find_map(|rule| rule.apply(target));
        let (name, port) = elsewhere.unwrap_or_else(|| (target.name.clone(), target.port));
        let from = self.plan.sources.first();
        self.address(name, port, from).map(ServerAddress::Inet)
    }

    fn address(&self, name: String, port: u16, from: Option<&IpAddr>) -> Option<SocketAddr> {
        let mut hosts = self.hosts.lock().expect("no lookup panics");
        let key = (name, port);
        if let Some(known) = hosts.get(&key) {
            return *known;
        }
        if hosts.len() >= HOSTS_MAX {
            return None;
        }
        let found = url::resolve(&key.0, port, from).ok();
        let found = found.filter(|addr| from.is_none_or(|from| from.is_ipv4() == addr.is_ipv4()));
        hosts.insert(key, found);
        found
    }
}

impl Scenario for Follow<'_> {
    fn users(&self, seats: Seats) -> Box<dyn Users + '_> {
        let plan = self.plan;
        let mut shares = thread_shares(plan).into_iter();
        let share = shares.find(|share| share.thread == seats.thread).expect("a seat has a share");
        let turn = picker::ThreadIndex { index: share.thread.into(), of: share.threads.into() };
        let prepared =
            |request| Prepared::new(plan, request).expect("rendered when it was planned");
        let known = |origin: &Origin| {
            let scheme = if origin.tls_name.is_some() { "https" } else { "http" };
            url::parse(&format!("{scheme}://{}", origin.host)).expect("it was made of a URL")
        };
        Box::new(Followers {
            follow: self,
            share,
            prepared: plan.requests.iter().map(prepared).collect(),
            picker: Picker::new(plan, turn),
            random: Pcg64Mcg::seed_from_u64(plan.seed ^ (u64::from(share.turn.first) << 32)),
            n_begun: 0,
            origins: plan.origins.iter().map(known).collect(),
            added: Vec::new(),
            users: (0..seats.n).map(|_| User::default()).collect(),
            first: seats.first,
            scratch: Vec::new(),
        })
    }
}

/// The users of one thread.
struct Followers<'a> {
    follow: &'a Follow<'a>,
    share: ThreadShare,
    prepared: Vec<Prepared>,
    picker: Picker,
    random: Pcg64Mcg,
    n_begun: u64,
    /// By number: those of the plan, and those that redirects led to.
    origins: Vec<UrlTarget>,
    /// The newest origins, which the worker learns with the next request.
    added: Vec<Origin>,
    users: Vec<User>,
    first: u32,
    scratch: Vec<u8>,
}

/// One user, and its request.
#[derive(Default)]
struct User {
    /// Index in the plan.
    request: u32,
    /// Its current or last request, without cookies that were set on it.
    bytes: Vec<u8>,
    /// Where: number of the origin, and target within it.
    origin: u32,
    target: String,
    /// Redirects that were followed for this request.
    n_followed: u32,
    /// Whether its next request follows a redirect.
    goes_on: bool,
    /// Cookies, by origin.
    jars: Vec<(u32, Jar)>,
}

impl Users for Followers<'_> {
    fn wants(&self) -> Wants {
        Wants { heads: true, ..Wants::default() }
    }

    fn ask(&mut self, user: u32, asking: &mut Asking) {
        let index = (user - self.first) as usize;
        if !std::mem::take(&mut self.users[index].goes_on) {
            self.begin(index);
        }
        for origin in self.added.drain(..) {
            asking.add_origin(origin);
        }
        asking.origin = self.carrier_of(self.users[index].origin);
        let user = &self.users[index];
        let jar = user.jars.iter().find(|(origin, _)| *origin == user.origin);
        match jar.and_then(|(_, jar)| jar.value()) {
            None => asking.request(&user.bytes, user.request),
            Some(cookies) => {
                self.scratch.clear();
                location::with_cookies(&user.bytes, cookies, &mut self.scratch);
                asking.request(&self.scratch, user.request);
            }
        }
    }

    fn request_ended(&mut self, answer: &Answer<'_>) -> Turn {
        let after = Turn::after(units::Nanos::ZERO);
        let index = (answer.sample.conn - self.first) as usize;
        let status = answer.sample.status;
        // A redirect that broke off counts as an error.
        if !answer.sample.outcome.is_complete() {
            return after;
        }
        if self.follow.plan.cookies {
            self.keep_cookies(index, answer.head);
        }
        let Some(location) =
            location::field(answer.head, "location").filter(|_| is_redirect(status))
        else {
            return after;
        };
        if self.users[index].n_followed >= self.follow.plan.follow {
            return Turn::Fails(Outcome::TooManyRedirects);
        }
        match self.go_on(index, status, location) {
            Some(()) => Turn::GoesOn,
            None => Turn::Fails(Outcome::BadRedirect),
        }
    }
}

impl Followers<'_> {
    /// The next request of the plan.
    fn begin(&mut self, index: usize) {
        let plan = self.follow.plan;
        let request = self.picker.next();
        let user = &mut self.users[index];
        (user.request, user.n_followed) = (request, 0);
        user.origin = plan.requests[request as usize].origin;
        user.bytes.clear();
        let mut fill = Fill {
            seq: self.share.turn.index_of(self.n_begun),
            random: &mut self.random,
            columns: &plan.columns,
            cookies: None,
        };
        self.n_begun += 1;
        self.prepared[request as usize].render(&mut fill, &mut user.bytes);
        user.target.clear();
        user.target.push_str(target_of(&user.bytes));
    }

    /// As [`LoadPlan::carrier_of`], of origins that redirects led to as well.
    fn carrier_of(&self, origin: u32) -> u32 {
        let is_shared = self.follow.plan.proxy.is_some() && !self.origins[origin as usize].is_tls;
        let first = self.origins.iter().position(|known| !known.is_tls).filter(|_| is_shared);
        first.map_or(origin, |index| index as u32)
    }

    fn keep_cookies(&mut self, index: usize, head: &[u8]) {
        let user = &mut self.users[index];
        for line in location::fields(head, "set-cookie") {
            let at = user.jars.iter().position(|(origin, _)| *origin == user.origin);
            let at = at.unwrap_or_else(|| {
                user.jars.push((user.origin, Jar::default()));
                user.jars.len() - 1
            });
            user.jars[at].1.take(line);
        }
    }

    /// Makes the request that a redirect asks for; `None` if the redirect leads nowhere.
    fn go_on(&mut self, index: usize, status: u16, location: &[u8]) -> Option<()> {
        let plan = self.follow.plan;
        let user = &mut self.users[index];
        let here = &self.origins[user.origin as usize];
        let base = UrlTarget { target: std::mem::take(&mut user.target), ..here.clone() };
        let next = location::resolve(&base, location)?;
        let is_same = location::is_same_origin(here, &next);
        let is_next = |known: &UrlTarget| location::is_same_origin(known, &next);
        if !is_same {
            user.origin = match self.origins.iter().position(is_next) {
                Some(known) => known as u32,
                None if self.origins.len() >= plan.origins.len() + HOSTS_MAX => return None,
                None => {
                    let place = self.follow.place(&next)?;
                    let tls_name = next.is_tls.then(|| next.name.clone());
                    self.added.push(Origin { place, host: next.host.clone(), tls_name });
                    self.origins.push(UrlTarget { target: String::new(), ..next.clone() });
                    self.origins.len() as u32 - 1
                }
            };
        }
        let proxy = plan.proxy.as_ref().filter(|_| !next.is_tls);
        let whole = proxy.map(|_| format!("http://{}{}", next.host, next.target));
        let hop = Hop {
            status,
            target: whole.as_deref().unwrap_or(&next.target),
            host: (!is_same).then_some(&*next.host),
            proxy_authorization: proxy.and_then(|proxy| proxy.authorization.as_deref()),
        };
        self.scratch.clear();
        location::next_request(&user.bytes, &hop, &mut self.scratch);
        std::mem::swap(&mut user.bytes, &mut self.scratch);
        user.target = next.target;
        user.n_followed += 1;
        user.goes_on = true;
        Some(())
    }
}

/// Path and query of a request as it is sent.
fn target_of(request: &[u8]) -> &str {
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let target = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let target = std::str::from_utf8(target).unwrap_or("/");
    match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => &rest[rest.find('/').unwrap_or(0)..],
        _ => target,
    }
}
