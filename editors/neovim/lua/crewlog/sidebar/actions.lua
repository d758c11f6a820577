--- What keys do in the sidebar. Actions are data: help, keymaps and the manual derive from them.
local client = require("crewlog.client")
local store = require("crewlog.store")
local tasks = require("crewlog.tasks")
local text = require("crewlog.text")
local view = require("crewlog.sidebar.view")

local M = {}

---@class crewlog.Action
---@field desc string
---@field on? string[] kinds of rows it is for; nil for any
---@field run fun(row: crewlog.Row?)

---@type table<string, crewlog.Action>
M.actions = {}

---@type { [1]: string, [2]: string }[] default keys, in the order of the help
M.KEYS = {
  { "<CR>", "open" },
  { "o", "open" },
  { "<2-LeftMouse>", "open" },
  { "<C-x>", "open_split" },
  { "<C-v>", "open_vsplit" },
  { "<C-t>", "open_tab" },
  { "<Tab>", "toggle" },
  { "za", "toggle" },
  { "zo", "expand" },
  { "zc", "collapse" },
  { "zR", "expand_all" },
  { "zM", "collapse_all" },
  { "]]", "next_section" },
  { "[[", "previous_section" },
  { "a", "add" },
  { "r", "rename" },
  { "d", "delete" },
  { "U", "undelete" },
  { "e", "edit" },
  { "c", "claim" },
  { "u", "release" },
  { "x", "complete" },
  { "X", "reopen" },
  { "b", "blockers" },
  { "K", "details" },
  { "H", "toggle_completed" },
  { "S", "search" },
  { "y", "yank" },
  { "R", "refresh" },
  { "?", "help" },
  { "q", "close" },
}

local function say(message)
  vim.notify("crewlog: " .. message)
end

---@param question string
---@return boolean
local function confirmed(question)
  return vim.fn.confirm(question, "&Yes\n&No", 2) == 1
end

---@param prompt string
---@param default string?
---@param go fun(answer: string) not called when the user gives up or gives nothing
local function input(prompt, default, go)
  vim.ui.input({ prompt = prompt, default = default }, function(answer)
    if answer and vim.trim(answer) ~= "" then
      go(answer)
    end
  end)
end

---@param name string
---@param desc string
---@param on string[]?
---@param run fun(row: crewlog.Row)
local function define(name, desc, on, run)
  M.actions[name] = { desc = desc, on = on, run = run }
end

--- Runs an action on the row under the cursor; tells where it does not apply.
---@param name string
function M.run(name)
  local action = M.actions[name]
  local row = view.current()
  if action.on and not (row and vim.list_contains(action.on, row.kind)) then
    say(("%s: not on this line"):format(name))
    return
  end
  action.run(row)
end

local TASK = { "task" }

local function title_of_task(row)
  return ("#%s %s"):format(text.one_line(row.task.id, 30), text.one_line(row.task.subject, 80))
end

local function title_of_session(row)
  local info = row.session
  local name = text.one_line(info.name ~= "" and info.name or info.firstMessage, 80)
  return name ~= "" and ("%s (%s)"):format(name, info.id) or info.id
end

---@param how "edit"|"split"|"vsplit"|"tab"
local function open(row, how)
  if row.expanded ~= nil then
    view.set_expanded(row.key, not row.expanded)
  elseif row.kind == "task" then
    require("crewlog.windows").open(require("crewlog.names").task(row.list.id, row.task.id), how)
  elseif row.kind == "session" then
    require("crewlog.windows").open(require("crewlog.names").session(row.session.id), how)
  elseif row.kind == "member" then
    require("crewlog.windows").open(require("crewlog.names").transcript(row.list.id, row.name), how)
  elseif row.kind == "plan" then
    require("crewlog.windows").open(row.plan.path, how)
  elseif row.kind == "more" then
    store.more_sessions()
  end
end

local OPENABLE = { "section", "list", "team", "task", "session", "plan", "member", "more" }

define("open", "open, or fold and unfold", OPENABLE, function(row)
  open(row, "edit")
end)
define("open_split", "open in a split", OPENABLE, function(row)
  open(row, "split")
end)
define("open_vsplit", "open in a vertical split", OPENABLE, function(row)
  open(row, "vsplit")
end)
define("open_tab", "open in a tab page", OPENABLE, function(row)
  open(row, "tab")
end)

--- The row that holds a row's children, or the row itself.
local function parent(row)
  if row.expanded ~= nil then
    return row
  end
  local line = vim.api.nvim_win_get_cursor(0)[1]
  for i = line - 1, 1, -1 do
    local above = view.rows[i]
    if above.expanded ~= nil then
      return above
    end
  end
end

local function set_expanded(row, wanted)
  local node = row and parent(row)
  if node then
    if wanted == nil then
      wanted = not node.expanded
    end
    view.set_expanded(node.key, wanted)
    if not wanted then
      view.go_to(node.key)
    end
  end
end

define("toggle", "fold or unfold", nil, function(row)
  set_expanded(row, nil)
end)
define("expand", "unfold", nil, function(row)
  set_expanded(row, true)
end)
define("collapse", "fold", nil, function(row)
  set_expanded(row, false)
end)
define("expand_all", "unfold everything", nil, function()
  view.set_all_expanded(true)
end)
define("collapse_all", "fold everything", nil, function()
  view.set_all_expanded(false)
end)

local function jump(step)
  local line = vim.api.nvim_win_get_cursor(0)[1] + step
  while view.rows[line] do
    if view.rows[line].kind == "section" then
      vim.api.nvim_win_set_cursor(0, { line, 0 })
      return
    end
    line = line + step
  end
end

define("next_section", "next section", nil, function()
  jump(1)
end)
define("previous_section", "previous section", nil, function()
  jump(-1)
end)

--- Calls `go` with the list that is meant: the one of the row, the only one, or the one that the user picks.
local function with_list(row, go)
  if row and row.list then
    return go(row.list.id)
  end
  local lists = store.sorted_lists()
  if #lists == 1 then
    return go(lists[1].id)
  elseif #lists == 0 then
    return input("New task list: ", "board", go)
  end
  local rows_of = require("crewlog.sidebar.rows")
  vim.ui.select(lists, { prompt = "Task list", format_item = rows_of.list_title }, function(list)
    if list then
      go(list.id)
    end
  end)
end

local ADD = {
  tasks = function(row)
    with_list(row, function(list_id)
      input("New task: ", nil, function(subject)
        tasks.create(list_id, { subject = subject }, function(err, task)
          if not err then
            view.go_to_soon("task\1" .. list_id .. "\1" .. task.id)
          end
        end)
      end)
    end)
  end,
  sessions = function()
    input("Name of the new session: ", nil, function(name)
      client.request("session/create", { name = name }, function(err, result)
        if err then
          return tasks.tell(err)
        end
        view.go_to_soon("session\1" .. result.session.id)
      end)
    end)
  end,
  plans = function()
    require("crewlog.plans").new()
  end,
  team = function(row)
    with_list(row, function(list_id)
      input("Name of the new member: ", nil, function(name)
        input("Type: ", "general", function(agent_type)
          local member = { name = name, agent_type = agent_type }
          client.request("roster/upsertMember", { listId = list_id, member = member }, function(err)
            if err then
              tasks.tell(err)
            end
          end)
        end)
      end)
    end)
  end,
}

define("add", "add a task, session, plan or member", nil, function(row)
  ADD[row and row.section or "tasks"](row)
end)

local RENAME = {
  task = function(row)
    input("Subject: ", row.task.subject, function(subject)
      tasks.rename(row.list.id, row.task.id, subject)
    end)
  end,
  session = function(row)
    vim.ui.input({ prompt = "Name: ", default = row.session.name }, function(name)
      if name then -- none at all takes the name away
        client.request("session/setName", { sessionId = row.session.id, name = name }, function(err)
          if err then
            tasks.tell(err)
          end
        end)
      end
    end)
  end,
  plan = function(row)
    require("crewlog.plans").rename(row.plan)
  end,
}

define("rename", "rename", { "task", "session", "plan" }, function(row)
  RENAME[row.kind](row)
end)

local DELETE = {
  task = function(row)
    local holder = store.holder(row.task)
    local who = holder and row.task.status ~= "completed" and (" It is held by %s."):format(text.one_line(holder, 60)) or ""
    if confirmed(("Delete task %s?%s"):format(title_of_task(row), who)) then
      tasks.delete(row.list.id, row.task.id)
    end
  end,
  session = function(row)
    if confirmed(("Move session %s with its tasks to the trash?"):format(title_of_session(row))) then
      client.request("session/delete", { sessionId = row.session.id }, function(err)
        if err then
          return tasks.tell(err)
        end
        M.deleted = row.session.id
        say("moved to the trash; `U` brings it back")
      end)
    end
  end,
  plan = function(row)
    require("crewlog.plans").delete(row.plan, confirmed)
  end,
  member = function(row)
    if confirmed(("Remove %s from the team?"):format(text.one_line(row.name, 80))) then
      client.request("roster/removeMember", { listId = row.list.id, name = row.name }, function(err)
        if err then
          tasks.tell(err)
        end
      end)
    end
  end,
}

---@type string? the session that was deleted last
M.deleted = nil

define("delete", "delete, with a question first", { "task", "session", "plan", "member" }, function(row)
  DELETE[row.kind](row)
end)

define("undelete", "bring the session back that was deleted last", nil, function()
  if not M.deleted then
    return say("no session was deleted")
  end
  client.request("session/restore", { sessionId = M.deleted }, function(err)
    if err then
      return tasks.tell(err)
    end
    M.deleted = nil
    store.refresh()
  end)
end)

define("edit", "edit all fields of a task, save with :w", TASK, function(row)
  open(row, "edit")
end)
define("claim", "claim", TASK, function(row)
  tasks.claim(row.list.id, row.task.id)
end)
define("release", "release", TASK, function(row)
  local holder = store.holder(row.task)
  if not holder then
    return say(("#%s is held by nobody"):format(row.task.id))
  end
  local config = require("crewlog.config")
  if
    holder == config.owner()
    or confirmed(("Task %s is held by %s, who may be at work. Take it away?"):format(title_of_task(row), text.one_line(holder, 60)))
  then
    tasks.release(row.list.id, row.task.id, holder)
  end
end)
define("complete", "complete", TASK, function(row)
  tasks.complete(row.list.id, row.task.id)
end)
define("reopen", "reopen", TASK, function(row)
  tasks.reopen(row.list.id, row.task.id)
end)
define("blockers", "choose what a task waits for", TASK, function(row)
  require("crewlog.blockers").choose(row.list.id, row.task.id)
end)

define("details", "show details", nil, function(row)
  if row then
    require("crewlog.sidebar.details").show(row)
  end
end)

define("toggle_completed", "hide or show completed tasks", nil, function()
  view.completed = not view.completed
  view.draw()
end)
define("search", "search all sessions", nil, function()
  require("crewlog.search").prompt()
end)

define("yank", "yank the id, name or path", nil, function(row)
  local what = row
    and (row.task and row.task.id or row.session and row.session.id or row.plan and row.plan.path or row.name or row.list and row.list.id)
  if what then
    vim.fn.setreg(vim.v.register, what)
    say("yanked " .. text.one_line(what, 100))
  end
end)

define("refresh", "load everything anew; start the server if it is gone", nil, function()
  if client.state == "ready" then
    store.refresh()
  else
    client.start(true)
  end
end)
define("help", "show these keys", nil, function()
  require("crewlog.sidebar.help").show()
end)
define("close", "close", nil, function()
  view.close()
end)

--- The keys as they are now: defaults and the user's.
---@return { [1]: string, [2]: string }[]
function M.keys()
  local own = require("crewlog.config").options.sidebar.keys
  local keys = vim.tbl_filter(function(pair)
    return own[pair[1]] == nil
  end, M.KEYS)
  for key, name in vim.spairs(own) do
    if name then
      keys[#keys + 1] = { key, name }
    end
  end
  return keys
end

--- Maps the keys in the sidebar's buffer.
---@param buf integer
function M.map(buf)
  for _, pair in ipairs(M.keys()) do
    local key, name = pair[1], pair[2]
    local action = M.actions[name]
    if action then
      vim.keymap.set("n", key, function()
        M.run(name)
      end, { buffer = buf, nowait = true, desc = "crewlog: " .. action.desc })
    else
      vim.notify(("crewlog: sidebar.keys[%q]: there is no action %q"):format(key, name), vim.log.levels.WARN)
    end
  end
end

return M
