--- `:Crewlog`
local M = {}

---@class crewlog.Command
---@field desc string
---@field args? string what it takes, for the manual
---@field run fun(rest: string, bang: boolean)
---@field complete? fun(lead: string): string[]

---@type table<string, crewlog.Command>
M.commands = {}

---@param name string
---@param desc string
---@param run fun(rest: string, bang: boolean)
---@param more? { args?: string, complete?: fun(lead: string): string[] }
local function define(name, desc, run, more)
  M.commands[name] = vim.tbl_extend("force", { desc = desc, run = run }, more or {})
end

for _, section in ipairs({ "tasks", "sessions", "plans", "team" }) do
  define(section, "the sidebar, at its " .. section, function()
    require("crewlog").open(section)
  end)
end

define("history", "pick one of the last prompts; it is put below the cursor", function()
  require("crewlog.history").pick()
end)
define("health", ":checkhealth crewlog", function()
  vim.cmd.checkhealth("crewlog")
end)
define("toggle", "show the sidebar, or close it", function()
  require("crewlog").toggle()
end)
define("close", "close the sidebar", function()
  require("crewlog").close()
end)
define("search", "search all sessions; with ! those of all projects", function(rest, bang)
  require("crewlog.search").prompt({ query = rest ~= "" and rest or nil, all_projects = bang })
end, { args = "[words]" })
define("session", "open a session, the last one by default", function(rest)
  if rest ~= "" then
    return require("crewlog.session").open(rest)
  end
  require("crewlog.client").request("session/mostRecent", nil, function(err, found)
    if err or not found then
      return vim.notify("crewlog: " .. (err and err.message or "there is no session in this folder yet"), vim.log.levels.WARN)
    end
    require("crewlog.session").open(found.session.id)
  end)
end, {
  args = "[id]",
  complete = function()
    return vim.tbl_map(function(info)
      return info.id
    end, require("crewlog.store").sorted_sessions())
  end,
})
define("new", "a new task in a list, edited in a buffer", function(rest)
  if rest == "" then
    rest = (require("crewlog.store").sorted_lists()[1] or { id = "board" }).id
  end
  require("crewlog").open_task(rest)
end, {
  args = "[list]",
  complete = function()
    return vim.tbl_map(function(list)
      return list.id
    end, require("crewlog.store").sorted_lists())
  end,
})
define("plan", "a new plan", function(rest)
  require("crewlog.plans").new(rest ~= "" and rest or nil)
end, { args = "[name]" })
define("restart", "start the server anew", function()
  require("crewlog.client").restart()
end)
define("stop", "stop the server", function()
  require("crewlog.client").stop()
end)

---@return string[]
local function command_names()
  return vim.fn.sort(vim.tbl_keys(M.commands))
end

---@param args { args: string, fargs: string[], bang: boolean }
function M.run(args)
  local name = args.fargs[1]
  if not name then
    return require("crewlog").open()
  end
  local command = M.commands[name]
  if not command then
    local known = table.concat(command_names(), ", ")
    return vim.notify(("crewlog: there is no :Crewlog %s; known are %s"):format(name, known), vim.log.levels.ERROR)
  end
  command.run(vim.trim(vim.trim(args.args):sub(#name + 1)), args.bang)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local name, rest = line:match("^%S*%s+(%S*)(.*)$")
  local candidates = {}
  if name and rest == "" then
    candidates = command_names()
  elseif name and M.commands[name] and M.commands[name].complete and rest:match("^%s+%S*$") then
    candidates = M.commands[name].complete(lead)
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
