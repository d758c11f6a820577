--- What is behind the names `crewlog://…`: called when such a buffer is read or written.
local names = require("crewlog.names")
local M = {}

---@param buf integer
function M.read(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  local kind = names.parse(name)
  require("crewlog.client").start()
  if kind == "task" then
    require("crewlog.task_buffer").read(buf)
  elseif kind then
    require("crewlog.session").read(buf)
  elseif name == "crewlog://sidebar" then
    require("crewlog.sidebar.view").redraw()
  else
    vim.notify(
      ("crewlog: there is nothing behind %s: names are crewlog://session/<id>, crewlog://task/<list>/<id>"):format(name),
      vim.log.levels.ERROR
    )
  end
end

---@param buf integer
function M.write(buf)
  if names.parse(vim.api.nvim_buf_get_name(buf)) == "task" then
    require("crewlog.task_buffer").write(buf, vim.v.cmdbang == 1)
  else
    vim.notify("crewlog: sessions are written by agents only; `:saveas` keeps a copy of what is shown", vim.log.levels.ERROR)
  end
end

return M
