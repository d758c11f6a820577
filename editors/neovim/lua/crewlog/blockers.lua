--- Choosing what a task waits for.
local store = require("crewlog.store")
local tasks = require("crewlog.tasks")
local text = require("crewlog.text")

local M = {}

--- Lets the user pick a task: one that blocks already is taken away, another is added.
---@param list_id string
---@param id string
function M.choose(list_id, id)
  local list = store.lists[list_id]
  local task = list and list.tasks and list.tasks[id]
  if not task then
    return
  end
  local blocks = {}
  for _, blocker in ipairs(task.blockedBy or {}) do
    blocks[blocker] = true
  end
  local others = vim.tbl_filter(function(other)
    return other.id ~= id and (blocks[other.id] or other.status ~= "completed")
  end, store.tasks_of(list))
  if #others == 0 then
    vim.notify("crewlog: there is no other open task in this list")
    return
  end
  vim.ui.select(others, {
    prompt = ("#%s waits for"):format(id),
    format_item = function(other)
      return ("%s #%s %s"):format(blocks[other.id] and "[x]" or "[ ]", other.id, text.one_line(other.subject, 80))
    end,
  }, function(other)
    if not other then
      return
    end
    tasks.set_blockers(list_id, id, blocks[other.id] and { removeBlockedBy = { other.id } } or { addBlockedBy = { other.id } })
  end)
end

return M
