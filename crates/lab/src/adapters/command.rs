//! Any program that serves HTTP. Its settings say how to start it, and it is ready when it answers. The words
//! `{port}`, `{docroot}` and `{dir}` are replaced in its command line; no shell reads it. The lab knows only what can
//! be seen from outside.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sys::child::Signal;

use super::values::{SettingKind, SettingSpec, Values};
use super::words::words;
use super::{
    Adapter, AdapterError, Answers, Found, Missing, Parity, Reached, Rendered, Request, Role,
    SERVER, Search, is_program, shown,
};

/// Any program.
pub(super) static ITEM: Adapter = Adapter {
    name: "command",
    about: "any program that serves HTTP: its settings say how it is started",
    find: |_: &Search| Some(Found { binary: PathBuf::new(), version: String::new() }),
    settings: SETTINGS,
    role: Role::AnyProgram,
    agree,
    configure,
    parity: |_, _| Parity {
        answers: Answers::unknown(HIDDEN),
        shown: shown([("user", "whoever runs joust".to_owned())]),
    },
    ways: &[],
    missing,
    ..SERVER
};

/// The setting that names the signal that ends it.
pub(super) const STOP: &str = "stop";

/// Why its switches are not known.
const HIDDEN: &str = "a program of your own: only what is visible from outside is known";

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "command",
        SettingKind::Line,
        "(must be given)",
        "Program and arguments; '...' and \"...\" hold a word together. {port}: the port it shall \
         listen on, at 127.0.0.1; {docroot}: the site; {dir}: a folder of its own, where it is started.",
    ),
    SettingSpec::new(
        "port",
        SettingKind::Number { min: 1, max: 65_535 },
        "(a free one, in place of {port})",
        "The port it listens on, for a program whose port is fixed.",
    ),
    SettingSpec::new(
        "cwd",
        SettingKind::Line,
        "(the folder of its own)",
        "The folder it is started in, absolute; the program and its arguments may be relative to it.",
    ),
    SettingSpec::new(
        "ready",
        SettingKind::Word,
        "(what the study asks for)",
        "The path that shows whether it is ready, as in /health: ready is status 200.",
    ),
    SettingSpec::new(
        STOP,
        SettingKind::Choice(&["TERM", "INT", "QUIT", "HUP", "KILL"]),
        "TERM",
        "The signal that asks it to end. What is left after 5 s is killed.",
    ),
];

fn agree(values: &Values) -> Result<(), AdapterError> {
    let refused = |reason: String| Err(AdapterError::Disagree { server: ITEM.name, reason });
    let Some(line) = values.given("command") else {
        return refused(
            "it has no `command`: write settings.command = \"PROGRAM --port {port} {docroot}\""
                .to_owned(),
        );
    };
    match words(line) {
        Err(reason) => return refused(format!("`command`: {reason}")),
        Ok(words) if words.is_empty() => return refused("`command` is empty".to_owned()),
        Ok(_) => {}
    }
    match (values.given("port"), line.contains("{port}")) {
        (None, false) => refused(
            "`command` does not say where to listen: put {port} into it, or set `port` to the one it \
             has"
            .to_owned(),
        ),
        (Some(port), true) => refused(format!(
            "`port` is {port}, and `command` has {{port}}: leave one of them out"
        )),
        _ => match (values.given("ready"), values.given("cwd")) {
            (Some(path), _) if !path.starts_with('/') => {
                refused(format!("`ready` is a path, as in /{path}"))
            }
            (_, Some(folder)) if !folder.starts_with('/') => {
                refused(format!("`cwd` must be an absolute path, not `{folder}`"))
            }
            _ => Ok(()),
        },
    }
}

/// What is missing if the program of a `command` is not there; `None` if it is there, or lies in a folder that is
/// made for each start.
fn missing(values: &Values, search: &Search) -> Option<Missing> {
    let program = words(values.given("command")?).ok()?.into_iter().next()?;
    if ["{docroot}", "{dir}", "{port}"].iter().any(|mark| program.contains(mark)) {
        return None;
    }
    let path = match values.given("cwd") {
        Some(folder) => Path::new(folder).join(&program),
        None => PathBuf::from(&program),
    };
    let (reason, remedy) = if !program.contains('/') {
        if search.program(&program).is_some() {
            return None;
        }
        let dirs: Vec<_> = search.dirs.iter().map(|dir| dir.display().to_string()).collect();
        let remedy = "install it, or write its absolute path in `command`".to_owned();
        (format!("the program `{program}` is in none of {}", dirs.join(", ")), remedy)
    } else if path.is_relative() {
        let reason = format!(
            "`{program}` is a relative path, and a command is started in a folder of its own"
        );
        (reason, "write its absolute path in `command`".to_owned())
    } else if !path.exists() {
        (format!("the program `{}` does not exist", path.display()), "correct `command`".to_owned())
    } else if !is_program(&path) {
        (format!("`{program}` is no program"), format!("chmod +x {program}, or correct `command`"))
    } else {
        return None;
    };
    Some(Missing { reason, remedy })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let port = request.addr.port().to_string();
    let (docroot, dir) = (request.docroot.display().to_string(), request.dir.display().to_string());
    let put_in = |word: String| {
        OsString::from(
            word.replace("{port}", &port).replace("{docroot}", &docroot).replace("{dir}", &dir),
        )
    };
    let words = words(values.text("command")).expect("the words were checked on reading");
    let port = values.given("port").map(|port| port.parse().expect("a checked port"));
    Rendered {
        reached: port.map_or(Reached::AsAsked, Reached::Port),
        ready: values.given("ready").map(str::to_owned),
        cwd: values.given("cwd").map(PathBuf::from),
        stop: match values.text(STOP) {
            "INT" => Signal::SIGINT,
            "QUIT" => Signal::SIGQUIT,
            "HUP" => Signal::SIGHUP,
            "KILL" => Signal::SIGKILL,
            _ => Signal::SIGTERM,
        },
        ..Rendered::of(words.into_iter().map(put_in).collect())
    }
}

#[cfg(test)]
mod tests {
    use record::SettingValue;

    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_missing_and_one_that_cannot_be_looked_for_is_not() {
        let search = Search { joust: PathBuf::new(), dirs: vec!["/bin".into()] };
        let missing = |command: &str| {
            let settings = [("command".to_owned(), SettingValue::Text(command.to_owned()))].into();
            let missing = ITEM.installed_with(&search, &settings).err();
            missing.map(|missing| missing.reason)
        };
        let there = [
            "sh -c 'exec x {port}'",
            "/bin/sh {port}",
            "{dir}/server {port}",
            "'{docroot}/x' {port}",
        ];
        for command in there {
            assert_eq!(missing(command), None, "{command}");
        }
        let absent = [
            ("no-such-program {port}", "the program `no-such-program` is in none of /bin"),
            ("/no/such/program {port}", "the program `/no/such/program` does not exist"),
            ("./server {port}", "`./server` is a relative path"),
            ("/etc/passwd {port}", "`/etc/passwd` is no program"),
        ];
        for (command, reason) in absent {
            assert!(missing(command).is_some_and(|said| said.starts_with(reason)), "{command}");
        }
        let beside = |folder: &str| {
            let text = |value: &str| SettingValue::Text(value.to_owned());
            let settings =
                [("command", "./sh {port}"), ("cwd", folder)].map(|(k, v)| (k.to_owned(), text(v)));
            ITEM.installed_with(&search, &settings.into()).err().map(|missing| missing.reason)
        };
        assert_eq!(beside("/bin"), None);
        assert_eq!(beside("/etc").as_deref(), Some("the program `/etc/./sh` does not exist"));
    }
}
