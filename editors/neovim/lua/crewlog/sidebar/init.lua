--- The sidebar: Tasks, Sessions, Plans and Team of the project.
local actions = require("crewlog.sidebar.actions")
local client = require("crewlog.client")
local view = require("crewlog.sidebar.view")

local M = {}

--- Shows the sidebar and goes to it; with a section, to its heading. Starts the server if it does not run.
---@param section? crewlog.Section
function M.open(section)
  client.start(true)
  view.open(actions.map)
  if section then
    view.go_to("section\1" .. section)
  end
end

function M.close()
  view.close()
end

--- Shows the sidebar where it is not, closes it where it is.
function M.toggle()
  if view.win() then
    M.close()
  else
    M.open()
  end
end

return M
