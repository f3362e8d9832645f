//! siege's urls.txt: a URL a line, with a method and a body after it, comments and variables. Start reading
//! at [`FORMAT`]. Source: JoeDog/siege 4.1, `src/cfg.c` (lines, variables), `src/eval.c`, `src/url.c`
//! (methods).
//!
//! Two differences avoid silent surprises: a variable that is not set is an error, not the empty text, and a line
//! that begins with `#` is a comment whatever else it contains (siege takes `# see http://a/` for a URL).

use std::collections::HashMap;

use super::harvest::{Fault, Harvest};
use super::{
    Base, Format, ListedRequest, Listing, SourceError, escaped, first_line, is_absolute, lines,
};

/// siege's urls.txt.
pub(super) static FORMAT: Format = Format {
    name: "siege",
    about: "siege's urls.txt: URL, `URL POST body`, `URL POST <file`, NAME=value and $(NAME)",
    looks_like,
    read,
};

/// Methods that may stand after a URL, in the order in which siege looks for them.
const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Content-Type of a body, as siege sends it.
const FORM: &str = "application/x-www-form-urlencoded";

/// Longest text of a line with its variables, in bytes: variables may refer to one another.
const EXPANDED_MAX: usize = 1 << 20;

/// Deepest nesting of variables.
const DEPTH_MAX: usize = 32;

fn looks_like(text: &str) -> bool {
    let is_entry = |line: &str| {
        let url = line.split_whitespace().next().unwrap_or_default();
        is_absolute(url) || url.starts_with(['$', '/']) || is_host(url)
    };
    !first_line(text).is_empty()
        && lines(text).take(100).all(|(_, line)| assignment(line).is_some() || is_entry(line))
}

/// Whether a URL without a scheme seems to be one: a port, a dot or a path, and no quote or brace.
fn is_host(url: &str) -> bool {
    let host = url.split(['/', '?']).next().unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:[]$(){}".contains(c);
    !host.is_empty()
        && host.chars().all(is_allowed)
        && (host == "localhost" || host.contains(['.', ':']))
}

fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let mut harvest = Harvest::new(base);
    let mut variables = HashMap::new();
    for (number, line) in lines(text) {
        let refuse = |fault| SourceError::new(base, Some(number), fault);
        if let Some((name, value)) = assignment(line) {
            variables.insert(name, value);
            continue;
        }
        let mut expanded = String::new();
        let scope = Scope { set: &variables, base };
        scope.expand(line, 0, &mut expanded).map_err(refuse)?;
        let asked = request(&expanded, &harvest).map_err(refuse)?;
        harvest.push_written(asked).map_err(refuse)?;
    }
    harvest.finish()
}

/// `NAME=value`, with optional spaces around the sign.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some((name, value.trim()))
}

struct Scope<'a> {
    set: &'a HashMap<&'a str, &'a str>,
    base: &'a Base<'a>,
}

impl Scope<'_> {
    /// Appends `text` with the values of `$(NAME)` and `${NAME}`; `\$` is a dollar sign. Variables of the file take
    /// precedence over those of the environment.
    fn expand(&self, mut text: &str, depth: usize, out: &mut String) -> Result<(), Fault> {
        while let Some(at) = text.find('$') {
            let (before, after) = (&text[..at], &text[at + 1..]);
            if let Some(before) = before.strip_suffix('\\') {
                out.push_str(before);
                out.push('$');
                text = after;
                continue;
            }
            out.push_str(before);
            let close = if after.starts_with('(') { ')' } else { '}' };
            let Some(end) = after.find(close).filter(|_| after.starts_with(['(', '{'])) else {
                out.push('$');
                text = after;
                continue;
            };
            let name = &after[1..end];
            let value = match self.set.get(name) {
                Some(value) => (*value).to_owned(),
                None => (self.base.variables)(name).ok_or_else(|| unset(name))?,
            };
            if depth == DEPTH_MAX || out.len() + value.len() > EXPANDED_MAX {
                return Err(Fault::Format(format!(
                    "`{name}` stands for itself, or for too much: a value may name other \
                     variables, but not in a circle"
                )));
            }
            self.expand(&value, depth + 1, out)?;
            text = &after[end + 1..];
        }
        out.push_str(text);
        Ok(())
    }
}

fn unset(name: &str) -> Fault {
    let name = name.escape_debug();
    Fault::Format(format!(
        "nothing sets the variable `{name}`: write {name}=value on a line before this one, or \
         export it; a dollar sign itself is written \\$"
    ))
}

/// A line as siege reads it: URL, and perhaps method and body.
fn request(line: &str, harvest: &Harvest<'_>) -> Result<ListedRequest, Fault> {
    let found = METHODS.iter().find_map(|method| {
        let at = line.find(&format!(" {method}"))?;
        let after = &line[at + 1 + method.len()..];
        (after.is_empty() || after.starts_with([' ', '\t'])).then_some((at, *method, after))
    });
    let Some((at, method, data)) = found else {
        return Ok(ListedRequest::get(escaped(line.as_bytes())));
    };
    let mut asked = ListedRequest::get(escaped(line[..at].trim().as_bytes()));
    method.clone_into(&mut asked.method);
    let mut data = data.trim();
    let mut content_type = FORM;
    if let Some(rest) = data.strip_prefix("-T").filter(|rest| rest.starts_with([' ', '\t'])) {
        let (named, rest) = rest.trim_start().split_once([' ', '\t']).unwrap_or((rest.trim(), ""));
        content_type = named.trim_end_matches(';');
        data = rest.trim();
    }
    asked.body = match data.strip_prefix('<') {
        Some(name) => harvest.file(name.trim())?,
        None => data.as_bytes().to_vec(),
    };
    if !asked.body.is_empty() {
        asked.headers.push(("Content-Type".to_owned(), content_type.to_owned()));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{listed, refuses, shown};

    /// From the manual, `doc/siege.pod` and the urls.txt that siege comes with.
    #[test]
    fn the_file_of_the_manual_reads_as_siege_reads_it() {
        let text = "# URLS file for siege\n# --\n\nHOST = www.joedog.org\nPATH=$(HOST)/siege\n\
            http://$(HOST)/index.html\nhttp://${PATH}/?a=b#c\nwww.haha.com/cgi-bin/script.cgi\n\
            localhost:${HOME_PORT}/ POST value=foo&other=a b\n\
            http://h/a POST <a/b.json\nhttp://h/b PUT  < body.bin\n\
            http://h/c POST -T text/plain; hello\nhttp://h/POSTER/ a\nhttp://h/cost/\\$5\n\
            http://h/d DELETE\nhttp://h/{seq}\n";
        let form = "Content-Type: application/x-www-form-urlencoded";
        let listing = listed(text, "siege");
        let expected = [
            "GET http://www.joedog.org/index.html".to_owned(),
            "GET http://www.joedog.org/siege/?a=b#c".to_owned(),
            "GET http://www.haha.com/cgi-bin/script.cgi".to_owned(),
            format!("POST http://localhost:8080/ | {form} || value=foo&other=a b"),
            format!("POST http://h/a | {form} || {{\\\"n\\\":{{seq}}}}"),
            format!("PUT http://h/b | {form} || line\\r\\none\\x00"),
            "POST http://h/c | Content-Type: text/plain || hello".to_owned(),
            "GET http://h/POSTER/%20a".to_owned(),
            "GET http://h/cost/$5".to_owned(),
            "DELETE http://h/d".to_owned(),
            "GET http://h/{seq}".to_owned(),
        ];
        assert_eq!(shown(&listing), expected);
        let templated: Vec<usize> =
            (0..11).filter(|&index| listing.asked[index].templated).collect();
        assert_eq!(templated, [4, 10]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_line() {
        let bomb = "A=$(B)$(B)$(B)$(B)\nB=$(C)$(C)$(C)$(C)\nC=$(A)\nhttp://a/$(A)";
        refuses(
            "siege",
            &[
                ("# a\n\nhttp://a/$(NOBODY)", "file:3: nothing sets the variable `NOBODY`"),
                ("http://a/ POST <none", "file:1: cannot read `none`"),
                ("ftp://a/", "joust speaks http"),
                ("A=b\n", "no request"),
                (bomb, "in a circle"),
            ],
        );
    }
}
