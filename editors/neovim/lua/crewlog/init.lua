--- Crewlog: sessions, tasks, plans and teams of coding agents beside the code. See |crewlog.txt|.
---
--- Nothing is loaded before it is used; the server starts with the first thing that needs it.
local M = {}

--- Sets options; it is optional. A server that runs with others is started anew.
---@param opts? table see |crewlog-setup|
function M.setup(opts)
  local config = require("crewlog.config")
  local before = config.options
  config.set(opts)
  local client = package.loaded["crewlog.client"]
  local function server_part(options)
    return { options.cmd or false, options.env or false, options.home or false }
  end
  if client and client.state ~= "stopped" and not vim.deep_equal(server_part(before), server_part(config.options)) then
    client.restart()
  end
end

--- Shows the sidebar and goes to it.
---@param section? crewlog.Section
function M.open(section)
  require("crewlog.sidebar").open(section)
end

function M.close()
  require("crewlog.sidebar").close()
end

--- Shows the sidebar where it is not, closes it where it is.
function M.toggle()
  require("crewlog.sidebar").toggle()
end

--- Opens a session, at its end or at an entry.
---@param session_id string
---@param entry_id? string
function M.open_session(session_id, entry_id)
  require("crewlog.session").open(session_id, entry_id)
end

--- Opens a task to be edited; without an id, a new one.
---@param list_id string
---@param id? string
function M.open_task(list_id, id)
  require("crewlog.windows").open(require("crewlog.names").task(list_id, id or "new"))
end

--- Asks the server for anything: |crewlog-protocol|. `done` is called once.
---@param method crewlog.Method
---@param params? table
---@param done fun(err?: crewlog.Error, result?: any)
---@return fun() cancel
function M.request(method, params, done)
  return require("crewlog.client").request(method, params, done)
end

--- Asks and waits for the answer.
---@param method crewlog.Method
---@param params? table
---@param timeout? integer milliseconds
---@return crewlog.Error? err
---@return any result
function M.request_sync(method, params, timeout)
  return require("crewlog.client").request_sync(method, params, timeout)
end

--- What to show in a status line.
---@return string
function M.statusline()
  return require("crewlog.statusline").get()
end

--- How it stands: `state` of the server, its `version`, `home` and `project`, and the `counts` of all tasks.
---@return { state: crewlog.client.State, reason?: string, version?: string, home?: string, project?: string, counts: crewlog.Counts }
function M.status()
  local client, store = require("crewlog.client"), require("crewlog.store")
  local server = client.server or {}
  return {
    state = client.state,
    reason = client.reason,
    version = client.version,
    home = server.home,
    project = server.projectId,
    counts = store.counts(),
  }
end

--- Parts of the API, loaded when they are used.
---@class crewlog.api
---@field history { older: function, newer: function, add: function, list: function, attach: function, pick: function }
---@field tasks { claim: function, release: function, complete: function, reopen: function, rename: function, create: function, delete: function, set_blockers: function }
---@field search { query: function, select: function, prompt: function }
---@field pickers { telescope: function, fzf_lua: function, snacks: function }
---@field store { lists: table<string, crewlog.List>, sessions: table<string, crewlog.SessionInfo>, plans: table<string, crewlog.PlanInfo>, rosters: table<string, crewlog.Roster> }
return setmetatable(M, {
  __index = function(_, name)
    if vim.list_contains({ "history", "tasks", "search", "pickers", "store", "plans" }, name) then
      return require("crewlog." .. name)
    end
  end,
}) --[[@as crewlog.api]]
