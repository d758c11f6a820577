--- What to show in a status line: tasks done of all, those in progress, and trouble with the server.
local client = require("crewlog.client")
local config = require("crewlog.config")
local icons = require("crewlog.icons")
local store = require("crewlog.store")

local M = {}

local asked = false

--- "" where there is nothing to tell. The first call starts the server.
---@return string # fit for 'statusline'
function M.get()
  if not asked then
    asked = true
    vim.schedule(function()
      client.start()
    end)
  end
  local signs = icons.get()
  if client.state == "failed" then
    return signs.warning .. " crewlog"
  elseif not store.loaded.lists then
    return ""
  end
  local counts = store.counts()
  if counts.total == 0 then
    return ""
  end
  local parts = { ("%s %d/%d"):format(signs.completed, counts.completed, counts.total) }
  if counts.inProgress > 0 then
    parts[2] = ("%s %d"):format(signs.in_progress, counts.inProgress)
  end
  return (table.concat(parts, " "):gsub("%%", "%%%%"))
end

--- The tasks that the user holds, in lists that are loaded.
---@return crewlog.Task[]
function M.mine()
  local owner, found = config.owner(), {}
  for _, list in pairs(store.lists) do
    for _, task in pairs(list.tasks or {}) do
      if task.status ~= "completed" and store.holder(task) == owner then
        found[#found + 1] = task
      end
    end
  end
  return found
end

local function redraw()
  if asked then
    vim.cmd.redrawstatus({ bang = true })
  end
end

store.listen(function(topic)
  if topic == "tasks" or topic == "lists" or topic == "state" then
    vim.schedule(redraw)
  end
end)

return M
