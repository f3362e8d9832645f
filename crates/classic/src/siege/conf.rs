//! siege.conf: which file is used, and what its lines set. Owns the directives. Start reading at [`load`].

use std::path::Path;

use super::auth::Login;
use super::settings::{Reps, Settings};
use super::style::Style;
use super::text::fatal;
use crate::command::{Call, ExitMessage, Surroundings, Texts, atoi};

/// The system's file, if the user has none.
const MACHINE: &str = "/etc/siege/siegerc";

/// Total length of all `header` lines.
const HEADERS_MAX: usize = 512;

/// Reads the first of these that exists: the file of -R, of $SIEGERC, of the user, of the system; without any, the
/// settings that siege would write to the user's home.
///
/// # Errors
/// What siege prints about a named file that cannot be read, or an invalid line.
pub(super) fn load(
    call: &Call<'_>,
    named: Option<String>,
    style: Style,
) -> Result<Settings, ExitMessage> {
    let world = call.world;
    if let Some(rc) = named.or_else(|| world.variable("SIEGERC")) {
        let Ok(bytes) = world.read(Path::new(&rc)) else { return Err(unreadable(&rc)) };
        return parse(&bytes, rc, style, world);
    }
    for rc in [of_user(world), MACHINE.to_owned()] {
        if let Ok(bytes) = world.read(Path::new(&rc)) {
            return parse(&bytes, rc, style, world);
        }
    }
    Ok(Settings { home_rc: of_user(world), ..Settings::shipped(style) })
}

fn of_user(world: &dyn Surroundings) -> String {
    format!("{}/.siege/siege.conf", world.variable("HOME").unwrap_or_default())
}

fn unreadable(rc: &str) -> ExitMessage {
    let stars = "*".repeat(50);
    let text = format!(
        "{stars}\nsiege: could not open {rc}\n\
         run 'siege.config' to generate a new config file\n{stars}\n"
    );
    ExitMessage { texts: Texts::err(text), code: 1 }
}

fn parse(
    bytes: &[u8],
    rc: String,
    style: Style,
    world: &dyn Surroundings,
) -> Result<Settings, ExitMessage> {
    let mut settings = Settings { rc, home_rc: of_user(world), ..Settings::empty(style) };
    let mut variables = Vec::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (option, value) = pair(line);
        let option = evaluate(&variables, world, option);
        let value = evaluate(&variables, world, value);
        if !set(&mut settings, &option, &value)? {
            variables.push((option, value));
        }
    }
    Ok(settings)
}

/// The text before and after the first space, `=` or `:`.
pub(super) fn pair(line: &str) -> (&str, &str) {
    let is_between = |c: char| c.is_ascii_whitespace() || c == '=' || c == ':';
    let end = line.find(is_between).unwrap_or(line.len());
    (&line[..end], line[end..].trim_start_matches(is_between))
}

/// Replaces `$NAME`, `$(NAME)` and `${NAME}` by a value that the file set, else by the environment, else by nothing. A
/// name ends at a bracket, a slash or the line's end. Values of the file are expanded in turn, even if the variables in
/// them are set later.
pub(super) fn evaluate(
    variables: &[(String, String)],
    world: &dyn Surroundings,
    text: &str,
) -> String {
    let mut done = String::new();
    replace(variables, world, text, &mut 0, &mut done);
    done
}

/// Most replacements in one text: a variable that refers to itself would never end.
const REPLACED_MAX: u32 = 1000;

fn replace(
    variables: &[(String, String)],
    world: &dyn Surroundings,
    text: &str,
    n: &mut u32,
    done: &mut String,
) {
    let mut left = text;
    while let Some(at) = left.find('$') {
        *done += &left[..at];
        let name = left[at + 1..].trim_start_matches(['{', '(']);
        let end = name.find(['}', ')', '/']).unwrap_or(name.len());
        let set = variables.iter().find(|(other, _)| other == &name[..end]);
        *n += 1;
        match set {
            _ if *n > REPLACED_MAX => return,
            Some((_, value)) => replace(variables, world, value, n, done),
            None => *done += &world.variable(&name[..end]).unwrap_or_default(),
        }
        let is_closed = name[end..].starts_with(['}', ')']);
        left = &name[end + usize::from(is_closed)..];
    }
    *done += left;
}

fn is_true(value: &str) -> bool {
    begins(value, "true")
}

/// Compares case-insensitively.
pub(super) fn begins(text: &str, with: &str) -> bool {
    text.as_bytes().get(..with.len()).is_some_and(|b| b.eq_ignore_ascii_case(with.as_bytes()))
}

/// Like atof(3), without exponents.
pub(super) fn atof(text: &str) -> f64 {
    let text = text.trim_start();
    let is_part = |c: char| c.is_ascii_digit() || ".+-".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text[..end].parse().unwrap_or(0.0)
}

/// Seconds of `NUM[S|M|H]`; a number without a unit is minutes.
pub(super) fn seconds(text: &str) -> i32 {
    let digits = text.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let factor = match digits[end..].trim_start().chars().next().map(|c| c.to_ascii_lowercase()) {
        Some('s') => 1,
        Some('h') => 3600,
        _ => 60,
    };
    atoi(&digits[..end]).saturating_mul(factor)
}

/// Executes a directive; returns whether it is known.
fn set(to: &mut Settings, option: &str, value: &str) -> Result<bool, ExitMessage> {
    if let Some(flag) = switch(to, option) {
        *flag = is_true(value);
        return Ok(true);
    }
    if value.is_empty() {
        // As if the file did not set them.
        let Settings { log_file, file, agent, encoding, .. } = Settings::empty(to.style);
        match option.to_ascii_lowercase().as_str() {
            "logfile" => to.log_file = log_file,
            "file" => to.file = file,
            "user-agent" => to.agent = agent,
            "accept-encoding" => to.encoding = encoding,
            _ => return set_further(to, option, value),
        }
        return Ok(true);
    }
    set_further(to, option, value)
}

/// Directives with a value.
fn set_further(to: &mut Settings, option: &str, value: &str) -> Result<bool, ExitMessage> {
    let owned = || value.to_owned();
    match option.to_ascii_lowercase().as_str() {
        "color" => to.color = !["false", "off"].iter().any(|no| value.eq_ignore_ascii_case(no)),
        "url-escaping" => to.escape = !begins(value, "false"),
        "connection" => to.keep_alive = begins(value, "keep-alive"),
        "protocol" => to.is_http11 = begins(value, "HTTP/1.1"),
        "gmethod" => to.get_is_head = Some(!value.eq_ignore_ascii_case("GET")),
        "nofollow" if value.len() > 3 => to.no_follow.push(owned()),
        "nofollow" => {}
        "concurrent" => to.users = atoi(value),
        "limit" => to.users_max = atoi(value),
        "reps" => to.reps = reps(atoi(value)),
        "time" => to.seconds = seconds(value),
        "delay" => to.delay = atof(value),
        "timeout" => to.timeout = atoi(value),
        "failures" => to.failures = atoi(value),
        "attempts" => to.attempts = atoi(value),
        "logfile" => to.log_file = owned(),
        "file" => to.file = owned(),
        "url" => to.url = Some(owned()),
        "user-agent" => to.agent = owned(),
        "accept-encoding" => to.encoding = owned(),
        "proxy-host" => to.proxy = Some(value.trim().to_owned()),
        "proxy-port" => to.proxy_port = atoi(value),
        "ssl-cert" => to.certificate = Some(value.into()),
        "ssl-key" => to.key = Some(value.into()),
        "ssl-ciphers" => to.ciphers = Some(owned()),
        "login-url" => to.login_urls.push(owned()),
        "proxy-login" => to.proxy_logins.push(Login::new(value)),
        "ftp-login" | "ssl-timeout" | "username" | "password" | "spinner" => {}
        "header" => {
            if !value.contains(':') {
                return Err(fatal("no ':' in http-header"));
            }
            if value.len() + to.extra.len() + 3 > HEADERS_MAX {
                return Err(fatal("too many headers"));
            }
            to.extra += &format!("{value}\r\n");
        }
        name if name.starts_with("login") => to.logins.push(Login::new(value)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// The meaning of -r and `reps`: below 0 is once.
pub(super) fn reps(times: i32) -> Reps {
    if times == -1 { Reps::Once } else { Reps::Times(times) }
}

/// The directives that are true or false.
fn switch<'a>(to: &'a mut Settings, option: &str) -> Option<&'a mut bool> {
    Some(match option.to_ascii_lowercase().as_str() {
        "verbose" => &mut to.verbose,
        "quiet" => &mut to.quiet,
        "json_output" => &mut to.json,
        "debug" => &mut to.debug,
        "parser" => &mut to.parser,
        "csv" => &mut to.csv,
        "fullurl" => &mut to.full_url,
        "display-id" => &mut to.display_id,
        "logging" => &mut to.logging,
        "show-logfile" => &mut to.show_log,
        "timestamp" => &mut to.timestamp,
        "internet" => &mut to.internet,
        "benchmark" => &mut to.bench,
        "cache" => &mut to.cache,
        "chunked" => &mut to.chunked,
        "unique" => &mut to.unique,
        "cookies" => &mut to.cookies,
        "expire-session" => &mut to.expire,
        "follow-location" => &mut to.follow,
        "zero-data-ok" => &mut to.zero_ok,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::testing::World;

    fn parsed(text: &str) -> Settings {
        let world = World { variables: [("HOME", "/h")].into(), ..World::default() };
        parse(text.as_bytes(), "rc".to_owned(), Style::Seconds, &world).expect("no fatal line")
    }

    #[test]
    fn directives_are_read_with_comments_variables_and_either_separator() {
        let read = parsed(
            "# verbose = true\nquiet = TRUE # so\nNAME = p\nlogfile=${HOME}/$(NAME)/x.log\n\
             concurrent: 7\n  delay = 1.5\nlogin = a:b:R\nlogin = c:d\nnofollow = abc\n\
             nofollow = abcd\ntime = 2H\nreps = -1\nproxy-login = x:y\n",
        );
        assert!(read.quiet && !read.verbose);
        assert_eq!((read.log_file.as_str(), read.users, read.delay), ("/h/p/x.log", 7, 1.5));
        assert_eq!(read.logins, [Login::new("a:b:R"), Login::new("c:d:any")]);
        assert_eq!(read.proxy_logins, [Login::new("x:y")]);
        assert_eq!((read.no_follow, read.seconds), (vec!["abcd".to_owned()], 7200));
        assert_eq!(read.reps, Reps::Once);
    }

    #[test]
    fn an_unknown_variable_is_nothing_and_a_name_ends_at_a_slash() {
        let world = World { variables: [("A", "1")].into(), ..World::default() };
        let set = [("B".to_owned(), "2".to_owned())];
        assert_eq!(evaluate(&set, &world, "$A/${B}$(C)x/$B"), "1/2x/2");
    }

    #[test]
    fn a_variable_is_what_it_was_set_to_first_and_may_name_others() {
        let set =
            [("A", "$(B)/a"), ("B", "b"), ("B", "c"), ("S", "<$(S)>"), ("T", "$(T)$(T)x$(T)")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let world = World::default();
        assert_eq!(evaluate(&set, &world, "$(A)$(B)"), "b/ab");
        assert_eq!(evaluate(&set, &world, "$(S)").matches('<').count(), REPLACED_MAX as usize);
        assert_eq!(evaluate(&set, &world, "a$(T)b"), "ab", "it would be 3^1000 times x");
    }

    #[test]
    fn numbers_are_read_as_c_reads_them_and_times_are_minutes_unless_they_say() {
        assert_eq!((atof("1.5s"), atof("x")), (1.5, 0.0));
        assert_eq!(["3", "3S", "3 s", "3m", "1H", "x"].map(seconds), [180, 3, 3, 180, 3600, 0]);
    }
}
