--- Crewlog: sessions, tasks, plans and teams of coding agents beside the code. See |crewlog.txt|.
local M = {}

--- Sets options; it is optional. A server that runs with others is started anew.
---@param opts? table see |crewlog-setup|
function M.setup(opts)
  local config = require("crewlog.config")
  local before = config.options
  config.set(opts)
  local client = package.loaded["crewlog.client"]
  local function server_part(options)
    return { options.cmd, options.env, options.home }
  end
  if client and client.state ~= "stopped" and not vim.deep_equal(server_part(before), server_part(config.options)) then
    client.restart()
  end
end

--- Shows the sidebar and goes to it.
---@param section? crewlog.Section
function M.open(section)
  require("crewlog.sidebar").open(section)
end

function M.close()
  require("crewlog.sidebar").close()
end

function M.toggle()
  require("crewlog.sidebar").toggle()
end

return M
