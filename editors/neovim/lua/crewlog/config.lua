--- What users can set. `require("crewlog").setup(opts)` is optional.
local M = {}

---@class crewlog.Config
---@field cmd? string[] the server's command; by default `crewlog serve` with the `crewlog` on PATH
---@field env? table<string, string> added to the server's environment
---@field home? string the home folder; by default the server's own choice (CREWLOG_HOME, else ~/.codebot)
---@field owner? string|fun(): string the name under which you claim tasks; by default CREWLOG_OWNER, else your user name
---@field icons "auto"|boolean "auto": icons when a Nerd Font is known to be there (`vim.g.have_nerd_font`, or an icon plugin)
---@field picker crewlog.Picker what searches are shown in; "auto": the first that is there of snacks, telescope and fzf-lua
---@field startup_timeout integer milliseconds until a server that does not answer is given up
---@field sidebar crewlog.config.Sidebar
---@field session crewlog.config.Session
---@field tasks crewlog.config.Tasks

---@class crewlog.config.Sidebar
---@field position "left"|"right"
---@field width integer columns
---@field sections crewlog.Section[] which, and in which order
---@field completed boolean whether completed tasks are shown
---@field keys table<string, string|false> key to action name; false takes a default key away

---@class crewlog.config.Session
---@field page integer entries that are loaded at a time
---@field follow boolean whether a window at the end of a session follows it
---@field folded boolean whether tool calls, their results and thinking begin folded

---@class crewlog.config.Tasks
---@field lease_ms? integer a claim lapses when Neovim has been gone for so long; by default it never does

---@alias crewlog.Section "tasks"|"sessions"|"plans"|"team"

---@type crewlog.Config
M.defaults = {
  icons = "auto",
  picker = "select",
  startup_timeout = 30000,
  sidebar = {
    position = "left",
    width = 40,
    sections = { "tasks", "sessions", "plans", "team" },
    completed = true,
    keys = {},
  },
  session = { page = 200, follow = true, folded = true },
  tasks = {},
}

---@type crewlog.Config
M.options = vim.deepcopy(M.defaults)

local function positive(value)
  return type(value) == "number" and value >= 1
end

local function strings(value)
  return type(value) == "table" and #value > 0 and vim.iter(value):all(function(item)
    return type(item) == "string"
  end)
end

local RULES = {
  { "cmd", strings, 'a list of strings, such as { "crewlog", "serve" }', optional = true },
  { "env", "table", "a table", optional = true },
  { "home", "string", "a path", optional = true },
  { "owner", { "string", "function" }, "a string or a function", optional = true },
  { "icons", { "string", "boolean" }, '"auto", true or false' },
  {
    "picker",
    "string",
    '"select", "auto", "telescope", "fzf-lua" or "snacks"',
    of = { "select", "auto", "telescope", "fzf-lua", "snacks" },
  },
  { "startup_timeout", positive, "milliseconds" },
  { "sidebar.position", "string", '"left" or "right"', of = { "left", "right" } },
  { "sidebar.width", positive, "a number of columns" },
  { "sidebar.sections", strings, "a list of section names" },
  { "sidebar.completed", "boolean", "true or false" },
  { "sidebar.keys", "table", "a table of keys" },
  { "session.page", positive, "a number of entries" },
  { "session.follow", "boolean", "true or false" },
  { "session.folded", "boolean", "true or false" },
  { "tasks.lease_ms", positive, "milliseconds", optional = true },
}

local function fits(value, rule)
  local check = rule[2]
  if type(check) == "function" then
    return check(value)
  elseif not vim.list_contains(type(check) == "table" and check or { check }, type(value)) then
    return false
  end
  return not rule.of or vim.list_contains(rule.of, value)
end

--- What is wrong with options, one sentence each.
---@param options crewlog.Config
---@return string[]
function M.problems(options)
  local found = {}
  for _, rule in ipairs(RULES) do
    local value = vim.tbl_get(options, unpack(vim.split(rule[1], ".", { plain = true })))
    if not (value == nil and rule.optional) and not fits(value, rule) then
      found[#found + 1] = ("%s must be %s, not %s"):format(rule[1], rule[3], vim.inspect(value))
    end
  end
  local function unknown(given, known, prefix)
    for name, value in pairs(given) do
      local path = prefix .. tostring(name)
      if path ~= "sidebar.keys" and type(known[name]) == "table" and type(value) == "table" and not vim.islist(known[name]) then
        unknown(value, known[name], path .. ".")
      elseif known[name] == nil and not vim.iter(RULES):any(function(rule)
        return rule[1] == path
      end) then
        found[#found + 1] = path .. " is no option"
      end
    end
  end
  unknown(options, M.defaults, "")
  return found
end

--- Takes the user's options. Raises an error that names every wrong one; nothing is changed then.
---@param opts? table
function M.set(opts)
  local options = vim.tbl_deep_extend("force", M.defaults, opts or {})
  local problems = M.problems(options)
  if #problems > 0 then
    error("crewlog.setup: " .. table.concat(problems, "; "), 0)
  end
  M.options = options
end

--- The name under which the user claims tasks.
---@return string
function M.owner()
  local owner = M.options.owner
  if type(owner) == "function" then
    owner = owner()
  end
  return owner or vim.env.CREWLOG_OWNER or vim.env.USER or vim.env.USERNAME or vim.uv.os_get_passwd().username
end

return M
