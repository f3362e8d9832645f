//! A slow, simple reader of requests, as a reference for the real one. Must not share code with the
//! crate. Start reading at [`read_requests`].

use crate::reply_oracle::extensions;

/// A request as the oracle reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OracleRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) host: Option<String>,
    pub(crate) keep_alive: bool,
    pub(crate) body: Vec<u8>,
}

/// One character per byte, so that string functions can be used.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
    text.chars().map(|c| c as u8).collect()
}

struct Head<'a> {
    start_line: &'a str,
    fields: Vec<(String, String)>,
    rest: &'a str,
}

impl Head<'_> {
    fn values(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    }

    fn keeps_alive(&self, version: &str) -> bool {
        let all = self.values("connection").join(",").to_ascii_lowercase();
        let says = |wanted| all.split(',').any(|token| token.trim_matches([' ', '\t']) == wanted);
        !says("close") && (version == "HTTP/1.1" || says("keep-alive"))
    }

    /// `Some(None)`: chunked; `Some(Some(n))`: length; `Err`: rejected; `Ok(None)`: neither.
    fn framing(&self, version: &str) -> Result<Option<Option<u64>>, ()> {
        let codings = self.values("transfer-encoding");
        let lengths = self.values("content-length").join(",");
        let has_length = !self.values("content-length").is_empty();
        match (codings.as_slice(), has_length) {
            ([], false) => Ok(None),
            ([], true) => {
                let mut numbers = Vec::new();
                for text in lengths.split(',').map(|text| text.trim_matches([' ', '\t'])) {
                    if text.is_empty() || text.contains(|c: char| !c.is_ascii_digit()) {
                        return Err(());
                    }
                    numbers.push(text.parse::<u64>().map_err(|_| ())?);
                }
                if numbers.len() == 1 { Ok(Some(Some(numbers[0]))) } else { Err(()) }
            }
            ([one], false) if version == "HTTP/1.1" && one.eq_ignore_ascii_case("chunked") => {
                Ok(Some(None))
            }
            _ => Err(()),
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

fn is_value(text: &str) -> bool {
    text.chars().all(|c| c == '\t' || (c >= ' ' && c != '\x7f'))
}

fn read_head(text: &str) -> Option<Head<'_>> {
    let end = text.find("\r\n\r\n")?;
    let mut lines = text[..end].split("\r\n");
    let start_line = lines.next()?;
    if text[..end].replace("\r\n", "").contains(['\r', '\n']) {
        return None;
    }
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if !is_token(name) || !is_value(value) {
            return None;
        }
        let name = name.to_ascii_lowercase();
        if ["content_length", "transfer_encoding"].contains(&&*name) {
            return None;
        }
        fields.push((name, value.trim_matches([' ', '\t']).to_owned()));
    }
    let is_small = fields.len() <= 100;
    is_small.then_some(Head { start_line, fields, rest: &text[end + 4..] })
}

/// The body and what follows a chunked body, or `None` if it is invalid or incomplete.
fn read_chunks(text: &str) -> Option<(String, &str)> {
    let mut body = String::new();
    let mut rest = text;
    loop {
        let (line, after) = rest.split_once("\r\n")?;
        let digits: String = line.chars().take_while(char::is_ascii_hexdigit).collect();
        let extension = &line[digits.len()..];
        let is_extension = extensions(extension.as_bytes()) == (extension.len(), true);
        if digits.is_empty() || digits.len() > 16 || !is_extension {
            return None;
        }
        let size = u64::from_str_radix(&digits, 16).ok()?;
        if size == 0 {
            rest = after;
            break;
        }
        let taken: String = after.chars().take(usize::try_from(size).ok()?).collect();
        if taken.chars().count() as u64 != size {
            return None;
        }
        rest = after[taken.len()..].strip_prefix("\r\n")?;
        body += &taken;
    }
    loop {
        let (line, after) = rest.split_once("\r\n")?;
        rest = after;
        if line.is_empty() {
            return Some((body, rest));
        }
        let (name, value) = line.split_once(':')?;
        if !is_token(name) || !is_value(value) {
            return None;
        }
    }
}

fn take(text: &str, count: u64) -> Option<(String, &str)> {
    let taken: String = text.chars().take(usize::try_from(count).ok()?).collect();
    (taken.chars().count() as u64 == count).then(|| (taken.clone(), &text[taken.len()..]))
}

/// The complete requests in `bytes`, and whether nothing was left over.
pub(crate) fn read_requests(bytes: &[u8]) -> (Vec<OracleRequest>, bool) {
    let text = latin1(bytes);
    let mut rest = text.as_str();
    let mut requests = Vec::new();
    while let Some((request, after)) = read_request(rest) {
        requests.push(request);
        rest = after;
    }
    (requests, rest.is_empty())
}

fn read_request(text: &str) -> Option<(OracleRequest, &str)> {
    let text = text.strip_prefix("\r\n").unwrap_or(text);
    let head = read_head(text)?;
    let words: Vec<&str> = head.start_line.split(' ').collect();
    let [method, target, version] = words[..] else { return None };
    let target_is_valid = target.chars().all(|c| ('!'..='~').contains(&c) && c != '#');
    if !is_token(method) || method == "CONNECT" || !target_is_valid {
        return None;
    }
    let version = match version.strip_prefix("HTTP/1.")? {
        "0" => "HTTP/1.0",
        minor if minor.len() == 1 && ('1'..='9').contains(&minor.chars().next()?) => "HTTP/1.1",
        _ => return None,
    };
    let authority = read_authority(method, target)?;
    let hosts = head.values("host");
    if hosts.len() > 1 || hosts.is_empty() && version == "HTTP/1.1" || !hosts.iter().all(is_host) {
        return None;
    }
    if hosts.iter().any(|host| host.starts_with(':')) {
        return None;
    }
    if version == "HTTP/1.1" && authority.is_none() && hosts == [""] {
        return None;
    }
    let expectations = head.values("expect").join(",").to_ascii_lowercase();
    let mut expectations = expectations.split(',').map(|one| one.trim_matches([' ', '\t']));
    let expects_other = expectations.any(|one| !one.is_empty() && one != "100-continue");
    if expects_other && version == "HTTP/1.1" {
        return None;
    }
    let (body, rest) = match head.framing(version).ok()? {
        None => (String::new(), head.rest),
        Some(None) => read_chunks(head.rest)?,
        Some(Some(length)) => take(head.rest, length)?,
    };
    let request = OracleRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        host: authority.or(hosts.first().map(|&host| host.to_owned())),
        keep_alive: head.keeps_alive(version),
        body: bytes_of(&body),
    };
    Some((request, rest))
}

/// `Some(None)`: a valid target without authority.
fn read_authority(method: &str, target: &str) -> Option<Option<String>> {
    if target.starts_with('/') || target == "*" && method == "OPTIONS" {
        return Some(None);
    }
    let lower = target.to_ascii_lowercase();
    let skip = ["http://", "https://"].iter().find(|scheme| lower.starts_with(**scheme))?.len();
    let authority = target[skip..].split(['/', '?']).next()?;
    let is_valid = !authority.is_empty() && !authority.starts_with(':') && is_host(&authority);
    is_valid.then(|| Some(authority.to_owned()))
}

fn is_host(host: &&str) -> bool {
    let (name, port) = match host.rfind(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or("0");
    let is_number = digits.is_empty() || digits.parse::<u32>().is_ok_and(|port| port < 65_536);
    let port_is_valid = (port.is_empty() || port.starts_with(':'))
        && is_number
        && digits.chars().all(|c| c.is_ascii_digit());
    let name_is_valid = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            // An escape counts as one letter.
            let mut letters = name.to_owned();
            while let Some(at) = letters.find('%') {
                let is_escape = letters
                    .get(at + 1..at + 3)
                    .is_some_and(|two| two.chars().all(|c| c.is_ascii_hexdigit()));
                if !is_escape {
                    return false;
                }
                letters.replace_range(at..at + 3, "x");
            }
            letters.chars().all(|c| c.is_ascii_alphanumeric() || "-._~!$&'()*+;=".contains(c))
        }
    };
    port_is_valid && name_is_valid
}
