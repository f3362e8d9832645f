//! One Lua state: the prelude in it, the functions that it may call in joust, and how joust calls it. Owns all use of
//! mlua. Start reading at [`State::new`].

use std::net::SocketAddr;
use std::sync::Arc;

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use super::carried::Carried;
use super::shared::Shared;
use crate::wrk::figures::Figures;
use crate::wrk::flags::Flags;
use crate::wrk::stats::Stats;

/// A state and the functions of the prelude.
pub(super) struct State {
    lua: Lua,
    run: Function,
    resolve: Function,
    setup: Function,
    init: Function,
    has: Function,
    ask: Function,
    answer: Function,
    pause: Function,
    done: Function,
    flush: Function,
}

/// Where `require` searches, as in Debian's wrk: the current folder, /usr/local and /usr.
const PATH: &str = "./?.lua;/usr/share/luajit-2.1/?.lua;/usr/local/share/lua/5.1/?.lua;\
    /usr/local/share/lua/5.1/?/init.lua;/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua";

impl State {
    /// A state with the prelude, and without a script.
    pub(super) fn new(flags: &Flags, shared: &Arc<Shared>) -> mlua::Result<Self> {
        // mlua leaves out the libraries with which a script could corrupt memory (ffi, debug), and modules in C. pcall
        // is Lua's own: nothing here panics inside a script.
        let options = LuaOptions::new().catch_rust_panics(false);
        let lua = Lua::new_with(StdLib::ALL_SAFE, options)?;
        if !shared.has_own_path {
            lua.globals().get::<Table>("package")?.set("path", PATH)?;
        }
        let native = native(&lua, shared)?;
        let given = given(&lua, flags)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=[string \"wrk\"]");
        let drive: Table = prelude.call((native, given))?;
        let function = |name: &str| drive.get::<Function>(name);
        Ok(Self {
            run: function("run")?,
            resolve: function("resolve")?,
            setup: function("setup")?,
            init: function("init")?,
            has: function("has")?,
            ask: function("ask")?,
            answer: function("answer")?,
            pause: function("pause")?,
            done: function("done")?,
            flush: function("flush")?,
            lua,
        })
    }

    pub(super) fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Runs a script. A first line that begins with `#` is skipped.
    pub(super) fn run(&self, source: &[u8], name: &str) -> Result<(), String> {
        let shebang = source.starts_with(b"#");
        let end = source.iter().position(|byte| *byte == b'\n').unwrap_or(source.len());
        let source = if shebang { &source[end..] } else { source };
        let source = self.lua.create_string(source).map_err(|error| error.to_string())?;
        result(self.run.call((source, name))).map(drop)
    }

    /// Looks the host up; returns how many of its addresses answer.
    pub(super) fn resolve(&self, host: &str, service: &str) -> Result<usize, String> {
        let n = result(self.resolve.call((host, service)))?;
        Ok(n.as_usize().unwrap_or(0))
    }

    pub(super) fn setup(&self, thread: usize) -> Result<(), String> {
        result(self.setup.call(thread)).map(drop)
    }

    /// `args`: the URL, which is number 0, and the arguments after it.
    pub(super) fn init(&self, thread: usize, args: &[String]) -> Result<(), String> {
        let table = self.lua.create_table().map_err(|error| error.to_string())?;
        for (number, arg) in args.iter().enumerate() {
            table.raw_set(number, arg.as_str()).map_err(|error| error.to_string())?;
        }
        result(self.init.call((thread, table))).map(drop)
    }

    /// Whether the script has a function of that name now.
    pub(super) fn has(&self, name: &str) -> bool {
        self.has.call(name).unwrap_or(false)
    }

    /// The next request. A result that is not text counts as empty.
    pub(super) fn ask(&self) -> Result<Vec<u8>, String> {
        match result(self.ask.call(()))? {
            Value::String(text) => Ok(text.as_bytes().to_vec()),
            number @ (Value::Integer(_) | Value::Number(_)) => {
                Ok(number.to_string().unwrap_or_default().into_bytes())
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Passes a reply to the script. If several fields have the same name, the last one counts.
    pub(super) fn answer(&self, status: u16, head: &[u8], body: &[u8]) -> Result<(), String> {
        let told = || -> mlua::Result<MultiValue> {
            let headers = self.lua.create_table()?;
            for (name, value) in fields(head) {
                headers.raw_set(self.lua.create_string(name)?, self.lua.create_string(value)?)?;
            }
            self.answer.call((status, headers, self.lua.create_string(body)?))
        };
        result(told()).map(drop)
    }

    /// Milliseconds before the next request.
    pub(super) fn pause(&self) -> Result<f64, String> {
        Ok(match result(self.pause.call(()))? {
            Value::Integer(millis) => millis as f64,
            Value::Number(millis) => millis,
            _ => 0.0,
        })
    }

    pub(super) fn summary(&self, figures: &Figures) -> mlua::Result<Table> {
        let summary = self.lua.create_table()?;
        summary.set("duration", figures.runtime as f64)?;
        summary.set("requests", figures.complete as f64)?;
        summary.set("bytes", figures.bytes as f64)?;
        let errors = self.lua.create_table()?;
        let counts = &figures.errors;
        for (name, count) in [
            ("connect", counts.connect),
            ("read", counts.read),
            ("write", counts.write),
            ("status", counts.status),
            ("timeout", counts.timeout),
        ] {
            errors.set(name, count as f64)?;
        }
        summary.set("errors", errors)?;
        Ok(summary)
    }

    pub(super) fn done(&self, summary: mlua::Result<Table>) -> Result<(), String> {
        result(summary.and_then(|summary| self.done.call(summary))).map(drop)
    }

    pub(super) fn flush(&self) {
        // If standard output is closed, there is nobody to report to.
        self.flush.call::<()>(()).ok();
    }
}

/// The prelude's return values: a success flag, then the result or the error. An error that is not text becomes a
/// question mark, as in LuaJIT.
fn result(called: mlua::Result<MultiValue>) -> Result<Value, String> {
    let mut values = called.map_err(|error| error.to_string())?;
    let went_well = values.pop_front().is_some_and(|value| value == Value::Boolean(true));
    let value = values.pop_front().unwrap_or(Value::Nil);
    if went_well {
        return Ok(value);
    }
    Err(match value {
        Value::String(text) => text.to_string_lossy(),
        number @ (Value::Integer(_) | Value::Number(_)) => number.to_string().unwrap_or_default(),
        _ => "?".to_owned(),
    })
}

/// The fields of a head, unchanged: wrk keeps blanks at the end of a value.
fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    head.split(|byte| *byte == b'\n').skip(1).filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].trim_ascii_start();
        Some((&line[..colon], value.strip_suffix(b"\r").unwrap_or(value)))
    })
}

/// The values of the URL and -H.
fn given(lua: &Lua, flags: &Flags) -> mlua::Result<Table> {
    let url = &flags.url;
    let given = lua.create_table()?;
    given.set("scheme", url.scheme.as_str())?;
    given.set("host", url.host.as_str())?;
    given.set("port", url.port.as_deref())?;
    given.set("path", url.path.as_str())?;
    let headers = lua.create_table()?;
    // Only headers with a space after the first colon.
    for (name, value) in flags.headers.iter().filter_map(|header| header.split_once(':')) {
        if let Some(value) = value.strip_prefix(' ') {
            headers.push(lua.create_sequence_from([name, value])?)?;
        }
    }
    given.set("headers", headers)?;
    Ok(given)
}

/// The functions of joust that the prelude calls. Each returns its result, or nothing and a text: see there.
fn native(lua: &Lua, shared: &Arc<Shared>) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let own = || Arc::clone(shared);

    let shared = own();
    native.set(
        "lookup",
        lua.create_function(move |lua, (host, service): (String, String)| {
            Ok(match shared.lookup(&host, &service) {
                Ok(places) => {
                    let places = places.iter().map(SocketAddr::to_string);
                    (Some(lua.create_sequence_from(places)?), None)
                }
                Err(why) => (None, Some(why)),
            })
        })?,
    )?;
    let shared = own();
    native.set(
        "connect",
        lua.create_function(move |_, place: String| {
            Ok(place.parse().is_ok_and(|place| shared.connect(place)))
        })?,
    )?;
    let shared = own();
    native.set(
        "place",
        lua.create_function(move |_, thread: usize| {
            Ok(shared.place(thread).map(|place| place.to_string()))
        })?,
    )?;
    let shared = own();
    native.set(
        "move",
        lua.create_function(move |_, (thread, place): (usize, String)| {
            if let Ok(place) = place.parse() {
                shared.move_thread(thread, place);
            }
            Ok(())
        })?,
    )?;
    let shared = own();
    native.set(
        "stop",
        lua.create_function(move |_, thread: usize| {
            shared.stop(thread);
            Ok(())
        })?,
    )?;
    natives_of_threads(lua, &native, &own)?;
    natives_of_stats(lua, &native, &own)?;
    Ok(native)
}

/// Globals of another state.
fn natives_of_threads(
    lua: &Lua,
    native: &Table,
    own: &dyn Fn() -> Arc<Shared>,
) -> mlua::Result<()> {
    let shared = own();
    native.set(
        "get",
        lua.create_function(move |lua, (thread, name): (usize, String)| {
            let Some(other) = shared.thread(thread) else { return Ok((Value::Nil, None)) };
            let value: Value = other.globals().raw_get(name)?;
            Ok(match Carried::take(&value) {
                Ok(carried) => (carried.put(lua)?, None),
                Err(why) => (Value::Nil, Some(why)),
            })
        })?,
    )?;
    let shared = own();
    native.set(
        "set",
        lua.create_function(move |_, (thread, name, value): (usize, String, Value)| {
            let Some(other) = shared.thread(thread) else { return Ok(None) };
            Ok(match Carried::take(&value) {
                Ok(carried) => {
                    other.globals().raw_set(name, carried.put(&other)?)?;
                    None
                }
                Err(why) => Some(why),
            })
        })?,
    )
}

fn natives_of_stats(lua: &Lua, native: &Table, own: &dyn Fn() -> Arc<Shared>) -> mlua::Result<()> {
    let shared = own();
    native.set(
        "figure",
        lua.create_function(move |_, (stats, name): (String, Value)| {
            let name = name.to_string().unwrap_or_default();
            Ok(shared.with_stats(&stats, |stats| figure(stats, &name)))
        })?,
    )?;
    let shared = own();
    native.set(
        "percentile",
        lua.create_function(move |_, (stats, percent): (String, f64)| {
            Ok(shared.with_stats(&stats, |stats| stats.percentile(percent)) as f64)
        })?,
    )?;
    let shared = own();
    native.set(
        "nth",
        lua.create_function(move |_, (stats, index): (String, f64)| {
            let (value, count) =
                shared.with_stats(&stats, |stats| stats.nth((index as usize).wrapping_sub(1)));
            Ok((value as f64, count as f64))
        })?,
    )?;
    let shared = own();
    native.set(
        "n_values",
        lua.create_function(
            move |_, stats: String| Ok(shared.with_stats(&stats, Stats::n_values)),
        )?,
    )
}

fn figure(stats: &Stats, name: &str) -> Option<f64> {
    match name {
        "min" => Some(stats.min() as f64),
        "max" => Some(stats.max() as f64),
        "mean" => Some(stats.mean()),
        "stdev" => Some(stats.sd()),
        _ => None,
    }
}
