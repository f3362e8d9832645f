//! A user's cookies. Owns what of a Set-Cookie is kept and when it goes back; must not know requests.
//! Start reading at [`Jar`].
//!
//! siege looks at the end of the host's name only: not at paths, nor at `Secure`. It keeps cookies that
//! outlive the run in a file; here they end with the run, and so do their dates.

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
    /// Keeps the value of a Set-Cookie.
    pub(super) fn keep(&mut self, line: &str, host: &str) {
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
        // Of 127.0.0.1 that is .0.0.1, of a.b.c .b.c, of localhost itself.
        let domain = domain.unwrap_or_else(|| host[host.find('.').unwrap_or(0)..].to_owned());
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        let same = |cookie: &&mut Cookie| {
            cookie.name.eq_ignore_ascii_case(&name) && is_of(&cookie.domain, host)
        };
        match self.0.iter_mut().find(same) {
            Some(cookie) => cookie.value = value,
            None => self.0.push(Cookie { name, value, domain }),
        }
    }

    /// The value of the field for a request to a host.
    pub(super) fn value(&self, host: &str) -> Option<String> {
        let of_it = self.0.iter().filter(|cookie| is_of(&cookie.domain, host));
        let pairs: Vec<String> =
            of_it.map(|Cookie { name, value, .. }| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join(";"))
    }

    /// Forgets them all.
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
}
