//! `joust ab` and the other replacements for classic tools, also when a link with such a name starts joust. Passes the
//! tool its arguments, runs the load that it requests, and writes its output. Owns streams, files and exit codes;
//! everything specific to one tool is in crate `classic`. Start reading at [`called`].

#[cfg(test)]
mod accounting;
#[cfg(test)]
pub(crate) mod testing;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use classic::command::{
    Call, Chosen, Clock, Closing, CommandOutcome, ExitMessage, Finished, LocalTime, Network,
    OutFile, Progress, Run, Stream, Surroundings, Texts,
};
use classic::{Tool, command};
use load::Control;
use record::Interval;
use units::Nanos;

/// Exit code for an argument that is not UTF-8.
const NO_TEXT: u8 = 2;

/// Exit code for a bad value of one of joust's own flags.
const BAD_VALUE: u8 = 2;

/// How long an address may take to answer before the next of the same name is taken.
const TRY: Duration = Duration::from_secs(2);

/// Longest file that is read, 1 GiB.
const FILE_MAX: u64 = 1 << 30;

/// The flags that are ours, before a tool sees its arguments.
const NO_FOOTNOTES: &str = "--no-footnotes";
const EXPLAIN: &str = "--explain";

/// Every tool that joust can replace.
pub fn tools() -> impl Iterator<Item = &'static Tool> {
    classic::ALL.iter().copied().filter(|tool| tool.command.is_some())
}

/// The subcommands for help, manual and completions; their arguments belong to the tools.
pub fn with_subcommands(command: clap::Command) -> clap::Command {
    tools().fold(command, |command, tool| {
        let ours = format!(
            "Takes the flags of {}; `joust {} -h` prints them. Two flags are joust's own: \
             {NO_FOOTNOTES} (print no lines of joust's own on stderr) and {EXPLAIN} (print the \
             equivalent `joust load` command and exit). A link named `{}` to joust does the same.",
            tool.name, tool.name, tool.name
        );
        let ours = tool.own_flags.iter().fold(ours, |text, flag| text + " " + &flag.help());
        // Some descriptions begin with the name of the tool.
        let own_name = format!("{}: ", tool.name);
        let about = tool.about.strip_prefix(&own_name).unwrap_or(tool.about);
        command.subcommand(
            clap::Command::new(tool.name)
                .about(format!("Replace {}: {about}", tool.name))
                .after_help(ours)
                .disable_help_flag(true)
                .arg(
                    clap::Arg::new("arguments")
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .help("Arguments of the tool"),
                ),
        )
    })
}

/// Runs a classic tool if the program was started by its name, or if it is the first argument. clap does not
/// see such a command line, because it would take `--` and `-h` for its own.
pub fn called(mut words: Vec<OsString>) -> Option<ExitCode> {
    let as_itself = words.first().and_then(|word| {
        let name = Path::new(word).file_name()?.to_str()?.to_owned();
        tools().find(|tool| tool.name == name)
    });
    if let Some(tool) = as_itself {
        let program = words.remove(0).to_string_lossy().into_owned();
        return Some(run(tool, &program, words));
    }
    let name = words.get(1)?.to_str()?.to_owned();
    let tool = tools().find(|tool| tool.name == name)?;
    Some(run(tool, tool.name, words.split_off(2)))
}

fn run(tool: &Tool, program: &str, words: Vec<OsString>) -> ExitCode {
    let mut args = Vec::with_capacity(words.len());
    for word in words {
        match word.into_string() {
            Ok(word) => args.push(word),
            Err(word) => {
                let word = word.display();
                crate::terminal::say(&format!("joust: the argument `{word}` is not UTF-8"));
                return NO_TEXT.into();
            }
        }
    }
    let (ours, own) = match take_ours(tool, &mut args) {
        Ok(taken) => taken,
        Err(why) => {
            crate::terminal::say(&format!("joust: {why}"));
            return BAD_VALUE.into();
        }
    };
    let read = tool.command.expect("only tools with a command line are listed");
    match read(&Call { program, args: &args, own: &own, world: &World }) {
        CommandOutcome::Exit(ExitMessage { texts, code }) => {
            print(&texts);
            code.into()
        }
        CommandOutcome::Run(run) if ours.explains => {
            print(&Texts::out(command::explain(&run.plan) + "\n"));
            ExitCode::SUCCESS
        }
        CommandOutcome::Run(run) => load(*run, ours.footnotes),
    }
}

/// joust's own flags.
#[derive(Debug, PartialEq, Eq)]
struct Ours {
    footnotes: bool,
    explains: bool,
}

/// Removes our flags, and those that we add to a tool, from the arguments. Arguments after `--` stay: they may be meant
/// for a script.
fn take_ours(tool: &Tool, args: &mut Vec<String>) -> Result<(Ours, Chosen), String> {
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let behind = args.split_off(end);
    let [no_footnotes, explains] = [NO_FOOTNOTES, EXPLAIN].map(|flag| {
        let before = args.len();
        args.retain(|arg| arg != flag);
        args.len() < before
    });
    let own = Chosen::take(tool.own_flags, args)?;
    args.extend(behind);
    Ok((Ours { footnotes: !no_footnotes, explains }, own))
}

/// Runs the load, and prints what the tool reports.
fn load(run: Run, with_footnotes: bool) -> ExitCode {
    let Run { mut plan, footnotes, mut printer, scenario } = run;
    if scenario.is_some() {
        // The load ends when its users have left. The plan's number of requests is for --explain only, because a tool
        // may divide it among users in another way.
        plan.stop.requests = None;
    }
    // Before this, Ctrl-C ends the program, even while it waits for a resolver.
    let interrupt = match sys::interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return failed(&format!("cannot catch Ctrl-C: {error}")),
    };
    print(&printer.opening());
    let began = sys::clock::wall();
    let printer = RefCell::new(printer);
    let (started, done) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let watch = |interval: &Interval| {
        started.set(started.get() + interval.started);
        done.set(done.get() + interval.ok + interval.errors.total());
        let so_far = Progress { started: started.get(), done: done.get(), elapsed: interval.end() };
        print(&printer.borrow_mut().progress(&so_far));
    };
    let control = Control::new(interrupt).watching(&watch);
    let control = match &scenario {
        Some(scenario) => control.acting(&**scenario),
        None => control,
    };
    let mut record = match load::run(&plan, &control) {
        Ok(record) => record,
        Err(error) => return failed(&error.to_string()),
    };
    record.findings = doctor::examine_load(&record);
    let finished = Finished { record: &record, began, local_time: &local_time };
    let closing = match command::close(&mut **printer.borrow_mut(), &finished) {
        Ok(closing) => closing,
        Err(lost) => return failed(&lost.to_string()),
    };
    let Closing { texts, files, code, footnotes: more, .. } = closing;
    print(&texts);
    let code = files.iter().filter_map(|file| write(file).err()).fold(code, u8::max);
    if with_footnotes {
        for note in footnotes.iter().chain(&more) {
            crate::terminal::say(&format!("joust: {note}"));
        }
    }
    if let Some(ExitMessage { texts, code }) = printer.borrow_mut().afterwards() {
        print(&texts);
        return code.into();
    }
    code.into()
}

fn failed(text: &str) -> ExitCode {
    crate::terminal::say(&format!("joust: {text}"));
    ExitCode::FAILURE
}

/// Writes each text to its stream. A reader that has gone is not an error, as in the originals.
fn print(texts: &Texts) {
    for (stream, text) in &texts.0 {
        match stream {
            Stream::Out => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
            }
            Stream::Err => {
                io::stderr().lock().write_all(text.as_bytes()).ok();
            }
        }
    }
}

/// Writes a file as the tool would. If that fails, prints the tool's complaint and returns its exit code.
fn write(file: &OutFile) -> Result<(), u8> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(file.appends).write(true).truncate(!file.appends);
    let written = options.open(&file.path).and_then(|mut out| out.write_all(&file.bytes));
    written.map_err(|error| {
        let (complaint, why) = (&file.complaint, command::strerror(&error));
        crate::terminal::say(&format!("{complaint}: {why}"));
        file.code
    })
}

fn local_time(since_1970: Nanos) -> LocalTime {
    let instant = jiff::Timestamp::from_nanosecond(i128::from(since_1970.0)).unwrap_or_default();
    let time = instant.to_zoned(jiff::tz::TimeZone::system());
    LocalTime {
        year: time.year().into(),
        month: time.month().unsigned_abs(),
        day: time.day().unsigned_abs(),
        weekday: time.weekday().to_sunday_zero_offset().unsigned_abs(),
        hour: time.hour().unsigned_abs(),
        minute: time.minute().unsigned_abs(),
        second: time.second().unsigned_abs(),
    }
}

/// This process and its machine.
struct World;

impl Surroundings for World {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
        // A device may have no end.
        if bytes.len() as u64 > FILE_MAX {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(bytes)
        }
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    /// In the resolver's order, but the first address that accepts a connection is moved to the front: the
    /// originals try the next address if one refuses, but a load has one address. The trial connection
    /// carries no request.
    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
        if addresses.len() > 1 && port != 0 {
            let answers = |addr: &SocketAddr| TcpStream::connect_timeout(addr, TRY).is_ok();
            if let Some(at) = addresses.iter().position(answers) {
                addresses[..=at].rotate_right(1);
            }
        }
        Ok(addresses)
    }

    fn is_terminal(&self, stream: Stream) -> bool {
        match stream {
            Stream::Out => io::stdout().is_terminal(),
            Stream::Err => io::stderr().is_terminal(),
        }
    }

    fn files_max(&self) -> u64 {
        sys::socket::raise_file_limit().unwrap_or_else(|_| sys::socket::file_limit())
    }

    fn network(&self) -> Arc<dyn Network> {
        Arc::new(World)
    }

    fn clock(&self) -> Clock {
        Arc::new(|| local_time(sys::clock::wall()))
    }
}

impl Network for World {
    fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok((host, port).to_socket_addrs()?.collect())
    }

    fn connect(&self, addr: SocketAddr) -> io::Result<()> {
        TcpStream::connect_timeout(&addr, TRY).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_ours_are_taken_out_but_for_those_behind_the_end_of_options() {
        let tool = tools().find(|tool| tool.name == "wrk").expect("it is there");
        let taken = |line: &str| {
            let mut args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (ours, _) = take_ours(tool, &mut args).unwrap();
            (ours.footnotes, ours.explains, args.join(" "))
        };
        assert_eq!(taken("-c 1 --no-footnotes u"), (false, false, "-c 1 u".to_owned()));
        let line = "--explain -s a.lua u -- --no-footnotes --explain";
        let kept = "-s a.lua u -- --no-footnotes --explain";
        assert_eq!(taken(line), (true, true, kept.to_owned()));
    }
}
