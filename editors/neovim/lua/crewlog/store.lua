--- What the server told: task lists, sessions, plans, teams of the project. Kept true by its notifications.
---
--- Each change is told to Lua listeners and, for users, as `User Crewlog…` autocommands with the facts in `data`.
local client = require("crewlog.client")

local M = {}

---@class crewlog.List
---@field id string
---@field counts crewlog.Counts
---@field modified string
---@field session? crewlog.SessionInfo
---@field tasks? table<string, crewlog.Task> nil until they are loaded
---@field order? string[] ids of `tasks` as they are shown; nil until somebody asks, and after tasks came or went
---@field revision? integer of the last notification that is in `tasks`
---@field loading? table which of the requests for `tasks` counts
---@field late? crewlog.TaskDidChange[] came while loading
---@field err? crewlog.Error why it could not be loaded

---@alias crewlog.Topic "lists"|"tasks"|"sessions"|"plans"|"team"|"state"

---@type table<string, crewlog.List>
M.lists = {}
---@type table<string, crewlog.SessionInfo>
M.sessions = {}
---@type string? for the next page of sessions
M.sessions_cursor = nil
---@type crewlog.Skipped[] session files that cannot be listed
M.sessions_skipped = {}
---@type table<string, crewlog.PlanInfo>
M.plans = {}
---@type table<string, crewlog.Roster> by list, those with a team
M.rosters = {}
---@type table<crewlog.Topic, boolean> what has been loaded since the server began
M.loaded = {}
---@type table<crewlog.Topic, crewlog.Error> what could not be loaded
M.errors = {}

M.SESSIONS_PAGE = 100

local listeners = {} ---@type fun(topic: crewlog.Topic, data: table)[]
local wanted = {} ---@type table<string, true> lists whose tasks are to be there, after a restart too
local told = false -- of an error since the server began; the others are in the sidebar
local age = 0 -- of the server: an answer of an earlier one is no news

local EVENTS =
  { tasks = "CrewlogTasksChanged", sessions = "CrewlogSessionsChanged", plans = "CrewlogPlansChanged", team = "CrewlogTeamChanged" }

--- Calls `listener` after each change.
---@param listener fun(topic: crewlog.Topic, data: table)
---@return fun() remove
function M.listen(listener)
  listeners[#listeners + 1] = listener
  return function()
    for i, other in ipairs(listeners) do
      if other == listener then
        table.remove(listeners, i)
        return
      end
    end
  end
end

--- Runs the `User` autocommands of an event.
---@param event string
---@param data table
function M.emit(event, data)
  vim.api.nvim_exec_autocmds("User", { pattern = event, modeline = false, data = data })
end

local function changed(topic, data)
  for _, listener in ipairs({ unpack(listeners) }) do
    listener(topic, data)
  end
  if EVENTS[topic] then
    M.emit(EVENTS[topic], data)
  end
end

local function ask(topic, method, params, take)
  local mine = age
  client.request(method, params, function(err, result)
    if mine ~= age or (err and err.data.kind == "disconnected") then
      return -- of a server that is gone, or asked anew since
    end
    M.errors[topic] = err
    if err then
      if not told then
        told = true
        vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
      end
      changed(topic, { error = err })
    else
      take(result)
    end
  end)
end

--- Whether a list belongs here: to a session of this project, or to no session at all.
---@param info crewlog.TaskListInfo
---@return boolean
local function is_own(info)
  if not info.session or info.session == vim.NIL then
    return true
  end
  return client.server ~= nil and vim.fs.basename(vim.fs.dirname(info.session.path)) == client.server.projectId
end

local function load_team(list_id)
  ask("team", "roster/get", { listId = list_id }, function(roster)
    M.rosters[list_id] = roster.team ~= "" and roster or nil
    M.loaded.team = true
    changed("team", { listId = list_id, roster = M.rosters[list_id] })
  end)
end

local function load_lists()
  ask("lists", "task/lists", nil, function(result)
    local before = M.lists
    M.lists = {}
    for _, info in ipairs(result.lists) do
      if is_own(info) then
        local list = before[info.listId] or { id = info.listId }
        list.modified, list.session = info.modified, info.session
        if not list.tasks then
          list.counts = info.counts -- of a list that is loaded, the notifications know better
        end
        M.lists[list.id] = list
        load_team(list.id)
      end
    end
    M.loaded.lists = true
    M.loaded.team = M.loaded.team or next(M.lists) == nil
    changed("lists", {})
    for id in pairs(wanted) do
      if M.lists[id] then
        M.load_tasks(id)
      end
    end
  end)
end

local function load_sessions(cursor)
  ask("sessions", "session/list", { limit = M.SESSIONS_PAGE, cursor = cursor }, function(result)
    if not cursor then
      M.sessions = {}
    end
    for _, info in ipairs(result.sessions) do
      M.sessions[info.id] = info
    end
    M.sessions_cursor, M.sessions_skipped = result.nextCursor, result.skipped or {}
    M.loaded.sessions = true
    changed("sessions", {})
  end)
end

--- Loads the next page of sessions, if there is one.
function M.more_sessions()
  if M.sessions_cursor then
    load_sessions(M.sessions_cursor)
  end
end

local plans_asked, plans_stale = false, false

local function load_plans(data)
  if plans_asked then
    plans_stale = true
    return
  end
  plans_asked = true
  ask("plans", "plan/list", nil, function(result)
    plans_asked = false
    M.plans = {}
    for _, info in ipairs(result.plans) do
      M.plans[info.name] = info
    end
    M.loaded.plans = true
    changed("plans", data or {})
    if plans_stale then
      plans_stale = false
      load_plans()
    end
  end)
end

--- Loads everything anew; what was there stays until the answer comes.
function M.refresh()
  age = age + 1
  for _, list in pairs(M.lists) do
    list.revision, list.loading, list.late = nil, nil, nil
  end
  plans_asked, plans_stale = false, false
  load_lists()
  load_sessions()
  load_plans()
end

---@param list crewlog.List
---@param params crewlog.TaskDidChange
local function apply(list, params)
  for _, task in ipairs(params.changed) do
    if not list.tasks[task.id] then
      list.order = nil
    end
    list.tasks[task.id] = task
  end
  for _, id in ipairs(params.removed) do
    list.tasks[id], list.order = nil, nil
  end
  list.counts, list.revision = params.counts, params.revision
end

--- Loads the tasks of a list, and keeps them true from then on.
---@param list_id string
function M.load_tasks(list_id)
  wanted[list_id] = true
  local list = M.lists[list_id]
  if not list or list.loading then
    return
  end
  local mine = {}
  list.loading, list.late = mine, {}
  client.request("task/list", { listId = list_id }, function(err, result)
    if list.loading ~= mine then
      return
    end
    list.loading, list.err = nil, err
    local late = list.late or {}
    list.late = nil
    if not err then
      list.tasks, list.order = {}, nil
      for _, task in ipairs(result.items) do
        list.tasks[task.id] = task
      end
      list.counts, list.revision = result.counts, result.revision
      for _, params in ipairs(late) do
        if params.revision > result.revision then
          apply(list, params)
        end
      end
    end
    changed("tasks", { listId = list_id, error = err, counts = list.counts })
  end)
end

--- The list, known or new.
local function list_of(params)
  local list = M.lists[params.listId]
  if not list then
    list = { id = params.listId, counts = params.counts, modified = "", session = M.sessions[params.listId] }
    M.lists[params.listId] = list
    load_lists()
  end
  return list
end

client.on_notification("task/didChange", function(params)
  local list = list_of(params)
  if list.loading then
    table.insert(list.late, params)
    list.counts = params.counts
  elseif list.tasks and list.revision and params.revision > list.revision + 1 then
    M.load_tasks(list.id) -- one was missed
  elseif list.tasks and (not list.revision or params.revision > list.revision) then
    apply(list, params)
  else
    list.counts = params.counts
  end
  changed("tasks", params)
end)

client.on_notification("roster/didChange", function(params)
  M.rosters[params.listId] = params.roster.team ~= "" and params.roster or nil
  changed("team", params)
end)

client.on_notification("plan/didChange", load_plans)

client.on_notification("session/didChange", function(params)
  local id = params.session.id
  if params.change == "deleted" then
    M.sessions[id] = nil
  else
    M.sessions[id] = params.session
    if M.lists[id] then
      M.lists[id].session = params.session
    end
  end
  changed("sessions", params)
end)

client.on_ready(function(watched)
  if watched then
    return -- what changed since the server began is told
  end
  M.refresh()
  M.emit("CrewlogConnected", { version = client.version, home = client.server.home, projectId = client.server.projectId })
end)

client.on_state(function(state, reason)
  told = told and state ~= "starting"
  if state == "stopped" then
    age = age + 1
    M.lists, M.sessions, M.plans, M.rosters, M.loaded, M.errors = {}, {}, {}, {}, {}, {}
    M.sessions_cursor = nil
  elseif state == "waiting" or state == "failed" then
    age = age + 1
    for _, list in pairs(M.lists) do
      list.loading = nil
    end
    M.emit("CrewlogDisconnected", { state = state, reason = reason })
  end
  changed("state", { state = state, reason = reason })
end)

local function number(id)
  return tonumber(id) or math.huge
end

--- Whether one task id comes before another: as numbers, numbers before other text.
---@param a string
---@param b string
---@return boolean
function M.id_before(a, b)
  local left, right = number(a), number(b)
  if left ~= right then
    return left < right
  end
  return a < b
end

--- The tasks of a list that is loaded, by id.
---@param list crewlog.List
---@return crewlog.Task[]
function M.tasks_of(list)
  local tasks = list.tasks or {}
  if not list.order then
    local ids, numbers = vim.tbl_keys(tasks), {}
    for _, id in ipairs(ids) do
      numbers[id] = number(id)
    end
    table.sort(ids, function(a, b)
      if numbers[a] ~= numbers[b] then
        return numbers[a] < numbers[b]
      end
      return a < b
    end)
    list.order = ids
  end
  local sorted = {}
  for i, id in ipairs(list.order) do
    sorted[i] = tasks[id]
  end
  return sorted
end

--- The blockers of a task that are there and not completed.
---@param list crewlog.List
---@param task crewlog.Task
---@return string[]
function M.open_blockers(list, task)
  return vim.tbl_filter(function(id)
    local blocker = list.tasks and list.tasks[id]
    return blocker ~= nil and blocker.status ~= "completed"
  end, task.blockedBy or {})
end

--- Who holds a task, or nil: an owner whose lease lapsed holds it no longer.
---@param task crewlog.Task
---@return string?
function M.holder(task)
  local claim = task.claim
  if type(claim) == "table" and claim.lapsed then
    return nil
  end
  local owner = type(claim) == "table" and claim.owner or task.owner
  return owner ~= "" and owner or nil
end

--- The sessions that are loaded, the last updated first.
---@return crewlog.SessionInfo[]
function M.sorted_sessions()
  local sessions = vim.tbl_values(M.sessions)
  local seconds = {}
  for _, info in ipairs(sessions) do
    seconds[info] = require("crewlog.text").seconds(info.updated) or 0
  end
  table.sort(sessions, function(a, b)
    if seconds[a] ~= seconds[b] then
      return seconds[a] > seconds[b]
    end
    return a.updated == b.updated and a.id < b.id or a.updated > b.updated
  end)
  return sessions
end

--- The task lists: those with open tasks first, the last changed first.
---@return crewlog.List[]
function M.sorted_lists()
  local lists = vim.tbl_values(M.lists)
  local function open(list)
    return list.counts and list.counts.total > list.counts.completed
  end
  table.sort(lists, function(a, b)
    if open(a) ~= open(b) then
      return open(a)
    elseif a.modified ~= b.modified then
      return a.modified > b.modified
    end
    return a.id < b.id
  end)
  return lists
end

--- The plans, the last changed first.
---@return crewlog.PlanInfo[]
function M.sorted_plans()
  local plans = vim.tbl_values(M.plans)
  table.sort(plans, function(a, b)
    if a.modified ~= b.modified then
      return a.modified > b.modified
    end
    return a.name < b.name
  end)
  return plans
end

--- Tasks of all lists, counted.
---@return crewlog.Counts
function M.counts()
  local sum = { pending = 0, inProgress = 0, completed = 0, total = 0 }
  for _, list in pairs(M.lists) do
    for field in pairs(sum) do
      sum[field] = sum[field] + ((list.counts or {})[field] or 0)
    end
  end
  return sum
end

return M
