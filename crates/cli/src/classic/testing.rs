//! For tests of running classic tools: a world without a network, and random command lines. Start reading at [`asked`].

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use classic::command::{
    Call, Chosen, Clock, CommandOutcome, LocalTime, Network, Run, Stream, Surroundings,
};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// A world in which every host is 127.0.0.1, with a few files.
pub(crate) struct World;

impl Surroundings for World {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let content: &[u8] = match path.to_str() {
            Some("body") => b"a=1&b=it's",
            Some("urls") => b"http://a:81/x?y=1\nhttp://a:81/z\n",
            Some("proxyrc") => b"proxy-host = 127.0.0.1\nproxy-port = 3128\n",
            Some("one_url") => b"http://127.0.0.1:82/w\n",
            Some("post.lua") => {
                b"wrk.method = 'POST'; wrk.body = 'c=2'; wrk.headers['Content-Type'] = 'x/y'"
            }
            _ => return Err(io::Error::from_raw_os_error(2)),
        };
        Ok(content.to_vec())
    }

    fn exists(&self, path: &Path) -> bool {
        self.read(path).is_ok()
    }

    fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![([127, 0, 0, 1], port).into()])
    }

    fn is_terminal(&self, _: Stream) -> bool {
        false
    }

    fn files_max(&self) -> u64 {
        1 << 20
    }

    fn network(&self) -> Arc<dyn Network> {
        Arc::new(Self)
    }

    fn clock(&self) -> Clock {
        Arc::new(local_time)
    }
}

impl Network for World {
    fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolve(host, port)
    }

    fn connect(&self, _: SocketAddr) -> io::Result<()> {
        Ok(())
    }
}

/// A time on a Thursday.
pub(crate) fn local_time() -> LocalTime {
    LocalTime { year: 2026, month: 1, day: 1, weekday: 4, hour: 0, minute: 0, second: 0 }
}

/// The run of a command line, its tool first; `None` if the tool only prints a message, or was not built in.
pub(crate) fn asked(words: &[String]) -> Option<Run> {
    let tool = classic::named(&words[0]).expect("a tool");
    let mut args = words[1..].to_vec();
    let own = Chosen::take(tool.own_flags, &mut args).expect("flags of joust's own");
    let command = tool.command?;
    match command(&Call { program: tool.name, args: &args, own: &own, world: &World }) {
        CommandOutcome::Run(run) => Some(*run),
        CommandOutcome::Exit(_) => None,
    }
}

/// Random numbers for random cases, from a seed that a failure prints.
pub(crate) fn random(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// Words of a line, and each of these flags at random.
pub(crate) fn line(
    random: &mut Pcg64Mcg,
    begin: &str,
    flags: &[&[&str]],
    end: &str,
) -> Vec<String> {
    let mut words: Vec<String> = begin.split_whitespace().map(str::to_owned).collect();
    for flag in flags {
        if random.random_bool(0.3) {
            words.extend(flag.iter().map(|word| (*word).to_owned()));
        }
    }
    words.extend(end.split_whitespace().map(str::to_owned));
    words
}
