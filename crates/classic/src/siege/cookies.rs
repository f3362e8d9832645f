//! A user's cookies. Owns which parts of a Set-Cookie are kept and when they are sent back. Start reading at [`Jar`].
//!
//! siege compares only the end of the host's name: not paths, nor `Secure`. It saves cookies that outlive the run in a
//! file; here they end with the run, and their dates are ignored.

/// Longest value of a field; the rest is cut off, as in siege.
const VALUE_MAX: usize = 4096;

/// Most cookies of a user over all hosts, and most bytes of one: the numbers that RFC 6265, 6.1 asks of browsers. siege
/// keeps all cookies.
const COOKIES_MAX: usize = 3000;
const COOKIE_MAX: usize = 4096;

/// The cookies of one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Jar(Vec<Cookie>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    domain: String,
}

impl Jar {
    /// Keeps the value of a Set-Cookie, if there is room.
    pub(super) fn keep(&mut self, line: &str, host: &str) {
        if line.len() > COOKIE_MAX {
            return;
        }
        let mut parts = line.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|part| part.split_once('=')) else {
            return;
        };
        let mut domain = None;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            if name.trim().eq_ignore_ascii_case("domain") {
                domain = Some(value.trim().to_owned());
            }
        }
        // For 127.0.0.1 that is .0.0.1, for a.b.c .b.c, for localhost itself.
        let domain = domain.unwrap_or_else(|| host[host.find('.').unwrap_or(0)..].to_owned());
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let same = |cookie: &&mut Cookie| {
            cookie.name.eq_ignore_ascii_case(&name) && is_of(&cookie.domain, host)
        };
        let is_full = self.0.len() == COOKIES_MAX;
        match self.0.iter_mut().find(same) {
            Some(cookie) => cookie.value = value,
            None if is_full => {}
            None => self.0.push(Cookie { name, value, domain }),
        }
    }

    /// The value of the field for a request to a host.
    pub(super) fn value(&self, host: &str) -> Option<String> {
        let mut all = String::new();
        for Cookie { name, value, .. } in self.0.iter().filter(|c| is_of(&c.domain, host)) {
            if !all.is_empty() {
                all.push(';');
            }
            all += &format!("{name}={value}");
            if all.len() > VALUE_MAX {
                all.truncate(all.floor_char_boundary(VALUE_MAX));
                break;
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// Removes them all.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn is_of(domain: &str, host: &str) -> bool {
    host.ends_with(domain.strip_prefix('.').unwrap_or(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_go_back_to_hosts_that_end_alike() {
        let mut jar = Jar::default();
        jar.keep("a=1; path=/x; Secure", "www.one.test");
        jar.keep("b=2; domain=two.test", "www.two.test");
        jar.keep("c", "www.one.test");
        assert_eq!(jar.value("img.one.test").as_deref(), Some("a=1"), "the quirk");
        assert_eq!(jar.value("two.test").as_deref(), Some("b=2"));
        assert_eq!(jar.value("three.test"), None);
        jar.keep("A=3", "www.one.test");
        jar.keep("d=4", "www.one.test");
        assert_eq!(jar.value("www.one.test").as_deref(), Some("a=3;d=4"));
        jar.clear();
        assert_eq!(jar.value("www.one.test"), None);
    }

    #[test]
    fn a_flood_of_cookies_has_bounds() {
        let mut jar = Jar::default();
        for index in 0..COOKIES_MAX + 5 {
            jar.keep(&format!("c{index}={}", "\u{e9}".repeat(500)), "h.test");
        }
        let value = jar.value("h.test").unwrap();
        assert!((VALUE_MAX - 1..=VALUE_MAX).contains(&value.len()), "{}", value.len());
        assert_eq!(jar.0.len(), COOKIES_MAX);
        jar.keep(&format!("c0={}", "x".repeat(COOKIE_MAX)), "h.test");
        jar.keep("c0=1", "h.test");
        assert!(jar.value("h.test").unwrap().starts_with("c0=1;c1="));
    }
}
