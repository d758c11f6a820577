--- `:Crewlog`.
local M = {}

---@type table<string, { desc: string, run: fun(rest: string, args: table) }>
M.commands = {}

for _, section in ipairs({ "tasks", "sessions", "plans", "team" }) do
  M.commands[section] = {
    desc = "the sidebar, at " .. section,
    run = function()
      require("crewlog").open(section)
    end,
  }
end

M.commands.health = {
  desc = "checkhealth",
  run = function()
    vim.cmd.checkhealth("crewlog")
  end,
}
M.commands.toggle = {
  desc = "show or close the sidebar",
  run = function()
    require("crewlog").toggle()
  end,
}
M.commands.close = {
  desc = "close the sidebar",
  run = function()
    require("crewlog").close()
  end,
}
M.commands.restart = {
  desc = "start the server anew",
  run = function()
    require("crewlog.client").restart()
  end,
}
M.commands.stop = {
  desc = "stop the server",
  run = function()
    require("crewlog.client").stop()
  end,
}

---@param args { args: string, fargs: string[] }
function M.run(args)
  local name = args.fargs[1]
  if not name then
    return require("crewlog").open()
  end
  local command = M.commands[name]
  if not command then
    vim.notify(("crewlog: there is no :Crewlog %s; known are %s"):format(name, table.concat(vim.fn.sort(vim.tbl_keys(M.commands)), ", ")), vim.log.levels.ERROR)
    return
  end
  command.run(vim.trim(args.args:sub(#name + 1)), args)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  if line:match("^%S+%s+%S*$") then
    return vim.tbl_filter(function(name)
      return vim.startswith(name, lead)
    end, vim.fn.sort(vim.tbl_keys(M.commands)))
  end
  return {}
end

return M
