--- The keys of the sidebar in a floating window.
local M = {}

function M.lines()
  local actions = require("crewlog.sidebar.actions")
  local by_name, order = {}, {}
  for _, pair in ipairs(actions.keys()) do
    if not by_name[pair[2]] then
      by_name[pair[2]] = {}
      order[#order + 1] = pair[2]
    end
    table.insert(by_name[pair[2]], pair[1])
  end
  local lines, width = {}, 0
  for _, name in ipairs(order) do
    width = math.max(width, vim.fn.strdisplaywidth(table.concat(by_name[name], " ")))
  end
  for _, name in ipairs(order) do
    local keys = table.concat(by_name[name], " ")
    local action = actions.actions[name]
    lines[#lines + 1] = (" %s%s  %s "):format(keys, (" "):rep(width - vim.fn.strdisplaywidth(keys)), action and action.desc or "?")
  end
  return lines, width
end

function M.show()
  local lines, width = M.lines()
  local win, buf = require("crewlog.windows").float(lines, "Crewlog")
  local ns = vim.api.nvim_create_namespace("crewlog.help")
  for i in ipairs(lines) do
    vim.api.nvim_buf_set_extmark(buf, ns, i - 1, 0, { end_col = width + 1, hl_group = "CrewlogKey" })
  end
  return win
end

return M
