//! Scripts for each hook, as people write them, with both tools.

use super::masked::Counts;
use super::scripted::Manner;
use super::{Case, compare, has_wrk};

const fn script(line: &'static str, script: &'static str) -> Case {
    Case { manner: Manner::Plain, line, script, counts: Counts::Measured }
}

/// One connection, and the script ends it: everything is determined.
const fn exact(line: &'static str, script: &'static str) -> Case {
    Case { manner: Manner::Plain, line, script, counts: Counts::Determined }
}

const ONE: &str = "-d1 -t1 -c1 -s x.lua URL/a?b";

#[test]
fn a_script_changes_what_is_asked() {
    if !has_wrk() {
        return;
    }
    compare(&[
        script(
            ONE,
            "wrk.method = 'POST'\nwrk.body = 'a=1&b=2'\nwrk.headers['Content-Type'] = 'application/x-www-form-urlencoded'",
        ),
        script(
            ONE,
            "wrk.headers['X'] = 5; wrk.headers['Y'] = true; wrk.headers['Host'] = 'zz'; wrk.path = '/other'",
        ),
        script(ONE, "#!/usr/bin/wrk -s\nwrk.method = 'PUT'"),
        script(
            "-d1 -t2 -c2 -s x.lua URL/ -- one --two 3",
            "function init(args)\n  print(#args, args[1], args[2], args[3])\n  wrk.path = '/' .. args[1]\nend",
        ),
        script(
            ONE,
            "request = function() return wrk.format('HEAD' and 'GET', '/q', {['X-A'] = 'b'}, 'body') end",
        ),
        exact(
            ONE,
            "local n = 0\nrequest = function()\n  n = n + 1\n  return wrk.format(nil, '/' .. n)\nend\nlocal heard = 0\nresponse = function()\n  heard = heard + 1\n  if heard == 7 then wrk.thread:stop() end\nend",
        ),
        // Three at once, answered in order.
        exact(
            ONE,
            "init = function(args)\n  all = wrk.format(nil, '/?foo') .. wrk.format('POST', '/?bar', nil, 'xyz') .. wrk.format(nil, '/?baz', nil, '')\nend\nrequest = function() return all end\nlocal heard = 0\nresponse = function()\n  heard = heard + 1\n  if heard == 9 then wrk.thread:stop() end\nend\ndone = function(summary, latency) print(summary.requests, summary.bytes) end",
        ),
        Case {
            manner: Manner::Guarded,
            ..exact(
                "-d1 -t1 -c1 -s x.lua URL/resource",
                "local token, heard\nlocal path = '/authenticate'\nheard = 0\nrequest = function() return wrk.format('GET', path) end\nresponse = function(status, headers, body)\n  if not token and status == 200 then\n    token = headers['X-Token']\n    path = '/resource'\n    wrk.headers['X-Token'] = token\n  end\n  heard = heard + 1\n  if heard == 4 then wrk.thread:stop() end\nend",
            )
        },
    ]);
}

#[test]
fn a_script_sees_what_it_sees_in_wrk() {
    if !has_wrk() {
        return;
    }
    compare(&[
        exact(
            ONE,
            "local n = 0\nfunction response(status, headers, body)\n  n = n + 1\n  local names = {}\n  for name, value in pairs(headers) do names[#names + 1] = name .. '=' .. value end\n  table.sort(names)\n  print(status, table.concat(names, ' '), body)\n  if n == 3 then wrk.thread:stop() end\nend",
        ),
        Case {
            manner: Manner::Chunked,
            ..exact(
                ONE,
                "function response(status, headers, body)\n  print(status, headers['Transfer-Encoding'], body)\n  wrk.thread:stop()\nend",
            )
        },
        Case {
            manner: Manner::Status(404),
            ..exact(
                ONE,
                "local n = 0\nfunction response(status, headers)\n  n = n + 1\n  print(status, headers['X-Status'])\n  if n == 5 then wrk.thread:stop() end\nend\nfunction done(summary, latency, requests)\n  local e = summary.errors\n  print(e.connect, e.read, e.write, e.status, e.timeout, summary.requests, summary.bytes, #latency <= 5, latency.min <= latency.max)\nend",
            )
        },
        Case {
            manner: Manner::Closes,
            ..exact(
                ONE,
                "local n = 0\nfunction response(status, headers)\n  n = n + 1\n  print(n, status, headers['Connection'])\n  if n == 4 then wrk.thread:stop() end\nend",
            )
        },
        // Each thread has its own value, and all can be read at the end.
        exact(
            "-d1 -t2 -c2 -s x.lua URL/",
            "local threads = {}\nlocal counter = 1\nfunction setup(thread)\n  thread:set('id', counter)\n  thread:set('name', 'n' .. counter)\n  thread:set('half', counter / 2)\n  thread:set('yes', true)\n  print(thread:get('id'), tostring(thread.addr) == '127.0.0.1:' .. wrk.port, type(thread))\n  table.insert(threads, thread)\n  counter = counter + 1\nend\nfunction init(args)\n  requests = 0\n  responses = 0\n  print('thread ' .. id .. ' ' .. name .. ' ' .. half, yes)\nend\nfunction request()\n  requests = requests + 1\n  return wrk.request()\nend\nfunction response()\n  responses = responses + 1\n  if responses == 3 then wrk.thread:stop() end\nend\nfunction done()\n  for index, thread in ipairs(threads) do\n    print(thread:get('id'), thread:get('requests'), thread:get('responses'), thread:get('nothing'))\n  end\nend",
        ),
        script(
            ONE,
            "function done(summary, latency, requests)\n  print(summary.duration >= 1000000, summary.requests > 0, summary.bytes > 0)\n  print(latency.min > 0, latency.max >= latency.mean, latency.stdev >= 0, type(latency), latency.foo)\n  for _, p in pairs({50, 90, 99, 99.999}) do print(p, latency:percentile(p) <= latency.max) end\n  local n = 0\n  for index = 1, #latency do\n    local value, count = latency(index)\n    n = n + count\n  end\n  print(n >= summary.requests, latency(0), (latency(100000)), select(2, latency(100000)) == #latency)\n  print(pcall(function() local x = latency:percentile('x') return x end))\n  print(requests.max >= requests.min, #requests > 0)\nend",
        ),
        Case {
            manner: Manner::Hangs,
            ..script(
                ONE,
                "function done(summary, latency, requests)\n  print(summary.requests, summary.bytes, latency.min, latency.max, latency.mean, latency.stdev, #latency, latency:percentile(50))\n  print(requests.min, requests.max, #requests)\nend",
            )
        },
        script(
            ONE,
            "local addrs = wrk.lookup('127.0.0.1', wrk.port)\nprint(#addrs, tostring(addrs[1]) == '127.0.0.1:' .. wrk.port, wrk.connect(addrs[1]), type(addrs[1]))\nprint(tostring(wrk.lookup('127.0.0.1', 'http')[1]), wrk.connect(wrk.lookup('127.0.0.1', '1')[1]))\nfunction setup(thread) thread.addr = wrk.lookup('127.0.0.1', wrk.port)[1] end",
        ),
        script(
            ONE,
            "local names = {}\nfor name, value in pairs(wrk) do names[#names + 1] = name .. ':' .. type(value) end\ntable.sort(names)\nprint(table.concat(names, ' '))\nprint(wrk.scheme, wrk.host, wrk.port == tostring(tonumber(wrk.port)), wrk.method, wrk.path, wrk.body, package.loaded.wrk == wrk, _VERSION)",
        ),
        script(
            ONE,
            "local own = require('own')\nprint(own.name, package.loaded.own == own, require('own') == own)",
        ),
    ]);
}

#[test]
fn a_delay_stands_before_each_request() {
    if !has_wrk() {
        return;
    }
    compare(&[
        exact(
            ONE,
            "local n = 0\nfunction delay()\n  n = n + 1\n  if n > 1 then print('pause', n) end\n  return 40\nend\nfunction response()\n  print('reply')\n  if n == 5 then wrk.thread:stop() end\nend",
        ),
        // Nothing is requested before the load is over.
        exact("-d1 -t1 -c2 -s x.lua URL/", "function delay() return 60000 end"),
        script("-d1 -t2 -c4 -s x.lua URL/", "function delay() return math.random(10, 50) end"),
        script(ONE, "function delay() return '20' end"),
        script(ONE, "function delay() end"),
    ]);
}

#[test]
fn errors_of_scripts_are_told_as_wrk_tells_them() {
    if !has_wrk() {
        return;
    }
    compare(
        &[
            "x = = 3",
            "error('boom')",
            "local x\nx.y = 3",
            "function setup(thread) error('boom') end",
            "function setup(thread) thread:set('f', print) end",
            "function setup(thread) thread.x = 3 end",
            "function init(args) error('boom') end",
            "function init(args) error({}) end",
            "function init(args) local x\n\nx.y = 3 end",
            "function request() error('boom') end",
            "local n = 0\nfunction request()\n  n = n + 1\n  if n > 5 then error('boom', 0) end\n  return wrk.format()\nend",
            "function request() return nil end",
            "function request() return 12 end",
            "function request() return '' end",
            "function request() return 'hello world\\r\\n\\r\\n' end",
            "function request() return 'GET / HTTP/1.1\\r\\nA: b\\r\\n' end",
            "function request() return wrk.format('POST', nil, {}, 'abc') .. 'x' end",
            "function response() error('boom') end",
            "local n = 0\nfunction delay()\n  n = n + 1\n  if n == 3 then error('boom') end\n  return 1\nend",
            "function done() error('boom') end",
            "os.exit(3)",
            "function response() os.exit(4) end",
            "wrk.method = nil",
            "wrk.lookup('nonexistent.invalid', 'http')",
            "print('first')\nio.stderr:write('second\\n')\nio.write('third\\n')\nfunction done() print('last') end",
        ]
        .map(|text| script("-d1 -t1 -c1 -s x.lua URL/", text)),
    );
}
