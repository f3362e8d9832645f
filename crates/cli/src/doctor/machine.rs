//! `joust doctor --machine`: how this machine can affect a measurement, before anything is run. It reads and changes
//! nothing. Start reading at [`look`].

use std::fmt::Write as _;

use doctor::machine::{Change, MachineLine, MachineState, Mend};
use report::{Prose, ProseTone};
use serde_json::{Value, json};

use crate::terminal::prose_options;

/// The output format.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// For a person.
    Text,
    /// As a shell script that changes what is worth changing.
    Script,
    /// For a program.
    Json,
}

/// Looks at this machine; takes half a second.
pub fn look(form: Form) -> String {
    let lines = doctor::machine::look(&lab::facts::machine_texts());
    match form {
        Form::Text => report::prose_text(&parts(&lines), &prose_options()),
        Form::Script => script(&lines),
        Form::Json => json_of(&lines),
    }
}

/// Number of lines that are fine, worth changing and not available.
fn counts(lines: &[MachineLine]) -> (usize, usize, usize) {
    let count = |is: fn(&MachineLine) -> bool| lines.iter().filter(|line| is(line)).count();
    let worth = count(|line| matches!(line.state, Ok(MachineState::WorthChanging { .. })));
    let unknown = count(|line| line.state.is_err());
    (lines.len() - worth - unknown, worth, unknown)
}

/// Lines that are worth changing come first, because readers look for them.
fn parts(lines: &[MachineLine]) -> Vec<Prose> {
    let (fine, worth, unknown) = counts(lines);
    let mut parts = vec![Prose::Heading(format!(
        "This machine: {worth} worth changing, {unknown} not available, {fine} fine"
    ))];
    let mut put = |heading: &str, tone, count, told: fn(&MachineLine) -> Option<Told>| {
        if count == 0 {
            return;
        }
        parts.push(Prose::Heading(heading.to_owned()));
        for (line, told) in lines.iter().filter_map(|line| Some((line, told(line)?))) {
            parts.push(Prose::Point(tone, format!("{}: {}", line.topic.name, told.seen)));
            parts.push(Prose::Detail(format!("{}.", capitalised(line.topic.effect))));
            parts.extend(told.mend.iter().flat_map(way_out));
        }
    };
    put("Worth changing", ProseTone::Caution, worth, |line| match &line.state {
        Ok(MachineState::WorthChanging { seen, mend }) => {
            Some(Told { seen: seen.clone(), mend: Some(mend.clone()) })
        }
        _ => None,
    });
    put("Not available", ProseTone::Faint, unknown, |line| {
        line.state.as_ref().err().map(|why| Told { seen: why.clone(), mend: None })
    });
    put("Fine", ProseTone::Good, fine, |line| match &line.state {
        Ok(MachineState::Fine { seen }) => Some(Told { seen: seen.clone(), mend: None }),
        _ => None,
    });
    if worth > 0 {
        let more = "joust doctor --fix prints these commands as a script, with those that bring today's \
                    values back.";
        parts.push(Prose::Heading("Nothing was changed".to_owned()));
        parts.push(Prose::Point(ProseTone::Plain, more.to_owned()));
    }
    parts
}

/// The texts of a line.
struct Told {
    seen: String,
    mend: Option<Mend>,
}

fn way_out(mend: &Mend) -> Vec<Prose> {
    let advice = (!mend.advice.is_empty()).then(|| format!("{}.", capitalised(&mend.advice)));
    let commands = mend.changes.iter().map(|change| Prose::Command(change.run.clone()));
    advice.map(Prose::Detail).into_iter().chain(commands).collect()
}

/// With a capital first letter, unless it begins with a name or code.
fn capitalised(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = first.chars().all(|c| c.is_ascii_lowercase() || c == ',') && first != "joust";
    let (head, tail) = text.split_at(usize::from(is_word && !text.is_empty()));
    format!("{}{tail}", head.to_uppercase())
}

const SCRIPT_HEAD: &str = "\
#!/bin/sh
# What `joust doctor --machine` found worth changing on this machine. joust never runs this script: read it, take
# out what you do not want, and run it as root. Most changes last until the next boot. \"Back:\" is the command that
# brings today's value back.
";

/// Every change with its comment; if no command can change something, only a comment.
fn script(lines: &[MachineLine]) -> String {
    let mut text = SCRIPT_HEAD.to_owned();
    let mut any = false;
    for line in lines {
        let Ok(MachineState::WorthChanging { seen, mend }) = &line.state else { continue };
        any = true;
        let mut comment = |said: &str| {
            for part in report::wrapped(&one_line(said), SCRIPT_WIDTH) {
                let _ = writeln!(text, "# {part}");
            }
        };
        comment("");
        comment(&format!("{}: {seen}", line.topic.name));
        comment(&format!("{}.", capitalised(line.topic.effect)));
        if !mend.advice.is_empty() {
            comment(&format!("To do: {}.", mend.advice));
        }
        for Change { run, today, back } in &mend.changes {
            let back = back.as_deref().unwrap_or("there is no command for that");
            let _ = writeln!(text, "# Today: {}", one_line(today));
            let _ = writeln!(text, "# Back: {}", one_line(back));
            let _ = writeln!(text, "{}", one_line(run));
        }
    }
    if !any {
        text.push_str("\n# Nothing is worth changing.\n");
    }
    // An empty comment represents an empty line.
    text.replace("\n# \n", "\n\n")
}

/// Width of a comment in the script.
const SCRIPT_WIDTH: usize = 100;

/// Joins lines: text from a file of the machine must not begin a line of the script.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn json_of(lines: &[MachineLine]) -> String {
    let all: Vec<Value> = lines.iter().map(line_json).collect();
    let mut text = serde_json::to_string_pretty(&json!({ "machine": all }))
        .expect("strings and lists are JSON");
    text.push('\n');
    text
}

/// `state` is "fine", "worth_changing" or "not_available"; for the last, `why` replaces `seen`.
fn line_json(line: &MachineLine) -> Value {
    let mut value = json!({
        "name": line.topic.name,
        "title": line.topic.title,
        "effect": line.topic.effect,
    });
    let (state, key, said) = match &line.state {
        Ok(MachineState::Fine { seen }) => ("fine", "seen", seen),
        Ok(MachineState::WorthChanging { seen, mend }) => {
            let change = |change: &Change| json!({ "run": change.run, "today": change.today, "back": change.back });
            value["advice"] = json!(mend.advice);
            value["changes"] = mend.changes.iter().map(change).collect();
            ("worth_changing", "seen", seen)
        }
        Err(why) => ("not_available", "why", why),
    };
    value["state"] = json!(state);
    value[key] = json!(said);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with one line in each state.
    fn lines() -> Vec<MachineLine> {
        let topic = |name: &str| {
            *doctor::machine::TOPICS.iter().find(|topic| topic.name == name).expect("a topic")
        };
        let change = Change {
            run: "sysctl -w net.core.somaxconn=\"4096\"".to_owned(),
            today: "128\n".to_owned(),
            back: Some("sysctl -w net.core.somaxconn=\"128\"".to_owned()),
        };
        let mend = Mend { advice: String::new(), changes: vec![change] };
        let state = |seen: &str| Ok(MachineState::Fine { seen: seen.to_owned() });
        vec![
            MachineLine {
                topic: topic("accept_backlog"),
                state: Ok(MachineState::WorthChanging { seen: "128 connections".to_owned(), mend }),
            },
            MachineLine { topic: topic("clock_source"), state: state("tsc\nrm -r x") },
            MachineLine { topic: topic("frequency"), state: Err("there is no file".to_owned()) },
        ]
    }

    #[test]
    fn each_line_says_its_state_and_the_command() {
        let options = report::Options { width: 60, ..report::Options::default() };
        let text = report::prose_text(&parts(&lines()), &options);
        assert!(
            text.starts_with("This machine: 1 worth changing, 1 not available, 1 fine\n"),
            "{text}"
        );
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in\n{text}"));
        assert!(at("accept_backlog: 128") < at("sysctl -w net.core.somaxconn=\"4096\"\n"));
        assert!(at("Not available") < at("frequency: there is no file"));
        assert!(at("Fine") < at("clock_source: tsc"));
    }

    #[test]
    fn the_script_has_todays_value_and_nothing_from_a_file_begins_a_line() {
        let text = script(&lines());
        assert!(text.starts_with("#!/bin/sh\n"), "{text}");
        let commands: Vec<&str> =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert_eq!(commands, ["sysctl -w net.core.somaxconn=\"4096\""]);
        assert!(
            text.contains("# Today: 128 \n# Back: sysctl -w net.core.somaxconn=\"128\"\n"),
            "{text}"
        );
        assert!(script(&[]).contains("Nothing is worth changing"));
    }

    #[test]
    fn a_program_gets_every_line() {
        let value: Value = serde_json::from_str(&json_of(&lines())).unwrap();
        let states: Vec<&str> =
            (0..3).filter_map(|at| value["machine"][at]["state"].as_str()).collect();
        assert_eq!(states, ["worth_changing", "fine", "not_available"]);
        assert_eq!(value["machine"][0]["changes"][0]["today"], "128\n");
        assert!(value["machine"][2]["seen"].is_null(), "what is not known has no value");
    }
}
