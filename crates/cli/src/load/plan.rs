//! Makes the plan from the command line: reads the named files. Owns the order of the checks. Start reading at
//! [`plan`].

use std::fmt::Display;
use std::io::Read as _;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};

use load::source::{self, Base, Folder, Listing};
use load::{LoadOptions, columns_needed, read_column, read_instants};
use miette::miette;
use record::{Column, LoadPlan, Pacing, RequestPlan};
use units::Nanos;

use super::args::{self, Args};
use crate::trouble::Trouble;

/// Default duration of a load.
const DURATION: Nanos = Nanos::from_secs(10);

/// The complete plan. `say` reports what was left out of the files.
pub fn plan(args: &Args, say: &dyn Fn(&str)) -> Result<LoadPlan, Trouble> {
    let mut options = options(args)?;
    if let Some(listing) = listing(args)? {
        listing.notes.iter().for_each(|note| say(note));
        options.asked = listing.asked;
    }
    options.draft.columns = columns(args, &options)?;
    literal_braces(args, say);
    options.draft.pacing = pacing(args, &mut options)?;
    let ends = options.draft.stop.requests.is_some()
        || options.draft.stop.duration.is_some()
        || matches!(options.draft.pacing, Pacing::Replay { .. });
    if !ends {
        options.draft.stop.duration = Some(DURATION);
    }
    let plan = options.plan().map_err(usage)?;
    check_machine(&plan)?;
    let has_tls = plan.origins.iter().any(|origin| origin.tls_name.is_some());
    // A redirect may lead to https.
    if has_tls || plan.follow > 0 {
        check_files(&args.tls)?;
        load::check_tls(&plan).map_err(usage)?;
    } else {
        args.tls.typed().iter().for_each(|flag| {
            say(&format!("{flag} has no effect: no URL begins with https://"));
        });
    }
    Ok(plan)
}

/// The given CPUs and addresses must be those of this machine.
fn check_machine(plan: &LoadPlan) -> Result<(), Trouble> {
    let allowed = sys::affinity::allowed().unwrap_or_default();
    // If the CPUs cannot be queried, the load reports the error when it pins its threads.
    if let Some(cpu) = plan.cpus.iter().find(|cpu| !allowed.is_empty() && !allowed.contains(cpu)) {
        return Err(Trouble::usage(miette!(
            "--cpus: this process may not use CPU {cpu}; it may use CPUs {allowed:?}"
        )));
    }
    for source in &plan.sources {
        let refused = |reason: &dyn Display| {
            Trouble::usage(miette!(
                help = "`ip address` lists the addresses of this machine",
                "--source: nothing can be sent from {source}: {reason}"
            ))
        };
        // The kernel allows binding to those.
        let is_of_many = source.is_multicast()
            || source.is_unspecified()
            || matches!(source, IpAddr::V4(source) if source.is_broadcast());
        if is_of_many {
            return Err(refused(&"it is not the address of one machine"));
        }
        UdpSocket::bind((*source, 0)).map_err(|error| refused(&error))?;
    }
    Ok(())
}

/// Checked before anything is sent: TLS itself reads its files only when it connects.
fn check_files(tls: &args::Tls) -> Result<(), Trouble> {
    let files = [("--cacert", &tls.cacert), ("--cert", &tls.cert), ("--key", &tls.key)];
    for (flag, file) in files {
        let Some(file) = file else { continue };
        std::fs::read(file).map_err(|error| {
            Trouble::usage(miette!("{flag}: cannot read {}: {error}", file.display()))
        })?;
    }
    Ok(())
}

fn options(args: &Args) -> Result<LoadOptions, Trouble> {
    let Args { size, pace, requests, connections, tls, checks, generator, output, .. } = args;
    let url = match (&args.url, &requests.from) {
        (Some(url), None) => url.clone(),
        (_, Some(file)) => file.display().to_string(),
        (None, None) => "a curl command line".to_owned(),
    };
    let mut options = LoadOptions::new(url);
    options.body = requests.body.as_deref().map_or(Ok(Vec::new()), body)?;
    requests.apply(&mut options);
    connections.apply(&mut options);
    let draft = &mut options.draft;
    size.apply(draft);
    pace.apply(draft);
    tls.apply(draft);
    checks.apply(draft);
    generator.apply(draft);
    output.apply(draft);
    Ok(options)
}

fn body(typed: &str) -> Result<Vec<u8>, Trouble> {
    let Some(file) = typed.strip_prefix('@') else { return Ok(typed.as_bytes().to_vec()) };
    std::fs::read(file).map_err(|error| {
        Trouble::usage(miette!(
            help = "--body @FILE reads a file; without @ the text itself is the body",
            "cannot read {file}: {error}"
        ))
    })
}

/// The requests of a file or a pasted line; `None` if there is only the URL.
fn listing(args: &Args) -> Result<Option<Listing>, Trouble> {
    let (text, name, folder, format) = match (&args.requests.curl, &args.requests.from) {
        (Some(command), _) => {
            (command.clone(), "--curl".to_owned(), PathBuf::from("."), Some("curl"))
        }
        (None, Some(file)) => {
            let folder = file.parent().unwrap_or(Path::new(".")).to_owned();
            (read(file)?, file.display().to_string(), folder, args.requests.format.as_deref())
        }
        (None, None) => return Ok(None),
    };
    let base = Base {
        name: &name,
        url: args.url.as_deref(),
        files: &Folder(folder),
        variables: &|name| std::env::var(name).ok(),
    };
    source::read(&text, format, &base).map(Some).map_err(usage)
}

/// The columns that placeholders name.
fn columns(args: &Args, options: &LoadOptions) -> Result<Vec<Column>, Trouble> {
    let mut columns: Vec<Column> = Vec::new();
    let field = |line: &String| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        (name.to_owned(), value.to_owned())
    };
    let further: Vec<(String, String)> = args.requests.headers.iter().map(field).collect();
    let typed = RequestPlan {
        templated: true,
        headers: further.clone(),
        body: options.body.clone(),
        ..RequestPlan::get(options.url.clone())
    };
    let asked = options.asked.iter().filter(|asked| asked.templated).map(|asked| RequestPlan {
        templated: true,
        headers: asked.headers.iter().chain(&further).cloned().collect(),
        body: asked.body.clone(),
        ..RequestPlan::get(asked.url.clone())
    });
    for request in std::iter::once(typed).chain(asked) {
        for (file, name) in columns_needed(&request).map_err(usage)? {
            if columns.iter().any(|known| known.file == file && known.name == name) {
                continue;
            }
            let text = read(Path::new(&file))?;
            columns.push(read_column(&text, &file, &name).map_err(usage)?);
        }
    }
    Ok(columns)
}

/// Warns about text that looks like a placeholder and is sent unchanged, because it may be a typing error.
fn literal_braces(args: &Args, say: &dyn Fn(&str)) {
    let fields = args.requests.headers.iter().filter_map(|line| line.split_once(':'));
    let texts = args.url.iter().map(String::as_str).chain(fields.map(|(_, value)| value));
    for braces in texts.filter_map(load::literal_braces) {
        say(&format!(
            "{braces} is sent unchanged: it is not a placeholder. Placeholders are {{seq}}, {{rand}}, {{rand:1-100}} and \
             {{csv:FILE:COLUMN}}"
        ));
    }
}

/// When requests are due.
fn pacing(args: &Args, options: &mut LoadOptions) -> Result<Pacing, Trouble> {
    let pace = &args.pace;
    if !(pace.speed > 0.0 && pace.speed.is_finite()) {
        return Err(Trouble::usage(miette!("--speed must be above 0, got {}", pace.speed)));
    }
    if let Some(rate) = pace.rate {
        return Ok((pace.arrivals.at)(rate));
    }
    if let Some(args::Ramp { from, to, over }) = pace.ramp {
        let over = over.or(options.draft.stop.duration).unwrap_or(DURATION);
        return Ok(Pacing::Ramp { from, to, over });
    }
    if let Some(args::Stages(stages)) = pace.stages.clone() {
        if options.draft.stop.requests.is_none() && options.draft.stop.duration.is_none() {
            let lengths = stages.iter().map(|stage| stage.length);
            options.draft.stop.duration = Some(lengths.fold(Nanos::ZERO, Nanos::saturating_add));
        }
        return Ok(Pacing::Stages { stages });
    }
    if let Some((pause, spread)) = pace.think {
        return Ok(Pacing::Think { pause, spread });
    }
    let instants = if let Some(file) = &pace.replay {
        read_instants(&read(file)?)
            .map_err(|error| Trouble::usage(miette!("{}: {error}", file.display())))?
    } else if pace.as_recorded {
        recorded(options)?
    } else {
        return Ok(Pacing::Closed);
    };
    let scaled = |at: Nanos| Nanos((at.0 as f64 / pace.speed) as u64);
    Ok(Pacing::Replay { instants: instants.into_iter().map(scaled).collect() })
}

fn recorded(options: &LoadOptions) -> Result<Vec<Nanos>, Trouble> {
    let instants: Option<Vec<Nanos>> = options.asked.iter().map(|asked| asked.at).collect();
    instants.ok_or_else(|| {
        Trouble::usage(miette!(
            help = "give a rate (--rate), or the times in a file of their own (--replay)",
            "{} does not say when its requests were made",
            options.url
        ))
    })
}

/// A text file, or stdin.
fn read(file: &Path) -> Result<String, Trouble> {
    let text = if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| {
        Trouble::usage(miette!(
            help = "is the name right, and the file text (UTF-8)?",
            "cannot read {}: {error}",
            file.display()
        ))
    })
}

pub(super) fn usage(error: impl std::fmt::Display) -> Trouble {
    Trouble::usage(miette!("{error}"))
}
