//! The line of `joust load` that asks for the same load. Owns how a plan is typed; must not know which
//! tool it came from. Start reading at [`explain`].

use record::{HttpVersion, LoadPlan, Pacing, Pick, RequestPlan, TlsVersions};
use units::Nanos;

/// The equivalent line of `joust load`, for a shell. Some of a plan cannot be typed: the exact bytes
/// of a request (order and case of its fields), a first request alone; `joust load` asks for the same
/// in its own words. Of several requests it names the first: lists are given with `--from`.
pub fn explain(plan: &LoadPlan) -> String {
    let mut words = vec!["joust".to_owned(), "load".to_owned(), plan.url.clone()];
    let mut add = |flag: &str, value: String| {
        words.push(flag.to_owned());
        if !value.is_empty() {
            words.push(value);
        }
    };
    add("-c", plan.connections.to_string());
    if let Some(requests) = plan.stop.requests {
        add("-n", requests.to_string());
    }
    if let Some(duration) = plan.stop.duration {
        add("-d", typed(duration));
    }
    if plan.threads > 1 {
        add("-t", plan.threads.to_string());
    }
    match &plan.pacing {
        Pacing::Constant { rate } => add("--rate", rate.0.to_string()),
        Pacing::Jitter { rate } => {
            add("--rate", rate.0.to_string());
            add("--arrivals", "jitter".to_owned());
        }
        // Instants cannot be typed: their mean rate comes nearest.
        Pacing::Replay { instants } => {
            if let (Some(first), Some(last)) = (instants.first(), instants.last())
                && first < last
            {
                let rate = (instants.len() - 1) as f64 / (last.0 - first.0) as f64 * 1e9;
                add("--rate", format!("{rate:.3}"));
                add("--arrivals", "jitter".to_owned());
            }
        }
        Pacing::Think { pause, .. } => add("--think", typed(*pause)),
        _ => {}
    }
    if plan.pick == Pick::AtRandom {
        add("--shuffle", String::new());
    }
    if plan.version == HttpVersion::Http10 {
        add("--http1.0", String::new());
    }
    if !plan.keep_alive {
        add("--no-keepalive", String::new());
    }
    if plan.pipeline > 1 {
        add("--pipeline", plan.pipeline.to_string());
    }
    if plan.cookies {
        add("--cookies", String::new());
    }
    add("--timeout", typed(plan.timeout));
    for source in &plan.sources {
        add("--source", source.to_string());
    }
    if plan.origin().tls_name.is_some() {
        for (flag, value) in tls(plan) {
            add(flag, value);
        }
    }
    for (flag, value) in request(&plan.requests[0]) {
        add(flag, value);
    }
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn request(request: &RequestPlan) -> Vec<(&'static str, String)> {
    let mut typed = Vec::new();
    let usual = if request.body.is_empty() { "GET" } else { "POST" };
    if request.method != usual {
        typed.push(("-X", request.method.clone()));
    }
    for (name, value) in &request.headers {
        typed.push(("-H", format!("{name}: {value}")));
    }
    if !request.body.is_empty() {
        typed.push(("--body", String::from_utf8_lossy(&request.body).into_owned()));
    }
    typed
}

fn tls(plan: &LoadPlan) -> Vec<(&'static str, String)> {
    let mut typed = Vec::new();
    if plan.tls.insecure {
        typed.push(("--insecure", String::new()));
    }
    if let Some((cert, key)) = &plan.tls.client {
        typed.push(("--cert", cert.display().to_string()));
        typed.push(("--key", key.display().to_string()));
    }
    match plan.tls.versions {
        TlsVersions::Both => {}
        TlsVersions::Only12 => typed.push(("--tls-version", "1.2".to_owned())),
        TlsVersions::Only13 => typed.push(("--tls-version", "1.3".to_owned())),
    }
    if plan.tls.resume < 1.0 {
        typed.push(("--tls-resume", format!("{}%", plan.tls.resume * 100.0)));
    }
    typed
}

/// A span as `joust` reads it: whole seconds, else milliseconds, microseconds or nanoseconds.
fn typed(span: Nanos) -> String {
    for (unit, nanos) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if span.0.is_multiple_of(nanos) {
            return format!("{}{unit}", span.0 / nanos);
        }
    }
    format!("{}ns", span.0)
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use record::LoadStop;

    use super::*;

    #[test]
    fn what_differs_from_the_defaults_is_typed_and_quoted() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/a?b=1&c");
        plan.stop = LoadStop { requests: Some(7), duration: None };
        (plan.version, plan.keep_alive) = (HttpVersion::Http10, false);
        plan.requests[0].headers = vec![("A".to_owned(), "it's".to_owned())];
        plan.requests[0].body = b"x y".to_vec();
        let expected = "joust load 'http://127.0.0.1:80/a?b=1&c' -c 10 -n 7 --http1.0 \
            --no-keepalive --timeout 10s -X GET -H 'A: it'\\''s' --body 'x y'";
        assert_eq!(explain(&plan), expected);
    }

    #[test]
    fn arrivals_that_jitter_are_typed() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        plan.pacing = Pacing::Jitter { rate: units::PerSecond(12.5) };
        assert!(explain(&plan).contains(" --rate 12.5 --arrivals jitter "), "{}", explain(&plan));
    }

    #[test]
    fn tls_is_typed_only_where_there_is_some() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 443).into(), "/");
        plan.tls.insecure = true;
        plan.timeout = Nanos::from_millis(1500);
        assert!(explain(&plan).ends_with("--timeout 1500ms"), "{}", explain(&plan));
        plan.origins[0].tls_name = Some("localhost".to_owned());
        plan.tls.versions = TlsVersions::Only13;
        assert!(explain(&plan).ends_with("1500ms --insecure --tls-version 1.3"));
    }
}
