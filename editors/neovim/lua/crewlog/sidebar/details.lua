--- More about a line of the sidebar, in a floating window.
local rows_of = require("crewlog.sidebar.rows")
local session_text = require("crewlog.session_text")
local store = require("crewlog.store")
local text = require("crewlog.text")

local M = {}

---@param lines string[]
---@param name string
---@param value any
local function fact(lines, name, value)
  if value ~= nil and value ~= "" then
    lines[#lines + 1] = ("%-12s %s"):format(name, text.one_line(value, 500))
  end
end

local function ids(list)
  return vim
    .iter(list or {})
    :take(50)
    :map(function(id)
      return "#" .. id
    end)
    :join(" ")
end

local ABOUT = {} ---@type table<string, fun(lines: string[], row: crewlog.Row)>

function ABOUT.task(lines, row)
  local task = row.task --[[@as crewlog.Task]]
  lines[#lines + 1] = ("# #%s %s"):format(text.one_line(task.id, 30), text.one_line(task.subject, 500))
  lines[#lines + 1] = ""
  fact(lines, "status", task.status)
  fact(lines, "doing", task.activeForm)
  fact(lines, "owner", task.owner)
  if type(task.claim) == "table" then
    fact(
      lines,
      "claim",
      ("taking %d%s%s"):format(
        task.claim.generation,
        task.claim.expiresAt and ", until " .. session_text.clock(task.claim.expiresAt) or "",
        task.claim.lapsed and ", lapsed: it can be claimed" or ""
      )
    )
  end
  fact(lines, "waits for", ids(task.blockedBy))
  fact(lines, "still open", ids(store.open_blockers(row.list, task)))
  fact(lines, "blocks", ids(task.blocks))
  fact(lines, "completed", session_text.clock(task.completedAt))
  for name, value in vim.spairs(task.metadata or {}) do
    fact(lines, text.one_line(name, 40), type(value) == "string" and value or vim.json.encode(value))
  end
  if (task.description or "") ~= "" then
    lines[#lines + 1] = ""
    vim.list_extend(lines, vim.list_slice(text.lines(task.description, 2000), 1, 200))
  end
end

function ABOUT.session(lines, row)
  local info = row.session --[[@as crewlog.SessionInfo]]
  local name = text.one_line(info.name, 500)
  vim.list_extend(lines, { "# " .. (name ~= "" and name or info.id), "" })
  fact(lines, "id", info.id)
  fact(lines, "first", info.firstMessage)
  fact(lines, "messages", tostring(info.messageCount))
  fact(lines, "created", session_text.clock(info.created))
  fact(lines, "updated", session_text.clock(info.updated))
  fact(lines, "folder", info.cwd)
  fact(lines, "file", info.path)
end

function ABOUT.plan(lines, row)
  vim.list_extend(lines, { "# " .. text.one_line(row.plan.name, 500), "" })
  fact(lines, "modified", session_text.clock(row.plan.modified))
  fact(lines, "bytes", tostring(row.plan.size))
  fact(lines, "file", row.plan.path)
end

function ABOUT.member(lines, row)
  vim.list_extend(lines, { "# " .. text.one_line(row.name, 500), "" })
  for name, value in vim.spairs(row.member) do
    if name ~= "name" then
      fact(lines, text.one_line(name, 40), type(value) == "string" and value or vim.json.encode(value))
    end
  end
end

function ABOUT.list(lines, row)
  local list = row.list --[[@as crewlog.List]]
  vim.list_extend(lines, { "# " .. rows_of.list_title(list), "" })
  fact(lines, "id", list.id)
  for name, value in vim.spairs(list.counts or {}) do
    fact(lines, name, tostring(value))
  end
end

--- Shows it; lines without more to tell are shown whole, since the sidebar may cut them.
---@param row crewlog.Row
function M.show(row)
  local lines = {}
  if ABOUT[row.kind] then
    ABOUT[row.kind](lines, row)
  else
    lines = { vim.trim(row.text) }
  end
  require("crewlog.windows").float(lines, row.kind, "markdown")
end

return M
