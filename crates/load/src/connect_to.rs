//! `HOST:PORT:ADDR:PORT`: connect elsewhere than the URL says, without changing what is asked. Owns
//! its syntax, which is that of curl's --connect-to. Start reading at [`ConnectTo`].

use std::str::FromStr;

use crate::url::UrlTarget;

/// A rule. An empty host or port on the left matches any; on the right it means no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    to_host: Option<String>,
    to_port: Option<u16>,
}

/// Why a rule was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not HOST:PORT:ADDR:PORT: write it as in example.org:80:127.0.0.1:8080; each part may be \
     empty, an IPv6 address stands in brackets (--connect-to)"
)]
pub struct ConnectToError(String);

impl ConnectTo {
    /// Name and port to connect to instead, if the rule applies.
    pub(crate) fn apply(&self, target: &UrlTarget) -> Option<(String, u16)> {
        let is_host = self.host.as_ref().is_none_or(|host| host.eq_ignore_ascii_case(&target.name));
        let is_port = self.port.is_none_or(|port| port == target.port);
        (is_host && is_port).then(|| {
            let name = self.to_host.clone().unwrap_or_else(|| target.name.clone());
            (name, self.to_port.unwrap_or(target.port))
        })
    }
}

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(typed: &str) -> Result<Self, ConnectToError> {
        let refused = || ConnectToError(typed.to_owned());
        let mut rest = typed;
        let mut parts = Vec::new();
        for index in 0..4 {
            let (part, after) = next_part(rest).ok_or_else(refused)?;
            parts.push(part);
            rest = match (index, after.strip_prefix(':')) {
                (0..3, Some(rest)) => rest,
                (3, None) if after.is_empty() => after,
                _ => return Err(refused()),
            };
        }
        let host = |part: &str| (!part.is_empty()).then(|| part.to_owned());
        let port = |part: &str| match part {
            "" => Ok(None),
            digits => {
                digits.parse().ok().filter(|&port: &u16| port > 0).map(Some).ok_or_else(refused)
            }
        };
        Ok(Self {
            host: host(parts[0]),
            port: port(parts[1])?,
            to_host: host(parts[2]),
            to_port: port(parts[3])?,
        })
    }
}

/// A part, without brackets, and what follows it.
fn next_part(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']'),
        None => Some(text.split_at(text.find(':').unwrap_or(text.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url;

    fn leads(rule: &str, target: &str) -> Option<(String, u16)> {
        rule.parse::<ConnectTo>().unwrap().apply(&url::parse(target).unwrap())
    }

    #[test]
    fn a_rule_leads_elsewhere_where_it_applies() {
        let to = |name: &str, port| Some((name.to_owned(), port));
        let url = "http://example.org/";
        assert_eq!(leads("example.org:80:127.0.0.1:8080", url), to("127.0.0.1", 8080));
        assert_eq!(leads("EXAMPLE.org::[::1]:", url), to("::1", 80));
        assert_eq!(leads("::127.0.0.1:", url), to("127.0.0.1", 80));
        assert_eq!(leads("other.org:80:127.0.0.1:8080", url), None);
        assert_eq!(leads("example.org:81:127.0.0.1:8080", url), None);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for typed in ["", "a:b", "a:80:b", "a:80:b:0", "a:80:b:80:c", "a:80:[::1:80", "a:x:b:80"] {
            assert!(typed.parse::<ConnectTo>().is_err(), "{typed}");
        }
    }
}
