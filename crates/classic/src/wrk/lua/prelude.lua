-- What a script of wrk finds around it: the table `wrk`, and objects for addresses, threads and
-- statistics. It is given what it asks of joust (`native`) and of the URL (`given`), and gives back
-- the ways in which joust calls the script (see lua/state.rs).
--
-- Names, arguments and results are wrk's. Objects are userdata, as there: proxies, whose content lies
-- in tables beside them.

local native, given = ...

-- Native functions never raise an error: they give a second value that is the text of one. It is
-- raised here, so that a script's pcall sees a string, and the line is that of the script.
local function checked(value, complaint)
  if complaint then error(complaint, 3) end
  return value
end

local function class(name)
  local prototype = newproxy(true)
  local content = setmetatable({}, { __mode = "k" })
  local function new(inside)
    local object = newproxy(prototype)
    content[object] = inside
    return object
  end
  local function inside(object, level)
    local found = content[object]
    if found == nil then
      local text = "bad argument #1 to '?' (%s expected, got %s)"
      error(text:format(name, type(object)), (level or 1) + 2)
    end
    return found
  end
  return new, inside, getmetatable(prototype)
end

-- Addresses: "127.0.0.1:80".

local new_address, place_of, address = class("wrk.addr")
address.__tostring = function(self) return place_of(self) end

-- Threads: their numbers, from 0.

local new_thread, number_of, thread = class("wrk.thread")

local function get(self, key)
  return checked(native.get(number_of(self), tostring(key)))
end

local function set(self, key, value)
  checked(nil, native.set(number_of(self), tostring(key), value))
end

local function stop(self)
  native.stop(number_of(self))
end

-- What has no meaning gives its own name, as in wrk.
thread.__index = function(self, key)
  local number = number_of(self)
  if key == "get" then return get end
  if key == "set" then return set end
  if key == "stop" then return stop end
  if key == "addr" then
    local place = native.place(number)
    return place and new_address(place)
  end
  return key
end

thread.__newindex = function(self, key, value)
  local number = number_of(self)
  if key ~= "addr" then
    error(("cannot set '%s' on thread"):format(type(value)), 2)
  end
  native.move(number, place_of(value))
end

-- Statistics: the name under which joust keeps them.

local new_stats, name_of, stats = class("wrk.stats")

local function percentile(self, percent)
  local name = name_of(self)
  local number = tonumber(percent)
  if not number then
    local found = percent == nil and "no value" or type(percent)
    error(("bad argument #1 to 'percentile' (number expected, got %s)"):format(found), 2)
  end
  return native.percentile(name, number)
end

stats.__index = function(self, key)
  local name = name_of(self)
  if key == "percentile" then return percentile end
  return native.figure(name, key) or key
end
stats.__call = function(self, index) return native.nth(name_of(self), tonumber(index) or 0) end
stats.__len = function(self) return native.n_values(name_of(self)) end

-- What was compiled is not loaded: LuaJIT believes it, and so it could break memory. (Before modules of
-- their own these are all the ways into a chunk.)

local load_text, load_file = load, loadfile
local GLOBAL = _G

function load(chunk, name, _, env) return load_text(chunk, name, "t", env or GLOBAL) end
function loadstring(text, name) return load_text(text, name or text, "t", GLOBAL) end
function loadfile(path, _, env) return load_file(path, "t", env or GLOBAL) end
function dofile(path)
  local chunk, complaint = load_file(path, "t")
  if not chunk then error(complaint, 0) end
  return chunk()
end

-- The loader of require: the same files and words as Lua's own.
package.loaders[2] = function(name)
  local path, complaint = package.searchpath(name, package.path)
  if not path then return complaint end
  local chunk, wrong = load_file(path, "t")
  if not chunk then
    error(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, wrong), 0)
  end
  return chunk
end

-- The table of the script.

local wrk = {
  scheme = given.scheme,
  host = given.host,
  port = given.port,
  method = "GET",
  path = given.path,
  headers = {},
}

function wrk.lookup(host, service)
  local places = checked(native.lookup(tostring(host), tostring(service)))
  for index, place in ipairs(places) do places[index] = new_address(place) end
  return places
end

function wrk.connect(addr)
  return native.connect(place_of(addr))
end

-- Keeps the addresses that answer.
function wrk.resolve(host, service)
  local answering = {}
  for _, addr in ipairs(wrk.lookup(host, service)) do
    if wrk.connect(addr) then answering[#answering + 1] = addr end
  end
  wrk.addrs = answering
end

function wrk.setup(one)
  one.addr = wrk.addrs[1]
  if type(setup) == "function" then setup(one) end
end

function wrk.init(args)
  if not wrk.headers["Host"] then
    local name = wrk.host
    if name:find(":", 1, true) then name = "[" .. name .. "]" end
    wrk.headers["Host"] = wrk.port and name .. ":" .. wrk.port or name
  end
  if type(init) == "function" then init(args) end
  local always = wrk.format()
  wrk.request = function() return always end
end

-- Fields of a request: Host, then by name. wrk has them in the order in which Lua walks through the
-- table, which is another one in every state: any order will do, and this one is always the same.
local function before(one, other)
  if one == "Host" or other == "Host" then return one == "Host" and other ~= "Host" end
  return tostring(one) < tostring(other)
end

function wrk.format(method, path, headers, body)
  headers = headers or wrk.headers
  body = body or wrk.body
  headers["Host"] = headers["Host"] or wrk.headers["Host"]
  headers["Content-Length"] = body and string.len(body)
  local lines = { ("%s %s HTTP/1.1"):format(method or wrk.method, path or wrk.path) }
  local names = {}
  for name in pairs(headers) do names[#names + 1] = name end
  table.sort(names, before)
  for _, name in ipairs(names) do
    lines[#lines + 1] = ("%s: %s"):format(name, tostring(headers[name]))
  end
  return table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or "")
end

for _, header in ipairs(given.headers) do
  wrk.headers[header[1]] = header[2]
end

_G.wrk, package.loaded.wrk = wrk, wrk

-- How joust calls. Globals are looked up each time, since a script may change its functions as it
-- runs. Nothing is raised: the first result says whether all went well.

local call, flush = pcall, io.flush

local function ask()
  local own = request
  if type(own) ~= "function" then own = _G.wrk.request end
  return own()
end

local function answer(status, headers, body) return response(status, headers, body) end

local function pause() return tonumber((delay())) or 0 end

return {
  run = function(source, name)
    local chunk, complaint = load_text(source, "@" .. name, "t")
    if not chunk then return false, complaint end
    return call(chunk)
  end,
  resolve = function(host, service)
    return call(function()
      _G.wrk.resolve(host, service)
      return #_G.wrk.addrs
    end)
  end,
  setup = function(number) return call(function() _G.wrk.setup(new_thread(number)) end) end,
  init = function(number, args)
    return call(function()
      _G.wrk.thread = new_thread(number)
      _G.wrk.init(args)
    end)
  end,
  has = function(name) return type(_G[name]) == "function" end,
  ask = function() return call(ask) end,
  answer = function(...) return call(answer, ...) end,
  pause = function() return call(pause) end,
  done = function(summary)
    return call(function() done(summary, new_stats("latency"), new_stats("requests")) end)
  end,
  flush = function() flush() end,
}
