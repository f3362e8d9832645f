//! Owns the hash of what was run under a contender's name: its settings and its configuration, without values that are
//! drawn anew at every start. Must not know servers. Start reading at [`hash`].

use record::RunRecord;
use sha2::{Digest as _, Sha256};

/// How the name of a run's temporary folder begins, wherever temporary folders are kept.
const SCRATCH: &str = "/joust-scratch-";
/// The kernel's ephemeral ports, for runs that do not record their range.
const PORTS: (u32, u32) = (32_768, 60_999);

/// SHA-256 in hex over the settings, files and command of a contender. The port and the temporary
/// folders in them do not count; a setting does, whatever its value, because settings are hashed as
/// they stand in the plan.
pub(crate) fn hash(run: &RunRecord, contender: usize) -> String {
    let ports = ports(run);
    let mut hash = Sha256::new();
    // Each part is preceded by its length, so that moving text across a boundary changes the hash.
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    let planned = &run.plan.contenders[contender];
    part(&planned.server);
    for (name, value) in &planned.settings {
        part(name);
        part(&value.to_string());
    }
    let facts = &run.contenders[contender];
    for (name, content) in &facts.files {
        part(name);
        part(&lasting(content, ports));
    }
    part(&lasting(&facts.command, ports));
    record::hex(&hash.finalize())
}

fn ports(run: &RunRecord) -> (u32, u32) {
    let range = run.facts.named.get("port_range");
    let mut ends = range.into_iter().flat_map(|text| text.split(|c: char| !c.is_ascii_digit()));
    let mut end = || ends.find(|word| !word.is_empty())?.parse().ok();
    match (end(), end()) {
        (Some(low), Some(high)) => (low, high),
        _ => PORTS,
    }
}

/// The text without ports and temporary folders.
fn lasting(text: &str, ports: (u32, u32)) -> String {
    without_ports(&without_folders(text), ports)
}

/// `/tmp/joust-scratch-Xy1/nginx-Zw2/nginx.conf` becomes `SCRATCH/nginx-/nginx.conf`.
fn without_folders(text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric();
    let is_path = |c: char| !c.is_whitespace() && !"\"'=;:,()<>".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(SCRATCH) {
        let before = rest[..at].trim_end_matches(is_path);
        out.push_str(before);
        out.push_str("SCRATCH");
        rest = rest[at + SCRATCH.len()..].trim_start_matches(is_name);
        // The server's own folder inside it: the server's name, a dash and a random part.
        let name = rest.strip_prefix('/').map(|own| own.split(|c| !is_path(c) || c == '/'));
        if let Some((server, drawn)) =
            name.and_then(|mut parts| parts.next()).and_then(|name| name.rsplit_once('-'))
            && !drawn.is_empty()
            && drawn.chars().all(is_name)
        {
            out.push('/');
            out.push_str(server);
            out.push('-');
            rest = &rest[1 + server.len() + 1 + drawn.len()..];
        }
    }
    out + rest
}

fn without_ports(text: &str, (low, high): (u32, u32)) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let is_port = number.parse().is_ok_and(|port: u32| (low..=high).contains(&port));
        out.push_str(if is_port { "PORT" } else { number });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use record::SettingValue;

    use super::*;
    use crate::testdata;

    #[test]
    fn what_is_drawn_at_every_start_does_not_count() {
        let one = "worker_processes 1;\nlisten 127.0.0.1:40001 backlog=511;\nerror_log \
                   \"/tmp/joust-scratch-Ab1/nginx-Cd2/error.log\"; root /tmp/joust-scratch-Ab1/site;";
        let other = "worker_processes 1;\nlisten 127.0.0.1:51234 backlog=511;\nerror_log \
                     \"/tmp/joust-scratch-Zz9/nginx-Yy8/error.log\"; root /tmp/joust-scratch-Zz9/site;";
        assert_eq!(lasting(one, PORTS), lasting(other, PORTS));
        assert!(lasting(one, PORTS).contains("\"SCRATCH/nginx-/error.log\"; root SCRATCH/site;"));
        assert_ne!(lasting(one, PORTS), lasting(&other.replace("511", "512"), PORTS));
    }

    #[test]
    fn a_setting_counts_whatever_its_value() {
        let run = testdata::run(&["a"], 3, 1);
        let mut other = run.clone();
        assert_eq!(hash(&run, 0), hash(&other, 0));
        let settings = &mut other.plan.contenders[0].settings;
        settings.insert("backlog".to_owned(), SettingValue::Number(40_000));
        let with = hash(&other, 0);
        assert_ne!(hash(&run, 0), with);
        let settings = &mut other.plan.contenders[0].settings;
        settings.insert("backlog".to_owned(), SettingValue::Number(40_001));
        assert_ne!(hash(&other, 0), with, "a number that could be a port");
    }
}
