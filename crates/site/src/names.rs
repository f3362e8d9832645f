//! Names of hosts. Owns how a Host is compared with what the configuration names. A name only ever chooses
//! from a table, and is never part of a path (CVE-2014-2324). Start reading at [`Names::find`].

use std::collections::HashMap;

/// Values by the names of hosts.
#[derive(Debug)]
pub(crate) struct Names<T> {
    exact: HashMap<String, T>,
    /// What follows a star, its dot included; the longest first.
    beneath: Vec<(String, T)>,
}

impl<T: Copy> Names<T> {
    /// `*.example.org` matches all names beneath it, at any depth. Of two equal names the first counts.
    pub(crate) fn new<'n>(names: impl Iterator<Item = (&'n str, T)>) -> Self {
        let (mut exact, mut beneath) = (HashMap::new(), Vec::new());
        for (name, what) in names {
            let name = host_name(name);
            match name.strip_prefix('*') {
                Some(end) => beneath.push((end.to_owned(), what)),
                None => {
                    exact.entry(name).or_insert(what);
                }
            }
        }
        beneath.sort_by_key(|(end, _)| std::cmp::Reverse(end.len()));
        Self { exact, beneath }
    }

    /// The value for a name in the form of [`host_name`]: an exact match first, then the longest.
    pub(crate) fn find(&self, name: &str) -> Option<T> {
        self.exact.get(name).copied().or_else(|| {
            let is_beneath = |end: &str| name.len() > end.len() && name.ends_with(end);
            self.beneath.iter().find(|(end, _)| is_beneath(end)).map(|(_, what)| *what)
        })
    }
}

/// The name in a Host, without its port, in lower case, and without a final dot.
pub(crate) fn host_name(host: &str) -> String {
    // Colons in brackets are an address's (RFC 3986, 3.2.2).
    let name = match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') =>
        {
            name
        }
        _ => host,
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether a text can name a host.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    match !rest.is_empty() && rest.bytes().all(is_fine) && host_name(rest).len() >= rest.len() - 1 {
        true => Ok(()),
        false => Err(format!(
            "`{name}` is not a valid host name: write it without port and in ASCII (xn--...), as in example.org or \
             *.example.org"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_goes_before_the_longest_star() {
        let names = ["a.org", "*.a.org", "*.b.a.org", "[::1]", "A.ORG"];
        let names = Names::new(names.into_iter().zip(0..));
        let cases = [
            ("a.org", Some(0)),
            ("A.Org.:8080", Some(0)),
            ("x.a.org", Some(1)),
            ("y.x.a.org", Some(1)),
            ("c.b.a.org:1", Some(2)),
            (".a.org", None),
            ("xa.org", None),
            ("[::1]:80", Some(3)),
            ("[::1]", Some(3)),
            ("../../etc", None),
            ("", None),
        ];
        for (host, expected) in cases {
            assert_eq!(names.find(&host_name(host)), expected, "{host}");
        }
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for name in ["", "*", "a/b", "..\\", "a.org:80", "*.*.org", "a b"] {
            assert!(check(name).is_err(), "{name}");
        }
        for name in ["a.org", "*.a.org", "[::1]", "127.0.0.1", "a_b.org", "a.org."] {
            assert!(check(name).is_ok(), "{name}");
        }
    }
}
