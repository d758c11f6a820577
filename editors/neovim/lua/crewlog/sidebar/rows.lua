--- The lines of the sidebar: what is known goes in, rows come out. Pure but for asking for what an opened list lacks.
local client = require("crewlog.client")
local config = require("crewlog.config")
local icons = require("crewlog.icons")
local store = require("crewlog.store")
local text = require("crewlog.text")

local M = {}

---@class crewlog.Row
---@field key string what it is, the same however often it is drawn
---@field kind "section"|"list"|"task"|"session"|"plan"|"team"|"member"|"more"|"hint"|"error"
---@field text string
---@field marks { [1]: integer, [2]: integer, [3]: string }[] from and to byte, highlight group
---@field sig string differs when the row is to be drawn anew
---@field section crewlog.Section
---@field expanded? boolean of a row that has children
---@field list? crewlog.List
---@field task? crewlog.Task
---@field session? crewlog.SessionInfo
---@field plan? crewlog.PlanInfo
---@field member? crewlog.RosterMember
---@field name? string of a member

M.TITLES = { tasks = "Tasks", sessions = "Sessions", plans = "Plans", team = "Team" }

local SUBJECT_BYTES = 240

---@alias crewlog.Segment { [1]: string, [2]: string? } text and group

---@param fields table
---@param segments crewlog.Segment[]
---@return crewlog.Row
local function row(fields, segments)
  local parts, marks, sig, at = {}, {}, {}, 0
  for _, segment in ipairs(segments) do
    local piece, group = segment[1], segment[2]
    if piece ~= "" then
      parts[#parts + 1] = piece
      if group then
        marks[#marks + 1] = { at, at + #piece, group }
        sig[#sig + 1] = group .. #piece
      end
      at = at + #piece
    end
  end
  fields.text, fields.marks = table.concat(parts), marks
  fields.sig = fields.text .. "\1" .. table.concat(sig, "\1")
  return fields
end

---@param section crewlog.Section
---@param key string
---@param message string
---@param group? string
---@param indent? string
local function hint(section, key, message, group, indent)
  return row({ key = key, kind = group == "CrewlogError" and "error" or "hint", section = section }, {
    { indent or "  " },
    { text.one_line(message), group or "CrewlogHint" },
  })
end

---@param counts crewlog.Counts?
local function counted(counts)
  if not counts or counts.total == 0 then
    return ""
  end
  return ("  %d/%d"):format(counts.completed, counts.total)
end

---@param list crewlog.List
function M.list_title(list)
  local session = list.session
  if type(session) == "table" then
    local title = text.one_line(session.name ~= "" and session.name or session.firstMessage, 120)
    if title ~= "" then
      return title
    end
  end
  return text.one_line(list.id, 120)
end

local NONE = {}

--- How a task stands: its sign's name, and its highlight group.
---@param list crewlog.List
---@param task crewlog.Task
---@return string sign
---@return string group
---@return string[] blockers open ones
function M.standing(list, task)
  local blockers = #(task.blockedBy or {}) > 0 and store.open_blockers(list, task) or NONE
  if task.status == "completed" then
    return "completed", "CrewlogCompleted", blockers
  elseif task.status == "in_progress" or (task.status == "pending" and store.holder(task)) then
    return "in_progress", "CrewlogInProgress", blockers
  elseif task.status ~= "pending" then
    return "unknown", "CrewlogUnknown", blockers
  elseif #blockers > 0 then
    return "blocked", "CrewlogBlocked", blockers
  end
  return "pending", "CrewlogPending", blockers
end

---@class crewlog.KnownRow a row that was made, and what it was made of besides the task itself
---@field row crewlog.Row
---@field task crewlog.Task
---@field list crewlog.List
---@field signs crewlog.Icons
---@field sign string
---@field after string

---@class crewlog.KnownRows
---@field count integer
---@field rows table<string, crewlog.KnownRow> by task

--- Rows by list and task: one of ten thousand changes, and the others need not be made anew. A task that changes is another table.
local known = {} ---@type table<string, crewlog.KnownRows>

---@param list crewlog.List
---@param tasks integer how many it has
local function known_in(list, tasks)
  local rows = known[list.id]
  if not rows or rows.count > 2 * tasks + 100 then -- most are of tasks that are gone
    rows = { count = 0, rows = {} }
    known[list.id] = rows
  end
  return rows
end

---@param made_rows crewlog.KnownRows
---@param list crewlog.List
---@param task crewlog.Task
---@param signs crewlog.Icons
---@return crewlog.Row
local function task_row(made_rows, list, task, signs)
  local sign, group, blockers = M.standing(list, task)
  local after = sign == "blocked" and table.concat(blockers, "\1") or ""
  local made = made_rows.rows[task.id]
  if made and made.task == task and made.sign == sign and made.after == after and made.signs == signs and made.list == list then
    return made.row
  end
  local done = sign == "completed"
  local doing = sign == "in_progress" and (task.activeForm or "") ~= "" and task.activeForm or task.subject
  local holder = not done and store.holder(task)
  local segments = {
    { "    " },
    { signs[sign], group },
    { " " },
    { "#" .. text.one_line(task.id, 30), "CrewlogId" },
    { " " },
    { text.one_line(doing, SUBJECT_BYTES), done and "CrewlogDone" or "CrewlogSubject" },
  }
  if holder then
    vim.list_extend(segments, { { "  " }, { "@" .. text.one_line(holder, 60), "CrewlogOwner" } })
  end
  if sign == "blocked" then
    local ids = vim
      .iter(blockers)
      :take(5)
      :map(function(id)
        return "#" .. text.one_line(id, 30)
      end)
      :join(" ")
    vim.list_extend(segments, { { "  " }, { "after " .. ids .. (#blockers > 5 and " …" or ""), "CrewlogBlocked" } })
  end
  local new = row({ key = "task\1" .. list.id .. "\1" .. task.id, kind = "task", section = "tasks", list = list, task = task }, segments)
  made_rows.count = made_rows.count + (made and 0 or 1)
  made_rows.rows[task.id] = { row = new, task = task, list = list, signs = signs, sign = sign, after = after }
  return new
end

---@param section crewlog.Section
---@param trailing string
---@param expanded boolean
---@param signs crewlog.Icons
local function section_row(section, trailing, expanded, signs)
  return row({ key = "section\1" .. section, kind = "section", section = section, expanded = expanded }, {
    { expanded and signs.open or signs.closed, "CrewlogMarker" },
    { " " },
    { M.TITLES[section], "CrewlogSection" },
    { trailing, "CrewlogCount" },
  })
end

---@class crewlog.RowOptions
---@field expanded fun(key: string, by_default: boolean): boolean
---@field completed boolean whether completed tasks are shown

local add = {} ---@type table<crewlog.Section, fun(rows: crewlog.Row[], signs: crewlog.Icons, options: crewlog.RowOptions)>

local EXPANDED_LISTS = 5 -- with open tasks; others begin closed

function add.tasks(rows, signs, options)
  local lists = store.sorted_lists()
  for place, list in ipairs(lists) do
    local counts = list.counts or {}
    local open = (counts.total or 0) > (counts.completed or 0)
    local key = "list\1" .. list.id
    local expanded = options.expanded(key, (open and place <= EXPANDED_LISTS) or #lists == 1)
    rows[#rows + 1] = row({ key = key, kind = "list", section = "tasks", list = list, expanded = expanded }, {
      { "  " },
      { expanded and signs.open or signs.closed, "CrewlogMarker" },
      { " " },
      { M.list_title(list), "CrewlogList" },
      { counted(list.counts), "CrewlogCount" },
    })
    if expanded then
      local hidden = 0
      if list.err then
        rows[#rows + 1] = hint("tasks", "error\1" .. key, list.err.message, "CrewlogError", "    ")
      elseif not list.tasks then
        store.load_tasks(list.id)
        rows[#rows + 1] = hint("tasks", "loading\1" .. key, "loading …", nil, "    ")
      end
      local all = store.tasks_of(list)
      local made_rows = known_in(list, #all)
      for _, task in ipairs(all) do
        if task.status == "completed" and not options.completed then
          hidden = hidden + 1
        else
          rows[#rows + 1] = task_row(made_rows, list, task, signs)
        end
      end
      if hidden > 0 then
        rows[#rows + 1] = hint("tasks", "hidden\1" .. key, ("%d completed"):format(hidden), nil, "    ")
      end
    end
  end
  if #lists == 0 then
    rows[#rows + 1] = hint("tasks", "none\1tasks", "none yet: `a` adds one")
  end
end

function add.sessions(rows, signs)
  local now = os.time()
  for _, info in ipairs(store.sorted_sessions()) do
    local title = text.one_line(info.name ~= "" and info.name or info.firstMessage, SUBJECT_BYTES)
    rows[#rows + 1] = row({ key = "session\1" .. info.id, kind = "session", section = "sessions", session = info }, {
      { "  " },
      { signs.session, "CrewlogSession" },
      { " " },
      { title ~= "" and title or info.id, title ~= "" and "CrewlogSubject" or "CrewlogId" },
      { "  " },
      { text.ago(info.updated, now), "CrewlogTime" },
    })
  end
  if #store.sessions_skipped > 0 then
    local first = store.sessions_skipped[1]
    local message = ("%d cannot be shown: %s: %s"):format(#store.sessions_skipped, vim.fs.basename(first.path), first.reason)
    rows[#rows + 1] = hint("sessions", "skipped\1sessions", message, "CrewlogError")
  end
  if store.sessions_cursor then
    rows[#rows + 1] = row(
      { key = "more\1sessions", kind = "more", section = "sessions" },
      { { "  " }, { signs.more .. " more", "CrewlogHint" } }
    )
  elseif next(store.sessions) == nil then
    rows[#rows + 1] = hint("sessions", "none\1sessions", "none yet in this folder")
  end
end

function add.plans(rows, signs)
  local now = os.time()
  for _, plan in ipairs(store.sorted_plans()) do
    rows[#rows + 1] = row({ key = "plan\1" .. plan.name, kind = "plan", section = "plans", plan = plan }, {
      { "  " },
      { signs.plan, "CrewlogPlan" },
      { " " },
      { text.one_line(plan.name, SUBJECT_BYTES), "CrewlogSubject" },
      { "  " },
      { text.ago(plan.modified, now), "CrewlogTime" },
    })
  end
  if next(store.plans) == nil then
    rows[#rows + 1] = hint("plans", "none\1plans", "none yet: `a` adds one")
  end
end

--- What each holder is at, from the tasks that are loaded.
local function busy_in(list)
  local busy = {}
  for _, task in ipairs(store.tasks_of(list)) do
    local holder = task.status ~= "completed" and store.holder(task)
    if holder then
      busy[holder] = busy[holder] or {}
      table.insert(busy[holder], "#" .. text.one_line(task.id, 30))
    end
  end
  return busy
end

function add.team(rows, signs, options)
  local any = false
  for _, list in ipairs(store.sorted_lists()) do
    local roster = store.rosters[list.id]
    if roster then
      any = true
      local key = "team\1" .. list.id
      local members = roster.members or {}
      local expanded = options.expanded(key, true)
      rows[#rows + 1] = row({ key = key, kind = "team", section = "team", list = list, expanded = expanded }, {
        { "  " },
        { expanded and signs.open or signs.closed, "CrewlogMarker" },
        { " " },
        { text.one_line(roster.team, 120), "CrewlogList" },
        { ("  %d"):format(#members), "CrewlogCount" },
      })
      local busy = expanded and busy_in(list) or {}
      for _, member in ipairs(expanded and members or {}) do
        local at = busy[member.name]
        local member_key = ("member\1%s\1%s"):format(list.id, member.name)
        rows[#rows + 1] = row({ key = member_key, kind = "member", section = "team", list = list, member = member, name = member.name }, {
          { "    " },
          { signs.member, "CrewlogMember" },
          { " " },
          { text.one_line(member.name, 120), "CrewlogMember" },
          { "  " },
          { text.one_line(member.agent_type, 60), "CrewlogHint" },
          { at and "  " or "" },
          { at and table.concat(at, " ", 1, math.min(#at, 5)) or "", "CrewlogInProgress" },
        })
      end
    end
  end
  if not any then
    rows[#rows + 1] = hint("team", "none\1team", "no team in this folder")
  end
end

local LOADED = { tasks = "lists", sessions = "sessions", plans = "plans", team = "team" }

local function trailing(section)
  if section == "tasks" then
    return counted(store.counts())
  elseif section == "sessions" then
    local count = vim.tbl_count(store.sessions)
    return count > 0 and ("  %d%s"):format(count, store.sessions_cursor and "+" or "") or ""
  elseif section == "plans" then
    local count = vim.tbl_count(store.plans)
    return count > 0 and ("  %d"):format(count) or ""
  end
  return ""
end

local STATES = { stopped = "stopped: `R` starts it", starting = "starting …", waiting = "starting again …", failed = "" }

--- All rows.
---@param options crewlog.RowOptions
---@return crewlog.Row[]
function M.all(options)
  local signs = icons.get()
  local rows = {} ---@type crewlog.Row[]
  if client.state == "failed" then
    rows[1] = hint("tasks", "state", signs.warning .. " " .. (client.reason or "the server is gone"), "CrewlogError", "")
    rows[2] = hint("tasks", "state help", "`R` tries again, :checkhealth crewlog tells more", nil, "")
  elseif client.state ~= "ready" then
    rows[1] = hint("tasks", "state", "server " .. STATES[client.state], nil, "")
  end
  for _, section in ipairs(config.options.sidebar.sections) do
    local expanded = options.expanded("section\1" .. section, true)
    rows[#rows + 1] = section_row(section, trailing(section), expanded, signs)
    local topic = LOADED[section]
    local err = store.errors[topic] or (topic == "team" and store.errors.lists) or nil
    if not expanded then
      -- nothing below
    elseif err then
      rows[#rows + 1] = hint(section, "error\1" .. section, err.message, "CrewlogError")
    elseif store.loaded[topic] then
      add[section](rows, signs, options)
    elseif client.state ~= "failed" then
      rows[#rows + 1] = hint(section, "loading\1" .. section, "loading …")
    end
  end
  return rows
end

return M
