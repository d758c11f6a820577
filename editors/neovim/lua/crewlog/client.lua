--- The server of this Neovim: found, started, kept alive, asked.
---
--- There is one, for the working folder. It starts when it is first needed and is started anew when it dies.
local config = require("crewlog.config")
local rpc = require("crewlog.rpc")

local M = {}

---@alias crewlog.client.State
---| "stopped" # nobody needed it yet, or it was stopped
---| "starting"
---| "ready"
---| "waiting" # it died and is started again in a moment
---| "failed" # it will not be tried again by itself; `reason` tells why

---@type crewlog.client.State
M.state = "stopped"
---@type string? one sentence, where `state` is "waiting" or "failed"
M.reason = nil
---@type crewlog.Capabilities? of the server that runs
M.server = nil
---@type boolean whether it tells of changes
M.watched = false
---@type string? its version
M.version = nil
---@type string? the folder for which it was started
M.cwd = nil
---@type integer how many times a server was started
M.starts = 0

---@type integer
M.PROTOCOL = 1
---@type string[] what the plugin asks for; a server without one of them is too old
M.METHODS = {
  "crewlog/status",
  "history/list",
  "plan/list",
  "roster/get",
  "session/entries",
  "session/list",
  "session/search",
  "task/claim",
  "task/list",
  "task/lists",
  "task/release",
  "task/update",
  "transcript/load",
}

local BACKOFF = { 100, 1000, 3000, 10000, 30000 }
local STEADY_MS = 60000 -- a server that lived for so long is not one that dies at once

local lsp_client ---@type vim.lsp.Client?
local epoch = 0 -- tells the callbacks of one start from those of another
local deaths, ready_since, told = 0, 0, nil
local ever_ready = false -- since it was started by hand: one that never came up is not tried again
local queue = {} ---@type { method: crewlog.Method, params: table?, done: fun(err: crewlog.Error?, result: any) }[]
local on_ready = {} ---@type fun(watched: boolean)[]
local on_state = {} ---@type fun(state: crewlog.client.State, reason: string?)[]
local handlers = {} ---@type table<string, fun(params: table)>

--- Calls `listener` twice for each server, the first and those after a restart: when it answers, and (`watched`) when it tells of
--- changes. What was read in between may have changed without a word.
---@param listener fun(watched: boolean)
function M.on_ready(listener)
  on_ready[#on_ready + 1] = listener
end

--- Calls `listener` on every change of `state`.
---@param listener fun(state: crewlog.client.State, reason: string?)
function M.on_state(listener)
  on_state[#on_state + 1] = listener
end

--- Calls `handler` for a notification of the server.
---@param method crewlog.Notification
---@param handler fun(params: table)
function M.on_notification(method, handler)
  handlers[method] = handler
end

local function set_state(state, reason)
  M.state, M.reason = state, reason
  if state ~= "ready" then
    M.server, M.watched = nil, false
  end
  for _, listener in ipairs(on_state) do
    listener(state, reason)
  end
end

--- Tells the user once of one trouble; a server that was well in between may be told of again.
local function tell(message, level)
  if told ~= message then
    told = message
    vim.notify("crewlog: " .. message, level or vim.log.levels.ERROR)
  end
end

local function fail_queue(message)
  local waiting = queue
  queue = {}
  for _, request in ipairs(waiting) do
    request.done(rpc.error(message))
  end
end

local function give_up(reason, hint)
  epoch = epoch + 1
  local client = lsp_client
  lsp_client = nil
  if client then
    client.rpc.terminate()
  end
  set_state("failed", reason)
  tell(reason .. ". " .. (hint or ":checkhealth crewlog tells more, :Crewlog restart tries again."))
  fail_queue(reason)
end

--- The command and, where it cannot be run, why.
---@return string[] cmd
---@return string? trouble
function M.command()
  local cmd = config.options.cmd or { "crewlog", "serve" }
  if vim.fn.executable(cmd[1]) == 1 then
    return cmd, nil
  elseif config.options.cmd then
    return cmd, ("the command %q of your configuration cannot be run"):format(cmd[1])
  end
  return cmd, "the program `crewlog` is not on PATH. Install it (`pip install crewlog`), or name it: setup({ cmd = { … } })"
end

--- Why the plugin cannot work with a server, or nil.
---@param result { capabilities: table, serverInfo?: { name: string, version?: string } }
---@return string?
function M.mismatch(result)
  local own = vim.tbl_get(result, "capabilities", "experimental", "crewlog")
  local version = vim.tbl_get(result, "serverInfo", "version") or "unknown"
  if type(own) ~= "table" then
    return "the command is no Crewlog server"
  elseif own.protocolVersion ~= M.PROTOCOL then
    local which = own.protocolVersion < M.PROTOCOL and "is too old: update it" or "is newer than this plugin: update the plugin"
    return ("the server (version %s, protocol %d) %s"):format(version, own.protocolVersion, which)
  end
  local missing = vim.tbl_filter(function(method)
    return not vim.list_contains(own.methods, method)
  end, M.METHODS)
  if #missing > 0 then
    return ("the server (version %s) is too old: it lacks %s; update it"):format(version, table.concat(missing, ", "))
  end
end

local start

local function last_line(text)
  return vim.trim(text:match("([^\n]*)%s*$") or ""):sub(1, 200)
end

local function died(code, signal, last_words)
  local how = signal ~= 0 and ("signal %d"):format(signal) or ("exit code %d"):format(code)
  local words = last_line(last_words)
  local reason = "the server ended (" .. how .. ")" .. (words ~= "" and ": " .. words or "")
  if not ever_ready then
    return give_up(reason .. " before it answered")
  end
  if ready_since > 0 and vim.uv.now() - ready_since > STEADY_MS then
    deaths = 0
  end
  ready_since = 0
  deaths = deaths + 1
  lsp_client = nil
  if deaths > #BACKOFF then
    return give_up(reason .. ", for the " .. deaths .. "th time in a row")
  end
  set_state("waiting", reason)
  if deaths == 1 then
    told = nil
    tell(reason .. "; it is started again", vim.log.levels.WARN)
  end
  local mine = epoch
  vim.defer_fn(function()
    if mine == epoch and M.state == "waiting" then
      start()
    end
  end, BACKOFF[deaths])
end

local function send(request)
  local function done(err, result)
    request.done(err, result)
  end
  local client = assert(lsp_client)
  local sent, id
  if vim.fn.has("nvim-0.11") == 1 then
    sent, id = client:request(request.method, request.params or vim.empty_dict(), done)
  else
    sent, id = client.request(request.method, request.params or vim.empty_dict(), done) ---@diagnostic disable-line
  end
  if not sent then
    done(rpc.error("the server is gone"))
  end
  return id
end

local function initialized(client, result)
  local mismatch = M.mismatch(result)
  if mismatch then
    return give_up(mismatch)
  end
  lsp_client = client
  M.server = result.capabilities.experimental.crewlog
  M.version = vim.tbl_get(result, "serverInfo", "version")
  ready_since = vim.uv.now()
  ever_ready = true
  set_state("ready")
  for _, listener in ipairs(on_ready) do
    listener(false)
  end
  local mine = epoch
  M.request("subscribe", nil, function(err)
    if mine ~= epoch or (err and err.data.kind == "disconnected") then
      return -- it died, of which others tell
    elseif err then
      return give_up("the server does not tell of changes: " .. err.message)
    end
    M.watched = true
    for _, listener in ipairs(on_ready) do
      listener(true)
    end
  end)
  local waiting = queue
  queue = {}
  for _, request in ipairs(waiting) do
    send(request)
  end
end

start = function()
  require("crewlog.store") -- it listens, whoever needed the server first
  require("crewlog.plans") -- so does this
  local cmd, trouble = M.command()
  if trouble then
    return give_up(trouble, ":checkhealth crewlog tells more.")
  end
  epoch = epoch + 1
  local mine = epoch
  M.starts = M.starts + 1
  set_state("starting")
  local function only_now(callback)
    return function(...)
      if mine == epoch then
        callback(...)
      end
    end
  end
  local lsp_handlers = {}
  for method, handler in pairs(handlers) do
    lsp_handlers[method] = function(_, params)
      if mine == epoch then
        handler(params)
      end
    end
  end
  M.cwd = vim.fn.getcwd(-1, -1)
  local options = {
    name = "crewlog",
    cmd = function(dispatchers)
      return rpc.start(cmd, { env = config.options.env }, dispatchers, {
        refused = only_now(function(err)
          give_up("the server refused to start: " .. err.message)
        end),
        exited = only_now(died),
      })
    end,
    handlers = lsp_handlers,
    init_options = { home = config.options.home and vim.fs.normalize(config.options.home), cwd = M.cwd, subscribe = false },
    on_init = only_now(initialized),
  }
  -- No buffer is attached: the server knows nothing of documents.
  local ok, id
  if vim.fn.has("nvim-0.11") == 1 then
    ok, id = pcall(vim.lsp.start, options, { attach = false })
  else
    ok, id = pcall(vim.lsp.start_client, options) ---@diagnostic disable-line: deprecated
  end
  if not ok or not id then
    return give_up("the server cannot be started: " .. last_line(tostring(id)))
  end
  lsp_client = vim.lsp.get_client_by_id(id)
  vim.defer_fn(
    only_now(function()
      if M.state == "starting" then
        give_up(("the server did not answer within %d s"):format(config.options.startup_timeout / 1000))
      end
    end),
    config.options.startup_timeout
  )
end

--- Starts the server unless it runs. What was tried in vain is tried again only when `again` is true.
---@param again? boolean
function M.start(again)
  if M.state == "stopped" or (again and M.state == "failed") then
    deaths, ever_ready = 0, false
    start()
  end
end

--- Stops the server; requests that wait are failed.
function M.stop()
  epoch = epoch + 1
  local client = lsp_client
  lsp_client = nil
  if client then
    if vim.fn.has("nvim-0.11") == 1 then
      client:stop()
    else
      client.stop() ---@diagnostic disable-line
    end
  end
  deaths, told, ever_ready = 0, nil, false
  set_state("stopped")
  fail_queue("the server was stopped")
end

--- Stops the server if it runs, and starts a new one.
function M.restart()
  M.stop()
  start()
end

--- The working folder changed: the server is of another project now.
function M.folder_changed()
  if M.state ~= "stopped" and vim.fn.getcwd(-1, -1) ~= M.cwd then
    M.restart()
  end
end

--- Asks the server, which is started if need be; `done` is called exactly once, later.
---
--- An error has `data.kind`; "disconnected" when the server ended before it answered, so that it is unknown whether it was done.
---@param method crewlog.Method
---@param params? table
---@param done fun(err: crewlog.Error?, result: any)
---@return fun() cancel withdraws it; `done` may still be called
function M.request(method, params, done)
  local request = { method = method, params = params, done = done }
  M.start()
  if M.state == "ready" then
    local id = send(request)
    return function()
      if id and lsp_client then
        lsp_client.rpc.notify("$/cancelRequest", { id = id })
      end
    end
  elseif M.state == "failed" or M.state == "stopped" then
    local reason = M.reason or "the server is stopped"
    vim.schedule(function()
      done(rpc.error(reason))
    end)
    return function() end
  end
  queue[#queue + 1] = request
  return function()
    queue = vim.tbl_filter(function(waiting)
      return waiting ~= request
    end, queue)
  end
end

--- Asks, and waits for the answer while events go on. For scripts and for `:w`, which must not return before.
---
--- An error has `data.kind` "timeout" or "interrupted" (by CTRL-C) when it was not waited for any longer: it may be done all the same.
---@param method crewlog.Method
---@param params? table
---@param timeout? integer milliseconds, 10 s by default
---@return crewlog.Error? err
---@return any result
function M.request_sync(method, params, timeout)
  local answer
  local cancel = M.request(method, params, function(err, result)
    answer = { err = err, result = result }
  end)
  local answered, why = vim.wait(timeout or 10000, function()
    return answer ~= nil
  end, 2)
  if answered then
    return answer.err, answer.result
  end
  cancel()
  if why == -2 then
    return rpc.error(("interrupted before the server answered %s"):format(method), "interrupted"), nil
  end
  return rpc.error(("the server did not answer %s in time"):format(method), "timeout"), nil
end

--- The process id and the like, for `:checkhealth`.
---@return vim.lsp.Client?
function M.lsp()
  return lsp_client
end

return M
