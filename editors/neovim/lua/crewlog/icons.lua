--- Signs in the sidebar: of a Nerd Font where one is known to be there, else of the common part of every font.
local config = require("crewlog.config")
local M = {}

---@class crewlog.Icons
---@field open string a node whose children are shown
---@field closed string
---@field pending string
---@field blocked string
---@field in_progress string
---@field completed string
---@field unknown string a status that this version does not know
---@field session string
---@field plan string
---@field list string
---@field member string
---@field more string
---@field warning string

---@type crewlog.Icons
local PLAIN = {
  open = "▾",
  closed = "▸",
  pending = "○",
  blocked = "◌",
  in_progress = "◐",
  completed = "●",
  unknown = "?",
  session = "»",
  plan = "≡",
  list = "#",
  member = "@",
  more = "…",
  warning = "!",
}

---@type crewlog.Icons
local NERD = {
  open = "\u{f47c}",
  closed = "\u{f460}",
  pending = "\u{f4aa}",
  blocked = "\u{f033e}",
  in_progress = "\u{f144}",
  completed = "\u{f058}",
  unknown = "\u{f128}",
  session = "\u{f0369}",
  plan = "\u{f0219}",
  list = "\u{f0cb}",
  member = "\u{f007}",
  more = "…",
  warning = "\u{f071}",
}

--- Whether a Nerd Font is known to be there: a terminal cannot be asked, but users of one say so.
---@return boolean
function M.detected()
  local said = vim.g.have_nerd_font
  if said ~= nil then
    return said == true or said == 1
  end
  return package.loaded["nvim-web-devicons"] ~= nil or package.loaded["mini.icons"] ~= nil
end

---@return crewlog.Icons
function M.get()
  local wanted = config.options.icons
  if wanted == "auto" then
    wanted = M.detected()
  end
  return wanted and NERD or PLAIN
end

return M
